/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipes in memory: two rings of bytes, one for each direction, and a lock for both.
 *
 * In each direction there is at most one reader and one writer (a second one gets -EBUSY). It
 * enters under the lock, copies without it (what is between head and tail is the reader's alone,
 * the rest the writer's), and under the lock again moves head or tail. Who finds nothing to copy
 * leaves a waker; whoever changes something takes the wakers that this concerns, and wakes after
 * the unlock. A waker is only a reason to look again: the bytes are moved by the one whose memory
 * it is, so a cancelled operation has moved none.
 *
 * Everyone who has entered holds a reference, as does each open end; the last one frees.
 *
 * A handle may have copies that are used after both ends have been closed. So it does not point to
 * the pair but to a slot, whose memory stays for as long as the process lives and is used again by
 * later pairs. The lock is the slot's, and so is the generation, which goes up when the pair is
 * freed: a stale handle finds another one there. Slots that are free are in two lists. Any thread
 * adds to `returned` with one atomic operation. `stock` belongs to the thread that has the lock,
 * which fills it from `returned`; a thread that does not get the lock makes a new slot. So nobody
 * waits, and a forked child is not stuck if its parent had the lock.
 */
#include "stream/stream.h"

#include "base/assert.h"
#include "base/alloc.h"
#include "base/shared.h"
#include "system/memory.h"

#include <blitz/error.h>
#include <string.h>

enum { DEFAULT_CAPACITY = 65536 };

/* One who reads, or writes, in one direction. */
struct side {
    struct io_pair *entered; /* or NULL */
    bool waits;              /* and there is its waker */
    bool copies;             /* without the lock */
    blz_waker waker;
};

/* What one end writes and the other one reads. */
struct ring {
    uint64_t head, tail; /* bytes read and written so far */
    bool ended;          /* nothing more will be written */
    struct side reader, writer;
    char *data;
};

/* What handles point to: never freed. */
struct pair_slot {
    blz__lock lock;      /* of the pair */
    uint64_t generation; /* of the pair that is in it; 63 bits are in a handle */
    struct pair *pair;
    struct pair_slot *next; /* in a list of free ones */
};

struct pair {
    struct pair_slot *slot;
    uint32_t refs;
    bool closed[2]; /* ends */
    size_t capacity;
    blz_allocator allocator;
    struct ring rings[2]; /* by the end that writes */
};

enum { OP_FRESH, OP_WAITS, OP_CANCELLED };

/* ---- slots ---- */

static struct pair_slots *slots(void)
{
    return &blz__shared()->pair_slots;
}

static void return_slot(struct pair_slot *slot)
{
    slot->next = blz__load(&slots()->returned, RELAXED);
    /* release: pairs with the acquire in take_free_slot */
    while (!blz__cas_weak(&slots()->returned, &slot->next, slot, RELEASE, RELAXED))
        ;
}

/* NULL: there is none, or another thread is here. */
static struct pair_slot *take_free_slot(void)
{
    struct pair_slot *slot;

    if (!blz__lock_try(&slots()->lock))
        return NULL;
    if (!slots()->stock)
        slots()->stock = blz__swap(&slots()->returned, (struct pair_slot *)NULL, ACQUIRE);
    slot = slots()->stock;
    if (slot)
        slots()->stock = slot->next;
    blz__lock_release(&slots()->lock);
    return slot;
}

/* NULL: no memory. */
static struct pair_slot *take_slot(void)
{
    struct pair_slot *slot = take_free_slot();

    return slot ? slot : blz__memory_alloc_zeroed(sizeof *slot, _Alignof(struct pair_slot));
}

/* ---- handles ---- */

static unsigned end_of(uint64_t word)
{
    return word & 1;
}

/* Under the slot's lock. NULL: the handle is stale. */
static struct pair *pair_in(const struct pair_slot *slot, uint64_t word)
{
    BLZ_ASSERT(blz__lock_is_held(&slot->lock));
    return slot->pair && slot->generation << 1 == (word & ~(uint64_t)1) ? slot->pair : NULL;
}

static blz_stream handle_of(const blz_stream_ops *ops, struct pair_slot *slot, unsigned end)
{
    return (blz_stream){ops, slot, slot->generation << 1 | end};
}

/* ---- life ---- */

static size_t size_of(const struct pair *pair)
{
    return sizeof *pair + 2 * pair->capacity;
}

/* Under the lock; true: the caller is the last, and frees after the unlock. */
static bool drop_ref(struct pair *pair)
{
    BLZ_ASSERT(blz__lock_is_held(&pair->slot->lock));
    BLZ_ASSERT(pair->refs > 0);
    if (--pair->refs > 0)
        return false;
    pair->slot->pair = NULL;
    pair->slot->generation++;
    return true;
}

static void free_pair(struct pair *pair)
{
    blz_allocator allocator = pair->allocator;

    return_slot(pair->slot);
    blz__free(&allocator, pair, size_of(pair), _Alignof(struct pair));
}

/* ---- waking ---- */

/* Wakers that were taken under the lock, for after it. */
struct woken {
    blz_waker wakers[4];
    int count;
};

static void take_waker(struct side *side, struct woken *woken)
{
    if (!side->waits)
        return;
    side->waits = false;
    woken->wakers[woken->count++] = side->waker;
}

static void wake_all(struct woken *woken)
{
    for (int i = 0; i < woken->count; i++)
        blz_waker_wake(&woken->wakers[i]);
}

/* ---- copying ---- */

static void copy(struct ring *ring, size_t capacity, bool writes, uint64_t at, char *mem,
                 size_t len)
{
    size_t start = (size_t)(at % capacity), first = capacity - start;

    if (first > len)
        first = len;
    if (writes) {
        memcpy(ring->data + start, mem, first);
        memcpy(ring->data, mem + first, len - first);
    } else {
        memcpy(mem, ring->data + start, first);
        memcpy(mem + first, ring->data, len - first);
    }
}

/* Up to `limit` bytes between the caller's pieces and the ring, from position `at` on. */
static size_t copy_pieces(struct io_pair *op, struct ring *ring, uint64_t at, size_t limit)
{
    size_t all = 0;

    for (size_t i = 0; i < op->count && all < limit; i++) {
        size_t len = op->iov[i].len < limit - all ? op->iov[i].len : limit - all;
        if (len > 0)
            copy(ring, op->pair->capacity, op->writes, at + all, op->iov[i].base, len);
        all += len;
    }
    return all;
}

/* ---- one operation ---- */

static struct ring *ring_of(const struct io_pair *op)
{
    return &op->pair->rings[op->writes ? op->end : 1 - op->end];
}

static struct side *side_of(const struct io_pair *op)
{
    struct ring *ring = ring_of(op);

    return op->writes ? &ring->writer : &ring->reader;
}

static bool is_empty(const struct io_pair *op)
{
    for (size_t i = 0; i < op->count; i++)
        if (op->iov[i].len > 0)
            return false;
    return true;
}

/* Whether it may begin. Under the lock. */
static int enter(struct io_pair *op)
{
    struct side *side;

    BLZ_ASSERT(blz__lock_is_held(&op->slot->lock));
    op->pair = pair_in(op->slot, op->word);
    if (!op->pair || op->pair->closed[op->end])
        return -EBADF;
    side = side_of(op);
    if (side->entered)
        return -EBUSY;
    side->entered = op;
    op->pair->refs++;
    return 0;
}

/* What it could move now, -EAGAIN: nothing; or how it ends. Under the lock. */
static int64_t look(const struct io_pair *op)
{
    const struct pair *pair = op->pair;
    const struct ring *ring = ring_of(op);
    size_t filled = (size_t)(ring->tail - ring->head);

    BLZ_ASSERT(blz__lock_is_held(&op->slot->lock));
    BLZ_ASSERT(filled <= pair->capacity);
    if (pair->closed[op->end])
        return -EBADF;
    if (op->writes && (ring->ended || pair->closed[1 - op->end]))
        return -EPIPE;
    if (is_empty(op))
        return 0;
    if (op->writes)
        return filled < pair->capacity ? (int64_t)(pair->capacity - filled) : -EAGAIN;
    if (filled > 0)
        return (int64_t)filled;
    /* Who is just copying has written before the end. */
    return (ring->ended || pair->closed[1 - op->end]) && !ring->writer.copies ? 0 : -EAGAIN;
}

static void wait_here(struct side *side, blz_cx *cx)
{
    if (side->waits)
        return;
    side->waker = blz_cx_waker(cx);
    side->waits = true;
}

/* Moves up to `limit` bytes; called under the lock, which is free meanwhile. */
static size_t move(struct io_pair *op, size_t limit, struct woken *woken)
{
    struct ring *ring = ring_of(op);
    struct side *side = side_of(op);
    uint64_t at = op->writes ? ring->tail : ring->head;
    size_t n;

    BLZ_ASSERT(blz__lock_is_held(&op->slot->lock));
    BLZ_ASSERT(side->entered == op);
    BLZ_ASSERT(!side->copies);
    side->copies = true;
    blz__lock_release(&op->slot->lock);
    n = copy_pieces(op, ring, at, limit);
    blz__lock_acquire(&op->slot->lock);
    side->copies = false;
    if (op->writes)
        ring->tail += n;
    else
        ring->head += n;
    take_waker(op->writes ? &ring->reader : &ring->writer, woken);
    return n;
}

/* Leaves, and unlocks. Whoever changed what it waited for has taken its waker. */
static blz_poll leave(struct io_pair *op, int64_t result, struct woken *woken)
{
    struct pair *pair = op->pair;
    bool last;

    BLZ_ASSERT(blz__lock_is_held(&op->slot->lock));
    BLZ_ASSERT(side_of(op)->entered == op);
    side_of(op)->entered = NULL;
    last = drop_ref(pair);
    blz__lock_release(&op->slot->lock);
    wake_all(woken);
    if (last)
        free_pair(pair);
    op->done = result > 0 ? (uint64_t)result : 0;
    return blz_future_done(&op->future, result);
}

static blz_poll pair_poll(blz_future *self, blz_cx *cx)
{
    struct io_pair *op = (struct io_pair *)self;
    struct woken woken = {.count = 0};
    int64_t rc = 0;

    if (self->line == OP_CANCELLED)
        return blz_future_done(self, -ECANCELED);
    if (self->line == OP_FRESH && !blz_coop_take(cx))
        return BLZ_PENDING;
    blz__lock_acquire(&op->slot->lock);
    if (self->line == OP_FRESH)
        rc = enter(op);
    if (rc < 0) {
        blz__lock_release(&op->slot->lock);
        return blz_future_done(self, rc);
    }
    rc = look(op);
    if (rc > 0)
        rc = (int64_t)move(op, (size_t)rc, &woken);
    if (rc != -EAGAIN)
        return leave(op, rc, &woken);
    wait_here(side_of(op), cx);
    if (self->line == OP_FRESH)
        blz_coop_give_back(cx);
    self->line = OP_WAITS;
    blz__lock_release(&op->slot->lock);
    return BLZ_PENDING;
}

static void pair_cancel(blz_future *self, blz_cx *cx)
{
    struct io_pair *op = (struct io_pair *)self;
    struct woken own = {.count = 0};
    struct pair *pair = op->pair;
    bool last;

    (void)cx;
    if (self->line == OP_WAITS) {
        blz__lock_acquire(&op->slot->lock);
        take_waker(side_of(op), &own);
        side_of(op)->entered = NULL;
        last = drop_ref(pair);
        blz__lock_release(&op->slot->lock);
        if (own.count > 0)
            blz_waker_drop(&own.wakers[0]);
        if (last)
            free_pair(pair);
    }
    self->line = OP_CANCELLED;
}

/* ---- the interface ---- */

static struct io_pair *init(blz_io *io, const blz_stream *stream, bool writes)
{
    static const blz_future_ops ops[] = {
        {.name = "pair_read", .poll = pair_poll, .cancel = pair_cancel},
        {.name = "pair_write", .poll = pair_poll, .cancel = pair_cancel},
    };
    struct io_pair *op = (struct io_pair *)io;

    io_check(io, &ops[writes]);
    op->future = (blz_future){.ops = &ops[writes]};
    op->done = 0;
    op->kind = IO_PAIR;
    op->slot = stream->object;
    op->word = stream->word;
    op->writes = writes;
    op->end = (uint8_t)end_of(stream->word);
    return op;
}

static blz_future *with_one(struct io_pair *op, void *buf, size_t len)
{
    op->one = (blz_iovec){buf, len};
    op->iov = &op->one;
    op->count = 1;
    return &op->future;
}

static blz_future *pair_read(blz_io *io, const blz_stream *stream, void *buf, size_t len)
{
    return with_one(init(io, stream, false), buf, len);
}

static blz_future *pair_write(blz_io *io, const blz_stream *stream, const void *buf, size_t len)
{
    return with_one(init(io, stream, true), (void *)(uintptr_t)buf, len);
}

static blz_future *pair_writev(blz_io *io, const blz_stream *stream, const blz_iovec *iov,
                               size_t count)
{
    struct io_pair *op = init(io, stream, true);

    op->iov = iov;
    op->count = count;
    return &op->future;
}

static int64_t shut_down(const blz_stream *stream)
{
    struct pair_slot *slot = stream->object;
    struct woken woken = {.count = 0};
    struct pair *pair;
    bool open;

    blz__lock_acquire(&slot->lock);
    pair = pair_in(slot, stream->word);
    open = pair && !pair->closed[end_of(stream->word)];
    if (open) {
        struct ring *ring = &pair->rings[end_of(stream->word)];
        ring->ended = true;
        take_waker(&ring->reader, &woken);
        take_waker(&ring->writer, &woken);
    }
    blz__lock_release(&slot->lock);
    wake_all(&woken);
    return open ? 0 : -EBADF;
}

static blz_future *pair_shutdown(blz_io *io, const blz_stream *stream)
{
    return blz_stream_call(io, stream, shut_down);
}

static int pair_close(const blz_stream *stream)
{
    struct pair_slot *slot = stream->object;
    struct woken woken = {.count = 0};
    struct pair *pair;
    bool last;

    blz__lock_acquire(&slot->lock);
    pair = pair_in(slot, stream->word);
    if (!pair || pair->closed[end_of(stream->word)]) {
        blz__lock_release(&slot->lock);
        return -EBADF;
    }
    pair->closed[end_of(stream->word)] = true;
    for (int i = 0; i < 2; i++) {
        take_waker(&pair->rings[i].reader, &woken);
        take_waker(&pair->rings[i].writer, &woken);
    }
    last = drop_ref(pair);
    blz__lock_release(&slot->lock);
    wake_all(&woken);
    if (last)
        free_pair(pair);
    return 0;
}

int blz_stream_pair(blz_stream *a, blz_stream *b, size_t capacity, const blz_allocator *allocator)
{
    static const blz_stream_ops ops = {
        .name = "pair",
        .read = pair_read,
        .write = pair_write,
        .writev = pair_writev,
        .shutdown = pair_shutdown,
        .close = pair_close,
    };
    struct pair *pair = NULL;
    struct pair_slot *slot;

    *a = *b = (blz_stream){NULL, NULL, 0};
    if (!allocator)
        allocator = &blz__system_allocator;
    if (capacity == 0)
        capacity = DEFAULT_CAPACITY;
    if (capacity <= (SIZE_MAX - sizeof *pair) / 2)
        pair = blz__alloc(allocator, sizeof *pair + 2 * capacity, _Alignof(struct pair));
    if (!pair)
        return -ENOMEM;
    slot = take_slot();
    if (!slot) {
        blz__free(allocator, pair, sizeof *pair + 2 * capacity, _Alignof(struct pair));
        return -ENOMEM;
    }
    *pair = (struct pair){.slot = slot, .refs = 2, .capacity = capacity, .allocator = *allocator};
    pair->rings[0].data = (char *)(pair + 1);
    pair->rings[1].data = (char *)(pair + 1) + capacity;
    blz__lock_acquire(&slot->lock); /* a stale handle may be looking */
    slot->pair = pair;
    blz__lock_release(&slot->lock);
    *a = handle_of(&ops, slot, 0);
    *b = handle_of(&ops, slot, 1);
    return 0;
}
