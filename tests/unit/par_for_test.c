/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel loops: every index once, in one and two dimensions; errors, cancellation, nesting. */
#include "par.h"

#include <string.h>

enum { MOST = 4096 };

/* How long a leaf must be for the loop to stay with single elements. */
static void take_long(void)
{
    static const int64_t long_ns = 20000;
    struct timespec t;
    int64_t start, now;

    clock_gettime(CLOCK_MONOTONIC, &t);
    start = now = t.tv_sec * BLZ_SEC + t.tv_nsec;
    while (now - start < long_ns) {
        clock_gettime(CLOCK_MONOTONIC, &t);
        now = t.tv_sec * BLZ_SEC + t.tv_nsec;
    }
}

/* ---- each index once ---- */

struct marks {
    uint8_t seen[MOST];
    size_t n;
};

static int mark_range(blz_par *par, size_t begin, size_t end, void *arg)
{
    struct marks *m = arg;

    (void)par;
    check(begin < end && end <= m->n);
    for (size_t i = begin; i < end; i++)
        m->seen[i]++;
    return 0;
}

static void check_marks(blz_par *par, size_t n, blz_par_range_fn body,
                        const blz_par_options *options)
{
    struct marks m = {.n = n};

    check(blz_par_for(par, n, body, &m, options) == 0);
    for (size_t i = 0; i < MOST; i++)
        check(m.seen[i] == (i < n));
}

static void mark_all_sizes(blz_par *par, void *arg)
{
    (void)arg;
    for (size_t n = 0; n <= MOST; n += is_sanitized() ? 9 : 1)
        check_marks(par, n, mark_range, NULL);
}

static void every_index_is_seen_once_for_every_size(void **state)
{
    (void)state;
    in_pool_of(2, mark_all_sizes, NULL);
}

static void mark_sizes(blz_par *par, void *arg)
{
    static const size_t grains[] = {0, 1, 2, 100, MOST, SIZE_MAX};

    (void)arg;
    for (size_t n = 0; n <= MOST; n = next_size(n))
        for (size_t i = 0; i < sizeof grains / sizeof *grains; i++)
            check_marks(par, n, mark_range, &(blz_par_options){.grain = grains[i]});
}

static void every_index_is_seen_once_for_every_grain_and_pool(void **state)
{
    (void)state;
    in_pools(mark_sizes, NULL);
}

static int mark_slowly(blz_par *par, size_t begin, size_t end, void *arg)
{
    take_long();
    return mark_range(par, begin, end, arg);
}

/* Costs that are all at the beginning, all at the end, in the middle. */
static int mark_unevenly(blz_par *par, size_t begin, size_t end, void *arg)
{
    struct marks *m = arg;

    for (size_t i = begin; i < end; i++)
        if (i < 3 || i + 3 > m->n || i == m->n / 2)
            take_long();
    return mark_range(par, begin, end, arg);
}

/* However a thread waits, also for parts that take long. */
static void mark_with_each_wait(blz_par *par, void *arg)
{
    (void)arg;
    for (int w = BLZ_PAR_WAIT_DEFAULT; w <= BLZ_PAR_WAIT_BLOCK; w++) {
        blz_par_options options = {.waiting = (blz_par_wait_mode)w};
        check_marks(par, 20, mark_slowly, &options);
        check_marks(par, MOST, mark_unevenly, &options);
    }
}

static void a_loop_waits_in_each_way(void **state)
{
    (void)state;
    in_pools(mark_with_each_wait, NULL);
}

static void mark_costly_bodies(blz_par *par, void *arg)
{
    (void)arg;
    for (size_t n = 0; n <= 30; n++)
        check_marks(par, n, mark_slowly, NULL);
    for (size_t n = 1; n <= MOST; n = n * 3)
        check_marks(par, n, mark_unevenly, NULL);
}

static void every_index_is_seen_once_however_long_it_takes(void **state)
{
    (void)state;
    in_pools(mark_costly_bodies, NULL);
}

static int check_grain(blz_par *par, size_t begin, size_t end, void *arg)
{
    (void)par;
    check(end - begin >= *(size_t *)arg);
    if (*(size_t *)arg % 2)
        take_long();
    return 0;
}

static void check_grains(blz_par *par, void *arg)
{
    (void)arg;
    for (size_t grain = 1; grain <= 50; grain += 7)
        check(blz_par_for(par, 100, check_grain, &grain, &(blz_par_options){.grain = grain}) == 0);
}

static void no_part_is_smaller_than_the_grain(void **state)
{
    (void)state;
    in_pools(check_grains, NULL);
}

/* ---- many threads ---- */

struct filler {
    blz_par_job job;
};

static void run_filler(blz_par *par, blz_par_job *job)
{
    (void)par, (void)job;
}

/* Makes forks, at which work is shared, until the event is there. */
static void fork_until(blz_par *par, struct event *event)
{
    struct filler filler;

    while (event_count(event) == 0) {
        blz_par_fork(par, &filler.job, run_filler);
        if (blz_par_unfork(par, &filler.job))
            continue;
    }
}

static int meet(blz_par *par, size_t begin, size_t end, void *arg)
{
    struct event *events = arg;

    check(end - begin == 1);
    event_post(&events[begin]);
    fork_until(par, &events[1 - begin]);
    return 0;
}

static void meet_in_a_loop(blz_par *par, void *arg)
{
    struct event events[2] = {EVENT_INIT, EVENT_INIT};

    (void)arg;
    check(blz_par_for(par, 2, meet, events, NULL) == 0);
}

static void two_elements_run_at_the_same_time(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++)
        in_pool_of(2, meet_in_a_loop, NULL);
}

/* ---- errors ---- */

struct failing {
    size_t first, last; /* they fail */
    int inside;
};

static int fail_somewhere(blz_par *par, size_t begin, size_t end, void *arg)
{
    struct failing *f = arg;
    int rc = 0;

    (void)par;
    __atomic_fetch_add(&f->inside, 1, __ATOMIC_RELAXED);
    for (size_t i = begin; i < end && rc == 0; i++)
        rc = i == f->first ? -EDOM : i == f->last ? -ERANGE : 0;
    __atomic_fetch_sub(&f->inside, 1, __ATOMIC_RELAXED);
    return rc;
}

static void fail_everywhere(blz_par *par, void *arg)
{
    (void)arg;
    for (size_t n = 1; n <= 500; n = next_size(n))
        for (size_t i = 0; i < n; i += 1 + n / 20) {
            struct failing one = {.first = i, .last = i}, two = {.first = i, .last = n - 1};
            int rc;

            check(blz_par_for(par, n, fail_somewhere, &one, NULL) == -EDOM);
            rc = blz_par_for(par, n, fail_somewhere, &two, NULL);
            check(rc == -EDOM || rc == -ERANGE);
            check(one.inside == 0 && two.inside == 0);
        }
}

static void an_error_of_a_body_is_returned(void **state)
{
    (void)state;
    in_pools(fail_everywhere, NULL);
}

/* ---- cancellation ---- */

struct cancelling {
    blz_par_cancel cancel;
    int calls, at, inside;
    size_t done;
};

static int cancel_at(blz_par *par, size_t begin, size_t end, void *arg)
{
    struct cancelling *c = arg;

    (void)par;
    __atomic_fetch_add(&c->done, end - begin, __ATOMIC_RELAXED);
    __atomic_fetch_add(&c->inside, 1, __ATOMIC_RELAXED);
    take_long();
    if (__atomic_add_fetch(&c->calls, 1, __ATOMIC_RELAXED) == c->at)
        blz_par_cancel_set(&c->cancel, -EINTR);
    __atomic_fetch_sub(&c->inside, 1, __ATOMIC_RELAXED);
    return 0;
}

static int cancel_tile_at(blz_par *par, const blz_par_tile *tile, void *arg)
{
    size_t rows = tile->row_end - tile->row, cols = tile->col_end - tile->col;

    return cancel_at(par, 0, rows * cols, arg);
}

/* At the first leaf, the second, and so on until the loop gets to its end. */
static void cancel_at_each_leaf(blz_par *par, void *arg)
{
    bool tiles = *(bool *)arg;
    unsigned threads = 8;

    for (int at = 1;; at++) {
        struct cancelling c = {.at = at};
        blz_par_options options = {.cancel = &c.cancel};
        int rc = tiles ? blz_par_for_2d(par, 5, 5, cancel_tile_at, &c, &options)
                       : blz_par_for(par, 25, cancel_at, &c, &options);

        check(c.inside == 0);
        check(c.calls < at + (int)threads); /* those that had begun */
        check(rc == 0 || (rc == -EINTR && c.calls >= at));
        check((rc == 0) == (c.done == 25));
        if (c.calls < at)
            break;
    }
}

static void a_loop_can_be_cancelled_at_each_split(void **state)
{
    (void)state;
    in_pools(cancel_at_each_leaf, &(bool){false});
    in_pools(cancel_at_each_leaf, &(bool){true});
}

static void begin_cancelled(blz_par *par, void *arg)
{
    struct cancelling c = {.at = -1};
    blz_par_options options = {.cancel = &c.cancel};

    (void)arg;
    blz_par_cancel_set(&c.cancel, -ECANCELED);
    blz_par_cancel_set(&c.cancel, -EINTR);
    check(blz_par_cancel_code(&c.cancel) == -ECANCELED);
    for (size_t n = 0; n < 3; n++) {
        check(blz_par_for(par, n, cancel_at, &c, &options) == -ECANCELED);
        check(blz_par_for_2d(par, n, n, cancel_tile_at, &c, &options) == -ECANCELED);
    }
    check(c.calls == 0);
}

static void a_cancelled_loop_does_not_begin(void **state)
{
    (void)state;
    in_pools(begin_cancelled, NULL);
}

/* ---- nesting ---- */

enum { ROWS = 30, COLS = 70 };

struct grid {
    uint8_t seen[ROWS][COLS];
};

struct row {
    struct grid *grid;
    size_t index;
};

static int mark_columns(blz_par *par, size_t begin, size_t end, void *arg)
{
    struct row *row = arg;

    (void)par;
    for (size_t i = begin; i < end; i++)
        row->grid->seen[row->index][i]++;
    return 0;
}

static int mark_rows(blz_par *par, size_t begin, size_t end, void *arg)
{
    for (size_t i = begin; i < end; i++) {
        struct row row = {arg, i};
        int rc = blz_par_for(par, COLS, mark_columns, &row, &(blz_par_options){.grain = 1});
        if (rc < 0)
            return rc;
    }
    return 0;
}

static void check_grid(const struct grid *g)
{
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < COLS; k++)
            check(g->seen[i][k] == 1);
}

static void nest(blz_par *par, void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++) {
        struct grid g = {0};
        check(blz_par_for(par, ROWS, mark_rows, &g, NULL) == 0);
        check_grid(&g);
    }
}

static void loops_nest(void **state)
{
    (void)state;
    in_pools(nest, NULL);
}

/* ---- two dimensions ---- */

struct table {
    uint8_t seen[64][64];
    size_t rows, cols;
    bool slow;
};

static int mark_tile(blz_par *par, const blz_par_tile *t, void *arg)
{
    struct table *table = arg;

    (void)par;
    check(t->row < t->row_end && t->row_end <= table->rows);
    check(t->col < t->col_end && t->col_end <= table->cols);
    for (size_t i = t->row; i < t->row_end; i++)
        for (size_t k = t->col; k < t->col_end; k++)
            table->seen[i][k]++;
    if (table->slow)
        take_long();
    return 0;
}

static void mark_tables(blz_par *par, void *arg)
{
    (void)arg;
    for (size_t rows = 0; rows <= 64; rows = rows * 2 + 1)
        for (size_t cols = 0; cols <= 64; cols += 13) {
            struct table t = {.rows = rows, .cols = cols, .slow = rows * cols < 30};
            blz_par_options options = {.grain = rows % 5};

            check(blz_par_for_2d(par, rows, cols, mark_tile, &t, &options) == 0);
            for (size_t i = 0; i < 64; i++)
                for (size_t k = 0; k < 64; k++)
                    check(t.seen[i][k] == (i < rows && k < cols));
        }
}

static void every_cell_is_seen_once(void **state)
{
    (void)state;
    in_pools(mark_tables, NULL);
}

static int fail_in_tile(blz_par *par, const blz_par_tile *t, void *arg)
{
    (void)par, (void)arg;
    return t->row <= 7 && 7 < t->row_end && t->col <= 3 && 3 < t->col_end ? -EDOM : 0;
}

static void fail_in_2d(blz_par *par, void *arg)
{
    (void)arg;
    check(blz_par_for_2d(par, 20, 10, fail_in_tile, NULL, NULL) == -EDOM);
}

static void an_error_of_a_tile_is_returned(void **state)
{
    (void)state;
    in_pools(fail_in_2d, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_index_is_seen_once_for_every_size),
        TEST(every_index_is_seen_once_for_every_grain_and_pool),
        TEST(every_index_is_seen_once_however_long_it_takes),
        TEST(a_loop_waits_in_each_way),
        TEST(no_part_is_smaller_than_the_grain),
        TEST(two_elements_run_at_the_same_time),
        TEST(an_error_of_a_body_is_returned),
        TEST(a_loop_can_be_cancelled_at_each_split),
        TEST(a_cancelled_loop_does_not_begin),
        TEST(loops_nest),
        TEST(every_cell_is_seen_once),
        TEST(an_error_of_a_tile_is_returned),
    };
    return RUN_TESTS(tests);
}
