/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver of fake_driver.h. All but `wake`, `wait_ready` and `end_wait` runs on the worker that
 * it belongs to.
 */
#include "fake_driver.h"

#include "base/panic.h"
#include "system/futex.h"

#include <errno.h>

static void add_event(fake_driver *fake, blz__op *op, enum fake_event_kind kind)
{
    if (fake->nr_events == FAKE_MAX_EVENTS)
        blz__panic("more than %d events in a fake driver", FAKE_MAX_EVENTS);
    fake->events[fake->nr_events++] = (struct fake_event){.op = op, .kind = kind};
}

static void fake_submit(blz__driver *driver, blz__op *op)
{
    add_event(fake_driver_of(driver), op, FAKE_RESULT);
}

static void fake_cancel(blz__driver *driver, blz__op *op)
{
    fake_driver *fake = fake_driver_of(driver);

    for (unsigned i = 0; i < fake->nr_events; i++)
        if (fake->events[i].op == op)
            fake->events[i].cancelled = true;
    if (fake->answers_cancels) {
        blz__op_event_add(op);
        add_event(fake, op, FAKE_ANSWER);
    }
}

void fake_driver_report(fake_driver *fake, unsigned i, int64_t result, bool more)
{
    struct fake_event event = fake->events[i];

    fake->nr_reported++;
    for (fake->nr_events--; i < fake->nr_events; i++)
        fake->events[i] = fake->events[i + 1];
    if (event.kind == FAKE_RESULT) {
        blz__plain_write(&event.op->value);
        event.op->value = result;
        if (more) {
            blz__op_event_add(event.op);
            add_event(fake, event.op, FAKE_NOTIFICATION);
        }
    }
    blz__op_event_done(event.op);
}

/* ---- sleeping and waking ---- */

static void fake_wake(blz__driver *driver)
{
    fake_driver *fake = fake_driver_of(driver);

    blz__plain_read(&fake->allocator); /* any of its memory, as a real one reads its descriptor */
    blz__fetch_or(&fake->readable, (uint32_t)FAKE_READABLE, RELAXED);
    blz__futex_wake(&fake->readable, 2); /* the worker, and a thread in wait_ready */
}

void fake_driver_wait_readable(fake_driver *fake)
{
    while (!blz__load(&fake->readable, RELAXED))
        blz__futex_wait(&fake->readable, 0);
}

/* Readiness and the end of a wait share one word. A wait with a deadline ends at once. */
static bool fake_wait_ready(blz__driver *driver, int64_t deadline_ns)
{
    fake_driver *fake = fake_driver_of(driver);
    uint32_t readable;

    if (deadline_ns != INT64_MAX)
        return true;
    while ((readable = blz__load(&fake->readable, RELAXED)) == 0)
        blz__futex_wait(&fake->readable, 0);
    blz__fetch_and(&fake->readable, ~(uint32_t)FAKE_END_WAIT, RELAXED);
    return readable & FAKE_READABLE;
}

static void fake_end_wait(blz__driver *driver)
{
    fake_driver *fake = fake_driver_of(driver);

    blz__fetch_or(&fake->readable, (uint32_t)FAKE_END_WAIT, RELAXED);
    blz__futex_wake(&fake->readable, 2);
}

void fake_poll(blz__driver *driver, int64_t deadline_ns)
{
    fake_driver *fake = fake_driver_of(driver);
    unsigned before = fake->nr_reported;
    uint32_t readable;

    if (fake->script)
        fake->script(fake, fake->arg);
    if (fake->nr_reported != before)
        deadline_ns = 0; /* there were events */
    while (deadline_ns != 0 && !((readable = blz__load(&fake->readable, RELAXED)) & FAKE_READABLE))
        if (deadline_ns == INT64_MAX)
            blz__futex_wait(&fake->readable, readable);
        else if (!blz__futex_wait_until(&fake->readable, readable, deadline_ns))
            break;
    blz__fetch_and(&fake->readable, ~(uint32_t)FAKE_READABLE, RELAXED);
}

static bool fake_has_pending(const blz__driver *driver)
{
    const fake_driver *fake = (const fake_driver *)driver;
    return fake->busy || fake->nr_events > 0;
}

static int fake_fd(blz__driver *driver)
{
    (void)driver;
    return -ENOTSUP;
}

/* ---- life ---- */

void fake_driver_init(fake_driver *fake)
{
    *fake = (fake_driver){.base = {.ops = &fake_driver_ops}};
}

static int fake_open(blz__driver **driver, const blz_options *options,
                     const blz_allocator *allocator)
{
    fake_driver *fake = blz__alloc(allocator, sizeof *fake, _Alignof(fake_driver));

    (void)options;
    if (!fake)
        return -ENOMEM;
    fake_driver_init(fake);
    fake->allocator = allocator;
    *driver = &fake->base;
    return 0;
}

static void fake_close(blz__driver *driver)
{
    fake_driver *fake = fake_driver_of(driver);

    if (fake->nr_events > 0)
        blz__panic("a fake driver is closed while %u events are outstanding", fake->nr_events);
    blz__plain_write(&fake->allocator);
    blz__free(fake->allocator, fake, sizeof *fake, _Alignof(fake_driver));
}

const blz__driver_ops fake_driver_ops = {
    .name = "fake",
    .open = fake_open,
    .close = fake_close,
    .submit = fake_submit,
    .cancel = fake_cancel,
    .poll = fake_poll,
    .wake = fake_wake,
    .fd = fake_fd,
    .wait_ready = fake_wait_ready,
    .end_wait = fake_end_wait,
    .has_pending = fake_has_pending,
};
