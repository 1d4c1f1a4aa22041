// SPDX-License-Identifier: Apache-2.0
// TCP echo server on bare io_uring: a ring a thread, multishot accept, multishot recv into provided
// buffers, one send per message.
// Usage: uring_echo PORT [THREADS]
#define _GNU_SOURCE
#include <stdint.h>
#include "listen.h"
#include <errno.h>
#include <liburing.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BUFFERS = 4096, BUFFER_SIZE = 1024, GROUP = 1 };
enum op { ACCEPT = 1, RECV, SEND };

struct server {
    struct io_uring ring;
    struct io_uring_buf_ring *buffers;
    char *memory;
    int listener;
};

static int g_port = 7000;

static uint64_t tag(enum op op, int fd, unsigned buffer)
{
    return (uint64_t)op << 56 | (uint64_t)buffer << 32 | (uint32_t)fd;
}

static struct io_uring_sqe *next_sqe(struct server *s)
{
    struct io_uring_sqe *sqe;
    while (!(sqe = io_uring_get_sqe(&s->ring)))
        io_uring_submit(&s->ring);
    return sqe;
}

static void start_accept(struct server *s)
{
    struct io_uring_sqe *sqe = next_sqe(s);
    io_uring_prep_multishot_accept(sqe, s->listener, 0, 0, 0);
    sqe->user_data = tag(ACCEPT, s->listener, 0);
}

static void start_recv(struct server *s, int fd)
{
    struct io_uring_sqe *sqe = next_sqe(s);
    io_uring_prep_recv_multishot(sqe, fd, 0, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = GROUP;
    sqe->user_data = tag(RECV, fd, 0);
}

static void start_send(struct server *s, int fd, unsigned buffer, int len)
{
    struct io_uring_sqe *sqe = next_sqe(s);
    io_uring_prep_send(sqe, fd, s->memory + buffer * BUFFER_SIZE, (size_t)len, MSG_NOSIGNAL);
    sqe->user_data = tag(SEND, fd, buffer);
}

static void give_back(struct server *s, unsigned buffer)
{
    io_uring_buf_ring_add(s->buffers, s->memory + buffer * BUFFER_SIZE, BUFFER_SIZE,
                          (unsigned short)buffer, BUFFERS - 1, 0);
    io_uring_buf_ring_advance(s->buffers, 1);
}

static void on_accept(struct server *s, const struct io_uring_cqe *cqe)
{
    if (cqe->res >= 0)
        start_recv(s, cqe->res);
    if (!(cqe->flags & IORING_CQE_F_MORE))
        start_accept(s);
}

static void on_recv(struct server *s, const struct io_uring_cqe *cqe, int fd)
{
    unsigned buffer = cqe->flags >> IORING_CQE_BUFFER_SHIFT;
    if (cqe->res > 0)
        start_send(s, fd, buffer, cqe->res);
    if (cqe->flags & IORING_CQE_F_MORE)
        return;
    if (cqe->res > 0 || cqe->res == -ENOBUFS) {
        start_recv(s, fd);
        return;
    }
    if (cqe->flags & IORING_CQE_F_BUFFER)
        give_back(s, buffer);
    close(fd);
}

static void server_init(struct server *s)
{
    struct io_uring_params params = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE,
        .cq_entries = 16384,
    };
    s->listener = listen_loopback(g_port, 0);
    if (io_uring_queue_init_params(4096, &s->ring, &params)) {
        perror("io_uring");
        exit(1);
    }
    s->buffers = mmap(0, BUFFERS * sizeof(struct io_uring_buf), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct io_uring_buf_reg reg = {.ring_addr = (uintptr_t)s->buffers,
                                   .ring_entries = BUFFERS,
                                   .bgid = GROUP};
    if (io_uring_register_buf_ring(&s->ring, &reg, 0)) {
        perror("buffer ring");
        exit(1);
    }
    io_uring_buf_ring_init(s->buffers);
    s->memory = malloc((size_t)BUFFERS * BUFFER_SIZE);
    for (int i = 0; i < BUFFERS; i++)
        io_uring_buf_ring_add(s->buffers, s->memory + i * BUFFER_SIZE, BUFFER_SIZE,
                              (unsigned short)i, BUFFERS - 1, i);
    io_uring_buf_ring_advance(s->buffers, BUFFERS);
}

static void *serve(void *unused)
{
    (void)unused;
    struct server s;
    server_init(&s);
    start_accept(&s);
    for (;;) {
        struct io_uring_cqe *cqe;
        unsigned head, seen = 0;
        io_uring_submit_and_wait(&s.ring, 1);
        io_uring_for_each_cqe(&s.ring, head, cqe)
        {
            int fd = (int)(uint32_t)cqe->user_data;
            enum op op = cqe->user_data >> 56;
            if (op == ACCEPT)
                on_accept(&s, cqe);
            else if (op == RECV)
                on_recv(&s, cqe, fd);
            else
                give_back(&s, (cqe->user_data >> 32) & 0xffff);
            seen++;
        }
        io_uring_cq_advance(&s.ring, seen);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        g_port = atoi(argv[1]);
    int threads = argc > 2 ? atoi(argv[2]) : 1;
    for (int i = 1; i < threads; i++) {
        pthread_t thread;
        pthread_create(&thread, 0, serve, 0);
    }
    serve(0);
}
