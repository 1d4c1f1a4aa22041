/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names to addresses.
 *
 *     struct find { BLZ_FRAME; blz_dns dns; blz_addrs addrs; int64_t rc; };
 *
 *     BLZ_ASYNC(find)
 *     {
 *         BLZ_BEGIN;
 *         BLZ_AWAIT(self->rc, blz_lookup(&self->dns, &self->addrs, "example.org", "443", NULL));
 *         for (size_t i = 0; i < self->addrs.count; i++)
 *             print_address(&self->addrs.items[i]);
 *         blz_addrs_free(&self->addrs);               // also after an error
 *         BLZ_END(self->rc);
 *     }
 *
 * The system's resolver is asked (getaddrinfo: /etc/hosts, name servers, whatever is configured),
 * on threads of the blocking pool that do nothing else. What is an IP address already is answered
 * at once. To connect to a name, blz_tcp_connect (blitz/connect.h) does all of this.
 *
 * A name is 1 to 253 characters (and perhaps a final dot), in labels of 1 to 63, of letters,
 * digits, hyphens and underscores; others are refused before a resolver is asked. So is what some
 * resolvers take for an IPv4 address although it does not look like one ("127.1", "0x7f.1"): a name
 * whose last label is a number. International names are written in their xn-- form.
 *
 * Errors:
 *
 *     -EINVAL           not a name, or not a service
 *     -ENAMETOOLONG     a name or a label that is too long
 *     -ENONET           there is no such name                        EAI_NONAME
 *     -ENODATA          the name exists, but has no address          EAI_NODATA
 *     -EAFNOSUPPORT     none of the family that was asked for        EAI_ADDRFAMILY, _FAMILY
 *     -EAGAIN           no answer now; later perhaps                 EAI_AGAIN
 *     -EREMOTEIO        the name server says that it cannot answer   EAI_FAIL
 *     -EPROTONOSUPPORT  no such service                              EAI_SERVICE
 *     -ESOCKTNOSUPPORT  the kind of socket makes no sense            EAI_SOCKTYPE
 *     -ENOMEM           no memory                                    EAI_MEMORY
 *     -EOVERFLOW        an answer that does not fit                  EAI_OVERFLOW
 *     -EILSEQ           an international name that makes no sense    EAI_IDN_ENCODE
 *     -EINTR            interrupted                                  EAI_INTR
 *     -EPROTO           the resolver does not like how it is asked   EAI_BADFLAGS
 *     -EIO              any other error of the resolver
 *     -ECANCELED        the task has been cancelled
 *     and whatever the system says (EAI_SYSTEM), -EIO if it says nothing.
 */
#ifndef BLITZ_DNS_H
#define BLITZ_DNS_H

#include <blitz/addr.h>
#include <blitz/blocking.h>

BLZ_BEGIN_DECLS

/* ---- Lists of addresses [any thread; one at a time] ---- */

/* All zero: empty, with memory from malloc. Belongs to one thread or task at a time. */
typedef struct blz_addrs {
    blz_addr *items;
    size_t count;
    size_t capacity;
    blz_allocator allocator;
} blz_addrs;

/* Prepares an empty list. `allocator` is copied; NULL is malloc. */
BLZ_API void blz_addrs_init(blz_addrs *addrs, const blz_allocator *allocator);

/* Appends a copy of an address: 0; -ENOMEM. */
BLZ_API BLZ_NODISCARD int blz_addrs_push(blz_addrs *addrs, const blz_addr *addr);

/* Frees the memory of the list, which is empty afterwards and can be used again. */
BLZ_API void blz_addrs_free(blz_addrs *addrs);

/*
 * Brings the families in turn, for connecting to one after the other (RFC 8305): an address of
 * `first` (BLZ_ADDR_V6 or _V4; BLZ_ADDR_NONE: the family of the first in the list), then one of the
 * others, and so on; each in the order in which it was. 0, or -ENOMEM and the list is unchanged.
 */
BLZ_API int blz_addrs_interleave(blz_addrs *addrs, int first);

/* ---- Looking up ---- */

typedef struct blz_lookup_hints blz_lookup_hints;

/*
 * Answers questions for names. `resolve` is called on a thread of the pool, may block, and appends
 * to `addrs` in the order of preference: 0 or a negative errno. `service` is NULL if it is a
 * number: then the ports are set afterwards. It may still run after the task that asked has been
 * cancelled, so `arg` must stay as long as the runtime does.
 */
typedef struct blz_resolver {
    int (*resolve)(blz_addrs *addrs, const char *host, const char *service,
                   const blz_lookup_hints *hints, void *arg);
    void *arg;
    uint64_t reserved[2];
} blz_resolver;

/* All zero means the default. */
struct blz_lookup_hints {
    int family;            /* BLZ_ADDR_V4 or BLZ_ADDR_V6 alone; default: both */
    bool datagram;         /* the service is one of UDP; default: of TCP */
    bool configured;       /* only families that this machine has an address of */
    blz_resolver resolver; /* default: the system's */
    uint64_t reserved[3];
};

/* The future of blz_lookup. */
typedef struct blz_dns {
    blz_future future;
    blz_addrs *addrs;
    const char *host, *service;
    size_t host_len, service_len;
    blz_lookup_hints hints;
    struct blz__lookup *lookup;
    blz_blocking_owned_op call;
    uint64_t reserved[4];
} blz_dns;

/*
 * Looks a name up: gives the number of addresses, which is not 0, in *addrs, in the order in which
 * they should be tried (RFC 6724). `service` is a port ("443") or a name ("https"); NULL is port 0.
 * `hints` may be NULL, and is copied; `host` and `service` must stay until the first poll. *addrs
 * is overwritten: empty, until there is a result. Interruptible: the await ends at once with
 * -ECANCELED; the resolver goes on by itself, and its result is dropped. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_lookup(blz_dns *op, blz_addrs *addrs, const char *host,
                                             const char *service, const blz_lookup_hints *hints);

/*
 * Looks a name up as blz_lookup does, for texts that have a length and no final NUL: gives the
 * number of addresses, or the errors of blz_lookup. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_lookup_n(blz_dns *op, blz_addrs *addrs, const char *host,
                                               size_t host_len, const char *service,
                                               size_t service_len, const blz_lookup_hints *hints);

BLZ_END_DECLS
#endif
