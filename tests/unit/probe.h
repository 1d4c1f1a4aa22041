/* SPDX-License-Identifier: Apache-2.0 */
/* Polling by hand, and a leaf that counts what is done to it. */
#ifndef PROBE_H
#define PROBE_H

#include <blitz/future.h>

static inline blz_cx cx_for(blz_future *scope)
{
    return (blz_cx){.scope = scope, .budget = 128};
}

static inline blz_poll poll_once(blz_future *future, blz_cx *cx)
{
    return future->ops->poll(future, cx);
}

/* A leaf that counts what is done to it. */
struct probe {
    blz_future future;
    int polls, cancels;
    bool ready, stubborn; /* stubborn: goes on after a cancel */
    int64_t value;
    blz_future *scope; /* of the last poll or cancel */
    uint32_t flags;    /* of that scope then */
};

static inline blz_poll probe_poll(blz_future *self, blz_cx *cx)
{
    struct probe *probe = (struct probe *)self;

    probe->polls++;
    probe->scope = cx->scope;
    probe->flags = cx->scope->flags;
    return probe->ready ? blz_future_done(self, probe->value) : BLZ_PENDING;
}

static inline void probe_cancel(blz_future *self, blz_cx *cx)
{
    struct probe *probe = (struct probe *)self;

    probe->cancels++;
    probe->scope = cx->scope;
    if (!probe->stubborn) {
        probe->ready = true;
        probe->value = -ECANCELED;
    }
}

static const blz_future_ops probe_ops = {.name = "probe",
                                         .poll = probe_poll,
                                         .cancel = probe_cancel};

static inline blz_future *probe_init(struct probe *probe)
{
    *probe = (struct probe){.future.ops = &probe_ops};
    return &probe->future;
}

#endif
