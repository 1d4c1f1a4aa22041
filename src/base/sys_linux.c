/* SPDX-License-Identifier: Apache-2.0 */
/* The system contract (sys.h) on Linux: futex, pthreads, membarrier, mmap, cgroups. */
#include "base/sys.h"

#include "base/panic.h"
#include "base/sanitize.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- futex ---- */

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

/* ---- threads ---- */

struct start {
    void (*fn)(void *);
    void *arg;
    char name[16];
};

static void *thread_main(void *raw)
{
    struct start start = *(struct start *)raw;

    free(raw);
    if (start.name[0])
        pthread_setname_np(pthread_self(), start.name);
    start.fn(start.arg);
    return NULL;
}

/* Signals belong to the program's own threads: ours start with all of them blocked. */
static int create_masked(pthread_t *thread, const pthread_attr_t *attr, struct start *start)
{
    sigset_t all, old;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(thread, attr, thread_main, start);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return -rc;
}

int blz__thread_start(blz__thread *thread, void (*fn)(void *), void *arg, size_t stack_size,
                      const char *name)
{
    struct start *start = calloc(1, sizeof *start);
    pthread_attr_t attr;
    pthread_t id;
    int rc;

    if (!start)
        return -ENOMEM;
    start->fn = fn;
    start->arg = arg;
    if (name)
        snprintf(start->name, sizeof start->name, "%s", name);
    rc = -pthread_attr_init(&attr);
    if (rc < 0)
        goto out_start;
    if (stack_size) {
        rc = -pthread_attr_setstacksize(&attr, stack_size);
        if (rc < 0)
            goto out_attr;
    }
    rc = create_masked(&id, &attr, start);
    if (rc == 0) {
        memcpy(&thread->handle, &id, sizeof id);
        start = NULL; /* the thread's now */
    }
out_attr:
    pthread_attr_destroy(&attr);
out_start:
    free(start);
    return rc;
}

void blz__thread_join(blz__thread thread)
{
    pthread_t id;

    _Static_assert(sizeof id <= sizeof thread.handle, "a pthread_t fits");
    memcpy(&id, &thread.handle, sizeof id);
    pthread_join(id, NULL);
}

blz__thread blz__thread_self(void)
{
    blz__thread self = {0};
    pthread_t id = pthread_self();

    memcpy(&self.handle, &id, sizeof id);
    return self;
}

void blz__thread_yield(void)
{
    sched_yield();
}

void blz__thread_stack(uintptr_t *low, uintptr_t *size)
{
    pthread_attr_t attr;
    void *address = NULL;
    size_t length = 0;

    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        if (pthread_attr_getstack(&attr, &address, &length) != 0)
            length = 0;
        pthread_attr_destroy(&attr);
    }
    *low = length ? (uintptr_t)address : 0;
    *size = length;
}

void blz__thread_name(char *out, size_t size)
{
    if (pthread_getname_np(pthread_self(), out, size) != 0)
        out[0] = '\0';
}

uint64_t blz__thread_id(void)
{
    return (uint64_t)gettid();
}

/* ---- asymmetric fences ---- */

bool blz__fence_asymmetric_init(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

/*
 * The registration has succeeded, so only memory can run out, for a moment. Any other failure means
 * that a system call filter was installed later. Without the fence two threads would be inside of
 * one lock, so the process must not go on.
 */
void blz__fence_heavy(void)
{
    while (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) {
        if (errno != ENOMEM)
            blz__panic("membarrier worked at the start and fails now (%s): a system call filter "
                       "must allow it, or refuse it before the first runtime, channel or pool",
                       strerror(errno));
        sched_yield();
    }
}

/* ---- memory ---- */

void *blz__pages_map(size_t size)
{
    char *raw = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *aligned;

    if (raw == MAP_FAILED)
        return NULL;
    aligned = (char *)(((uintptr_t)raw + size - 1) & ~(uintptr_t)(size - 1));
    if (aligned > raw)
        munmap(raw, (size_t)(aligned - raw));
    munmap(aligned + size, (size_t)(raw + size - aligned));
    return aligned;
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

void blz__pages_prefault(void *pages, size_t size)
{
    madvise(pages, size, MADV_POPULATE_WRITE);
}

void blz__pages_unmap(void *pages, size_t size)
{
    munmap(pages, size);
}

/* The kernel takes whole pages only. What lies around them is left as it is. */
void blz__pages_want_huge(void *memory, size_t size)
{
    uintptr_t page = 4096, begin = ((uintptr_t)memory + page - 1) & ~(page - 1);
    uintptr_t end = ((uintptr_t)memory + size) & ~(page - 1);

    if (begin < end)
        madvise((char *)memory + (begin - (uintptr_t)memory), end - begin, MADV_HUGEPAGE);
}

/* ---- CPUs ---- */

unsigned blz__cpu_count(void)
{
    unsigned cpus = 1, quota = blz__cgroup_cpus("/proc/self/cgroup", "/sys/fs/cgroup");
    cpu_set_t *set;

    for (int max = 1024; max <= 1 << 20; max *= 2) { /* more CPUs than the set has: EINVAL */
        set = CPU_ALLOC((size_t)max);
        if (!set)
            break;
        size_t size = CPU_ALLOC_SIZE((size_t)max);
        int rc = sched_getaffinity(0, size, set);
        if (rc == 0)
            cpus = (unsigned)CPU_COUNT_S(size, set);
        CPU_FREE(set);
        if (rc == 0)
            break;
    }
    if (quota && quota < cpus)
        cpus = quota;
    return cpus ? cpus : 1;
}

static int cpu_of(const cpu_set_t *set, unsigned number)
{
    int cpu = 0;

    for (unsigned left = number % (unsigned)CPU_COUNT(set);; cpu++)
        if (CPU_ISSET(cpu, set) && left-- == 0)
            return cpu;
}

/*
 * A mask that has been written stays for ever: the thread would not get CPUs that its container is
 * given later. So what is left behind is a mask of all CPUs there could be, of which the kernel
 * takes those that the container has. Only where the program had narrowed its own mask, so that
 * this would be more than before, the old mask is written.
 */
static void restore_affinity(const cpu_set_t *before)
{
    cpu_set_t set, after;

    memset(&set, 0xff, sizeof set);
    if (sched_setaffinity(0, sizeof set, &set) != 0 ||
        sched_getaffinity(0, sizeof after, &after) != 0 || !CPU_EQUAL(&after, before))
        sched_setaffinity(0, sizeof *before, before);
}

void blz__thread_spread(unsigned number)
{
    cpu_set_t all, one;

    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2)
        return; /* more CPUs than the set has, or only one */
    CPU_ZERO(&one);
    CPU_SET(cpu_of(&all, number), &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0)
        restore_affinity(&all);
}

/* ---- environment, clock, fork, randomness ---- */

const char *blz__environment(const char *name)
{
    return secure_getenv(name);
}

int64_t blz__clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/*
 * The kernel clears the word in a child (MADV_WIPEONFORK, Linux 4.14), however the child was made.
 * Some systems do not know that, others say yes and do nothing; so fork() clears it, too. What it
 * needs for that is on a second page, which stays.
 */
struct fork_word {
    uint32_t *word;
    struct fork_word *next, **link;
};

static struct {
    pthread_mutex_t mutex;
    struct fork_word *first;
    bool watched;
} forks = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void before_fork(void)
{
    pthread_mutex_lock(&forks.mutex);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&forks.mutex);
}

static void after_fork_in_child(void)
{
    for (struct fork_word *at = forks.first; at; at = at->next)
        *at->word = 0;
    pthread_mutex_unlock(&forks.mutex);
}

static void watch_fork(void)
{
    forks.watched = pthread_atfork(before_fork, after_fork, after_fork_in_child) == 0;
}

/* False: fork() cannot be watched. */
static bool list_word(struct fork_word *at)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, watch_fork);
    pthread_mutex_lock(&forks.mutex);
    if (forks.watched) {
        at->next = forks.first;
        at->link = &forks.first;
        if (at->next)
            at->next->link = &at->next;
        forks.first = at;
    }
    pthread_mutex_unlock(&forks.mutex);
    return forks.watched;
}

static struct fork_word *entry_of(uint32_t *word)
{
    return (struct fork_word *)(void *)((char *)word + page_size());
}

uint32_t *blz__fork_word_new(void)
{
    uint32_t *word =
        mmap(NULL, 2 * page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool wiped, listed;

    if (word == MAP_FAILED)
        return NULL;
    entry_of(word)->word = word;
    wiped = madvise(word, page_size(), MADV_WIPEONFORK) == 0;
    listed = list_word(entry_of(word));
    if (!wiped && !listed) {
        munmap(word, 2 * page_size());
        return NULL;
    }
    *word = 1;
    return word;
}

void blz__fork_word_free(uint32_t *word)
{
    struct fork_word *at;

    if (!word)
        return;
    at = entry_of(word);
    pthread_mutex_lock(&forks.mutex);
    if (at->link)
        *at->link = at->next;
    if (at->next)
        at->next->link = at->link;
    pthread_mutex_unlock(&forks.mutex);
    munmap(word, 2 * page_size());
}

uint64_t blz__random_seed(void)
{
    uint64_t seed;

    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        seed = (uint64_t)blz__clock_ns() ^ (uint64_t)getpid() << 32;
    return seed;
}
