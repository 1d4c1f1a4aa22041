/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recording: see trace_ring.h. Called by the thread that an event is about, but for sessions, which
 * are opened and closed by who starts and stops the trace, and the writer's side at the end.
 */
#include "observe/trace_ring.h"

#include "base/shared.h"
#include "base/thread_locals.h"

#include "system/futex.h"
#include "system/thread.h"

#include <string.h>

/* ---- sessions ---- */

void blz__trace_open_session(trace_event *slots, uint64_t size, uint32_t max, uint32_t sample)
{
    trace_rings *rings = blz__trace_rings();

    blz__clock_init(&rings->clock);
    blz__lock_acquire(&rings->lock);
    blz__plain_write(&rings->slots); /* and the others: who claims a ring has had the lock since */
    rings->slots = slots;
    rings->size = size;
    rings->max = max;
    blz__store(&rings->nr, 0u, RELAXED);
    blz__store(&rings->unplaced, (uint64_t)0, RELAXED);
    blz__store(&rings->kick, 0u, RELAXED);
    blz__store(&rings->sample, sample, RELAXED);
    rings->last_session += rings->last_session == UINT32_MAX ? 2 : 1;
    blz__store(&rings->session, rings->last_session, RELAXED);
    blz__lock_release(&rings->lock);
}

void blz__trace_close_session(void)
{
    trace_rings *rings = blz__trace_rings();

    blz__swap(&rings->session, 0u, SEQ_CST); /* pairs with enter: we see it inside, or it sees us */
    for (uint32_t i = 0; i < TRACE_THREADS; i++)
        while (blz__load(&rings->all[i].inside, SEQ_CST) != 0)
            blz__thread_yield();
}

/* ---- a thread's ring ---- */

static void reset(trace_ring *ring, trace_event *slots)
{
    blz__plain_write(&ring->slots); /* and all the others; the writer looks after `nr` */
    ring->tail_seen = ring->open = 0;
    ring->dropped_shown = ring->depth = 0;
    ring->last_ns = 0;
    ring->slots = slots;
    ring->tid = blz__thread_id();
    blz__thread_name(ring->name, sizeof ring->name);
    blz__store(&ring->dropped, (uint64_t)0, RELAXED);
    blz__store(&ring->head, (uint64_t)0, RELAXED);
    blz__store(&ring->tail, (uint64_t)0, RELAXED);
}

/* The first event of this thread in the session. False: there is no session. */
static BLZ_NOINLINE bool claim(void)
{
    trace_rings *rings = blz__trace_rings();
    struct blz__thread_locals *mine = blz__thread_locals();
    uint32_t nr;

    blz__lock_acquire(&rings->lock);
    mine->trace_session = blz__load(&rings->session, RELAXED);
    mine->trace_ring = NULL;
    nr = blz__load(&rings->nr, RELAXED);
    if (mine->trace_session && nr < rings->max) {
        mine->trace_ring = &rings->all[nr];
        blz__plain_read(&rings->slots);
        reset(mine->trace_ring, rings->slots + nr * rings->size);
        blz__store(&rings->nr, nr + 1, RELEASE); /* pairs with the writer's acquire */
    }
    blz__lock_release(&rings->lock);
    return mine->trace_session != 0;
}

static void leave(trace_ring *ring)
{
    blz__fetch_sub(&ring->inside, 1u, RELEASE); /* pairs with close_session: our last access */
}

/* This thread's ring, which stays until `leave`; or NULL. */
static trace_ring *enter(void)
{
    trace_rings *rings = blz__trace_rings();
    struct blz__thread_locals *mine = blz__thread_locals();

    if (blz_unlikely(mine->trace_session != blz__load(&rings->session, RELAXED)) && !claim())
        return NULL;
    if (blz_unlikely(!mine->trace_ring)) {
        blz__fetch_add(&rings->unplaced, (uint64_t)1, RELAXED);
        return NULL;
    }
    blz__fetch_add(&mine->trace_ring->inside, 1u, SEQ_CST); /* both pair with close_session */
    if (blz_likely(blz__load(&rings->session, SEQ_CST) == mine->trace_session))
        return mine->trace_ring;
    leave(mine->trace_ring);
    return NULL;
}

/* ---- slots ---- */

static uint64_t slots_for(size_t len)
{
    return 1 + (len + sizeof(trace_event) - 1) / sizeof(trace_event);
}

/* Whether there is room for `wanted` slots besides those that are kept for ends. */
static bool has_room(trace_ring *ring, uint64_t wanted)
{
    uint64_t size = blz__trace_rings()->size;

    wanted += ring->open;
    if (ring->head + wanted - ring->tail_seen > size)
        ring->tail_seen = blz__load(&ring->tail, ACQUIRE); /* pairs with the release in take */
    return ring->head + wanted - ring->tail_seen <= size;
}

static void drop(trace_ring *ring)
{
    blz__store(&ring->dropped, ring->dropped + 1, RELAXED);
}

/* The ring is half full: somebody should come. */
static void kick(trace_ring *ring)
{
    trace_rings *rings = blz__trace_rings();

    if (blz_likely(ring->head - ring->tail_seen <= rings->size / 2))
        return;
    ring->tail_seen = blz__load(&ring->tail, ACQUIRE); /* pairs with the release in take */
    if (ring->head - ring->tail_seen > rings->size / 2 && !blz__load(&rings->kick, RELAXED)) {
        blz__store(&rings->kick, 1u, RELAXED);
        blz__futex_wake(&rings->kick, 1);
    }
}

static void put(trace_ring *ring, trace_event *event, const char *text)
{
    uint64_t mask = blz__trace_rings()->size - 1, head = ring->head;

    event->ticks = blz__clock_ticks(&blz__trace_rings()->clock);
    blz__plain_write(&ring->slots[head & mask]);
    ring->slots[head++ & mask] = *event;
    for (size_t done = 0; done < event->len; done += sizeof *event) {
        size_t rest = event->len - done;
        blz__plain_write(&ring->slots[head & mask]);
        memcpy(&ring->slots[head++ & mask], text + done,
               rest < sizeof *event ? rest : sizeof *event);
    }
    blz__store(&ring->head, head, RELEASE); /* pairs with take */
    kick(ring);
}

static void set_length(trace_event *event, const char *text)
{
    event->len = text ? (uint8_t)strnlen(text, TRACE_TEXT) : 0;
}

/* ---- the three kinds of events ---- */

uint32_t blz__trace_point(trace_event *event, const char *text)
{
    trace_ring *ring = enter();
    bool room;

    if (!ring)
        return 0;
    set_length(event, text);
    room = has_room(ring, slots_for(event->len));
    if (room)
        put(ring, event, text);
    else
        drop(ring);
    leave(ring);
    return room ? blz__thread_locals()->trace_session : 0;
}

uint32_t blz__trace_open(trace_event *event, const char *text)
{
    trace_ring *ring = enter();
    bool room;

    if (!ring)
        return 0;
    set_length(event, text);
    room = has_room(ring, slots_for(event->len) + 1);
    if (room) {
        put(ring, event, text);
        ring->open++;
    } else {
        drop(ring);
    }
    leave(ring);
    return room ? blz__thread_locals()->trace_session : 0;
}

void blz__trace_close(uint32_t ticket, trace_event *event)
{
    trace_ring *ring;

    if (ticket == 0 || ticket != blz__load(&blz__trace_rings()->session, RELAXED))
        return;
    ring = enter();
    if (!ring)
        return;
    if (ticket == blz__thread_locals()->trace_session) {
        ring->open--;
        put(ring, event, "");
    }
    leave(ring);
}

/* ---- the writer's side ---- */

static void copy_text(const trace_ring *ring, uint64_t at, char *text, size_t len)
{
    uint64_t mask = blz__trace_rings()->size - 1;

    for (size_t done = 0; done < len; done += sizeof(trace_event), at++) {
        size_t rest = len - done;
        blz__plain_read(&ring->slots[at & mask]);
        memcpy(text + done, &ring->slots[at & mask],
               rest < sizeof(trace_event) ? rest : sizeof(trace_event));
    }
}

bool blz__trace_take(trace_ring *ring, uint64_t until_ticks, trace_event *event, char *text)
{
    uint64_t mask = blz__trace_rings()->size - 1, tail = ring->tail;

    if (blz__load(&ring->head, ACQUIRE) == tail) /* pairs with the release in put */
        return false;
    blz__plain_read(&ring->slots);
    blz__plain_read(&ring->slots[tail & mask]);
    *event = ring->slots[tail & mask];
    if (event->ticks > until_ticks)
        return false;
    copy_text(ring, tail + 1, text, event->len);
    /* release: the slots are the thread's again; pairs with has_room and kick */
    blz__store(&ring->tail, tail + slots_for(event->len), RELEASE);
    return true;
}
