/* SPDX-License-Identifier: Apache-2.0 */
/* The checkers of histories: they reject what is impossible, and nothing else. */
#include "harness.h"
#include "linear.h"

#include <string.h>

#define PUT(value, begin, end)              \
    {                                       \
        (begin), (end), (value), LINEAR_PUT \
    }
#define TAKE(value, begin, end)              \
    {                                        \
        (begin), (end), (value), LINEAR_TAKE \
    }

/* ---- a queue, for the search ---- */

struct queue {
    uint64_t first, last;
    uint64_t values[16];
};

static bool queue_apply(void *state, const struct linear_event *event)
{
    struct queue *queue = state;

    if (event->op == LINEAR_PUT) {
        queue->values[queue->last++] = event->value;
        return true;
    }
    return queue->first < queue->last && queue->values[queue->first++] == event->value;
}

static const struct linear_object queue_object = {sizeof(struct queue), queue_apply};

/* Both checkers, which must agree. */
static bool is_queue(const struct linear_event *events, size_t count)
{
    struct linear_event copy[16];
    bool found = linear_search(&queue_object, events, count);

    memcpy(copy, events, count * sizeof *events);
    assert_int_equal(linear_check_queue(copy, count) == NULL, found);
    return found;
}

#define IS_QUEUE(...)                                    \
    is_queue((const struct linear_event[]){__VA_ARGS__}, \
             sizeof((const struct linear_event[]){__VA_ARGS__}) / sizeof(struct linear_event))

static void what_is_in_order_is_accepted(void **state)
{
    (void)state;
    assert_true(IS_QUEUE(PUT(1, 0, 1)));
    assert_true(IS_QUEUE(PUT(1, 0, 1), TAKE(1, 2, 3)));
    assert_true(IS_QUEUE(PUT(1, 0, 1), PUT(2, 2, 3), TAKE(1, 4, 5), TAKE(2, 6, 7)));
    assert_true(IS_QUEUE(PUT(1, 0, 1), PUT(2, 2, 3), TAKE(1, 4, 5)));
}

/* Where operations overlap, either order will do. */
static void overlapping_operations_may_have_either_order(void **state)
{
    (void)state;
    assert_true(IS_QUEUE(TAKE(1, 0, 10), PUT(1, 2, 3)));
    assert_true(IS_QUEUE(PUT(1, 0, 4), PUT(2, 1, 5), TAKE(2, 6, 7), TAKE(1, 8, 9)));
    assert_true(IS_QUEUE(PUT(1, 0, 1), PUT(2, 2, 3), TAKE(2, 4, 8), TAKE(1, 5, 9)));
    assert_true(IS_QUEUE(PUT(1, 0, 9), TAKE(1, 1, 2), PUT(2, 3, 4), TAKE(2, 5, 6)));
}

static void a_value_out_of_nowhere_is_rejected(void **state)
{
    (void)state;
    assert_false(IS_QUEUE(TAKE(1, 0, 1)));
    assert_false(IS_QUEUE(PUT(1, 0, 1), TAKE(2, 2, 3)));
    assert_false(IS_QUEUE(TAKE(1, 0, 1), PUT(1, 2, 3)));
}

static void a_value_that_is_taken_twice_is_rejected(void **state)
{
    (void)state;
    assert_false(IS_QUEUE(PUT(1, 0, 1), TAKE(1, 2, 3), TAKE(1, 4, 5)));
    assert_false(IS_QUEUE(PUT(1, 0, 1), TAKE(1, 2, 5), TAKE(1, 3, 4)));
}

static void a_value_that_overtakes_is_rejected(void **state)
{
    (void)state;
    assert_false(IS_QUEUE(PUT(1, 0, 1), PUT(2, 2, 3), TAKE(2, 4, 5), TAKE(1, 6, 7)));
    assert_false(IS_QUEUE(PUT(1, 0, 1), PUT(3, 0, 9), PUT(2, 2, 3), TAKE(2, 4, 5), TAKE(3, 4, 5),
                          TAKE(1, 6, 7)));
}

static void a_value_that_is_left_behind_is_rejected(void **state)
{
    (void)state;
    assert_false(IS_QUEUE(PUT(1, 0, 1), PUT(2, 2, 3), TAKE(2, 4, 5)));
}

/* The two checkers know nothing of each other. */
static void both_checkers_agree_on_histories_at_random(void **state)
{
    uint64_t seed = 12;
    int possible = 0, all = 4000;

    (void)state;
    for (int i = 0; i < all; i++) {
        struct linear_event events[10];
        size_t count = 0;
        for (uint64_t value = 1; value <= 5; value++) {
            int64_t begin = random_below(&seed, 20), end = begin + 1 + random_below(&seed, 8);
            events[count++] = (struct linear_event)PUT(value, begin, end);
            begin += random_below(&seed, 12);
            if (random_below(&seed, 8) > 0)
                events[count++] =
                    (struct linear_event)TAKE(value, begin, begin + 1 + random_below(&seed, 8));
        }
        possible += is_queue(events, count);
    }
    assert_true(possible > all / 20 && possible < all - all / 20); /* there were both kinds */
}

/* ---- something else: a register ---- */

static bool register_apply(void *state, const struct linear_event *event)
{
    uint64_t *value = state;

    if (event->op == LINEAR_PUT)
        *value = event->value;
    return *value == event->value;
}

static void other_objects_can_be_searched(void **state)
{
    static const struct linear_object object = {sizeof(uint64_t), register_apply};
    const struct linear_event good[] = {PUT(1, 0, 1), PUT(2, 2, 9), TAKE(1, 3, 4), TAKE(2, 5, 6)};
    const struct linear_event bad[] = {PUT(1, 0, 1), PUT(2, 2, 9), TAKE(2, 3, 4), TAKE(1, 5, 6)};

    (void)state;
    assert_true(linear_search(&object, good, 4));
    assert_false(linear_search(&object, bad, 4)); /* the new value, then the old one again */
}

static void logs_are_joined(void **state)
{
    struct linear_log a = {0}, b = {0};

    (void)state;
    for (uint64_t i = 0; i < 100; i++) {
        linear_note(&a, LINEAR_PUT, i, linear_now());
        linear_note(&b, LINEAR_TAKE, i, linear_now());
    }
    linear_join(&a, &b);
    assert_int_equal(a.count, 200);
    assert_int_equal(b.count, 0);
    assert_null(linear_check_queue(a.events, a.count));
    linear_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_in_order_is_accepted),
        TEST(overlapping_operations_may_have_either_order),
        TEST(a_value_out_of_nowhere_is_rejected),
        TEST(a_value_that_is_taken_twice_is_rejected),
        TEST(a_value_that_overtakes_is_rejected),
        TEST(a_value_that_is_left_behind_is_rejected),
        TEST(both_checkers_agree_on_histories_at_random),
        TEST(other_objects_can_be_searched),
        TEST(logs_are_joined),
    };
    return RUN_TESTS(tests);
}
