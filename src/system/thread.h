/* SPDX-License-Identifier: Apache-2.0 */
/* Threads. */
#ifndef BLZ_SYSTEM_THREAD_H
#define BLZ_SYSTEM_THREAD_H

#include <stddef.h>
#include <stdint.h>

typedef struct blz__thread {
    uint64_t handle; /* a pthread_t, or the number of a model's fibre */
} blz__thread;

/*
 * Starts a thread with all signals blocked. `name` may be NULL, and may be cut after 15 bytes;
 * stack_size 0 is the system's default. 0 or a negative error; -ENOMEM, -EAGAIN: no memory, or too
 * many threads. [any thread]
 */
int blz__thread_start(blz__thread *thread, void (*fn)(void *), void *arg, size_t stack_size,
                      const char *name);

/* Waits for the end of a thread that blz__thread_start started. Once for each. [any thread] */
void blz__thread_join(blz__thread thread);

/* Instead of joining it: what the thread needs is freed when it ends. [any thread] */
void blz__thread_detach(blz__thread thread);

/* Lets other threads run first. [any thread] */
void blz__thread_yield(void);

/* The calling thread, which blz__thread_start has started, for another thread to join. */
blz__thread blz__thread_self(void);

/* The lowest address of the calling thread's stack, and its size; 0 and 0 if that is unknown. */
void blz__thread_stack(uintptr_t *low, uintptr_t *size);

/* Writes the name of the calling thread, or "". `size` is at least 16. */
void blz__thread_name(char *out, size_t size);

/* Names the calling thread. A wish: the system may cut the name after 15 bytes, or ignore it. */
void blz__thread_set_name(const char *name);

/*
 * Moves the calling thread to one of the CPUs that it may use, and lets it use all of them again.
 * Consecutive numbers choose different CPUs. Systems wake a thread where it ran last: threads that
 * begin on one CPU may wait for each other while another CPU is idle. CPUs that the process is
 * given later can be used as well. A wish.
 */
void blz__thread_spread(unsigned number);

/* A number for the calling thread, not 0, unlike that of any other live thread. */
uint64_t blz__thread_id(void);

#endif
