/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver without a kernel: a sleep in it ends by `wake` alone, and operations complete when and
 * as the test's script says. For models and for unit tests.
 *
 *     static void kernel(fake_driver *fake, void *arg)       // called by each poll of the driver
 *     {
 *         while (fake->nr_events > 0)
 *             fake_driver_report(fake, 0, 42, false);
 *     }
 *     ...
 *     blz__rt_create(&rt, &options, &fake_driver_ops);
 *     fake_driver_of(rt->workers[0].driver)->script = kernel;
 *
 * What an eventfd or a completion queue is in a real one is a word here, which is changed without
 * any order, so that code that relies on the driver for its synchronisation is found out.
 */
#ifndef BLZ_MODEL_FAKE_DRIVER_H
#define BLZ_MODEL_FAKE_DRIVER_H

#include "base/alloc.h"
#include "io/op.h"

enum { FAKE_MAX_EVENTS = 16 };

/* What an operation still waits for: its result, what follows the result, an answer to a cancel. */
enum fake_event_kind { FAKE_RESULT, FAKE_NOTIFICATION, FAKE_ANSWER };

struct fake_event {
    blz__op *op;
    enum fake_event_kind kind;
    bool cancelled; /* the driver has been asked to end it early */
};

enum { FAKE_READABLE = 1, FAKE_END_WAIT = 2 };

typedef struct fake_driver fake_driver;
struct fake_driver {
    blz__driver base;
    uint32_t readable; /* futex: FAKE_READABLE, what the fd would say; FAKE_END_WAIT */

    /* for the test to set */
    bool busy;                                    /* workers sleep in here in any case */
    bool answers_cancels;                         /* a cancel has a completion of its own */
    void (*script)(fake_driver *fake, void *arg); /* may report events */
    void *arg;

    /* outstanding, in the order in which they came about; for the script to read */
    struct fake_event events[FAKE_MAX_EVENTS];
    unsigned nr_events;
    unsigned nr_reported;
    const blz_allocator *allocator;
};

extern const blz__driver_ops fake_driver_ops;

void fake_driver_init(fake_driver *fake);

/* The driver of a worker of a runtime that was created with fake_driver_ops. */
static inline fake_driver *fake_driver_of(blz__driver *driver)
{
    return (fake_driver *)driver;
}

/*
 * Reports event i. A result that has `more` is followed by a notification. [worker, in the script]
 */
void fake_driver_report(fake_driver *fake, unsigned i, int64_t result, bool more);

/* What a program that embeds the runtime does with the fd. [any thread] */
void fake_driver_wait_readable(fake_driver *fake);

void fake_poll(blz__driver *driver, int64_t deadline_ns);

#endif
