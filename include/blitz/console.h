/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The console: a web page, served from inside of the program, that shows what its runtimes do:
 * workers, tasks with their async backtraces, what they wait for, histograms, pools, warnings. One
 * line turns it on, for as long as the runtime lives:
 *
 *     struct serve { BLZ_FRAME; int64_t rc; };
 *
 *     BLZ_ASYNC(serve)
 *     {
 *         BLZ_BEGIN;
 *         self->rc = blz_console_start(blz_rt_current(), "127.0.0.1:6670");
 *         ...
 *         BLZ_END(self->rc);
 *     }
 *
 * Then look at http://127.0.0.1:6670/ with a browser, or at the same with blitz-top; /api/overview,
 * /api/tasks, /api/resources and /api/warnings are JSON, /metrics is for Prometheus. The guide is
 * docs/guide/console.md.
 *
 * It has a thread and a small runtime of its own, so it answers even when all workers of the
 * program are stuck, and costs nothing while nobody looks. It can be reached from this machine
 * only: loopback addresses, which other users of the machine can reach too, or a Unix socket, which
 * only this user can. It changes nothing in the program, but it shows names and backtraces.
 */
#ifndef BLITZ_CONSOLE_H
#define BLITZ_CONSOLE_H

#include <blitz/addr.h>
#include <blitz/future.h>
#include <blitz/par.h>

BLZ_BEGIN_DECLS

/* One console, which shows one runtime or several. */
typedef struct blz_console blz_console;

/* All zero means the default. Browsers open no page at some ports: 6000, 6665 to 6669, others. */
typedef struct blz_console_options {
    const char *address;    /* see blitz/addr.h; default "127.0.0.1:6670" */
    const char *title;      /* of the page; copied; default "blitz" */
    blz_rt *const *others;  /* other runtimes to show */
    blz_pool *const *pools; /* fork-join pools to show, besides the default one; these must be
                                 freed after the console */
    size_t nr_others;       /* up to BLZ_CONSOLE_MAX, as are the pools */
    size_t nr_pools;
    bool until_rt_ends;  /* it ends, and is freed, with `rt` */
    const char *backend; /* of its own runtime; default: as in blz_options */
    int64_t shutdown_ns; /* blz_console_free's patience; default 10 s, BLZ_NEVER: no limit */
    uint64_t reserved[3];
} blz_console_options;

/* So many other runtimes, and pools, at most. */
#define BLZ_CONSOLE_MAX 16

/*
 * Starts a console that shows `rt`, and the others. 0; -EINVAL: not an address, or neither a
 * loopback address nor a Unix socket, or too many runtimes or pools; -ESHUTDOWN: a runtime is
 * ending; -ENOMEM; -EADDRINUSE: something is at that address, or another console is just being
 * started there; or what the system says. At a path where nobody listens any more the old socket is
 * removed; while that goes on there is also a file PATH.lock. Only this user can connect to the
 * socket. `options` may be NULL. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_console_new(blz_console **console, blz_rt *rt,
                                          const blz_console_options *options);

/*
 * Starts a console that shows `rt` and ends with it. `address` NULL is the default address. 0, or
 * the errors of blz_console_new. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_console_start(blz_rt *rt, const char *address);

/* Where it listens: tells the port if that was 0. [any thread] */
BLZ_API void blz_console_addr(const blz_console *console, blz_addr *addr);

/*
 * Ends it: connections are closed, and the file of its Unix socket is removed. The runtimes that it
 * shows may be freed before it or after. Not for one that ends with its runtime. NULL is fine. 0;
 * -EDEADLK on a worker and -EOWNERDEAD in a forked child, where nothing happens; -ETIMEDOUT: a
 * request did not end (options.shutdown_ns), so what it uses is leaked on purpose, and the pools
 * that are shown must not be freed. [any thread but a worker]
 */
BLZ_API int blz_console_free(blz_console *console);

BLZ_END_DECLS
#endif
