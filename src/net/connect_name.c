/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting to a name: a lookup, then attempts that overlap (RFC 8305).
 *
 *   line        event                          next         what happens
 *   ----------------------------------------------------------------------------------------------
 *   BEGINS      first poll                     LOOKING_UP   the lookup begins
 *   LOOKING_UP  there are addresses            CONNECTING   the first attempt begins
 *   CONNECTING  an attempt fails               CONNECTING   the next one begins at once
 *   CONNECTING  the last one is old enough     CONNECTING   the next one begins
 *   CONNECTING  an attempt succeeds            ENDING       it has won; the others are cancelled
 *   CONNECTING  cancelled from outside         ENDING       all are cancelled
 *   ENDING      an attempt succeeds            ENDING       nobody had won: it does; else closed
 *   any         no attempt is left, nor will   -            ready
 *               there be one
 *
 * Each attempt is a branch, a cancel scope of its own, so that the losers can be told. Their
 * operations belong to the kernel until they are ready, so they are on the heap, and that is given
 * back when no attempt is live. A connection exists in one place: in its attempt until that has
 * won, then in the caller's hands. What comes too late is closed where it is.
 */
#include <blitz/connect.h>

#include "net/net.h"
#include "sched/sched.h"

#include <blitz/error.h>
#include <string.h>

_Static_assert(sizeof(blz_tcp_connect_options) == 160, "part of the ABI");
_Static_assert(sizeof(blz_tcp_connect_op) == 712, "part of the ABI");

enum { CONNECT_BEGINS, CONNECT_LOOKING_UP, CONNECT_CONNECTING, CONNECT_ENDING };

enum { MAX_ATTEMPTS = 16 };

#define DEFAULT_STAGGER (250 * BLZ_MSEC)

struct blz__attempt {
    blz_io io;
    blz_tcp conn;
};

/* ---- the end ---- */

static blz_poll finish(blz_tcp_connect_op *op, blz_cx *cx, int64_t result)
{
    if (op->future.line >= CONNECT_CONNECTING)
        blz_timer_cancel(&op->phase.timer);
    if (op->attempts)
        blz__rt_free(blz_cx_rt(cx), op->attempts, op->nr_attempts * sizeof *op->attempts,
                     _Alignof(struct blz__attempt));
    op->attempts = NULL;
    op->future.child = NULL;
    blz_addrs_free(&op->addrs);
    return blz_future_done(&op->future, result);
}

/* ---- looking up ---- */

static int begin_lookup(blz_tcp_connect_op *op)
{
    struct blz__host_service parts;
    int rc = blz__split_host_service(op->target, strlen(op->target), &parts);

    if (rc < 0)
        return rc;
    if (op->target[0] == '[' && !memchr(parts.host, ':', parts.host_len))
        return -EINVAL; /* only IPv6 addresses have brackets */
    op->future.child = blz_lookup_n(&op->phase.dns, &op->addrs, parts.host, parts.host_len,
                                    parts.service, parts.service_len, &op->options.hints);
    op->future.line = CONNECT_LOOKING_UP;
    return 0;
}

/* The lookup has found addresses. */
static int begin_connecting(blz_tcp_connect_op *op, blz_cx *cx)
{
    size_t count = op->addrs.count < MAX_ATTEMPTS ? op->addrs.count : MAX_ATTEMPTS;

    op->future.child = NULL;
    if (blz_cancelled(cx))
        return -ECANCELED;                                 /* the addresses were faster */
    (void)blz_addrs_interleave(&op->addrs, BLZ_ADDR_NONE); /* no memory: as they are, then */
    op->attempts =
        blz__rt_alloc(blz_cx_rt(cx), count * sizeof *op->attempts, _Alignof(struct blz__attempt));
    if (!op->attempts)
        return -ENOMEM;
    memset(op->attempts, 0, count * sizeof *op->attempts);
    op->nr_attempts = (uint32_t)count;
    op->phase.timer = (blz_timer){.state = 0};
    op->future.line = CONNECT_CONNECTING;
    return 0;
}

/* ---- attempts ---- */

static uint64_t all_attempts(const blz_tcp_connect_op *op)
{
    return ((uint64_t)1 << op->nr_attempts) - 1;
}

static uint32_t next_live(const blz_tcp_connect_op *op, uint32_t from)
{
    uint64_t rest = op->live >> from;

    return rest ? from + (uint32_t)__builtin_ctzll(rest) : op->nr_attempts;
}

/* Whether an address is left, and there is room to try it. */
static bool has_next(const blz_tcp_connect_op *op)
{
    return op->next < op->addrs.count && op->live != all_attempts(op);
}

static void start_next(blz_tcp_connect_op *op)
{
    uint32_t i = (uint32_t)__builtin_ctzll(~op->live);
    struct blz__attempt *attempt = &op->attempts[i];

    blz_ignore(blz_tcp_connect_with(&attempt->io, &attempt->conn, &op->addrs.items[op->next++],
                                    &op->options.tcp));
    op->live |= (uint64_t)1 << i;
    op->next_at_ns = blz_deadline(op->options.stagger_ns);
}

/* An error that says only that this machine, or this network, has no way there. */
static bool is_unreachable(int64_t error)
{
    return error == -ENETUNREACH || error == -EHOSTUNREACH || error == -EADDRNOTAVAIL ||
           error == -EAFNOSUPPORT || error == -ENETDOWN || error == -EACCES || error == -EPERM;
}

static void attempt_failed(blz_tcp_connect_op *op, int64_t error)
{
    if (op->error == 0 || (is_unreachable(op->error) && !is_unreachable(error)))
        op->error = error;
    op->next_at_ns = INT64_MIN; /* the next one at once */
}

static void attempt_succeeded(blz_tcp_connect_op *op, struct blz__attempt *attempt)
{
    if (op->won) {
        blz_tcp_close(&attempt->conn);
    } else {
        op->won = true;
        *op->conn = attempt->conn;
    }
}

static void poll_attempts(blz_tcp_connect_op *op, blz_cx *cx)
{
    for (uint32_t i = next_live(op, 0); i < op->nr_attempts; i = next_live(op, i + 1)) {
        struct blz__attempt *attempt = &op->attempts[i];
        if (blz_is_pending(blz_poll_branch(&attempt->io.future, cx)))
            continue;
        op->live &= ~((uint64_t)1 << i);
        if (attempt->io.future.result < 0)
            attempt_failed(op, attempt->io.future.result);
        else
            attempt_succeeded(op, attempt);
    }
}

static void end_attempts(blz_tcp_connect_op *op, blz_cx *cx)
{
    for (uint32_t i = next_live(op, 0); i < op->nr_attempts; i = next_live(op, i + 1))
        blz_cancel_branch(&op->attempts[i].io.future, cx);
    op->future.line = CONNECT_ENDING;
}

/* ---- the future ---- */

/* Polls what is under way, and starts what may begin, until nothing more can be done now. */
static void drive_attempts(blz_tcp_connect_op *op, blz_cx *cx)
{
    poll_attempts(op, cx);
    while (!op->won && has_next(op) && (op->live == 0 || blz_now() >= op->next_at_ns)) {
        if (!blz_coop_take(cx))
            return;
        start_next(op);
        poll_attempts(op, cx);
    }
    if (op->won && op->live != 0) {
        end_attempts(op, cx);
        poll_attempts(op, cx); /* those that have been told are mostly ready now */
    }
}

/* An armed timer is never too late: what it was armed for only moves away. */
static blz_poll wait_for_attempts(blz_tcp_connect_op *op, blz_cx *cx)
{
    bool more = op->future.line == CONNECT_CONNECTING && !op->won && has_next(op);
    uint32_t first = next_live(op, 0);

    if (more && op->live != 0 && !blz_timer_is_armed(&op->phase.timer))
        blz_timer_wake_at(&op->phase.timer, op->next_at_ns, cx);
    op->future.child = op->live ? &op->attempts[first].io.future : NULL; /* for dumps */
    if (op->live != 0 || more)
        return BLZ_PENDING;
    if (op->won)
        return finish(op, cx, 0);
    return finish(op, cx, op->future.line == CONNECT_ENDING ? -ECANCELED : op->error);
}

static blz_poll poll_lookup(blz_tcp_connect_op *op, blz_cx *cx)
{
    blz_future *lookup = op->future.child;
    int rc;

    if (blz_is_pending(lookup->ops->poll(lookup, cx)))
        return BLZ_PENDING;
    rc = lookup->result < 0 ? (int)lookup->result : begin_connecting(op, cx);
    return rc < 0 ? finish(op, cx, rc) : BLZ_READY;
}

static blz_poll connect_poll(blz_future *self, blz_cx *cx)
{
    blz_tcp_connect_op *op = (blz_tcp_connect_op *)self;

    if (self->line == CONNECT_BEGINS) {
        int rc = blz_cancelled(cx) ? -ECANCELED : begin_lookup(op);
        if (rc < 0)
            return finish(op, cx, rc);
    }
    if (self->line == CONNECT_LOOKING_UP) {
        blz_poll poll = poll_lookup(op, cx);
        if (blz_is_pending(poll) || self->line == BLZ_LINE_DONE)
            return poll;
    }
    if (self->line == CONNECT_CONNECTING)
        drive_attempts(op, cx);
    else
        poll_attempts(op, cx);
    return wait_for_attempts(op, cx);
}

static void connect_cancel(blz_future *self, blz_cx *cx)
{
    if (self->line == CONNECT_LOOKING_UP)
        blz_future_cancel(self->child, cx);
    else if (self->line >= CONNECT_CONNECTING)
        end_attempts((blz_tcp_connect_op *)self, cx);
}

blz_future *blz_tcp_connect_name(blz_tcp_connect_op *op, blz_tcp *conn, const char *target,
                                 const blz_tcp_connect_options *options)
{
    static const blz_future_ops ops = {.name = "tcp_connect_name",
                                       .poll = connect_poll,
                                       .cancel = connect_cancel};

    blz_op_check(&op->future, &ops);
    *op = (blz_tcp_connect_op){.future = {.ops = &ops}, .conn = conn, .target = target};
    *conn = (blz_tcp){NULL, 0};
    if (options)
        op->options = *options;
    if (op->options.stagger_ns == 0)
        op->options.stagger_ns = DEFAULT_STAGGER;
    if (op->options.timeout_ns == 0 || op->options.timeout_ns == BLZ_NEVER)
        return &op->future;
    return blz_with_timeout(&op->limit, op->options.timeout_ns, &op->future);
}

blz_future *blz_tcp_connect(blz_tcp_connect_op *op, blz_tcp *conn, const char *target,
                            int64_t timeout_ns)
{
    return blz_tcp_connect_name(op, conn, target,
                                &(blz_tcp_connect_options){.timeout_ns =
                                                               timeout_ns > 0 ? timeout_ns : -1});
}
