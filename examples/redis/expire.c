/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys that expire. Each shard has a heap of them, the next one first, and one task removes those
 * that are due from all shards. Between two looks it sleeps until the next is due: `wake_ns`. Who
 * makes a key expire earlier than that says so (store_announce) and wakes it. An idle server does
 * not wake up at all.
 *
 * Nothing is missed: before it looks, the task sets wake_ns to "never". A key that is set to expire
 * while it looks is either seen in its shard, under the lock, or set after that; then it finds a
 * wake_ns that is later, and wakes the task, which finds the notification waiting for it.
 */
#include "store.h"

#include <errno.h>
#include <stdlib.h>

enum { MIN_DUE = 16, AT_A_TIME = 64 };

/* ---- a shard's heap ---- */

static void place(struct shard *shard, size_t at, struct due due)
{
    shard->due[at] = due;
    due.entry->due_at = (uint32_t)at + 1;
}

static void sift_up(struct shard *shard, size_t at, struct due due)
{
    while (at > 0 && shard->due[(at - 1) / 2].expires_ns > due.expires_ns) {
        place(shard, at, shard->due[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    place(shard, at, due);
}

static void sift_down(struct shard *shard, size_t at, struct due due)
{
    size_t child;

    while ((child = 2 * at + 1) < shard->nr_due) {
        if (child + 1 < shard->nr_due &&
            shard->due[child + 1].expires_ns < shard->due[child].expires_ns)
            child++;
        if (shard->due[child].expires_ns >= due.expires_ns)
            break;
        place(shard, at, shard->due[child]);
        at = child;
    }
    place(shard, at, due);
}

/* Puts one where it belongs, in the place of another. */
static void sift(struct shard *shard, size_t at, struct due due)
{
    if (at > 0 && shard->due[(at - 1) / 2].expires_ns > due.expires_ns)
        sift_up(shard, at, due);
    else
        sift_down(shard, at, due);
}

static bool make_room(struct shard *shard)
{
    size_t size = shard->due_size > 0 ? 2 * shard->due_size : MIN_DUE;
    struct due *due;

    if (shard->nr_due < shard->due_size)
        return true;
    if (!budget_take(shard->budget, (size - shard->due_size) * sizeof *due))
        return false;
    due = realloc(shard->due, size * sizeof *due);
    if (!due) {
        budget_give(shard->budget, (size - shard->due_size) * sizeof *due);
        return false;
    }
    shard->due = due;
    shard->due_size = size;
    return true;
}

static void remove_due(struct shard *shard, struct entry *entry)
{
    size_t at = entry->due_at - 1u;
    struct due last = shard->due[--shard->nr_due];

    entry->due_at = 0;
    if (at < shard->nr_due)
        sift(shard, at, last);
}

int shard_set_due(struct shard *shard, struct entry *entry, int64_t expires_ns)
{
    struct due due = {expires_ns, entry};

    if (expires_ns != BLZ_NEVER && entry->due_at == 0 && !make_room(shard))
        return -ENOMEM;
    entry->expires_ns = expires_ns;
    if (expires_ns == BLZ_NEVER) {
        if (entry->due_at > 0)
            remove_due(shard, entry);
        return 0;
    }
    if (entry->due_at > 0)
        sift(shard, entry->due_at - 1u, due);
    else
        sift_up(shard, shard->nr_due++, due);
    if (entry->due_at == 1)
        shard->sooner_ns = expires_ns;
    return 0;
}

void shard_fix_due(struct shard *shard, struct entry *entry)
{
    if (entry->due_at > 0)
        shard->due[entry->due_at - 1u].entry = entry;
}

/* ---- the task ---- */

/* Pairs with the exchange in look: see the top of this file. */
static bool lower(struct store *s, int64_t expires_ns)
{
    int64_t wake_ns = atomic_load(&s->wake_ns);

    while (expires_ns < wake_ns)
        if (atomic_compare_exchange_weak(&s->wake_ns, &wake_ns, expires_ns))
            return true;
    return false;
}

void store_announce(struct store *s, int64_t expires_ns)
{
    if (lower(s, expires_ns))
        blz_notify_one(&s->sooner);
}

/* Removes some keys of a shard; when the next of them is due. */
static int64_t expire_shard(struct store *s, struct shard *shard)
{
    int64_t next_ns = BLZ_NEVER, now_ns = blz_now();
    unsigned nr = 0;

    pthread_mutex_lock(&shard->lock);
    while (shard->nr_due > 0 && shard->due[0].expires_ns <= now_ns && nr < AT_A_TIME) {
        shard_drop(shard, shard->due[0].entry);
        nr++;
    }
    if (shard->nr_due > 0)
        next_ns = shard->due[0].expires_ns;
    pthread_mutex_unlock(&shard->lock);
    atomic_fetch_add_explicit(&s->nr_expired, nr, memory_order_relaxed);
    return next_ns;
}

/* Looks at all shards: when to look again, which may have passed already. */
static int64_t look(struct store *s)
{
    atomic_exchange(&s->wake_ns, BLZ_NEVER);
    for (size_t i = 0; i < NR_SHARDS; i++)
        lower(s, expire_shard(s, &s->shards[i]));
    return atomic_load(&s->wake_ns);
}

BLZ_ASYNC_EXTERN(expire)
{
    BLZ_BEGIN;
    do {
        self->next_ns = look(self->store);
        if (self->next_ns <= blz_now()) /* more than it does at a time */
            BLZ_AWAIT(self->rc, blz_yield(&self->pause));
        else
            BLZ_AWAIT(self->rc,
                      blz_with_deadline(&self->limit, self->next_ns,
                                        blz_notify_await(&self->wait, &self->store->sooner)));
    } while (self->rc >= 0 || self->rc == -ETIMEDOUT);
    BLZ_END(self->rc);
}
