/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory rule under a storm: an operation's memory, and its buffer, are the kernel's until it
 * is ready, and nobody's but the task's from that moment.
 *
 * Hundreds of connections carry a stream of numbered bytes between two tasks each, which read and
 * write in all the ways there are, under limits of one to three milliseconds, and are cancelled
 * and have their connections closed by other threads. Every operation and its buffer live in
 * memory of their own, which is filled with a pattern the moment the operation is ready, kept for
 * a while, and looked at again before it is freed: what the kernel or a driver writes there late
 * is seen, which a sanitizer alone would not do. The bytes themselves must arrive in order and
 * without a gap, however many operations were cancelled: a cancelled one has moved what `done`
 * says, or nothing.
 */
#include "io_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { CONNECTIONS = 100, BUFFER = 512, KEPT = 64, GONE = 0xe7 };

/* ---- memory that is looked at after it is gone ---- */

struct cell {
    struct io_memory memory;
    unsigned char buf[BUFFER];
};

/* One for each task: the last ones that it let go of. */
struct graveyard {
    struct cell *cells[KEPT];
    unsigned next;
};

static struct cell *new_cell(void)
{
    struct cell *cell = calloc(1, sizeof *cell);

    check(cell != NULL);
    return cell;
}

static void inspect_and_free(struct cell *cell)
{
    const unsigned char *bytes = (const unsigned char *)cell;

    for (size_t i = 0; cell && i < sizeof *cell; i++)
        check(bytes[i] == GONE);
    free(cell);
}

static void bury(struct graveyard *yard, struct cell *cell)
{
    unsigned slot = yard->next++ % KEPT;

    memset(cell, GONE, sizeof *cell);
    inspect_and_free(yard->cells[slot]);
    yard->cells[slot] = cell;
}

static void clear_graveyard(struct graveyard *yard)
{
    for (int i = 0; i < KEPT; i++)
        inspect_and_free(yard->cells[i]);
}

/* ---- the stream ---- */

static unsigned char byte_at(uint64_t position)
{
    return (unsigned char)(position * 2654435761u >> 11);
}

static void check_bytes(const char *data, size_t len, uint64_t position)
{
    for (size_t i = 0; i < len; i++)
        check((unsigned char)data[i] == byte_at(position + i));
}

/* ---- one end ---- */

struct ends {
    BLZ_FRAME;
    blz__fd_ref ref;
    bool writes;
    uint64_t seed;
    uint64_t *moved; /* atomic: bytes that have gone through */
    uint64_t position;
    int64_t rc, ns;
    int kind;
    bool all;
    struct cell *cell;
    blz_timeout limit;
    blz_future pause;
    struct graveyard yard;
};

static const int ways_to_read[] = {IO_READ,  IO_READ, IO_READV, IO_RECVMSG,
                                   IO_LEASE, IO_PEEK, IO_POLL};
static const int ways_to_write[] = {IO_WRITE, IO_WRITE, IO_WRITEV, IO_SENDMSG};

static void choose(struct ends *self)
{
    if (self->writes)
        self->kind = ways_to_write[random_below(&self->seed, 4)];
    else
        self->kind = ways_to_read[random_below(&self->seed, 7)];
    self->all = (self->kind == IO_READ || self->kind == IO_WRITE) && random_below(&self->seed, 2);
    self->ns = (1 + random_below(&self->seed, 3)) * BLZ_MSEC;
    self->cell = new_cell();
    if (self->writes)
        for (size_t i = 0; i < BUFFER; i++)
            self->cell->buf[i] = byte_at(self->position + i);
}

static blz_future *next_operation(struct ends *self)
{
    struct cell *cell = self->cell;
    struct io *io = (struct io *)make_io(&cell->memory, (enum io_kind)self->kind, &self->ref);

    cell->memory.iov[0] = (blz_iovec){cell->buf, BUFFER / 4};
    cell->memory.iov[1] = (blz_iovec){cell->buf + BUFFER / 4, BUFFER - BUFFER / 4};
    if (self->kind == IO_READ || self->kind == IO_WRITE || self->kind == IO_PEEK) {
        io->bytes.buf = cell->buf;
        io->bytes.len = BUFFER;
    }
    if (self->all)
        io->flags |= IO_ALL;
    return blz_with_timeout(&self->limit, self->ns, &io->op.future);
}

/* Looks at what was moved, and lets go of the memory at once. */
static void take_stock(struct ends *self)
{
    struct io_memory *m = &self->cell->memory;
    uint64_t done = m->io.done;

    if (self->rc > 0 && self->kind != IO_POLL)
        check(done == (uint64_t)self->rc);
    if (!self->writes && self->kind != IO_POLL)
        check_bytes(self->kind == IO_LEASE ? m->lease.data : (char *)self->cell->buf, done,
                    self->position);
    drop_result(m, (enum io_kind)self->kind, -1);
    bury(&self->yard, self->cell);
    self->cell = NULL;
    if (self->kind == IO_PEEK || self->kind == IO_POLL)
        return;
    self->position += done;
    __atomic_fetch_add(self->moved, done, __ATOMIC_RELAXED);
}

static bool is_over(int64_t rc)
{
    return rc == -ECANCELED || rc == -EBADF || rc == -ECONNRESET || rc == -EPIPE || rc == -ENODATA;
}

/* Until it is cancelled, or its connection is closed at this end or at the other. */
BLZ_ASYNC(ends)
{
    BLZ_BEGIN;
    do {
        choose(self);
        BLZ_AWAIT(self->rc, next_operation(self));
        take_stock(self);
        check(self->rc >= 0 || self->rc == -ETIMEDOUT || is_over(self->rc));
        if (random_below(&self->seed, 8) == 0)
            BLZ_AWAIT(self->ns, blz_yield(&self->pause));
    } while (!is_over(self->rc) && (self->writes || self->kind == IO_POLL || self->rc != 0));
    clear_graveyard(&self->yard);
    BLZ_END(0);
}

/* ---- the weather ---- */

struct connection {
    blz__fd_ref refs[2];
    blz_handle tasks[2];
    uint64_t moved; /* atomic */
    bool open, ending;
};

struct weather {
    blz_rt *rt;
    struct connection connections[CONNECTIONS];
    uint64_t seed;
    uint64_t moved;
};

static void start(struct weather *w, struct connection *c)
{
    int fds[2], small = 2048;
    bool tcp = random_below(&w->seed, 2);

    if (tcp)
        tcp_socketpair(fds);
    else
        check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    check(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0);
    for (int i = 0; i < 2; i++) {
        c->refs[i] = adopt_fd(w->rt, fds[i], tcp ? FD_SOCKET | FD_STREAM : FD_SOCKET);
        check(BLZ_SPAWN_ON(w->rt, &c->tasks[i], ends, .ref = c->refs[i], .writes = i == 0,
                           .seed = w->seed + (uint64_t)i, .moved = &c->moved) == 0);
        random_below(&w->seed, 2);
    }
    c->open = true;
}

/* Ends it in one of several ways; both tasks end because of that, or are told to. */
static void end(struct weather *w, struct connection *c)
{
    unsigned how = random_below(&w->seed, 4), first = random_below(&w->seed, 2);
    blz__fd_ref refs[2] = {c->refs[0], c->refs[1]};

    if (how == 0)
        check(blz__fd_close(&refs[first]) == 0);
    else if (how == 1)
        blz_handle_cancel(&c->tasks[first]);
    if (how < 2)
        blz_handle_cancel(&c->tasks[!first]);
    for (int i = 0; how >= 2 && i < 2; i++)
        check(blz__fd_close(&refs[i]) == 0);
    c->ending = true;
}

static void finish(struct weather *w, struct connection *c)
{
    for (int i = 0; i < 2; i++) {
        check(blz_handle_wait(&c->tasks[i]) == 0 && c->tasks[i].result == 0);
        blz__fd_close(&c->refs[i]);
    }
    w->moved += __atomic_load_n(&c->moved, __ATOMIC_RELAXED);
    *c = (struct connection){.open = false};
}

/* Ends some of them, or all, while the others go on. */
static void end_some(struct weather *w, uint32_t one_in)
{
    for (int i = 0; i < CONNECTIONS; i++)
        if (w->connections[i].open && random_below(&w->seed, one_in) == 0)
            end(w, &w->connections[i]);
    for (int i = 0; i < CONNECTIONS; i++)
        if (w->connections[i].ending)
            finish(w, &w->connections[i]);
}

static void storm(blz_rt *rt)
{
    static struct weather w;

    w = (struct weather){.rt = rt, .seed = 4};
    for (int64_t round = 0; round < scaled(24); round++) {
        for (int i = 0; i < CONNECTIONS; i++)
            if (!w.connections[i].open)
                start(&w, &w.connections[i]);
        usleep(2000); /* of storm */
        end_some(&w, 3);
    }
    end_some(&w, 1);
    assert_true(w.moved > 0);
}

static void no_memory_is_touched_when_it_is_ours_again(void **state)
{
    struct rlimit limit;

    (void)state;
    allow_seconds(100);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    on_every_backend(storm);
}

/* The tasks move between more workers than there are processors, and so do the homes. */
static void with_four_workers(const char *backend)
{
    blz_rt *rt = new_rt(&(blz_options){.backend = backend, .workers = 4, .watchdog_ns = BLZ_NEVER});

    if (strcmp(blz_rt_backend(rt), backend) == 0)
        storm(rt);
    free_rt(rt);
}

static void no_memory_is_touched_with_many_workers(void **state)
{
    (void)state;
    allow_seconds(100);
    with_four_workers("io_uring");
    with_four_workers("epoll");
    with_four_workers("poll");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_memory_is_touched_when_it_is_ours_again),
        TEST(no_memory_is_touched_with_many_workers),
    };
    return RUN_TESTS(tests);
}
