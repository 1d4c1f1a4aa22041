/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel loops: every index once, errors, cancellation. */
#include "harness.h"

#include <string.h>

enum { MOST = 4096 };

struct marks {
    uint8_t seen[MOST];
    size_t n;
    int rc;
    blz_par_options options;
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

static void run_marks(blz_par *par, void *arg)
{
    struct marks *m = arg;

    m->rc = blz_par_for(par, m->n, mark_range, m, &m->options);
}

static void every_index_is_seen_once(void **state)
{
    static struct marks m;

    (void)state;
    for (unsigned threads = 1; threads <= 3; threads++) {
        blz_pool *pool;
        assert_int_equal(blz_pool_new(&pool, &(blz_pool_options){.threads = threads}), 0);
        for (size_t n = 0; n <= MOST; n += 1 + n / 16) {
            memset(&m, 0, sizeof m);
            m.n = n;
            m.options.grain = n % 3;
            blz_pool_run(pool, run_marks, &m);
            assert_int_equal(m.rc, 0);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(m.seen[i], 1);
        }
        assert_int_equal(blz_pool_free(pool), 0);
    }
}

static int fail_at_7(blz_par *par, size_t begin, size_t end, void *arg)
{
    (void)par, (void)arg;
    return begin <= 7 && 7 < end ? -EDOM : 0;
}

static void run_failing(blz_par *par, void *arg)
{
    *(int *)arg = blz_par_for(par, 1000, fail_at_7, NULL, NULL);
}

static void an_error_of_the_body_is_returned(void **state)
{
    blz_pool *pool;
    int rc = 0;

    (void)state;
    assert_int_equal(blz_pool_new(&pool, &(blz_pool_options){.threads = 2}), 0);
    blz_pool_run(pool, run_failing, &rc);
    assert_int_equal(rc, -EDOM);
    assert_int_equal(blz_pool_free(pool), 0);
}

static void a_cancelled_loop_does_not_begin(void **state)
{
    static struct marks m;
    blz_par_cancel cancel = {0};
    blz_pool *pool;

    (void)state;
    blz_par_cancel_set(&cancel, -ECANCELED);
    blz_par_cancel_set(&cancel, -EINTR);
    assert_int_equal(blz_par_cancel_code(&cancel), -ECANCELED);
    m.n = 100;
    m.options.cancel = &cancel;
    assert_int_equal(blz_pool_new(&pool, &(blz_pool_options){.threads = 2}), 0);
    blz_pool_run(pool, run_marks, &m);
    assert_int_equal(m.rc, -ECANCELED);
    for (size_t i = 0; i < m.n; i++)
        assert_int_equal(m.seen[i], 0);
    assert_int_equal(blz_pool_free(pool), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_index_is_seen_once),
        TEST(an_error_of_the_body_is_returned),
        TEST(a_cancelled_loop_does_not_begin),
    };
    return RUN_TESTS(tests);
}
