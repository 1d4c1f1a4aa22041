/* SPDX-License-Identifier: Apache-2.0 */
/* Futexes by futex(2). */
#include "system/futex.h"

#include "base/sanitize.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

bool blz__futex_wait_until(uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
    int64_t ns = deadline_ns > 0 ? deadline_ns : 0;
    struct timespec at = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    long rc = syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected, &at, NULL,
                      FUTEX_BITSET_MATCH_ANY);
    bool timed_out = rc < 0 && errno == ETIMEDOUT;

#ifdef BLZ_TSAN
    if (rc < 0 && errno == EINTR)
        usleep(0); /* see below */
#endif
    return !timed_out;
}

/*
 * ThreadSanitizer puts off a signal's handler until its thread makes a call that it knows of; a
 * futex is none, so a thread could sleep through it for ever. With a deadline, however far, a
 * signal ends the wait, and is not followed by another one inside the kernel.
 */
void blz__futex_wait(uint32_t *word, uint32_t expected)
{
#ifdef BLZ_TSAN
    blz__futex_wait_until(word, expected, INT64_MAX);
#else
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
#endif
}

void blz__futex_wake(uint32_t *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}
