/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkers of histories (linear.h).
 *
 * A history of a queue with different values is impossible if, and only if, one of these holds
 * (Bouajjani, Emmi, Enea, Hamza: On reducing linearizability to state reachability, 2015; without
 * operations that find the queue empty):
 *
 * - a value is taken that was never put, or before it was put;
 * - a value is taken twice;
 * - a was put before b was, and b was taken although a was taken later, or never.
 *
 * "Before" is that one operation ended before the other began. The last one is found in one pass in
 * the order of time: of all values put before b, which was taken last?
 */
#include "linear.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- logs ---- */

int64_t linear_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * (int64_t)1000000000 + now.tv_nsec;
}

static void make_room(struct linear_log *log, size_t more)
{
    if (log->count + more <= log->capacity)
        return;
    log->capacity = 2 * (log->count + more);
    log->events = realloc(log->events, log->capacity * sizeof *log->events);
    if (!log->events)
        abort();
}

void linear_note(struct linear_log *log, uint32_t op, uint64_t value, int64_t begin)
{
    make_room(log, 1);
    log->events[log->count++] = (struct linear_event){begin, linear_now(), value, op};
}

void linear_join(struct linear_log *log, struct linear_log *from)
{
    make_room(log, from->count);
    if (from->count > 0)
        memcpy(log->events + log->count, from->events, from->count * sizeof *from->events);
    log->count += from->count;
    linear_free(from);
}

void linear_free(struct linear_log *log)
{
    free(log->events);
    *log = (struct linear_log){NULL, 0, 0};
}

/* ---- queues ---- */

/* The life of a value. */
struct life {
    int64_t put_begin, put_end;
    int64_t take_begin, take_end; /* INT64_MAX: never */
};

static int by_value(const void *a, const void *b)
{
    const struct linear_event *x = a, *y = b;

    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

static int by_put_begin(const void *a, const void *b)
{
    const struct life *const *x = a, *const *y = b;

    return (*x)->put_begin < (*y)->put_begin ? -1 : (*x)->put_begin > (*y)->put_begin;
}

static int by_put_end(const void *a, const void *b)
{
    const struct life *const *x = a, *const *y = b;

    return (*x)->put_end < (*y)->put_end ? -1 : (*x)->put_end > (*y)->put_end;
}

/* The events of one value, sorted: a put, perhaps a take, nothing else. */
static const char *read_life(const struct linear_event *events, size_t count, struct life *life)
{
    if (events[0].op != LINEAR_PUT)
        return "a value was taken that had never been put";
    if (count > 1 && events[1].op == LINEAR_PUT)
        return "a value was put twice: the test is wrong";
    if (count > 2)
        return "a value was taken twice";
    *life = (struct life){events[0].begin, events[0].end, INT64_MAX, INT64_MAX};
    if (count > 1) {
        life->take_begin = events[1].begin;
        life->take_end = events[1].end;
    }
    if (life->take_end < life->put_begin)
        return "a value was taken before it was put";
    return NULL;
}

static const char *read_lives(struct linear_event *events, size_t count, struct life *lives,
                              size_t *nr_lives)
{
    const char *wrong = NULL;

    qsort(events, count, sizeof *events, by_value);
    for (size_t i = 0, next; i < count && !wrong; i = next) {
        for (next = i + 1; next < count && events[next].value == events[i].value; next++)
            ;
        wrong = read_life(events + i, next - i, &lives[(*nr_lives)++]);
    }
    return wrong;
}

static const char *check_order(struct life **by_begin, struct life **by_end, size_t count)
{
    int64_t last_taken = INT64_MIN; /* of what was put before; when its take began */

    qsort(by_begin, count, sizeof *by_begin, by_put_begin);
    qsort(by_end, count, sizeof *by_end, by_put_end);
    for (size_t b = 0, a = 0; b < count; b++) {
        for (; a < count && by_end[a]->put_end < by_begin[b]->put_begin; a++)
            if (by_end[a]->take_begin > last_taken)
                last_taken = by_end[a]->take_begin;
        if (by_begin[b]->take_end < last_taken)
            return "a value was taken before another that had been put before it";
    }
    return NULL;
}

const char *linear_check_queue(struct linear_event *events, size_t count)
{
    struct life *lives = malloc((count + 1) * sizeof *lives);
    struct life **by_begin = malloc((count + 1) * sizeof *by_begin);
    struct life **by_end = malloc((count + 1) * sizeof *by_end);
    const char *wrong;
    size_t nr_lives = 0;

    if (!lives || !by_begin || !by_end)
        abort();
    wrong = read_lives(events, count, lives, &nr_lives);
    for (size_t i = 0; i < nr_lives; i++)
        by_begin[i] = by_end[i] = &lives[i];
    if (!wrong)
        wrong = check_order(by_begin, by_end, nr_lives);
    free(lives);
    free(by_begin);
    free(by_end);
    return wrong;
}

/* ---- anything, if it is short ---- */

struct memory_of_search {
    uint64_t done;
    unsigned char state[LINEAR_STATE_MAX];
    struct memory_of_search *next;
};

enum { BUCKETS = 4096 };

struct search {
    const struct linear_object *object;
    const struct linear_event *events;
    size_t count;
    struct memory_of_search *buckets[BUCKETS];
};

/* False: we have been here, and it led nowhere. */
static bool is_new(struct search *search, uint64_t done, const unsigned char *state)
{
    struct memory_of_search **bucket = &search->buckets[done * 0x9e3779b97f4a7c15u >> 52], *been;

    for (been = *bucket; been; been = been->next)
        if (been->done == done && memcmp(been->state, state, search->object->size) == 0)
            return false;
    been = malloc(sizeof *been);
    if (!been)
        abort();
    been->done = done;
    memcpy(been->state, state, LINEAR_STATE_MAX);
    been->next = *bucket;
    *bucket = been;
    return true;
}

/* When the first operation that is not done ended: who began later cannot come before it. */
static int64_t first_end(const struct search *search, uint64_t done)
{
    int64_t end = INT64_MAX;

    for (size_t i = 0; i < search->count; i++)
        if (!(done >> i & 1) && search->events[i].end < end)
            end = search->events[i].end;
    return end;
}

static bool search_from(struct search *search, uint64_t done, const unsigned char *state)
{
    int64_t limit = first_end(search, done);
    unsigned char next[LINEAR_STATE_MAX];

    if (limit == INT64_MAX)
        return true;
    if (!is_new(search, done, state))
        return false;
    for (size_t i = 0; i < search->count; i++) {
        if ((done >> i & 1) || search->events[i].begin > limit)
            continue;
        memcpy(next, state, sizeof next);
        if (search->object->apply(next, &search->events[i]) &&
            search_from(search, done | (uint64_t)1 << i, next))
            return true;
    }
    return false;
}

bool linear_search(const struct linear_object *object, const struct linear_event *events,
                   size_t count)
{
    struct search search = {.object = object, .events = events, .count = count};
    unsigned char state[LINEAR_STATE_MAX] = {0};
    bool found;

    if (count > LINEAR_SEARCH_MAX || object->size > LINEAR_STATE_MAX)
        abort();
    found = search_from(&search, 0, state);
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct memory_of_search *been = search.buckets[i], *next; been; been = next) {
            next = been->next;
            free(been);
        }
    return found;
}
