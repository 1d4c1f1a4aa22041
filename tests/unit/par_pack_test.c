/* SPDX-License-Identifier: Apache-2.0 */
/* Filters, indices, partitions, unique: against loops; failing and cancelled. */
#include "par.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 4096, LARGE = 60000 };

/* More than what is packed without branches. */
struct wide {
    uint64_t key, square, index;
};

BLZ_PAR_DEFINE_FILTER(odd, uint64_t, x % 2 == 1)
BLZ_PAR_DEFINE_FILTER(above, uint64_t, x > *(uint64_t *)arg)
BLZ_PAR_DEFINE_FILTER(third, uint8_t, i % 3 == 0)
BLZ_PAR_DEFINE_FILTER(heavy, struct wide, x.key % 2 == 1)
BLZ_PAR_DEFINE_UNIQUE(neighbours, uint64_t, *a == *b)

static bool keep_odd(const void *x, void *arg)
{
    (void)arg;
    return *(const uint64_t *)x % 2 == 1;
}

static bool keep_heavy(const void *x, void *arg)
{
    (void)arg;
    return ((const struct wide *)x)->key % 2 == 1;
}

static bool are_equal(const void *a, const void *b, void *arg)
{
    (void)arg;
    return *(const uint64_t *)a == *(const uint64_t *)b;
}

/* What a loop says, and room for what the functions say. */
struct arrays {
    size_t n, nr;
    uint64_t *in, *kept, *rest, *out, *out_rest;
    size_t *indices, *out_indices;
};

static void arrays_init(struct arrays *a, size_t most)
{
    uint64_t *memory = malloc(7 * most * sizeof *memory);

    check(memory);
    *a = (struct arrays){.in = memory,
                         .kept = memory + most,
                         .rest = memory + 2 * most,
                         .out = memory + 3 * most,
                         .out_rest = memory + 4 * most,
                         .indices = memory + 5 * most,
                         .out_indices = memory + 6 * most};
}

static void arrays_fill(struct arrays *a, size_t n, int pattern)
{
    fill_pattern(a->in, n, pattern);
    a->n = n;
    a->nr = 0;
    for (size_t i = 0; i < n; i++) {
        if (a->in[i] % 2 == 1) {
            a->indices[a->nr] = i;
            a->kept[a->nr++] = a->in[i];
        } else {
            a->rest[i - a->nr] = a->in[i];
        }
    }
}

static bool has(const void *out, const void *expected, size_t nr)
{
    return memcmp(out, expected, nr * sizeof(uint64_t)) == 0;
}

/* What is behind the results must stay as it is. */
static void mark(struct arrays *a)
{
    memset(a->out, 0x55, a->n * sizeof *a->out);
    memset(a->out_rest, 0x55, a->n * sizeof *a->out_rest);
}

static bool is_marked(const uint64_t *v, size_t from, size_t n)
{
    for (; from < n; from++)
        if (v[from] != 0x5555555555555555)
            return false;
    return true;
}

static void check_typed(blz_par *par, struct arrays *a, const blz_par_options *o)
{
    size_t nr = 99;

    mark(a);
    check(odd_filter(par, a->out, &nr, a->in, a->n, NULL, o) == 0);
    check(nr == a->nr && has(a->out, a->kept, nr) && is_marked(a->out, nr, a->n));
    check(odd_index(par, a->out_indices, &nr, a->in, a->n, NULL, o) == 0);
    check(nr == a->nr && has(a->out_indices, a->indices, nr));
    mark(a);
    check(odd_partition(par, a->out, a->out_rest, &nr, a->in, a->n, NULL, o) == 0);
    check(nr == a->nr && has(a->out, a->kept, nr) && has(a->out_rest, a->rest, a->n - nr));
    check(is_marked(a->out, nr, a->n) && is_marked(a->out_rest, a->n - nr, a->n));
    check(odd_partition(par, a->out, NULL, &nr, a->in, a->n, NULL, o) == 0);
    check(nr == a->nr && has(a->out, a->kept, nr) && has(a->out + nr, a->rest, a->n - nr));
}

static void check_callbacks(blz_par *par, struct arrays *a, const blz_par_options *o)
{
    size_t nr = 99, n = a->n;

    mark(a);
    check(blz_par_filter(par, a->out, &nr, a->in, n, 8, keep_odd, NULL, o) == 0);
    check(nr == a->nr && has(a->out, a->kept, nr) && is_marked(a->out, nr, n));
    check(blz_par_filter_index(par, a->out_indices, &nr, a->in, n, 8, keep_odd, NULL, o) == 0);
    check(nr == a->nr && has(a->out_indices, a->indices, nr));
    mark(a);
    check(blz_par_partition(par, a->out, a->out_rest, &nr, a->in, n, 8, keep_odd, NULL, o) == 0);
    check(nr == a->nr && has(a->out, a->kept, nr) && has(a->out_rest, a->rest, n - nr));
    check(is_marked(a->out, nr, n) && is_marked(a->out_rest, n - nr, n));
    check(blz_par_partition(par, a->out, NULL, &nr, a->in, n, 8, keep_odd, NULL, o) == 0);
    check(nr == a->nr && has(a->out, a->kept, nr) && has(a->out + nr, a->rest, n - nr));
}

/* ---- filters and partitions ---- */

static void check_every_size(blz_par *par, void *arg)
{
    struct arrays a;

    (void)arg;
    arrays_init(&a, MOST);
    for (size_t n = 0; n <= MOST; n++) {
        arrays_fill(&a, n, PATTERN_RANDOM);
        check_typed(par, &a, &(blz_par_options){.grain = n / 20 + 1});
    }
    free(a.in);
}

static void of_every_size_the_right_ones_are_kept(void **state)
{
    (void)state;
    in_pool_of(2, check_every_size, NULL);
}

static void check_shapes(blz_par *par, void *arg)
{
    struct arrays a;

    (void)arg;
    arrays_init(&a, LARGE);
    for (int pattern = 0; pattern < NR_PATTERNS; pattern++) {
        for (size_t n = 0; n <= MOST; n = next_size(n)) {
            arrays_fill(&a, n, pattern);
            check_typed(par, &a, &(blz_par_options){.grain = n / 40 + 1});
            check_callbacks(par, &a, &(blz_par_options){.grain = n / 40 + 1});
        }
    }
    arrays_fill(&a, LARGE, PATTERN_RANDOM);
    check_typed(par, &a, NULL);
    check_callbacks(par, &a, NULL);
    free(a.in);
}

static void order_is_kept_in_all_shapes(void **state)
{
    (void)state;
    in_pools(check_shapes, NULL);
}

static void check_small_and_large(blz_par *par, void *arg)
{
    enum { N = 2000 };
    static struct wide wide[N], out[N], rest[N];
    static uint8_t bytes[N], packed[N];
    blz_par_options o = {.grain = 70};
    size_t nr;

    (void)arg;
    for (size_t i = 0; i < N; i++) {
        wide[i] = (struct wide){mix(i), i * i, i};
        bytes[i] = (uint8_t)i;
    }
    check(third_filter(par, packed, &nr, bytes, N, NULL, &o) == 0 && nr == (N + 2) / 3);
    for (size_t i = 0; i < nr; i++)
        check(packed[i] == (uint8_t)(3 * i));
    check(heavy_filter(par, out, &nr, wide, N, NULL, &o) == 0);
    for (size_t i = 0, k = 0; i < N; i++)
        check(wide[i].key % 2 == 0 || out[k++].index == i);
    check(blz_par_partition(par, out, NULL, &nr, wide, N, sizeof *wide, keep_heavy, NULL, &o) == 0);
    check(heavy_partition(par, rest, NULL, &nr, wide, N, NULL, &o) == 0);
    check(memcmp(out, rest, sizeof out) == 0);
}

static void elements_may_be_of_any_size(void **state)
{
    (void)state;
    in_pools(check_small_and_large, NULL);
}

static void check_argument(blz_par *par, void *arg)
{
    uint64_t in[100], out[100], limit = 89;
    size_t nr;

    (void)arg;
    fill_pattern(in, 100, PATTERN_SORTED);
    check(above_filter(par, out, &nr, in, 100, &limit, &(blz_par_options){.grain = 5}) == 0);
    check(nr == 10 && out[0] == 90 && out[9] == 99);
}

static void the_expression_sees_the_argument(void **state)
{
    (void)state;
    in_pools(check_argument, NULL);
}

/* ---- unique, flags ---- */

static void check_unique(blz_par *par, void *arg)
{
    uint64_t *v = malloc(3 * MOST * sizeof *v), *out = v + MOST, *expected = v + 2 * MOST;

    (void)arg;
    check(v);
    for (size_t n = 0; n <= MOST; n = next_size(n)) {
        for (int pattern = 0; pattern < NR_PATTERNS; pattern++) {
            blz_par_options o = {.grain = n / 25 + 1};
            size_t count = 0, nr;

            fill_pattern(v, n, pattern);
            for (size_t i = 0; i < n; i++)
                v[i] /= 3;
            for (size_t i = 0; i < n; i++)
                if (i == 0 || v[i] != v[i - 1])
                    expected[count++] = v[i];
            check(neighbours_unique(par, out, &nr, v, n, NULL, &o) == 0);
            check(nr == count && has(out, expected, nr));
            check(blz_par_unique(par, out, &nr, v, n, sizeof *v, are_equal, NULL, &o) == 0);
            check(nr == count && has(out, expected, nr));
        }
    }
    free(v);
}

static void unique_leaves_one_of_each_run(void **state)
{
    (void)state;
    in_pools(check_unique, NULL);
}

static void check_flags(blz_par *par, void *arg)
{
    struct arrays a;
    bool flags[MOST];
    size_t nr;

    (void)arg;
    arrays_init(&a, MOST);
    for (size_t n = 0; n <= MOST; n = next_size(n)) {
        blz_par_options o = {.grain = 33};
        arrays_fill(&a, n, PATTERN_RANDOM);
        for (size_t i = 0; i < n; i++)
            flags[i] = a.in[i] % 2 == 1;
        check(blz_par_pack(par, a.out, &nr, a.in, n, 8, flags, &o) == 0);
        check(nr == a.nr && has(a.out, a.kept, nr));
        check(blz_par_pack_index(par, a.out_indices, &nr, flags, n, &o) == 0);
        check(nr == a.nr && has(a.out_indices, a.indices, nr));
    }
    free(a.in);
}

static void flags_say_which_are_kept(void **state)
{
    (void)state;
    in_pools(check_flags, NULL);
}

/* ---- errors ---- */

/* A callback has no result but its answer: it ends the call by the cancellation. */
struct objection {
    blz_par_cancel cancel;
    uint64_t bad;
};

static bool keep_or_cancel(const void *x, void *arg)
{
    struct objection *to = arg;

    if (*(const uint64_t *)x == to->bad)
        blz_par_cancel_set(&to->cancel, -EILSEQ);
    return true;
}

static bool equal_or_cancel(const void *a, const void *b, void *arg)
{
    (void)a;
    return keep_or_cancel(b, arg);
}

static void check_errors(blz_par *par, void *arg)
{
    enum { N = 200 };
    uint64_t in[N], out[N];
    size_t indices[N], nr;

    (void)arg;
    fill_pattern(in, N, PATTERN_SORTED);
    for (size_t at = 0; at < N; at++) {
        for (int which = at == 0; which < 4; which++) { /* nothing is compared with in[0] */
            struct objection to = {.bad = in[at]};
            blz_par_options o = {.grain = 9, .cancel = &to.cancel};
            int rc;

            if (which == 0)
                rc = blz_par_unique(par, out, &nr, in, N, 8, equal_or_cancel, &to, &o);
            else if (which == 1)
                rc = blz_par_filter(par, out, &nr, in, N, 8, keep_or_cancel, &to, &o);
            else if (which == 2)
                rc = blz_par_filter_index(par, indices, &nr, in, N, 8, keep_or_cancel, &to, &o);
            else
                rc = blz_par_partition(par, out, NULL, &nr, in, N, 8, keep_or_cancel, &to, &o);
            check(rc == -EILSEQ);
        }
    }
}

static void a_callback_ends_it_by_the_cancellation(void **state)
{
    (void)state;
    in_pools(check_errors, NULL);
}

struct fuse {
    blz_par_cancel cancel;
    int left;
};

static bool keep_and_burn(const void *x, void *arg)
{
    struct fuse *fuse = arg;

    (void)x;
    if (__atomic_sub_fetch(&fuse->left, 1, __ATOMIC_RELAXED) == 0)
        blz_par_cancel_set(&fuse->cancel, -EINTR);
    return true;
}

static void check_cancelled(blz_par *par, void *arg)
{
    enum { N = 200 };
    uint64_t in[N] = {0}, out[N];
    size_t nr;

    (void)arg;
    for (int at = 1; at < N; at++) {
        struct fuse fuse = {.left = at};
        blz_par_options o = {.grain = 9, .cancel = &fuse.cancel};

        check(blz_par_partition(par, out, NULL, &nr, in, N, 8, keep_and_burn, &fuse, &o) == -EINTR);
        int left = __atomic_load_n(&fuse.left, __ATOMIC_RELAXED);
        check(blz_par_filter(par, out, &nr, in, N, 8, keep_and_burn, &fuse, &o) == -EINTR);
        check(left == fuse.left);
    }
}

static void it_can_be_cancelled_at_every_point(void **state)
{
    (void)state;
    in_pools(check_cancelled, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(of_every_size_the_right_ones_are_kept),
        TEST(order_is_kept_in_all_shapes),
        TEST(elements_may_be_of_any_size),
        TEST(the_expression_sees_the_argument),
        TEST(unique_leaves_one_of_each_run),
        TEST(flags_say_which_are_kept),
        TEST(a_callback_ends_it_by_the_cancellation),
        TEST(it_can_be_cancelled_at_every_point),
    };
    return RUN_TESTS(tests);
}
