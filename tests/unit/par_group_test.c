/* SPDX-License-Identifier: Apache-2.0 */
/* Groups, reduction by key, distinct elements: against loops; cancelled, without memory. */
#include "par.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 4096, LARGE = 60000, MOST_KEYS = 100003 };

/* As in the scans' test: to apply one after the other is associative, but not commutative. */
struct affine {
    uint32_t a, b;
};

static struct affine then(struct affine f, struct affine g)
{
    return (struct affine){f.a * g.a, f.b * g.a + g.b};
}

BLZ_PAR_DEFINE_GROUP(number, uint64_t, x, *a == *b)
BLZ_PAR_DEFINE_GROUP(clash, uint64_t, 1, *a == *b)
BLZ_PAR_DEFINE_REDUCE_BY_KEY(chain, uint64_t, struct affine, x, *a == *b, then(acc, right))
BLZ_PAR_DEFINE_REDUCE_BY_KEY(total, uint64_t, double, x, *a == *b, acc + right)

static uint64_t hash_number(const void *x, void *arg)
{
    (void)arg;
    return *(const uint64_t *)x;
}

static bool same_number(const void *a, const void *b, void *arg)
{
    (void)arg;
    return *(const uint64_t *)a == *(const uint64_t *)b;
}

static void add_affine(void *sum, const void *x, void *arg)
{
    (void)arg;
    *(struct affine *)sum = then(*(struct affine *)sum, *(const struct affine *)x);
}

/* What a loop says, and room for what the functions say. */
struct arrays {
    size_t n, nr;
    uint64_t *in, *distinct, *out;
    uint32_t *ids, *out_ids;
    size_t *firsts, *out_firsts, *offsets, *order;
    struct affine *values, *sums, *out_sums;
};

static void *room(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);

    check(p);
    return p;
}

static void arrays_init(struct arrays *a, size_t most)
{
    *a = (struct arrays){.in = room(most, 8),
                         .distinct = room(most, 8),
                         .out = room(most, 8),
                         .ids = room(most, 4),
                         .out_ids = room(most, 4),
                         .firsts = room(most, sizeof(size_t)),
                         .out_firsts = room(most, sizeof(size_t)),
                         .offsets = room(most, sizeof(size_t)),
                         .order = room(most, sizeof(size_t)),
                         .values = room(most, sizeof(struct affine)),
                         .sums = room(most, sizeof(struct affine)),
                         .out_sums = room(most, sizeof(struct affine))};
}

static void arrays_free(struct arrays *a)
{
    free(a->in);
    free(a->distinct);
    free(a->out);
    free(a->ids);
    free(a->out_ids);
    free(a->firsts);
    free(a->out_firsts);
    free(a->offsets);
    free(a->order);
    free(a->values);
    free(a->sums);
    free(a->out_sums);
}

/* Keys below `keys`, in the shape of the pattern. */
static void arrays_fill(struct arrays *a, size_t n, int pattern, uint64_t keys)
{
    static uint32_t seen[MOST_KEYS]; /* number of the key's group, plus one */

    memset(seen, 0, sizeof seen);
    fill_pattern(a->in, n, pattern);
    a->n = n;
    a->nr = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t key = a->in[i] %= keys;
        a->values[i] = (struct affine){(uint32_t)mix(i) | 1, (uint32_t)i};
        if (seen[key] == 0) {
            a->firsts[a->nr] = i;
            a->distinct[a->nr] = key;
            seen[key] = (uint32_t)++a->nr;
            a->sums[a->nr - 1] = a->values[i];
        } else {
            a->sums[seen[key] - 1] = then(a->sums[seen[key] - 1], a->values[i]);
        }
        a->ids[i] = seen[key] - 1;
    }
}

static bool same(const void *out, const void *expected, size_t nr, size_t size)
{
    return memcmp(out, expected, nr * size) == 0;
}

static void check_order(blz_par *par, struct arrays *a, const blz_par_options *o)
{
    size_t at = 0;

    check(blz_par_group_order(par, a->offsets, a->order, a->ids, a->n, a->nr, o) == 0);
    check(a->offsets[0] == 0 && a->offsets[a->nr] == a->n);
    for (size_t g = 0; g < a->nr; g++) {
        check(a->offsets[g] == at && a->order[at] == a->firsts[g]);
        for (; at < a->offsets[g + 1]; at++) {
            check(a->ids[a->order[at]] == g);
            check(at == a->offsets[g] || a->order[at - 1] < a->order[at]);
        }
    }
}

static void check_typed(blz_par *par, struct arrays *a, const blz_par_options *o)
{
    size_t nr = 99, n = a->n;

    check(number_group(par, a->out_ids, a->out_firsts, &nr, a->in, n, NULL, o) == 0);
    check(nr == a->nr && same(a->out_ids, a->ids, n, 4));
    check(same(a->out_firsts, a->firsts, nr, sizeof(size_t)));
    check(number_group(par, NULL, NULL, &nr, a->in, n, NULL, o) == 0 && nr == a->nr);
    check(number_distinct(par, a->out, &nr, a->in, n, NULL, o) == 0);
    check(nr == a->nr && same(a->out, a->distinct, nr, 8));
    check(chain_reduce_by_key(par, a->out, a->out_sums, &nr, a->in, a->values, n, NULL, o) == 0);
    check(nr == a->nr && same(a->out, a->distinct, nr, 8));
    check(same(a->out_sums, a->sums, nr, sizeof *a->sums));
}

static void check_callbacks(blz_par *par, struct arrays *a, const blz_par_options *o)
{
    size_t nr = 99, n = a->n;

    check(blz_par_group(par, a->out_ids, a->out_firsts, &nr, a->in, n, 8, hash_number, same_number,
                        NULL, o) == 0);
    check(nr == a->nr && same(a->out_ids, a->ids, n, 4));
    check(same(a->out_firsts, a->firsts, nr, sizeof(size_t)));
    check(blz_par_distinct(par, a->out, &nr, a->in, n, 8, hash_number, same_number, NULL, o) == 0);
    check(nr == a->nr && same(a->out, a->distinct, nr, 8));
    check(blz_par_reduce_by_key(par, a->out, a->out_sums, &nr, a->in, a->values, n, 8,
                                sizeof *a->values, hash_number, same_number, add_affine, NULL,
                                o) == 0);
    check(nr == a->nr && same(a->out, a->distinct, nr, 8));
    check(same(a->out_sums, a->sums, nr, sizeof *a->sums));
}

/* ---- against loops ---- */

static void check_every_size(blz_par *par, void *arg)
{
    struct arrays a;

    (void)arg;
    arrays_init(&a, MOST);
    for (size_t n = 0; n <= MOST; n += n < 300 || n > MOST - 10 ? 1 : 13) {
        arrays_fill(&a, n, PATTERN_RANDOM, n % 50 * 20 + 1);
        check_typed(par, &a, &(blz_par_options){.grain = n / 7 + 1});
    }
    arrays_free(&a);
}

static void groups_of_every_size_are_those_of_a_loop(void **state)
{
    (void)state;
    in_pool_of(2, check_every_size, NULL);
}

static void check_shapes(blz_par *par, void *arg)
{
    static const uint64_t keys[] = {1, 7, 1000, MOST_KEYS};
    struct arrays a;

    (void)arg;
    arrays_init(&a, MOST);
    for (int pattern = 0; pattern < NR_PATTERNS; pattern++) {
        for (size_t n = 1; n <= MOST; n *= 4) {
            for (int k = 0; k < 4; k++) {
                blz_par_options o = {.grain = n / 9 + 1};
                arrays_fill(&a, n, pattern, keys[k]);
                check_typed(par, &a, &o);
                check_callbacks(par, &a, &o);
                check_order(par, &a, &o);
            }
        }
    }
    arrays_free(&a);
}

static void groups_are_in_the_order_of_their_first_elements(void **state)
{
    (void)state;
    in_pools(check_shapes, NULL);
}

static void check_large(blz_par *par, void *arg)
{
    struct arrays a;

    (void)arg;
    arrays_init(&a, LARGE);
    arrays_fill(&a, LARGE, PATTERN_RANDOM, MOST_KEYS); /* many keys: several buckets */
    check_typed(par, &a, NULL);
    check_order(par, &a, NULL);
    arrays_fill(&a, LARGE, PATTERN_RANDOM, 3);
    check_typed(par, &a, NULL);
    check_order(par, &a, NULL);
    arrays_free(&a);
}

static void a_large_one_needs_no_grain(void **state)
{
    (void)state;
    in_pools(check_large, NULL);
}

static void check_clashes(blz_par *par, void *arg)
{
    struct arrays a;
    size_t nr;

    (void)arg;
    arrays_init(&a, 300);
    arrays_fill(&a, 300, PATTERN_RANDOM, 150);
    check(clash_group(par, a.out_ids, NULL, &nr, a.in, 300, NULL,
                      &(blz_par_options){.grain = 40}) == 0);
    check(nr == a.nr && same(a.out_ids, a.ids, 300, 4));
    arrays_free(&a);
}

static void elements_with_the_same_hash_need_not_be_equal(void **state)
{
    (void)state;
    in_pools(check_clashes, NULL);
}

/* ---- the same bits ---- */

struct totals {
    size_t nr; /* 0: not known yet */
    uint64_t keys[100];
    double sums[100];
};

static void check_totals(blz_par *par, void *arg)
{
    enum { N = 50000 };
    struct totals *first = arg, t;
    uint64_t *keys = room(N, 8);
    double *values = room(N, sizeof *values);

    for (size_t i = 0; i < N; i++) {
        keys[i] = mix(i) % 100;
        values[i] = 1.0 / (double)(i + 1);
    }
    check(total_reduce_by_key(par, t.keys, t.sums, &t.nr, keys, values, N, NULL, NULL) == 0);
    if (first->nr == 0)
        *first = t;
    check(t.nr == 100 && same(t.keys, first->keys, 100, 8) &&
          same(t.sums, first->sums, 100, sizeof(double)));
    free(keys);
    free(values);
}

static void sums_of_floats_have_the_same_bits_for_any_number_of_threads(void **state)
{
    struct totals first = {0};

    (void)state;
    in_pools(check_totals, &first);
}

/* ---- errors ---- */

static void check_bad_ids(blz_par *par, void *arg)
{
    uint32_t ids[100] = {0};
    size_t offsets[2001], order[100];

    (void)arg;
    for (size_t bad = 0; bad < 100; bad++) {
        ids[bad] = 2000;
        check(blz_par_group_order(par, offsets, order, ids, 100, 1, NULL) == -ERANGE);
        check(blz_par_group_order(par, offsets, order, ids, 100, 2000, NULL) == -ERANGE);
        ids[bad] = 0;
    }
}

static void an_id_out_of_range_is_an_error(void **state)
{
    (void)state;
    in_pools(check_bad_ids, NULL);
}

struct fuse {
    blz_par_cancel cancel;
    int left;
};

static uint64_t hash_and_burn(const void *x, void *arg)
{
    struct fuse *fuse = arg;

    if (__atomic_sub_fetch(&fuse->left, 1, __ATOMIC_RELAXED) == 0)
        blz_par_cancel_set(&fuse->cancel, -EINTR);
    return *(const uint64_t *)x;
}

static void check_cancelled(blz_par *par, void *arg)
{
    enum { N = 100 };
    uint64_t in[N];
    uint32_t ids[N];
    size_t nr, offsets[N + 1], order[N];

    (void)arg;
    fill_pattern(in, N, PATTERN_RANDOM);
    for (int at = 1; at <= N; at++) {
        struct fuse fuse = {.left = at};
        blz_par_options o = {.grain = 9, .cancel = &fuse.cancel};

        check(blz_par_group(par, ids, NULL, &nr, in, N, 8, hash_and_burn, same_number, &fuse, &o) ==
              -EINTR);
        check(blz_par_group_order(par, offsets, order, ids, N, N, &o) == -EINTR);
        check(blz_par_group(par, ids, NULL, &nr, in, 0, 8, hash_and_burn, same_number, &fuse, &o) ==
              -EINTR);
    }
}

static void it_can_be_cancelled_at_every_point(void **state)
{
    (void)state;
    in_pools(check_cancelled, NULL);
}

static void check_without_memory(blz_par *par, void *arg)
{
    struct arrays a;
    blz_par_options o = {.grain = 300};
    size_t nr;
    int rc = -ENOMEM;
    int64_t nth = 0;

    (void)arg;
    arrays_init(&a, 8000);
    arrays_fill(&a, 8000, PATTERN_RANDOM, MOST_KEYS);
    while (rc == -ENOMEM) {
        memory_fail_at(the_memory(), ++nth, false);
        rc = chain_reduce_by_key(par, a.out, a.out_sums, &nr, a.in, a.values, a.n, NULL, &o);
        memory_fail_at(the_memory(), 0, false);
    }
    check(rc == 0 && nth > 10 && nr == a.nr && same(a.out_sums, a.sums, nr, sizeof *a.sums));
    for (rc = -ENOMEM, nth = 0; rc == -ENOMEM;) {
        memory_fail_at(the_memory(), ++nth, false);
        rc = blz_par_group_order(par, a.offsets, a.order, a.ids, a.n, a.nr, &o);
        memory_fail_at(the_memory(), 0, false);
    }
    check(rc == 0 && nth > 1);
    arrays_free(&a);
}

static void without_memory_it_fails(void **state)
{
    (void)state;
    in_pools(check_without_memory, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(groups_of_every_size_are_those_of_a_loop),
        TEST(groups_are_in_the_order_of_their_first_elements),
        TEST(a_large_one_needs_no_grain),
        TEST(elements_with_the_same_hash_need_not_be_equal),
        TEST(sums_of_floats_have_the_same_bits_for_any_number_of_threads),
        TEST(an_id_out_of_range_is_an_error),
        TEST(it_can_be_cancelled_at_every_point),
        TEST(without_memory_it_fails),
    };
    return RUN_TESTS(tests);
}
