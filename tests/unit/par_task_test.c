/* SPDX-License-Identifier: Apache-2.0 */
/* Typed tasks of the fork-join pool: their arguments, their results, and when they fork. */
#include "par.h"

/* ---- tasks of one to four arguments ---- */

BLZ_PAR_TASK(uint64_t, fib, int)

static uint64_t fib(blz_par *par, int n)
{
    uint64_t left, right;

    if (n < 2)
        return (uint64_t)n;
    BLZ_PAR_BOTH(par, fib, (left, n - 1), (right, n - 2));
    return left + right;
}

BLZ_PAR_TASK(uint64_t, sum_below, uint32_t, uint32_t)

static uint64_t sum_below(blz_par *par, uint32_t from, uint32_t to)
{
    uint64_t left, right;

    if (to - from == 1)
        return from;
    BLZ_PAR_BOTH(par, sum_below, (left, from, (from + to) / 2), (right, (from + to) / 2, to));
    return left + right;
}

/* Results larger than a register. */
struct extent {
    uint64_t least, most, count;
};

BLZ_PAR_TASK(struct extent, measure, const uint64_t *, size_t, uint64_t)

static struct extent measure(blz_par *par, const uint64_t *v, size_t n, uint64_t scale)
{
    struct extent left, right;

    if (n == 1)
        return (struct extent){v[0] * scale, v[0] * scale, 1};
    BLZ_PAR_BOTH(par, measure, (left, v, n / 2, scale), (right, v + n / 2, n - n / 2, scale));
    return (struct extent){left.least < right.least ? left.least : right.least,
                           left.most > right.most ? left.most : right.most,
                           left.count + right.count};
}

BLZ_PAR_TASK(int, count_paths, int, int, int, double)

/* Ways down a grid; the last two are passed on as they are. */
static int count_paths(blz_par *par, int x, int y, int tag, double weight)
{
    int right, down;

    check(tag == -7 && weight > 0.5 && weight < 0.75);
    if (x == 0 || y == 0)
        return 1;
    BLZ_PAR_BOTH(par, count_paths, (right, x - 1, y, tag, weight), (down, x, y - 1, tag, weight));
    return right + down;
}

static void run_all(blz_par *par, void *arg)
{
    enum { N = 1000 };
    uint64_t v[N];
    struct extent e;

    (void)arg;
    check(fib(par, 20) == 6765);
    check(sum_below(par, 0, N) == N * (N - 1) / 2);
    for (uint64_t i = 0; i < N; i++)
        v[i] = (i * 617 + 5) % 1009;
    e = measure(par, v, N, 3);
    check(e.least == 0 && e.count == N && e.most == 3 * 1008);
    check(count_paths(par, 7, 7, -7, 0.625) == 3432);
}

static void tasks_of_any_shape_give_their_results(void **state)
{
    (void)state;
    in_pools(run_all, NULL);
}

static void tasks_run_in_rings_of_any_size(void **state)
{
    (void)state;
    for (unsigned size = 1; size <= 8; size *= 2) {
        blz_pool *pool;
        blz_pool_options o = {.threads = 3, .ring_size = size, .allocator = test_memory()};

        assert_int_equal(blz_pool_new(&pool, &o), 0);
        for (int i = 0; i < 5; i++)
            assert_int_equal(blz_pool_run(pool, run_all, NULL), 0);
        assert_int_equal(blz_pool_free(pool), 0);
    }
}

/* ---- arguments ---- */

static int next_argument(int *counter)
{
    return ++*counter;
}

BLZ_PAR_TASK(int, give_back, int)

static int give_back(blz_par *par, int n)
{
    (void)par;
    return n;
}

static void evaluate_arguments(blz_par *par, void *arg)
{
    int counter = 0, first, second;

    (void)arg;
    for (int i = 0; i < 10; i++) {
        BLZ_PAR_BOTH(par, give_back, (first, next_argument(&counter)),
                     (second, next_argument(&counter)));
        check(first == 2 * i + 1 && second == 2 * i + 2);
    }
}

static void arguments_are_evaluated_once_and_in_order(void **state)
{
    (void)state;
    in_pools(evaluate_arguments, NULL);
}

/* ---- forking ---- */

static void look_whether_there_is_enough(blz_par *par, void *arg)
{
    *(bool *)arg = blz_par_has_enough(par);
}

static void a_pool_of_one_thread_never_needs_a_fork(void **state)
{
    bool enough = false;

    (void)state;
    in_pool_of(1, look_whether_there_is_enough, &enough);
    assert_true(enough);
}

static void a_computation_begins_with_a_fork_if_there_are_others(void **state)
{
    bool enough = true;

    (void)state;
    in_pool_of(2, look_whether_there_is_enough, &enough);
    assert_false(enough);
}

/* Both wait for the other, without another fork. */
struct rendezvous {
    struct event here[2];
};

BLZ_PAR_TASK(int, meet, struct rendezvous *, int)

static int meet(blz_par *par, struct rendezvous *r, int side)
{
    event_post(&r->here[side]);
    event_wait(&r->here[!side], 1);
    return (int)blz_par_index(par);
}

static void run_meeting(blz_par *par, void *arg)
{
    struct rendezvous r = {{EVENT_INIT, EVENT_INIT}};
    int left, right;

    (void)arg;
    BLZ_PAR_BOTH(par, meet, (left, &r, 0), (right, &r, 1));
    check(left != right);
}

static void the_first_two_branches_run_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        in_pool_of(2, run_meeting, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tasks_of_any_shape_give_their_results),
        TEST(tasks_run_in_rings_of_any_size),
        TEST(arguments_are_evaluated_once_and_in_order),
        TEST(a_pool_of_one_thread_never_needs_a_fork),
        TEST(a_computation_begins_with_a_fork_if_there_are_others),
        TEST(the_first_two_branches_run_at_once),
    };
    return RUN_TESTS(tests);
}
