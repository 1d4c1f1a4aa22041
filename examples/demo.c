/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tour of Blitz in five seconds. `make run` starts it; Ctrl-C ends it early.
 *
 * A runtime with a worker on each CPU does make-believe work, while the main thread prints what
 * the workers count:
 *
 *   sessions   a thousand tasks, most of them waiting: each for its next request, three async
 *              functions deep, as the task dump shows
 *   trees      tasks that spawn two tasks, which spawn two tasks, and join them
 *   batches    scopes of eight tasks; when one fails, the others are cancelled
 *
 * After two and a half seconds the tasks are dumped. Then some sessions are cancelled, and clean up
 * behind a shield. Then a task hogs its worker, and the watchdog finds it.
 *
 * Blitz has no timers yet. So the main thread rings a bell some hundred times a second, and what
 * has to wait waits for the bell: an example of how an outside event is made into a future.
 */
#include <blitz.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    NR_SESSIONS = 1000,
    NR_GUESTS = 200, /* of the sessions: those that are cancelled */
    TREE_DEPTH = 12,
    BATCH_SIZE = 8,
    RINGS_PER_SEC = 500, /* at most */
    WOKEN_BY_RING = 200, /* of those who wait, the first to come */
};

static atomic_ulong nr_requests, nr_leaves, nr_batches, nr_failed, nr_cancelled, nr_goodbyes;

/* ---- the bell: tasks wait, a thread rings ---- */

/* One task's wait for the next ring: a future written by hand. */
struct ring {
    blz_future future;
    blz_waker waker;
    struct ring *next, *prev; /* NULL: not waiting */
};

static struct bell {
    pthread_mutex_t lock;
    struct ring waiting; /* a circle, oldest first; this is its head */
} bell = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .waiting = {.next = &bell.waiting, .prev = &bell.waiting}};

/* Ends a wait: gives its waker. Once the lock is released the wait belongs to its task again. */
static blz_waker ring_unlink(struct ring *ring)
{
    ring->prev->next = ring->next;
    ring->next->prev = ring->prev;
    ring->next = NULL;
    return ring->waker;
}

enum { RING_START, RING_WAITING, RING_CANCELLED };

static blz_poll ring_poll(blz_future *future, blz_cx *cx)
{
    struct ring *ring = (struct ring *)future;
    bool waiting;

    pthread_mutex_lock(&bell.lock);
    if (future->line == RING_START) {
        future->line = RING_WAITING;
        ring->waker = blz_cx_waker(cx);
        ring->prev = bell.waiting.prev;
        ring->next = &bell.waiting;
        ring->prev->next = ring->next->prev = ring;
    }
    waiting = ring->next != NULL;
    pthread_mutex_unlock(&bell.lock);
    if (waiting)
        return BLZ_PENDING;
    return blz_future_done(future, future->line == RING_CANCELLED ? -ECANCELED : 0);
}

/* The task has been cancelled: end the wait, unless the bell was faster. */
static void ring_cancel(blz_future *future, blz_cx *cx)
{
    struct ring *ring = (struct ring *)future;
    blz_waker waker = {NULL, NULL};

    (void)cx;
    pthread_mutex_lock(&bell.lock);
    if (ring->next) {
        waker = ring_unlink(ring);
        future->line = RING_CANCELLED;
    }
    pthread_mutex_unlock(&bell.lock);
    blz_waker_drop(&waker);
}

static blz_future *wait_for_ring(struct ring *ring)
{
    static const blz_future_ops ops = {.name = "ring", .poll = ring_poll, .cancel = ring_cancel};

    *ring = (struct ring){.future.ops = &ops};
    return &ring->future;
}

static void ring_bell(void)
{
    blz_waker wakers[WOKEN_BY_RING];
    int n = 0;

    pthread_mutex_lock(&bell.lock);
    while (n < WOKEN_BY_RING && bell.waiting.next != &bell.waiting)
        wakers[n++] = ring_unlink(bell.waiting.next);
    pthread_mutex_unlock(&bell.lock);
    while (n > 0)
        blz_waker_wake(&wakers[--n]); /* never under a lock */
}

/* ---- sessions: four functions deep ---- */

/* Some arithmetic, about as much as parsing a small request. */
static unsigned crunch(unsigned seed, int rounds)
{
    for (int i = 0; i < rounds; i++)
        seed = seed * 1664525u + 1013904223u;
    return seed;
}

struct query {
    BLZ_FRAME;
    unsigned key;
    int64_t rc;
    struct ring ring;
};

BLZ_ASYNC(query)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, wait_for_ring(&self->ring));
    if (self->rc == 0)
        self->rc = crunch(self->key, 200) >> 1;
    BLZ_END(self->rc);
}

struct request {
    BLZ_FRAME;
    unsigned key;
    int64_t rc;
    blz_future pause;
    struct query query;
};

BLZ_ASYNC(request)
{
    BLZ_BEGIN;
    BLZ_CALL(self->rc, self->query, query, .key = self->key);
    if (self->rc < 0)
        goto out;
    self->key = (unsigned)self->rc;
    BLZ_AWAIT(self->rc, blz_yield(&self->pause)); /* to be fair to the others */
    if (self->rc < 0)
        goto out;
    self->rc = crunch(self->key, 100) >> 1;
out:
    BLZ_END(self->rc);
}

struct session {
    BLZ_FRAME;
    unsigned key;
    int64_t rc;
    union { /* never needed at the same time */
        struct request request;
        blz_future pause;
    };
};

BLZ_ASYNC(session)
{
    BLZ_BEGIN;
    do {
        BLZ_CALL(self->rc, self->request, request, .key = self->key);
        self->key = (unsigned)self->rc;
        if (self->rc >= 0)
            atomic_fetch_add_explicit(&nr_requests, 1, memory_order_relaxed);
    } while (self->rc >= 0);
    /* Cancelled. Saying goodbye takes an await, which would be refused without a shield. */
    BLZ_AWAIT_SHIELDED(self->rc, blz_yield(&self->pause));
    if (self->rc == 0)
        atomic_fetch_add_explicit(&nr_goodbyes, 1, memory_order_relaxed);
    BLZ_END(-ECANCELED);
}

/* ---- trees: spawn and join ---- */

struct tree {
    BLZ_FRAME;
    int depth;
    blz_handle left, right;
    blz_join join;
    int64_t rc;
};

BLZ_ASYNC(tree)
{
    BLZ_BEGIN;
    if (self->depth == 0) {
        self->rc = crunch(1, 100) == 0; /* a leaf */
        atomic_fetch_add_explicit(&nr_leaves, 1, memory_order_relaxed);
        goto out;
    }
    self->rc = BLZ_SPAWN_JOIN(&self->left, tree, .depth = self->depth - 1);
    if (self->rc == 0)
        self->rc = BLZ_SPAWN_JOIN(&self->right, tree, .depth = self->depth - 1);
    if (self->rc == 0)
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->right));
    if (self->rc == 0)
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->left));
    if (self->rc < 0) { /* could not spawn, or cancelled: the children need not go on either */
        blz_handle_cancel(&self->left);
        blz_handle_cancel(&self->right);
    }
    blz_handle_detach(&self->left); /* does nothing if it has been joined */
    blz_handle_detach(&self->right);
out:
    BLZ_END(self->rc);
}

struct forest {
    BLZ_FRAME;
    blz_handle tree;
    blz_join join;
    struct ring ring;
    int64_t rc;
};

BLZ_ASYNC(forest)
{
    BLZ_BEGIN;
    do {
        BLZ_AWAIT(self->rc, wait_for_ring(&self->ring));
        if (self->rc == 0)
            self->rc = BLZ_SPAWN_JOIN(&self->tree, tree, .depth = TREE_DEPTH);
        if (self->rc == 0)
            BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->tree));
    } while (self->rc == 0);
    blz_handle_cancel(&self->tree);
    blz_handle_detach(&self->tree);
    BLZ_END(self->rc);
}

/* ---- batches: scopes that fail fast ---- */

struct job {
    BLZ_FRAME;
    unsigned number;
    int64_t rc;
    struct ring ring;
};

BLZ_ASYNC(job)
{
    BLZ_BEGIN;
    if (self->number % 32 == 31) {
        self->rc = -EIO; /* bad luck */
        goto out;
    }
    BLZ_AWAIT(self->rc, wait_for_ring(&self->ring));
    if (self->rc == -ECANCELED)
        atomic_fetch_add_explicit(&nr_cancelled, 1, memory_order_relaxed);
out:
    BLZ_END(self->rc);
}

struct batches {
    BLZ_FRAME;
    unsigned number;
    int64_t rc;
    blz_scope scope;
    blz_scope_wait wait;
};

BLZ_ASYNC(batches)
{
    BLZ_BEGIN;
    while (!blz_cancelled(cx)) {
        blz_scope_init(&self->scope, BLZ_SCOPE_FAIL_FAST);
        for (int i = 0; i < BATCH_SIZE; i++) {
            self->rc = BLZ_SCOPE_SPAWN(&self->scope, job, .number = self->number++);
            if (self->rc < 0)
                break;
        }
        BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
        atomic_fetch_add_explicit(&nr_batches, 1, memory_order_relaxed);
        if (self->rc == -EIO)
            atomic_fetch_add_explicit(&nr_failed, 1, memory_order_relaxed);
    }
    BLZ_END(-ECANCELED);
}

/* ---- a task that does what no task should ---- */

struct hog {
    BLZ_FRAME;
    char unused;
};

BLZ_ASYNC(hog)
{
    BLZ_BEGIN;
    nanosleep(&(struct timespec){.tv_nsec = 80 * 1000 * 1000}, NULL); /* blocks its worker */
    BLZ_END(0);
}

/* Called by the watchdog's thread. */
static void report_stuck(void *arg, const blz_stuck *stuck)
{
    (void)arg;
    printf("           watchdog: task %llu, \"%s\", has been blocking worker %u for %.0f ms\n",
           (unsigned long long)stuck->task_id, stuck->task, stuck->worker,
           (double)stuck->for_ns / 1e6);
}

/* ---- what the main thread prints ---- */

/* 1234 -> "1,234", 1234567 -> "1.23 M" */
static const char *count(char *out, double n)
{
    if (n < 1000)
        snprintf(out, 16, "%.0f", n);
    else if (n < 100000)
        snprintf(out, 16, "%.0f,%03.0f", (double)(long)(n / 1000), (double)((long)n % 1000));
    else if (n < 1e6)
        snprintf(out, 16, "%.0f K", n / 1e3);
    else
        snprintf(out, 16, "%.2f M", n / 1e6);
    return out;
}

static const char *duration(char *out, double ns)
{
    if (ns < 1e3)
        snprintf(out, 16, "%.0f ns", ns);
    else if (ns < 1e6)
        snprintf(out, 16, "%.1f us", ns / 1e3);
    else
        snprintf(out, 16, "%.1f ms", ns / 1e6);
    return out;
}

/* The waits that happened since `before`, which is brought up to date. */
static double p99_wait(blz_rt *rt, blz_histogram *before)
{
    blz_histogram now, since;

    blz_rt_histogram(rt, BLZ_HISTOGRAM_LATENCY, &now);
    since.count = now.count - before->count;
    for (int i = 0; i < BLZ_HISTOGRAM_BUCKETS; i++)
        since.buckets[i] = now.buckets[i] - before->buckets[i];
    *before = now;
    return (double)blz_histogram_quantile(&since, 0.99);
}

static const char *rate(char *out, uint64_t n, double span)
{
    return count(out, (double)n / span);
}

static void print_header(void)
{
    printf("\n           tasks   polls/s  spawns/s  steals/s   parks/s  mean poll  p99 wait\n");
}

static void print_line(blz_rt *rt, double at)
{
    static blz_stats before;
    static blz_histogram waits_before;
    static double at_before;
    double span = at - at_before;
    char text[7][16];
    blz_stats now;

    blz_rt_stats(rt, &now);
    printf("  %3.1f s  %7s  %8s  %8s  %8s  %8s  %9s  %8s\n", at,
           count(text[0], (double)now.live_tasks),
           rate(text[1], now.total.polls - before.total.polls, span),
           rate(text[2], now.total.spawned - before.total.spawned, span),
           rate(text[3], now.total.steals - before.total.steals, span),
           rate(text[4], now.total.parks - before.total.parks, span),
           duration(text[5], (double)now.total.mean_poll_ns),
           duration(text[6], p99_wait(rt, &waits_before)));
    fflush(stdout);
    before = now;
    at_before = at;
}

/* Of a thousand similar lines, one for each kind of task. */
struct dump {
    char seen[16][32];
    int nr_seen, nr_others;
};

static void print_task(void *arg, const char *line)
{
    struct dump *dump = arg;
    const char *name = strchr(line, '"'), *backtrace = strstr(line, ": ");
    size_t len;

    if (!name || !backtrace || dump->nr_seen == 16) { /* without a backtrace: it runs just now */
        dump->nr_others++;
        return;
    }
    len = strcspn(++name, "\"");
    for (int i = 0; i < dump->nr_seen; i++) {
        if (strlen(dump->seen[i]) == len && strncmp(dump->seen[i], name, len) == 0) {
            dump->nr_others++;
            return;
        }
    }
    snprintf(dump->seen[dump->nr_seen++], 32, "%.*s", (int)len, name);
    printf("  %.*s\n      %s\n", (int)(backtrace - line), line, backtrace + 2);
}

static void dump_tasks(blz_rt *rt)
{
    struct dump dump = {.nr_seen = 0};

    printf(
        "\n  What the tasks are waiting for: name, state, history; then its async backtrace.\n\n");
    blz_task_dump(rt, print_task, &dump);
    printf("  and %d others like these\n", dump.nr_others);
    print_header();
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- what the main thread does ---- */

static blz_handle guests[NR_GUESTS];
static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

static int spawn_all(blz_rt *rt)
{
    int rc = 0;

    for (unsigned i = 0; rc == 0 && i < NR_GUESTS; i++)
        rc = BLZ_SPAWN_WITH((&(blz_spawn_args){.rt = rt, .handle = &guests[i], .name = "guest"}),
                            session, .key = i);
    for (unsigned i = NR_GUESTS; rc == 0 && i < NR_SESSIONS; i++)
        rc = BLZ_SPAWN_ON(rt, NULL, session, .key = i);
    if (rc == 0)
        rc = BLZ_SPAWN_ON(rt, NULL, forest);
    if (rc == 0)
        rc = BLZ_SPAWN_ON(rt, NULL, batches);
    return rc;
}

/* Asks all guests to go, and waits until the last one has cleaned up and gone. */
static void cancel_guests(void)
{
    double start = seconds();
    int nr_ended = 0;
    char text[16];

    for (int i = 0; i < NR_GUESTS; i++)
        blz_handle_cancel(&guests[i]);
    for (int i = 0; i < NR_GUESTS; i++)
        nr_ended += blz_handle_wait(&guests[i]) == 0 && guests[i].result == -ECANCELED;
    printf("           %d sessions cancelled, %lu said goodbye, gone after %s\n", nr_ended,
           atomic_load(&nr_goodbyes), duration(text, (seconds() - start) * 1e9));
}

/* What happens when, besides the statistics. */
static void stage(blz_rt *rt, int act)
{
    if (act == 0)
        dump_tasks(rt);
    else if (act == 1)
        cancel_guests();
    else if (BLZ_SPAWN_ON(rt, NULL, hog) == 0)
        printf("           a task sleeps without telling anybody\n");
}

/* Rings the bell, prints a line each second, and gives the show. */
static void conduct(blz_rt *rt, int nr_seconds)
{
    const double acts[] = {2.5, 3.5, 4.5, 1e9};
    double start = seconds(), at;
    int lines = 0, act = 0;

    while (lines < nr_seconds && !interrupted) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000000 / RINGS_PER_SEC}, NULL);
        at = seconds() - start;
        if (at >= lines + 1) {
            print_line(rt, at);
            lines++;
        }
        if (at >= acts[act])
            stage(rt, act++);
        ring_bell();
    }
}

static void summarise(blz_rt *rt)
{
    char text[6][16];
    blz_stats s;

    blz_rt_stats(rt, &s);
    printf("\n  %s requests; %s leaves of trees, %s joins ran in place\n",
           count(text[0], (double)nr_requests), count(text[1], (double)nr_leaves),
           count(text[2], (double)s.total.inline_joins));
    printf("  %s batches, of which %s failed: %s jobs cancelled\n",
           count(text[3], (double)nr_batches), count(text[4], (double)nr_failed),
           count(text[5], (double)nr_cancelled));
}

static int run(blz_rt *rt)
{
    int rc = spawn_all(rt);

    if (rc == 0) {
        print_header();
        conduct(rt, 5);
        summarise(rt);
    }
    for (int i = 0; i < NR_GUESTS; i++)
        blz_handle_detach(&guests[i]);
    return rc;
}

/* Cancels every task, and waits until all have cleaned up. */
static int shut_down(blz_rt *rt)
{
    double start = seconds();
    int rc = blz_rt_free(rt);
    char text[16];

    printf("  shut down in %s\n", duration(text, (seconds() - start) * 1e9));
    return rc;
}

int main(void)
{
    blz_rt *rt;
    int rc = blz_rt_new(&rt, &(blz_options){.on_stuck = report_stuck}), freed;

    if (rc == 0) {
        sigaction(SIGINT, &(struct sigaction){.sa_handler = on_interrupt}, NULL);
        printf("Blitz %s with %u workers. This takes five seconds; Ctrl-C ends it sooner.\n",
               blz_version(), blz_rt_workers(rt));
        rc = run(rt);
        freed = shut_down(rt);
        rc = rc < 0 ? rc : freed;
    }
    if (rc < 0)
        fprintf(stderr, "demo: %s\n", blz_strerror(rc));
    return rc < 0;
}
