/* SPDX-License-Identifier: Apache-2.0 */
/* The wrappers of faulty.h. */
#include "faulty.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static struct {
    int left; /* calls until one fails; 0: none will. Atomic */
    bool all, failed;
    int error;
} faults[NR_FAULTY];

void (*before_call[NR_FAULTY])(void);

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

void (*before_every_call)(enum faulty call);
_Thread_local int fd_of_call;

int error_of(enum faulty call)
{
    void (*before)(void) = __atomic_exchange_n(&before_call[call], NULL, __ATOMIC_ACQ_REL);
    int left, next;

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

/* ---- what the linker looks for ---- */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg)
{
    int error = error_of(FAULTY_PTHREAD_CREATE);
    return error ? error : __real_pthread_create(thread, attr, fn, arg);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
    return fails(FAULTY_CALLOC) ? NULL : __real_calloc(count, size);
}

void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
    return fails(FAULTY_MMAP) ? MAP_FAILED : __real_mmap(addr, len, prot, flags, fd, offset);
}

int __real_madvise(void *addr, size_t len, int advice);
int __wrap_madvise(void *addr, size_t len, int advice);

int __wrap_madvise(void *addr, size_t len, int advice)
{
    return fails(FAULTY_MADVISE) ? -1 : __real_madvise(addr, len, advice);
}

int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags);

int __wrap_eventfd(unsigned count, int flags)
{
    return fails(FAULTY_EVENTFD) ? -1 : __real_eventfd(count, flags);
}

int __real_sigaction(int signal, const struct sigaction *action, struct sigaction *old);
int __wrap_sigaction(int signal, const struct sigaction *action, struct sigaction *old);

void (*before_sigaction)(void);

int __wrap_sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
    void (*before)(void) = before_sigaction;

    before_sigaction = NULL;
    if (before)
        before();
    return fails(FAULTY_SIGACTION) ? -1 : __real_sigaction(signal, action, old);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

/*
 * As the real one does: takes six, however many there are. The sixth is on the caller's stack. And
 * one of the calls, exec, never returns.
 */
__attribute__((no_sanitize("address"))) long __wrap_syscall(long number, ...)
{
    long args[6];
    va_list list;

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        args[i] = va_arg(list, long);
    va_end(list);
    if (syscall_fails(number) || (number == SYS_membarrier && fails(FAULTY_MEMBARRIER)))
        return -1;
    return __real_syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}
