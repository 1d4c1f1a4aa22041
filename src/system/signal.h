/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals: handlers, what a thread lets in, sending.
 *
 * Numbers are those of <signal.h>, from 1 to BLZ__SIGNAL_LIMIT - 1; this header defines the names
 * that a system lacks. Windows has SIGINT (Ctrl-C), SIGBREAK, SIGHUP (the console closes) and
 * SIGTERM (the session ends), which come from the console; to catch another one is -ENOTSUP there,
 * and no sender is known. FreeBSD's real-time signals above 64 do not exist here.
 */
#ifndef BLZ_SYSTEM_SIGNAL_H
#define BLZ_SYSTEM_SIGNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#ifndef SIGHUP
#define SIGHUP 1
#endif
#ifndef SIGKILL
#define SIGKILL 9
#endif

enum { BLZ__SIGNAL_LIMIT = 65 };

/* A set of signals: bit number - 1. */
typedef uint64_t blz__signal_set;

static inline blz__signal_set blz__signal_bit(int number)
{
    return UINT64_C(1) << (number - 1);
}

/*
 * Called for each delivery, on any thread that does not block the signal (on Windows on a thread of
 * the system's), between any two of its instructions: it may use atomics, blz__futex_wake,
 * blz__clock_ns and the functions below that say so, and nothing else. All other signals are
 * blocked meanwhile, and errno is kept. System calls that were interrupted go on. `pid` and `uid`
 * are those of the process that sent it, or 0 and 0 if the system did, for a terminal, a timer, a
 * child and so on.
 */
typedef void blz__signal_handler(int number, int64_t pid, uint32_t uid);

/* What a signal did before: only this header looks inside. */
typedef struct blz__signal_action {
    uint64_t private_[20];
} blz__signal_action;

/* Whether a handler can be put there at all and be waited for: not SIGKILL and SIGSTOP, and not
 * those that belong to the instruction that raised them (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP,
 * SIGSYS). [any thread] */
bool blz__signal_can_be_caught(int number);

/*
 * Has the handler called for the signal, and keeps what it did before in *previous, unless a
 * handler of this header is there already: then *previous stays as it is. What the previous action
 * says about children that end (SIGCHLD) stays in force. 0; -EINVAL: there is no such signal;
 * -ENOTSUP. [any thread, one at a time for each signal]
 */
int blz__signal_catch(int number, blz__signal_handler *handler, blz__signal_action *previous);

/* Whether a handler of blz__signal_catch is there. [any thread, signal handlers] */
bool blz__signal_is_caught(int number);

/*
 * Puts back what the signal did before, unless the program has put another handler over that of
 * blz__signal_catch: that one stays. [any thread, signal handlers]
 */
void blz__signal_restore(int number, const blz__signal_action *previous);

/* The signal has its default action from now on. [any thread, signal handlers] */
void blz__signal_set_default(int number);

/*
 * Sends the signal to the calling thread. If it is blocked there it comes when it no longer is: in
 * a handler, when the handler ends. On Windows the handler is called, or the process is ended. [any
 * thread, signal handlers]
 */
void blz__signal_raise(int number);

/* Sends the signal to this process: any thread that does not block it. [any thread] */
void blz__signal_send_self(int number);

/*
 * Lets these signals in, and blocks all others, in the calling thread. On Windows nothing: no
 * thread is interrupted. [any thread]
 */
void blz__signal_let_in(blz__signal_set only);

#endif
