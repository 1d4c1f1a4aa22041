/* SPDX-License-Identifier: Apache-2.0 */
/* TCP connections: reading and writing, files, halves, descriptors from elsewhere. */
#include "net_probe.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/mman.h>

/* A connection: one end is the runtime's, the other a descriptor of this test. */
struct link {
    blz_rt *rt;
    blz_tcp conn;
    int peer;
};

static void connect_pair(int pair[2])
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    int ln = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    check(bind(ln, (struct sockaddr *)&addr, sizeof addr) == 0 && listen(ln, 1) == 0);
    check(getsockname(ln, (struct sockaddr *)&addr, &len) == 0);
    pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(connect(pair[0], (struct sockaddr *)&addr, sizeof addr) == 0);
    pair[1] = accept4(ln, NULL, NULL, SOCK_CLOEXEC);
    check(pair[1] >= 0);
    close(ln);
}

static struct link new_link(const char *backend)
{
    struct link link = {.rt = turning_rt(backend)};
    int pair[2];

    connect_pair(pair);
    assert_int_equal(blz_tcp_from_fd(&link.conn, pair[0], link.rt), 0);
    link.peer = pair[1];
    return link;
}

static void free_link(struct link *link)
{
    blz_tcp_close(&link->conn);
    if (link->peer >= 0)
        close(link->peer);
    free_rt(link->rt);
}

/* ---- reading and writing ---- */

ON_EACH_BACKEND(bytes_come_in_every_form)
{
    struct link l = new_link(backend);
    blz_io io = {0};
    blz_buf buf;
    char a[8] = "", b[8] = "";
    blz_iovec parts[] = {{a, 3}, {b, 8}};

    put(l.peer, "hello", 5);
    assert_int_equal(AWAIT(l.rt, blz_tcp_peek(&io, &l.conn, a, 2)), 2);
    assert_memory_equal(a, "he", 2);
    assert_int_equal(AWAIT(l.rt, blz_tcp_read_exact(&io, &l.conn, a, 4)), 4);
    assert_memory_equal(a, "hell", 4);
    assert_int_equal(AWAIT(l.rt, blz_tcp_read(&io, &l.conn, a, sizeof a)), 1);
    put(l.peer, "vector", 6);
    assert_int_equal(AWAIT(l.rt, blz_tcp_readv(&io, &l.conn, parts, 2)), 6);
    assert_memory_equal(a, "vec", 3);
    assert_memory_equal(b, "tor", 3);
    put(l.peer, "lease", 5);
    assert_int_equal(AWAIT(l.rt, blz_tcp_read_lease(&io, &l.conn, &buf)), 5);
    assert_memory_equal(buf.data, "lease", 5);
    blz_buf_release(&buf);
    assert_int_equal(AWAIT(l.rt, blz_tcp_writev(&io, &l.conn, parts, 2)), 11);
    assert_int_equal(AWAIT(l.rt, blz_tcp_write_all(&io, &l.conn, "xyz", 3)), 3);
    assert_int_equal(read(l.peer, a, 3), 3);
    assert_memory_equal(a, "vec", 3);
    free_link(&l);
}

ON_EACH_BACKEND(the_end_is_zero_and_a_short_exact_read_says_how_much_there_was)
{
    struct link l = new_link(backend);
    blz_io io = {0};
    char buf[16];

    put(l.peer, "abc", 3);
    assert_int_equal(shutdown(l.peer, SHUT_WR), 0);
    assert_int_equal(AWAIT(l.rt, blz_tcp_read_exact(&io, &l.conn, buf, 16)), -ENODATA);
    assert_int_equal(io.done, 3);
    assert_int_equal(AWAIT(l.rt, blz_tcp_read(&io, &l.conn, buf, 16)), 0);
    assert_int_equal(AWAIT(l.rt, blz_tcp_read(&io, &l.conn, buf, 0)), 0);
    free_link(&l);
}

ON_EACH_BACKEND(a_second_read_is_busy_and_a_closed_connection_is_gone)
{
    struct link l = new_link(backend);
    blz_io io = {0}, second = {0}, out = {0};
    blz_handle reading;
    blz_tcp copy = l.conn;
    char buf[4];

    START(l.rt, &reading, blz_tcp_read(&io, &l.conn, buf, 4));
    assert_int_equal(AWAIT(l.rt, blz_tcp_read(&second, &l.conn, buf, 4)), -EBUSY);
    assert_int_equal(AWAIT(l.rt, blz_tcp_ready(&second, &l.conn, BLZ_READABLE)), -EBUSY);
    assert_int_equal(AWAIT(l.rt, blz_tcp_write(&out, &l.conn, "x", 1)), 1);
    assert_int_equal(blz_tcp_into_fd(&l.conn), -EBUSY);
    assert_int_equal(blz_tcp_close(&l.conn), 0);
    assert_int_equal(FINISH(l.rt, &reading), -EBADF);
    assert_int_equal(AWAIT(l.rt, blz_tcp_read(&io, &copy, buf, 4)), -EBADF);
    assert_int_equal(AWAIT(l.rt, blz_tcp_write_all(&io, &copy, buf, 4)), -EBADF);
    assert_int_equal(blz_tcp_try_read(&copy, buf, 4), -EBADF);
    assert_int_equal(blz_tcp_close(&copy), -EBADF);
    assert_int_equal(blz_tcp_shutdown(&copy, BLZ_SHUT_WRITE), -EBADF);
    free_link(&l);
}

ON_EACH_BACKEND(a_cancelled_read_loses_nothing)
{
    struct link l = new_link(backend);
    blz_io io = {0};
    blz_handle reading;
    char buf[4];

    START(l.rt, &reading, blz_tcp_read(&io, &l.conn, buf, 4));
    assert_int_equal(CANCEL(l.rt, &reading), -ECANCELED);
    assert_int_equal(io.done, 0);
    put(l.peer, "data", 4);
    assert_int_equal(AWAIT(l.rt, blz_tcp_read_exact(&io, &l.conn, buf, 4)), 4);
    free_link(&l);
}

ON_EACH_BACKEND(a_reset_is_an_error_and_not_the_end)
{
    struct link l = new_link(backend);
    struct linger hard = {.l_onoff = 1};
    blz_io io = {0};
    blz_handle reading;
    char buf[4];

    START(l.rt, &reading, blz_tcp_read(&io, &l.conn, buf, 4));
    assert_int_equal(setsockopt(l.peer, SOL_SOCKET, SO_LINGER, &hard, sizeof hard), 0);
    close(l.peer);
    l.peer = -1;
    assert_int_equal(FINISH(l.rt, &reading), -ECONNRESET);
    assert_int_equal(AWAIT(l.rt, blz_tcp_write(&io, &l.conn, "x", 1)), -EPIPE);
    free_link(&l);
}

ON_EACH_BACKEND(closing_with_linger_zero_resets_the_connection)
{
    struct link l = new_link(backend);
    char buf[4];

    assert_int_equal(blz_tcp_set(&l.conn, BLZ_OPT_LINGER, 0), 0);
    assert_int_equal(blz_tcp_close(&l.conn), 0);
    assert_int_equal(read(l.peer, buf, 4), -1);
    assert_int_equal(errno, ECONNRESET);
    free_link(&l);
}

/* ---- without waiting ---- */

ON_EACH_BACKEND(the_calls_that_do_not_wait_say_so)
{
    struct link l = new_link(backend);
    blz_io io = {0};
    blz_handle waiting;
    char buf[4096] = "";
    int64_t n;

    assert_int_equal(blz_tcp_try_read(&l.conn, buf, 4), -EAGAIN);
    START(l.rt, &waiting, blz_tcp_ready(&io, &l.conn, BLZ_READABLE));
    assert_false(blz_handle_done(&waiting));
    put(l.peer, "now", 3);
    assert_int_equal(FINISH(l.rt, &waiting), BLZ_READABLE);
    assert_int_equal(blz_tcp_try_read(&l.conn, buf, 4), 3);
    assert_int_equal(blz_tcp_try_read(&l.conn, buf, 4), -EAGAIN);
    assert_int_equal(AWAIT(l.rt, blz_tcp_ready(&io, &l.conn, BLZ_WRITABLE)), BLZ_WRITABLE);
    assert_int_equal(blz_tcp_set(&l.conn, BLZ_OPT_SEND_BUFFER, 4096), 0);
    do { /* what is under way makes room when it arrives, so that a wait may end */
        while ((n = blz_tcp_try_write(&l.conn, buf, sizeof buf)) > 0)
            ;
        assert_int_equal(n, -EAGAIN);
        START(l.rt, &waiting, blz_tcp_ready(&io, &l.conn, BLZ_WRITABLE));
        blz_handle_cancel(&waiting);
        n = FINISH(l.rt, &waiting);
    } while (n == BLZ_WRITABLE);
    assert_int_equal(n, -ECANCELED);
    free_link(&l);
}

/* ---- descriptors from elsewhere ---- */

ON_EACH_BACKEND(a_descriptor_comes_in_and_goes_out_again)
{
    struct link l = new_link(backend);
    blz_io io = {0};
    char buf[4];
    int fd;

    put(l.peer, "ab", 2);
    assert_int_equal(AWAIT(l.rt, blz_tcp_read(&io, &l.conn, buf, 1)), 1);
    blz_tcp copy = l.conn;
    fd = blz_tcp_into_fd(&l.conn);
    assert_true(fd >= 0);
    assert_null(l.conn.entry_);
    assert_int_equal(blz_tcp_close(&copy), -EBADF);
    assert_int_equal(read(fd, buf, 1), 1); /* still open, and ours */
    assert_int_equal(buf[0], 'b');
    assert_int_equal(blz_tcp_from_fd(&l.conn, fd, l.rt), 0);
    put(l.peer, "c", 1);
    assert_int_equal(AWAIT(l.rt, blz_tcp_read(&io, &l.conn, buf, 4)), 1);
    free_link(&l);
}

ON_EACH_BACKEND(what_is_no_tcp_socket_is_refused_and_stays_the_callers)
{
    blz_rt *rt = turning_rt(backend);
    int pipes[2], udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), pair[2];
    blz_tcp_listener ln;
    blz_tcp conn;

    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    connect_pair(pair);
    assert_int_equal(blz_tcp_from_fd(&conn, pipes[0], rt), -ENOTSOCK);
    assert_int_equal(blz_tcp_from_fd(&conn, udp, rt), -EINVAL);
    assert_int_equal(blz_tcp_from_fd(&conn, -1, rt), -EBADF);
    assert_int_equal(blz_tcp_from_fd(&conn, pair[0], NULL), -ENXIO);
    assert_int_equal(blz_tcp_listener_from_fd(&ln, pair[0], rt), -EINVAL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(close(pipes[i]), 0);
        assert_int_equal(close(pair[i]), 0);
    }
    assert_int_equal(close(udp), 0);
    free_rt(rt);
}

/* ---- files ---- */

static int file_of(size_t len)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    char block[4096];

    for (size_t at = 0; at < len; at += sizeof block) {
        for (size_t i = 0; i < sizeof block; i++)
            block[i] = (char)((at + i) * 31 >> 3);
        put(fd, block, len - at < sizeof block ? len - at : sizeof block);
    }
    return fd;
}

ON_EACH_BACKEND(a_part_of_a_file_is_sent)
{
    struct link l = new_link(backend);
    int file = file_of(1000);
    blz_io io = {0};
    char got[1000], want[1000];

    assert_int_equal(pread(file, want, 1000, 0), 1000);
    assert_int_equal(AWAIT(l.rt, blz_tcp_sendfile(&io, &l.conn, file, 100, 50)), 50);
    assert_int_equal(io.done, 50);
    assert_int_equal(read_fully(l.peer, got, 50), 50);
    assert_memory_equal(got, want + 100, 50);
    assert_int_equal(AWAIT(l.rt, blz_tcp_sendfile(&io, &l.conn, file, 0, 0)), 0);
    assert_int_equal(AWAIT(l.rt, blz_tcp_sendfile(&io, &l.conn, file, 5000, 10)), 0);
    assert_int_equal(AWAIT(l.rt, blz_tcp_sendfile(&io, &l.conn, file, 990, 100)), 10);
    assert_int_equal(AWAIT(l.rt, blz_tcp_sendfile(&io, &l.conn, file, 500, SIZE_MAX)), 500);
    assert_int_equal(read_fully(l.peer, got, 510), 510);
    assert_memory_equal(got, want + 990, 10);
    assert_memory_equal(got + 10, want + 500, 500);
    assert_int_equal(AWAIT(l.rt, blz_tcp_sendfile(&io, &l.conn, -1, 0, 10)), -EBADF);
    assert_int_equal(AWAIT(l.rt, blz_tcp_sendfile(&io, &l.conn, file, -5, 10)), -EINVAL);
    close(file);
    free_link(&l);
}

enum { LARGE = 3 << 20 };

static void *read_all(void *arg)
{
    int fd = *(int *)arg;
    char *got = malloc(LARGE);
    uint64_t sum = 0;

    check(read_fully(fd, got, LARGE) == LARGE);
    for (size_t i = 0; i < LARGE; i++)
        sum = sum * 31 + (unsigned char)got[i];
    free(got);
    return (void *)(uintptr_t)sum;
}

ON_EACH_BACKEND(a_file_larger_than_any_buffer_is_sent_whole)
{
    struct link l = new_link(backend);
    int file = file_of(LARGE);
    unsigned char *want = mmap(NULL, LARGE, PROT_READ, MAP_SHARED, file, 0);
    uint64_t sum = 0;
    blz_io io = {0};
    blz_handle sending;
    pthread_t reader;
    void *got;

    for (size_t i = 0; i < LARGE; i++)
        sum = sum * 31 + want[i];
    assert_int_equal(blz_tcp_set(&l.conn, BLZ_OPT_SEND_BUFFER, 65536), 0);
    START(l.rt, &sending, blz_tcp_sendfile(&io, &l.conn, file, 0, LARGE));
    assert_false(blz_handle_done(&sending));
    reader = start_thread(read_all, &l.peer);
    assert_int_equal(FINISH(l.rt, &sending), LARGE);
    pthread_join(reader, &got);
    assert_true((uint64_t)(uintptr_t)got == sum);
    munmap(want, LARGE);
    close(file);
    free_link(&l);
}

ON_EACH_BACKEND(sending_a_file_to_a_peer_that_is_gone_kills_nobody)
{
    struct link l = new_link(backend);
    int file = file_of(LARGE);
    blz_io io = {0};
    blz_handle sending;
    int64_t rc;

    assert_int_equal(blz_tcp_set(&l.conn, BLZ_OPT_SEND_BUFFER, 65536), 0);
    START(l.rt, &sending, blz_tcp_sendfile(&io, &l.conn, file, 0, LARGE));
    assert_false(blz_handle_done(&sending));
    close(l.peer);
    l.peer = -1;
    rc = FINISH(l.rt, &sending);
    assert_true(rc == -EPIPE || rc == -ECONNRESET);
    assert_true(io.done < LARGE);
    assert_int_equal(AWAIT(l.rt, blz_tcp_sendfile(&io, &l.conn, file, 0, 10)), -EPIPE);
    close(file);
    free_link(&l);
}

ON_EACH_BACKEND(a_cancelled_file_says_how_far_it_came)
{
    struct link l = new_link(backend);
    int file = file_of(LARGE);
    blz_io io = {0};
    blz_handle sending;
    char buf[4096];
    uint64_t got = 0;
    ssize_t n;

    assert_int_equal(blz_tcp_set(&l.conn, BLZ_OPT_SEND_BUFFER, 65536), 0);
    START(l.rt, &sending, blz_tcp_sendfile(&io, &l.conn, file, 0, LARGE));
    assert_int_equal(CANCEL(l.rt, &sending), -ECANCELED);
    assert_int_equal(blz_tcp_close(&l.conn), 0);
    while ((n = read(l.peer, buf, sizeof buf)) > 0)
        got += (uint64_t)n;
    assert_int_equal(got, io.done);
    close(file);
    free_link(&l);
}

/* ---- halves ---- */

ON_EACH_BACKEND(closing_the_writing_half_ends_that_direction_only)
{
    struct link l = new_link(backend);
    blz_tcp_reader reader;
    blz_tcp_writer writer;
    blz_tcp copy = l.conn;
    blz_io io = {0};
    char buf[4];

    assert_int_equal(blz_tcp_split(&l.conn, &reader, &writer), 0);
    assert_int_equal(AWAIT(l.rt, blz_tcp_write_all(&io, &writer.conn, "bye", 3)), 3);
    assert_int_equal(blz_tcp_writer_close(&writer), 0);
    assert_int_equal(blz_tcp_writer_close(&writer), -EBADF);
    assert_int_equal(read_fully(l.peer, buf, 4), 3); /* and then the end */
    put(l.peer, "late", 4);
    assert_int_equal(AWAIT(l.rt, blz_tcp_read_exact(&io, &reader.conn, buf, 4)), 4);
    assert_int_equal(blz_tcp_reader_close(&reader), 0);
    assert_int_equal(AWAIT(l.rt, blz_tcp_read(&io, &copy, buf, 4)), -EBADF);
    free_link(&l);
}

ON_EACH_BACKEND(closing_the_reading_half_cancels_a_read)
{
    struct link l = new_link(backend);
    blz_tcp_reader reader;
    blz_tcp_writer writer;
    blz_io io = {0}, out = {0};
    blz_handle reading;
    char buf[4];

    assert_int_equal(blz_tcp_split(&l.conn, &reader, &writer), 0);
    START(l.rt, &reading, blz_tcp_read(&io, &reader.conn, buf, 4));
    assert_int_equal(blz_tcp_reader_close(&reader), 0);
    assert_int_equal(FINISH(l.rt, &reading), -EBADF);
    assert_int_equal(AWAIT(l.rt, blz_tcp_write_all(&out, &writer.conn, "on", 2)), 2);
    assert_int_equal(blz_tcp_writer_close(&writer), 0);
    assert_int_equal(read_fully(l.peer, buf, 4), 2);
    free_link(&l);
}

ON_EACH_BACKEND(halves_are_reunited_while_a_read_is_in_flight)
{
    struct link l = new_link(backend);
    blz_tcp_reader reader;
    blz_tcp_writer writer;
    blz_io io = {0}, second = {0};
    blz_handle reading;
    char buf[4] = "", other[4];

    assert_int_equal(blz_tcp_split(&l.conn, &reader, &writer), 0);
    START(l.rt, &reading, blz_tcp_read(&io, &reader.conn, buf, 4));
    assert_int_equal(blz_tcp_reunite(&l.conn, &reader, &writer), 0);
    memset(&reader, 0xee, sizeof reader); /* the halves' memory is of no interest to anyone */
    assert_int_equal(AWAIT(l.rt, blz_tcp_read(&second, &l.conn, other, 4)), -EBUSY);
    put(l.peer, "four", 4);
    assert_int_equal(FINISH(l.rt, &reading), 4);
    assert_memory_equal(buf, "four", 4);
    assert_int_equal(AWAIT(l.rt, blz_tcp_write(&io, &l.conn, "x", 1)), 1);
    assert_int_equal(blz_tcp_split(&l.conn, &reader, &writer), 0);
    assert_int_equal(blz_tcp_reunite(&l.conn, &reader, &writer), 0);
    free_link(&l);
}

ON_EACH_BACKEND(halves_of_different_connections_do_not_go_together)
{
    struct link l = new_link(backend);
    blz_tcp_reader readers[2];
    blz_tcp_writer writers[2];
    blz_tcp other, again;
    int pair[2];

    connect_pair(pair);
    assert_int_equal(blz_tcp_from_fd(&other, pair[0], l.rt), 0);
    again = l.conn;
    assert_int_equal(blz_tcp_split(&l.conn, &readers[0], &writers[0]), 0);
    assert_int_equal(blz_tcp_split(&again, &readers[1], &writers[1]), -EBADF);
    assert_int_equal(blz_tcp_split(&other, &readers[1], &writers[1]), 0);
    assert_int_equal(blz_tcp_reunite(&other, &readers[0], &writers[1]), -EINVAL);
    assert_int_equal(blz_tcp_writer_close(&writers[1]), 0);
    blz_tcp_writer stale = {readers[1].conn};
    assert_int_equal(blz_tcp_reunite(&other, &readers[1], &stale), -EBADF);
    assert_int_equal(blz_tcp_reader_close(&readers[1]), 0);
    assert_int_equal(blz_tcp_reunite(&l.conn, &readers[0], &writers[0]), 0);
    close(pair[1]);
    free_link(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bytes_come_in_every_form),
        TEST(the_end_is_zero_and_a_short_exact_read_says_how_much_there_was),
        TEST(a_second_read_is_busy_and_a_closed_connection_is_gone),
        TEST(a_cancelled_read_loses_nothing),
        TEST(a_reset_is_an_error_and_not_the_end),
        TEST(closing_with_linger_zero_resets_the_connection),
        TEST(the_calls_that_do_not_wait_say_so),
        TEST(a_descriptor_comes_in_and_goes_out_again),
        TEST(what_is_no_tcp_socket_is_refused_and_stays_the_callers),
        TEST(a_part_of_a_file_is_sent),
        TEST(a_file_larger_than_any_buffer_is_sent_whole),
        TEST(sending_a_file_to_a_peer_that_is_gone_kills_nobody),
        TEST(a_cancelled_file_says_how_far_it_came),
        TEST(closing_the_writing_half_ends_that_direction_only),
        TEST(closing_the_reading_half_cancels_a_read),
        TEST(halves_are_reunited_while_a_read_is_in_flight),
        TEST(halves_of_different_connections_do_not_go_together),
    };
    return RUN_TESTS(tests);
}
