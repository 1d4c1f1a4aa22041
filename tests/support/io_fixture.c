/* SPDX-License-Identifier: Apache-2.0 */
/* See io_fixture.h. */
#include "io_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- backends ---- */

const struct io_config io_configs[] = {
    {"io_uring, 1 worker", {.backend = "io_uring", .workers = 1}},
    {"io_uring, 2 workers", {.backend = "io_uring", .workers = 2}},
    {"epoll, 1 worker", {.backend = "epoll", .workers = 1}},
    {"epoll, 2 workers", {.backend = "epoll", .workers = 2}},
    {"poll, 1 worker", {.backend = "poll", .workers = 1}},
    {"poll, 2 workers", {.backend = "poll", .workers = 2}},
};
const int nr_io_configs = sizeof io_configs / sizeof *io_configs;

static blz_rt *rt_with(const struct io_config *config, const blz_options *more)
{
    blz_options options = more ? *more : (blz_options){.watchdog_ns = BLZ_NEVER};
    blz_rt *rt;

    options.backend = config->options.backend;
    options.workers = config->options.workers;
    rt = new_rt(&options);
    if (strcmp(blz_rt_backend(rt), options.backend) == 0) {
        if (getenv("TEST_VERBOSE"))
            fprintf(stderr, "  on %s\n", config->label);
        return rt;
    }
    fprintf(stderr, "  not on %s: %s\n", config->label, blz_rt_backend_reason(rt));
    free_rt(rt);
    return NULL;
}

blz_rt *io_rt(const struct io_config *config)
{
    return rt_with(config, NULL);
}

void on_every_backend_with(const blz_options *options, void (*body)(blz_rt *rt))
{
    for (int i = 0; i < nr_io_configs; i++) {
        blz_rt *rt = rt_with(&io_configs[i], options);
        if (!rt)
            continue;
        body(rt);
        free_rt(rt);
    }
}

void on_every_backend(void (*body)(blz_rt *rt))
{
    on_every_backend_with(NULL, body);
}

void on_every_backend_of(unsigned workers, void (*body)(blz_rt *rt))
{
    for (int i = 0; i < nr_io_configs; i++) {
        blz_rt *rt = io_configs[i].options.workers == workers ? io_rt(&io_configs[i]) : NULL;
        if (!rt)
            continue;
        body(rt);
        free_rt(rt);
    }
}

static bool looks_idle(const blz_stats *stats)
{
    return stats->workers_parked == stats->workers && stats->inject_depth == 0;
}

/*
 * Twice: a worker is counted as parked before it looks at the queues for the last time, and may
 * have taken something by the time the queue's length is read. Then it is not parked at the second
 * look, or has polled.
 */
void wait_until_idle(blz_rt *rt)
{
    blz_stats first, second;

    do {
        blz_rt_stats(rt, &first);
        blz_rt_stats(rt, &second);
    } while (!looks_idle(&first) || !looks_idle(&second) ||
             first.total.polls != second.total.polls);
}

/* ---- descriptors ---- */

void set_nonblocking(int fd)
{
    check(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0);
}

int tcp_listener(struct sockaddr_in *sa, int backlog)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = sizeof *sa;

    check(fd >= 0);
    *sa = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    check(bind(fd, (struct sockaddr *)sa, len) == 0 && listen(fd, backlog) == 0);
    check(getsockname(fd, (struct sockaddr *)sa, &len) == 0);
    return fd;
}

void tcp_socketpair(int fds[2])
{
    struct sockaddr_in sa;
    int listener = tcp_listener(&sa, 1), one = 1;

    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(fds[0] >= 0 && connect(fds[0], (struct sockaddr *)&sa, sizeof sa) == 0);
    fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    check(fds[1] >= 0);
    for (int i = 0; i < 2; i++)
        check(setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0);
    close(listener);
}

blz__fd_ref adopt_fd(blz_rt *rt, int fd, unsigned flags)
{
    int mode = blz__io_mode(rt);
    blz__fd_ref ref;

    check(mode >= 0);
    if (mode & FD_NONBLOCK)
        set_nonblocking(fd);
    check(blz__fd_adopt(&ref, rt, fd, flags | (unsigned)mode) == 0);
    return ref;
}

void open_pair(struct pair *pair, blz_rt *rt, enum pair_kind kind)
{
    struct sockaddr_in sa;
    int fds[2] = {-1, -1}, small = 4096;
    bool socket = kind != PAIR_PIPE_IN && kind != PAIR_PIPE_OUT;

    if (kind == PAIR_TCP) {
        tcp_socketpair(fds);
    } else if (kind == PAIR_UNIX) {
        check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
        check(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0);
    } else if (kind == PAIR_LISTENER) {
        fds[0] = tcp_listener(&sa, 128);
    } else {
        check(pipe2(fds, O_CLOEXEC) == 0);
        if (kind == PAIR_PIPE_OUT) {
            int swap = fds[0];
            fds[0] = fds[1];
            fds[1] = swap;
            check(fcntl(fds[0], F_SETPIPE_SZ, 4096) > 0);
        }
    }
    pair->fd = fds[0];
    pair->far = fds[1];
    if (pair->far >= 0)
        set_nonblocking(pair->far);
    pair->ours = adopt_fd(rt, fds[0],
                          (socket ? FD_SOCKET : 0) | (kind == PAIR_TCP ? FD_STREAM : 0) |
                              (kind == PAIR_LISTENER ? FD_SHARED : 0));
}

void close_pair(struct pair *pair)
{
    blz__fd_close(&pair->ours);
    if (pair->far >= 0)
        close(pair->far);
}

/* One call that does not wait, whatever mode the descriptor is in. */
static bool can(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};

    return poll(&p, 1, 0) == 1 && (p.revents & events);
}

size_t fill(int fd)
{
    int mode = fcntl(fd, F_GETFL);
    char bytes[4096];
    size_t all = 0;
    ssize_t n;

    memset(bytes, '#', sizeof bytes);
    check(fcntl(fd, F_SETFL, mode | O_NONBLOCK) == 0);
    do { /* over TCP room may come by itself: the other side takes what is under way */
        for (size_t len = sizeof bytes; len > 0; len /= 2)
            while ((n = write(fd, bytes, len)) > 0)
                all += (size_t)n;
    } while (can(fd, POLLOUT));
    check(fcntl(fd, F_SETFL, mode) == 0);
    return all;
}

size_t drain(int fd)
{
    char bytes[4096];
    size_t all = 0;

    while (can(fd, POLLIN)) {
        ssize_t n = read(fd, bytes, sizeof bytes);
        if (n <= 0)
            break;
        all += (size_t)n;
    }
    return all;
}

/* ---- one operation ---- */

static int a_file(void)
{
    static int fd = -1;

    if (fd < 0) {
        FILE *file = tmpfile();
        char text[64];
        memset(text, 'f', sizeof text);
        check(file != NULL && fwrite(text, sizeof text, 1, file) == 1 && fflush(file) == 0);
        fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, 500);
        check(fd >= 0);
        fclose(file);
    }
    return fd;
}

__attribute__((constructor)) static void open_file_before_descriptors_are_counted(void)
{
    a_file();
}

static void fill_in(struct io_memory *m, enum io_kind kind)
{
    bool writes = kind == IO_WRITE || kind == IO_WRITEV || kind == IO_SENDMSG;

    memset(m->buf, writes ? 'w' : 0, sizeof m->buf);
    m->iov[0] = (blz_iovec){m->buf, 24};
    m->iov[1] = (blz_iovec){m->buf + 24, 40};
    m->lease = (blz_buf){NULL, 0, NULL};
    m->msg = (blz__socket_message){.pieces = m->iov, .nr_pieces = 2};
}

blz_future *make_io(struct io_memory *m, enum io_kind kind, const blz__fd_ref *ref)
{
    static const blz_future_ops ops = {.name = "test_io",
                                       .poll = blz__io_poll,
                                       .cancel = blz__io_cancel};
    struct io *io;

    fill_in(m, kind);
    io = blz__io_prepare(&m->io, &ops, kind, ref);
    if (kind == IO_READV || kind == IO_WRITEV) {
        io->pieces.iov = m->iov;
        io->pieces.count = 2;
    } else if (kind == IO_LEASE) {
        io->lease.out = &m->lease;
    } else if (kind == IO_RECVMSG || kind == IO_SENDMSG) {
        io->message.message = &m->msg;
    } else if (kind == IO_SENDFILE) {
        io->sendfile.offset = 0;
        io->sendfile.len = sizeof m->buf;
        io->sendfile.file = a_file();
    } else if (kind == IO_POLL) {
        io->readiness.events = BLZ_FD_READ;
    } else if (kind == IO_FILE_READ) {
        io->file.buf = m->buf;
        io->file.len = sizeof m->buf;
        io->file.offset = FILE_POSITION;
    } else {
        io->bytes.buf = m->buf;
        io->bytes.len = sizeof m->buf;
    }
    return &io->op.future;
}

void drop_result(struct io_memory *m, enum io_kind kind, int64_t result)
{
    if (kind == IO_LEASE)
        blz_buf_release(&m->lease);
    if (kind == IO_ACCEPT && result >= 0)
        close((int)result);
}

/* ---- operations that are told to end at a moment of our choice ---- */

static blz_poll cancelled_first_poll(blz_future *self, blz_cx *cx)
{
    blz_future *inner = self->child;

    if (self->result == 0) {
        self->result = 1;
        inner->ops->cancel(inner, cx);
    }
    if (blz_is_pending(inner->ops->poll(inner, cx)))
        return BLZ_PENDING;
    return blz_future_done(self, inner->result);
}

static blz_poll cancelled_soon_poll(blz_future *self, blz_cx *cx)
{
    blz_future *inner = self->child;

    if (blz_is_ready(inner->ops->poll(inner, cx)))
        return blz_future_done(self, inner->result);
    if (self->result == 0) {
        self->result = 1;
        inner->ops->cancel(inner, cx);
        if (blz_is_ready(inner->ops->poll(inner, cx)))
            return blz_future_done(self, inner->result);
    }
    return BLZ_PENDING;
}

static blz_future *cancelled(blz_future *wrap, blz_future *inner, bool first)
{
    static const blz_future_ops first_ops = {.name = "first", .poll = cancelled_first_poll};
    static const blz_future_ops soon_ops = {.name = "soon", .poll = cancelled_soon_poll};

    *wrap = (blz_future){.ops = first ? &first_ops : &soon_ops, .child = inner};
    return wrap;
}

static blz_future *made(struct does_io *self)
{
    blz_future *io = make_io(&self->memory, (enum io_kind)self->kind, &self->ref);

    switch ((enum does_how)self->how) {
    case DO_CANCELLED_FIRST:
    case DO_CANCELLED_SOON:
        return cancelled(&self->wrap, io, self->how == DO_CANCELLED_FIRST);
    case DO_TIMEOUT:
        return blz_with_timeout(&self->limit, 2 * BLZ_MSEC, io);
    case DO_PLAIN:
        break;
    }
    return io;
}

BLZ_ASYNC_EXTERN(does_io)
{
    BLZ_BEGIN;
    if (self->started)
        event_post(self->started);
    BLZ_AWAIT(self->rc, made(self));
    if (self->got)
        *self->got = self->rc;
    drop_result(&self->memory, (enum io_kind)self->kind, self->rc);
    BLZ_END(self->rc);
}
