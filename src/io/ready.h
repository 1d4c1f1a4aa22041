/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the backends share that learn of readiness only, as edges (epoll, kqueue): which driver a
 * descriptor is registered with, who waits for its next edge, and that none is lost. No system
 * calls; the backend does them. The protocol is in ready.c.
 */
#ifndef BLZ_IO_READY_H
#define BLZ_IO_READY_H

#include "io/io.h"

typedef struct ready_driver ready_driver;

/*
 * A token is the address of an entry, all of it, and in the bits that its alignment leaves the
 * lowest ones of a generation. The upper bits of an address may be in use: processors ignore some
 * of them, and allocators keep a tag there that a pointer must have to be valid (ARM's memory
 * tagging).
 */
#define READY_GENERATIONS ((uint64_t) _Alignof(blz__fd) - 1)

static inline uint64_t ready_token(const blz__fd *entry, uint32_t generation)
{
    return (uint64_t)(uintptr_t)entry | (generation & READY_GENERATIONS);
}

static inline blz__fd *ready_token_entry(uint64_t token)
{
    return (blz__fd *)(uintptr_t)(token & ~READY_GENERATIONS);
}

static inline bool ready_token_is_of(uint64_t token, uint32_t generation)
{
    return ((token ^ generation) & READY_GENERATIONS) == 0;
}

/*
 * What the backend does. All of it under the entry's lock, or by the last thread that knows the
 * entry. A kernel is edge-triggered (rearm is NULL: a registration reports every edge), or
 * one-shot: a registration reports one edge, and the next one has to be asked for.
 */
typedef struct ready_kernel {
    /*
     * Registers the entry's descriptor for edges of both directions, which will carry the token. If
     * it is ready already, that is an edge. 0; -EPERM: it has no edges, because it is always ready;
     * or another negative errno. [the driver's worker]
     */
    int (*watch)(ready_driver *d, blz__fd *entry, uint64_t token);
    /* The reverse. Edges that have been fetched may still be reported. [any thread] */
    void (*unwatch)(ready_driver *d, blz__fd *entry);
    /*
     * One-shot: asks for the next edge of a registered descriptor, of which none is outstanding. If
     * it is ready already, that is an edge. 0 or a negative errno. Or NULL. [any thread]
     */
    int (*rearm)(ready_driver *d, blz__fd *entry, uint64_t token);
} ready_kernel;

struct ready_driver {
    blz__driver base;
    const ready_kernel *kernel;
    uint32_t registered; /* descriptors whose home this is; any thread takes them away */
};

/* What an edge says. */
enum {
    READY_IN = 0x1,
    READY_OUT = 0x2,
    READY_IN_ENDED = 0x4, /* with READY_IN: a short read does not mean that nothing is left */
    READY_OUT_ENDED = 0x8,
};

/* These are the driver's submit, cancel, unregister_fd and has_pending. */
void blz__ready_submit(blz__driver *driver, blz__op *op);
void blz__ready_cancel(blz__driver *driver, blz__op *op);
void blz__ready_unregister_fd(blz__driver *driver, blz__fd *entry);
bool blz__ready_has_pending(const blz__driver *driver);

/* Reports an edge: what waits for it is tried again. `what`: READY_IN and on. [its worker] */
void blz__ready_edge(ready_driver *d, uint64_t token, unsigned what);

/* An edge with this token will be reported soon. */
void blz__ready_prefetch(uint64_t token);

#endif
