/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rule for operation structs promises (blitz/io.h), tried with one kind of operation after
 * another. A kind says how to begin an operation that ends at once, one that fails at once, and one
 * that waits until it is cancelled:
 *
 *     OPERATION(blz_mutex_op, .ends = mutex_ends, .waits = mutex_waits)
 *
 * unit.operation_list checks that each operation of the headers has such a line.
 */
#ifndef BLZ_TESTS_OPERATION_KINDS_H
#define BLZ_TESTS_OPERATION_KINDS_H

#include "dies.h"
#include "net_probe.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

/* Where a kind keeps its objects: they are made by `set_up` and go with `tear_down`. */
struct bed {
    blz_rt *rt;
    void *objects;
    blz_future inner; /* for what is around another future */
    blz_future *branches[1];
};

struct kind {
    const char *type;
    size_t size, room; /* of the operation, and of the objects */
    void (*set_up)(struct bed *b);
    void (*tear_down)(struct bed *b);
    blz_future *(*ends)(struct bed *b, void *op);
    blz_future *(*fails)(struct bed *b, void *op);
    blz_future *(*waits)(struct bed *b, void *op);
    void (*release)(struct bed *b); /* lets one end that has been cancelled and cannot by itself */
    bool uses_threads;
};

#define OPERATION(type_, ...)                              \
    {                                                      \
        .type = #type_, .size = sizeof(type_), __VA_ARGS__ \
    }

static inline void bed_make(struct bed *b, const struct kind *kind, const char *backend)
{
    *b = (struct bed){.rt = turning_rt(backend)};
    b->objects = calloc(1, kind->room + 1);
    check(b->objects);
    if (kind->set_up)
        kind->set_up(b);
}

static inline void bed_free(struct bed *b, const struct kind *kind)
{
    if (kind->tear_down)
        kind->tear_down(b);
    free_rt(b->rt);
    free(b->objects);
}

static inline void assert_ends(struct bed *b, const struct kind *kind, void *op)
{
    int64_t result;

    if (kind->ends) {
        result = AWAIT(b->rt, kind->ends(b, op));
        if (result < 0)
            fail_msg("a %s ended with %lld", kind->type, (long long)result);
    }
    if (kind->fails) {
        result = AWAIT(b->rt, kind->fails(b, op));
        if (result >= 0)
            fail_msg("a %s ended with %lld, and was to fail", kind->type, (long long)result);
    }
}

static inline void assert_waits_until_cancelled(struct bed *b, const struct kind *kind, void *op)
{
    blz_handle handle;

    START(b->rt, &handle, kind->waits(b, op));
    if (blz_handle_done(&handle))
        fail_msg("a %s was to wait", kind->type);
    blz_handle_cancel(&handle);
    if (kind->release)
        kind->release(b);
    (void)FINISH(b->rt, &handle); /* -ECANCELED, or what came first */
}

/* One memory for all: rubbish, then zero once, then never cleared again. */
static inline void try_memory(struct bed *b, const struct kind *kind, unsigned char rubbish)
{
    void *op = malloc(kind->size);

    check(op);
    memset(op, rubbish, kind->size);
    memset(op, 0, kind->size);
    for (int i = 0; i < 2; i++) {
        assert_ends(b, kind, op);
        assert_ends(b, kind, op);
        if (kind->waits) {
            blz_ignore(kind->waits(b, op)); /* made, and never awaited */
            assert_waits_until_cancelled(b, kind, op);
        }
    }
    assert_ends(b, kind, op);
    free(op);
}

/* ---- in flight ---- */

static const struct kind *dying_kind;
static const char *dying_backend;

static inline void begin_in_flight(void)
{
    void *op = calloc(1, dying_kind->size);
    blz_handle handle;
    struct bed b;

    (void)fprintf(stderr, "%s: ", dying_kind->type);
    bed_make(&b, dying_kind, dying_backend);
    START(b.rt, &handle, dying_kind->waits(&b, op));
    /* One that ends might first give what the operation waits for. */
    blz_ignore(dying_kind->fails ? dying_kind->fails(&b, op) : dying_kind->ends(&b, op));
}

#ifdef __SANITIZE_THREAD__
enum { THREADS_AFTER_FORK = false };
#else
enum { THREADS_AFTER_FORK = true };
#endif

static inline void assert_dies_in_flight(const struct kind *kind, const char *backend)
{
    if (!kind->waits || (kind->uses_threads && !THREADS_AFTER_FORK))
        return;
    dying_kind = kind;
    dying_backend = backend;
    assert_dies(begin_in_flight, "still in flight");
}

static inline void try_kind(const struct kind *kind, const char *backend)
{
    struct bed b;

    bed_make(&b, kind, backend);
    try_memory(&b, kind, 0xa5);
    bed_free(&b, kind);
    assert_dies_in_flight(kind, backend);
}

#endif
