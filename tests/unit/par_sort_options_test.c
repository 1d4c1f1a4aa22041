/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the options of a call promise, for each function of par_sort.h: a cancellation at each split
 * in turn, the grain, the way to wait. And the arguments at the edge: no elements, no bytes.
 *
 * This program has a blz_par_cancel_code of its own, which counts how often it is asked.
 */
#include "par/sort.h"

#include "par_items.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* A size that has no kernels of its own. */
typedef struct wide {
    item it;
    char rest[5];
} wide;

typedef struct call call;
static bool watched_less(const item *a, const item *b, call *c);

BLZ_PAR_DEFINE_SORT(item, item, watched_less(a, b, arg))
BLZ_PAR_DEFINE_SORT_BY_KEY(by_key, item, uint32_t, it->key)
BLZ_PAR_DEFINE_SORT_BY_CACHED_KEY(by_cached, item, uint32_t, it->key, *a < *b)

/* One call of a function. */
struct call {
    item *v, *out; /* out: of a merge */
    wide *w;       /* the same as v, for functions of any size */
    size_t n;
    /* Where a comparison is watched: the one who began, and how many jobs it had then. */
    blz_par *par;
    int64_t tail;
    uint32_t nr_forks;       /* comparisons with a fork that is open */
    uint32_t is_gated;       /* others wait until the stranger has been taken */
    uint32_t other_is_in;    /* another thread compares */
    uint32_t stranger_taken; /* a job that has nothing to do with it */
    const blz_par_options *options;
};

/* ---- cancellation that counts ---- */

static blz_par_cancel counted;
static int64_t looks_left;

void blz_par_cancel_set(blz_par_cancel *cancel, int error)
{
    int32_t none = 0;

    __atomic_compare_exchange_n(&cancel->code, &none, error, false, __ATOMIC_RELEASE,
                                __ATOMIC_RELAXED);
}

int blz_par_cancel_code(const blz_par_cancel *cancel)
{
    if (cancel == &counted && __atomic_fetch_sub(&looks_left, 1, __ATOMIC_RELAXED) == 1)
        blz_par_cancel_set(&counted, -ECANCELED);
    return __atomic_load_n(&cancel->code, __ATOMIC_ACQUIRE);
}

/* ---- comparisons ---- */

static void do_nothing(blz_par *par, blz_par_job *job)
{
    (void)par, (void)job;
}

/* Who began shows the oldest job that it has, until somebody is at it. */
static void get_helped(call *c)
{
    while (!__atomic_load_n(&c->other_is_in, __ATOMIC_ACQUIRE)) {
        blz_par_job job;

        blz_par_fork(c->par, &job, do_nothing);
        (void)!blz_par_unfork(c->par, &job);
        sched_yield();
    }
}

static bool watched_less(const item *a, const item *b, call *c)
{
    if (!c || !c->par)
        return a->key < b->key;
    if (blz__thread_locals()->par == c->par) {
        bool has_forked = c->par->tail > c->tail;
        c->nr_forks += has_forked;
        if (c->is_gated && has_forked)
            get_helped(c);
    } else {
        __atomic_store_n(&c->other_is_in, 1, __ATOMIC_RELEASE);
        while (c->is_gated && !__atomic_load_n(&c->stranger_taken, __ATOMIC_ACQUIRE))
            sched_yield();
    }
    return a->key < b->key;
}

static int compare_items(const void *a, const void *b, void *arg)
{
    item x, y;

    memcpy(&x, a, sizeof x); /* wide ones are not aligned */
    memcpy(&y, b, sizeof y);
    return watched_less(&x, &y, arg) ? -1 : watched_less(&y, &x, arg);
}

static uint64_t key_of(const void *element, void *arg)
{
    item it;

    (void)arg;
    memcpy(&it, element, sizeof it);
    return it.key;
}

/* ---- the functions ---- */

#define ON_V(name, ...)                                \
    static int name(blz_par *par, call *c)             \
    {                                                  \
        const blz_par_options *o = c->options;         \
        item *v = c->v, *out = c->out;                 \
        wide *w = c->w;                                \
        size_t n = c->n, m = c->n / 3, r = n - m;      \
                                                       \
        (void)v, (void)out, (void)w, (void)m, (void)r; \
        return __VA_ARGS__;                            \
    }

ON_V(typed, item_sort(par, v, n, c, o))
ON_V(typed_stable, item_stable_sort(par, v, n, c, o))
ON_V(typed_kth, item_kth(par, v, n, m, c, o))
ON_V(typed_merge, item_merge(par, out, v, m, v + m, r, c, o))
ON_V(key, by_key_sort(par, v, n, c, o))
ON_V(key_stable, by_key_stable_sort(par, v, n, c, o))
ON_V(key_kth, by_key_kth(par, v, n, m, c, o))
ON_V(key_merge, by_key_merge(par, out, v, m, v + m, r, c, o))
ON_V(cached, by_cached_sort(par, v, n, c, o))
ON_V(any, blz_par_sort(par, v, n, 8, compare_items, c, o))
ON_V(any_stable, blz_par_stable_sort(par, v, n, 8, compare_items, c, o))
ON_V(any_key, blz_par_sort_by_key(par, v, n, 8, key_of, c, o))
ON_V(any_kth, blz_par_kth(par, v, n, 8, m, compare_items, c, o))
ON_V(any_merge, blz_par_merge(par, out, v, m, v + m, r, 8, compare_items, c, o))
ON_V(wide_any, blz_par_sort(par, w, n, sizeof *w, compare_items, c, o))
ON_V(wide_stable, blz_par_stable_sort(par, w, n, sizeof *w, compare_items, c, o))
ON_V(wide_key, blz_par_sort_by_key(par, w, n, sizeof *w, key_of, c, o))
ON_V(wide_kth, blz_par_kth(par, w, n, sizeof *w, m, compare_items, c, o))
ON_V(wide_radix, blz_par_radix_sort(par, w, n, sizeof *w, 0, BLZ_PAR_KEY_U32, o))
ON_V(pair_radix, blz_par_radix_sort(par, v, n, 8, 0, BLZ_PAR_KEY_U32, o))
ON_V(alone_radix, blz_par_radix_sort(par, v, n, 8, 0, BLZ_PAR_KEY_U64, o))

enum kind { SORT, KTH, MERGE, WIDE, WIDE_KTH, BY_BITS };

static const struct function {
    int (*call)(blz_par *par, call *c);
    enum kind kind;
    bool is_watched; /* by watched_less, and in the way of a sort: forks, then comparisons */
} functions[] = {
    {typed, SORT, true},        {typed_stable, SORT, true}, {typed_kth, KTH, false},
    {typed_merge, MERGE, true}, {key, SORT, false},         {key_stable, SORT, false},
    {key_kth, KTH, false},      {key_merge, MERGE, false},  {cached, SORT, false},
    {any, SORT, true},          {any_stable, SORT, true},   {any_key, SORT, false},
    {any_kth, KTH, false},      {any_merge, MERGE, true},   {wide_any, WIDE, true},
    {wide_stable, WIDE, true},  {wide_key, WIDE, false},    {wide_kth, WIDE_KTH, false},
    {wide_radix, WIDE, false},  {pair_radix, SORT, false},  {alone_radix, BY_BITS, false},
};

enum { NR_FUNCTIONS = sizeof functions / sizeof *functions };

static int by_key_and_place(const void *a, const void *b)
{
    const item *x = a, *y = b;

    return x->key != y->key ? (x->key < y->key ? -1 : 1)
                            : (x->place > y->place) - (x->place < y->place);
}

static call new_call(const struct function *f, size_t n, int pattern,
                     const blz_par_options *options)
{
    call c = {.v = items_of(n, pattern), .n = n, .options = options};

    c.out = calloc(n + 1, sizeof *c.out);
    c.w = calloc(n + 1, sizeof *c.w);
    check(c.out && c.w);
    if (f->kind == MERGE) {
        qsort(c.v, n / 3, sizeof *c.v, by_key_and_place);
        qsort(c.v + n / 3, n - n / 3, sizeof *c.v, by_key_and_place);
    }
    for (size_t i = 0; i < n; i++)
        c.w[i].it = c.v[i];
    return c;
}

static void free_call(call *c)
{
    free(c->v);
    free(c->out);
    free(c->w);
}

static const item *result_of(const struct function *f, call *c)
{
    if (f->kind == WIDE || f->kind == WIDE_KTH)
        for (size_t i = 0; i < c->n; i++)
            c->v[i] = c->w[i].it;
    return f->kind == MERGE ? c->out : c->v;
}

static bool are_in_order(const struct function *f, const item *v, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (f->kind == BY_BITS ? v[i].place < v[i - 1].place : v[i].key < v[i - 1].key)
            return f->kind == KTH || f->kind == WIDE_KTH;
    return true;
}

/* ---- cancellation ---- */

/* True: it was over before it was cancelled. */
static bool check_cancelled_at(blz_par *par, const struct function *f, size_t n, int pattern,
                               int64_t look)
{
    blz_par_options options = {.cancel = &counted};
    call c = new_call(f, n, pattern, &options);
    uint64_t sum = sum_of(c.v, n);
    const item *result;
    int rc, code;

    counted.code = 0;
    looks_left = look;
    rc = f->call(par, &c);
    code = __atomic_load_n(&counted.code, __ATOMIC_RELAXED);
    result = result_of(f, &c);
    check(rc == code);
    check(sum_of(result, n) == sum);
    check(rc != 0 || are_in_order(f, result, n));
    free_call(&c);
    return rc == 0;
}

/* At each of the first looks, then at fewer and fewer. */
static void check_cancellation(blz_par *par, const struct function *f, size_t n, int pattern,
                               int64_t first)
{
    int64_t look = 1;

    while (!check_cancelled_at(par, f, n, pattern, look))
        look += look < first ? 1 : look;
}

static void check_all_cancellations(blz_par *par, void *arg)
{
    int64_t first = is_sanitized() ? 20 : nr_threads_of(par) == 1 ? 1000 : 50;

    (void)arg;
    for (int i = 0; i < NR_FUNCTIONS; i++) {
        const struct function *f = &functions[i];

        check_cancellation(par, f, 2000, PATTERN_RANDOM, first);
        check_cancellation(par, f, 17000, PATTERN_RUNS, 5);
        memory_fail_at(the_memory(), f->call == typed || f->call == wide_any, true);
        check_cancellation(par, f, 6000, PATTERN_RANDOM, 5);
        memory_fail_at(the_memory(), 0, false);
    }
    check_cancellation(par, &functions[0], 70001, PATTERN_RANDOM, 3); /* distributed by several */
    check_cancellation(par, &functions[NR_FUNCTIONS - 1], 70001, PATTERN_RANDOM, 3);
}

static void cancelled_at_each_split_in_turn_the_elements_are_all_there(void **state)
{
    (void)state;
    in_pool_of(1, check_all_cancellations, NULL);
    in_pool_of(2, check_all_cancellations, NULL);
}

/* ---- the grain ---- */

static void check_grain(blz_par *par, void *arg)
{
    blz_par_options coarse = {.grain = 70001}, fine = {.grain = 100};

    (void)arg;
    for (int i = 0; i < NR_FUNCTIONS; i++) {
        for (int pattern = PATTERN_RANDOM; pattern <= PATTERN_RUNS; pattern += PATTERN_RUNS) {
            call c = new_call(&functions[i], 70001, pattern, &coarse);

            c.par = par;
            c.tail = par->tail;
            check(functions[i].call(par, &c) == 0);
            check(c.nr_forks == 0 && c.other_is_in == 0);
            free_call(&c);
        }
        if (functions[i].is_watched) {
            call c = new_call(&functions[i], 70001, PATTERN_RANDOM, &fine);

            c.par = par;
            c.tail = par->tail;
            check(functions[i].call(par, &c) == 0);
            check(c.nr_forks > 0);
            free_call(&c);
        }
    }
}

static void parts_are_not_smaller_than_the_grain(void **state)
{
    (void)state;
    in_pool_of(2, check_grain, NULL);
}

/* ---- waiting ---- */

/*
 * One thread sorts; a second one takes a part, and does not go on; so the first one has to wait.
 * A third one has a job that has nothing to do with the sort. Only who waits by stealing takes it,
 * and only then the second one goes on.
 */
typedef struct scene {
    const struct function *f;
    call c;
    struct event third_is_in;
} scene;

static void take_stranger(blz_par *par, blz_par_job *job)
{
    (void)par, (void)job;
}

static void be_the_third(blz_par *par, void *arg)
{
    scene *s = arg;
    bool taken = false;

    event_post(&s->third_is_in);
    while (!__atomic_load_n(&s->c.other_is_in, __ATOMIC_ACQUIRE))
        sched_yield();
    while (!taken) {
        blz_par_job stranger;

        blz_par_fork(par, &stranger, take_stranger);
        sched_yield();
        taken = !blz_par_unfork(par, &stranger);
    }
    __atomic_store_n(&s->c.stranger_taken, 1, __ATOMIC_RELEASE);
}

static void be_the_first(blz_par *par, void *arg)
{
    scene *s = arg;
    s->c.tail = par->tail;
    s->c.is_gated = 1;
    s->c.par = par;
    check(s->f->call(par, &s->c) == 0);
    check(are_in_order(s->f, result_of(s->f, &s->c), s->c.n));
}

struct third {
    blz_pool *pool;
    scene *s;
};

static void *run_the_third(void *arg)
{
    struct third *t = arg;

    blz_pool_run(t->pool, be_the_third, t->s);
    return NULL;
}

static void check_waiting(const struct function *f, int pattern, bool memory)
{
    blz_par_options options = {.waiting = BLZ_PAR_WAIT_STEAL};
    scene s = {.f = f, .third_is_in = EVENT_INIT};
    struct third third = {new_pool_of(3), &s};
    pthread_t thread;

    s.c = new_call(f, 70001, pattern, &options);
    assert_int_equal(pthread_create(&thread, NULL, run_the_third, &third), 0);
    event_wait(&s.third_is_in, 1);
    memory_fail_at(the_memory(), !memory, true);
    blz_pool_run(third.pool, be_the_first, &s);
    memory_fail_at(the_memory(), 0, false);
    pthread_join(thread, NULL);
    free_call(&s.c);
    free_pool(third.pool);
}

static void a_sort_waits_in_the_way_it_was_told_to(void **state)
{
    (void)state;
    for (int i = 0; i < NR_FUNCTIONS; i++)
        if (functions[i].is_watched)
            check_waiting(&functions[i], PATTERN_RANDOM, true);
    check_waiting(&functions[0], PATTERN_RUNS, true);    /* that are merged */
    check_waiting(&functions[0], PATTERN_RANDOM, false); /* in place */
}

/* ---- nothing ---- */

static void check_nothing(blz_par *par, void *arg)
{
    item one = {1, 2}, out = {0, 0};

    (void)arg;
    check(item_sort(par, NULL, 0, NULL, NULL) == 0);
    check(item_stable_sort(par, NULL, 0, NULL, NULL) == 0);
    check(item_kth(par, NULL, 0, 0, NULL, NULL) == -EINVAL);
    check(item_merge(par, NULL, NULL, 0, NULL, 0, NULL, NULL) == 0);
    check(by_cached_sort(par, NULL, 0, NULL, NULL) == 0);
    check(blz_par_radix_sort_u64(par, NULL, 0, NULL) == 0);
    for (size_t size = 4; size <= sizeof(wide); size++) {
        check(blz_par_sort(par, NULL, 0, size, compare_items, NULL, NULL) == 0);
        check(blz_par_stable_sort(par, NULL, 0, size, compare_items, NULL, NULL) == 0);
        check(blz_par_sort_by_key(par, NULL, 0, size, key_of, NULL, NULL) == 0);
        check(blz_par_radix_sort(par, NULL, 0, size, 0, BLZ_PAR_KEY_U32, NULL) == 0);
        check(blz_par_kth(par, NULL, 0, size, 0, compare_items, NULL, NULL) == -EINVAL);
        check(blz_par_merge(par, NULL, NULL, 0, NULL, 0, size, compare_items, NULL, NULL) == 0);
    }
    for (int i = 0; i < 2; i++) { /* one of them empty, and NULL */
        const item *a = i ? &one : NULL, *b = i ? NULL : &one;

        out = (item){0, 0};
        check(item_merge(par, &out, a, a != NULL, b, b != NULL, NULL, NULL) == 0);
        check(out.key == 1 && out.place == 2);
        out = (item){0, 0};
        check(blz_par_merge(par, &out, a, a ? 4 : 0, b, b ? 4 : 0, 2, compare_items, NULL, NULL) ==
              0);
        check(out.key == 1 && out.place == 2);
    }
}

static void arrays_without_elements_may_be_null(void **state)
{
    (void)state;
    in_pool_of(1, check_nothing, NULL);
    in_pool_of(2, check_nothing, NULL);
}

static void check_no_bytes(blz_par *par, void *arg)
{
    item v = {1, 2};

    (void)arg;
    for (size_t n = 0; n <= 3; n++) {
        check(blz_par_sort(par, &v, n, 0, compare_items, NULL, NULL) == -EINVAL);
        check(blz_par_stable_sort(par, &v, n, 0, compare_items, NULL, NULL) == -EINVAL);
        check(blz_par_sort_by_key(par, &v, n, 0, key_of, NULL, NULL) == -EINVAL);
        check(blz_par_radix_sort(par, &v, n, 0, 0, BLZ_PAR_KEY_U32, NULL) == -EINVAL);
        check(blz_par_kth(par, &v, n, 0, 0, compare_items, NULL, NULL) == -EINVAL);
        check(blz_par_merge(par, &v, &v, n, &v, n, 0, compare_items, NULL, NULL) == -EINVAL);
    }
}

static void elements_of_no_bytes_are_refused(void **state)
{
    (void)state;
    in_pool_of(1, check_no_bytes, NULL);
}

/* ---- bad comparisons ---- */

static uint64_t moods;

/* Always before, always after, or at random, each time otherwise. */
static int compare_badly(const void *a, const void *b, void *arg)
{
    int how = *(const int *)arg;

    (void)a, (void)b;
    return how < 2 ? how * 2 - 1
                   : (int)(mix(__atomic_fetch_add(&moods, 1, __ATOMIC_RELAXED)) % 3) - 1;
}

static void check_bad(blz_par *par, size_t n, size_t size, int how)
{
    char *v = malloc(n * size + 1), *out = malloc(n * size + 1);
    uint64_t sum = 0, after[5] = {0};

    check(v && out);
    for (size_t i = 0; i < n * size; i++)
        v[i] = (char)(mix(i / size) >> i % size % 8 * 8);
#define SUM(of, to)                \
    for (size_t i = 0; i < n; i++) \
    (to) +=                        \
        mix((uint64_t)(unsigned char)(of)[i * size] * 7 + (unsigned char)(of)[(i + 1) * size - 1])
    SUM(v, sum);
    check(blz_par_sort(par, v, n, size, compare_badly, &how, NULL) == 0);
    SUM(v, after[0]);
    check(blz_par_stable_sort(par, v, n, size, compare_badly, &how, NULL) == 0);
    SUM(v, after[1]);
    check(blz_par_kth(par, v, n, size, n / 2, compare_badly, &how, NULL) == 0);
    SUM(v, after[2]);
    memory_fail_at(the_memory(), 1, true);
    check(blz_par_sort(par, v, n, size, compare_badly, &how, NULL) == 0);
    memory_fail_at(the_memory(), 0, false);
    SUM(v, after[3]);
    check(blz_par_merge(par, out, v, n / 3, v + n / 3 * size, n - n / 3, size, compare_badly, &how,
                        NULL) == 0);
    SUM(out, after[4]);
    for (int i = 0; i < 5; i++)
        check(after[i] == sum);
    free(v);
    free(out);
}

static void check_all_bad(blz_par *par, void *arg)
{
    static const size_t sizes[] = {1, 3, 4, 7, 8, 16, 17, 24, 32, 100};

    (void)arg;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int how = 0; how < 3; how++) {
            for (size_t n = 1; n <= 1500; n = n < 20 ? n + 1 : n + n / 2 + 1)
                check_bad(par, n, sizes[i], how);
            check_bad(par, 9000, sizes[i], how);
        }
}

/* Keys whose comparison is one that lies. */
static bool is_random_less(void)
{
    return mix(__atomic_fetch_add(&moods, 1, __ATOMIC_RELAXED)) & 1;
}

BLZ_PAR_DEFINE_SORT_BY_CACHED_KEY(bad_cached, item, uint32_t, it->key, is_random_less())
BLZ_PAR_DEFINE_SORT_BY_KEY(bad_key, item, uint64_t,
                           mix(__atomic_fetch_add(&moods, 1, __ATOMIC_RELAXED)))

static uint64_t random_key(const void *element, void *arg)
{
    (void)element, (void)arg;
    return mix(__atomic_fetch_add(&moods, 1, __ATOMIC_RELAXED));
}

static void check_bad_keys(blz_par *par, void *arg)
{
    (void)arg;
    for (size_t n = 1; n <= 70001; n = n < 20 ? n + 1 : 3 * n) {
        item *v = items_of(n, PATTERN_RANDOM), *out = items_of(n, PATTERN_EQUAL);
        uint64_t sum = sum_of(v, n);

        check(bad_cached_sort(par, v, n, NULL, NULL) == 0 && sum_of(v, n) == sum);
        check(bad_key_sort(par, v, n, NULL, NULL) == 0 && sum_of(v, n) == sum);
        check(bad_key_stable_sort(par, v, n, NULL, NULL) == 0 && sum_of(v, n) == sum);
        check(bad_key_kth(par, v, n, n / 2, NULL, NULL) == 0 && sum_of(v, n) == sum);
        check(bad_key_merge(par, out, v, n / 2, v + n / 2, n - n / 2, NULL, NULL) == 0);
        check(sum_of(out, n) == sum);
        check(blz_par_sort_by_key(par, v, n, sizeof *v, random_key, NULL, NULL) == 0);
        check(sum_of(v, n) == sum);
        free(v);
        free(out);
    }
}

static void functions_and_keys_that_lie_lose_no_element(void **state)
{
    (void)state;
    in_pool_of(1, check_all_bad, NULL);
    in_pool_of(2, check_bad_keys, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(cancelled_at_each_split_in_turn_the_elements_are_all_there),
        TEST(parts_are_not_smaller_than_the_grain),
        TEST(a_sort_waits_in_the_way_it_was_told_to),
        TEST(arrays_without_elements_may_be_null),
        TEST(elements_of_no_bytes_are_refused),
        TEST(functions_and_keys_that_lie_lose_no_element),
    };

    return RUN_TESTS(tests);
}
