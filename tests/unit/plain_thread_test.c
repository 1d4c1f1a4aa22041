/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kind of leaf future, awaited by a thread that belongs to no runtime (blz_wait): what needs
 * a runtime says -ENXIO, what does not works, and nothing crashes.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static blz_rt *rt; /* of which the handles are */

static struct {
    blz_pipe in, out;
    blz_tcp_listener listener;
    blz_udp udp;
    blz_file file;
    blz_fd fd;
} made;

static char byte;
static blz_io io;

/* ---- time ---- */

static int64_t wait_sleep(void)
{
    blz_sleep_op op = {0};

    return blz_wait(blz_sleep(&op, BLZ_MSEC));
}

static int64_t wait_sleep_until(void)
{
    blz_sleep_op op = {0};

    return blz_wait(blz_sleep_until(&op, blz_now() + BLZ_HOUR));
}

static int64_t wait_sleep_that_is_over(void)
{
    blz_sleep_op op = {0};

    return blz_wait(blz_sleep(&op, 0));
}

static int64_t wait_interval(void)
{
    blz_interval interval;

    check(blz_interval_init(&interval, blz_now(), BLZ_MSEC, BLZ_INTERVAL_BURST) == 0);
    return blz_wait(blz_interval_tick(&interval));
}

static int64_t wait_timeout(void)
{
    blz_semaphore semaphore = BLZ_SEMAPHORE_INIT(0);
    blz_semaphore_op op = {0};
    blz_timeout limit = {0};
    int64_t rc;

    rc = blz_wait(blz_with_timeout(&limit, BLZ_SEC, blz_semaphore_acquire(&op, &semaphore, 1)));
    check(op.future.result == -ECANCELED);
    return rc;
}

static int64_t wait_timeout_of_what_is_there(void)
{
    blz_semaphore semaphore = BLZ_SEMAPHORE_INIT(1);
    blz_semaphore_op op = {0};
    blz_timeout limit = {0};

    return blz_wait(blz_with_timeout(&limit, BLZ_SEC, blz_semaphore_acquire(&op, &semaphore, 1)));
}

static int64_t wait_timeout_around_a_sleep(void)
{
    blz_timeout limit = {0};
    blz_sleep_op op = {0};

    return blz_wait(blz_with_deadline(&limit, blz_now() + BLZ_SEC, blz_sleep(&op, BLZ_SEC)));
}

/* ---- combinators ---- */

static int64_t wait_select(void)
{
    blz_select_op select = {0};
    blz_future pending;
    blz_sleep_op sleep = {0};

    check(blz_wait(blz_select(&select, blz_pending(&pending), blz_sleep(&sleep, 1))) == 1);
    return sleep.future.result;
}

static int64_t wait_join(void)
{
    blz_join_op join = {0};
    blz_sleep_op sleep = {0};
    blz_io write = {0};

    check(blz_wait(blz_join(&join, blz_sleep(&sleep, 1),
                            blz_pipe_write(&write, &made.out, "x", 1))) == 2);
    return write.future.result;
}

/* ---- descriptors ---- */

static int64_t wait_pipe_read(void)
{
    return blz_wait(blz_pipe_read(&io, &made.in, &byte, 1));
}

static int64_t wait_pipe_read_lease(void)
{
    blz_buf buf;

    return blz_wait(blz_pipe_read_lease(&io, &made.in, &buf));
}

static int64_t wait_pipe_ready(void)
{
    return blz_wait(blz_pipe_ready(&io, &made.in, BLZ_READABLE));
}

static int64_t wait_accept(void)
{
    blz_tcp conn;

    return blz_wait(blz_tcp_accept(&io, &made.listener, &conn));
}

static int64_t wait_serve(void)
{
    blz_serve_op op = {0};

    return blz_wait(blz_tcp_serve(&op, &made.listener, NULL, NULL));
}

static int64_t wait_tcp_connect(void)
{
    blz_addr addr;
    blz_tcp conn;

    check(blz_addr_parse(&addr, "127.0.0.1:1") == 0);
    return blz_wait(blz_tcp_connect_with(&io, &conn, &addr, NULL));
}

static int64_t wait_connect(void)
{
    blz_tcp_connect_op op = {0};
    blz_tcp conn;

    return blz_wait(blz_tcp_connect(&op, &conn, "127.0.0.1:1", BLZ_NEVER));
}

static int64_t wait_connect_with_a_limit(void)
{
    blz_tcp_connect_op op = {0};
    blz_tcp conn;

    return blz_wait(blz_tcp_connect(&op, &conn, "name.invalid:1", BLZ_SEC));
}

static int64_t wait_lookup(void)
{
    blz_addrs addrs;
    blz_dns op = {0};

    return blz_wait(blz_lookup(&op, &addrs, "name.invalid", NULL, NULL));
}

static int64_t wait_lookup_of_an_address(void)
{
    blz_addrs addrs;
    blz_dns op = {0};
    int64_t count = blz_wait(blz_lookup(&op, &addrs, "127.0.0.1", "80", NULL));

    if (count > 0)
        blz_addrs_free(&addrs);
    return count > 0 ? 0 : count;
}

static int64_t wait_udp_recv(void)
{
    blz_msg msg = {0};

    return blz_wait(blz_udp_recv(&msg, &made.udp, &byte, 1));
}

static int64_t wait_fd_readable(void)
{
    return blz_wait(blz_fd_readable(&io, &made.fd));
}

static int64_t wait_fdset(void)
{
    blz_fdset set = {0};
    blz_fdset_ready_op op = {0};

    return blz_wait(blz_fdset_ready(&op, &set, blz_now() + BLZ_SEC));
}

/* ---- files ---- */

static int64_t wait_file_open(void)
{
    blz_file file;
    int64_t rc = blz_wait(blz_file_open(&io, &file, "/dev/null", NULL));

    if (rc == 0)
        (void)blz_file_close(&file);
    return rc;
}

static int64_t wait_file_read(void)
{
    return blz_wait(blz_file_read(&io, &made.file, &byte, 1));
}

static int64_t wait_file_sync(void)
{
    return blz_wait(blz_file_sync(&io, &made.file));
}

static int64_t wait_file_lock(void)
{
    blz_file_lock_op op = {0};

    return blz_wait(blz_file_lock(&op, &made.file));
}

static int64_t wait_fs_metadata(void)
{
    blz_metadata metadata;
    blz_fs_op op = {0};

    return blz_wait(blz_fs_metadata(&op, "/", &metadata));
}

static int64_t wait_fs_read(void)
{
    blz_bytes bytes = {0};
    blz_fs_op op = {0};

    return blz_wait(blz_fs_read(&op, "/dev/null", &bytes, 0));
}

static int64_t wait_fs_watch(void)
{
    blz_fs_watch watch;
    blz_fs_change change;
    int64_t rc;

    check(blz_fs_watch_new(&watch, rt) == 0);
    rc = blz_wait(blz_fs_watch_next(&io, &watch, &change));
    blz_fs_watch_close(&watch);
    return rc;
}

static int64_t wait_dir_open(void)
{
    blz_dir dir;
    blz_fs_op op = {0};

    return blz_wait(blz_dir_open(&op, &dir, "/"));
}

/* ---- threads, processes, signals ---- */

static int64_t seven(void *arg)
{
    (void)arg;
    return 7;
}

static int64_t wait_blocking(void)
{
    blz_blocking_op op = {0};

    return blz_wait(blz_blocking(&op, seven, NULL));
}

static int64_t wait_blocking_owned(void)
{
    blz_blocking_owned_op op = {0};

    return blz_wait(blz_blocking_owned(&op, seven, NULL, NULL));
}

static int64_t wait_command_run(void)
{
    blz_command cmd;
    blz_command_run_op op = {0};
    int64_t rc;

    blz_command_init(&cmd, "/bin/true");
    rc = blz_wait(blz_command_run(&op, &cmd));
    blz_command_free(&cmd);
    return rc;
}

static int64_t wait_command_output(void)
{
    blz_command cmd;
    blz_output_op op = {0};
    blz_output output = {0};
    int64_t rc;

    blz_command_init(&cmd, "/bin/true");
    rc = blz_wait(blz_command_output(&op, &cmd, &output));
    blz_output_free(&output);
    blz_command_free(&cmd);
    return rc;
}

/* The child ends by itself, and is given back to the runtime. */
static int64_t wait_child(bool terminate)
{
    blz_command cmd;
    blz_child child;
    blz_child_await_op wait = {0};
    blz_child_terminate_op end = {0};
    int64_t rc;

    blz_command_init(&cmd, "/bin/true");
    check(blz_command_spawn(&cmd, &child, rt) == 0);
    rc = blz_wait(terminate ? blz_child_terminate(&end, &child, BLZ_SEC)
                            : blz_child_await(&wait, &child));
    blz_child_drop(&child);
    blz_command_free(&cmd);
    return rc;
}

static int64_t wait_child_await(void)
{
    return wait_child(false);
}

static int64_t wait_child_terminate(void)
{
    return wait_child(true);
}

static int64_t wait_shutdown(void)
{
    blz_shutdown *shutdown;
    blz_shutdown_op op = {0};
    int64_t rc;

    check(blz_shutdown_new(&shutdown, NULL) == 0);
    rc = blz_wait(blz_shutdown_run(&op, shutdown));
    blz_shutdown_free(shutdown);
    return rc;
}

static int64_t wait_process_watch(void)
{
    blz_process_watch_op op = {0};

    return blz_wait(blz_process_watch(&op, getppid()));
}

static int64_t wait_signal(void)
{
    blz_signal signal;
    blz_signal_op op = {0};
    int64_t rc;

    check(blz_signal_open(&signal, SIGUSR1) == 0);
    kill(getpid(), SIGUSR1);
    rc = blz_wait(blz_signal_recv(&op, &signal, NULL));
    blz_signal_close(&signal);
    return rc > 0 ? 0 : rc;
}

static int64_t wait_box(void)
{
    blz_box box;

    return blz_wait(BLZ_BOX(&box, give));
}

static int64_t par_nothing(blz_par *par, blz_par_cancel *cancel, void *arg)
{
    (void)par, (void)cancel, (void)arg;
    return 0;
}

static int64_t wait_par_run(void)
{
    blz_par_run_op op = {0};
    blz_pool *pool;
    int64_t rc;

    check(blz_pool_new(&pool, NULL) == 0);
    rc = blz_wait(blz_par_run(&op, pool, par_nothing, NULL));
    (void)blz_pool_free(pool);
    return rc;
}

/* ---- streams ---- */

static int64_t wait_stream_copy(void)
{
    blz_stream a, b, c, d;
    blz_copy_op op = {0};
    int64_t rc;

    check(blz_stream_pair(&a, &b, 0, NULL) == 0 && blz_stream_pair(&c, &d, 0, NULL) == 0);
    check(blz_wait(blz_stream_write(&io, &a, "xyz", 3)) == 3);
    (void)blz_stream_close(&a);
    rc = blz_wait(blz_copy(&op, b, c, NULL));
    (void)blz_stream_close(&b);
    (void)blz_stream_close(&c);
    (void)blz_stream_close(&d);
    return rc == 3 ? 0 : rc;
}

static int64_t wait_copy_both(void)
{
    blz_stream a, b, c, d;
    blz_copy_both_op op = {0};
    int64_t rc;

    check(blz_stream_pair(&a, &b, 0, NULL) == 0 && blz_stream_pair(&c, &d, 0, NULL) == 0);
    rc = blz_wait(blz_copy_both(&op, b, c, &(blz_copy_options){.idle_ns = BLZ_SEC}));
    (void)blz_stream_close(&a);
    (void)blz_stream_close(&b);
    (void)blz_stream_close(&c);
    (void)blz_stream_close(&d);
    return rc;
}

static int64_t wait_reader(void)
{
    blz_stream a, b;
    blz_reader reader;
    blz_bytes all = {0};
    int64_t rc;

    check(blz_stream_pair(&a, &b, 0, NULL) == 0);
    check(blz_reader_init(&reader, b, NULL, 0) == 0);
    check(blz_wait(blz_stream_write(&io, &a, "xyz", 3)) == 3);
    (void)blz_stream_close(&a);
    rc = blz_wait(blz_reader_read_to_end(&reader, &all, 100));
    blz_reader_free(&reader);
    (void)blz_stream_close(&b);
    blz_bytes_free(&all);
    return rc == 3 ? 0 : rc;
}

/* ---- the table ---- */

enum { EITHER = 1 }; /* it works if the system need not wait; otherwise -ENXIO */

static const struct {
    const char *name;
    int64_t (*wait)(void);
    int64_t expected;
} cases[] = {
    {"sleep", wait_sleep, -ENXIO},
    {"sleep_until", wait_sleep_until, -ENXIO},
    {"a sleep that is over", wait_sleep_that_is_over, 0},
    {"interval_tick", wait_interval, -ENXIO},
    {"timeout", wait_timeout, -ENXIO},
    {"timeout of what is there", wait_timeout_of_what_is_there, 0},
    {"timeout around a sleep", wait_timeout_around_a_sleep, -ENXIO},
    {"select", wait_select, -ENXIO},
    {"join", wait_join, -ENXIO},
    {"pipe_read", wait_pipe_read, -ENXIO},
    {"pipe_read_lease", wait_pipe_read_lease, -ENXIO},
    {"pipe_ready", wait_pipe_ready, -ENXIO},
    {"accept", wait_accept, -ENXIO},
    {"serve", wait_serve, -ENXIO},
    {"tcp_connect", wait_tcp_connect, -ENXIO},
    {"connect", wait_connect, -ENXIO},
    {"connect with a limit", wait_connect_with_a_limit, -ENXIO},
    {"lookup", wait_lookup, -ENXIO},
    {"lookup of an address", wait_lookup_of_an_address, 0},
    {"udp_recv", wait_udp_recv, -ENXIO},
    {"fd_readable", wait_fd_readable, -ENXIO},
    {"fdset_ready", wait_fdset, -ENXIO},
    {"file_open", wait_file_open, -ENXIO},
    {"file_read", wait_file_read, EITHER},
    {"file_sync", wait_file_sync, EITHER},
    {"file_lock", wait_file_lock, EITHER},
    {"fs_metadata", wait_fs_metadata, -ENXIO},
    {"fs_read", wait_fs_read, -ENXIO},
    {"dir_open", wait_dir_open, -ENXIO},
    {"blocking", wait_blocking, -ENXIO},
    {"blocking_owned", wait_blocking_owned, -ENXIO},
    {"command_run", wait_command_run, -ENXIO},
    {"command_output", wait_command_output, -ENXIO},
    {"process_watch", wait_process_watch, -ENXIO},
    {"child_await", wait_child_await, EITHER},
    {"child_terminate", wait_child_terminate, EITHER},
    {"shutdown_run", wait_shutdown, -ENXIO},
    {"fs_watch_next", wait_fs_watch, -ENXIO},
    {"copy_both with a limit", wait_copy_both, -ENXIO},
    {"signal_recv", wait_signal, 0},
    {"box", wait_box, -ENXIO},
    {"par_run", wait_par_run, 0},
    {"copy", wait_stream_copy, 0},
    {"reader_read_to_end", wait_reader, 0},
};

struct make_handles {
    BLZ_FRAME;
    int64_t rc;
    blz_io io;
    int fds[2];
};

BLZ_ASYNC(make_handles)
{
    blz_addr addr;

    BLZ_BEGIN;
    check(blz_pipe_new(&made.in, &made.out, NULL) == 0);
    check(blz_tcp_listen(&made.listener, "127.0.0.1:0") == 0);
    check(blz_addr_parse(&addr, "127.0.0.1:0") == 0);
    check(blz_udp_bind_with(&made.udp, &addr, NULL) == 0);
    check(pipe(self->fds) == 0 && blz_fd_attach(&made.fd, self->fds[0]) == 0);
    BLZ_AWAIT(self->rc, blz_file_open(&self->io, &made.file, "/dev/zero", NULL));
    check(self->rc == 0);
    BLZ_END(self->fds[1]);
}

static void each_future_works_without_a_runtime_or_says_enxio(void **state)
{
    int64_t other_end;

    (void)state;
    rt = new_rt(NULL);
    other_end = BLZ_BLOCK_ON(rt, make_handles);
    assert_true(other_end >= 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t rc = cases[i].wait();
        if (rc != cases[i].expected && !(cases[i].expected == EITHER && (rc >= 0 || rc == -ENXIO)))
            fail_msg("%s: %lld, not %lld", cases[i].name, (long long)rc,
                     (long long)cases[i].expected);
    }
    close(blz_fd_detach(&made.fd));
    close((int)other_end);
    blz_pipe_close(&made.in);
    blz_pipe_close(&made.out);
    blz_tcp_listener_close(&made.listener);
    blz_udp_close(&made.udp);
    (void)blz_file_close(&made.file);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_future_works_without_a_runtime_or_says_enxio),
    };

    return RUN_TESTS(tests);
}
