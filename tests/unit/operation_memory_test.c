/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of operations on descriptors, files, threads and processes: see operation_kinds.h. */
#include "operation_kinds.h"

#include <stdio.h>

/* ---- sockets and streams ---- */

struct sockets {
    blz_unix a, b, closed;
    blz_udp udp;
    blz_stream stream, none;
    char buf[16];
};

static void sockets_set_up(struct bed *b)
{
    blz_addr any = blz_addr_loopback(BLZ_ADDR_V4, 0);
    struct sockets *s = b->objects;

    check(blz_unix_pair(&s->a, &s->b, b->rt) == 0);
    check(blz_udp_bind_with(&s->udp, &any, &(blz_udp_options){.rt = b->rt}) == 0);
    s->stream = blz_unix_stream(&s->b);
}

static void sockets_tear_down(struct bed *b)
{
    struct sockets *s = b->objects;

    blz_unix_close(&s->a);
    blz_unix_close(&s->b);
    blz_udp_close(&s->udp);
}

static void send_four_bytes(struct bed *b)
{
    struct sockets *s = b->objects;
    blz_io io = {0};

    check(AWAIT(b->rt, blz_unix_write_all(&io, &s->a, "byte", 4)) == 4);
}

static blz_future *io_ends(struct bed *b, void *op)
{
    struct sockets *s = b->objects;

    send_four_bytes(b);
    return blz_unix_read(op, &s->b, s->buf, sizeof s->buf);
}

static blz_future *io_fails(struct bed *b, void *op)
{
    struct sockets *s = b->objects;

    return blz_unix_read(op, &s->closed, s->buf, sizeof s->buf);
}

static blz_future *io_waits(struct bed *b, void *op)
{
    struct sockets *s = b->objects;

    return blz_unix_read(op, &s->b, s->buf, sizeof s->buf);
}

static blz_future *msg_ends(struct bed *b, void *op)
{
    struct sockets *s = b->objects;

    send_four_bytes(b);
    return blz_unix_recv_fds(op, &s->b, s->buf, sizeof s->buf, NULL, 0);
}

static blz_future *msg_fails(struct bed *b, void *op)
{
    struct sockets *s = b->objects;

    return blz_unix_recv_fds(op, &s->closed, s->buf, sizeof s->buf, NULL, 0);
}

static blz_future *msg_waits(struct bed *b, void *op)
{
    struct sockets *s = b->objects;

    return blz_udp_recv(op, &s->udp, s->buf, sizeof s->buf);
}

static blz_future *stream_ends(struct bed *b, void *op)
{
    struct sockets *s = b->objects;

    send_four_bytes(b);
    return blz_stream_read_exact(op, &s->stream, s->buf, 4);
}

static blz_future *stream_fails(struct bed *b, void *op)
{
    struct sockets *s = b->objects;

    return blz_stream_read_exact(op, &s->none, s->buf, 4);
}

static blz_future *stream_waits(struct bed *b, void *op)
{
    struct sockets *s = b->objects;

    return blz_stream_read_exact(op, &s->stream, s->buf, 4);
}

/* The other layouts of a blz_io: a pipe in memory. */
struct pairs {
    blz_stream a, b, none;
    blz_writer writer, full;
    blz_codec codec;
    char buf[16], memory[2][16];
};

static void pairs_set_up(struct bed *b)
{
    struct pairs *p = b->objects;

    check(blz_stream_pair(&p->a, &p->b, 64, NULL) == 0);
    check(blz_codec_length(&p->codec, &(blz_length_options){.width = 1}) == 0);
    check(blz_writer_init(&p->writer, p->a, p->memory[0], 16) == 0);
    check(blz_writer_init(&p->full, p->b, p->memory[1], 1) == 0);
}

static void pairs_tear_down(struct bed *b)
{
    struct pairs *p = b->objects;

    blz_stream_close(&p->a);
    blz_stream_close(&p->b);
}

static blz_future *pair_fails(struct bed *b, void *op)
{
    struct pairs *p = b->objects;

    return blz_stream_read(op, &p->none, p->buf, sizeof p->buf);
}

static blz_future *pair_waits(struct bed *b, void *op)
{
    struct pairs *p = b->objects;

    return blz_stream_read(op, &p->b, p->buf, sizeof p->buf);
}

static blz_future *record_ends(struct bed *b, void *op)
{
    struct pairs *p = b->objects;

    p->writer.pos = p->writer.end = 0; /* nothing is ever flushed */
    return blz_writer_record(op, &p->writer, &p->codec, NULL, "x", 1);
}

static blz_future *record_fails(struct bed *b, void *op)
{
    static const char long_one[300];
    struct pairs *p = b->objects;

    return blz_writer_record(op, &p->writer, &p->codec, NULL, long_one, sizeof long_one);
}

static blz_future *copy_ends(struct bed *b, void *op)
{
    struct pairs *p = b->objects;
    blz_io io = {0};

    check(AWAIT(b->rt, blz_stream_write(&io, &p->a, "x", 1)) == 1);
    return blz_copy(op, p->b, p->b, &(blz_copy_options){.limit = 1});
}

static blz_future *copy_fails(struct bed *b, void *op)
{
    struct pairs *p = b->objects;

    return blz_copy(op, p->none, p->b, NULL);
}

static blz_future *copy_waits(struct bed *b, void *op)
{
    struct pairs *p = b->objects;

    return blz_copy(op, p->a, p->a, NULL);
}

static blz_future *copy_both_fails(struct bed *b, void *op)
{
    struct pairs *p = b->objects;

    return blz_copy_both(op, p->a, p->b, &(blz_copy_options){.idle_ns = -1});
}

static blz_future *copy_both_waits(struct bed *b, void *op)
{
    struct pairs *p = b->objects;

    return blz_copy_both(op, p->a, p->b, NULL);
}

/* ---- descriptors that are not the library's ---- */

struct pipes {
    int quiet[2], full[2];
    blz_fd handle;
    blz_fdset set;
};

static void pipes_set_up(struct bed *b)
{
    struct pipes *p = b->objects;

    check(pipe2(p->quiet, O_NONBLOCK) == 0 && pipe2(p->full, O_NONBLOCK) == 0);
    put(p->full[1], "x", 1);
    check(blz_fd_attach_to(&p->handle, p->quiet[0], b->rt) == 0);
}

static void pipes_tear_down(struct bed *b)
{
    struct pipes *p = b->objects;

    check(blz_fd_detach(&p->handle) == 0);
    for (int i = 0; i < 2; i++) {
        close(p->quiet[i]);
        close(p->full[i]);
    }
}

static int64_t gives(void *arg)
{
    return (int64_t)(intptr_t)arg;
}

static blz_future *fd_ends(struct bed *b, void *op)
{
    struct pipes *p = b->objects;

    return blz_fd_io(op, &p->handle, BLZ_FD_READ, gives, (void *)7);
}

static blz_future *fd_fails(struct bed *b, void *op)
{
    struct pipes *p = b->objects;

    return blz_fd_io(op, &p->handle, BLZ_FD_READ, gives, (void *)(intptr_t)-EIO);
}

static blz_future *fd_waits(struct bed *b, void *op)
{
    struct pipes *p = b->objects;

    return blz_fd_io(op, &p->handle, BLZ_FD_READ, gives, (void *)(intptr_t)-EAGAIN);
}

static blz_future *fdset_ends(struct bed *b, void *op)
{
    struct pipes *p = b->objects;

    return blz_fdset_ready(op, &p->set, 0);
}

static blz_future *fdset_waits(struct bed *b, void *op)
{
    struct pipes *p = b->objects;

    return blz_fdset_ready(op, &p->set, BLZ_NEVER);
}

static void fdset_tear_down(struct bed *b)
{
    blz_fdset_ready_op op = {0};

    (void)AWAIT(b->rt, blz_fdset_close(&op, &((struct pipes *)b->objects)->set));
    pipes_tear_down(b);
}

/* ---- listeners and connections ---- */

struct listeners {
    blz_tcp_listener tcp, closed;
    blz_unix_listener local;
    blz_tcp conn;
    blz_unix local_conn;
    blz_addrs addrs;
    char text[BLZ_ADDR_TEXT], local_text[BLZ_ADDR_TEXT];
    sem_t door;
};

static void listeners_set_up(struct bed *b)
{
    struct listeners *l = b->objects;
    blz_addr addr = blz_addr_loopback(BLZ_ADDR_V4, 0), local;

    check(blz_tcp_listen_with(&l->tcp, &addr, &(blz_tcp_listen_options){.rt = b->rt}) == 0);
    check(blz_tcp_listener_addr(&l->tcp, &addr) == 0);
    check(blz_addr_format(&addr, l->text, sizeof l->text) > 0);
    (void)snprintf(l->local_text, sizeof l->local_text, "unix:@blitz-operation-%d-%p", getpid(),
                   b->objects);
    check(blz_addr_parse(&local, l->local_text) == 0);
    check(blz_unix_listen_with(&l->local, &local, &(blz_unix_listen_options){.rt = b->rt}) == 0);
    sem_init(&l->door, 0, 0);
}

static void listeners_tear_down(struct bed *b)
{
    struct listeners *l = b->objects;

    blz_tcp_close(&l->conn);
    blz_unix_close(&l->local_conn);
    blz_tcp_listener_close(&l->tcp);
    blz_unix_listener_close(&l->local);
    blz_addrs_free(&l->addrs);
    for (int i = 0; i < 16; i++)
        sem_post(&l->door);
}

static int take_no_conn(blz_tcp conn, void *arg)
{
    (void)arg;
    (void)conn;
    return -1;
}

static blz_future *serve_fails(struct bed *b, void *op)
{
    return blz_tcp_serve(op, &((struct listeners *)b->objects)->closed, take_no_conn, NULL);
}

static blz_future *serve_waits(struct bed *b, void *op)
{
    return blz_tcp_serve(op, &((struct listeners *)b->objects)->tcp, take_no_conn, NULL);
}

static blz_future *tcp_connect_ends(struct bed *b, void *op)
{
    struct listeners *l = b->objects;

    blz_tcp_close(&l->conn);
    return blz_tcp_connect(op, &l->conn, l->text, BLZ_NEVER);
}

static blz_future *tcp_connect_fails(struct bed *b, void *op)
{
    struct listeners *l = b->objects;

    blz_tcp_close(&l->conn);
    return blz_tcp_connect(op, &l->conn, "no address", BLZ_NEVER);
}

static int answer_at_door(blz_addrs *addrs, const char *host, const char *service,
                          const blz_lookup_hints *hints, void *arg)
{
    (void)host;
    (void)service;
    (void)hints;
    (void)addrs;
    sem_wait(arg);
    return -EIO;
}

static blz_future *tcp_connect_waits(struct bed *b, void *op)
{
    struct listeners *l = b->objects;

    blz_tcp_close(&l->conn);
    return blz_tcp_connect_name(
        op, &l->conn, "name.invalid:1",
        &(blz_tcp_connect_options){.hints.resolver = {.resolve = answer_at_door, .arg = &l->door}});
}

static blz_future *unix_connect_ends(struct bed *b, void *op)
{
    struct listeners *l = b->objects;

    blz_unix_close(&l->local_conn);
    return blz_unix_connect(op, &l->local_conn, l->local_text);
}

static blz_future *unix_connect_fails(struct bed *b, void *op)
{
    struct listeners *l = b->objects;

    blz_unix_close(&l->local_conn);
    return blz_unix_connect(op, &l->local_conn, "no address");
}

static blz_future *dns_ends(struct bed *b, void *op)
{
    struct listeners *l = b->objects;

    blz_addrs_free(&l->addrs);
    return blz_lookup(op, &l->addrs, "127.0.0.1", "80", NULL);
}

static blz_future *dns_fails(struct bed *b, void *op)
{
    struct listeners *l = b->objects;

    blz_addrs_free(&l->addrs);
    return blz_lookup(op, &l->addrs, "", "80", NULL);
}

static blz_future *dns_waits(struct bed *b, void *op)
{
    struct listeners *l = b->objects;

    blz_addrs_free(&l->addrs);
    return blz_lookup(op, &l->addrs, "name.invalid", "1",
                      &(blz_lookup_hints){
                          .resolver = {.resolve = answer_at_door, .arg = &l->door}});
}

/* ---- files ---- */

struct files {
    blz_file file, other, closed;
    blz_bytes bytes;
    int terminal;
};

static void files_set_up(struct bed *b)
{
    blz_open_options options = {.read = true, .write = true, .create = true};
    struct files *f = b->objects;
    char dir[32], path[48];
    blz_io io = {0};

    (void)snprintf(dir, sizeof dir, "/tmp/blitz-ops-XXXXXX");
    check(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/file", dir);
    check(AWAIT(b->rt, blz_file_open(&io, &f->file, path, &options)) == 0);
    check(AWAIT(b->rt, blz_file_open(&io, &f->other, path, &options)) == 0);
    check(AWAIT(b->rt, blz_file_lock(&(blz_file_lock_op){0}, &f->file)) == 0);
    check(unlink(path) == 0 && rmdir(dir) == 0); /* a process that dies leaves nothing behind */
    f->terminal = -1;
}

static void close_terminal(struct bed *b)
{
    struct files *f = b->objects;

    if (f->terminal >= 0)
        close(f->terminal);
    f->terminal = -1;
}

static void files_tear_down(struct bed *b)
{
    struct files *f = b->objects;

    blz_file_close(&f->file);
    blz_file_close(&f->other);
    close_terminal(b);
    blz_bytes_free(&f->bytes);
}

static blz_future *fs_ends(struct bed *b, void *op)
{
    (void)b;
    return blz_fs_exists(op, "/");
}

static blz_future *fs_fails(struct bed *b, void *op)
{
    (void)b;
    return blz_fs_remove(op, "/nonexistent");
}

/* A terminal at which nothing has been typed. */
static blz_future *fs_waits(struct bed *b, void *op)
{
    struct files *f = b->objects;

    if (f->terminal < 0)
        f->terminal = posix_openpt(O_RDWR | O_NOCTTY);
    check(f->terminal >= 0 && grantpt(f->terminal) == 0 && unlockpt(f->terminal) == 0);
    blz_bytes_free(&f->bytes);
    return blz_fs_read(op, ptsname(f->terminal), &f->bytes, 64);
}

static blz_future *lock_ends(struct bed *b, void *op)
{
    return blz_file_lock(op, &((struct files *)b->objects)->file);
}

static blz_future *lock_fails(struct bed *b, void *op)
{
    return blz_file_lock(op, &((struct files *)b->objects)->closed);
}

static blz_future *lock_waits(struct bed *b, void *op)
{
    return blz_file_lock(op, &((struct files *)b->objects)->other);
}

/* ---- threads ---- */

struct held_calls {
    sem_t door;
    blz_pool *pool;
};

static void calls_set_up(struct bed *b)
{
    struct held_calls *c = b->objects;

    sem_init(&c->door, 0, 0);
    check(blz_pool_new(&c->pool, &(blz_pool_options){.threads = 2}) == 0);
}

static void calls_tear_down(struct bed *b)
{
    struct held_calls *c = b->objects;

    for (int i = 0; i < 16; i++)
        sem_post(&c->door);
    check(blz_pool_free(c->pool) == 0);
}

static int64_t wait_at_door(void *arg)
{
    return sem_wait(&((struct held_calls *)arg)->door);
}

/* A call that has been withdrawn leaves its permit behind. */
static void *shut_door(struct bed *b)
{
    while (sem_trywait(&((struct held_calls *)b->objects)->door) == 0)
        continue;
    return b->objects;
}

static void calls_release(struct bed *b)
{
    sem_post(&((struct held_calls *)b->objects)->door);
}

static blz_future *blocking_ends(struct bed *b, void *op)
{
    (void)b;
    return blz_blocking(op, gives, (void *)7);
}

static blz_future *blocking_fails(struct bed *b, void *op)
{
    (void)b;
    return blz_blocking(op, gives, (void *)(intptr_t)-EIO);
}

static blz_future *blocking_waits(struct bed *b, void *op)
{
    return blz_blocking(op, wait_at_door, shut_door(b));
}

static void leave_alone(void *arg)
{
    (void)arg;
}

static blz_future *owned_ends(struct bed *b, void *op)
{
    (void)b;
    return blz_blocking_owned(op, gives, (void *)7, leave_alone);
}

static blz_future *owned_fails(struct bed *b, void *op)
{
    (void)b;
    return blz_blocking_owned(op, gives, (void *)(intptr_t)-EIO, leave_alone);
}

static blz_future *owned_waits(struct bed *b, void *op)
{
    return blz_blocking_owned(op, wait_at_door, shut_door(b), leave_alone);
}

static int64_t compute(blz_par *par, blz_par_cancel *cancel, void *arg)
{
    (void)par;
    (void)cancel;
    return gives(arg);
}

static int64_t compute_at_door(blz_par *par, blz_par_cancel *cancel, void *arg)
{
    (void)par;
    (void)cancel;
    return wait_at_door(arg);
}

static blz_future *par_run_ends(struct bed *b, void *op)
{
    return blz_par_run(op, ((struct held_calls *)b->objects)->pool, compute, (void *)7);
}

static blz_future *par_run_fails(struct bed *b, void *op)
{
    return blz_par_run(op, ((struct held_calls *)b->objects)->pool, compute,
                       (void *)(intptr_t)-EIO);
}

static blz_future *par_run_waits(struct bed *b, void *op)
{
    return blz_par_run(op, ((struct held_calls *)b->objects)->pool, compute_at_door, shut_door(b));
}

/* ---- signals and shutdowns ---- */

struct signals {
    blz_signal open, closed;
    blz_stop stop, closed_stop;
    blz_shutdown *shutdown, *over;
    blz_guard guard;
};

static void signals_set_up(struct bed *b)
{
    blz_shutdown_options options = {.no_signals = true};
    struct signals *s = b->objects;

    check(blz_signal_open(&s->open, SIGUSR1) == 0);
    check(blz_stop_open(&s->stop) == 0);
    check(blz_shutdown_new(&s->shutdown, &options) == 0);
    check(blz_shutdown_new(&s->over, &options) == 0);
    blz_shutdown_begin(s->over);
}

static void signals_tear_down(struct bed *b)
{
    struct signals *s = b->objects;

    blz_signal_close(&s->open);
    blz_stop_close(&s->stop);
    blz_guard_leave(&s->guard);
    blz_shutdown_free(s->shutdown);
    blz_shutdown_free(s->over);
}

static blz_future *signal_ends(struct bed *b, void *op)
{
    check(raise(SIGUSR1) == 0);
    return blz_signal_recv(op, &((struct signals *)b->objects)->open, NULL);
}

static blz_future *signal_fails(struct bed *b, void *op)
{
    return blz_signal_recv(op, &((struct signals *)b->objects)->closed, NULL);
}

static blz_future *signal_waits(struct bed *b, void *op)
{
    return blz_signal_recv(op, &((struct signals *)b->objects)->open, NULL);
}

static blz_future *stop_fails(struct bed *b, void *op)
{
    return blz_stop_await(op, &((struct signals *)b->objects)->closed_stop);
}

static blz_future *stop_waits(struct bed *b, void *op)
{
    return blz_stop_await(op, &((struct signals *)b->objects)->stop);
}

static blz_future *shutdown_ends(struct bed *b, void *op)
{
    return blz_shutdown_run(op, ((struct signals *)b->objects)->over);
}

static blz_future *shutdown_waits(struct bed *b, void *op)
{
    return blz_shutdown_run(op, ((struct signals *)b->objects)->shutdown);
}

static blz_future *guard(struct bed *b, void *op, blz_future *inner)
{
    struct signals *s = b->objects;

    blz_guard_leave(&((blz_guard_op *)op)->guard); /* of one that was made, and never awaited */
    check(blz_guard_work(&s->guard, s->shutdown) == 0);
    return blz_guard_run(op, &s->guard, inner);
}

static blz_future *guard_ends(struct bed *b, void *op)
{
    return guard(b, op, blz_ready(&b->inner, 7));
}

static blz_future *guard_fails(struct bed *b, void *op)
{
    return guard(b, op, blz_ready(&b->inner, -EIO));
}

static blz_future *guard_waits(struct bed *b, void *op)
{
    return guard(b, op, blz_pending(&b->inner));
}

/* ---- processes ---- */

struct programs {
    blz_command quick, slow, none;
    int input[2]; /* of `slow`, which also ends if this process does */
    blz_child child, no_child;
    blz_output output;
};

static void programs_set_up(struct bed *b)
{
    struct programs *p = b->objects;

    check(pipe2(p->input, O_CLOEXEC) == 0);
    blz_command_init(&p->quick, "true");
    blz_command_init(&p->none, "/nonexistent");
    blz_command_init(&p->slow, "cat");
    blz_command_fd(&p->slow, 0, p->input[0]);
    blz_command_kill_on_drop(&p->slow);
}

static void programs_tear_down(struct bed *b)
{
    struct programs *p = b->objects;

    blz_child_drop(&p->child);
    blz_output_free(&p->output);
    blz_command_free(&p->quick);
    blz_command_free(&p->slow);
    blz_command_free(&p->none);
    close(p->input[0]);
    close(p->input[1]);
}

static blz_child *start_child(struct bed *b, blz_command *cmd)
{
    struct programs *p = b->objects;

    blz_child_drop(&p->child);
    check(blz_command_spawn(cmd, &p->child, b->rt) == 0);
    return &p->child;
}

static blz_future *child_await_ends(struct bed *b, void *op)
{
    return blz_child_await(op, start_child(b, &((struct programs *)b->objects)->quick));
}

static blz_future *child_await_fails(struct bed *b, void *op)
{
    return blz_child_await(op, &((struct programs *)b->objects)->no_child);
}

static blz_future *child_await_waits(struct bed *b, void *op)
{
    return blz_child_await(op, start_child(b, &((struct programs *)b->objects)->slow));
}

static blz_future *terminate_ends(struct bed *b, void *op)
{
    return blz_child_terminate(op, start_child(b, &((struct programs *)b->objects)->slow), 0);
}

static blz_future *terminate_fails(struct bed *b, void *op)
{
    return blz_child_terminate(op, &((struct programs *)b->objects)->no_child, 0);
}

/* What is ignored here is ignored there. */
static blz_future *terminate_waits(struct bed *b, void *op)
{
    blz_child *child;

    signal(SIGTERM, SIG_IGN);
    child = start_child(b, &((struct programs *)b->objects)->slow);
    signal(SIGTERM, SIG_DFL);
    return blz_child_terminate(op, child, BLZ_NEVER);
}

static blz_future *output(struct bed *b, void *op, blz_command *cmd)
{
    struct programs *p = b->objects;

    blz_output_free(&p->output);
    return blz_command_output(op, cmd, &p->output);
}

static blz_future *output_ends(struct bed *b, void *op)
{
    return output(b, op, &((struct programs *)b->objects)->quick);
}

static blz_future *output_fails(struct bed *b, void *op)
{
    return output(b, op, &((struct programs *)b->objects)->none);
}

static blz_future *output_waits(struct bed *b, void *op)
{
    return output(b, op, &((struct programs *)b->objects)->slow);
}

static blz_future *run_ends(struct bed *b, void *op)
{
    return blz_command_run(op, &((struct programs *)b->objects)->quick);
}

static blz_future *run_fails(struct bed *b, void *op)
{
    return blz_command_run(op, &((struct programs *)b->objects)->none);
}

static blz_future *run_waits(struct bed *b, void *op)
{
    return blz_command_run(op, &((struct programs *)b->objects)->slow);
}

static blz_future *process_watch_fails(struct bed *b, void *op)
{
    (void)b;
    return blz_process_watch(op, -7);
}

static blz_future *process_watch_waits(struct bed *b, void *op)
{
    (void)b;
    return blz_process_watch(op, getppid());
}

#define SOCKETS \
    .room = sizeof(struct sockets), .set_up = sockets_set_up, .tear_down = sockets_tear_down
#define PAIRS .room = sizeof(struct pairs), .set_up = pairs_set_up, .tear_down = pairs_tear_down
#define LISTENERS \
    .room = sizeof(struct listeners), .set_up = listeners_set_up, .tear_down = listeners_tear_down
#define FILES                                                                           \
    .room = sizeof(struct files), .set_up = files_set_up, .tear_down = files_tear_down, \
    .uses_threads = true
#define CALLS                                                                                \
    .room = sizeof(struct held_calls), .set_up = calls_set_up, .tear_down = calls_tear_down, \
    .release = calls_release, .uses_threads = true
#define SIGNALS                                                                               \
    .room = sizeof(struct signals), .set_up = signals_set_up, .tear_down = signals_tear_down, \
    .uses_threads = true
#define PROGRAMS                                                                                 \
    .room = sizeof(struct programs), .set_up = programs_set_up, .tear_down = programs_tear_down, \
    .uses_threads = true

static const struct kind kinds[] = {
    OPERATION(blz_io, SOCKETS, .ends = io_ends, .fails = io_fails, .waits = io_waits),
    OPERATION(blz_io, PAIRS, .fails = pair_fails, .waits = pair_waits),
    OPERATION(blz_msg, SOCKETS, .ends = msg_ends, .fails = msg_fails, .waits = msg_waits),
    OPERATION(blz_stream_op, SOCKETS, .ends = stream_ends, .fails = stream_fails,
              .waits = stream_waits),
    OPERATION(blz_record_op, PAIRS, .ends = record_ends, .fails = record_fails),
    OPERATION(blz_copy_op, PAIRS, .ends = copy_ends, .fails = copy_fails, .waits = copy_waits),
    OPERATION(blz_copy_both_op, PAIRS, .fails = copy_both_fails, .waits = copy_both_waits),
    OPERATION(blz_fd_op, .room = sizeof(struct pipes), .set_up = pipes_set_up,
              .tear_down = pipes_tear_down, .ends = fd_ends, .fails = fd_fails, .waits = fd_waits),
    OPERATION(blz_fdset_ready_op, .room = sizeof(struct pipes), .set_up = pipes_set_up,
              .tear_down = fdset_tear_down, .ends = fdset_ends, .waits = fdset_waits),
    OPERATION(blz_serve_op, LISTENERS, .fails = serve_fails, .waits = serve_waits),
    OPERATION(blz_tcp_connect_op, LISTENERS, .ends = tcp_connect_ends, .fails = tcp_connect_fails,
              .waits = tcp_connect_waits, .uses_threads = true),
    OPERATION(blz_unix_connect_op, LISTENERS, .ends = unix_connect_ends,
              .fails = unix_connect_fails),
    OPERATION(blz_dns, LISTENERS, .ends = dns_ends, .fails = dns_fails, .waits = dns_waits,
              .uses_threads = true),
    OPERATION(blz_fs_op, FILES, .ends = fs_ends, .fails = fs_fails, .waits = fs_waits,
              .release = close_terminal),
    OPERATION(blz_file_lock_op, FILES, .ends = lock_ends, .fails = lock_fails, .waits = lock_waits),
    OPERATION(blz_blocking_op, CALLS, .ends = blocking_ends, .fails = blocking_fails,
              .waits = blocking_waits),
    OPERATION(blz_blocking_owned_op, CALLS, .ends = owned_ends, .fails = owned_fails,
              .waits = owned_waits),
    OPERATION(blz_par_run_op, CALLS, .ends = par_run_ends, .fails = par_run_fails,
              .waits = par_run_waits),
    OPERATION(blz_signal_op, SIGNALS, .ends = signal_ends, .fails = signal_fails,
              .waits = signal_waits),
    OPERATION(blz_stop_op, SIGNALS, .fails = stop_fails, .waits = stop_waits),
    OPERATION(blz_shutdown_op, SIGNALS, .ends = shutdown_ends, .waits = shutdown_waits),
    OPERATION(blz_guard_op, SIGNALS, .ends = guard_ends, .fails = guard_fails,
              .waits = guard_waits),
    OPERATION(blz_child_await_op, PROGRAMS, .ends = child_await_ends, .fails = child_await_fails,
              .waits = child_await_waits),
    OPERATION(blz_child_terminate_op, PROGRAMS, .ends = terminate_ends, .fails = terminate_fails,
              .waits = terminate_waits),
    OPERATION(blz_output_op, PROGRAMS, .ends = output_ends, .fails = output_fails,
              .waits = output_waits),
    OPERATION(blz_command_run_op, PROGRAMS, .ends = run_ends, .fails = run_fails,
              .waits = run_waits),
    OPERATION(blz_process_watch_op, PROGRAMS, .fails = process_watch_fails,
              .waits = process_watch_waits),
};

ON_EACH_BACKEND(each_operation_follows_the_rule)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        try_kind(&kinds[i], backend);
}

/* ---- a call that was started, and is not awaited ---- */

static void start_twice(void)
{
    blz_rt *rt = turning_rt("poll");
    blz_blocking_op op = {0};
    struct held_calls calls;

    sem_init(&calls.door, 0, 0);
    check(blz_blocking_start(&op, wait_at_door, &calls, rt) == 0);
    check(blz_blocking_start(&op, wait_at_door, &calls, rt) == 0);
}

static void a_call_that_was_started_is_in_flight(void **state)
{
    (void)state;
    if (THREADS_AFTER_FORK)
        assert_dies(start_twice, "still in flight");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_operation_follows_the_rule),
        TEST(a_call_that_was_started_is_in_flight),
    };
    return RUN_TESTS(tests);
}
