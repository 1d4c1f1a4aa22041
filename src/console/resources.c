/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tasks of a snapshot wait for, as JSON: who waits for whom.
 *
 *   /api/resources?rt=0&kind=mutex&offset=0&limit=50
 *
 * Nothing is registered anywhere for this: waits with the same kind and the same object are one
 * resource. So a lock that nobody waits for is not shown, and costs nothing. Those with most tasks
 * come first.
 */
#include "console/console.h"

#include "base/alloc.h"
#include "system/socket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WAITERS = 8, MAX_LIMIT = 500, DEFAULT_LIMIT = 50, MAX_KINDS = 64 };

struct resource {
    const struct wait *wait; /* one of them; all say the same */
    uint32_t waiting;
    uint32_t first, last; /* of the waits + 1, linked by `next` */
    int64_t longest_ns;
};

struct resources {
    const struct snapshot *s;
    struct bag keys;
    struct resource *list;
    uint32_t *next; /* of each wait: another one for the same + 1; 0: none */
    uint32_t count;
};

struct key {
    uint64_t object;
    uint64_t kind;
};

/* ---- gathering ---- */

static void add_wait(struct resources *r, uint32_t i)
{
    const struct wait *wait = &r->s->waits[i];
    struct key key = {wait->object, wait->kind};
    bool fresh;
    uint32_t n = blz__bag_add(&r->keys, &key, sizeof key, &fresh);
    struct resource *resource;

    if (n == UINT32_MAX)
        return;
    resource = &r->list[n];
    if (fresh)
        *resource = (struct resource){.wait = wait, .first = i + 1};
    else
        r->next[resource->last - 1] = i + 1;
    resource->last = i + 1;
    resource->waiting++;
    if (r->s->rows[wait->row].since_ns > resource->longest_ns)
        resource->longest_ns = r->s->rows[wait->row].since_ns;
    r->count = r->keys.count;
}

static bool gather(struct resources *r, const struct snapshot *s)
{
    size_t n = s->nr_waits + 1;

    *r = (struct resources){.s = s, .keys = {.allocator = s->allocator}};
    r->keys.bytes.allocator = s->allocator;
    r->list = blz__alloc(s->allocator, n * sizeof *r->list, _Alignof(struct resource));
    r->next = blz__alloc(s->allocator, n * sizeof *r->next, _Alignof(uint32_t));
    if (!r->list || !r->next)
        return false;
    memset(r->next, 0, n * sizeof *r->next);
    for (uint32_t i = 0; i < s->nr_waits; i++)
        add_wait(r, i);
    return !r->keys.failed;
}

static void let_go(struct resources *r)
{
    size_t n = r->s->nr_waits + 1;

    if (r->list)
        blz__free(r->s->allocator, r->list, n * sizeof *r->list, _Alignof(struct resource));
    if (r->next)
        blz__free(r->s->allocator, r->next, n * sizeof *r->next, _Alignof(uint32_t));
    blz__bag_free(&r->keys);
}

/* ---- writing ---- */

/* "127.0.0.1:8080": of a descriptor that was a socket a moment ago. */
static void write_address(struct text *out, int fd, bool peer)
{
    char text[BLZ_ADDR_TEXT];
    blz_addr addr;
    int rc = peer ? blz__socket_peer_addr(fd, &addr) : blz__socket_local_addr(fd, &addr);

    if (rc < 0 || blz_addr_format(&addr, text, sizeof text) <= 0)
        return;
    blz__text_print(out, " %s %s", peer ? "from" : "at", text);
}

static void write_label(struct text *out, const struct snapshot *s, const struct wait *wait)
{
    const struct row *task = wait->holder ? blz__snapshot_find(s, wait->holder, 0) : NULL;
    struct text label = {.allocator = s->allocator};

    if (wait->fd >= 0) {
        blz__text_print(&label, "%d", wait->fd);
        write_address(&label, wait->fd, false);
        write_address(&label, wait->fd, true);
    } else if (task) {
        size_t len;
        const char *name = bag_get(&s->names, task->name, &len);
        blz__text_print(&label, "%.*s %llu", (int)len, name, (unsigned long long)task->id);
    } else {
        blz__text_print(&label, "0x%llx", (unsigned long long)wait->object);
    }
    out->failed |= label.failed;
    blz__text_json(out, label.data ? label.data : "", label.len);
    blz__text_free(&label);
}

static void write_resource(struct text *out, const struct resources *r, const struct resource *one)
{
    const struct wait *wait = one->wait;
    const struct row *holder = blz__snapshot_find(r->s, wait->holder, wait->holder32);
    size_t len;
    const char *kind = bag_get(&r->s->names, wait->kind, &len);
    uint32_t shown = 0;

    blz__text_print(out, "{\"kind\":");
    blz__text_json(out, kind, len);
    blz__text_print(out, ",\"object\":\"0x%llx\",\"label\":", (unsigned long long)wait->object);
    write_label(out, r->s, wait);
    if (wait->fd >= 0)
        blz__text_print(out, ",\"fd\":%d", wait->fd);
    blz__text_print(out, ",\"waiting\":%u,\"longest_ns\":%lld,\"holder\":", one->waiting,
                    (long long)one->longest_ns);
    if (holder)
        blz__snapshot_write_task(r->s, out, holder);
    else
        blz__text_print(out, "null");
    blz__text_print(out, ",\"waiters\":[");
    for (uint32_t i = one->first; i && shown < MAX_WAITERS; i = r->next[i - 1], shown++) {
        if (shown)
            blz__text_add(out, ",", 1);
        blz__snapshot_write_task(r->s, out, &r->s->rows[r->s->waits[i - 1].row]);
    }
    blz__text_print(out, "]}");
}

struct kind_count {
    uint32_t kind, resources, waiting;
};

static void write_kinds(struct text *out, const struct resources *r)
{
    struct kind_count kinds[MAX_KINDS];
    uint32_t count = 0, k;

    for (uint32_t i = 0; i < r->count; i++) {
        for (k = 0; k < count && kinds[k].kind != r->list[i].wait->kind; k++)
            ;
        if (k == MAX_KINDS)
            continue;
        if (k == count)
            kinds[count++] = (struct kind_count){.kind = r->list[i].wait->kind};
        kinds[k].resources++;
        kinds[k].waiting += r->list[i].waiting;
    }
    for (k = 0; k < count; k++) {
        size_t len;
        const char *name = bag_get(&r->s->names, kinds[k].kind, &len);

        blz__text_print(out, "%s{\"kind\":", k ? "," : "");
        blz__text_json(out, name, len);
        blz__text_print(out, ",\"resources\":%u,\"waiting\":%u}", kinds[k].resources,
                        kinds[k].waiting);
    }
}

static int compare(const void *a, const void *b)
{
    const struct resource *one = a, *other = b;

    if (one->waiting != other->waiting)
        return one->waiting > other->waiting ? -1 : 1;
    if (one->longest_ns != other->longest_ns)
        return one->longest_ns > other->longest_ns ? -1 : 1;
    return one->wait < other->wait ? -1 : one->wait > other->wait;
}

/* Those of one kind come to the front: how many. */
static uint32_t keep_kind(struct resources *r, const char *kind)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < r->count; i++) {
        size_t len;
        const char *name = bag_get(&r->s->names, r->list[i].wait->kind, &len);
        if (!*kind || (strlen(kind) == len && memcmp(kind, name, len) == 0))
            r->list[kept++] = r->list[i];
    }
    return kept;
}

void blz__console_resources(const struct snapshot *s, const char *query, struct text *out)
{
    struct resources r;
    char kind[64] = "";
    uint64_t offset, limit;
    uint32_t matched;

    if (!gather(&r, s)) {
        out->failed = true;
        let_go(&r);
        return;
    }
    (void)blz__query_text(query, "kind", kind, sizeof kind);
    blz__text_print(out, "{\"snapshot\":%llu,\"total\":%u,\"kinds\":[",
                    (unsigned long long)s->number, r.count);
    write_kinds(out, &r);
    matched = keep_kind(&r, kind);
    qsort(r.list, matched, sizeof *r.list, compare);
    offset = blz__query_number(query, "offset", matched, 0);
    limit = blz__query_number(query, "limit", MAX_LIMIT, DEFAULT_LIMIT);
    blz__text_print(out, "],\"matched\":%u,\"offset\":%llu,\"resources\":[", matched,
                    (unsigned long long)offset);
    for (uint64_t i = offset; i < matched && i - offset < limit; i++) {
        if (i > offset)
            blz__text_add(out, ",", 1);
        write_resource(out, &r, &r.list[i]);
    }
    blz__text_print(out, "]}\n");
    let_go(&r);
}
