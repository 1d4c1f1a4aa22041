/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: system/transfer.h. Pipes and sockets come from the C library. */
#include "place.h"

#include "system/transfer.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

/* A pipe and a pair of sockets, all in non-blocking mode. */
struct ends {
    int pipe[2], pair[2];
};

static struct ends ends_new(void)
{
    struct ends e;

    assert_int_equal(pipe2(e.pipe, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, e.pair), 0);
    return e;
}

static void ends_free(struct ends e)
{
    for (int i = 0; i < 2; i++) {
        if (e.pipe[i] >= 0)
            close(e.pipe[i]);
        if (e.pair[i] >= 0)
            close(e.pair[i]);
    }
}

static void put(int fd, const char *text)
{
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* Whether this text, and no more, can be read just now. */
static bool gives(int fd, const char *text)
{
    char buf[256];
    ssize_t n = read(fd, buf, sizeof buf);

    return n == (ssize_t)strlen(text) && memcmp(buf, text, (size_t)n) == 0;
}

static void fill(int fd)
{
    static const char block[4096];

    while (write(fd, block, sizeof block) > 0)
        ;
    while (write(fd, block, 1) > 0)
        ;
}

/* ---- splice ---- */

static void splice_moves_bytes_from_a_socket_through_a_pipe_to_a_socket(void **state)
{
    struct ends from = ends_new(), to = ends_new();
    int64_t in, out;

    (void)state;
    put(from.pair[0], "hello");
    in = blz__transfer_splice(from.pair[1], from.pipe[1], 100);
    out = blz__transfer_splice(from.pipe[0], to.pair[0], 100);
    assert_true(in < 0 || gives(to.pair[1], "hello"));
    ends_free(from);
    ends_free(to);
    skip_if_not_supported(in);
    assert_true(in == 5 && out == 5);
}

static void splice_moves_no_more_than_it_is_asked_to(void **state)
{
    struct ends e = ends_new();
    int64_t n;

    (void)state;
    put(e.pipe[1], "hello");
    n = blz__transfer_splice(e.pipe[0], e.pair[0], 2);
    assert_true(n < 0 || (gives(e.pair[1], "he") && gives(e.pipe[0], "llo")));
    ends_free(e);
    skip_if_not_supported(n);
    assert_int_equal(n, 2);
}

static void splice_of_what_has_ended_is_0(void **state)
{
    struct ends e = ends_new();
    int64_t n;

    (void)state;
    close(e.pipe[1]);
    e.pipe[1] = -1;
    n = blz__transfer_splice(e.pipe[0], e.pair[0], 100);
    ends_free(e);
    skip_if_not_supported(n);
    assert_int_equal(n, 0);
}

static void splice_without_bytes_is_eagain(void **state)
{
    struct ends e = ends_new();
    int64_t from_pipe = blz__transfer_splice(e.pipe[0], e.pair[0], 100);
    int64_t from_socket = blz__transfer_splice(e.pair[0], e.pipe[1], 100);

    (void)state;
    ends_free(e);
    skip_if_not_supported(from_pipe);
    assert_true(from_pipe == -EAGAIN && from_socket == -EAGAIN);
}

static void splice_into_what_is_full_is_eagain_and_moves_nothing(void **state)
{
    struct ends e = ends_new();
    int64_t n;

    (void)state;
    fill(e.pair[0]);
    put(e.pipe[1], "kept");
    n = blz__transfer_splice(e.pipe[0], e.pair[0], 100);
    assert_true(gives(e.pipe[0], "kept"));
    ends_free(e);
    skip_if_not_supported(n);
    assert_int_equal(n, -EAGAIN);
}

static void splice_without_a_pipe_is_enotsup(void **state)
{
    struct ends e = ends_new();

    (void)state;
    put(e.pair[0], "kept");
    assert_int_equal(blz__transfer_splice(e.pair[1], e.pair[1], 100), -ENOTSUP);
    assert_true(gives(e.pair[1], "kept"));
    ends_free(e);
}

/* ---- signals ---- */

static volatile sig_atomic_t nr_signals;

static void count_signal(int signal)
{
    (void)signal;
    nr_signals++;
}

static void a_quiet_transfer_is_epipe_without_a_signal(void **state)
{
    struct sigaction action = {.sa_handler = count_signal}, old;
    struct ends e = ends_new();
    blz__transfer_mask mask;
    int64_t n;

    (void)state;
    assert_int_equal(sigaction(SIGPIPE, &action, &old), 0);
    nr_signals = 0;
    put(e.pipe[1], "lost");
    close(e.pair[1]);
    e.pair[1] = -1;
    blz__transfer_quiet(&mask);
    n = blz__transfer_splice(e.pipe[0], e.pair[0], 100);
    blz__transfer_quiet_end(&mask, n == -EPIPE);
    assert_int_equal(nr_signals, 0);
    assert_int_equal(sigaction(SIGPIPE, &old, NULL), 0);
    ends_free(e);
    skip_if_not_supported(n);
    assert_int_equal(n, -EPIPE);
}

static void after_a_quiet_transfer_signals_come_again(void **state)
{
    struct sigaction action = {.sa_handler = count_signal}, old;
    blz__transfer_mask mask;

    (void)state;
    assert_int_equal(sigaction(SIGPIPE, &action, &old), 0);
    nr_signals = 0;
    blz__transfer_quiet(&mask);
    blz__transfer_quiet_end(&mask, false);
    raise(SIGPIPE);
    assert_int_equal(nr_signals, 1);
    assert_int_equal(sigaction(SIGPIPE, &old, NULL), 0);
}

/* ---- files to sockets ---- */

static blz_sysfd file_with(const char *text)
{
    enter();
    return opened(make_file("file", text), OPEN_READ | OPEN_WRITE);
}

static void a_file_is_sent_from_an_offset_and_its_position_stays(void **state)
{
    blz_sysfd file = file_with("0123456789");
    struct ends e = ends_new();
    int64_t n = blz__transfer_send_file(e.pair[0], file, 3, 4);

    (void)state;
    assert_true(n < 0 || gives(e.pair[1], "3456"));
    assert_int_equal(blz__file_seek(file, 0, SEEK_CUR), 0);
    ends_free(e);
    close_file(file);
    skip_if_not_supported(n);
    assert_int_equal(n, 4);
}

static void a_file_is_sent_from_its_position_which_moves(void **state)
{
    blz_sysfd file = file_with("0123456789");
    struct ends e = ends_new();
    int64_t n;

    (void)state;
    assert_int_equal(blz__file_seek(file, 2, SEEK_SET), 2);
    n = blz__transfer_send_file(e.pair[0], file, FILE_AT_POSITION, 3);
    assert_true(n < 0 || gives(e.pair[1], "234"));
    assert_int_equal(blz__file_seek(file, 0, SEEK_CUR), n < 0 ? 2 : 5);
    ends_free(e);
    close_file(file);
    skip_if_not_supported(n);
    assert_int_equal(n, 3);
}

static void sending_what_is_behind_the_end_is_0(void **state)
{
    blz_sysfd file = file_with("0123456789");
    struct ends e = ends_new();
    int64_t last = blz__transfer_send_file(e.pair[0], file, 8, 100);
    int64_t none = blz__transfer_send_file(e.pair[0], file, 10, 100);

    (void)state;
    ends_free(e);
    close_file(file);
    skip_if_not_supported(last);
    assert_true(last == 2 && none == 0);
}

static void sending_to_a_full_socket_is_eagain_and_the_position_stays(void **state)
{
    blz_sysfd file = file_with("0123456789");
    struct ends e = ends_new();
    int64_t n;

    (void)state;
    fill(e.pair[0]);
    n = blz__transfer_send_file(e.pair[0], file, FILE_AT_POSITION, 10);
    assert_int_equal(blz__file_seek(file, 0, SEEK_CUR), 0);
    ends_free(e);
    close_file(file);
    skip_if_not_supported(n);
    assert_int_equal(n, -EAGAIN);
}

static void a_large_file_arrives_whole(void **state)
{
    enum { SIZE = 3 << 20 };
    blz_sysfd file = file_with("");
    struct ends e = ends_new();
    int64_t sent = 0, n = 0;
    static char block[1 << 16];
    uint64_t arrived = 0;

    (void)state;
    for (int i = 0; i < SIZE / (int)sizeof block; i++) {
        memset(block, 'a' + i % 26, sizeof block);
        assert_int_equal(blz__file_write(file, &(blz_iovec){block, sizeof block}, 1,
                                         (int64_t)i * (int64_t)sizeof block),
                         sizeof block);
    }
    while (n != -ENOTSUP && arrived < SIZE) {
        ssize_t got = read(e.pair[1], block, sizeof block);
        for (ssize_t i = 0; i < got; i++, arrived++)
            assert_int_equal(block[i], 'a' + (int)(arrived / sizeof block) % 26);
        n = blz__transfer_send_file(e.pair[0], file, sent, SIZE);
        assert_true(n >= 0 || n == -EAGAIN || n == -ENOTSUP);
        sent += n > 0 ? n : 0;
    }
    ends_free(e);
    close_file(file);
    skip_if_not_supported(n);
    assert_int_equal(sent, SIZE);
}

/* ---- between files ---- */

struct files {
    blz_sysfd from, to;
};

static struct files two_files(const char *text, unsigned flags_of_target)
{
    struct files both = {.from = file_with(text)};

    both.to = opened(make_file("target", "target"), OPEN_READ | OPEN_WRITE | flags_of_target);
    return both;
}

static void close_files(struct files both)
{
    close_file(both.from);
    close_file(both.to);
}

static void a_copy_goes_from_position_to_position_and_moves_both(void **state)
{
    struct files both = two_files("0123456789", 0);
    int64_t n;

    (void)state;
    assert_int_equal(blz__file_seek(both.from, 2, SEEK_SET), 2);
    assert_int_equal(blz__file_seek(both.to, 1, SEEK_SET), 1);
    n = blz__transfer_copy(both.from, both.to, 3);
    if (n == 3) {
        assert_true(has_text(both.to, "t234et", 0));
        assert_int_equal(blz__file_seek(both.from, 0, SEEK_CUR), 5);
        assert_int_equal(blz__file_seek(both.to, 0, SEEK_CUR), 4);
    }
    close_files(both);
    skip_if_not_supported(n);
    assert_int_equal(n, 3);
}

static void a_copy_at_the_end_is_0(void **state)
{
    struct files both = two_files("0123456789", 0);
    int64_t n;

    (void)state;
    assert_int_equal(blz__file_seek(both.from, 0, SEEK_END), 10);
    n = blz__transfer_copy(both.from, both.to, 100);
    assert_true(has_text(both.to, "target", 0));
    close_files(both);
    skip_if_not_supported(n);
    assert_int_equal(n, 0);
}

static void a_copy_that_the_system_cannot_make_is_enotsup_and_moves_nothing(void **state)
{
    struct files both = two_files("0123456789", OPEN_APPEND);
    struct ends e = ends_new();
    int64_t to_pipe = blz__transfer_copy(both.from, e.pipe[1], 5);
    int64_t appended = blz__transfer_copy(both.from, both.to, 5);

    (void)state;
    assert_int_equal(to_pipe, -ENOTSUP);
    assert_int_equal(appended, -ENOTSUP);
    assert_int_equal(blz__file_seek(both.from, 0, SEEK_CUR), 0);
    assert_true(has_text(both.to, "target", 0));
    ends_free(e);
    close_files(both);
}

static void a_clone_has_the_bytes_of_the_other_file_and_is_written_alone(void **state)
{
    struct files both = two_files("0123456789", 0);
    int rc = blz__transfer_clone(both.from, both.to);

    (void)state;
    assert_true(has_text(both.to, rc == 0 ? "0123456789" : "target", 0));
    assert_int_equal(write_text(both.to, "XX", 0), 2);
    assert_true(has_text(both.from, "0123456789", 0));
    close_files(both);
    skip_if_not_supported(rc);
    assert_int_equal(rc, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(splice_moves_bytes_from_a_socket_through_a_pipe_to_a_socket),
        TEST(splice_moves_no_more_than_it_is_asked_to),
        TEST(splice_of_what_has_ended_is_0),
        TEST(splice_without_bytes_is_eagain),
        TEST(splice_into_what_is_full_is_eagain_and_moves_nothing),
        TEST(splice_without_a_pipe_is_enotsup),
        TEST(a_quiet_transfer_is_epipe_without_a_signal),
        TEST(after_a_quiet_transfer_signals_come_again),
        TEST(a_file_is_sent_from_an_offset_and_its_position_stays),
        TEST(a_file_is_sent_from_its_position_which_moves),
        TEST(sending_what_is_behind_the_end_is_0),
        TEST(sending_to_a_full_socket_is_eagain_and_the_position_stays),
        TEST(a_large_file_arrives_whole),
        TEST(a_copy_goes_from_position_to_position_and_moves_both),
        TEST(a_copy_at_the_end_is_0),
        TEST(a_copy_that_the_system_cannot_make_is_enotsup_and_moves_nothing),
        TEST(a_clone_has_the_bytes_of_the_other_file_and_is_written_alone),
    };

    return RUN_IN_PLACE(tests);
}
