/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands about keys and their values. Each runs with the shards of its keys locked; call->key is
 * the first of them.
 */
#include "redis.h"

#include <string.h>

/* In milliseconds; beyond this Redis refuses a time in seconds, and so do we. */
#define MAX_TIME (INT64_MAX / 1000)

static struct store *store_of(struct call *call)
{
    return &call->client->server->store;
}

static struct bytes *out_of(struct call *call)
{
    return &call->client->out;
}

static struct key key_at(struct call *call, unsigned i)
{
    return i == 1 ? call->key : store_key(store_of(call), arg(call, i), arg_len(call, i));
}

static void reply_value(struct call *call, struct entry *entry)
{
    if (entry)
        reply_bulk(out_of(call), entry_value(entry), entry->value_len);
    else
        reply_null(out_of(call), call->client->proto);
}

static void reply_no_memory(struct call *call)
{
    reply_error(out_of(call), "OOM command not allowed when used memory > 'maxmemory'.");
}

/* Sets a value; when it expires stays as it is. NULL: no memory. */
static struct entry *put(struct call *call, const struct key *key, const char *value, size_t len)
{
    struct entry *entry = store_put(store_of(call), key, len);

    if (entry && len > 0)
        memcpy(entry_value(entry), value, len);
    return entry;
}

void run_get(struct call *call)
{
    reply_value(call, store_find(store_of(call), &call->key));
}

void run_strlen(struct call *call)
{
    struct entry *entry = store_find(store_of(call), &call->key);

    reply_int(out_of(call), entry ? entry->value_len : 0);
}

/* ---- when it expires ---- */

/* In so many units from now; not so far ahead that it would be never. */
static int64_t expires_in(int64_t n, int64_t unit_ns)
{
    int64_t ns = blz_deadline(blz_time_of(n, unit_ns));

    return ns == BLZ_NEVER ? BLZ_NEVER - 1 : ns;
}

static void expire(struct call *call, int64_t unit_ns)
{
    struct entry *entry;
    int64_t n;

    if (!arg_int(call, 2, &n))
        return;
    if (n > MAX_TIME || n < -MAX_TIME) {
        reply_error(out_of(call), "ERR invalid expire time in '%s' command", call->command->name);
        return;
    }
    entry = store_find(store_of(call), &call->key);
    if (entry && n <= 0)
        store_remove(store_of(call), &call->key);
    else if (entry && store_expire(store_of(call), entry, expires_in(n, unit_ns)) < 0) {
        reply_no_memory(call);
        return;
    }
    reply_int(out_of(call), entry != NULL);
}

void run_expire(struct call *call)
{
    expire(call, BLZ_SEC);
}

void run_pexpire(struct call *call)
{
    expire(call, BLZ_MSEC);
}

/* What is left, rounded; -1: it does not expire; -2: there is no such key. */
static int64_t time_to_live(struct call *call, int64_t unit_ns, int64_t round_ns)
{
    struct entry *entry = store_find(store_of(call), &call->key);

    if (!entry)
        return -2;
    if (entry->expires_ns == BLZ_NEVER)
        return -1;
    return blz_time_add(blz_deadline_left(entry->expires_ns), round_ns) / unit_ns;
}

void run_ttl(struct call *call)
{
    reply_int(out_of(call), time_to_live(call, BLZ_SEC, BLZ_SEC / 2));
}

void run_pttl(struct call *call)
{
    reply_int(out_of(call), time_to_live(call, BLZ_MSEC, BLZ_MSEC - 1));
}

void run_persist(struct call *call)
{
    struct entry *entry = store_find(store_of(call), &call->key);
    bool expires = entry && entry->expires_ns != BLZ_NEVER;

    if (expires)
        (void)store_expire(store_of(call), entry, BLZ_NEVER); /* takes no memory */
    reply_int(out_of(call), expires);
}

/* ---- SET ---- */

struct set_options {
    bool if_absent, if_present; /* NX, XX */
    bool get, keep_ttl;
    int64_t unit_ns; /* of the time: EX, PX; 0: none was given */
    unsigned time;   /* which word it is */
};

/* One option at word *i, which is then its last word. False: there is no such option here. */
static bool parse_set_option(struct call *call, unsigned *i, struct set_options *o)
{
    bool ex = arg_is(call, *i, "ex");
    int64_t unit_ns = ex ? BLZ_SEC : BLZ_MSEC;

    if (arg_is(call, *i, "nx") && !o->if_present)
        return o->if_absent = true;
    if (arg_is(call, *i, "xx") && !o->if_absent)
        return o->if_present = true;
    if (arg_is(call, *i, "get"))
        return o->get = true;
    if (arg_is(call, *i, "keepttl") && o->unit_ns == 0)
        return o->keep_ttl = true;
    if ((!ex && !arg_is(call, *i, "px")) || o->keep_ttl || *i + 1 == call->nr_args ||
        (o->unit_ns != 0 && o->unit_ns != unit_ns))
        return false;
    o->unit_ns = unit_ns;
    o->time = ++*i;
    return true;
}

/* All of them, and when the value expires. False: something is wrong, and that has been replied. */
static bool parse_set(struct call *call, struct set_options *o, int64_t *expires_ns)
{
    int64_t n;

    for (unsigned i = 3; i < call->nr_args; i++) {
        if (!parse_set_option(call, &i, o)) {
            reply_syntax_error(call);
            return false;
        }
    }
    *expires_ns = BLZ_NEVER;
    if (o->unit_ns == 0)
        return true;
    if (!arg_int(call, o->time, &n))
        return false;
    if (n <= 0 || n > MAX_TIME) {
        reply_error(out_of(call), "ERR invalid expire time in 'set' command");
        return false;
    }
    *expires_ns = expires_in(n, o->unit_ns);
    return true;
}

/*
 * With GET the old value is the reply, whether or not there is a new one. It is written first,
 * because it goes with that; and taken back if there is no memory after all.
 */
static void set_with_options(struct call *call, const struct set_options *o, int64_t expires_ns)
{
    struct entry *entry = store_find(store_of(call), &call->key);
    bool refused = entry ? o->if_absent : o->if_present;
    size_t before = out_of(call)->len;
    int rc = 0;

    if (o->get)
        reply_value(call, entry);
    else if (refused)
        reply_null(out_of(call), call->client->proto);
    if (refused)
        return;
    entry = put(call, &call->key, arg(call, 2), arg_len(call, 2));
    if (entry && !o->keep_ttl)
        rc = store_expire(store_of(call), entry, expires_ns);
    if (entry && rc == 0) {
        if (!o->get)
            reply_ok(out_of(call));
        return;
    }
    if (entry)
        store_remove(store_of(call), &call->key);
    out_of(call)->len = before;
    reply_no_memory(call);
}

void run_set(struct call *call)
{
    struct set_options options = {0};
    struct entry *entry;
    int64_t expires_ns;

    if (call->nr_args > 3) {
        if (parse_set(call, &options, &expires_ns))
            set_with_options(call, &options, expires_ns);
        return;
    }
    entry = put(call, &call->key, arg(call, 2), arg_len(call, 2));
    if (!entry) {
        reply_no_memory(call);
        return;
    }
    (void)store_expire(store_of(call), entry, BLZ_NEVER); /* takes no memory */
    reply_ok(out_of(call));
}

/* ---- numbers, and longer values ---- */

static void add(struct call *call, int64_t by)
{
    struct entry *entry = store_find(store_of(call), &call->key);
    char digits[24];
    int64_t n = 0;

    if (entry && !parse_int(entry_value(entry), entry->value_len, &n)) {
        reply_error(out_of(call), "ERR value is not an integer or out of range");
        return;
    }
    if (__builtin_add_overflow(n, by, &n)) {
        reply_error(out_of(call), "ERR increment or decrement would overflow");
        return;
    }
    if (put(call, &call->key, digits, format_int(digits, n)))
        reply_int(out_of(call), n);
    else
        reply_no_memory(call);
}

void run_incr(struct call *call)
{
    add(call, 1);
}

void run_decr(struct call *call)
{
    add(call, -1);
}

void run_incrby(struct call *call)
{
    int64_t by;

    if (arg_int(call, 2, &by))
        add(call, by);
}

void run_decrby(struct call *call)
{
    int64_t by;

    if (!arg_int(call, 2, &by))
        return;
    if (by == INT64_MIN)
        reply_error(out_of(call), "ERR decrement would overflow");
    else
        add(call, -by);
}

void run_append(struct call *call)
{
    struct entry *entry = store_find(store_of(call), &call->key);
    size_t before = entry ? entry->value_len : 0, len = arg_len(call, 2);

    if (before + len > RESP_WORD_MAX) {
        reply_error(out_of(call), "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
        return;
    }
    entry = store_put(store_of(call), &call->key, before + len);
    if (!entry) {
        reply_no_memory(call);
        return;
    }
    if (len > 0)
        memcpy(entry_value(entry) + before, arg(call, 2), len);
    reply_int(out_of(call), (int64_t)(before + len));
}

/* ---- several keys ---- */

void run_del(struct call *call)
{
    int64_t nr = 0;

    for (unsigned i = 1; i < call->nr_args; i++) {
        struct key key = key_at(call, i);
        nr += store_remove(store_of(call), &key);
    }
    reply_int(out_of(call), nr);
}

void run_exists(struct call *call)
{
    int64_t nr = 0;

    for (unsigned i = 1; i < call->nr_args; i++) {
        struct key key = key_at(call, i);
        nr += store_find(store_of(call), &key) != NULL;
    }
    reply_int(out_of(call), nr);
}

void run_mget(struct call *call)
{
    reply_array(out_of(call), call->nr_args - 1);
    for (unsigned i = 1; i < call->nr_args; i++) {
        struct key key = key_at(call, i);
        reply_value(call, store_find(store_of(call), &key));
    }
}

void run_mset(struct call *call)
{
    if (call->nr_args % 2 == 0) {
        reply_bad_arity(call);
        return;
    }
    for (unsigned i = 1; i < call->nr_args; i += 2) {
        struct key key = key_at(call, i);
        struct entry *entry = put(call, &key, arg(call, i + 1), arg_len(call, i + 1));
        if (!entry) {
            reply_error(out_of(call), "OOM used memory > 'maxmemory' after %u keys.", i / 2);
            return;
        }
        (void)store_expire(store_of(call), entry, BLZ_NEVER); /* takes no memory */
    }
    reply_ok(out_of(call));
}
