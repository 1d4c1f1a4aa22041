/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel with one socket, for models of readiness (src/io/ready.c). It reports edges as epoll
 * does: something that arrives marks the socket at the driver that it is registered with, once
 * however much arrives; the worker of that driver fetches the mark when it looks, and is told what
 * is true at that moment, or nothing if all has been taken meanwhile.
 *
 * Or it is one-shot (fake_kernel_one_shot): a registration, and each rearm, is worth one mark,
 * which is fetched as an edge also if all has been taken meanwhile.
 *
 *     blz_rt *rt = small_rt_new(2, &fake_ready_driver);
 *     fake_kernel_reset();
 *     ...
 *     fake_kernel_arrive(1, true);             // any fibre: one byte and the end of the stream
 *     fake_kernel_look(&rt->workers[0]);       // worker 0 fetches what there is, and reports it
 *
 * It stands in for src/io/try_now.c: IO_READ takes what is there, IO_WRITE the room that there is,
 * IO_POLL looks. Its whole state
 * is one word that is changed in one step and without any order, so that code that relies on the
 * kernel for its synchronisation is found out.
 */
#ifndef BLZ_MODEL_FAKE_KERNEL_H
#define BLZ_MODEL_FAKE_KERNEL_H

#include "io/ready.h"
#include "sched/rt.h"

extern const blz__driver_ops fake_ready_driver;

void fake_kernel_reset(void);

/* Bytes for us, and perhaps the end of the stream, which comes with the bytes or without any. */
void fake_kernel_arrive(unsigned bytes, bool ended);

/* Room for one write. */
void fake_kernel_make_room(void);

/* Before the runtime is made. */
extern bool fake_kernel_one_shot;

/* What happens during the next system call, once; or NULL. */
extern void (*fake_kernel_meanwhile)(struct io *io);

/* What is there: bytes, and 1000 for the end. */
unsigned fake_kernel_level(void);

/* A mark that has been fetched and not been reported yet. */
struct fake_edge {
    uint64_t token;
    unsigned what; /* 0: there was none */
};

/* The two halves of a look at the driver: [its worker] */
struct fake_edge fake_kernel_fetch(blz_worker *w);
void fake_kernel_report(blz_worker *w, struct fake_edge edge);

/* Both, until there is nothing more. False: there was nothing. [its worker] */
bool fake_kernel_look(blz_worker *w);

/* How often the descriptor has been closed. */
unsigned fake_kernel_closed(int fd);

#endif
