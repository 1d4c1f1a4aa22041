/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces: what every thread did and when, as a picture. Polls, wake-ups as arrows from their cause
 * to the poll that answered, spawns, steals, sleeps, timers, completed I/O, blocking jobs and the
 * jobs of fork-join pools; and what the program marks itself.
 *
 *     blz_trace_start(&(blz_trace_options){.path = "server.json"});
 *     ...
 *     uint64_t span = blz_trace_begin("handle request");      // across awaits, too
 *     blz_trace_mark("cache miss");
 *     blz_trace_end(span);
 *     ...
 *     blz_trace_stop(NULL);
 *
 * The file opens in https://ui.perfetto.dev and in chrome://tracing. Without a change to a program,
 * BLZ_TRACE=FILE in the environment traces it from its first runtime to its exit; %p in the name is
 * the number of the process. BLZ_TRACE=FILE,limit=200M,sample=16 sets the two options of that name:
 * a trace grows by megabytes a second, so it ends at a size, and it may record one task in many. A
 * program that has more privileges than its caller ignores BLZ_TRACE.
 *
 * There is one trace at a time in a process, of all its runtimes and pools. While it is off it
 * costs a look at a word that nobody writes. While it is on each thread records into a ring of its
 * own, and a thread of the trace's writes them out as it goes. A ring that is full drops events,
 * never blocks: how many is counted, and shown in the trace where it happened.
 */
#ifndef BLITZ_TRACE_H
#define BLITZ_TRACE_H

#include <blitz/base.h>

BLZ_BEGIN_DECLS

/* What to trace into. All zero but for one of `path` and `write` means the default. */
typedef struct blz_trace_options {
    const char *path; /* a file, which is made (for its owner alone) or truncated; no symlink */
    /* Or: called with each piece of the text, by the trace's thread. 0, or a negative errno, and it
     * is not called again. It must not start or stop a trace. */
    int (*write)(const char *text, size_t len, void *arg);
    void *arg;
    size_t events;    /* in each thread's ring, of 32 bytes; default 16,384; up to 2^24 */
    unsigned threads; /* that can be recorded; default 64, up to 256 */
    /* One task in this many is recorded, with all of its polls, spawns and wake-ups; default 1: all
     * tasks. With more than 1, nothing is recorded that belongs to no task (sleeps, steals, jobs,
     * timers, completed I/O), except the marks and spans of the program. */
    unsigned sample;
    const blz_allocator *allocator; /* default: the system's */
    /* About so many bytes of text: then the trace says so, closes what is open, and records nothing
     * more until it is stopped. Default 64 MiB; BLZ_TRACE_UNLIMITED. */
    uint64_t limit;
    uint64_t reserved[4];
} blz_trace_options;

/* A trace that ends only when it is stopped. */
#define BLZ_TRACE_UNLIMITED UINT64_MAX

/* What has become of a trace. */
typedef struct blz_trace_summary {
    uint64_t events;  /* written */
    uint64_t dropped; /* because a ring was full, or there was none for the thread */
    uint64_t arrows;  /* from a wake-up to the poll that answered it */
    uint64_t bytes;   /* of text */
    uint64_t threads; /* recorded */
    uint64_t limited; /* 1: it ended early, at options.limit */
    uint64_t reserved[2];
} blz_trace_summary;

/*
 * Begins to trace. 0; -EBUSY: there is a trace already; -EINVAL: not one of `path` and `write`, too
 * large a number, or `path` is a FIFO or a socket; -ELOOP: `path` is a symbolic link; -ENOMEM; or
 * what the system said to opening the file or starting the thread. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_trace_start(const blz_trace_options *options);

/*
 * Ends the trace, and waits until all of it is written. `out` may be NULL. 0; -ENXIO: there is
 * none, or another thread is ending it; -EOWNERDEAD: in a forked child, where it is off from now
 * on; or the first error of writing. Blocks for as long as writing takes. [any thread but the
 * trace's]
 */
BLZ_API int blz_trace_stop(blz_trace_summary *out);

/*
 * Whether a trace is being recorded, for marks that cost something to prepare. False from the
 * moment that a trace has reached its limit. [any thread]
 */
BLZ_API bool blz_trace_is_on(void);

/* A moment on this thread. The name is copied; what is longer than 96 bytes is cut. [any thread] */
BLZ_API void blz_trace_mark(const char *name);

/*
 * A span of time, which may begin in one thread and end in another, and go across awaits. `begin`
 * gives the number that `end` wants; 0 if nothing is recorded, which `end` ignores. [any thread]
 */
BLZ_API uint64_t blz_trace_begin(const char *name);
BLZ_API void blz_trace_end(uint64_t span);

BLZ_END_DECLS
#endif
