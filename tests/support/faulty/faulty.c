/* SPDX-License-Identifier: Apache-2.0 */
/* Which calls fail, and when: faulty.h. The hooks are in kernel.c and in what calls.py writes. */
#include "faulty.h"

#include <errno.h>
#include <stddef.h>

static struct {
    int left; /* calls until one fails; 0: none will. Atomic */
    bool all, failed;
    int error;
    long calls; /* atomic */
} faults[NR_FAULTY];

void (*before_call[NR_FAULTY])(void);
void (*before_every_call)(enum faulty call);
_Thread_local int fd_of_call;

void fail_call(enum faulty call, int n, bool all, int error)
{
    faults[call].all = all;
    faults[call].error = error;
    faults[call].failed = false;
    __atomic_store_n(&faults[call].left, n, __ATOMIC_RELEASE);
}

bool has_failed(enum faulty call)
{
    return __atomic_load_n(&faults[call].failed, __ATOMIC_ACQUIRE);
}

bool stop_failing(enum faulty call)
{
    __atomic_store_n(&faults[call].left, 0, __ATOMIC_RELEASE);
    return has_failed(call);
}

long nr_calls_of(enum faulty call)
{
    return __atomic_load_n(&faults[call].calls, __ATOMIC_RELAXED);
}

int error_of(enum faulty call)
{
    void (*before)(void) = __atomic_exchange_n(&before_call[call], NULL, __ATOMIC_ACQ_REL);
    int left, next;

    __atomic_fetch_add(&faults[call].calls, 1, __ATOMIC_RELAXED);
    if (before_every_call)
        before_every_call(call);
    if (before)
        before();
    left = __atomic_load_n(&faults[call].left, __ATOMIC_ACQUIRE);
    do {
        if (left == 0)
            return 0;
        next = left > 1 ? left - 1 : faults[call].all ? 1 : 0;
    } while (!__atomic_compare_exchange_n(&faults[call].left, &left, next, true, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    if (left > 1)
        return 0;
    __atomic_store_n(&faults[call].failed, true, __ATOMIC_RELEASE);
    return faults[call].error;
}

bool fails(enum faulty call)
{
    int error = error_of(call);

    if (error)
        errno = error;
    return error != 0;
}
