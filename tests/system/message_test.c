/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: system/message.h. */
#include "sockets.h"

#include "system/message.h"
#include "system/option.h"
#include "system/pipe.h"

/* ---- what is sent and received ---- */

static void udp_pair(blz_sysfd fds[2], blz_addr addrs[2])
{
    for (int i = 0; i < 2; i++)
        fds[i] = open_bound(BLZ_ADDR_V4, BLZ__SOCKET_DATAGRAM, &addrs[i]);
}

static int64_t send_text(blz_sysfd fd, const char *text, blz_addr *to)
{
    blz_iovec piece = {(void *)(uintptr_t)text, strlen(text)};

    return blz__message_send(fd,
                             &(blz__socket_message){.pieces = &piece, .nr_pieces = 1, .addr = to});
}

static int64_t send_fds(blz_sysfd fd, blz_sysfd *fds, uint32_t count)
{
    blz_iovec piece = {(char[]){'f'}, 1};

    return blz__message_send(
        fd, &(blz__socket_message){.pieces = &piece, .nr_pieces = 1, .fds = fds, .nr_fds = count});
}

/* Receives one byte and descriptors. */
static int64_t recv_fds(blz_sysfd fd, blz__socket_message *m, blz_sysfd *fds, uint32_t max)
{
    char byte;
    blz_iovec piece = {&byte, 1};

    *m = (blz__socket_message){.pieces = &piece, .nr_pieces = 1, .fds = fds, .max_fds = max};
    return blz__message_recv(fd, m);
}

/* ---- bytes and addresses ---- */

static void nothing_to_receive_is_not_now_in_either_mode(void **state)
{
    (void)state;
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        char byte = 'x';
        blz_iovec piece = {&byte, 1};
        blz__socket_message m = {.pieces = &piece, .nr_pieces = 1};
        blz_sysfd ends[2];
        assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, nonblocking, ends), 0);
        assert_int_equal(blz__message_recv(ends[0], &m), -EAGAIN);
        assert_int_equal(blz__message_recv_pieces(ends[0], &piece, 1), -EAGAIN);
        assert_int_equal(byte, 'x');
        close_both(ends);
    }
}

static void no_room_to_send_is_not_now_in_either_mode(void **state)
{
    (void)state;
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        blz_iovec piece = {(char[]){'x'}, 1};
        blz_sysfd ends[2];
        assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, nonblocking, ends), 0);
        fill_socket(ends[0]);
        assert_int_equal(send_text(ends[0], "x", NULL), -EAGAIN);
        assert_int_equal(blz__message_send_pieces(ends[0], &piece, 1), -EAGAIN);
        close_both(ends);
    }
}

static void sending_to_what_is_closed_raises_no_signal(void **state)
{
    blz_iovec piece = {(char[]){'x'}, 1};
    blz_sysfd ends[2];

    (void)state;
    assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, true, ends), 0);
    blz__handle_close(ends[1]);
    assert_int_equal(send_text(ends[0], "x", NULL), -EPIPE);
    assert_int_equal(blz__message_send_pieces(ends[0], &piece, 1), -EPIPE);
    blz__handle_close(ends[0]);
}

static void pieces_are_put_together_and_taken_apart_in_order(void **state)
{
    char a[2], b[4];
    blz_iovec out[3] = {{(char[]){'1', '2', '3'}, 3}, {NULL, 0}, {(char[]){'4', '5', '6'}, 3}};
    blz_iovec in[2] = {{a, 2}, {b, 4}};
    blz_sysfd ends[2];

    (void)state;
    assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, true, ends), 0);
    assert_int_equal(blz__message_send_pieces(ends[0], out, 3), 6);
    assert_int_equal(blz__message_recv_pieces(ends[1], in, 2), 6);
    assert_memory_equal(a, "12", 2);
    assert_memory_equal(b, "3456", 4);
    close_both(ends);
}

static void the_sender_is_told_in_canonical_form(void **state)
{
    blz_addr addrs[2], from;
    blz_sysfd fds[2];
    char buf[8];
    blz_iovec piece = {buf, sizeof buf};
    blz__socket_message m = {.pieces = &piece, .nr_pieces = 1, .addr = &from};

    (void)state;
    udp_pair(fds, addrs);
    memset(&from, 0xff, sizeof from);
    assert_int_equal(send_text(fds[0], "hi", &addrs[1]), 2);
    await_events(fds[1], BLZ_FD_READ);
    assert_int_equal(blz__message_recv(fds[1], &m), 2);
    assert_int_equal(m.flags, 0);
    assert_memory_equal(&from, &addrs[0], sizeof from);
    close_both(fds);
}

static void a_sender_without_a_name_has_no_address(void **state)
{
    blz_sysfd ends[2];
    blz_addr from;
    char buf[8];
    blz_iovec piece = {buf, sizeof buf};
    blz__socket_message m = {.pieces = &piece, .nr_pieces = 1, .addr = &from};
    int rc = blz__socket_pair(BLZ__SOCKET_DATAGRAM, true, ends);

    (void)state;
    skip_if_not_supported(rc);
    memset(&from, 0xff, sizeof from);
    assert_int_equal(send_text(ends[0], "hi", NULL), 2);
    assert_int_equal(blz__message_recv(ends[1], &m), 2);
    assert_true(blz_addr_family(&from) == BLZ_ADDR_NONE);
    close_both(ends);
}

static void a_datagram_that_is_too_long_is_cut_off_and_says_so(void **state)
{
    blz_addr addrs[2];
    blz_sysfd fds[2];
    char buf[4];
    blz_iovec piece = {buf, sizeof buf};
    blz__socket_message m = {.pieces = &piece, .nr_pieces = 1};

    (void)state;
    udp_pair(fds, addrs);
    assert_int_equal(send_text(fds[0], "longer", &addrs[1]), 6);
    assert_int_equal(send_text(fds[0], "four", &addrs[1]), 4);
    await_events(fds[1], BLZ_FD_READ);
    assert_int_equal(blz__message_recv(fds[1], &m), 4);
    assert_int_equal(m.flags, BLZ_MSG_TRUNCATED);
    assert_memory_equal(buf, "long", 4);
    await_events(fds[1], BLZ_FD_READ);
    assert_int_equal(blz__message_recv(fds[1], &m), 4); /* the rest of the first is lost */
    assert_int_equal(m.flags, 0);
    assert_memory_equal(buf, "four", 4);
    close_both(fds);
}

static void a_message_that_was_peeked_at_is_still_there(void **state)
{
    blz_addr addrs[2], from;
    blz_sysfd fds[2];
    char buf[8];
    blz_iovec piece = {buf, sizeof buf};
    blz__socket_message m = {.pieces = &piece, .nr_pieces = 1, .addr = &from, .peeks = true};

    (void)state;
    udp_pair(fds, addrs);
    assert_int_equal(send_text(fds[0], "hi", &addrs[1]), 2);
    await_events(fds[1], BLZ_FD_READ);
    assert_int_equal(blz__message_recv(fds[1], &m), 2);
    assert_true(blz_addr_equal(&from, &addrs[0]));
    assert_int_equal(blz__message_recv(fds[1], &m), 2);
    m.peeks = false;
    assert_int_equal(blz__message_recv(fds[1], &m), 2);
    assert_int_equal(blz__message_recv(fds[1], &m), -EAGAIN);
    close_both(fds);
}

static void a_datagram_that_is_too_long_to_be_sent_is_refused(void **state)
{
    static char bytes[70000];
    blz_addr addrs[2];
    blz_sysfd fds[2];
    blz_iovec piece = {bytes, sizeof bytes};

    (void)state;
    udp_pair(fds, addrs);
    assert_int_equal(blz__message_send(fds[0], &(blz__socket_message){.pieces = &piece,
                                                                      .nr_pieces = 1,
                                                                      .addr = &addrs[1]}),
                     -EMSGSIZE);
    close_both(fds);
}

static void a_datagram_that_was_refused_is_told_later(void **state)
{
    blz_addr addrs[2];
    blz_sysfd fds[2];
    char buf[8];
    blz_iovec piece = {buf, sizeof buf};
    blz__socket_message m = {.pieces = &piece, .nr_pieces = 1};

    (void)state;
    udp_pair(fds, addrs);
    assert_int_equal(blz__socket_connect(fds[0], &addrs[1]), 0);
    blz__handle_close(fds[1]);
    assert_int_equal(send_text(fds[0], "hi", NULL), 2);
    await_events(fds[0], BLZ_FD_READ);
    assert_int_equal(blz__message_recv(fds[0], &m), -ECONNREFUSED);
    blz__handle_close(fds[0]);
}

/* ---- descriptors ---- */

static void descriptors_go_along_and_are_not_inherited(void **state)
{
    blz_sysfd ends[2], pipe[2], got[2];
    blz__socket_message m;
    char byte;
    int64_t n;

    (void)state;
    assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, true, ends), 0);
    assert_int_equal(blz__pipe_new(true, pipe), 0);
    n = send_fds(ends[0], pipe, 2);
    close_both(pipe);
    if (n == -ENOTSUP)
        close_both(ends);
    skip_if_not_supported(n);
    assert_int_equal(n, 1);
    assert_int_equal(recv_fds(ends[1], &m, got, 2), 1);
    assert_int_equal(m.nr_fds, 2);
    assert_int_equal(m.flags, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(blz__handle_is_inherited(got[i]), 0);
    assert_int_equal(blz__pipe_write(got[1], "x", 1, NULL), 1);
    assert_int_equal(blz__pipe_read(got[0], &(blz_iovec){&byte, 1}, 1, NULL), 1);
    close_both(got);
    close_both(ends);
}

/* Whether anything but `writer` has the writing end of this pipe open. */
static bool has_other_writers(const blz_sysfd pipe[2])
{
    char byte;

    blz__handle_close(pipe[1]);
    return blz__pipe_read(pipe[0], &(blz_iovec){&byte, 1}, 1, NULL) == -EAGAIN;
}

static void descriptors_that_do_not_fit_are_closed_and_that_is_told(void **state)
{
    blz_sysfd ends[2], kept[2], dropped[2], sent[2], got[1];
    blz__socket_message m;
    int64_t n;

    (void)state;
    assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, true, ends), 0);
    assert_int_equal(blz__pipe_new(true, kept), 0);
    assert_int_equal(blz__pipe_new(true, dropped), 0);
    sent[0] = kept[1];
    sent[1] = dropped[1];
    n = send_fds(ends[0], sent, 2);
    if (n == -ENOTSUP) {
        close_both(ends);
        close_both(kept);
        close_both(dropped);
    }
    skip_if_not_supported(n);
    assert_int_equal(recv_fds(ends[1], &m, got, 1), 1);
    assert_int_equal(m.nr_fds, 1);
    assert_int_equal(m.flags, BLZ_MSG_FDS_TRUNCATED);
    assert_true(has_other_writers(kept));
    assert_false(has_other_writers(dropped));
    blz__handle_close(got[0]);
    blz__handle_close(kept[0]);
    blz__handle_close(dropped[0]);
    close_both(ends);
}

static void descriptors_that_nobody_asked_for_are_closed(void **state)
{
    blz_sysfd ends[2], pipe[2];
    blz__socket_message m;
    int64_t n;

    (void)state;
    assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, true, ends), 0);
    assert_int_equal(blz__pipe_new(true, pipe), 0);
    n = send_fds(ends[0], &pipe[1], 1);
    if (n == -ENOTSUP) {
        close_both(ends);
        close_both(pipe);
    }
    skip_if_not_supported(n);
    assert_int_equal(recv_fds(ends[1], &m, NULL, 0), 1);
    assert_int_equal(m.nr_fds, 0);
    assert_false(has_other_writers(pipe));
    blz__handle_close(pipe[0]);
    close_both(ends);
}

static void too_many_descriptors_or_bad_ones_are_refused(void **state)
{
    blz_sysfd ends[2], many[BLZ_MSG_FDS + 1];
    int64_t bad;

    (void)state;
    assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, true, ends), 0);
    for (int i = 0; i <= BLZ_MSG_FDS; i++)
        many[i] = ends[0];
    bad = send_fds(ends[0], (blz_sysfd[]){BLZ_NO_SYSFD}, 1);
    if (bad == -ENOTSUP)
        close_both(ends);
    skip_if_not_supported(bad);
    assert_int_equal(bad, -EBADF);
    assert_int_equal(send_fds(ends[0], many, BLZ_MSG_FDS + 1), -EINVAL);
    assert_int_equal(blz__socket_events(ends[1], BLZ_FD_READ), 0); /* nothing has happened */
    close_both(ends);
}

static void as_many_descriptors_go_along_as_is_promised(void **state)
{
    blz_sysfd ends[2], many[BLZ_MSG_FDS], got[BLZ_MSG_FDS];
    blz__socket_message m;
    int64_t n;

    (void)state;
    assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, true, ends), 0);
    for (int i = 0; i < BLZ_MSG_FDS; i++)
        many[i] = ends[0];
    n = send_fds(ends[0], many, BLZ_MSG_FDS);
    if (n == -ENOTSUP)
        close_both(ends);
    skip_if_not_supported(n);
    assert_int_equal(n, 1);
    assert_int_equal(recv_fds(ends[1], &m, got, BLZ_MSG_FDS), 1);
    assert_int_equal(m.nr_fds, BLZ_MSG_FDS);
    assert_int_equal(m.flags, 0);
    for (int i = 0; i < BLZ_MSG_FDS; i++)
        blz__handle_close(got[i]);
    close_both(ends);
}

/* ---- what options bring ---- */

static void credentials_come_with_a_message(void **state)
{
    blz_sysfd ends[2];
    struct blz__socket_cred peer;
    char byte;
    blz_iovec piece = {&byte, 1};
    blz__socket_message m = {.pieces = &piece, .nr_pieces = 1, .wants_extras = true};
    int rc;

    (void)state;
    assert_int_equal(blz__socket_pair(BLZ__SOCKET_STREAM, true, ends), 0);
    rc = blz__option_set(ends[1], BLZ_OPT_PASS_CRED, 1);
    if (rc == -ENOTSUP)
        close_both(ends);
    skip_if_not_supported(rc);
    assert_int_equal(blz__socket_peer_cred(ends[1], &peer), 0);
    assert_int_equal(send_text(ends[0], "x", NULL), 1);
    assert_int_equal(blz__message_recv(ends[1], &m), 1);
    assert_true(m.has_cred);
    assert_int_equal(m.cred.pid, peer.pid);
    assert_int_equal(m.cred.uid, peer.uid);
    assert_int_equal(m.cred.gid, peer.gid);
    close_both(ends);
}

static void bytes_are_cut_into_datagrams_of_the_segment_size(void **state)
{
    blz_addr addrs[2];
    blz_sysfd fds[2];
    char buf[8];
    blz_iovec piece = {(char[]){"abcabcab"}, 8};
    int64_t n;

    (void)state;
    udp_pair(fds, addrs);
    n = blz__message_send(fds[0], &(blz__socket_message){.pieces = &piece,
                                                         .nr_pieces = 1,
                                                         .addr = &addrs[1],
                                                         .segment = 3});
    if (n == -ENOTSUP)
        close_both(fds);
    skip_if_not_supported(n);
    assert_int_equal(n, 8);
    for (int i = 0; i < 3; i++) {
        await_events(fds[1], BLZ_FD_READ);
        assert_int_equal(blz__socket_recv(fds[1], buf, sizeof buf), i < 2 ? 3 : 2);
    }
    close_both(fds);
}

static void datagrams_that_are_received_as_one_say_their_size(void **state)
{
    blz_addr addrs[2];
    blz_sysfd fds[2];
    char buf[64];
    blz_iovec out = {(char[]){"abcabcab"}, 8}, in = {buf, sizeof buf};
    blz__socket_message m = {.pieces = &in, .nr_pieces = 1, .wants_extras = true};
    int64_t n;
    int rc;

    (void)state;
    udp_pair(fds, addrs);
    rc = blz__option_set(fds[1], BLZ_OPT_GRO, 1);
    n = blz__message_send(fds[0], &(blz__socket_message){.pieces = &out,
                                                         .nr_pieces = 1,
                                                         .addr = &addrs[1],
                                                         .segment = 3});
    if (rc == -ENOTSUP || n == -ENOTSUP)
        close_both(fds);
    skip_if_not_supported(rc);
    skip_if_not_supported(n);
    await_events(fds[1], BLZ_FD_READ);
    n = blz__message_recv(fds[1], &m);
    assert_true(n == 8 || n == 3); /* the system may put them together, or not */
    assert_int_equal(m.segment, n == 8 ? 3 : 0);
    close_both(fds);
}

/* ---- batches ---- */

enum { NR = 40 };

static void fill_datagrams(blz_datagram *d, char (*bufs)[8], size_t len, const blz_addr *to)
{
    for (int i = 0; i < NR; i++) {
        memset(&d[i], 0xff, sizeof d[i]);
        d[i].data = bufs[i];
        d[i].len = len;
        d[i].addr = to ? *to : (blz_addr){.len = 0};
        memset(bufs[i], 'a' + i % 26, sizeof bufs[i]);
    }
}

static void a_batch_arrives_whole_and_in_order(void **state)
{
    static blz_datagram out[NR], in[NR];
    static char sent[NR][8], got[NR][8];
    blz_addr addrs[2];
    blz_sysfd fds[2];
    int64_t n, done;

    (void)state;
    udp_pair(fds, addrs);
    fill_datagrams(out, sent, 5, &addrs[1]);
    fill_datagrams(in, got, 8, NULL);
    for (done = 0; done < NR; done += n) {
        n = blz__message_send_batch(fds[0], out + done, (size_t)(NR - done));
        assert_true(n > 0 && n <= BLZ__MESSAGE_BATCH);
    }
    for (done = 0; done < NR; done += n) {
        await_events(fds[1], BLZ_FD_READ);
        n = blz__message_recv_batch(fds[1], in + done, (size_t)(NR - done));
        assert_true(n > 0 && n <= BLZ__MESSAGE_BATCH);
    }
    for (int i = 0; i < NR; i++) {
        assert_int_equal(in[i].received, 5);
        assert_int_equal(in[i].flags, 0);
        assert_int_equal(in[i].segment, 0);
        assert_true(blz_addr_equal(&in[i].addr, &addrs[0]));
        assert_memory_equal(got[i], sent[i], 5);
    }
    assert_int_equal(blz__message_recv_batch(fds[1], in, NR), -EAGAIN);
    close_both(fds);
}

static void a_batch_tells_which_datagrams_were_cut_off(void **state)
{
    static blz_datagram in[NR];
    static char got[NR][8];
    blz_addr addrs[2];
    blz_sysfd fds[2];
    int64_t done = 0, n;

    (void)state;
    udp_pair(fds, addrs);
    fill_datagrams(in, got, 4, NULL);
    assert_int_equal(send_text(fds[0], "fits", &addrs[1]), 4);
    assert_int_equal(send_text(fds[0], "longer", &addrs[1]), 6);
    for (; done < 2; done += n) {
        await_events(fds[1], BLZ_FD_READ);
        n = blz__message_recv_batch(fds[1], in + done, 2);
        assert_true(n > 0);
    }
    assert_int_equal(in[0].flags, 0);
    assert_int_equal(in[1].flags, BLZ_MSG_TRUNCATED);
    assert_int_equal(in[1].received, 4);
    close_both(fds);
}

static void the_error_of_a_batch_is_that_of_its_first(void **state)
{
    static blz_datagram out[NR];
    static char sent[NR][8];
    blz_addr addrs[2];
    blz_sysfd fds[2];
    int64_t rc;

    (void)state;
    udp_pair(fds, addrs);
    fill_datagrams(out, sent, 5, &addrs[1]);
    out[0].addr = (blz_addr){.len = 0};
    rc = blz__message_send_batch(fds[0], out, 2);
    assert_true(rc == -EDESTADDRREQ || rc == -ENOTCONN);
    out[0].addr = addrs[1];
    out[1].addr = (blz_addr){.len = 0};
    assert_int_equal(blz__message_send_batch(fds[0], out, 2), 1);
    close_both(fds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_to_receive_is_not_now_in_either_mode),
        TEST(no_room_to_send_is_not_now_in_either_mode),
        TEST(sending_to_what_is_closed_raises_no_signal),
        TEST(pieces_are_put_together_and_taken_apart_in_order),
        TEST(the_sender_is_told_in_canonical_form),
        TEST(a_sender_without_a_name_has_no_address),
        TEST(a_datagram_that_is_too_long_is_cut_off_and_says_so),
        TEST(a_message_that_was_peeked_at_is_still_there),
        TEST(a_datagram_that_is_too_long_to_be_sent_is_refused),
        TEST(a_datagram_that_was_refused_is_told_later),
        TEST(descriptors_go_along_and_are_not_inherited),
        TEST(descriptors_that_do_not_fit_are_closed_and_that_is_told),
        TEST(descriptors_that_nobody_asked_for_are_closed),
        TEST(too_many_descriptors_or_bad_ones_are_refused),
        TEST(as_many_descriptors_go_along_as_is_promised),
        TEST(credentials_come_with_a_message),
        TEST(bytes_are_cut_into_datagrams_of_the_segment_size),
        TEST(datagrams_that_are_received_as_one_say_their_size),
        TEST(a_batch_arrives_whole_and_in_order),
        TEST(a_batch_tells_which_datagrams_were_cut_off),
        TEST(the_error_of_a_batch_is_that_of_its_first),
    };

    return RUN_TESTS(tests);
}
