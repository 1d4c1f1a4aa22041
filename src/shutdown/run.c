/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Going through the phases: an async function, whose frame is in the shutdown.
 *
 * In each phase it awaits whichever comes first: that the phase is done or another one was asked
 * for (both by the gate), a signal, the deadline. Then it looks at all of them. A signal does what
 * blz_shutdown_hurry does, so there is one way to decide what comes next. Several signals that come
 * in one round, or within BLZ_STOP_REPEAT_NS, count as one: some tools send one to the process and
 * then to its group.
 *
 * Only the runner changes the phase. The phase is set before its token is cancelled: who is told
 * finds it on.
 */
#include "shutdown/shutdown.h"

#include <blitz/error.h>

_Static_assert(sizeof(blz_shutdown_op) == 64, "part of the ABI");

/* ---- one round ---- */

static blz_future *whichever_comes_first(struct run *self)
{
    blz_shutdown *s = self->shutdown;
    uint32_t nr = 0;

    self->branches[nr++] = blz__gate_wait(&self->wait, &s->gate);
    for (int i = 0; i < s->nr_signals; i++)
        self->branches[nr++] = blz_signal_recv(&self->recv[i], &s->signals[i], &self->info[i]);
    return blz_with_deadline(&self->limit, s->deadline_ns,
                             blz_select_array(&self->select, self->branches, nr));
}

/* The signal that has come, or NULL: one that lost the race, too, or has not been started in it. */
static const blz_signal_info *signal_of(struct run *self)
{
    const blz_signal_info *found = NULL;

    for (int i = 0; i < self->shutdown->nr_signals; i++) {
        bool late =
            blz_signal_try_recv(&self->shutdown->signals[i],
                                self->recv[i].future.result > 0 ? NULL : &self->info[i]) > 0;
        if (!found && (late || self->recv[i].future.result > 0))
            found = &self->info[i];
    }
    return found;
}

static void take_signal(struct run *self)
{
    const blz_signal_info *info = signal_of(self);
    blz_shutdown *s = self->shutdown;
    int64_t now_ns = blz_now();

    if (!info || now_ns < s->next_signal_ns)
        return;
    s->next_signal_ns = blz_time_add(now_ns, BLZ_STOP_REPEAT_NS);
    blz__lock_acquire(&s->lock);
    if (s->report.requests == 0) {
        s->report.signal = info->signal;
        s->report.pid = info->pid;
    }
    blz__lock_release(&s->lock);
    blz_shutdown_hurry(s);
}

/* ---- phases ---- */

static int64_t patience(const blz_shutdown *s, int phase)
{
    switch (phase) {
    case BLZ_SHUTDOWN_STOPPING:
        return s->options.stop_ns;
    case BLZ_SHUTDOWN_DRAINING:
        return s->options.drain_ns;
    case BLZ_SHUTDOWN_CANCELLING:
        return s->options.cancel_ns;
    case BLZ_SHUTDOWN_FORCING:
        return s->options.force_ns;
    default:
        return BLZ_NEVER;
    }
}

/* Tokens of phases that were skipped are cancelled with the next. */
static void begin_phase(blz_shutdown *s, int phase)
{
    blz_shutdown_report report;

    blz__gate_advance(&s->gate, phase);
    s->began_ns = blz_now();
    s->deadline_ns = blz_time_add(s->began_ns, patience(s, phase));
    for (int i = BLZ_SHUTDOWN_STOPPING; i <= phase && i < NR_PHASES; i++)
        blz_token_cancel(s->tokens[i]);
    if (s->options.on_phase) {
        blz_shutdown_get_report(s, &report);
        s->options.on_phase(&report, s->options.arg);
    }
}

static void end_phase(blz_shutdown *s, uint64_t word, int end)
{
    int phase = gate_phase(word);

    blz__lock_acquire(&s->lock);
    s->report.steps[phase] = (blz_shutdown_step){.end = end,
                                                 .accepting = gate_accepting(word),
                                                 .working = gate_working(word),
                                                 .ns = blz_time_sub(blz_now(), s->began_ns)};
    blz__lock_release(&s->lock);
    if (end != BLZ_SHUTDOWN_DONE && s->options.write)
        blz__shutdown_tell(s, phase);
}

/* The phase that follows on one that is over. One that is left out is begun by the next one. */
static int phase_after(const blz_shutdown *s, const gate_view *view, int end)
{
    int phase = gate_phase(view->word), next = phase + 1;

    if (end == BLZ_SHUTDOWN_DONE && phase != BLZ_SHUTDOWN_STOPPING)
        return BLZ_SHUTDOWN_ENDED;
    if (view->wanted > next)
        next = view->wanted;
    while (patience(s, next) == BLZ_NO_PHASE)
        next++;
    return next;
}

/* How the phase that is on has ended, or SKIPPED: it goes on. */
static int end_of(const blz_shutdown *s, const gate_view *view)
{
    if (gate_is_done(view->word))
        return BLZ_SHUTDOWN_DONE;
    if (view->wanted > gate_phase(view->word))
        return BLZ_SHUTDOWN_HURRIED;
    return blz_now() >= s->deadline_ns ? BLZ_SHUTDOWN_LATE : BLZ_SHUTDOWN_SKIPPED;
}

/* 1: there is more to wait for; 0: all is done; -ETIMEDOUT: it is not, and that was it. */
static int look_around(blz_shutdown *s)
{
    gate_view view = blz__gate_look(&s->gate);
    int phase = gate_phase(view.word), end = end_of(s, &view), next;

    if (phase == BLZ_SHUTDOWN_ENDED)
        return view.word & GATE_INSIDE ? -ETIMEDOUT : 0;
    if (end == BLZ_SHUTDOWN_SKIPPED)
        return 1;
    if (phase != BLZ_SHUTDOWN_RUNNING)
        end_phase(s, view.word, end);
    next = phase_after(s, &view, end);
    begin_phase(s, next);
    if (next == BLZ_SHUTDOWN_ENDED)
        return end == BLZ_SHUTDOWN_DONE ? 0 : -ETIMEDOUT;
    return 1;
}

/* Phases that are over as they begin need no await. */
static int go_on(blz_shutdown *s)
{
    int phase, rc;

    do {
        phase = blz_shutdown_phase(s);
        rc = look_around(s);
    } while (rc == 1 && blz_shutdown_phase(s) != phase);
    return rc;
}

/* ---- the future ---- */

BLZ_ASYNC(run)
{
    BLZ_BEGIN;
    while ((self->rc = go_on(self->shutdown)) == 1) {
        BLZ_AWAIT(self->rc, whichever_comes_first(self));
        take_signal(self); /* also if we are cancelled: it is not lost */
        self->rc = -ECANCELED;
        if (blz_cancelled(cx))
            break;
    }
    BLZ_END(self->rc);
}

static blz_poll run_op_poll(blz_future *self, blz_cx *cx)
{
    blz_shutdown *s = ((blz_shutdown_op *)self)->shutdown;

    if (!self->child) {
        if (!cx->worker)
            return blz_future_done(self, -ENXIO); /* blz_wait: it needs timers */
        if (blz__swap(&s->running, 1u, ACQUIRE))  /* pairs with the release below */
            return blz_future_done(self, -EBUSY);
        s->run = (struct run){.blz_frame = {.ops = &run_ops}, .shutdown = s};
        if (blz_shutdown_phase(s) == BLZ_SHUTDOWN_RUNNING)
            s->deadline_ns = BLZ_NEVER;
        self->child = &s->run.blz_frame;
        self->line = BLZ_LINE_BEGUN;
    }
    if (blz_is_pending(self->child->ops->poll(self->child, cx)))
        return BLZ_PENDING;
    self->child = NULL;
    int64_t result = s->run.blz_frame.result;
    blz__store(&s->running, 0u, RELEASE); /* the frame is the next one's */
    return blz_future_done(self, result);
}

blz_future *blz_shutdown_run(blz_shutdown_op *op, blz_shutdown *shutdown)
{
    static const blz_future_ops ops = {.name = "shutdown_run", .poll = run_op_poll};

    blz_op_check(&op->future, &ops);
    *op = (blz_shutdown_op){.future = {.ops = &ops}, .shutdown = shutdown};
    return &op->future;
}
