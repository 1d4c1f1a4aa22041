/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of foreign descriptors (blz_fdset). Each member has an entry of its own, and two operations
 * that wait for readiness once, one a direction. They belong to the set, not to the wait: what has
 * not fired stays armed from one wait to the next, so that a wait costs only as much as has
 * changed.
 *
 * A member is in at most one list:
 *
 *   list      what is in it                          until
 *   ------------------------------------------------------------------------------------------
 *   changed   was set, or has been reported          the next wait: arms what is wanted and is not
 *   ready     something has been found out           blz_fdset_next reports it
 *
 * What is wanted no more stays armed, and is dropped when it fires; so changing one's mind costs
 * nothing. The one thing that is cancelled is a member that is taken out: its entry is closed, and
 * its memory stays until both operations have ended.
 *
 * All of it belongs to the task, except `done` and `waker`, which are under the lock: an operation
 * that ends, on the worker where it was armed, puts itself into `done` and wakes the task. As long
 * as it has not done that it is in flight; afterwards that worker does not know it any more.
 */
#include <blitz/fd.h>

#include "base/alloc.h"
#include "io/fd.h"

#include <blitz/error.h>

struct member;

struct side {
    struct io io;
    struct member *member;
    struct side *next_done;
    bool in_flight;
};

enum { IN_NO_LIST, IN_CHANGED, IN_READY };

struct member {
    struct side sides[2]; /* FD_IN, FD_OUT */
    blz__fd_ref ref;      /* none until it is first armed */
    struct fdset *set;
    struct member *next_in_bucket;
    struct member *next, *prev; /* in the list that it is in */
    void *cookie;
    int fd;
    int error;
    uint8_t wanted;
    uint8_t found;
    uint8_t list; /* IN_CHANGED and on */
    bool removed;
};

struct list {
    struct member *first, *last;
};

/* What blz_fdset is. */
struct fdset {
    blz_rt *rt; /* NULL: nothing has been set yet */
    struct member **buckets;
    size_t nr_buckets, nr_members; /* a power of two; those that are not removed */
    size_t nr_in_flight;           /* operations */
    struct list changed, ready;
    blz__lock lock;
    struct side *done;
    blz_waker waker;
};

_Static_assert(sizeof(struct fdset) <= sizeof(blz_fdset), "blz_fdset is too small");

enum { FIRST_BUCKETS = 16, DIRECTIONS = BLZ_FD_READ | BLZ_FD_WRITE };

static struct fdset *set_of(blz_fdset *set)
{
    return (struct fdset *)set;
}

/* ---- lists ---- */

static struct list *list_of(struct member *m)
{
    return m->list == IN_READY ? &m->set->ready : &m->set->changed;
}

static void leave_list(struct member *m)
{
    struct list *list = list_of(m);

    if (m->list == IN_NO_LIST)
        return;
    *(m->prev ? &m->prev->next : &list->first) = m->next;
    *(m->next ? &m->next->prev : &list->last) = m->prev;
    m->list = IN_NO_LIST;
}

static void enter_list(struct member *m, uint8_t which)
{
    leave_list(m);
    m->list = which;
    struct list *list = list_of(m);
    m->next = NULL;
    m->prev = list->last;
    *(list->last ? &list->last->next : &list->first) = m;
    list->last = m;
}

/* ---- members by number, which are small: most buckets have one ---- */

static struct member **bucket_of(const struct fdset *set, int fd)
{
    return &set->buckets[(size_t)fd & (set->nr_buckets - 1)];
}

static struct member **find(const struct fdset *set, int fd)
{
    struct member **at;

    if (set->nr_buckets == 0 || fd < 0)
        return NULL;
    for (at = bucket_of(set, fd); *at; at = &(*at)->next_in_bucket)
        if ((*at)->fd == fd)
            return at;
    return NULL;
}

static void free_buckets(const struct fdset *set, struct member **buckets, size_t count)
{
    if (buckets)
        blz__free(blz__rt_allocator(set->rt), buckets, count * sizeof(struct member *),
                  _Alignof(struct member *));
}

static void insert(struct fdset *set, struct member *m)
{
    struct member **bucket = bucket_of(set, m->fd);

    m->next_in_bucket = *bucket;
    *bucket = m;
}

/* Makes room for one more. */
static int grow(struct fdset *set)
{
    struct member **old = set->buckets, **new;
    size_t nr_old = set->nr_buckets, nr_new = nr_old ? 2 * nr_old : FIRST_BUCKETS;

    if (set->nr_members < nr_old)
        return 0;
    new = blz__alloc(blz__rt_allocator(set->rt), nr_new * sizeof(struct member *),
                     _Alignof(struct member *));
    if (!new)
        return -ENOMEM;
    for (size_t i = 0; i < nr_new; i++)
        new[i] = NULL;
    set->buckets = new;
    set->nr_buckets = nr_new;
    for (size_t i = 0; i < nr_old; i++)
        for (struct member *m = old[i], *next; m; m = next) {
            next = m->next_in_bucket;
            insert(set, m);
        }
    free_buckets(set, old, nr_old);
    return 0;
}

static struct member *add(struct fdset *set, int fd)
{
    struct member *m;

    if (grow(set) < 0)
        return NULL;
    m = blz__alloc(blz__rt_allocator(set->rt), sizeof *m, _Alignof(struct member));
    if (!m)
        return NULL;
    *m = (struct member){.set = set, .fd = fd};
    m->sides[FD_IN].member = m->sides[FD_OUT].member = m;
    insert(set, m);
    set->nr_members++;
    return m;
}

int blz_fdset_set(blz_fdset *public, blz_sysfd fd, unsigned events, void *cookie)
{
    struct fdset *set = set_of(public);
    struct member **at = find(set, fd), *m;

    if (fd < 0 || (events & ~(unsigned)DIRECTIONS))
        return -EINVAL;
    if (!set->rt)
        set->rt = blz_rt_current();
    if (!set->rt)
        return -ENXIO;
    m = at ? *at : add(set, fd);
    if (!m)
        return -ENOMEM;
    m->cookie = cookie;
    m->wanted = (uint8_t)events;
    if (m->list == IN_NO_LIST)
        enter_list(m, IN_CHANGED);
    return 0;
}

size_t blz_fdset_count(const blz_fdset *set)
{
    return ((const struct fdset *)set)->nr_members;
}

/* ---- taking out ---- */

static void free_if_idle(struct member *m)
{
    if (m->removed && !m->sides[FD_IN].in_flight && !m->sides[FD_OUT].in_flight)
        blz__free(blz__rt_allocator(m->set->rt), m, sizeof *m, _Alignof(struct member));
}

static void take_out(struct fdset *set, struct member **at)
{
    struct member *m = *at;

    *at = m->next_in_bucket;
    set->nr_members--;
    leave_list(m);
    m->removed = true;
    if (m->ref.entry)
        blz__fd_close(&m->ref);
    free_if_idle(m);
}

int blz_fdset_remove(blz_fdset *public, blz_sysfd fd)
{
    struct member **at = find(set_of(public), fd);

    if (!at)
        return -ENOENT;
    take_out(set_of(public), at);
    return 0;
}

/* ---- operations ---- */

/* By the worker where it was armed: it has ended. */
static void on_end(void *data)
{
    struct side *side = data;
    struct fdset *set = side->member->set;
    blz_waker waker;

    blz__lock_acquire(&set->lock);
    side->next_done = set->done;
    set->done = side;
    waker = set->waker;
    set->waker = (blz_waker){NULL, NULL};
    blz__lock_release(&set->lock); /* from here on the set may be gone */
    blz_waker_wake(&waker);
}

static void ignore(void *data)
{
    (void)data;
}

static const blz_waker_ops side_waker = {.wake = on_end,
                                         .wake_by_ref = ignore,
                                         .clone = ignore,
                                         .drop = ignore};

static bool is_shortage(int64_t value)
{
    return value == -ENOMEM || value == -ENOSPC || value == -EMFILE || value == -ENFILE;
}

/* Whether there is something to report. */
static bool is_wanted(const struct member *m)
{
    return m->wanted && (m->found & (m->wanted | BLZ_FD_ERR | BLZ_FD_HUP));
}

/* Takes note of a result. A shortage is not the descriptor's fault: it is armed anew. */
static int note(struct side *side, int64_t value)
{
    struct member *m = side->member;

    blz__fd_leave(&side->io);
    if (m->removed)
        return 0;
    if (is_shortage(value)) {
        if (m->list == IN_NO_LIST)
            enter_list(m, IN_CHANGED);
        return (int)value;
    }
    if (value < 0) {
        m->error = (int)value;
        value = BLZ_FD_ERR;
    }
    m->found |= (uint8_t)(value & (DIRECTIONS | BLZ_FD_ERR | BLZ_FD_HUP));
    if (is_wanted(m))
        enter_list(m, IN_READY);
    return 0;
}

static int arm(struct side *side, unsigned events, blz_cx *cx)
{
    static const blz_future_ops ops = {.name = "fdset"};
    struct io *io = &side->io;
    int rc;

    blz__io_init_wait((blz_io *)io, &ops, &side->member->ref, events);
    rc = blz__driver_need(); /* before anyone can send the driver a request to end it */
    if (rc == 0)
        rc = blz__fd_enter(io, cx);
    if (rc < 0)
        return rc;
    if (blz__io_try_first(io)) {
        blz__op_end(&io->op, cx); /* nobody else knows the entry, so nobody has cancelled it */
        return note(side, io->op.value);
    }
    side->in_flight = true;
    side->member->set->nr_in_flight++;
    blz__op_hand_over_for(&io->op, (blz_waker){side, &side_waker}, cx);
    return 0;
}

static int arm_wanted(struct member *m, blz_cx *cx)
{
    static const unsigned events[2] = {[FD_IN] = BLZ_FD_READ, [FD_OUT] = BLZ_FD_WRITE};
    int rc = 0;

    if (m->wanted && !m->ref.entry)
        rc = blz__fd_adopt(&m->ref, m->set->rt, m->fd, FD_FOREIGN | FD_SHARED);
    for (int i = FD_IN; i <= FD_OUT && rc == 0; i++)
        if ((m->wanted & events[i]) && !m->sides[i].in_flight)
            rc = arm(&m->sides[i], events[i], cx);
    return rc;
}

/* Arms what has changed. */
static int apply(struct fdset *set, blz_cx *cx)
{
    int rc = 0;

    while (set->changed.first && rc == 0) {
        struct member *m = set->changed.first;
        leave_list(m);
        rc = arm_wanted(m, cx);
        if (rc < 0 && m->list == IN_NO_LIST)
            enter_list(m, IN_CHANGED);
    }
    return rc;
}

static struct side *take_done(struct fdset *set)
{
    struct side *done;

    blz__lock_acquire(&set->lock);
    done = set->done;
    set->done = NULL;
    blz__lock_release(&set->lock);
    return done;
}

/* Takes note of what has ended. */
static int collect(struct fdset *set)
{
    int rc = 0;

    for (struct side *side = take_done(set), *next; side; side = next) {
        next = side->next_done;
        side->in_flight = false;
        set->nr_in_flight--;
        int shortage = note(side, side->io.op.value);
        rc = shortage ? shortage : rc;
        free_if_idle(side->member);
    }
    return rc;
}

/* ---- waiting ---- */

/* The task is woken when something ends. False: something has ended already. */
static bool ask_for_wake(struct fdset *set, blz_cx *cx)
{
    bool nothing;

    blz__lock_acquire(&set->lock);
    nothing = !set->done;
    if (nothing && !set->waker.ops)
        set->waker = blz_cx_waker(cx);
    blz__lock_release(&set->lock);
    return nothing;
}

static void ask_for_nothing(struct fdset *set)
{
    blz_waker waker;

    blz__lock_acquire(&set->lock);
    waker = set->waker;
    set->waker = (blz_waker){NULL, NULL};
    blz__lock_release(&set->lock);
    blz_waker_drop(&waker);
}

/*
 *   line       event                       next      what happens
 *   --------------------------------------------------------------------------------------------
 *   NEW        nothing is ready            TIMED     arms the timer
 *                                          FOREVER   there is no deadline
 *              and the deadline is past    LAST      others have a turn, the driver among them
 *   TIMED      the timer has fired         -         0
 *   LAST       polled again                -         0
 *   any        cancelled                   STOPPED   -ECANCELED
 *   any        something is ready          -         1, whatever else
 */
enum { WAIT_NEW, WAIT_TIMED, WAIT_FOREVER, WAIT_LAST, WAIT_STOPPED };

static blz_poll finish(blz_fdset_ready_op *op, int64_t result)
{
    if (op->future.line == WAIT_TIMED)
        blz_timer_cancel(&op->timer);
    ask_for_nothing(set_of(op->set));
    return blz_future_done(&op->future, result);
}

static blz_poll begin(blz_fdset_ready_op *op, blz_cx *cx)
{
    if (!cx->worker)
        return finish(op, -ENXIO); /* blz_wait: nothing would drive it */
    if (op->deadline_ns == BLZ_NEVER) {
        op->future.line = WAIT_FOREVER;
    } else if (op->deadline_ns <= blz__rt_now(blz_cx_rt(cx))) {
        op->future.line = WAIT_LAST;
        return blz_cx_yield(cx);
    } else {
        op->future.line = WAIT_TIMED;
        blz_timer_wake_at(&op->timer, op->deadline_ns, cx);
    }
    return BLZ_PENDING;
}

/* Nothing is ready. */
static blz_poll look_at_clock(blz_fdset_ready_op *op, blz_cx *cx)
{
    switch (op->future.line) {
    case WAIT_NEW:
        return begin(op, cx);
    case WAIT_TIMED:
        return blz_timer_is_armed(&op->timer) ? BLZ_PENDING : finish(op, 0);
    case WAIT_LAST:
        return finish(op, 0);
    case WAIT_STOPPED:
        return finish(op, -ECANCELED);
    default:
        return BLZ_PENDING;
    }
}

static blz_poll wait_poll(blz_future *self, blz_cx *cx)
{
    blz_fdset_ready_op *op = (blz_fdset_ready_op *)self;
    struct fdset *set = set_of(op->set);
    int rc;

    if (self->line == WAIT_NEW && !blz_coop_take(cx))
        return BLZ_PENDING;
    do {
        rc = self->line == WAIT_STOPPED ? 0 : apply(set, cx);
        int shortage = collect(set);
        if (set->ready.first)
            return finish(op, 1);
        if (rc < 0 || shortage < 0)
            return finish(op, rc < 0 ? rc : shortage);
        if (blz_is_ready(look_at_clock(op, cx)))
            return BLZ_READY;
    } while (!ask_for_wake(set, cx));
    return BLZ_PENDING;
}

static void wait_cancel(blz_future *self, blz_cx *cx)
{
    blz_fdset_ready_op *op = (blz_fdset_ready_op *)self;

    (void)cx;
    if (self->line == WAIT_TIMED)
        blz_timer_cancel(&op->timer);
    self->line = WAIT_STOPPED;
}

blz_future *blz_fdset_ready(blz_fdset_ready_op *op, blz_fdset *set, int64_t deadline_ns)
{
    static const blz_future_ops ops = {.name = "fdset_ready",
                                       .poll = wait_poll,
                                       .cancel = wait_cancel};

    blz_op_check(&op->future, &ops);
    op->future = (blz_future){.ops = &ops};
    op->set = set;
    op->deadline_ns = deadline_ns;
    return &op->future;
}

/* ---- reporting ---- */

bool blz_fdset_next(blz_fdset *public, blz_fdset_event *event)
{
    struct fdset *set = set_of(public);
    bool wanted = false;

    while (set->ready.first && !wanted) {
        struct member *m = set->ready.first;
        wanted = is_wanted(m); /* it may have been changed since */
        if (wanted)
            *event = (blz_fdset_event){m->fd,
                                       m->found & (m->wanted | BLZ_FD_ERR | BLZ_FD_HUP),
                                       m->cookie,
                                       m->error,
                                       {0, 0}};
        m->found = 0;
        m->error = 0;
        enter_list(m, IN_CHANGED);
    }
    return wanted;
}

/* ---- closing ---- */

static void take_all_out(struct fdset *set)
{
    for (size_t i = 0; i < set->nr_buckets; i++)
        while (set->buckets[i])
            take_out(set, &set->buckets[i]);
}

static blz_poll close_poll(blz_future *self, blz_cx *cx)
{
    struct fdset *set = set_of(((blz_fdset_ready_op *)self)->set);

    take_all_out(set);
    do
        collect(set);
    while (set->nr_in_flight > 0 && !ask_for_wake(set, cx));
    self->line = BLZ_LINE_BEGUN;
    if (set->nr_in_flight > 0)
        return BLZ_PENDING;
    ask_for_nothing(set);
    free_buckets(set, set->buckets, set->nr_buckets);
    *set = (struct fdset){.rt = NULL};
    return blz_future_done(self, 0);
}

static void close_cancel(blz_future *self, blz_cx *cx)
{
    (void)self; /* it ends as soon as it can */
    (void)cx;
}

blz_future *blz_fdset_close(blz_fdset_ready_op *op, blz_fdset *set)
{
    static const blz_future_ops ops = {.name = "fdset_close",
                                       .poll = close_poll,
                                       .cancel = close_cancel};

    blz_op_check(&op->future, &ops);
    op->future = (blz_future){.ops = &ops, .flags = BLZ_FUTURE_ALWAYS};
    op->set = set;
    return &op->future;
}
