/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers on loan from the ring: a receive names no buffer, the kernel picks one when data has
 * come. The ring that they are in is written by the worker; the kernel only reads it. What other
 * threads give back gets there when the worker next looks.
 */
#include "base/alloc.h"
#include "io/uring.h"

#include <string.h>
#include <sys/mman.h>

enum { GROUP = 0, RING_ENTRIES = 1024, FIRST_COUNT = 16 };

#define RING_SIZE (RING_ENTRIES * sizeof(struct io_uring_buf))

static void put_in_ring(struct uring_driver *d, struct lease *lease)
{
    io_uring_buf_ring_add(d->lent.ring, lease->data, LEASE_SIZE, (unsigned short)lease->id,
                          RING_ENTRIES - 1, 0);
    io_uring_buf_ring_advance(d->lent.ring, 1);
}

static void give_back(lease_pool *pool, struct lease *lease)
{
    lease->lent = false;
    put_in_ring(pool->backend, lease);
}

static struct lease *new_lease(struct uring_driver *d, uint32_t id)
{
    struct lease *lease = blz__alloc(d->allocator, sizeof *lease, _Alignof(struct lease));

    if (lease) {
        lease->pool = d->base.leases;
        lease->id = (int32_t)id;
        lease->lent = false;
    }
    return lease;
}

/* Adds buffers; fewer, or none, if there is no memory: then receives are attempted without. */
static void add_leases(struct uring_driver *d, uint32_t count)
{
    for (; count > 0 && d->lent.count < RING_ENTRIES; count--) {
        struct lease *lease = new_lease(d, d->lent.count);
        if (!lease)
            return;
        d->lent.leases[d->lent.count++] = lease;
        put_in_ring(d, lease);
    }
}

void blz__uring_leases_init(struct uring_driver *d)
{
    struct io_uring_buf_reg reg = {.ring_entries = RING_ENTRIES, .bgid = GROUP};
    void *ring = mmap(NULL, RING_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (ring == MAP_FAILED)
        return;
    reg.ring_addr = (uint64_t)(uintptr_t)ring;
    d->lent.leases =
        blz__alloc(d->allocator, RING_ENTRIES * sizeof(struct lease *), _Alignof(struct lease *));
    if (!d->lent.leases || io_uring_register_buf_ring(&d->ring, &reg, 0) != 0) {
        munmap(ring, RING_SIZE);
        return;
    }
    d->lent.ring = ring;
    d->base.leases->backend = d;
    d->base.leases->give_back = give_back;
    io_uring_buf_ring_init(d->lent.ring);
}

void blz__uring_leases_destroy(struct uring_driver *d)
{
    lease_pool *pool = d->base.leases;

    if (d->lent.ring)
        blz__leases_fetch(pool);
    /* Those on loan are buffers like others from now on; some have come back this very moment. */
    blz__lock_acquire(&pool->lock);
    for (uint32_t i = 0; i < d->lent.count; i++) {
        if (!d->lent.leases[i]->lent)
            continue;
        d->lent.leases[i]->id = -1;
        d->lent.leases[i] = NULL;
    }
    blz__lock_release(&pool->lock);
    for (uint32_t i = 0; i < d->lent.count; i++)
        if (d->lent.leases[i])
            blz__lease_free(pool, d->lent.leases[i]);
    if (d->lent.leases)
        blz__free(d->allocator, d->lent.leases, RING_ENTRIES * sizeof(struct lease *),
                  _Alignof(struct lease *));
    if (d->lent.ring)
        munmap(d->lent.ring, RING_SIZE);
}

bool blz__uring_prep_lease(struct uring_driver *d, struct io_uring_sqe *sqe, const struct io *io)
{
    if (!d->lent.ring || !(io->fd->flags & FD_SOCKET))
        return false;
    if (blz_unlikely(d->lent.count == 0))
        add_leases(d, FIRST_COUNT);
    io_uring_prep_recv(sqe, io->fd->fd, NULL, LEASE_SIZE, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = GROUP;
    return true;
}

void blz__uring_take_lease(struct uring_driver *d, const struct io *io, int res, uint32_t flags)
{
    if (res == -ENOBUFS) {
        if (leases_were_returned(d->base.leases))
            blz__leases_fetch(d->base.leases);
        else
            add_leases(d, d->lent.count);
        return;
    }
    if (!(flags & IORING_CQE_F_BUFFER))
        return;
    struct lease *lease = d->lent.leases[flags >> IORING_CQE_BUFFER_SHIFT];
    lease->lent = res > 0;
    if (!lease->lent) {
        put_in_ring(d, lease);
        return;
    }
    d->base.leases->nr_lent++;
    lease_hand_out(io->buf, lease, (size_t)res);
}
