/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The harness of the benchmarks. A benchmark is a function that does its set-up, calls bench_start
 * and bench_stop around the measured part, and is repeated; each repetition prints one line:
 *
 *     bench=NAME peer=blitz threads=T n=N rep=R ns_per_op=X cpu_ns=Y other=O
 *
 * The runtime is created, and its workers started, before the first repetition.
 */
#ifndef BENCH_H
#define BENCH_H

#include <blitz.h>

#include <stdint.h>

struct run {
    blz_rt *rt;
    unsigned threads;
    uint64_t n; /* operations */
    uint64_t wall_ns, cpu_ns;
    char extra[64]; /* more key=value pairs for the line */
    uint64_t wall_start, cpu_start;
};

struct bench {
    const char *name;
    uint64_t n;
    void (*fn)(struct run *run);
    bool once; /* needs a fresh process: one repetition */
};

void bench_start(struct run *run);
void bench_stop(struct run *run);

/* Ends the program if a call of the library failed. */
void bench_check(int64_t rc, const char *what);

/* Resident memory of the process, in bytes. */
uint64_t bench_rss(void);

extern const struct bench spawn_benches[];
extern const struct bench yield_benches[];
extern const struct bench memory_benches[];
extern const struct bench time_benches[];
extern const struct bench blocking_benches[];
extern const struct bench oneshot_benches[];
extern const struct bench broadcast_benches[];
extern const struct bench notify_benches[];
extern const struct bench sync_benches[];
extern const struct bench channel_benches[];
extern const struct bench process_benches[];
extern const struct bench file_benches[];
extern const struct bench lines_benches[];
extern const struct bench wait_benches[];
extern const struct bench par_benches[];
extern const struct bench par_pool_benches[];
extern const struct bench par_tree_benches[];
extern const struct bench par_scan_benches[];
extern const struct bench par_group_benches[];
extern const struct bench par_for_benches[];
extern const struct bench par_sort_benches[];

/* Of bench/internal: not in the program that uses the library as installed. */
extern const struct bench wake_benches[];

#endif
