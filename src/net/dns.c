/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking names up: a future around a call in the pool's lane for name lookups.
 *
 * What the resolver works on is in a struct of its own on the heap, with copies of the names and
 * the list that it fills. It has two owners, the task and the call. A cancelled task lets go of it
 * and ends at once; a resolver that hangs for minutes then goes on for nobody, in memory that only
 * it knows. The caller's list is filled by the task, when the call has ended, so nothing of the
 * caller's is ever in the resolver's hands.
 *
 * Addresses are answered in the first poll, without memory and without the pool.
 */
#include "blocking/blocking.h"
#include "net/net.h"
#include "sched/sched.h"

#include <blitz/error.h>
#include <string.h>

_Static_assert(sizeof(blz_addrs) == 64 && sizeof(blz_lookup_hints) == 64, "part of the ABI");
_Static_assert(sizeof(blz_dns) == 264, "part of the ABI");

/* `line` of the future */
enum { LOOKUP_BEGINS, LOOKUP_WAITS };

typedef struct blz__lookup {
    blz_rt *rt;
    size_t size;
    uint32_t owners;
    bool has_port;
    uint16_t port;
    blz_lookup_hints hints;
    blz_addrs addrs;
    const char *service; /* in `text`, or NULL */
    char text[];         /* the host, a NUL, the service, a NUL */
} lookup;

/* ---- the memory ---- */

static lookup *lookup_new(blz_rt *rt, const blz_dns *op)
{
    size_t size = sizeof(lookup) + op->host_len + op->service_len + 2;
    lookup *l = blz__rt_alloc(rt, size, _Alignof(lookup));

    if (!l)
        return NULL;
    *l = (lookup){.rt = rt, .size = size, .owners = 2, .hints = op->hints};
    blz_addrs_init(&l->addrs, blz__rt_allocator(rt));
    memcpy(l->text, op->host, op->host_len);
    l->text[op->host_len] = '\0';
    if (op->service) {
        char *service = l->text + op->host_len + 1;
        memcpy(service, op->service, op->service_len);
        service[op->service_len] = '\0';
        l->service = service;
    }
    return l;
}

static void lookup_drop(void *arg)
{
    lookup *l = arg;

    /* release: what this owner did; acquire: what the other one did */
    if (blz__fetch_sub(&l->owners, 1u, ACQ_REL) > 1)
        return;
    blz_addrs_free(&l->addrs);
    blz__rt_free(l->rt, l, l->size, _Alignof(lookup));
}

/* ---- on the pool's thread ---- */

static int64_t lookup_run(void *arg)
{
    lookup *l = arg;
    const blz_resolver *resolver =
        l->hints.resolver.resolve ? &l->hints.resolver : &blz__system_resolver;
    const char *service = l->has_port ? NULL : l->service;
    int rc = resolver->resolve(&l->addrs, l->text, service, &l->hints, resolver->arg);

    if (rc < 0)
        return rc;
    for (size_t i = 0; l->has_port && i < l->addrs.count; i++)
        blz_addr_set_port(&l->addrs.items[i], l->port);
    return l->addrs.count > 0 ? (int64_t)l->addrs.count : -ENODATA;
}

/* ---- the future ---- */

/* The answer for an address: 1; 0: it is a name, or the service is. Or an error. */
static int answer_address(blz_dns *op, blz_cx *cx, bool has_port, uint16_t port)
{
    blz_addr addr;
    int rc = blz_addr_parse_ip(&addr, op->host, op->host_len, port), family;

    if (rc == -EINVAL && !memchr(op->host, ':', op->host_len))
        return blz__dns_check_name(op->host, op->host_len);
    if (rc < 0)
        return rc;
    family = blz_addr_family(&addr);
    if (op->hints.family != BLZ_ADDR_NONE && op->hints.family != family)
        return -EAFNOSUPPORT;
    if (op->service && !has_port)
        return 0;
    blz_addrs_init(op->addrs, blz__rt_allocator(blz_cx_rt(cx)));
    rc = blz_addrs_push(op->addrs, &addr);
    return rc < 0 ? rc : 1;
}

/* 1: answered; 0: the call is under way. Or an error. */
static int lookup_begin(blz_dns *op, blz_cx *cx)
{
    uint16_t port = 0;
    int has_port = op->service ? blz__dns_check_service(op->service, op->service_len, &port) : 1;
    int rc;
    lookup *l;

    if (has_port < 0)
        return has_port;
    if (op->host_len == 0 || op->hints.family < 0 || op->hints.family > BLZ_ADDR_V6)
        return -EINVAL;
    rc = answer_address(op, cx, has_port, port);
    if (rc != 0)
        return rc;
    l = lookup_new(blz_cx_rt(cx), op);
    if (!l)
        return -ENOMEM;
    l->has_port = has_port;
    l->port = port;
    op->lookup = l;
    op->future.child = blz__blocking_owned_in(&op->call, BLZ__LANE_DNS, lookup_run, l, lookup_drop);
    op->future.line = LOOKUP_WAITS;
    return 0;
}

static blz_poll lookup_end(blz_dns *op, int64_t result)
{
    lookup *l = op->lookup;

    op->future.child = NULL;
    if (result > 0) { /* the call is through with it */
        *op->addrs = l->addrs;
        blz_addrs_init(&l->addrs, NULL);
    }
    lookup_drop(l);
    return blz_future_done(&op->future, result);
}

static blz_poll lookup_poll(blz_future *self, blz_cx *cx)
{
    blz_dns *op = (blz_dns *)self;

    if (self->line == LOOKUP_BEGINS) {
        if (blz_cancelled(cx))
            return blz_future_done(self, -ECANCELED);
        if (!blz_coop_take(cx))
            return BLZ_PENDING;
        int rc = lookup_begin(op, cx);
        if (rc != 0)
            return blz_future_done(self, rc);
        blz_coop_give_back(cx); /* the call takes its own */
    }
    if (blz_is_pending(self->child->ops->poll(self->child, cx)))
        return BLZ_PENDING;
    return lookup_end(op, self->child->result);
}

blz_future *blz_lookup_n(blz_dns *op, blz_addrs *addrs, const char *host, size_t host_len,
                         const char *service, size_t service_len, const blz_lookup_hints *hints)
{
    static const blz_future_ops ops = {.name = "lookup", .poll = lookup_poll};

    blz_op_check(&op->future, &ops);
    *op = (blz_dns){.future = {.ops = &ops},
                    .addrs = addrs,
                    .host = host,
                    .host_len = host_len,
                    .service = service,
                    .service_len = service_len};
    if (hints)
        op->hints = *hints;
    blz_addrs_init(addrs, NULL);
    return &op->future;
}

blz_future *blz_lookup(blz_dns *op, blz_addrs *addrs, const char *host, const char *service,
                       const blz_lookup_hints *hints)
{
    return blz_lookup_n(op, addrs, host, strlen(host), service, service ? strlen(service) : 0,
                        hints);
}
