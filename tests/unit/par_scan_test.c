/* SPDX-License-Identifier: Apache-2.0 */
/* Scans: against loops, for all sizes and shapes; cancelled; without memory. */
#include "par.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 4096, LARGE = 100000 };

/* A function x -> a * x + b. To apply one after the other is associative, but not commutative. */
struct affine {
    uint32_t a, b;
};

static struct affine then(struct affine f, struct affine g)
{
    return (struct affine){f.a * g.a, f.b * g.a + g.b};
}

static bool same(struct affine f, struct affine g)
{
    return f.a == g.a && f.b == g.b;
}

BLZ_PAR_DEFINE_SCAN(sum, uint64_t, acc + right)
BLZ_PAR_DEFINE_SCAN(largest, uint64_t, acc > right ? acc : right)
BLZ_PAR_DEFINE_SCAN(chained, struct affine, then(acc, right))

static void *checked_alloc(size_t count, size_t size)
{
    void *p = malloc(count * size + 1);

    check(p);
    return p;
}

static struct affine *affine_pattern(size_t n, int pattern)
{
    uint64_t *v = checked_alloc(n, sizeof *v);
    struct affine *f = checked_alloc(n, sizeof *f);

    fill_pattern(v, n, pattern);
    for (size_t i = 0; i < n; i++)
        f[i] = (struct affine){(uint32_t)v[i] | 1, (uint32_t)(v[i] >> 7)};
    free(v);
    return f;
}

/* ---- against loops ---- */

static void check_sums(blz_par *par, const uint64_t *in, size_t n, uint64_t *out, size_t grain)
{
    blz_par_options options = {.grain = grain};
    uint64_t sums = 0, total = 1;

    check(sum_inclusive(par, out, in, n, NULL, &options) == 0);
    for (size_t i = 0; i < n; i++)
        check(out[i] == (sums += in[i]));
    check(sum_exclusive(par, out, &total, in, n, 100, NULL, &options) == 0);
    check(total == sums + 100);
    for (size_t i = n; i-- > 0;)
        check(out[i] == (total -= in[i]));
}

static void check_every_size(blz_par *par, void *arg)
{
    static uint64_t in[MOST], out[MOST];

    (void)arg;
    fill_pattern(in, MOST, PATTERN_RANDOM);
    for (size_t n = 0; n <= MOST; n++)
        check_sums(par, in, n, out, n % 100 + 1);
}

static void a_scan_of_every_size_is_that_of_a_loop(void **state)
{
    (void)state;
    in_pool_of(2, check_every_size, NULL);
}

static void check_in_place(blz_par *par, struct affine *v, size_t n, const blz_par_options *o)
{
    struct affine *copy = checked_alloc(n, sizeof *copy), value = {1, 0}, total;

    memcpy(copy, v, n * sizeof *v);
    check(chained_exclusive(par, v, &total, v, n, value, NULL, o) == 0);
    for (size_t i = 0; i < n; i++) {
        check(same(v[i], value));
        value = then(value, copy[i]);
    }
    check(same(total, value));
    memcpy(v, copy, n * sizeof *v);
    check(chained_inclusive(par, v, v, n, NULL, o) == 0);
    for (size_t i = 0; i < n; i++)
        check(same(v[i], value = i > 0 ? then(value, copy[i]) : copy[0]));
    free(copy);
}

static void check_shapes(blz_par *par, void *arg)
{
    (void)arg;
    for (int pattern = 0; pattern < NR_PATTERNS; pattern++) {
        for (size_t n = 0; n <= MOST; n = next_size(n)) {
            struct affine *v = affine_pattern(n, pattern);
            check_in_place(par, v, n, &(blz_par_options){.grain = n / 50 + 1});
            free(v);
        }
    }
}

static void order_is_kept_and_the_result_may_replace_the_input(void **state)
{
    (void)state;
    in_pools(check_shapes, NULL);
}

static void check_large(blz_par *par, void *arg)
{
    struct affine *v = affine_pattern(LARGE, PATTERN_RANDOM);

    (void)arg;
    check_in_place(par, v, LARGE, NULL);
    free(v);
}

static void a_large_one_needs_no_grain(void **state)
{
    (void)state;
    in_pools(check_large, NULL);
}

/* ---- elements of any size ---- */

/* 100 bytes, of which it uses the last. */
struct fat {
    char before[92];
    uint32_t value, count;
};

static void add_fat(void *sum, const void *x, void *arg)
{
    struct fat *s = sum;
    const struct fat *f = x;

    (void)arg;
    s->value += f->value;
    s->count += f->count;
}

static void check_fat(blz_par *par, void *arg)
{
    enum { N = 1000 };
    struct fat *v = checked_alloc(N, sizeof *v), first = {.count = 5}, total;

    (void)arg;
    for (uint32_t i = 0; i < N; i++)
        v[i] = (struct fat){.value = i, .count = 1};
    check(blz_par_scan_exclusive(par, v, &total, v, N, sizeof *v, &first, add_fat, NULL,
                                 &(blz_par_options){.grain = 20}) == 0);
    check(total.count == N + 5 && total.value == N / 2 * (N - 1));
    for (uint32_t i = 0; i < N; i++)
        check(v[i].count == i + 5 && v[i].value == i * (i - 1) / 2);
    free(v);
}

static void elements_may_be_large(void **state)
{
    (void)state;
    in_pools(check_fat, NULL);
}

static void add_affine(void *sum, const void *x, void *arg)
{
    (void)arg;
    *(struct affine *)sum = then(*(struct affine *)sum, *(const struct affine *)x);
}

static void check_callbacks(blz_par *par, void *arg)
{
    struct affine *v = affine_pattern(MOST, PATTERN_RANDOM), first = {3, 4}, total, total2;
    struct affine *out = checked_alloc(MOST, sizeof *v), *out2 = checked_alloc(MOST, sizeof *v);

    (void)arg;
    for (size_t n = 0; n <= MOST; n = next_size(n)) {
        blz_par_options o = {.grain = n / 30 + 1};
        check(blz_par_scan_inclusive(par, out, v, n, sizeof *v, add_affine, NULL, &o) == 0);
        check(chained_inclusive(par, out2, v, n, NULL, &o) == 0);
        check(memcmp(out, out2, n * sizeof *v) == 0);
        check(blz_par_scan_exclusive(par, out, &total, v, n, sizeof *v, &first, add_affine, NULL,
                                     &o) == 0);
        check(chained_exclusive(par, out2, &total2, v, n, first, NULL, &o) == 0);
        check(memcmp(out, out2, n * sizeof *v) == 0 && same(total, total2));
    }
    free(v);
    free(out);
    free(out2);
}

static void callbacks_give_the_same_as_typed_functions(void **state)
{
    (void)state;
    in_pools(check_callbacks, NULL);
}

/* ---- cancellation ---- */

struct fuse {
    blz_par_cancel cancel;
    int left; /* operations until it is cancelled */
};

static uint64_t add_and_burn(uint64_t a, uint64_t b, void *arg)
{
    struct fuse *fuse = arg;

    if (__atomic_sub_fetch(&fuse->left, 1, __ATOMIC_RELAXED) == 0)
        blz_par_cancel_set(&fuse->cancel, -EINTR);
    return a + b;
}

BLZ_PAR_DEFINE_SCAN(burning, uint64_t, add_and_burn(acc, right, arg))

static void check_cancelled(blz_par *par, void *arg)
{
    enum { N = 400, BLOCK = 10 };
    uint64_t in[N], out[N];

    (void)arg;
    fill_pattern(in, N, PATTERN_RANDOM);
    for (int at = 1; at < N; at++) {
        struct fuse fuse = {.left = at};
        blz_par_options options = {.grain = BLOCK, .cancel = &fuse.cancel};

        check(burning_inclusive(par, out, in, N, &fuse, &options) == -EINTR);
        int left = __atomic_load_n(&fuse.left, __ATOMIC_RELAXED);
        check(left <= 0 && left >= -8 * 3 * BLOCK); /* the blocks that were under way */
        check(burning_inclusive(par, out, in, N, &fuse, &options) == -EINTR);
        check(fuse.left == left);
    }
}

static void it_can_be_cancelled_at_every_point(void **state)
{
    (void)state;
    in_pools(check_cancelled, NULL);
}

static void check_empty(blz_par *par, void *arg)
{
    blz_par_cancel cancel = {0};
    uint64_t total = 0, none[1] = {0};

    (void)arg;
    check(sum_inclusive(par, none, none, 0, NULL, NULL) == 0);
    check(sum_exclusive(par, none, &total, none, 0, 7, NULL, NULL) == 0 && total == 7);
    check(sum_exclusive(par, none, NULL, none, 0, 7, NULL, NULL) == 0);
    blz_par_cancel_set(&cancel, -ECANCELED);
    check(sum_inclusive(par, none, none, 0, NULL, &(blz_par_options){.cancel = &cancel}) ==
          -ECANCELED);
}

static void of_nothing_only_the_first_value_remains(void **state)
{
    (void)state;
    in_pools(check_empty, NULL);
}

/* ---- memory ---- */

static void check_without_memory(blz_par *par, void *arg)
{
    static uint64_t in[MOST], out[MOST];
    uint64_t most = 0;
    struct fat fat[2] = {{.count = 1}, {.count = 1}};

    (void)arg;
    fill_pattern(in, MOST, PATTERN_RANDOM);
    memory_fail_at(the_memory(), 1, true);
    check(largest_inclusive(par, out, in, MOST, NULL, &(blz_par_options){.grain = 10}) == 0);
    check(blz_par_scan_inclusive(par, fat, fat, 2, sizeof *fat, add_fat, NULL, NULL) == -ENOMEM);
    memory_fail_at(the_memory(), 0, false);
    for (size_t i = 0; i < MOST; i++) {
        most = in[i] > most ? in[i] : most;
        check(out[i] == most);
    }
}

static void without_memory_one_thread_does_it(void **state)
{
    (void)state;
    in_pool_of(3, check_without_memory, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_scan_of_every_size_is_that_of_a_loop),
        TEST(order_is_kept_and_the_result_may_replace_the_input),
        TEST(a_large_one_needs_no_grain),
        TEST(elements_may_be_large),
        TEST(callbacks_give_the_same_as_typed_functions),
        TEST(it_can_be_cancelled_at_every_point),
        TEST(of_nothing_only_the_first_value_remains),
        TEST(without_memory_one_thread_does_it),
    };
    return RUN_TESTS(tests);
}
