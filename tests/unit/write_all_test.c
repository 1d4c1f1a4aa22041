/* SPDX-License-Identifier: Apache-2.0 */
/* What `writev` and `writev_all` promise, through buffers that are too small for the data. */
#include "net_probe.h"

enum { PIECE = 96 * 1024, PIECES = 3, ALL = PIECE * PIECES };

struct data {
    char out[ALL], in[ALL];
    blz_iovec iov[PIECES];
    blz_stream_op op;
    blz_stream_op reading;
    blz_io io;
};

static struct data *new_data(void)
{
    struct data *d = test_calloc(1, sizeof *d);

    for (size_t i = 0; i < ALL; i++)
        d->out[i] = (char)(i * 7 + i / 251);
    for (size_t i = 0; i < PIECES; i++)
        d->iov[i] = (blz_iovec){d->out + i * PIECE, PIECE};
    return d;
}

/* `all` is written while the other side reads: nothing of the tail is lost. */
static void check_all(blz_rt *rt, struct data *d, const blz_stream *from, blz_future *all)
{
    blz_handle reading;

    START(rt, &reading, blz_stream_read_exact(&d->reading, from, d->in, ALL));
    assert_int_equal(AWAIT(rt, all), ALL);
    assert_int_equal(d->op.done, ALL);
    assert_int_equal(FINISH(rt, &reading), ALL);
    assert_memory_equal(d->in, d->out, ALL);
}

/* `some` is a writev that nobody reads from: it gives what fits. */
static void check_some(blz_rt *rt, struct data *d, const blz_stream *from, blz_future *some)
{
    int64_t n = AWAIT(rt, some);

    assert_in_range(n, 1, ALL - 1);
    assert_int_equal(d->io.done, n);
    assert_int_equal(AWAIT(rt, blz_stream_read_exact(&d->reading, from, d->in, (size_t)n)), n);
    assert_memory_equal(d->in, d->out, (size_t)n);
}

static void tcp_pair(blz_rt *rt, blz_tcp *a, blz_tcp *b)
{
    blz_tcp_listen_options options = {.rt = rt};
    blz_addr addr = blz_addr_loopback(BLZ_ADDR_V4, 0);
    blz_tcp_listener ln;
    blz_io in = {0}, out = {0};
    blz_handle accepting;

    assert_int_equal(blz_tcp_listen_with(&ln, &addr, &options), 0);
    assert_int_equal(blz_tcp_listener_set(&ln, BLZ_OPT_RECV_BUFFER, 8192), 0);
    assert_int_equal(blz_tcp_listener_addr(&ln, &addr), 0);
    START(rt, &accepting, blz_tcp_accept(&in, &ln, b));
    assert_int_equal(AWAIT(rt, blz_tcp_connect_with(&out, a, &addr,
                                                    &(blz_tcp_options){.send_buffer = 8192})),
                     0);
    assert_int_equal(FINISH(rt, &accepting), 0);
    blz_tcp_listener_close(&ln);
}

ON_EACH_BACKEND(a_connection_takes_some_or_all)
{
    blz_rt *rt = turning_rt(backend);
    struct data *d = new_data();
    blz_tcp a, b;
    blz_stream from;

    tcp_pair(rt, &a, &b);
    from = blz_tcp_stream(&b);
    check_some(rt, d, &from, blz_tcp_writev(&d->io, &a, d->iov, PIECES));
    check_all(rt, d, &from, blz_tcp_writev_all(&d->op, &a, d->iov, PIECES));
    blz_tcp_close(&a);
    blz_tcp_close(&b);
    test_free(d);
    free_rt(rt);
}

ON_EACH_BACKEND(a_unix_socket_takes_some_or_all)
{
    blz_rt *rt = turning_rt(backend);
    struct data *d = new_data();
    blz_unix a, b;
    blz_stream from;

    assert_int_equal(blz_unix_pair(&a, &b, rt), 0);
    assert_int_equal(blz_unix_set(&a, BLZ_OPT_SEND_BUFFER, 8192), 0);
    from = blz_unix_stream(&b);
    check_some(rt, d, &from, blz_unix_writev(&d->io, &a, d->iov, PIECES));
    check_all(rt, d, &from, blz_unix_writev_all(&d->op, &a, d->iov, PIECES));
    blz_unix_close(&a);
    blz_unix_close(&b);
    test_free(d);
    free_rt(rt);
}

ON_EACH_BACKEND(a_pipe_takes_some_or_all)
{
    blz_rt *rt = turning_rt(backend);
    struct data *d = new_data();
    blz_pipe in, out;
    blz_stream from;

    assert_int_equal(blz_pipe_new(&in, &out, rt), 0);
    from = blz_pipe_stream(&in);
    check_some(rt, d, &from, blz_pipe_writev(&d->io, &out, d->iov, PIECES));
    check_all(rt, d, &from, blz_pipe_writev_all(&d->op, &out, d->iov, PIECES));
    blz_pipe_close(&in);
    blz_pipe_close(&out);
    test_free(d);
    free_rt(rt);
}

ON_EACH_BACKEND(a_stream_in_memory_takes_some_or_all)
{
    blz_rt *rt = turning_rt(backend);
    struct data *d = new_data();
    blz_stream a, b;

    assert_int_equal(blz_stream_pair(&a, &b, 8192, NULL), 0);
    check_some(rt, d, &b, blz_stream_writev(&d->io, &a, d->iov, PIECES));
    check_all(rt, d, &b, blz_stream_writev_all(&d->op, &a, d->iov, PIECES));
    blz_stream_close(&a);
    blz_stream_close(&b);
    test_free(d);
    free_rt(rt);
}

ON_EACH_BACKEND(a_writer_takes_all)
{
    blz_rt *rt = turning_rt(backend);
    struct data *d = new_data();
    blz_writer writer;
    blz_handle reading;
    blz_stream a, b;
    char buf[64];

    assert_int_equal(blz_stream_pair(&a, &b, 8192, NULL), 0);
    assert_int_equal(blz_writer_init(&writer, a, buf, sizeof buf), 0);
    START(rt, &reading, blz_stream_read_exact(&d->reading, &b, d->in, ALL));
    assert_int_equal(AWAIT(rt, blz_writer_write_all(&writer, d->out, PIECE)), PIECE);
    assert_int_equal(AWAIT(rt, blz_writer_writev_all(&writer, d->iov + 1, PIECES - 1)),
                     ALL - PIECE);
    assert_int_equal(AWAIT(rt, blz_writer_flush(&writer)), 0);
    assert_int_equal(FINISH(rt, &reading), ALL);
    assert_memory_equal(d->in, d->out, ALL);
    blz_writer_free(&writer);
    blz_stream_close(&a);
    blz_stream_close(&b);
    test_free(d);
    free_rt(rt);
}

ON_EACH_BACKEND(a_file_takes_all)
{
    blz_rt *rt = turning_rt(backend);
    struct data *d = new_data();
    blz_fs_op temp = {0};
    blz_file file;

    assert_int_equal(AWAIT(rt, blz_fs_temp_file(&temp, &file, NULL)), 0);
    assert_int_equal(AWAIT(rt, blz_file_writev_all(&d->op, &file, d->iov, PIECES)), ALL);
    assert_int_equal(AWAIT(rt, blz_file_read_exact_at(&d->io, &file, d->in, ALL, 0)), ALL);
    assert_memory_equal(d->in, d->out, ALL);
    blz_file_close(&file);
    test_free(d);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_connection_takes_some_or_all),
        TEST(a_unix_socket_takes_some_or_all),
        TEST(a_pipe_takes_some_or_all),
        TEST(a_stream_in_memory_takes_some_or_all),
        TEST(a_writer_takes_all),
        TEST(a_file_takes_all),
    };
    return RUN_TESTS(tests);
}
