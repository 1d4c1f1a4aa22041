/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the explorer itself: the heap, races on plain memory, and the means that a test has;
 * that their misuse is found, too.
 *
 * `expect` marks a model that must fail with those words; the others must hold.
 */
#include "base/atomic.h"

#include <stdlib.h>
#include <string.h>

static uint32_t word, turn;
static uint32_t data;

static void reset(void)
{
    word = turn = data = 0;
}

static void run_two(void (*first)(void *), void (*second)(void *))
{
    model_thread a = model_start(first, NULL), b = model_start(second, NULL);
    model_join(a);
    model_join(b);
}

/* ---- The heap ---- */

struct node {
    uint32_t value;
    struct node *next;
};

static struct node *shared;

static struct node *node_new(uint32_t value)
{
    struct node *node = model_alloc(sizeof *node, _Alignof(struct node));

    *node = (struct node){value, NULL};
    return node;
}

static void free_shared(void *unused)
{
    (void)unused;
    model_free(blz__swap(&shared, NULL, ACQUIRE));
}

static void read_shared(void *unused)
{
    struct node *node = blz__load(&shared, ACQUIRE);

    (void)unused;
    if (node != NULL)
        (void)blz__load(&node->value, RELAXED);
}

static void use_after_free(void)
{
    shared = node_new(1);
    run_two(read_shared, free_shared);
}

static void double_free(void)
{
    struct node *node = node_new(1);

    model_free(node);
    model_free(node);
}

static void leak(void)
{
    node_new(1);
}

static void overrun(void)
{
    struct node *node = node_new(1);

    /* Where the bytes after the node would be. */
    blz__plain_read(&node[1].value);
    model_free(node);
}

/* A stack whose pop compares only the pointer of the head. */
static struct node *head;
static struct node nodes[3];

static struct node *stack_pop(void)
{
    struct node *top = blz__load(&head, ACQUIRE);

    while (top != NULL) {
        struct node *next = blz__load(&top->next, RELAXED);
        if (blz__cas(&head, &top, next, ACQ_REL, ACQUIRE))
            return top;
    }
    return NULL;
}

static void stack_push(struct node *node)
{
    struct node *top = blz__load(&head, RELAXED);

    do
        blz__store(&node->next, top, RELAXED);
    while (!blz__cas(&head, &top, node, RELEASE, RELAXED));
}

static void pop_one(void *unused)
{
    struct node *node = stack_pop();

    (void)unused;
    if (node != NULL)
        model_assert(blz__fetch_add(&node->value, 1, RELAXED) == 0);
}

static void pop_two_push_one(void *unused)
{
    struct node *first = stack_pop(), *second = stack_pop();

    (void)unused;
    if (second != NULL)
        model_assert(blz__fetch_add(&second->value, 1, RELAXED) == 0);
    if (first != NULL)
        stack_push(first);
}

/* The second node is popped by one thread, and popped again after the ABA of the other. */
static void aba(void)
{
    memset(nodes, 0, sizeof nodes);
    head = NULL;
    stack_push(&nodes[1]);
    stack_push(&nodes[0]);
    run_two(pop_one, pop_two_push_one);
    struct node *left = stack_pop();
    if (left != NULL)
        model_assert(blz__fetch_add(&left->value, 1, RELAXED) == 0);
}

/* ---- Plain memory ---- */

static void publish(void *unused)
{
    (void)unused;
    blz__plain_write(&data);
    data = 42;
    blz__store(&word, 1, RELEASE);
}

static void publish_relaxed(void *unused)
{
    (void)unused;
    blz__plain_write(&data);
    data = 42;
    blz__store(&word, 1, RELAXED);
}

static void publish_with_fence(void *unused)
{
    (void)unused;
    blz__plain_write(&data);
    data = 42;
    blz__fence_seq_cst();
}

static void consume(void *unused)
{
    (void)unused;
    if (blz__load(&word, ACQUIRE) == 1) {
        blz__plain_read(&data);
        model_assert(data == 42);
    }
}

static void consume_unchecked(void *unused)
{
    (void)unused;
    blz__fence_seq_cst();
    blz__plain_read(&data);
}

static void handed_over_data_is_no_race(void)
{
    reset();
    run_two(publish, consume);
}

static void relaxed_hand_over_is_a_race(void)
{
    reset();
    run_two(publish_relaxed, consume);
}

/* Fences alone synchronise nothing. */
static void fences_do_not_hide_a_race(void)
{
    reset();
    run_two(publish_with_fence, consume_unchecked);
}

static void read_before_write_is_a_race(void)
{
    reset();
    model_thread reader = model_start(consume_unchecked, NULL);
    blz__plain_write(&data);
    model_join(reader);
}

static void read_then_tell(void *unused)
{
    (void)unused;
    blz__plain_read(&data);
    blz__store(&word, 1, RELAXED);
}

static void write_when_told(void *unused)
{
    (void)unused;
    if (blz__load(&word, RELAXED) == 1)
        blz__plain_write(&data);
}

static void relaxed_taking_back_is_a_race(void)
{
    reset();
    run_two(read_then_tell, write_when_told);
}

static void publish_after_fence(void *unused)
{
    (void)unused;
    blz__plain_write(&data);
    data = 42;
    blz__fence_seq_cst();
    blz__store(&word, 1, RELAXED);
}

static void consume_after_fence(void *unused)
{
    (void)unused;
    if (blz__load(&word, RELAXED) == 1) {
        blz__fence_seq_cst();
        blz__plain_read(&data);
        model_assert(data == 42);
    }
}

static void fences_around_a_flag_are_no_race(void)
{
    reset();
    run_two(publish_after_fence, consume_after_fence);
}

/* ---- The test's own mistakes, and its means ---- */

static _Thread_local uint32_t my_number;

static void set_my_number(void *number)
{
    model_assert(my_number == 0);
    my_number = *(uint32_t *)number;
    blz__fetch_add(&word, 1, RELAXED);
    model_assert(my_number == *(uint32_t *)number);
}

static void thread_locals_are_kept_apart(void)
{
    static uint32_t one = 1, two = 2;

    reset();
    my_number = 7;
    model_thread a = model_start(set_my_number, &one), b = model_start(set_my_number, &two);
    blz__fetch_add(&word, 1, RELAXED);
    model_join(a);
    model_join(b);
    model_assert(my_number == 7);
}

static void give_turn(void *unused)
{
    (void)unused;
    blz__store(&turn, 1, RELAXED);
}

static void add_to_data(void *unused)
{
    (void)unused;
    blz__plain_write(&data);
    data++;
}

static void many_threads_in_turn(void)
{
    reset();
    for (int i = 0; i < 3 * MODEL_MAX_THREADS; i++)
        model_join(model_start(add_to_data, NULL));
    model_assert(data == 3 * MODEL_MAX_THREADS);
}

static void every_choice_is_taken(void)
{
    model_assert(model_choose(3) != 2 || model_choose(2) != 1);
}

static void forgotten_memory_begins_anew(void)
{
    reset();
    run_two(give_turn, give_turn);
    model_forget(&turn, sizeof turn);
    turn = 5;
    model_assert(blz__load(&turn, RELAXED) == 5);
}

static void plain_writes_begin_anew(void)
{
    reset();
    run_two(give_turn, give_turn);
    turn = 5;
    model_assert(blz__load(&turn, RELAXED) == 5);
}

static void a_new_thread_can_come_first(void)
{
    reset();
    model_thread thread = model_start(give_turn, NULL);
    uint32_t found = blz__load(&turn, RELAXED);
    model_join(thread);
    model_assert(found == 0);
}

static void depends_on_the_last_execution(void)
{
    static uint32_t executions;

    reset();
    if (executions++ % 2 == 0)
        run_two(give_turn, give_turn);
    else
        model_choose(3);
}

static void mixed_sizes(void)
{
    static uint64_t both;

    blz__store(&both, 1, RELAXED);
    (void)blz__load((uint32_t *)(void *)&both, RELAXED);
}

static void overlapping_sizes(void)
{
    static union {
        uint64_t whole;
        uint32_t half[2];
    } both;

    blz__store(&both.whole, 1, RELAXED);
    (void)blz__load(&both.half[1], RELAXED);
}

static void call_abort(void)
{
    abort();
}

static void abort_is_a_failure(void)
{
    reset();
    call_abort();
}

static const struct model models[] = {
    {"use_after_free", use_after_free, {.expect = "use after free"}},
    {"double_free", double_free, {.expect = "double free"}},
    {"leak", leak, {.expect = "leak"}},
    {"allowed_leak", leak, {.allow_leaks = true}},
    {"overrun", overrun, {.expect = "outside of block"}},
    {"aba", aba, {.expect = "fetch_add"}},

    {"handed_over_data_is_no_race", handed_over_data_is_no_race, {.preemptions = MODEL_UNLIMITED}},
    {"relaxed_hand_over_is_a_race", relaxed_hand_over_is_a_race, {.expect = "data race"}},
    {"fences_do_not_hide_a_race", fences_do_not_hide_a_race, {.expect = "data race"}},
    {"relaxed_taking_back_is_a_race", relaxed_taking_back_is_a_race, {.expect = "data race"}},
    {"fences_around_a_flag_are_no_race",
     fences_around_a_flag_are_no_race,
     {.preemptions = MODEL_UNLIMITED}},
    {"read_before_write_is_a_race", read_before_write_is_a_race, {.expect = "data race"}},

    {"thread_locals_are_kept_apart",
     thread_locals_are_kept_apart,
     {.preemptions = MODEL_UNLIMITED}},
    {"many_threads_in_turn", many_threads_in_turn, {0}},
    {"every_choice_is_taken", every_choice_is_taken, {.expect = "model_choose(2) != 1"}},
    {"forgotten_memory_begins_anew", forgotten_memory_begins_anew, {0}},
    {"plain_writes_begin_anew", plain_writes_begin_anew, {0}},
    {"a_new_thread_can_come_first", a_new_thread_can_come_first, {.expect = "found == 0"}},
    {"depends_on_the_last_execution",
     depends_on_the_last_execution,
     {.expect = "not deterministic"}},
    {"mixed_sizes", mixed_sizes, {.expect = "is accessed as 4 bytes"}},
    {"overlapping_sizes", overlapping_sizes, {.expect = "overlaps another"}},
    {"abort_is_a_failure", abort_is_a_failure, {.expect = "abort"}},
};

int main(int argc, char **argv)
{
    model_thread_local(&my_number, sizeof my_number);
    return model_main(argc, argv, models, sizeof models / sizeof models[0]);
}
