/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that fail on demand, in fault tests only.
 *
 *     fail_call(FAULTY_SOCKET_OPEN, 2, false, EMFILE);     the second blz__socket_open fails
 *     ...
 *     assert_true(stop_failing(FAULTY_SOCKET_OPEN));       it was called as often as that
 *
 * FAULTY_...  a function of the system contract, when the library calls it: all that can fail
 * KERNEL_...  a call of the kernel by an implementation in src/system, or by a backend in src/io
 * CHILD_...   a call of the kernel by a child process, between its clone and its exec
 *
 * Calls of the test itself never fail. calls.py says how the hooks come into the library.
 */
#ifndef BLZ_TESTS_FAULTY_H
#define BLZ_TESTS_FAULTY_H

#include "faulty_calls.h"

#include <stdbool.h>

/* The names of the functions, for messages. */
extern const char *const faulty_names[NR_FAULTY];

/* One or two errors that the contract allows the function to give; 0 behind one. */
extern const int faulty_errors[NR_CONTRACT_CALLS][2];

/*
 * From now on the nth call (1: the next one) fails with that errno; `all`: those after it fail,
 * too. A function of the contract that gives a pointer gives NULL; one that gives a bool gives
 * false.
 */
void fail_call(enum faulty call, int n, bool all, int error);

/* Whether one has failed since fail_call. */
bool has_failed(enum faulty call);

/* No call fails any more. Whether one did since fail_call. */
bool stop_failing(enum faulty call);

/* How often it was called, in all. */
long nr_calls_of(enum faulty call);

/* Called before the next call of that kind, once, by the thread that makes it. */
extern void (*before_call[NR_FAULTY])(void);

/*
 * Called before each call that could fail (before it is decided whether it does), on its thread.
 * fd_of_call is the descriptor that the call is about, where it is the first argument of a function
 * of the contract. Set while no other thread makes such calls.
 */
extern void (*before_every_call)(enum faulty call);
extern _Thread_local int fd_of_call;

/*
 * The name that getdents64 gives for an entry "long", and that openat and unlinkat then take for
 * it: some file systems have names that are longer than NAME_MAX. NULL: its own.
 */
extern const char *long_name;

/* ---- For the hooks ---- */

/* The error with which this call fails, or 0. */
int error_of(enum faulty call);

/* Whether this call fails; its error is in errno then. */
bool fails(enum faulty call);

#endif
