/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel search and counting against loops; early ends; cancellation. */
#include "par.h"

#include <string.h>

enum { MOST = 4096 };

/* ---- against loops ---- */

struct haystack {
    uint8_t v[MOST];
};

BLZ_PAR_DEFINE_PREDICATE(is_set, const struct haystack, h, i, h->v[i] != 0)

static bool is_set(size_t i, void *arg)
{
    return ((struct haystack *)arg)->v[i] != 0;
}

struct answers {
    size_t first, last, count;
};

static struct answers answers_of(const struct haystack *h, size_t n)
{
    struct answers a = {n, n, 0};

    for (size_t i = 0; i < n; i++)
        if (h->v[i]) {
            a.first = a.count++ ? a.first : i;
            a.last = i;
        }
    return a;
}

static void check_inlined(blz_par *par, const struct haystack *h, size_t n, const struct answers *a)
{
    size_t index;
    bool yes;

    check(is_set_find_first(par, &index, n, h, NULL) == 0 && index == a->first);
    check(is_set_find_last(par, &index, n, h, NULL) == 0 && index == a->last);
    check(is_set_find_any(par, &index, n, h, NULL) == 0);
    check(a->count ? index < n && h->v[index] : index == n);
    check(is_set_any(par, &yes, n, h, NULL) == 0 && yes == (a->count > 0));
    check(is_set_all(par, &yes, n, h, NULL) == 0 && yes == (a->count == n));
    check(is_set_count(par, &index, n, h, NULL) == 0 && index == a->count);
}

static void check_called(blz_par *par, struct haystack *h, size_t n, const struct answers *a)
{
    size_t index;
    bool yes;

    check(blz_par_find_first(par, &index, n, is_set, h, NULL) == 0 && index == a->first);
    check(blz_par_find_last(par, &index, n, is_set, h, NULL) == 0 && index == a->last);
    check(blz_par_find_any(par, &index, n, is_set, h, NULL) == 0);
    check(a->count ? index < n && h->v[index] : index == n);
    check(blz_par_any(par, &yes, n, is_set, h, NULL) == 0 && yes == (a->count > 0));
    check(blz_par_all(par, &yes, n, is_set, h, NULL) == 0 && yes == (a->count == n));
    check(blz_par_count(par, &index, n, is_set, h, NULL) == 0 && index == a->count);
}

/* None, all, one at i, two, about one in `rarity`. */
static void fill(struct haystack *h, size_t n, size_t shape)
{
    memset(h, shape == 1, sizeof *h);
    for (size_t i = 0; shape >= 2 && i < n; i++)
        h->v[i] = shape == 2   ? i == n / 2
                  : shape == 3 ? i == n / 3 || i == n - 1
                               : mix(i * shape) % shape == 0;
    if (shape == 5 && n)
        memset(h->v, 1, n - 1);
}

static void search_one_size(blz_par *par, size_t n, size_t shape)
{
    static struct haystack h;
    struct answers a;

    fill(&h, n, shape);
    a = answers_of(&h, n);
    check_inlined(par, &h, n, &a);
    check_called(par, &h, n, &a);
}

static void search_all_sizes(blz_par *par, void *arg)
{
    (void)arg;
    for (size_t n = 0; n <= MOST; n += is_sanitized() ? 9 : 1)
        search_one_size(par, n, n % 7);
}

static void answers_are_those_of_a_loop_for_every_size(void **state)
{
    (void)state;
    in_pool_of(2, search_all_sizes, NULL);
}

static void search_shapes(blz_par *par, void *arg)
{
    (void)arg;
    for (size_t n = 0; n <= MOST; n = next_size(n) + n / 3)
        for (size_t shape = 0; shape < 60; shape = shape * 2 + 1)
            search_one_size(par, n, shape);
}

static void answers_are_those_of_a_loop_in_every_pool(void **state)
{
    (void)state;
    in_pools(search_shapes, NULL);
}

/* ---- early ends ---- */

struct counted {
    size_t wanted, calls;
};

static bool is_wanted(size_t i, void *arg)
{
    struct counted *c = arg;

    __atomic_fetch_add(&c->calls, 1, __ATOMIC_RELAXED);
    return i == c->wanted;
}

/* Alone: not one element too many. */
static void count_calls(blz_par *par, void *arg)
{
    struct counted first = {.wanted = 1000}, last = {.wanted = 1000}, any = {.wanted = 1000};
    size_t index;

    (void)arg;
    check(blz_par_find_first(par, &index, MOST, is_wanted, &first, NULL) == 0 && index == 1000);
    check(blz_par_find_last(par, &index, MOST, is_wanted, &last, NULL) == 0 && index == 1000);
    check(blz_par_find_any(par, &index, MOST, is_wanted, &any, NULL) == 0 && index == 1000);
    check(first.calls == 1001 && last.calls == MOST - 1000 && any.calls == 1001);
}

static void a_search_ends_with_its_match(void **state)
{
    (void)state;
    in_pool_of(1, count_calls, NULL);
}

/* With a cancellation the loop is cut, also in a pool of one: parts behind a match are left out. */
static void count_calls_of_parts(blz_par *par, void *arg)
{
    blz_par_cancel cancel = {0};
    blz_par_options options = {.cancel = &cancel};
    struct counted c = {.wanted = 0};
    size_t index;

    (void)arg;
    check(blz_par_find_first(par, &index, MOST, is_wanted, &c, &options) == 0 && index == 0);
    check(c.calls == 1);
    c.calls = 0;
    check(blz_par_find_any(par, &index, MOST, is_wanted, &c, &options) == 0 && index == 0);
    check(c.calls == 1);
}

static void nobody_looks_behind_a_match(void **state)
{
    (void)state;
    in_pool_of(1, count_calls_of_parts, NULL);
}

/* ---- cancellation ---- */

struct cancelling {
    blz_par_cancel cancel;
    size_t at;
};

static bool cancels(size_t i, void *arg)
{
    struct cancelling *c = arg;

    if (i == c->at)
        blz_par_cancel_set(&c->cancel, -EINTR);
    return false;
}

static void cancel_searches(blz_par *par, void *arg)
{
    (void)arg;
    for (size_t at = 0; at < MOST / 2; at += 99) {
        struct cancelling c = {.at = at};
        blz_par_options options = {.cancel = &c.cancel};
        size_t index;
        int rc = blz_par_find_any(par, &index, MOST, cancels, &c, &options);

        check((rc == -EINTR || rc == 0) && index == MOST);
        check(blz_par_find_first(par, &index, MOST, cancels, &c, &options) == -EINTR);
        check(index == MOST);
    }
}

static void a_search_can_be_cancelled(void **state)
{
    (void)state;
    in_pools(cancel_searches, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(answers_are_those_of_a_loop_for_every_size),
        TEST(answers_are_those_of_a_loop_in_every_pool),
        TEST(a_search_ends_with_its_match),
        TEST(nobody_looks_behind_a_match),
        TEST(a_search_can_be_cancelled),
    };
    return RUN_TESTS(tests);
}
