/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys and their values, shared by all workers.
 *
 * They are in shards, by their hash, each with a lock of its own. A command locks the shards of all
 * its keys, in order, and so is carried out at once for everybody else, whatever their number:
 *
 *     struct key key = store_key(store, "fruit", 5);
 *
 *     store_lock(store, store_shard(&key));
 *     entry = store_find(store, &key);
 *     ...                                     // an entry is valid as long as its shard is locked
 *     store_unlock(store, store_shard(&key));
 *
 * These are plain mutexes, not those of Blitz that a task can await: nothing waits while it holds
 * one, so the worst that a worker does with one is to copy a value.
 *
 * Keys and values are taken from a budget, and so are the tables that they are in: without room in
 * it nothing is added, as if there were no memory.
 *
 * A key that has expired is not found any more. What is never looked for again is removed by a task
 * (expire.c) that sleeps until the next key is due, and for ever if there is none.
 */
#ifndef REDIS_STORE_H
#define REDIS_STORE_H

#include "budget.h"
#include "hash.h"

#include <blitz.h>
#include <pthread.h>
#include <stdatomic.h>

enum { NR_SHARDS = 64 };

#define ALL_SHARDS UINT64_MAX

struct key {
    const char *data;
    size_t len;
    uint64_t hash;
};

struct entry {
    struct entry *next; /* in its bucket */
    uint64_t hash;
    int64_t expires_ns; /* BLZ_NEVER */
    uint32_t due_at;    /* its place in `due`, from 1; 0: none */
    uint32_t key_len;
    uint32_t value_len, value_size;
    char bytes[]; /* key, then value */
};

/* An entry that expires. */
struct due {
    int64_t expires_ns;
    struct entry *entry;
};

struct shard {
    _Alignas(128) pthread_mutex_t lock;
    struct entry **buckets;
    size_t nr_buckets; /* a power of two, or 0 */
    size_t nr_entries;
    struct budget *budget;

    struct due *due; /* a heap: the next to expire is due[0] */
    size_t nr_due, due_size;
    int64_t sooner_ns; /* the next one since this was locked, if it is a new one; or BLZ_NEVER */
};

struct store {
    struct hash_secret secret;
    _Atomic int64_t wake_ns; /* when the task that removes keys means to look again */
    blz_notify sooner;       /* it must look earlier */
    atomic_ullong nr_expired;
    struct budget budget;
    struct shard shards[NR_SHARDS];
};

/* With room for `max` bytes. 0 or a negative errno. */
int store_init(struct store *store, size_t max);
void store_free(struct store *store);

static inline struct key store_key(const struct store *store, const char *data, size_t len)
{
    return (struct key){data, len, hash_bytes(&store->secret, data, len)};
}

/* The shard of a key, as a bit; several are locked together. */
static inline uint64_t store_shard(const struct key *key)
{
    return (uint64_t)1 << (key->hash >> 58);
}

void store_lock(struct store *store, uint64_t shards);
void store_unlock(struct store *store, uint64_t shards);

static inline char *entry_value(struct entry *entry)
{
    return entry->bytes + entry->key_len;
}

/* ---- With the key's shard locked ---- */

/* NULL: there is none. */
struct entry *store_find(struct store *store, const struct key *key);

/*
 * The entry of a key, made if there is none, with a value of `len` bytes: those that it has had
 * stay as they are, others are for the caller to fill in. NULL: no memory, and nothing has changed.
 */
struct entry *store_put(struct store *store, const struct key *key, size_t len);

/* False: there was none. */
bool store_remove(struct store *store, const struct key *key);

/* Says when an entry expires; BLZ_NEVER: it does not. 0 or -ENOMEM. */
int store_expire(struct store *store, struct entry *entry, int64_t expires_ns);

/* ---- With nothing locked ---- */

/* The number of keys, and of those that expire. */
size_t store_count(struct store *store, size_t *nr_due);

/* Removes all keys. */
void store_flush(struct store *store);

/* ---- expire.c ---- */

/* Removes keys that have expired, until it is cancelled. */
struct expire {
    BLZ_FRAME;
    struct store *store;
    int64_t next_ns, rc;
    blz_notify_op wait;
    blz_timeout limit;
    blz_future pause;
};
BLZ_DECLARE_EXTERN(expire);

/* ---- between store.c and expire.c ---- */

/* Removes and frees an entry of a shard that is locked. */
void shard_drop(struct shard *shard, struct entry *entry);

/* As store_expire. */
int shard_set_due(struct shard *shard, struct entry *entry, int64_t expires_ns);

/* An entry has moved in memory. */
void shard_fix_due(struct shard *shard, struct entry *entry);

/* A key will expire then: the task looks no later. */
void store_announce(struct store *store, int64_t expires_ns);

#endif
