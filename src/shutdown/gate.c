/* SPDX-License-Identifier: Apache-2.0 */
/* Entering, leaving, and waiting for those who leave: see gate.h. */
#include "shutdown/gate.h"

#include <blitz/error.h>

void blz__gate_init(shutdown_gate *gate)
{
    *gate = (shutdown_gate){.word = GATE_OWNED};
}

/* ---- who is inside ---- */

/* Whether one more of them would look like something else. */
static bool is_full(uint64_t word, uint64_t one)
{
    uint64_t all = one == GATE_ACCEPTOR ? GATE_ACCEPTORS : GATE_WORKERS;
    return (word & all) == all;
}

static int enter(shutdown_gate *gate, uint64_t one, int too_late)
{
    uint64_t word = blz__load(&gate->word, RELAXED);

    do {
        if (gate_phase(word) >= too_late)
            return -ESHUTDOWN;
        if (is_full(word, one))
            return -EOVERFLOW;
        /* relaxed: who enters publishes nothing; what others have published goes on with it */
    } while (!blz__cas_weak(&gate->word, &word, word + one, RELAXED, RELAXED));
    return 0;
}

int blz__gate_enter(shutdown_gate *gate, uint64_t one)
{
    return enter(gate, one, one == GATE_ACCEPTOR ? BLZ_SHUTDOWN_STOPPING : BLZ_SHUTDOWN_DRAINING);
}

int blz__gate_enter_again(shutdown_gate *gate, uint64_t one)
{
    return enter(gate, one, BLZ_SHUTDOWN_ENDED + 1);
}

static bool is_free(uint64_t word)
{
    return !(word & (GATE_INSIDE | GATE_OWNED));
}

static BLZ_NOINLINE bool leave_in_phase(shutdown_gate *gate, uint64_t one)
{
    blz_waiters claimed = {NULL, NULL};
    uint64_t word;

    blz__lock_acquire(&gate->lock);
    /* acquire and release: as in blz__gate_leave */
    word = blz__fetch_sub(&gate->word, one, ACQ_REL) - one;
    if (gate_is_done(word))
        claimed = waiters_claim_all(&gate->runner);
    blz__lock_release(&gate->lock);
    waiters_serve(&claimed, WAITER_SERVED);
    return is_free(word);
}

bool blz__gate_leave(shutdown_gate *gate, uint64_t one)
{
    uint64_t word = blz__load(&gate->word, RELAXED);

    while (gate_phase(word) == BLZ_SHUTDOWN_RUNNING) {
        /* release: what was done; acquire: what others did, if we are to free it; pairs with itself
         * and with blz__gate_look */
        if (blz__cas_weak(&gate->word, &word, word - one, ACQ_REL, RELAXED))
            return is_free(word - one);
    }
    return leave_in_phase(gate, one);
}

bool blz__gate_disown(shutdown_gate *gate)
{
    /* acquire: what those did who have left; release: and we, for who leaves last */
    uint64_t word = blz__fetch_and(&gate->word, ~GATE_OWNED, ACQ_REL);

    if (word & GATE_INSIDE)
        return false;
    blz__lock_acquire(&gate->lock); /* the last to leave may not be through with it */
    blz__lock_release(&gate->lock);
    return true;
}

/* ---- phases ---- */

/* What somebody wants who is in a hurry. */
static int next_wanted(int phase)
{
    if (phase == BLZ_SHUTDOWN_RUNNING)
        return BLZ_SHUTDOWN_STOPPING;
    return phase < BLZ_SHUTDOWN_CANCELLING ? BLZ_SHUTDOWN_CANCELLING : phase + 1;
}

void blz__gate_ask(shutdown_gate *gate, bool hurry)
{
    blz_waiters claimed = {NULL, NULL};
    int phase, wanted;

    blz__lock_acquire(&gate->lock);
    phase = gate_phase(blz__load(&gate->word, RELAXED)); /* it changes under the lock */
    wanted = hurry ? next_wanted(phase) : BLZ_SHUTDOWN_STOPPING;
    blz__plain_write(&gate->wanted);
    if (wanted > gate->wanted && wanted > phase && phase < BLZ_SHUTDOWN_ENDED) {
        gate->wanted = wanted;
        claimed = waiters_claim_all(&gate->runner);
    }
    blz__lock_release(&gate->lock);
    waiters_serve(&claimed, WAITER_SERVED);
}

gate_view blz__gate_look(shutdown_gate *gate)
{
    gate_view view;

    blz__lock_acquire(&gate->lock);
    /* acquire: what those did who have left; pairs with the release in blz__gate_leave */
    view.word = blz__load(&gate->word, ACQUIRE);
    blz__plain_read(&gate->wanted);
    view.wanted = gate->wanted;
    blz__lock_release(&gate->lock);
    return view;
}

void blz__gate_advance(shutdown_gate *gate, int phase)
{
    uint64_t word;

    blz__lock_acquire(&gate->lock);
    word = blz__load(&gate->word, RELAXED);
    /* release: what was done before the phase, for blz_shutdown_phase */
    while (!blz__cas_weak(&gate->word, &word, (word & ~GATE_PHASE) | (uint64_t)phase, RELEASE,
                          RELAXED))
        continue;
    blz__lock_release(&gate->lock);
}

/* ---- the runner ---- */

/* future.line */
enum { WAIT_FRESH, WAIT_JOINED, WAIT_CANCELLED };

static bool is_due(const shutdown_gate *gate)
{
    uint64_t word = blz__load(&gate->word, ACQUIRE); /* as in blz__gate_look */

    blz__plain_read(&gate->wanted);
    return gate_is_done(word) || gate->wanted > gate_phase(word);
}

/* False: there is nothing to wait for. */
static bool join(gate_wait *wait, blz_cx *cx)
{
    bool due;

    blz__lock_acquire(&wait->gate->lock);
    due = is_due(wait->gate);
    if (!due)
        waiter_enqueue(&wait->waiter, &wait->gate->runner, cx);
    blz__lock_release(&wait->gate->lock);
    return !due;
}

static blz_poll wait_poll(blz_future *self, blz_cx *cx)
{
    gate_wait *wait = (gate_wait *)self;

    if (self->line == WAIT_CANCELLED)
        return blz_future_done(self, -ECANCELED);
    if (self->line == WAIT_JOINED)
        return waiter_is_served(&wait->waiter) ? blz_future_done(self, 0) : BLZ_PENDING;
    if (!join(wait, cx))
        return blz_future_done(self, 0);
    self->line = WAIT_JOINED;
    return BLZ_PENDING;
}

/* One that has been claimed is served, and ends as if it had not been cancelled. */
static void wait_cancel(blz_future *self, blz_cx *cx)
{
    gate_wait *wait = (gate_wait *)self;
    bool left = self->line == WAIT_FRESH;

    (void)cx;
    if (self->line == WAIT_JOINED) {
        blz__lock_acquire(&wait->gate->lock);
        left = waiter_leave(&wait->waiter, &wait->gate->runner);
        blz__lock_release(&wait->gate->lock);
        if (left)
            blz_waker_drop(&wait->waiter.waker);
    }
    if (left)
        self->line = WAIT_CANCELLED;
}

blz_future *blz__gate_wait(gate_wait *wait, shutdown_gate *gate)
{
    static const blz_future_ops ops = {.name = "shutdown_wait",
                                       .poll = wait_poll,
                                       .cancel = wait_cancel};

    *wait = (gate_wait){.future = {.ops = &ops}, .gate = gate};
    return &wait->future;
}
