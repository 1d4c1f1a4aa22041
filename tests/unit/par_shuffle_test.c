/* SPDX-License-Identifier: Apache-2.0 */
/* Shuffling: nothing is lost, the order is the seed's alone, and fair. */
#include "par.h"

#include <stdlib.h>
#include <string.h>

enum { LARGE = 100000 }; /* several buckets */

static void count_up(uint64_t *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] = i;
}

static bool is_permutation(const uint64_t *v, size_t n)
{
    bool *seen = calloc(n + 1, 1), good = true;

    check(seen);
    for (size_t i = 0; i < n && good; i++) {
        good = v[i] < n && !seen[v[i]];
        if (good)
            seen[v[i]] = true;
    }
    free(seen);
    return good;
}

/* ---- nothing is lost ---- */

static void check_sizes(blz_par *par, void *arg)
{
    uint64_t *v = malloc(4096 * sizeof *v);

    (void)arg;
    check(v);
    for (size_t n = 0; n <= 4096; n = next_size(n)) {
        count_up(v, n);
        check(blz_par_shuffle(par, v, n, sizeof *v, n, NULL) == 0);
        check(is_permutation(v, n));
    }
    free(v);
}

static void all_elements_are_there_afterwards(void **state)
{
    (void)state;
    in_pools(check_sizes, NULL);
}

/* Elements of `size` bytes that begin with their number. */
static void check_element_size(blz_par *par, size_t n, size_t size)
{
    char *v = malloc(n * size);
    uint64_t *numbers = calloc(n, sizeof *numbers);

    check(v && numbers);
    for (uint32_t i = 0; i < n; i++) {
        memset(v + i * size, (char)i, size);
        memcpy(v + i * size, &i, 4);
    }
    check(blz_par_shuffle(par, v, n, size, 3, NULL) == 0);
    for (size_t i = 0; i < n; i++) {
        memcpy(&numbers[i], v + i * size, 4);
        for (size_t k = 4; k < size; k++)
            check(v[i * size + k] == (char)numbers[i]);
    }
    check(is_permutation(numbers, n));
    free(v);
    free(numbers);
}

static void check_element_sizes(blz_par *par, void *arg)
{
    (void)arg;
    for (size_t n = 100; n <= 40000; n *= 400)
        for (size_t size = 4; size <= 16; size += size < 9 ? 1 : 7)
            check_element_size(par, n, size);
    check_element_size(par, 50, 1000);
}

static void elements_may_be_of_any_size(void **state)
{
    (void)state;
    in_pools(check_element_sizes, NULL);
}

/* ---- the seed's alone ---- */

static void check_same(blz_par *par, void *arg)
{
    uint64_t **first = arg, *v = malloc(LARGE * sizeof *v);

    check(v);
    count_up(v, LARGE);
    check(blz_par_shuffle(par, v, LARGE, sizeof *v, 42, NULL) == 0);
    check(is_permutation(v, LARGE));
    if (!*first) {
        *first = v;
        return;
    }
    check(memcmp(v, *first, LARGE * sizeof *v) == 0);
    count_up(v, LARGE);
    check(blz_par_shuffle(par, v, LARGE, sizeof *v, 43, &(blz_par_options){.grain = 1000}) == 0);
    check(memcmp(v, *first, LARGE * sizeof *v) != 0);
    free(v);
}

static void the_order_depends_on_the_seed_and_not_on_the_threads(void **state)
{
    uint64_t *first = NULL;

    (void)state;
    in_pools(check_same, &first);
    free(first);
}

/* ---- fair ---- */

/* Seeds 0 to 23999, four elements: each of 24 orders about 1000 times (six sigmas: 186). */
static void check_orders(blz_par *par, void *arg)
{
    static int counts[256];
    int orders = 0;

    (void)arg;
    for (uint64_t seed = 0; seed < 24000; seed++) {
        uint8_t v[4] = {0, 1, 2, 3};
        check(blz_par_shuffle(par, v, 4, 1, seed, NULL) == 0);
        counts[v[0] | v[1] << 2 | v[2] << 4 | v[3] << 6]++;
    }
    for (int k = 0; k < 256; k++) {
        orders += counts[k] > 0;
        check(counts[k] == 0 || (counts[k] > 814 && counts[k] < 1186));
    }
    check(orders == 24);
}

static void every_order_is_equally_likely(void **state)
{
    (void)state;
    in_pool_of(1, check_orders, NULL);
}

/* Of a large one: few stay where they were, neighbours are as often up as down, and each part of
 * the input is everywhere in the output. */
static void check_large(blz_par *par, void *arg)
{
    uint64_t *v = malloc(LARGE * sizeof *v);
    size_t same = 0, up = 0, zones[10][10] = {{0}};

    (void)arg;
    check(v);
    count_up(v, LARGE);
    check(blz_par_shuffle(par, v, LARGE, sizeof *v, 1, NULL) == 0);
    for (size_t i = 0; i < LARGE; i++) {
        same += v[i] == i;
        up += i > 0 && v[i] > v[i - 1];
        zones[i / (LARGE / 10)][v[i] / (LARGE / 10)]++;
    }
    check(same < 12);
    check(up > LARGE / 2 - 600 && up < LARGE / 2 + 600);
    for (int k = 0; k < 100; k++)
        check(zones[k / 10][k % 10] > 820 && zones[k / 10][k % 10] < 1180);
    free(v);
}

static void a_large_one_is_mixed_everywhere(void **state)
{
    (void)state;
    in_pool_of(2, check_large, NULL);
}

/* ---- errors ---- */

static void check_errors(blz_par *par, void *arg)
{
    uint64_t *v = malloc(LARGE * sizeof *v);
    blz_par_cancel cancel = {0};
    int rc = -ENOMEM;
    int64_t nth = 0;

    (void)arg;
    check(v);
    count_up(v, LARGE);
    while (rc == -ENOMEM) {
        memory_fail_at(the_memory(), ++nth, false);
        rc = blz_par_shuffle(par, v, LARGE, sizeof *v, 9, NULL);
        memory_fail_at(the_memory(), 0, false);
        check(is_permutation(v, LARGE));
    }
    check(rc == 0 && nth > 1);
    blz_par_cancel_set(&cancel, -ECANCELED);
    check(blz_par_shuffle(par, v, 0, 8, 9, &(blz_par_options){.cancel = &cancel}) == -ECANCELED);
    check(blz_par_shuffle(par, v, LARGE, 8, 9, &(blz_par_options){.cancel = &cancel}) ==
          -ECANCELED);
    check(is_permutation(v, LARGE));
    free(v);
}

static void an_error_loses_nothing(void **state)
{
    (void)state;
    in_pools(check_errors, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_elements_are_there_afterwards),
        TEST(elements_may_be_of_any_size),
        TEST(the_order_depends_on_the_seed_and_not_on_the_threads),
        TEST(every_order_is_equally_likely),
        TEST(a_large_one_is_mixed_everywhere),
        TEST(an_error_loses_nothing),
    };
    return RUN_TESTS(tests);
}
