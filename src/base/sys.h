/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library asks of the operating system, apart from I/O. One sys_*.c a system implements
 * it; the model explorer implements it too (threads become fibres, futexes become choices), so
 * nothing above this header may call the system directly.
 */
#ifndef BLZ_BASE_SYS_H
#define BLZ_BASE_SYS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Whether an errno may mean that the system does not have a call, or that a system call filter
 * refuses it. The caller then does it by an older call, which gives the real error if there is one.
 */
static inline bool sys_is_refused(int error)
{
    return error == ENOSYS || error == EPERM || error == EACCES;
}

/*
 * Sleeps while *word == expected, without a time limit. May return early for no reason; the caller
 * looks at the word again. The sleep is atomic with the comparison.
 */
void blz__futex_wait(uint32_t *word, uint32_t expected);

/* As above, but returns false once the monotonic clock has reached deadline_ns. */
bool blz__futex_wait_until(uint32_t *word, uint32_t expected, int64_t deadline_ns);

/* Wakes up to `count` threads that sleep on the word. The word's memory may be gone already. */
void blz__futex_wake(uint32_t *word, int count);

typedef struct blz__thread {
    uint64_t handle; /* pthread_t, or the fibre's number */
} blz__thread;

/*
 * Starts a thread with all signals blocked. `name` may be NULL; stack_size 0 is the system's
 * default. 0 or a negative errno.
 */
int blz__thread_start(blz__thread *thread, void (*fn)(void *), void *arg, size_t stack_size,
                      const char *name);
void blz__thread_join(blz__thread thread);
void blz__thread_yield(void);

/* The calling thread, which blz__thread_start has started, for another one to join. */
blz__thread blz__thread_self(void);

/* The lowest address of the calling thread's stack, and its size; 0 and 0 if nobody knows. */
void blz__thread_stack(uintptr_t *low, uintptr_t *size);

/* The name of the calling thread, or "". */
void blz__thread_name(char *out, size_t size);

/*
 * Moves the calling thread to one of the CPUs that it may use, another one for each of so many
 * numbers as there are, and lets it use all of them again. Systems wake a thread where it ran last:
 * threads that begin on the same CPU may wait for each other while another one is idle. CPUs that
 * the process is given later count, too. A wish.
 */
void blz__thread_spread(unsigned number);

/* A number for the calling thread, not 0, unlike that of any other live thread. */
uint64_t blz__thread_id(void);

/*
 * Asymmetric fences: blz__fence_light in one thread and blz__fence_heavy in another order the two
 * like a pair of seq_cst fences, but the light one costs nothing where the system can interrupt
 * the other threads for us (membarrier). Where it cannot, blz__fence_asymmetric_init returns false
 * and the light one must be a real fence: callers keep the answer and pass it in. A heavy fence
 * that fails although the answer was true is a panic: a system call filter was installed later.
 */
bool blz__fence_asymmetric_init(void);
void blz__fence_heavy(void);

/* Pages, aligned to their own power-of-two size. NULL: no memory. */
void *blz__pages_map(size_t size);

/* These pages are about to be written: saves a fault for each. A wish. */
void blz__pages_prefault(void *pages, size_t size);
void blz__pages_unmap(void *pages, size_t size);

/* Memory of any origin that will all be used: huge pages where the system has them. A wish. */
void blz__pages_want_huge(void *memory, size_t size);

/* CPUs that this process may use: affinity and cgroup quota, rounded up; at least 1. */
unsigned blz__cpu_count(void);

/*
 * The CPUs that control groups allow, rounded up; 0: all. The lists of this process's groups, and
 * where their trees are. Linux only.
 */
unsigned blz__cgroup_cpus(const char *groups, const char *root);

/* Monotonic, in nanoseconds. */
int64_t blz__clock_ns(void);

/*
 * A word that reads 0 in a forked child, and the means to make one. NULL: no memory. Where the
 * system cannot clear memory in a child, that holds for children of fork(), but not of a bare
 * clone.
 */
uint32_t *blz__fork_word_new(void);
void blz__fork_word_free(uint32_t *word);

/*
 * A variable of the environment, or NULL. Always NULL in a program that has more privileges than
 * its caller (setuid, setgid, file capabilities): there the caller chooses the environment, but
 * must not choose what the program does. The library reads the environment only by this function.
 */
const char *blz__environment(const char *name);

/* 64 bits that differ from call to call. */
uint64_t blz__random_seed(void);

#endif
