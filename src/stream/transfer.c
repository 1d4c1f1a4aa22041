/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving bytes between two descriptors. A step is an operation on one of the two (IO_CALL): its
 * call makes system calls that do not wait, on both, and reads no more than it can get rid of but
 * for one helping. If it is stopped by the side that the operation is of, the operation waits; if
 * by the other, it ends, and the next one is of that side.
 *
 *   small    socket to socket: a helping of 16 KiB over the stack. What cannot be written is kept
 *            on the heap, and that is all the memory there ever is.
 *   bulk     the same, once two helpings in a row were full: pages are moved through a pipe
 *            (splice), which is filled only when it is empty, so that it is clear which side
 *            blocks. A pipe that is filled to the brim becomes larger.
 *   direct   a pipe at either end: no other pipe is needed. After -EAGAIN both are asked which
 *            of them blocks.
 *   file     from a file to a socket: blz__transfer_send_file, of pieces that look as if they were
 *            in memory; else it is blocked by the disk, and the caller reads.
 *
 * Sockets are put into non-blocking mode: splice has no flag that goes for them. They are ours, and
 * nothing else depends on it. Pipes may be shared with other processes, and stay as they are.
 */
#include "stream/transfer.h"

#include "base/alloc.h"
#include "system/handle.h"
#include "system/pipe.h"
#include "system/socket.h"
#include "system/transfer.h"

#include <blitz/error.h>
#include <blitz/fd.h>
#include <stdio.h>
#include <string.h>

enum {
    HELPING = 16 << 10,
    PIPE_SIZE = 64 << 10, /* what the system gives */
    PIPE_MAX = 1 << 20,   /* what it allows everyone */
    FILE_PIECE = 128 << 10,
    QUANTUM = 1 << 20, /* moved in one step at most, about */
};

static size_t up_to(const struct transfer *t, size_t len)
{
    return len < t->left ? len : (size_t)t->left;
}

static int blocked_by(struct transfer *t, uint8_t side)
{
    t->blocked = side;
    return -EAGAIN;
}

/* The source's answer: bytes, the end, or an error. 0 if there are some. */
static int64_t note_read(struct transfer *t, int64_t n)
{
    if (n < 0)
        return n == -EAGAIN ? blocked_by(t, BLOCKED_FROM) : n;
    if (n == 0)
        t->ended = true;
    t->left -= (uint64_t)n;
    return 0;
}

/* ---- small ---- */

static int keep(struct transfer *t, const char *data, size_t len)
{
    t->kept = blz__alloc(t->allocator, HELPING, 1);
    if (!t->kept)
        return -ENOMEM;
    memcpy(t->kept, data, len);
    t->kept_at = 0;
    t->kept_len = (uint32_t)len;
    return 0;
}

static void drop_kept(struct transfer *t)
{
    if (t->kept)
        blz__free(t->allocator, t->kept, HELPING, 1);
    t->kept = NULL;
}

static int move_kept(struct transfer *t, blz_sysfd to, int64_t *moved)
{
    int64_t n = blz__socket_send(to, t->kept + t->kept_at, t->kept_len);

    if (n < 0)
        return n == -EAGAIN ? blocked_by(t, BLOCKED_TO) : (int)n;
    *moved += n;
    t->kept_at += (uint32_t)n;
    t->kept_len -= (uint32_t)n;
    if (t->kept_len == 0)
        drop_kept(t);
    return 0;
}

static int move_bulk(struct transfer *t, blz_sysfd from, blz_sysfd to, int64_t *moved);

/* Another helping was full. Without a pipe things go on as they are. */
static void count_full(struct transfer *t)
{
    if (++t->full_reads < 2 || t->no_splice)
        return;
    if (blz__pipe_new(true, t->pipe) < 0) {
        t->pipe[0] = t->pipe[1] = BLZ_NO_SYSFD;
        t->full_reads = 0;
        return;
    }
    t->pipe_size = PIPE_SIZE;
    t->move = move_bulk;
}

static int move_small(struct transfer *t, blz_sysfd from, blz_sysfd to, int64_t *moved)
{
    char helping[HELPING];
    size_t len = up_to(t, sizeof helping);
    int64_t n = blz__socket_recv(from, helping, len), sent;
    int64_t rc = note_read(t, n);

    if (rc < 0 || n == 0)
        return (int)rc;
    sent = blz__socket_send(to, helping, (size_t)n);
    if (sent < 0 && sent != -EAGAIN)
        return (int)sent;
    if (sent < 0)
        sent = 0;
    *moved += sent;
    if (sent < n) {
        t->blocked = BLOCKED_TO;
        return keep(t, helping + sent, (size_t)(n - sent)) < 0 ? -ENOMEM : -EAGAIN;
    }
    if ((size_t)n == sizeof helping)
        count_full(t);
    else
        t->full_reads = 0;
    return (size_t)n < len ? blocked_by(t, BLOCKED_FROM) : 0;
}

/* ---- bulk ---- */

static void grow_pipe(struct transfer *t)
{
    int64_t size;

    if (t->pipe_size >= PIPE_MAX)
        return;
    size = blz__pipe_set_capacity(t->pipe[1], (size_t)t->pipe_size * 4);
    t->pipe_size = size > 0 ? (uint32_t)size : PIPE_MAX; /* there are no more: do not ask again */
}

static int move_out(struct transfer *t, blz_sysfd to, int64_t *moved)
{
    int64_t n = blz__transfer_splice(t->pipe[0], to, t->in_pipe);

    if (n < 0)
        return n == -EAGAIN ? blocked_by(t, BLOCKED_TO) : (int)n;
    *moved += n;
    t->in_pipe -= (uint32_t)n;
    return 0;
}

static int move_bulk(struct transfer *t, blz_sysfd from, blz_sysfd to, int64_t *moved)
{
    int64_t n = blz__transfer_splice(from, t->pipe[1], up_to(t, PIPE_MAX));
    int64_t rc;

    if (n == -ENOTSUP) {
        t->no_splice = true;
        t->move = move_small;
        return move_small(t, from, to, moved);
    }
    rc = note_read(t, n);
    if (rc < 0 || n == 0)
        return (int)rc;
    t->in_pipe = (uint32_t)n;
    if (t->in_pipe >= t->pipe_size)
        grow_pipe(t);
    return move_out(t, to, moved);
}

/* ---- direct ---- */

static int find_blocker(struct transfer *t, blz_sysfd from, blz_sysfd to)
{
    int events = blz__socket_events(from, BLZ_FD_READ);

    if (events <= 0)
        return events < 0 ? events : blocked_by(t, BLOCKED_FROM);
    events = blz__socket_events(to, BLZ_FD_WRITE);
    return events < 0 ? events : blocked_by(t, events == 0 ? BLOCKED_TO : BLOCKED_NOT);
}

static int move_direct(struct transfer *t, blz_sysfd from, blz_sysfd to, int64_t *moved)
{
    int64_t n = blz__transfer_splice(from, to, up_to(t, PIPE_MAX));

    if (n < 0)
        return n == -EAGAIN ? find_blocker(t, from, to) : (int)n;
    *moved += n;
    return (int)note_read(t, n);
}

/* ---- files ---- */

/* Whether the byte there can be had without waiting, or is behind the end. */
static bool is_in_memory(blz_sysfd fd, int64_t offset)
{
    blz_iovec one = {&(char){0}, 1};

    return blz__file_read_now(fd, &one, 1, offset) >= 0;
}

static int move_file(struct transfer *t, blz_sysfd from, blz_sysfd to, int64_t *moved)
{
    size_t len = up_to(t, FILE_PIECE);
    int64_t n;

    if (!is_in_memory(from, t->offset) || !is_in_memory(from, t->offset + (int64_t)len - 1))
        return blocked_by(t, BLOCKED_DISK);
    n = blz__transfer_send_file(to, from, FILE_AT_POSITION, len);
    if (n < 0)
        return n == -EAGAIN ? blocked_by(t, BLOCKED_TO) : (int)n;
    t->offset += n;
    *moved += n;
    return (int)note_read(t, n);
}

/* ---- a step ---- */

/* What has been read goes first. */
static int move_once(struct transfer *t, blz_sysfd from, blz_sysfd to, int64_t *moved)
{
    if (t->kept)
        return move_kept(t, to, moved);
    if (t->in_pipe > 0)
        return move_out(t, to, moved);
    if (t->left == 0)
        t->ended = true;
    return t->ended ? 0 : t->move(t, from, to, moved);
}

static bool has_ended(const struct transfer *t)
{
    return t->ended && !t->kept && t->in_pipe == 0;
}

/* Sends of sockets raise no signal; for the others it is kept away from all calls of a step. */
static int move_some(struct transfer *t, blz_sysfd from, blz_sysfd to, int64_t *moved)
{
    blz__transfer_mask mask;
    int rc;

    if (t->move == move_small)
        return move_once(t, from, to, moved);
    blz__transfer_quiet(&mask);
    do
        rc = move_once(t, from, to, moved);
    while (rc == 0 && *moved < QUANTUM && !has_ended(t));
    blz__transfer_quiet_end(&mask, rc == -EPIPE);
    return rc;
}

/*
 * Bytes, 0 at the end, -EAGAIN, or an error; the last two only if nothing was moved. Once bytes
 * have been moved, -ENOTSUP would promise the caller that it can begin in another way: it is an
 * error.
 */
static int64_t transfer_bytes(struct transfer *t, blz_sysfd from, blz_sysfd to)
{
    int64_t moved = 0, rc = t->error;

    t->blocked = BLOCKED_NOT;
    while (rc == 0 && moved < QUANTUM && !has_ended(t))
        rc = move_some(t, from, to, &moved);
    t->begun |= moved > 0;
    if (rc == -ENOTSUP && t->begun)
        rc = -EINVAL;
    if (moved == 0)
        return rc;
    t->error = rc == -EAGAIN ? 0 : rc;
    return moved;
}

static int64_t call_step(struct io *io, int fd)
{
    struct transfer *t = (struct transfer *)(uintptr_t)io->call.by;
    bool of_source = io->call.events == BLZ_FD_READ;
    int other = blz__fd_acquire(of_source ? &t->to : &t->from);
    int64_t rc;

    if (other < 0)
        return other;
    rc = transfer_bytes(t, of_source ? fd : other, of_source ? other : fd);
    blz__fd_release(of_source ? &t->to : &t->from);
    if (rc == -EAGAIN && t->blocked != (of_source ? BLOCKED_FROM : BLOCKED_TO))
        return TRANSFER_ELSEWHERE;
    return rc;
}

/* ---- beginning and end ---- */

blz_future *blz__transfer_step(struct transfer *t, blz_io *io)
{
    static const blz_future_ops ops = {.name = "transfer",
                                       .poll = blz__io_poll,
                                       .cancel = blz__io_cancel};
    bool of_source = t->blocked != BLOCKED_TO && t->move != move_file;
    struct io *step = blz__io_prepare(io, &ops, IO_CALL, of_source ? &t->from : &t->to);

    step->call.by = &t->call;
    step->call.events = of_source ? BLZ_FD_READ : BLZ_FD_WRITE;
    return &io->future;
}

static bool with_fd(const blz__fd_ref *ref, bool (*fn)(blz_sysfd fd))
{
    int fd = blz__fd_acquire(ref);
    bool yes = fd >= 0 && fn(fd);

    if (fd >= 0)
        blz__fd_release(ref);
    return yes;
}

static bool unblock(blz_sysfd fd)
{
    return blz__handle_set_nonblocking(fd, true) == 0;
}

static bool is_pipe(blz_sysfd fd)
{
    return blz__handle_kind(fd) == BLZ__HANDLE_PIPE;
}

static bool is_regular(blz_sysfd fd)
{
    return blz__handle_kind(fd) == BLZ__HANDLE_FILE;
}

static bool is_fit(const blz__fd_ref *ref, unsigned kind)
{
    if (kind == STREAM_SOCKET)
        return with_fd(ref, unblock);
    return kind == STREAM_PIPE && with_fd(ref, is_pipe);
}

static int64_t position_of(const blz__fd_ref *ref)
{
    int fd = blz__fd_acquire(ref);
    int64_t at = fd < 0 ? fd : blz__file_seek(fd, 0, SEEK_CUR);

    if (fd >= 0)
        blz__fd_release(ref);
    return at;
}

bool blz__transfer_init(struct transfer *t, const blz_stream *from, const blz_stream *to)
{
    unsigned source = stream_kind(from), target = stream_kind(to);

    t->call.call = call_step;
    t->from = stream_ref(from);
    t->to = stream_ref(to);
    t->pipe[0] = t->pipe[1] = BLZ_NO_SYSFD;
    if (source == STREAM_FILE && target == STREAM_SOCKET && with_fd(&t->from, is_regular)) {
        t->move = move_file;
        t->offset = position_of(&t->from);
        return t->offset >= 0 && is_fit(&t->to, target);
    }
    t->move = source == STREAM_SOCKET && target == STREAM_SOCKET ? move_small : move_direct;
    return is_fit(&t->from, source) && is_fit(&t->to, target);
}

void blz__transfer_end(struct transfer *t)
{
    drop_kept(t);
    if (t->pipe[0] != BLZ_NO_SYSFD) {
        blz__handle_close(t->pipe[0]);
        blz__handle_close(t->pipe[1]);
    }
}
