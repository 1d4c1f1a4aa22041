/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that Blitz can do without are refused, one by one, by a system call filter: everything
 * works all the same, on every backend, whether the filter was there first or comes when the
 * runtime has started. Calls that it cannot do without, once it has begun to use them, end the
 * program with a sentence; none of them makes it spin or hang.
 *
 * A filter cannot be taken back: each case is a process of its own.
 */
#include "harness.h"

#include "filter.h"
#include "talk.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- what must work ---- */

static char dir[64]; /* of this process */

static const char *in_dir(char *path, const char *name)
{
    snprintf(path, 96, "%s/%s", dir, name);
    return path;
}

struct uses_files {
    BLZ_FRAME;
    blz_fs_op op;
    blz_io io;
    blz_file file;
    blz_bytes bytes;
    blz_metadata meta;
    char a[96], b[96], buf[8];
    int64_t rc;
};

BLZ_ASYNC(uses_files)
{
    BLZ_BEGIN;
    in_dir(self->a, "a");
    in_dir(self->b, "b");
    BLZ_AWAIT(self->rc, blz_fs_create_dir_all(&self->op, dir, 0755));
    check(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_fs_write_atomic(&self->op, self->a, "hello", 5));
    check(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_fs_append(&self->op, self->a, "!", 1));
    check(self->rc >= 0);
    BLZ_AWAIT(self->rc, blz_fs_copy(&self->op, self->a, self->b));
    check(self->rc == 6);
    BLZ_AWAIT(self->rc, blz_fs_metadata(&self->op, self->b, &self->meta));
    check(self->rc == 0 && self->meta.size == 6 && self->meta.type == BLZ_FILE_REGULAR);
    BLZ_AWAIT(self->rc, blz_file_open(&self->io, &self->file, self->b,
                                      &(blz_open_options){.read = true, .write = true}));
    check(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_file_metadata(&self->io, &self->file, &self->meta));
    check(self->rc == 0 && self->meta.size == 6);
    BLZ_AWAIT(self->rc, blz_file_write_at(&self->io, &self->file, "J", 1, 0));
    check(self->rc == 1);
    BLZ_AWAIT(self->rc, blz_file_sync_data(&self->io, &self->file));
    check(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_file_read(&self->io, &self->file, self->buf, sizeof self->buf));
    check(self->rc == 6 && memcmp(self->buf, "Jello!", 6) == 0);
    blz_file_close(&self->file);
    BLZ_AWAIT(self->rc, blz_fs_temp_file(&self->op, &self->file, dir));
    check(self->rc == 0);
    blz_file_close(&self->file);
    BLZ_AWAIT(self->rc, blz_fs_read(&self->op, self->b, &self->bytes, 100));
    check(self->rc == 6);
    blz_bytes_free(&self->bytes);
    BLZ_AWAIT(self->rc, blz_fs_remove_dir_all(&self->op, dir));
    check(self->rc == 0);
    BLZ_END(0);
}

/* Through the kernel, where that can be had. */
struct copies {
    BLZ_FRAME;
    blz_fs_op op;
    blz_io io;
    blz_file file;
    blz_unix a, b;
    blz_pipe in, out;
    blz_copy_op copy;
    char path[96], buf[8];
    int64_t rc;
};

BLZ_ASYNC(copies)
{
    BLZ_BEGIN;
    in_dir(self->path, "copied");
    BLZ_AWAIT(self->rc, blz_fs_create_dir_all(&self->op, dir, 0755));
    check(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_fs_write(&self->op, self->path, "hello", 5));
    check(self->rc >= 0);
    BLZ_AWAIT(self->rc, blz_file_open(&self->io, &self->file, self->path, NULL));
    check(self->rc == 0);
    check(blz_unix_pair(&self->a, &self->b, NULL) == 0);
    check(blz_pipe_new(&self->in, &self->out, NULL) == 0);
    BLZ_AWAIT(self->rc, blz_copy(&self->copy, blz_file_stream(&self->file),
                                 blz_unix_stream(&self->a), &(blz_copy_options){.limit = 5}));
    check(self->rc == 5);
    BLZ_AWAIT(self->rc, blz_copy(&self->copy, blz_unix_stream(&self->b),
                                 blz_pipe_stream(&self->out), &(blz_copy_options){.limit = 5}));
    check(self->rc == 5);
    BLZ_AWAIT(self->rc, blz_pipe_read(&self->io, &self->in, self->buf, sizeof self->buf));
    check(self->rc == 5 && memcmp(self->buf, "hello", 5) == 0);
    blz_file_close(&self->file);
    blz_unix_close(&self->a);
    blz_unix_close(&self->b);
    blz_pipe_close(&self->in);
    blz_pipe_close(&self->out);
    BLZ_AWAIT(self->rc, blz_fs_remove_dir_all(&self->op, dir));
    check(self->rc == 0);
    BLZ_END(0);
}

struct runs_programs {
    BLZ_FRAME;
    blz_command cmd;
    blz_output output;
    blz_output_op op;
    blz_child child;
    blz_child_terminate_op terminate;
    int64_t rc;
};

BLZ_ASYNC(runs_programs)
{
    BLZ_BEGIN;
    blz_command_init(&self->cmd, "/bin/echo");
    blz_command_arg(&self->cmd, "hello");
    BLZ_AWAIT(self->rc, blz_command_output(&self->op, &self->cmd, &self->output));
    check(self->rc == 0 && self->output.out_len == 6);
    blz_output_free(&self->output);
    blz_command_free(&self->cmd);
    blz_command_init(&self->cmd, "/bin/sleep");
    blz_command_arg(&self->cmd, "1000");
    blz_command_stdio(&self->cmd, 2, BLZ_STDIO_NULL); /* or it would keep the pipe of this test */
    self->rc = blz_command_spawn(&self->cmd, &self->child, NULL);
    check(self->rc == 0);
    BLZ_AWAIT(self->rc, blz_child_terminate(&self->terminate, &self->child, 100 * BLZ_SEC));
    check(self->rc == SIGTERM << 8);
    blz_child_drop(&self->child);
    blz_command_free(&self->cmd);
    BLZ_END(0);
}

static int64_t add_numbers(blz_par *par, blz_par_cancel *cancel, void *arg)
{
    int64_t sum = 0;

    (void)par;
    (void)cancel;
    for (int64_t i = 0; i < *(const int64_t *)arg; i++)
        sum += i;
    return sum;
}

static int64_t answer(void *arg)
{
    return *(const int64_t *)arg;
}

struct computes {
    BLZ_FRAME;
    int64_t n, rc;
    blz_par_run_op run;
    blz_blocking_op blocking;
    blz_sleep_op sleep;
};

BLZ_ASYNC(computes)
{
    BLZ_BEGIN;
    self->n = 100;
    BLZ_AWAIT(self->rc, blz_par_run(&self->run, NULL, add_numbers, &self->n));
    check(self->rc == 4950);
    BLZ_AWAIT(self->rc, blz_blocking(&self->blocking, answer, &self->n));
    check(self->rc == 100);
    BLZ_AWAIT(self->rc, blz_sleep(&self->sleep, BLZ_MSEC));
    check(self->rc == 0);
    BLZ_END(0);
}

struct sends_datagrams {
    BLZ_FRAME;
    blz_udp socket;
    blz_msg msg;
    blz_datagram datagrams[2];
    char buf[2][8];
    int64_t rc;
};

static void address(struct sends_datagrams *self, const blz_addr *to)
{
    for (int i = 0; i < 2; i++)
        self->datagrams[i] = (blz_datagram){.data = self->buf[i], .len = 1, .addr = *to};
}

BLZ_ASYNC(sends_datagrams)
{
    blz_addr here;

    BLZ_BEGIN;
    here = blz_addr_loopback(BLZ_ADDR_V4, 0);
    check(blz_udp_bind_with(&self->socket, &here, NULL) == 0);
    check(blz_udp_local_addr(&self->socket, &here) == 0);
    address(self, &here);
    BLZ_AWAIT(self->rc, blz_udp_send_batch(&self->msg, &self->socket, self->datagrams, 2));
    check(self->rc >= 1); /* as many as the system takes at a time */
    BLZ_AWAIT(self->rc, blz_udp_recv_batch(&self->msg, &self->socket, self->datagrams, 2));
    check(self->rc >= 1);
    blz_udp_close(&self->socket);
    BLZ_END(0);
}

static void use_everything(blz_rt *rt)
{
    check(talk_everywhere(rt) == 0);
    check(BLZ_BLOCK_ON(rt, uses_files) == 0);
    check(BLZ_BLOCK_ON(rt, copies) == 0);
    check(BLZ_BLOCK_ON(rt, runs_programs) == 0);
    check(BLZ_BLOCK_ON(rt, computes) == 0);
    check(BLZ_BLOCK_ON(rt, sends_datagrams) == 0);
}

/* ---- processes ---- */

enum { NONE = -1 };

struct refusal {
    int calls[3], error;
    const char *backend;
    bool late; /* when the runtime has started */
};

static void refuse(const struct refusal *refusal)
{
    for (int i = 0; i < 3 && refusal->calls[i] != NONE; i++)
        refuse_call(refusal->calls[i], refusal->error);
}

static void use_everything_under(const struct refusal *refusal)
{
    const blz_options options = {.workers = 2,
                                 .backend = refusal->backend,
                                 .watchdog_ns = BLZ_NEVER};
    blz_rt *rt = NULL;

    snprintf(dir, sizeof dir, "/tmp/blitz-refused-%d", (int)getpid());
    if (!refusal->late)
        refuse(refusal);
    check(blz_rt_new(&rt, &options) == 0);
    if (refusal->late) {
        use_everything(rt);
        refuse(refusal);
    }
    use_everything(rt);
    check(blz_rt_free(rt) == 0);
}

/* What the process is told, in its one argument. */
static void run_refusal(const char *text)
{
    struct refusal r = {.late = false};
    char backend[16];
    int late;

    alarm(CHILD_SECONDS);
    check(sscanf(text, "%d,%d,%d,%d,%d,%15s", &r.calls[0], &r.calls[1], &r.calls[2], &r.error,
                 &late, backend) == 6);
    r.late = late;
    r.backend = strcmp(backend, "default") == 0 ? NULL : backend;
    use_everything_under(&r);
}

/* Gives the process; *err reads what it says. */
static pid_t start(const struct refusal *r, int *err)
{
    char text[96], self[] = "/proc/self/exe";
    char *argv[] = {self, text, NULL};
    posix_spawn_file_actions_t actions;
    int fds[2];
    pid_t pid;

    snprintf(text, sizeof text, "%d,%d,%d,%d,%d,%s", r->calls[0], r->calls[1], r->calls[2],
             r->error, r->late, r->backend ? r->backend : "default");
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDERR_FILENO);
    assert_int_equal(posix_spawn(&pid, self, &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    *err = fds[0];
    return pid;
}

static int finish(pid_t pid, int err, char *said, size_t size)
{
    size_t len = 0;
    int status = -1;
    ssize_t n;

    while (len + 1 < size && (n = read(err, said + len, size - 1 - len)) > 0)
        len += (size_t)n;
    said[len] = '\0';
    close(err);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* ---- calls that can be done without ---- */

static const struct {
    const char *name;
    int call;
} optional[] = {
    {"epoll_pwait2", SYS_epoll_pwait2},
    {"epoll_pwait", SYS_epoll_pwait},
    {"membarrier", SYS_membarrier},
    {"openat2", SYS_openat2},
    {"pidfd_open", SYS_pidfd_open},
    {"pidfd_send_signal", SYS_pidfd_send_signal},
    {"sched_setaffinity", SYS_sched_setaffinity},
    {"sched_getaffinity", SYS_sched_getaffinity},
    {"copy_file_range", SYS_copy_file_range},
    {"sendfile", SYS_sendfile},
    {"splice", SYS_splice},
    {"statx", SYS_statx},
    {"preadv2", SYS_preadv2},
    {"pwritev2", SYS_pwritev2},
    {"close_range", SYS_close_range},
    {"getrandom", SYS_getrandom},
    {"sendmmsg", SYS_sendmmsg},
    {"recvmmsg", SYS_recvmmsg},
    {"fallocate", SYS_fallocate},
    {"io_uring_register", SYS_io_uring_register},
};

static const char *const backends[] = {NULL, "epoll", "poll"};
static const int errors[] = {EPERM, ENOSYS};

static void works_without(size_t which, bool late)
{
    pid_t pids[6];
    int errs[6], n = 0;
    char said[512];

    for (int b = 0; b < 3; b++)
        for (int e = 0; e < 2; e++, n++)
            pids[n] =
                start(&(struct refusal){{optional[which].call, NONE}, errors[e], backends[b], late},
                      &errs[n]);
    while (n-- > 0)
        if (finish(pids[n], errs[n], said, sizeof said) != 0)
            fail_msg("%s refused with %d, %s, backend %s: %s", optional[which].name, errors[n % 2],
                     late ? "late" : "from the start", n / 2 ? backends[n / 2] : "by default",
                     said);
}

static void everything_works_without_the_calls_that_are_optional(void **state)
{
    (void)state;
    allow_seconds(300);
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++) {
        if (optional[i].call == SYS_sched_getaffinity && is_sanitized())
            continue; /* the sanitizers stand on it */
        works_without(i, false);
        if (optional[i].call != SYS_membarrier)
            works_without(i, true);
    }
}

/* ---- calls that it stands on ---- */

static const struct {
    struct refusal refusal;
    const char *sentence;
} needed[] = {
    {{{SYS_io_uring_enter, NONE}, EPERM, NULL, true}, "refuses io_uring_enter"},
    {{{SYS_io_uring_enter, NONE}, ENOSYS, NULL, true}, "refuses io_uring_enter"},
    {{{SYS_io_uring_enter, NONE}, EBADR, NULL, true}, "no memory for a completion"},
    {{{SYS_epoll_pwait2, SYS_epoll_pwait, SYS_epoll_wait}, EPERM, NULL, true}, "(epoll_wait: "},
    {{{SYS_epoll_pwait2, SYS_epoll_pwait, SYS_epoll_wait}, ENOSYS, "epoll", true}, "(epoll_wait: "},
    {{{SYS_ppoll, SYS_poll, NONE}, EPERM, "poll", true}, "(poll: "},
    {{{SYS_membarrier, NONE}, EPERM, NULL, true}, "membarrier"},
};

static void the_program_ends_with_a_sentence_if_a_call_that_it_stands_on_is_refused(void **state)
{
    char said[512];
    int err;

    (void)state;
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        bool ring = needed[i].refusal.calls[0] == SYS_io_uring_enter;
        if (ring && !uring_works())
            continue;
        pid_t pid = start(&needed[i].refusal, &err);
        int status = finish(pid, err, said, sizeof said);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT ||
            !strstr(said, needed[i].sentence))
            fail_msg("number %zu: status %#x: %s", i, (unsigned)status, said);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(everything_works_without_the_calls_that_are_optional),
        TEST(the_program_ends_with_a_sentence_if_a_call_that_it_stands_on_is_refused),
    };

    unsetenv("BLZ_BACKEND"); /* the library chooses */
    if (argc < 2)
        return RUN_TESTS(tests);
    run_refusal(argv[1]);
    return 0;
}
