/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a thread that sleeps is woken when its ring has work for it: by the mode of the ring, by
 * where the thread sleeps, and by what ends. Without Blitz: it asks the kernel, and prints a line
 * for each combination. docs/design/io.md has the table; `tools/kernels --signals` makes it.
 *
 * One thread owns the ring. In each round it submits an operation and sleeps; another thread then
 * makes the operation end. A wake-up that has not come after the limit is lost: the result is there
 * as soon as the owner enters the ring.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { ROUNDS = 8, LIMIT_MS = 1500, PAUSE_MS = 40, SET_TOKEN = 7 };

enum mode { DEFER, COOP, PLAIN, NR_MODES };
static const char *const mode_names[] = {"DEFER_TASKRUN", "COOP_TASKRUN", "neither"};
static const unsigned mode_flags[] = {
    IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
    IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
    0,
};

enum place { EVENTFD, RING_FD, ENTER, NR_PLACES };
static const char *const place_names[] = {"epoll, registered eventfd", "epoll, the ring itself",
                                          "io_uring_enter"};

enum what { POLL, ACCEPT, KERNEL_THREAD, IN_SET, NR_WHATS };
static const char *const what_names[] = {"poll", "accept", "kernel's thread", "socket in the set"};

struct probe {
    struct io_uring ring;
    enum place place;
    enum what what;
    int set, eventfd, pipe[2], listener;
    struct sockaddr_in addr;
};

static void need(int ok, const char *what)
{
    if (!ok) {
        perror(what);
        exit(2);
    }
}

/* ---- what ends ---- */

static void *make_it_end(void *arg)
{
    struct probe *p = arg;

    poll(NULL, 0,
         PAUSE_MS); /* the other thread sleeps by now; if it does not, it will not either */
    if (p->what == ACCEPT) {
        int client = socket(AF_INET, SOCK_STREAM, 0);
        need(connect(client, (struct sockaddr *)&p->addr, sizeof p->addr) == 0, "connect");
        close(client);
    } else {
        need(write(p->pipe[1], "x", 1) == 1, "write");
    }
    return NULL;
}

static void submit_one(struct probe *p, char *byte)
{
    struct io_uring_sqe *sqe;

    if (p->what == IN_SET)
        return;
    sqe = io_uring_get_sqe(&p->ring);
    if (p->what == POLL)
        io_uring_prep_poll_add(sqe, p->pipe[0], POLLIN);
    else if (p->what == ACCEPT)
        io_uring_prep_accept(sqe, p->listener, NULL, NULL, 0);
    else
        io_uring_prep_read(sqe, p->pipe[0], byte, 1, (uint64_t)-1);
    if (p->what == KERNEL_THREAD)
        sqe->flags |= IOSQE_ASYNC;
    sqe->user_data = 1;
    need(io_uring_submit(&p->ring) == 1, "submit");
}

static void arm_set(struct probe *p)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&p->ring);

    io_uring_prep_poll_multishot(sqe, p->set, POLLIN);
    sqe->user_data = SET_TOKEN;
    need(io_uring_submit(&p->ring) == 1, "submit");
}

/* ---- sleeping ---- */

/* Takes all results; whether one is that of the operation, or tells of the set. */
static int reap(struct probe *p)
{
    struct io_uring_cqe *cqe;
    int found = 0;

    io_uring_get_events(&p->ring);
    while (io_uring_peek_cqe(&p->ring, &cqe) == 0) {
        found |= cqe->user_data == (p->what == IN_SET ? SET_TOKEN : 1);
        if (p->what == ACCEPT && cqe->user_data == 1 && cqe->res >= 0)
            close(cqe->res);
        if (cqe->user_data == SET_TOKEN && !(cqe->flags & IORING_CQE_F_MORE)) {
            io_uring_cqe_seen(&p->ring, cqe);
            arm_set(p);
            continue;
        }
        io_uring_cqe_seen(&p->ring, cqe);
    }
    return found;
}

static int sleep_once(struct probe *p)
{
    struct __kernel_timespec limit = {.tv_nsec = LIMIT_MS % 1000 * 1000000L,
                                      .tv_sec = LIMIT_MS / 1000};
    struct epoll_event event;
    struct io_uring_cqe *cqe;
    uint64_t count;
    int rc;

    if (p->place == ENTER)
        return io_uring_wait_cqes(&p->ring, &cqe, 1, &limit, NULL) != -ETIME;
    rc = epoll_wait(p->set, &event, 1, LIMIT_MS);
    if (rc == 1 && p->place == EVENTFD && event.data.fd == p->eventfd)
        need(read(p->eventfd, &count, sizeof count) == sizeof count, "read");
    return rc != 0; /* without DEFER_TASKRUN the kernel interrupts the call: EINTR */
}

/* Whether the owner was woken, which may take two sleeps: it may be woken too soon. */
static int one_round(struct probe *p)
{
    pthread_t other;
    char byte;
    int woken, ended = 0;

    submit_one(p, &byte);
    need(pthread_create(&other, NULL, make_it_end, p) == 0, "thread");
    do {
        woken = sleep_once(p);
        ended = reap(p);
    } while (woken && !ended);
    pthread_join(other, NULL);
    for (int tries = 0; !ended && tries < 100; tries++) {
        poll(NULL, 0, 10);
        ended = reap(p);
    }
    if (p->what == POLL || p->what == IN_SET)
        need(read(p->pipe[0], &byte, 1) == 1, "read");
    if (!ended)
        printf("no result either\n");
    return woken;
}

/* ---- one combination ---- */

static void add(const struct probe *p, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    need(epoll_ctl(p->set, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

static int open_probe(struct probe *p, enum mode mode)
{
    struct io_uring_params params = {.flags = mode_flags[mode]};
    socklen_t len = sizeof p->addr;
    int rc = io_uring_queue_init_params(16, &p->ring, &params);

    if (rc < 0)
        return rc;
    p->set = epoll_create1(0);
    p->eventfd = eventfd(0, 0);
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, p->pipe) == 0, "socketpair");
    p->listener = socket(AF_INET, SOCK_STREAM, 0);
    p->addr = (struct sockaddr_in){.sin_family = AF_INET};
    p->addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    need(bind(p->listener, (struct sockaddr *)&p->addr, len) == 0, "bind");
    need(listen(p->listener, 16) == 0, "listen");
    need(getsockname(p->listener, (struct sockaddr *)&p->addr, &len) == 0, "getsockname");
    if (p->place == EVENTFD) {
        need(io_uring_register_eventfd(&p->ring, p->eventfd) == 0, "register_eventfd");
        add(p, p->eventfd);
    } else if (p->place == RING_FD) {
        add(p, p->ring.ring_fd);
    } else {
        arm_set(p);
    }
    if (p->what == IN_SET)
        add(p, p->pipe[0]);
    return 0;
}

static void close_probe(struct probe *p)
{
    io_uring_queue_exit(&p->ring);
    close(p->set);
    close(p->eventfd);
    close(p->pipe[0]);
    close(p->pipe[1]);
    close(p->listener);
}

static void try_out(const char *kernel, enum mode mode, enum place place, enum what what)
{
    struct probe p = {.place = place, .what = what};
    int woken = 0, rounds = 0, rc = open_probe(&p, mode);

    if (rc < 0) {
        printf("%-8s | %-13s | %-25s | %-17s | not possible: %s\n", kernel, mode_names[mode],
               place_names[place], what_names[what], strerror(-rc));
        return;
    }
    while (rounds < ROUNDS && rounds - woken < 3) {
        rounds++;
        if (one_round(&p))
            woken++;
        else if (getenv("VERBOSE"))
            printf("round %d\n", rounds);
    }
    printf("%-8s | %-13s | %-25s | %-17s | %s, %d of %d\n", kernel, mode_names[mode],
           place_names[place], what_names[what], woken == rounds ? "woken" : "LOST", woken, rounds);
    fflush(stdout);
    close_probe(&p);
}

int main(int argc, char **argv)
{
    struct utsname name;
    const char *kernel = argv[1];

    if (argc < 2) {
        uname(&name);
        kernel = name.release;
    }
    for (int mode = 0; mode < NR_MODES; mode++)
        for (int place = 0; place < NR_PLACES; place++)
            for (int what = 0; what < NR_WHATS; what++)
                if (what != IN_SET || place == ENTER) /* elsewhere it needs no ring */
                    try_out(kernel, (enum mode)mode, (enum place)place, (enum what)what);
    return 0;
}
