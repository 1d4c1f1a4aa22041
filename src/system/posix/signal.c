/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals by sigaction. There is one function that the system calls, which finds the handler by the
 * number of the signal: so a handler of ours is told from one of the program's, in a forked child
 * as well.
 */
#include "system/signal.h"

#include "base/atomic.h"

#include <blitz/error.h>

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#ifndef SI_TKILL
#define SI_TKILL SI_USER /* only Linux tells apart what was sent to one thread */
#endif

_Static_assert(sizeof(struct sigaction) <= sizeof(blz__signal_action), "an action fits");

static blz__signal_handler *handlers[BLZ__SIGNAL_LIMIT];

/* ---- the handler ---- */

static bool is_from_process(const siginfo_t *info)
{
    return info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL;
}

static void deliver_signal(int number, siginfo_t *info, void *context)
{
    blz__signal_handler *handler = blz__load(&handlers[number], RELAXED); /* set before sigaction */
    bool sent = is_from_process(info);
    int saved = errno;

    (void)context;
    handler(number, sent ? (int64_t)info->si_pid : 0, sent ? (uint32_t)info->si_uid : 0);
    errno = saved;
}

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == deliver_signal;
}

/* What the old action says about children that end is not about the handler, and stays. */
static int flags_after(int number, const struct sigaction *old)
{
    int flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;

    if (number != SIGCHLD)
        return flags;
    if (!(old->sa_flags & SA_SIGINFO) && old->sa_handler == SIG_IGN)
        flags |= SA_NOCLDWAIT;
    return flags | (old->sa_flags & (SA_NOCLDSTOP | SA_NOCLDWAIT));
}

/* ---- actions ---- */

bool blz__signal_can_be_caught(int number)
{
    static const int never[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        if (number == never[i])
            return false;
    return number > 0 && number < BLZ__SIGNAL_LIMIT;
}

/* All signals wait meanwhile: the handler is short, and never interrupted by itself. */
int blz__signal_catch(int number, blz__signal_handler *handler, blz__signal_action *previous)
{
    struct sigaction action = {.sa_sigaction = deliver_signal}, old;

    if (!blz__signal_can_be_caught(number))
        return -EINVAL;
    if (sigaction(number, NULL, &old) < 0)
        return -errno;
    if (is_ours(&old))
        memcpy(&old, previous, sizeof old);
    else
        memcpy(previous, &old, sizeof old);
    action.sa_flags = flags_after(number, &old);
    sigfillset(&action.sa_mask);
    blz__store(&handlers[number], handler, RELAXED);
    return sigaction(number, &action, NULL) < 0 ? -errno : 0;
}

bool blz__signal_is_caught(int number)
{
    struct sigaction now;

    return sigaction(number, NULL, &now) == 0 && is_ours(&now);
}

void blz__signal_restore(int number, const blz__signal_action *previous)
{
    struct sigaction action;

    memcpy(&action, previous, sizeof action);
    if (blz__signal_is_caught(number))
        sigaction(number, &action, NULL);
}

void blz__signal_set_default(int number)
{
    struct sigaction action = {.sa_handler = SIG_DFL};

    sigaction(number, &action, NULL);
}

/* ---- sending and letting in ---- */

void blz__signal_raise(int number)
{
    raise(number);
}

void blz__signal_send_self(int number)
{
    kill(getpid(), number);
}

void blz__signal_let_in(blz__signal_set only)
{
    sigset_t blocked;

    sigfillset(&blocked);
    for (int number = 1; number < BLZ__SIGNAL_LIMIT; number++)
        if (only & blz__signal_bit(number))
            sigdelset(&blocked, number);
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
}
