/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of fake_kernel.h. */
#include "fake_kernel.h"

#include "base/alloc.h"

#include <errno.h>

enum { MAX_FD = 4, MAX_REGISTRATIONS = 16 };

/* The word. */
enum {
    BYTE = 0x1, /* counts to 15 */
    BYTES = 0xf,
    ENDED = 0x10,
    ROOM = 0x20,      /* for one write */
    REQUESTED = 0x40, /* one-shot: the next thing that happens marks the socket */
    MARK = 0x100,     /* of driver 0; driver 1 has the next bit */
    HOME = 0x1000,    /* the driver that it is registered with, plus 1: two bits */
    HOMES = 0x3000,
    SERIAL = 0x10000, /* counts registrations */
};

static uint32_t word;
static uint64_t tokens[MAX_REGISTRATIONS]; /* by serial number: written once, before the word */
static uint32_t closed[MAX_FD];            /* accessed like the descriptor that it stands for */

void (*fake_kernel_meanwhile)(struct io *io);
bool fake_kernel_one_shot;

struct fake_ready {
    ready_driver ready;
    const blz_allocator *allocator;
};

void fake_kernel_reset(void)
{
    word = 0;
    fake_kernel_meanwhile = NULL;
    for (int i = 0; i < MAX_FD; i++)
        closed[i] = 0;
    model_forget(&word, sizeof word);
    model_forget(closed, sizeof closed);
}

/* Marks the socket where it is registered. */
static uint32_t marked(uint32_t now)
{
    uint32_t home = (now & HOMES) / HOME;

    if (fake_kernel_one_shot && !(now & REQUESTED))
        return now;
    return home ? (now & ~(uint32_t)REQUESTED) | MARK << (home - 1) : now;
}

static bool is_readable(uint32_t now)
{
    return now & (BYTES | ENDED);
}

void fake_kernel_arrive(unsigned bytes, bool ended)
{
    uint32_t now = blz__load(&word, RELAXED);

    while (
        !blz__cas(&word, &now, marked(now + bytes * BYTE) | (ended ? ENDED : 0), RELAXED, RELAXED))
        ;
}

void fake_kernel_make_room(void)
{
    uint32_t now = blz__load(&word, RELAXED);

    while (!blz__cas(&word, &now, marked(now) | ROOM, RELAXED, RELAXED))
        ;
}

unsigned fake_kernel_level(void)
{
    uint32_t now = blz__load(&word, RELAXED);

    return (now & BYTES) / BYTE + (now & ENDED ? 1000 : 0);
}

/* ---- system calls ---- */

static int64_t take(uint32_t len)
{
    uint32_t now = blz__load(&word, RELAXED), bytes;

    do {
        bytes = (now & BYTES) / BYTE;
        if (bytes > len)
            bytes = len;
        /* The newest state, also for who takes nothing: a system call does not read the past. */
    } while (!blz__cas(&word, &now, now - bytes * BYTE, RELAXED, RELAXED));
    if (bytes > 0)
        return bytes;
    return now & ENDED ? 0 : -EAGAIN;
}

static void let_happen(struct io *io)
{
    void (*meanwhile)(struct io *) = fake_kernel_meanwhile;

    fake_kernel_meanwhile = NULL;
    if (meanwhile)
        meanwhile(io);
}

int64_t blz__io_try_now(struct io *io)
{
    uint32_t now;

    let_happen(io);
    model_assert(io->fd->fd >= 0 && io->fd->fd < MAX_FD);
    blz__plain_read(&closed[io->fd->fd]);
    model_assert(closed[io->fd->fd] == 0);
    switch (io->op.kind) {
    case IO_READ:
        return take((uint32_t)io->bytes.len);
    case IO_WRITE:
        now = blz__fetch_and(&word, ~(uint32_t)ROOM, RELAXED);
        return now & ROOM ? 1 : -EAGAIN;
    case IO_POLL:
        now = blz__fetch_add(&word, 0u, RELAXED);
        return is_readable(now) ? 1 : -EAGAIN;
    default:
        model_fail("the fake kernel does not know operations of kind %u", io->op.kind);
    }
}

void blz__io_close(int fd)
{
    blz__plain_write(&closed[fd]);
    closed[fd]++;
}

unsigned fake_kernel_closed(int fd)
{
    blz__plain_read(&closed[fd]);
    return closed[fd];
}

/* ---- registrations and edges ---- */

static uint32_t index_of(const ready_driver *d)
{
    return d->base.worker->index;
}

static int fake_watch(ready_driver *d, blz__fd *entry, uint64_t token)
{
    uint32_t now = blz__load(&word, RELAXED), after;

    (void)entry;
    do {
        tokens[(now / SERIAL + 1) % MAX_REGISTRATIONS] = token;
        after = (now & ~(uint32_t)HOMES) + (index_of(d) + 1) * HOME + SERIAL;
        after |= fake_kernel_one_shot ? REQUESTED : 0;
        if (is_readable(now) || (now & ROOM))
            after = marked(after);
    } while (!blz__cas(&word, &now, after, RELAXED, RELAXED));
    return 0;
}

static int fake_rearm(ready_driver *d, blz__fd *entry, uint64_t token)
{
    uint32_t now = blz__load(&word, RELAXED), after;

    (void)d, (void)entry, (void)token;
    do {
        model_assert(!(now & REQUESTED));
        after = now | REQUESTED;
        if (is_readable(now) || (now & ROOM))
            after = marked(after);
    } while (!blz__cas(&word, &now, after, RELAXED, RELAXED));
    return 0;
}

static void fake_unwatch(ready_driver *d, blz__fd *entry)
{
    uint32_t now = blz__load(&word, RELAXED);

    (void)entry;
    while (!blz__cas(&word, &now, now & ~((uint32_t)HOMES | REQUESTED | MARK << index_of(d)),
                     RELAXED, RELAXED))
        ;
}

struct fake_edge fake_kernel_fetch(blz_worker *w)
{
    uint32_t now = blz__fetch_and(&word, ~(MARK << w->index), RELAXED);
    unsigned what = is_readable(now) ? READY_IN : 0;

    if (!(now & MARK << w->index))
        return (struct fake_edge){0, 0};
    if (now & ROOM)
        what |= READY_OUT;
    if (now & ENDED)
        what |= READY_IN_ENDED;
    if (what == 0 && fake_kernel_one_shot)
        what = READY_IN;
    return (struct fake_edge){tokens[now / SERIAL % MAX_REGISTRATIONS], what};
}

void fake_kernel_report(blz_worker *w, struct fake_edge edge)
{
    if (edge.what)
        blz__ready_edge((ready_driver *)w->driver, edge.token, edge.what);
}

bool fake_kernel_look(blz_worker *w)
{
    struct fake_edge edge = fake_kernel_fetch(w);
    bool any = edge.what;

    while (edge.what) {
        fake_kernel_report(w, edge);
        edge = fake_kernel_fetch(w);
    }
    return any;
}

/* ---- the driver ---- */

static const ready_kernel edges = {fake_watch, fake_unwatch, NULL};
static const ready_kernel one_shot = {fake_watch, fake_unwatch, fake_rearm};

static int fake_ready_open(blz__driver **driver, const blz_options *options,
                           const blz_allocator *allocator)
{
    struct fake_ready *fake = blz__alloc(allocator, sizeof *fake, _Alignof(struct fake_ready));

    (void)options;
    if (!fake)
        return -ENOMEM;
    *fake = (struct fake_ready){.ready = {.base = {.ops = &fake_ready_driver},
                                          .kernel = fake_kernel_one_shot ? &one_shot : &edges},
                                .allocator = allocator};
    *driver = &fake->ready.base;
    return 0;
}

static void fake_ready_close(blz__driver *driver)
{
    struct fake_ready *fake = (struct fake_ready *)driver;

    blz__free(fake->allocator, fake, sizeof *fake, _Alignof(struct fake_ready));
}

static void fake_ready_poll(blz__driver *driver, int64_t deadline_ns)
{
    if (deadline_ns != 0)
        model_fail("the fake kernel does not let anyone sleep");
    fake_kernel_look(driver->worker);
}

static void fake_ready_wake(blz__driver *driver)
{
    (void)driver;
}

const blz__driver_ops fake_ready_driver = {
    .name = "fake_ready",
    .open = fake_ready_open,
    .close = fake_ready_close,
    .submit = blz__ready_submit,
    .cancel = blz__ready_cancel,
    .poll = fake_ready_poll,
    .wake = fake_ready_wake,
    .has_pending = blz__ready_has_pending,
    .unregister_fd = blz__ready_unregister_fd,
    .try_first = (1u << IO_KINDS) - 1,
    .nonblocking = true,
};
