/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver that does no I/O: a sleep in it ends by `wake` alone. What an eventfd or a completion
 * queue is in a real one, is a word here, which is changed without any order, so that code that
 * relies on the driver for its synchronisation is found out.
 *
 *     fake_driver driver;
 *     fake_driver_init(&driver);
 *     ... &driver.base ...
 */
#ifndef BLZ_MODEL_FAKE_DRIVER_H
#define BLZ_MODEL_FAKE_DRIVER_H

#include "base/alloc.h"
#include "base/sys.h"
#include "sched/driver.h"

typedef struct fake_driver {
    blz__driver base;
    uint32_t readable; /* futex: what the fd would say */
    bool busy;         /* set by the test: workers then sleep in here */
} fake_driver;

static inline void fake_wake(blz__driver *driver)
{
    fake_driver *fake = (fake_driver *)driver;

    blz__swap(&fake->readable, 1u, RELAXED);
    blz__futex_wake(&fake->readable, 1);
}

/* What a program that embeds the runtime does with the fd. */
static inline void fake_driver_wait_readable(fake_driver *fake)
{
    while (!blz__load(&fake->readable, RELAXED))
        blz__futex_wait(&fake->readable, 0);
}

static inline void fake_poll(blz__driver *driver, int64_t deadline_ns)
{
    fake_driver *fake = (fake_driver *)driver;

    while (deadline_ns != 0 && !blz__load(&fake->readable, RELAXED))
        if (deadline_ns == INT64_MAX)
            blz__futex_wait(&fake->readable, 0);
        else if (!blz__futex_wait_until(&fake->readable, 0, deadline_ns))
            break;
    blz__swap(&fake->readable, 0u, RELAXED);
}

static inline bool fake_busy(const blz__driver *driver)
{
    return ((const fake_driver *)driver)->busy;
}

static inline int fake_open(blz__driver **driver, const blz_allocator *allocator);
static inline void fake_close(blz__driver *driver);

static const blz__driver_ops fake_driver_ops = {
    .name = "fake",
    .open = fake_open,
    .close = fake_close,
    .poll = fake_poll,
    .wake = fake_wake,
    .busy = fake_busy,
};

static inline void fake_driver_init(fake_driver *fake)
{
    *fake = (fake_driver){.base = {&fake_driver_ops}};
}

static inline int fake_open(blz__driver **driver, const blz_allocator *allocator)
{
    fake_driver *fake = blz__alloc(allocator, sizeof *fake, _Alignof(fake_driver));

    fake_driver_init(fake);
    *driver = &fake->base;
    return 0;
}

static inline void fake_close(blz__driver *driver)
{
    blz__free(&blz__system_allocator, driver, sizeof(fake_driver), _Alignof(fake_driver));
}

#endif
