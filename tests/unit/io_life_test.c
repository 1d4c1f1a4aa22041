/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the lives of descriptors, buffers, runtimes, threads and processes cross: several runtimes
 * on a thread, what outlives its runtime, and what a forked child may do.
 */
#include "io_fixture.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- embedded ---- */

static const struct io_config embeddable[] = {
    {"io_uring", {.backend = "io_uring", .embedded = true}},
    {"epoll", {.backend = "epoll", .embedded = true}},
};

/* Calls the body with an embedded runtime for each backend that can be waited for. */
static void on_every_embedded(void (*body)(blz_rt *rt, const blz_options *options))
{
    for (size_t i = 0; i < sizeof embeddable / sizeof *embeddable; i++) {
        blz_rt *rt;
        if (blz_rt_new(&rt, &embeddable[i].options) < 0) {
            fprintf(stderr, "  not on %s\n", embeddable[i].label);
            continue;
        }
        body(rt, &embeddable[i].options);
        free_rt(rt);
    }
}

static bool is_readable(blz_rt *rt, int wait_ms)
{
    struct pollfd pfd = {.fd = blz_rt_fd(rt), .events = POLLIN};
    return poll(&pfd, 1, wait_ms) == 1;
}

/* As an event loop does, which sleeps as long as the descriptor lets it. */
static void loop_until_done(blz_rt *rt, const blz_handle *handle)
{
    while (!blz_handle_done(handle)) {
        assert_true(is_readable(rt, PATIENCE_MS));
        assert_true(blz_rt_turn(rt) >= 0);
    }
}

static void wake_without_descriptors(blz_rt *rt, const blz_options *options)
{
    (void)options;
    turn_all(rt);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(BLZ_SPAWN_ON(rt, NULL, give), 0);
        assert_true(is_readable(rt, PATIENCE_MS));
        turn_all(rt);
        assert_false(is_readable(rt, 0));
    }
}

static void a_wake_up_is_taken_also_without_descriptors(void **state)
{
    (void)state;
    on_every_embedded(wake_without_descriptors);
}

static void read_a_byte(blz_rt *rt)
{
    struct pair pair;
    blz_handle handle;

    open_pair(&pair, rt, PAIR_TCP);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, does_io, .kind = IO_READ, .ref = pair.ours), 0);
    turn_all(rt);
    assert_int_equal(write(pair.far, "x", 1), 1);
    loop_until_done(rt, &handle);
    assert_int_equal(blz_handle_wait(&handle) == 0 ? handle.result : -1, 1);
    close_pair(&pair);
}

static void free_another_one(blz_rt *rt, const blz_options *options)
{
    blz_options threads = {.backend = options->backend, .workers = 1, .watchdog_ns = BLZ_NEVER};
    blz_rt *other = new_rt(&threads);
    struct pair pair;

    read_a_byte(rt);
    open_pair(&pair, other, PAIR_TCP);
    assert_int_equal(write(pair.far, "x", 1), 1);
    assert_int_equal(BLZ_BLOCK_ON(other, does_io, .kind = IO_READ, .ref = pair.ours), 1);
    close_pair(&pair);
    free_rt(other);
    read_a_byte(rt);
}

/* A ring that a thread frees for another one is not in that thread's own table of rings. */
static void a_thread_frees_another_runtime_than_the_one_it_turns(void **state)
{
    (void)state;
    on_every_embedded(free_another_one);
}

/* ---- what outlives its runtime ---- */

struct borrows {
    BLZ_FRAME;
    blz__fd_ref ref;
    blz_buf *buf;
    blz_io io;
    int64_t n;
};

static blz_future *lease_init(blz_io *io, const blz_future_ops *ops, const blz__fd_ref *ref,
                              blz_buf *out)
{
    blz__io_prepare(io, ops, IO_LEASE, ref)->lease.out = out;
    return &io->future;
}

BLZ_ASYNC(borrows)
{
    static const blz_future_ops ops = {.name = "lease",
                                       .poll = blz__io_poll,
                                       .cancel = blz__io_cancel};

    BLZ_BEGIN;
    BLZ_AWAIT(self->n, lease_init(&self->io, &ops, &self->ref, self->buf));
    BLZ_END(self->n);
}

enum { NR_BUFS = 3 };

static void borrow(blz_rt *rt, blz_buf bufs[NR_BUFS])
{
    struct pair pair;

    open_pair(&pair, rt, PAIR_TCP);
    for (int i = 0; i < NR_BUFS; i++) {
        assert_int_equal(write(pair.far, "abc", 3), 3);
        assert_int_equal(BLZ_BLOCK_ON(rt, borrows, .ref = pair.ours, .buf = &bufs[i]), 3);
    }
    close_pair(&pair);
}

static void a_buffer_may_be_given_back_after_its_runtime(void **state)
{
    (void)state;
    for (int i = 0; i < nr_io_configs; i++) {
        blz_buf bufs[NR_BUFS] = {{0}};
        blz_rt *rt = io_rt(&io_configs[i]);
        if (!rt)
            continue;
        borrow(rt, bufs);
        blz_buf_release(&bufs[1]);
        free_rt(rt);
        assert_memory_equal(bufs[0].data, "abc", 3);
        assert_memory_equal(bufs[2].data, "abc", 3);
        blz_buf_release(&bufs[2]);
        blz_buf_release(&bufs[0]);
    }
}

/* The runtime itself stays as long as the handle does. */
static void descriptors_are_closed_with_the_runtime_whoever_still_refers_to_it(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1, .watchdog_ns = BLZ_NEVER});
    blz_handle handle;
    struct pair pair;
    char c;

    (void)state;
    open_pair(&pair, rt, PAIR_TCP);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, give), 0);
    assert_int_equal(blz_rt_free(rt), 0);
    assert_int_equal(read(pair.far, &c, 1), 0);
    blz_handle_detach(&handle);
    close(pair.far);
}

static const blz_future_ops accept_ops = {.name = "accept",
                                          .poll = blz__io_poll,
                                          .cancel = blz__io_cancel};

struct accepts {
    BLZ_FRAME;
    blz__fd_ref ref;
    blz_io io;
    int64_t fd;
};

BLZ_ASYNC(accepts)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->fd, blz__io_init(&self->io, &accept_ops, IO_ACCEPT, &self->ref, NULL, 0));
    if (self->fd >= 0)
        close((int)self->fd);
    BLZ_END(self->fd);
}

static int connect_to(const struct sockaddr_in *sa)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

    assert_true(fd >= 0);
    rc = connect(fd, (const struct sockaddr *)sa, sizeof *sa) < 0 ? -errno : 0;
    close(fd);
    return rc;
}

/* Its task is cancelled while it waits; nobody has closed the listener. */
static void leave_a_listener(const struct io_config *config)
{
    struct sockaddr_in sa;
    int fd = tcp_listener(&sa, 16);
    blz_rt *rt = io_rt(config);
    blz_handle handle;

    if (!rt) {
        close(fd);
        return;
    }
    blz__fd_ref ref = adopt_fd(rt, fd, FD_SOCKET | FD_SHARED);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, accepts, .ref = ref), 0);
    wait_until_idle(rt);
    assert_int_equal(blz_rt_free(rt), 0);
    assert_int_equal(connect_to(&sa), -ECONNREFUSED);
    blz_handle_detach(&handle);
}

static void a_listener_ends_with_its_runtime_whoever_still_refers_to_it(void **state)
{
    (void)state;
    for (int i = 0; i < nr_io_configs; i++)
        leave_a_listener(&io_configs[i]);
}

/* ---- whose it is ---- */

static void a_task_of_another_runtime_is_refused(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1, .watchdog_ns = BLZ_NEVER});
    blz_rt *other = new_rt(&(blz_options){.workers = 1, .watchdog_ns = BLZ_NEVER});
    struct pair pair;

    (void)state;
    open_pair(&pair, rt, PAIR_TCP);
    assert_int_equal(BLZ_BLOCK_ON(other, does_io, .kind = IO_READ, .ref = pair.ours), -EXDEV);
    free_rt(other);
    close_pair(&pair);
    free_rt(rt);
}

static int close_in_child(const struct pair *pair)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        blz__fd_ref ref = pair->ours;
        alarm(CHILD_SECONDS);
        if (blz__fd_acquire(&ref) != -EOWNERDEAD)
            _exit(1);
        _exit(blz__fd_close(&ref) != -EOWNERDEAD ? 2 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void close_elsewhere(blz_rt *rt)
{
    struct pair pair;
    blz_handle handle;

    open_pair(&pair, rt, PAIR_TCP);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, does_io, .kind = IO_READ, .ref = pair.ours), 0);
    wait_until_idle(rt);
    assert_int_equal(close_in_child(&pair), 0);
    assert_int_equal(write(pair.far, "x", 1), 1);
    assert_int_equal(blz_handle_wait(&handle), 0);
    assert_int_equal(handle.result, 1);
    close_pair(&pair);
}

/* Its parent goes on waiting for the descriptor, undisturbed. */
static void a_forked_child_cannot_close_what_is_its_parents(void **state)
{
    (void)state;
    on_every_backend(close_elsewhere);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_wake_up_is_taken_also_without_descriptors),
        TEST(a_thread_frees_another_runtime_than_the_one_it_turns),
        TEST(a_buffer_may_be_given_back_after_its_runtime),
        TEST(descriptors_are_closed_with_the_runtime_whoever_still_refers_to_it),
        TEST(a_listener_ends_with_its_runtime_whoever_still_refers_to_it),
        TEST(a_task_of_another_runtime_is_refused),
        TEST(a_forked_child_cannot_close_what_is_its_parents),
    };
    return RUN_TESTS(tests);
}
