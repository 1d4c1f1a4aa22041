/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See store.h. A shard is a hash table with chains. It doubles when it is full, all at once: that
 * is a 64th of the keys, so even with millions of them nobody waits for long.
 *
 * An entry is one piece of memory, key and value in it. Values change in place as long as they fit;
 * one that grows gets some room to grow further, so that many small APPENDs copy it only now and
 * then.
 */
#include "store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_BUCKETS = 16 };

int store_init(struct store *s, size_t max)
{
    int rc = hash_secret_init(&s->secret);

    if (rc < 0)
        return rc;
    s->budget.max = max;
    blz_notify_init(&s->sooner);
    atomic_init(&s->wake_ns, BLZ_NEVER);
    for (size_t i = 0; i < NR_SHARDS; i++) {
        pthread_mutex_init(&s->shards[i].lock, NULL);
        s->shards[i].sooner_ns = BLZ_NEVER;
        s->shards[i].budget = &s->budget;
    }
    return 0;
}

void store_free(struct store *s)
{
    store_flush(s);
    for (size_t i = 0; i < NR_SHARDS; i++)
        pthread_mutex_destroy(&s->shards[i].lock);
}

/* ---- locking ---- */

void store_lock(struct store *s, uint64_t shards)
{
    for (; shards; shards &= shards - 1) /* lowest first, as everybody does */
        pthread_mutex_lock(&s->shards[__builtin_ctzll(shards)].lock);
}

void store_unlock(struct store *s, uint64_t shards)
{
    int64_t sooner_ns = BLZ_NEVER;

    for (; shards; shards &= shards - 1) {
        struct shard *shard = &s->shards[__builtin_ctzll(shards)];
        if (blz_unlikely(shard->sooner_ns < sooner_ns))
            sooner_ns = shard->sooner_ns;
        shard->sooner_ns = BLZ_NEVER;
        pthread_mutex_unlock(&shard->lock);
    }
    if (blz_unlikely(sooner_ns != BLZ_NEVER))
        store_announce(s, sooner_ns);
}

static struct shard *shard_of(struct store *s, const struct key *key)
{
    return &s->shards[key->hash >> 58];
}

/* ---- sizes ---- */

static size_t size_with(size_t key_len, size_t value_size)
{
    return sizeof(struct entry) + key_len + value_size;
}

static size_t size_of(const struct entry *entry)
{
    return size_with(entry->key_len, entry->value_size);
}

/* ---- finding ---- */

static struct entry **bucket_of(const struct shard *shard, uint64_t hash)
{
    return &shard->buckets[hash & (shard->nr_buckets - 1)];
}

/* Where the pointer to the entry is, or would be; NULL: there are no buckets. */
static struct entry **find_link(const struct shard *shard, const struct key *key)
{
    struct entry **link = shard->nr_buckets > 0 ? bucket_of(shard, key->hash) : NULL;

    for (; link && *link; link = &(*link)->next)
        if ((*link)->hash == key->hash && (*link)->key_len == key->len &&
            memcmp((*link)->bytes, key->data, key->len) == 0)
            break;
    return link;
}

/* Takes an entry out and frees it; *link is the next one. */
static void drop_at(struct shard *shard, struct entry **link)
{
    struct entry *entry = *link;

    (void)shard_set_due(shard, entry, BLZ_NEVER);
    *link = entry->next;
    shard->nr_entries--;
    budget_give(shard->budget, size_of(entry));
    free(entry);
}

void shard_drop(struct shard *shard, struct entry *entry)
{
    struct entry **link = bucket_of(shard, entry->hash);

    while (*link != entry)
        link = &(*link)->next;
    drop_at(shard, link);
}

static bool has_expired(const struct entry *entry)
{
    return blz_unlikely(entry->expires_ns != BLZ_NEVER) && entry->expires_ns <= blz_now();
}

/* The link of an entry that is there and has not expired, or NULL. */
static struct entry **find_live(struct store *s, const struct key *key)
{
    struct shard *shard = shard_of(s, key);
    struct entry **link = find_link(shard, key);

    if (!link || !*link)
        return NULL;
    if (has_expired(*link)) {
        drop_at(shard, link);
        atomic_fetch_add_explicit(&s->nr_expired, 1, memory_order_relaxed);
        return NULL;
    }
    return link;
}

struct entry *store_find(struct store *s, const struct key *key)
{
    struct entry **link = find_live(s, key);

    return link ? *link : NULL;
}

bool store_remove(struct store *s, const struct key *key)
{
    struct entry **link = find_live(s, key);

    if (link)
        drop_at(shard_of(s, key), link);
    return link != NULL;
}

/* ---- putting ---- */

/* More buckets. Without memory for them chains get longer, but there must be some. */
static bool grow(struct shard *shard)
{
    size_t old = shard->nr_buckets, nr = old > 0 ? 2 * old : MIN_BUCKETS;
    struct entry **from = shard->buckets, **buckets;

    if (!budget_take(shard->budget, nr * sizeof *buckets))
        return old > 0;
    buckets = calloc(nr, sizeof(struct entry *));
    if (!buckets) {
        budget_give(shard->budget, nr * sizeof *buckets);
        return old > 0;
    }
    shard->buckets = buckets;
    shard->nr_buckets = nr;
    for (size_t i = 0; i < old; i++) {
        for (struct entry *entry = from[i], *next; entry; entry = next) {
            struct entry **to = bucket_of(shard, entry->hash);
            next = entry->next;
            entry->next = *to;
            *to = entry;
        }
    }
    free(from);
    budget_give(shard->budget, old * sizeof *from);
    return true;
}

static struct entry *insert(struct shard *shard, const struct key *key, size_t len)
{
    size_t size = size_with(key->len, len);
    struct entry *entry, **bucket;

    if (shard->nr_entries >= shard->nr_buckets && !grow(shard))
        return NULL;
    if (!budget_take(shard->budget, size))
        return NULL;
    entry = malloc(size);
    if (!entry) {
        budget_give(shard->budget, size);
        return NULL;
    }
    bucket = bucket_of(shard, key->hash);
    *entry = (struct entry){
        .next = *bucket,
        .hash = key->hash,
        .expires_ns = BLZ_NEVER,
        .key_len = (uint32_t)key->len,
        .value_len = (uint32_t)len,
        .value_size = (uint32_t)len,
    };
    memcpy(entry->bytes, key->data, key->len);
    *bucket = entry;
    shard->nr_entries++;
    return entry;
}

/* Whether a value of this length may stay where it is: it fits, and wastes not too much. */
static bool stays(const struct entry *entry, size_t len)
{
    return len <= entry->value_size && entry->value_size <= 4 * len + 64;
}

/* Makes room for a value of `size` bytes. NULL: no memory, and nothing has changed. */
static struct entry *reallocate(struct shard *shard, struct entry **link, size_t size)
{
    size_t old = (*link)->value_size;
    struct entry *entry;

    if (size > old && !budget_take(shard->budget, size - old))
        return NULL;
    entry = realloc(*link, size_with((*link)->key_len, size));
    if (!entry && size > old)
        budget_give(shard->budget, size - old);
    if (!entry)
        return NULL;
    if (size < old)
        budget_give(shard->budget, old - size);
    *link = entry;
    entry->value_size = (uint32_t)size;
    shard_fix_due(shard, entry);
    return entry;
}

static struct entry *resize(struct shard *shard, struct entry **link, size_t len)
{
    struct entry *entry = *link;

    if (!stays(entry, len))
        entry = reallocate(shard, link, len > entry->value_size ? len + len / 4 : len);
    if (entry)
        entry->value_len = (uint32_t)len;
    return entry;
}

struct entry *store_put(struct store *s, const struct key *key, size_t len)
{
    struct entry **link = find_live(s, key);
    struct shard *shard = shard_of(s, key);

    return link ? resize(shard, link, len) : insert(shard, key, len);
}

int store_expire(struct store *s, struct entry *entry, int64_t expires_ns)
{
    if (entry->expires_ns == expires_ns)
        return 0;
    return shard_set_due(&s->shards[entry->hash >> 58], entry, expires_ns);
}

/* ---- all of them ---- */

size_t store_count(struct store *s, size_t *nr_due)
{
    size_t nr = 0;

    *nr_due = 0;
    store_lock(s, ALL_SHARDS);
    for (size_t i = 0; i < NR_SHARDS; i++) {
        nr += s->shards[i].nr_entries;
        *nr_due += s->shards[i].nr_due;
    }
    store_unlock(s, ALL_SHARDS);
    return nr;
}

static void free_entries(struct budget *budget, struct entry **buckets, size_t nr)
{
    for (size_t i = 0; i < nr; i++) {
        for (struct entry *entry = buckets[i], *next; entry; entry = next) {
            next = entry->next;
            budget_give(budget, size_of(entry));
            free(entry);
        }
    }
    free(buckets);
    budget_give(budget, nr * sizeof *buckets);
}

/* All are taken away at once, and freed when others go on already. */
void store_flush(struct store *s)
{
    struct entry **buckets[NR_SHARDS];
    size_t nr[NR_SHARDS];

    store_lock(s, ALL_SHARDS);
    for (size_t i = 0; i < NR_SHARDS; i++) {
        struct shard *shard = &s->shards[i];
        buckets[i] = shard->buckets;
        nr[i] = shard->nr_buckets;
        shard->buckets = NULL;
        shard->nr_buckets = shard->nr_entries = 0;
        free(shard->due);
        budget_give(shard->budget, shard->due_size * sizeof *shard->due);
        shard->due = NULL;
        shard->nr_due = shard->due_size = 0;
    }
    store_unlock(s, ALL_SHARDS);
    for (size_t i = 0; i < NR_SHARDS; i++)
        free_entries(&s->budget, buckets[i], nr[i]);
}
