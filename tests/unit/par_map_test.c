/* SPDX-License-Identifier: Apache-2.0 */
/* Map and fill, inlined loops, and bodies over chunks and chains, against loops. */
#include "par.h"

#include <string.h>

enum { MOST = 4096 };

/* ---- map ---- */

BLZ_PAR_DEFINE_MAP(halve, uint32_t, uint64_t, x, (uint32_t)(x / 2))
BLZ_PAR_DEFINE_FOR(negate, uint64_t, v, i, v[i] = ~v[i];)

static int halve_one(void *out, const void *in, void *arg)
{
    uint64_t x = *(const uint64_t *)in;

    (void)arg;
    *(uint32_t *)out = (uint32_t)(x / 2);
    return x == 4000 ? -EDOM : 0;
}

static void map_sizes(blz_par *par, void *arg)
{
    static uint64_t in[MOST], negated[MOST];
    static uint32_t a[MOST], b[MOST];

    (void)arg;
    for (size_t n = 0; n <= 3000; n = next_size(n)) {
        fill_pattern(in, n, PATTERN_SORTED);
        memcpy(negated, in, sizeof in);
        check(halve(par, a, in, n, NULL) == 0);
        check(blz_par_map(par, b, in, n, sizeof *b, sizeof *in, halve_one, NULL, NULL) == 0);
        check(negate(par, n, negated, NULL) == 0);
        for (size_t i = 0; i < n; i++)
            check(a[i] == in[i] / 2 && b[i] == a[i] && negated[i] == ~in[i]);
    }
}

struct turned {
    uint32_t in[30][50], out[50][30];
};

BLZ_PAR_DEFINE_FOR_2D(turn, struct turned, t, y, x, t->out[x][y] = t->in[y][x];)

static void turn_table(blz_par *par, void *arg)
{
    static struct turned t;

    (void)arg;
    memset(t.out, 0, sizeof t.out);
    for (uint32_t i = 0; i < 1500; i++)
        t.in[i / 50][i % 50] = i + 1;
    check(turn(par, 30, 49, &t, &(blz_par_options){.grain = 20}) == 0);
    for (uint32_t i = 0; i < 1500; i++)
        check(t.out[i % 50][i / 50] == (i % 50 == 49 ? 0 : i + 1));
}

static void each_cell_is_visited(void **state)
{
    (void)state;
    in_pools(turn_table, NULL);
}

static void each_element_is_mapped(void **state)
{
    (void)state;
    in_pools(map_sizes, NULL);
}

static void map_with_an_error(blz_par *par, void *arg)
{
    static uint64_t in[MOST];
    static uint32_t out[MOST];

    (void)arg;
    fill_pattern(in, MOST, PATTERN_SORTED);
    check(blz_par_map(par, out, in, MOST, sizeof *out, sizeof *in, halve_one, NULL, NULL) == -EDOM);
}

static void an_error_of_a_map_is_returned(void **state)
{
    (void)state;
    in_pools(map_with_an_error, NULL);
}

/* ---- fill ---- */

static void fill_sizes(blz_par *par, void *arg)
{
    static unsigned char out[5000 * 3 + 1], value[5000];

    (void)arg;
    for (size_t i = 0; i < sizeof value; i++)
        value[i] = (unsigned char)(i * 7 + 1);
    for (size_t size = 1; size <= 5000; size = size * 3 + 1)
        for (size_t n = 0; n * size < sizeof out; n = next_size(n) + n / 2) {
            memset(out, 0, sizeof out);
            check(blz_par_fill(par, out, n, size, value, NULL) == 0);
            for (size_t i = 0; i < n; i++)
                check(memcmp(out + i * size, value, size) == 0);
            check(out[n * size] == 0);
        }
    check(blz_par_fill(par, out, 100, 8, "\1\1\1\1\1\1\1\1", NULL) == 0);
    for (size_t i = 0; i < 800; i++)
        check(out[i] == 1);
    check(blz_par_fill(par, out, 100, 0, NULL, NULL) == 0);
}

static void each_element_is_filled(void **state)
{
    (void)state;
    in_pools(fill_sizes, NULL);
}

/* ---- chunks and chains ---- */

static void chunks_make_up_the_whole(void **state)
{
    (void)state;
    for (size_t n = 0; n < 100; n++)
        for (size_t size = 1; size < 20; size++) {
            size_t at = 0;

            for (size_t c = 0; c < blz_par_chunks(n, size); c++) {
                assert_int_equal(blz_par_chunk_begin(c, size), at);
                at = blz_par_chunk_end(c, n, size);
                assert_true(at == n || at == (c + 1) * size);
            }
            assert_int_equal(at, n);
        }
}

enum { ARRAYS = 5 };

struct arrays {
    uint8_t seen[ARRAYS][400];
    size_t lens[ARRAYS];
};

static int mark_chain(blz_par *par, size_t begin, size_t end, void *arg)
{
    struct arrays *a = arg;
    size_t total = 0;

    (void)par;
    for (blz_par_piece p = {0}; blz_par_chain_next(&p, a->lens, ARRAYS, begin, end);) {
        check(p.which < ARRAYS && p.begin < p.end && p.end <= a->lens[p.which]);
        for (size_t i = p.begin; i < p.end; i++)
            a->seen[p.which][i]++;
        total += p.end - p.begin;
    }
    check(total == end - begin);
    return 0;
}

static void chain_arrays(blz_par *par, void *arg)
{
    (void)arg;
    for (size_t shape = 0; shape < 50; shape++) {
        struct arrays a = {0};
        size_t n = 0;

        for (size_t i = 0; i < ARRAYS; i++)
            n += a.lens[i] = mix(shape * ARRAYS + i) % 3 ? mix(shape + i) % 400 : 0;
        check(blz_par_for(par, n, mark_chain, &a, NULL) == 0);
        for (size_t i = 0; i < ARRAYS; i++)
            for (size_t k = 0; k < 400; k++)
                check(a.seen[i][k] == (k < a.lens[i]));
    }
}

static void a_chain_is_its_arrays_one_after_the_other(void **state)
{
    (void)state;
    in_pools(chain_arrays, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_element_is_mapped),        TEST(each_cell_is_visited),
        TEST(an_error_of_a_map_is_returned), TEST(each_element_is_filled),
        TEST(chunks_make_up_the_whole),      TEST(a_chain_is_its_arrays_one_after_the_other),
    };
    return RUN_TESTS(tests);
}
