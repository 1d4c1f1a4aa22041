/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Negative results that are used as lengths. Every function that reads or writes refuses them, and
 * nothing has been read or written: one table has them all.
 */
#include "net_probe.h"

#include "io_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* One of each, and what is needed to use it. */
struct things {
    blz_rt *rt;
    blz_tcp tcp;
    blz_unix local, local_peer;
    blz_udp udp;
    blz_unix_dgram dgram, dgram_peer;
    blz_pipe in, out;
    blz_file file;
    blz_stream pair, pair_peer;
    blz_reader reader;
    blz_writer writer;
    blz_memory memory;
    blz_stream memory_stream;
    blz_codec codec;
    int tcp_peer;
    char path[64];
    blz_addr addr;
    /* operations */
    blz_io io;
    blz_msg msg;
    blz_stream_op stream_op;
    blz_record_op frame_op;
    blz_fs_op fs_op;
    blz_datagram datagrams[2];
    blz_iovec iov[2];
    int fds[2];
    char buf[16];
};

/* What is refused: one length, and pieces that are fine by themselves and too long together. */
static const size_t lengths[] = {(size_t)-104, (size_t)-1, (size_t)INT64_MAX + 1};

/* The iov of all that have one: a good piece and a bad one. */
static const blz_iovec *bad_iov(struct things *t, size_t len)
{
    t->iov[0] = (blz_iovec){t->buf, 4};
    t->iov[1] = (blz_iovec){t->buf, len};
    return t->iov;
}

static blz_datagram *bad_datagrams(struct things *t, size_t len)
{
    t->datagrams[0] = (blz_datagram){.data = t->buf, .len = 4, .addr = t->addr};
    t->datagrams[1] = (blz_datagram){.data = t->buf, .len = len, .addr = t->addr};
    return t->datagrams;
}

static blz_future *made(blz_io *io, int64_t result)
{
    return blz_ready(&io->future, result);
}

#define CASE(name, ...)                                   \
    static blz_future *name(struct things *t, size_t len) \
    {                                                     \
        return __VA_ARGS__;                               \
    }                                                     \
    _Static_assert(1, "")

CASE(tcp_read, blz_tcp_read(&t->io, &t->tcp, t->buf, len));
CASE(tcp_read_exact, blz_tcp_read_exact(&t->io, &t->tcp, t->buf, len));
CASE(tcp_peek, blz_tcp_peek(&t->io, &t->tcp, t->buf, len));
CASE(tcp_readv, blz_tcp_readv(&t->io, &t->tcp, bad_iov(t, len), 2));
CASE(tcp_readv_count, blz_tcp_readv(&t->io, &t->tcp, t->iov, len));
CASE(tcp_write, blz_tcp_write(&t->io, &t->tcp, t->buf, len));
CASE(tcp_write_all, blz_tcp_write_all(&t->io, &t->tcp, t->buf, len));
CASE(tcp_writev, blz_tcp_writev(&t->io, &t->tcp, bad_iov(t, len), 2));
CASE(tcp_writev_count, blz_tcp_writev(&t->io, &t->tcp, t->iov, len));
/* SIZE_MAX means all of the file. */
CASE(tcp_sendfile, blz_tcp_sendfile(&t->io, &t->tcp, STDIN_FILENO, 0, len - (len == SIZE_MAX)));
CASE(tcp_try_read, made(&t->io, blz_tcp_try_read(&t->tcp, t->buf, len)));
CASE(tcp_try_write, made(&t->io, blz_tcp_try_write(&t->tcp, t->buf, len)));
CASE(unix_read, blz_unix_read(&t->io, &t->local, t->buf, len));
CASE(unix_read_exact, blz_unix_read_exact(&t->io, &t->local, t->buf, len));
CASE(unix_peek, blz_unix_peek(&t->io, &t->local, t->buf, len));
CASE(unix_readv, blz_unix_readv(&t->io, &t->local, bad_iov(t, len), 2));
CASE(unix_write, blz_unix_write(&t->io, &t->local, t->buf, len));
CASE(unix_write_all, blz_unix_write_all(&t->io, &t->local, t->buf, len));
CASE(unix_writev, blz_unix_writev(&t->io, &t->local, bad_iov(t, len), 2));
CASE(unix_try_read, made(&t->io, blz_unix_try_read(&t->local, t->buf, len)));
CASE(unix_try_write, made(&t->io, blz_unix_try_write(&t->local, t->buf, len)));
CASE(unix_send_fds, blz_unix_send_fds(&t->msg, &t->local, t->buf, len, t->fds, 1));
CASE(unix_send_fds_count, blz_unix_send_fds(&t->msg, &t->local, t->buf, 4, t->fds, len));
CASE(unix_recv_fds, blz_unix_recv_fds(&t->msg, &t->local, t->buf, len, t->fds, 2));
CASE(unix_recv_fds_count, blz_unix_recv_fds(&t->msg, &t->local, t->buf, 4, t->fds, len));
CASE(pipe_read, blz_pipe_read(&t->io, &t->in, t->buf, len));
CASE(pipe_read_exact, blz_pipe_read_exact(&t->io, &t->in, t->buf, len));
CASE(pipe_readv, blz_pipe_readv(&t->io, &t->in, bad_iov(t, len), 2));
CASE(pipe_write, blz_pipe_write(&t->io, &t->out, t->buf, len));
CASE(pipe_write_all, blz_pipe_write_all(&t->io, &t->out, t->buf, len));
CASE(pipe_writev, blz_pipe_writev(&t->io, &t->out, bad_iov(t, len), 2));
CASE(udp_recv, blz_udp_recv(&t->msg, &t->udp, t->buf, len));
CASE(udp_recv_from, blz_udp_recv_from(&t->msg, &t->udp, t->buf, len, &t->addr));
CASE(udp_peek, blz_udp_peek(&t->msg, &t->udp, t->buf, len, NULL));
CASE(udp_send, blz_udp_send(&t->msg, &t->udp, t->buf, len));
CASE(udp_send_to, blz_udp_send_to(&t->msg, &t->udp, t->buf, len, &t->addr));
CASE(udp_send_segments, blz_udp_send_segments(&t->msg, &t->udp, t->buf, len, 4, &t->addr));
CASE(udp_try_recv, made(&t->io, blz_udp_try_recv(&t->udp, t->buf, len)));
CASE(udp_try_send, made(&t->io, blz_udp_try_send(&t->udp, t->buf, len)));
CASE(udp_recv_batch, blz_udp_recv_batch(&t->msg, &t->udp, bad_datagrams(t, len), 2));
CASE(udp_recv_batch_count, blz_udp_recv_batch(&t->msg, &t->udp, bad_datagrams(t, 4), len));
CASE(udp_send_batch, blz_udp_send_batch(&t->msg, &t->udp, bad_datagrams(t, len), 2));
CASE(udp_send_batch_count, blz_udp_send_batch(&t->msg, &t->udp, bad_datagrams(t, 4), len));
CASE(dgram_recv, blz_unix_dgram_recv(&t->msg, &t->dgram, t->buf, len, NULL));
CASE(dgram_recv_fds, blz_unix_dgram_recv_fds(&t->msg, &t->dgram, t->buf, len, t->fds, 2));
CASE(dgram_send, blz_unix_dgram_send(&t->msg, &t->dgram, t->buf, len));
CASE(dgram_send_fds, blz_unix_dgram_send_fds(&t->msg, &t->dgram, t->buf, len, t->fds, 1));
CASE(dgram_send_to, blz_unix_dgram_send_to(&t->msg, &t->dgram, t->buf, len, &t->addr));
CASE(file_read, blz_file_read(&t->io, &t->file, t->buf, len));
CASE(file_read_exact, blz_file_read_exact(&t->io, &t->file, t->buf, len));
CASE(file_readv, blz_file_readv(&t->io, &t->file, bad_iov(t, len), 2));
CASE(file_read_at, blz_file_read_at(&t->io, &t->file, t->buf, len, 0));
CASE(file_read_exact_at, blz_file_read_exact_at(&t->io, &t->file, t->buf, len, 0));
CASE(file_readv_at, blz_file_readv_at(&t->io, &t->file, bad_iov(t, len), 2, 0));
CASE(file_write, blz_file_write(&t->io, &t->file, t->buf, len));
CASE(file_write_all, blz_file_write_all(&t->io, &t->file, t->buf, len));
CASE(file_writev, blz_file_writev(&t->io, &t->file, bad_iov(t, len), 2));
CASE(file_write_at, blz_file_write_at(&t->io, &t->file, t->buf, len, 0));
CASE(file_write_all_at, blz_file_write_all_at(&t->io, &t->file, t->buf, len, 0));
CASE(file_writev_at, blz_file_writev_at(&t->io, &t->file, bad_iov(t, len), 2, 0));
CASE(fs_write, blz_fs_write(&t->fs_op, t->path, t->buf, len));
CASE(fs_append, blz_fs_append(&t->fs_op, t->path, t->buf, len));
CASE(fs_write_atomic, blz_fs_write_atomic(&t->fs_op, t->path, t->buf, len));
CASE(stream_read, blz_stream_read(&t->io, &t->pair, t->buf, len));
CASE(stream_write, blz_stream_write(&t->io, &t->pair, t->buf, len));
CASE(stream_writev, blz_stream_writev(&t->io, &t->pair, bad_iov(t, len), 2));
CASE(stream_read_exact, blz_stream_read_exact(&t->stream_op, &t->pair, t->buf, len));
CASE(stream_write_all, blz_stream_write_all(&t->stream_op, &t->pair, t->buf, len));
CASE(stream_writev_all, blz_stream_writev_all(&t->stream_op, &t->pair, bad_iov(t, len), 2));
CASE(stream_writev_count, blz_stream_writev_all(&t->stream_op, &t->pair, t->iov, len));
CASE(reader_read, blz_reader_read(&t->reader, t->buf, len));
CASE(reader_read_exact, blz_reader_read_exact(&t->reader, t->buf, len));
CASE(reader_peek, blz_reader_peek(&t->reader, len));
CASE(writer_write, blz_writer_write_all(&t->writer, t->buf, len));
CASE(writer_writev, blz_writer_writev_all(&t->writer, bad_iov(t, len), 2));
CASE(writer_writev_count, blz_writer_writev_all(&t->writer, t->iov, len));
CASE(writer_frame, blz_writer_record(&t->frame_op, &t->writer, &t->codec, NULL, t->buf, len));

static blz_future *memory_stream(struct things *t, size_t len)
{
    t->memory_stream = blz_memory_stream(&t->memory, t->buf, len);
    return blz_stream_read(&t->io, &t->memory_stream, t->buf, 4);
}

#define ROW(name)   \
    {               \
#name, name \
    }
static const struct {
    const char *name;
    blz_future *(*make)(struct things *t, size_t len);
} table[] = {
    ROW(tcp_read),
    ROW(tcp_read_exact),
    ROW(tcp_peek),
    ROW(tcp_readv),
    ROW(tcp_readv_count),
    ROW(tcp_write),
    ROW(tcp_write_all),
    ROW(tcp_writev),
    ROW(tcp_writev_count),
    ROW(tcp_sendfile),
    ROW(tcp_try_read),
    ROW(tcp_try_write),
    ROW(unix_read),
    ROW(unix_read_exact),
    ROW(unix_peek),
    ROW(unix_readv),
    ROW(unix_write),
    ROW(unix_write_all),
    ROW(unix_writev),
    ROW(unix_try_read),
    ROW(unix_try_write),
    ROW(unix_send_fds),
    ROW(unix_send_fds_count),
    ROW(unix_recv_fds),
    ROW(unix_recv_fds_count),
    ROW(pipe_read),
    ROW(pipe_read_exact),
    ROW(pipe_readv),
    ROW(pipe_write),
    ROW(pipe_write_all),
    ROW(pipe_writev),
    ROW(udp_recv),
    ROW(udp_recv_from),
    ROW(udp_peek),
    ROW(udp_send),
    ROW(udp_send_to),
    ROW(udp_send_segments),
    ROW(udp_try_recv),
    ROW(udp_try_send),
    ROW(udp_recv_batch),
    ROW(udp_recv_batch_count),
    ROW(udp_send_batch),
    ROW(udp_send_batch_count),
    ROW(dgram_recv),
    ROW(dgram_recv_fds),
    ROW(dgram_send),
    ROW(dgram_send_fds),
    ROW(dgram_send_to),
    ROW(file_read),
    ROW(file_read_exact),
    ROW(file_readv),
    ROW(file_read_at),
    ROW(file_read_exact_at),
    ROW(file_readv_at),
    ROW(file_write),
    ROW(file_write_all),
    ROW(file_writev),
    ROW(file_write_at),
    ROW(file_write_all_at),
    ROW(file_writev_at),
    ROW(fs_write),
    ROW(fs_append),
    ROW(fs_write_atomic),
    ROW(stream_read),
    ROW(stream_write),
    ROW(stream_writev),
    ROW(stream_read_exact),
    ROW(stream_write_all),
    ROW(stream_writev_all),
    ROW(stream_writev_count),
    ROW(reader_read),
    ROW(reader_read_exact),
    ROW(reader_peek),
    ROW(writer_write),
    ROW(writer_writev),
    ROW(writer_writev_count),
    ROW(writer_frame),
    ROW(memory_stream),
};

static void open_things(struct things *t, const char *backend)
{
    blz_length_options framing = {.width = 4};
    int fds[2];
    int file;

    *t = (struct things){.rt = turning_rt(backend), .path = "/tmp/blitz-length-XXXXXX"};
    tcp_socketpair(fds);
    assert_int_equal(blz_tcp_from_fd(&t->tcp, fds[0], t->rt), 0);
    t->tcp_peer = fds[1];
    assert_int_equal(blz_unix_pair(&t->local, &t->local_peer, t->rt), 0);
    assert_int_equal(blz_unix_dgram_pair(&t->dgram, &t->dgram_peer, t->rt), 0);
    assert_int_equal(blz_pipe_new(&t->in, &t->out, t->rt), 0);
    t->addr = blz_addr_loopback(BLZ_ADDR_V4, 0);
    assert_int_equal(blz_udp_bind_with(&t->udp, &t->addr, &(blz_udp_options){.rt = t->rt}), 0);
    assert_int_equal(blz_udp_local_addr(&t->udp, &t->addr), 0);
    assert_int_equal(blz_udp_connect(&t->udp, &t->addr), 0);
    file = mkstemp(t->path);
    assert_true(file >= 0 && write(file, "content", 7) == 7 && lseek(file, 0, SEEK_SET) == 0);
    assert_int_equal(blz_file_from_fd(&t->file, file, t->rt), 0);
    assert_int_equal(blz_stream_pair(&t->pair, &t->pair_peer, 0, NULL), 0);
    assert_int_equal(blz_reader_init(&t->reader, t->pair, NULL, 64), 0);
    assert_int_equal(blz_writer_init(&t->writer, t->pair, NULL, 64), 0);
    assert_int_equal(blz_codec_length(&t->codec, &framing), 0);
}

static void close_things(struct things *t)
{
    blz_reader_free(&t->reader);
    blz_writer_free(&t->writer);
    blz_stream_close(&t->pair);
    blz_stream_close(&t->pair_peer);
    blz_file_close(&t->file);
    unlink(t->path);
    blz_tcp_close(&t->tcp);
    close(t->tcp_peer);
    blz_unix_close(&t->local);
    blz_unix_close(&t->local_peer);
    blz_unix_dgram_close(&t->dgram);
    blz_unix_dgram_close(&t->dgram_peer);
    blz_pipe_close(&t->in);
    blz_pipe_close(&t->out);
    blz_udp_close(&t->udp);
    free_rt(t->rt);
}

/* Nobody has got anything, and the file is as it was. */
static void check_untouched(struct things *t)
{
    blz_io io = {0};
    blz_handle reading;
    struct stat st;
    char buf[8];

    assert_int_equal(recv(t->tcp_peer, buf, 8, MSG_DONTWAIT), -1);
    assert_int_equal(blz_unix_try_read(&t->local_peer, buf, 8), -EAGAIN);
    assert_int_equal(blz_udp_try_recv(&t->udp, buf, 8), -EAGAIN);
    START(t->rt, &reading, blz_pipe_read(&io, &t->in, buf, 8));
    assert_int_equal(CANCEL(t->rt, &reading), -ECANCELED);
    START(t->rt, &reading, blz_stream_read(&io, &t->pair_peer, buf, 8));
    assert_int_equal(CANCEL(t->rt, &reading), -ECANCELED);
    assert_int_equal(t->writer.end, 0);
    assert_int_equal(stat(t->path, &st), 0);
    assert_int_equal(st.st_size, 7);
}

ON_EACH_BACKEND(a_negative_result_is_no_length)
{
    struct things t;

    open_things(&t, backend);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (size_t j = 0; j < sizeof lengths / sizeof *lengths; j++) {
            int64_t rc = AWAIT(t.rt, table[i].make(&t, lengths[j]));
            if (rc != -EINVAL)
                print_error("%s of %zx: %lld\n", table[i].name, lengths[j], (long long)rc);
            assert_int_equal(rc, -EINVAL);
        }
    check_untouched(&t);
    close_things(&t);
}

ON_EACH_BACKEND(pieces_that_are_too_long_together_are_refused)
{
    struct things t;
    blz_iovec iov[3];

    open_things(&t, backend);
    iov[0] = (blz_iovec){t.buf, INT64_MAX / 2};
    iov[1] = (blz_iovec){t.buf, INT64_MAX / 2};
    iov[2] = (blz_iovec){t.buf, 2};
    assert_int_equal(AWAIT(t.rt, blz_tcp_writev(&t.io, &t.tcp, iov, 3)), -EINVAL);
    assert_int_equal(AWAIT(t.rt, blz_tcp_readv(&t.io, &t.tcp, iov, 3)), -EINVAL);
    assert_int_equal(AWAIT(t.rt, blz_file_writev(&t.io, &t.file, iov, 3)), -EINVAL);
    assert_int_equal(AWAIT(t.rt, blz_stream_writev(&t.io, &t.pair, iov, 3)), -EINVAL);
    assert_int_equal(AWAIT(t.rt, blz_stream_writev_all(&t.stream_op, &t.pair, iov, 3)), -EINVAL);
    assert_int_equal(AWAIT(t.rt, blz_writer_writev_all(&t.writer, iov, 3)), -EINVAL);
    check_untouched(&t);
    close_things(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_negative_result_is_no_length),
        TEST(pieces_that_are_too_long_together_are_refused),
    };

    return RUN_TESTS(tests);
}
