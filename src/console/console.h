/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of src/console share.
 *
 *   console.c    its life, and the runtimes that it shows
 *   listen.c     where it listens
 *   server.c     connections
 *   request.c    what they ask
 *   answer.c     what they get
 *   snapshot.c   all tasks of a runtime at about the same time
 *   tasks.c      ... sorted and filtered, as JSON
 *   resources.c  ... by what they wait for, as JSON
 *   warnings.c   what is wrong, as JSON
 *   overview.c   workers, pools, histograms, as JSON
 *   metrics.c    the same for Prometheus
 *   page.c       the page's files
 *
 * All of it but starting and ending runs on the one worker of the console's own runtime: what is
 * the console's needs no locks. What is the program's may go at any time: see target_enter.
 */
#ifndef BLZ_CONSOLE_CONSOLE_H
#define BLZ_CONSOLE_CONSOLE_H

#include "base/lock.h"
#include "console/request.h"
#include "console/snapshot.h"
#include "console/text.h"
#include "sched/sched.h"
#include "system/socket.h"

#include <blitz/async.h>
#include <blitz/console.h>
#include <blitz/mutex.h>
#include <blitz/tcp.h>
#include <blitz/unix.h>

enum { TITLE_SIZE = 64, MAX_CONNECTIONS = 64, MAX_SUSPICIONS = 16 };

/* A circle of tasks that wait for each other; see warnings.c. */
struct suspicion {
    uint64_t hash;
    uint64_t snapshot; /* in which it was seen first */
};

/* A runtime that is shown. */
struct target {
    blz__rt_end_hook end_hook;
    blz_console *console;
    blz_rt *rt;     /* NULL: it has ended; under the console's lock */
    uint32_t users; /* who look at it right now; the same; futex */
    uint32_t ended; /* futex and flag: the console is told, and touched no more */
    /* For who is in, or has made sure that nobody is and will be. Not in the frame of who walks: if
     * the runtime ends, the walk is ended by another thread. */
    observe_walk walk;
    bool walking;
    struct snapshot snapshot;
    struct suspicion suspicions[MAX_SUSPICIONS];
    uint32_t nr_suspicions;
};

struct blz_console {
    blz_allocator allocator;
    blz_rt *rt; /* its own */
    blz_addr addr;
    bool is_unix, owns_path;
    struct blz__socket_file socket_file; /* that owns_path is about */
    bool until_rt_ends;
    blz_tcp_listener tcp;
    blz_unix_listener unix_;
    char title[TITLE_SIZE];
    blz__lock lock;
    struct target targets[BLZ_CONSOLE_MAX + 1];
    uint32_t nr_targets;
    blz_pool *pools[BLZ_CONSOLE_MAX];
    uint32_t nr_pools;
    uint32_t nr_connections;
    uint64_t nr_requests;
    blz_mutex snapshot_mutex; /* one is made at a time */
};

/* ---- console.c ---- */

/*
 * The runtime, which stays until target_leave; or NULL. Not over an await: its end waits for us.
 * [console's worker]
 */
blz_rt *blz__target_enter(struct target *target);
void blz__target_leave(struct target *target);

/* ---- listen.c ---- */

/* Listens at `console->addr`, which is then the one that it has become. 0 or a negative errno. */
int blz__console_listen(blz_console *console);

/* Closes the listener, and removes its file. */
void blz__console_unlisten(blz_console *console);

/* 0; -EINVAL: not an address, or one that others than this machine could reach. */
int blz__console_address(blz_addr *addr, const char *text);

/* ---- server.c ---- */

struct blz__console_serve {
    BLZ_FRAME;
    blz_console *console;
    blz_tcp tcp;
    blz_unix unix_;
    blz_io io;
    int64_t rc;
};
BLZ_DECLARE_EXTERN(blz__console_serve);

/* ---- answer.c ---- */

/* Makes the body of an answer: a status, and what is in it. Never fails. */
struct blz__console_answer {
    BLZ_FRAME;
    blz_console *console;
    struct request request;
    struct text *body;
    const char **type;
    uint32_t target, tries;
    int64_t rc;
    blz_mutex_op lock;
    struct blz__snapshot_take take;
};
BLZ_DECLARE_EXTERN(blz__console_answer);

/* ---- the bodies ---- */

void blz__console_overview(blz_console *console, struct text *out);
void blz__console_metrics(blz_console *console, struct text *out);
void blz__console_tasks(const struct snapshot *snapshot, const char *query, struct text *out);
void blz__console_resources(const struct snapshot *snapshot, const char *query, struct text *out);

/* True: with another snapshot it would know more. */
bool blz__console_warnings(struct target *target, struct text *out);

/* A file of the page; NULL: there is none. */
const char *blz__page_find(const char *path, size_t *len, const char **type);

#endif
