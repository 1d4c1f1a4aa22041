/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending in batches. A worker that has many tasks to run does not send what each of them writes at
 * once, but notes it, and sends all of it when it next looks at its driver, one message after the
 * other. What the tasks do in between stays in the cache that way, and so does the way of a message
 * through the kernel. And whoever receives the messages gets them in one go, and is woken once
 * instead of many times. That is worth more than the second poll of each task that it takes; the
 * figures are in docs/performance.md.
 *
 * A worker looks at its driver when it has nothing else to do, and every 200 us, unless a task
 * holds it up longer. So bytes wait no longer than a task waits for its turn. With nothing else to
 * do in the first place it is done at once (blz__io_try_first).
 *
 * Operations in here have begun, and are linked in their entry, like those that the kernel knows.
 * Only the worker touches the list.
 */
#include "io/fd.h"

#include <blitz/error.h>

void blz__send_batch_add(struct io *io, blz_cx *cx)
{
    blz__driver *driver = blz__driver_current();

    blz__op_await(&io->op, cx);
    io->next_queued = NULL;
    if (driver->send_batch)
        driver->send_batch_last->next_queued = io;
    else
        driver->send_batch = io;
    driver->send_batch_last = io;
}

bool blz__send_batch_cancel(blz__driver *driver, blz__op *op)
{
    struct io *io = (struct io *)op, *last = NULL, *i = driver->send_batch;

    for (; i && i != io; i = i->next_queued)
        last = i;
    if (!i)
        return false;
    if (last)
        last->next_queued = io->next_queued;
    else
        driver->send_batch = io->next_queued;
    if (driver->send_batch_last == io)
        driver->send_batch_last = last;
    blz__io_complete(driver, io, -ECANCELED);
    return true;
}

static void try_now(blz__driver *driver, struct io *io)
{
    uint64_t seen = fd_seen(io->fd);
    int64_t value = blz__io_try_now(io);

    blz__fd_note(io, seen, value);
    if (value != -EAGAIN) {
        blz__io_complete(driver, io, value);
        return;
    }
    io->seen = seen;
    driver->ops->submit(driver, &io->op);
}

bool blz__send_batch_run(blz__driver *driver)
{
    bool any = driver->send_batch;

    while (driver->send_batch) {
        struct io *io = driver->send_batch;
        driver->send_batch = io->next_queued;
        if (driver->send_batch)
            __builtin_prefetch(driver->send_batch->fd);
        try_now(driver, io);
    }
    return any;
}
