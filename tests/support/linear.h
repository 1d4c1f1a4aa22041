/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Was what threads saw of a shared object possible at all, had each operation happened at one
 * moment between its call and its return? Threads keep logs; afterwards a checker decides.
 *
 *     struct linear_log log = {0};                       // one a thread or task
 *     int64_t begin = linear_now();
 *     rc = nums_try_send(&tx, value);
 *     if (rc == 0)
 *         linear_note(&log, LINEAR_PUT, value, begin);   // it ends now
 *     ...
 *     const char *wrong = linear_check_queue(events, count);
 *
 * linear_check_queue knows queues whose values are all different, of any length. linear_search
 * tries all orders, of at most 64 operations of anything that can be described by a function.
 */
#ifndef BLZ_TESTS_LINEAR_H
#define BLZ_TESTS_LINEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINEAR_PUT, LINEAR_TAKE, LINEAR_OWN }; /* and whatever else an object can do */

struct linear_event {
    int64_t begin, end;
    uint64_t value;
    uint32_t op;
};

struct linear_log {
    struct linear_event *events;
    size_t count, capacity;
};

/* Nanoseconds, the same for all threads. */
int64_t linear_now(void);

/* An operation that began then, and ends now. */
void linear_note(struct linear_log *log, uint32_t op, uint64_t value, int64_t begin);

/* Moves all events of `from` to `log`. */
void linear_join(struct linear_log *log, struct linear_log *from);
void linear_free(struct linear_log *log);

/*
 * A queue: first in, first out, and no value is put twice. NULL, or what is impossible about it.
 * What was put and never taken is still in it. Sorts the events.
 */
const char *linear_check_queue(struct linear_event *events, size_t count);

/* A sequential object. `state` is `size` bytes, zero at first, without holes. */
struct linear_object {
    size_t size; /* at most LINEAR_STATE_MAX */
    /* Does the operation. False: it could not have had this result in this state. */
    bool (*apply)(void *state, const struct linear_event *event);
};

enum { LINEAR_STATE_MAX = 256, LINEAR_SEARCH_MAX = 64 };

/* Whether some order of all events is possible (the search of Wing and Gong, with memory). */
bool linear_search(const struct linear_object *object, const struct linear_event *events,
                   size_t count);

#endif
