/* SPDX-License-Identifier: Apache-2.0 */
/* UDP: single datagrams, batches, segments, groups, errors of the network. */
#include "net_probe.h"

#include <net/if.h>
#include <netinet/in.h>

/* Two sockets of one runtime. */
struct two {
    blz_rt *rt;
    blz_udp a, b;
    blz_addr at_a, at_b;
};

static blz_udp bind_anywhere(blz_rt *rt, int family, blz_addr *addr)
{
    blz_udp udp;

    *addr = blz_addr_loopback(family, 0);
    check(blz_udp_bind_with(&udp, addr, &(blz_udp_options){.rt = rt}) == 0);
    check(blz_udp_local_addr(&udp, addr) == 0);
    return udp;
}

static struct two new_two(const char *backend)
{
    struct two t = {.rt = turning_rt(backend)};

    t.a = bind_anywhere(t.rt, BLZ_ADDR_V4, &t.at_a);
    t.b = bind_anywhere(t.rt, BLZ_ADDR_V4, &t.at_b);
    return t;
}

static void free_two(struct two *t)
{
    blz_udp_close(&t->a);
    blz_udp_close(&t->b);
    free_rt(t->rt);
}

/* ---- addresses that are text ---- */

/* On a worker, where there is a runtime. */
static int64_t bind_by_text(void *arg)
{
    blz_udp udp, *bound = arg;

    check(blz_udp_bind(&udp, "127.0.0.1") == -EINVAL);
    check(udp.entry_ == NULL);
    check(blz_udp_bind(&udp, "unix:@name") == -EAFNOSUPPORT);
    check(blz_udp_bind(&udp, ":0") == 0); /* every interface; IPv4 where there is no IPv6 */
    check(blz_udp_close(&udp) == 0);
    return blz_udp_bind(bound, "127.0.0.1:0");
}

ON_EACH_BACKEND(a_socket_is_bound_to_an_address_that_is_text)
{
    blz_rt *rt = turning_rt(backend);
    blz_lazy lazy;
    blz_udp udp;
    blz_addr addr;

    assert_int_equal(blz_udp_bind(&udp, "127.0.0.1:0"), -ENXIO); /* this thread has no runtime */
    assert_int_equal(AWAIT(rt, blz_lazy_init(&lazy, bind_by_text, &udp)), 0);
    assert_int_equal(blz_udp_local_addr(&udp, &addr), 0);
    assert_true(blz_addr_is_loopback(&addr));
    assert_int_not_equal(blz_addr_port(&addr), 0);
    blz_udp_close(&udp);
    free_rt(rt);
}

/* ---- one by one ---- */

ON_EACH_BACKEND(a_datagram_comes_with_its_address)
{
    struct two t = new_two(backend);
    blz_msg in = {0}, out = {0};
    blz_addr from;
    blz_handle receiving;
    char buf[16];

    START(t.rt, &receiving, blz_udp_recv_from(&in, &t.b, buf, 16, &from));
    assert_int_equal(AWAIT(t.rt, blz_udp_send_to(&out, &t.a, "ping", 4, &t.at_b)), 4);
    assert_int_equal(FINISH(t.rt, &receiving), 4);
    assert_memory_equal(buf, "ping", 4);
    assert_true(blz_addr_equal(&from, &t.at_a));
    assert_int_equal(in.flags, 0);
    assert_int_equal(in.segment, 0);
    free_two(&t);
}

ON_EACH_BACKEND(ipv6_works_alike)
{
    blz_rt *rt = turning_rt(backend);
    blz_addr at_a, at_b, from;
    blz_udp a = bind_anywhere(rt, BLZ_ADDR_V6, &at_a), b = bind_anywhere(rt, BLZ_ADDR_V6, &at_b);
    blz_msg msg = {0};
    char buf[16];

    assert_int_equal(AWAIT(rt, blz_udp_send_to(&msg, &a, "six", 3, &at_b)), 3);
    assert_int_equal(AWAIT(rt, blz_udp_recv_from(&msg, &b, buf, 16, &from)), 3);
    assert_true(blz_addr_equal(&from, &at_a));
    blz_udp_close(&a);
    blz_udp_close(&b);
    free_rt(rt);
}

ON_EACH_BACKEND(empty_datagrams_are_datagrams)
{
    struct two t = new_two(backend);
    blz_msg in = {0}, out = {0};
    blz_addr from;
    blz_handle receiving;
    char buf[4];

    START(t.rt, &receiving, blz_udp_recv_from(&in, &t.b, buf, 4, &from));
    assert_int_equal(AWAIT(t.rt, blz_udp_send_to(&out, &t.a, NULL, 0, &t.at_b)), 0);
    assert_int_equal(FINISH(t.rt, &receiving), 0);
    assert_true(blz_addr_equal(&from, &t.at_a));
    /* into no room: the datagram is gone, and it says so */
    assert_int_equal(AWAIT(t.rt, blz_udp_send_to(&out, &t.a, "abc", 3, &t.at_b)), 3);
    assert_int_equal(AWAIT(t.rt, blz_udp_recv(&in, &t.b, NULL, 0)), 0);
    assert_int_equal(in.flags, BLZ_MSG_TRUNCATED);
    assert_int_equal(blz_udp_try_recv(&t.b, buf, 4), -EAGAIN);
    free_two(&t);
}

ON_EACH_BACKEND(a_datagram_that_is_too_long_is_cut_off_and_says_so)
{
    struct two t = new_two(backend);
    blz_msg in = {0}, out = {0};
    char buf[4];

    assert_int_equal(AWAIT(t.rt, blz_udp_send_to(&out, &t.a, "abcdefgh", 8, &t.at_b)), 8);
    assert_int_equal(AWAIT(t.rt, blz_udp_send_to(&out, &t.a, "ijkl", 4, &t.at_b)), 4);
    assert_int_equal(AWAIT(t.rt, blz_udp_recv(&in, &t.b, buf, 4)), 4);
    assert_memory_equal(buf, "abcd", 4);
    assert_int_equal(in.flags, BLZ_MSG_TRUNCATED);
    assert_int_equal(AWAIT(t.rt, blz_udp_recv(&in, &t.b, buf, 4)), 4);
    assert_memory_equal(buf, "ijkl", 4);
    assert_int_equal(in.flags, 0);
    free_two(&t);
}

/* A short datagram does not mean that there is nothing more: the second read must not wait. */
ON_EACH_BACKEND(short_datagrams_are_read_one_after_the_other)
{
    struct two t = new_two(backend);
    blz_msg in = {0}, out = {0};
    blz_handle receiving;
    char buf[100];

    START(t.rt, &receiving, blz_udp_recv(&in, &t.b, buf, 100));
    for (int i = 0; i < 20; i++)
        assert_int_equal(AWAIT(t.rt, blz_udp_send_to(&out, &t.a, "x", 1, &t.at_b)), 1);
    assert_int_equal(FINISH(t.rt, &receiving), 1);
    for (int i = 1; i < 20; i++)
        assert_int_equal(AWAIT(t.rt, blz_udp_recv(&in, &t.b, buf, 100)), 1);
    free_two(&t);
}

ON_EACH_BACKEND(a_look_leaves_the_datagram_there)
{
    struct two t = new_two(backend);
    blz_msg in = {0}, out = {0};
    blz_addr from;
    char buf[8];

    assert_int_equal(AWAIT(t.rt, blz_udp_send_to(&out, &t.a, "look", 4, &t.at_b)), 4);
    assert_int_equal(AWAIT(t.rt, blz_udp_peek(&in, &t.b, buf, 2, &from)), 2);
    assert_int_equal(in.flags, BLZ_MSG_TRUNCATED);
    assert_true(blz_addr_equal(&from, &t.at_a));
    assert_int_equal(AWAIT(t.rt, blz_udp_recv(&in, &t.b, buf, 8)), 4);
    free_two(&t);
}

ON_EACH_BACKEND(a_connected_socket_hears_that_nobody_is_there)
{
    struct two t = new_two(backend);
    blz_msg in = {0}, out = {0};
    blz_handle receiving;
    blz_addr peer;
    char buf[8];
    int64_t error;

    assert_int_equal(blz_udp_peer_addr(&t.a, &peer), -ENOTCONN);
    assert_int_equal(AWAIT(t.rt, blz_udp_send(&out, &t.a, "x", 1)), -EDESTADDRREQ);
    assert_int_equal(blz_udp_connect(&t.a, &t.at_b), 0);
    assert_int_equal(blz_udp_peer_addr(&t.a, &peer), 0);
    assert_true(blz_addr_equal(&peer, &t.at_b));
    assert_int_equal(blz_udp_close(&t.b), 0);
    START(t.rt, &receiving, blz_udp_recv(&in, &t.a, buf, 8));
    assert_int_equal(AWAIT(t.rt, blz_udp_send(&out, &t.a, "x", 1)), 1);
    assert_int_equal(FINISH(t.rt, &receiving), -ECONNREFUSED);
    /* The socket lives on: the next receive waits. */
    START(t.rt, &receiving, blz_udp_recv(&in, &t.a, buf, 8));
    assert_int_equal(CANCEL(t.rt, &receiving), -ECANCELED);
    assert_int_equal(blz_udp_try_send(&t.a, "y", 1), 1);
    assert_int_equal(AWAIT(t.rt, blz_udp_ready(&in.io, &t.a, BLZ_READABLE)) & BLZ_READABLE,
                     BLZ_READABLE);
    assert_int_equal(blz_udp_get(&t.a, BLZ_OPT_ERROR, &error), 0);
    assert_int_equal(error, ECONNREFUSED);
    assert_int_equal(blz_udp_connect(&t.a, NULL), 0);
    assert_int_equal(AWAIT(t.rt, blz_udp_send(&out, &t.a, "x", 1)), -EDESTADDRREQ);
    free_two(&t);
}

ON_EACH_BACKEND(errors_are_reported)
{
    struct two t = new_two(backend);
    blz_msg msg = {0}, second = {0};
    blz_udp copy = t.a;
    blz_handle receiving;
    blz_addr none = {0};
    static char huge[70000];
    char buf[8];

    assert_int_equal(AWAIT(t.rt, blz_udp_send_to(&msg, &t.a, huge, 70000, &t.at_b)), -EMSGSIZE);
    assert_int_equal(blz_udp_connect(&t.a, &none), -EAFNOSUPPORT);
    START(t.rt, &receiving, blz_udp_recv(&msg, &t.a, buf, 8));
    assert_int_equal(blz_udp_close(&t.a), 0);
    assert_int_equal(FINISH(t.rt, &receiving), -EBADF);
    assert_int_equal(AWAIT(t.rt, blz_udp_recv(&msg, &copy, buf, 8)), -EBADF);
    assert_int_equal(AWAIT(t.rt, blz_udp_send_to(&second, &copy, "x", 1, &t.at_b)), -EBADF);
    assert_int_equal(blz_udp_close(&copy), -EBADF);
    free_two(&t);
}

ON_EACH_BACKEND(several_tasks_receive_from_one_socket)
{
    enum { MANY = 10 };
    struct two t = new_two(backend);
    static blz_msg in[MANY];
    blz_msg out = {0};
    blz_handle receiving[MANY];
    char bufs[MANY][4];

    memset(in, 0, sizeof in);
    for (int i = 0; i < MANY; i++)
        START(t.rt, &receiving[i], blz_udp_recv(&in[i], &t.b, bufs[i], 4));
    for (int i = 0; i < MANY; i++)
        assert_int_equal(AWAIT(t.rt, blz_udp_send_to(&out, &t.a, "ab", 2, &t.at_b)), 2);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(FINISH(t.rt, &receiving[i]), 2);
    free_two(&t);
}

ON_EACH_BACKEND(a_descriptor_of_elsewhere_is_used)
{
    struct two t = new_two(backend);
    blz_msg msg = {0};
    int fd = blz_udp_into_fd(&t.a), tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    blz_udp none;

    assert_true(fd >= 0);
    assert_int_equal(blz_udp_from_fd(&none, tcp, t.rt), -EINVAL);
    assert_int_equal(blz_udp_from_fd(&t.a, fd, t.rt), 0);
    assert_int_equal(AWAIT(t.rt, blz_udp_send_to(&msg, &t.a, "fd", 2, &t.at_b)), 2);
    close(tcp);
    free_two(&t);
}

/* ---- many at once ---- */

ON_EACH_BACKEND(a_batch_is_sent_and_received)
{
    enum { MANY = 40, ROOM = 50 };
    struct two t = new_two(backend);
    static blz_datagram sent[MANY], got[ROOM];
    static char out[MANY][8], in[ROOM][8];
    blz_msg msg = {0}, receive = {0};
    blz_handle receiving;
    int64_t done = 0, n;

    for (int i = 0; i < MANY; i++) {
        size_t len = (size_t)(i % 9);
        memset(out[i], 'a' + i % 26, 8);
        sent[i] = (blz_datagram){.data = out[i], .len = len, .addr = t.at_b};
    }
    for (int i = 0; i < ROOM; i++)
        got[i] = (blz_datagram){.data = in[i], .len = 4};
    START(t.rt, &receiving, blz_udp_recv_batch(&receive, &t.b, got, ROOM));
    assert_false(blz_handle_done(&receiving));
    while (done < MANY) {
        n = AWAIT(t.rt, blz_udp_send_batch(&msg, &t.a, sent + done, (size_t)(MANY - done)));
        assert_true(n > 0);
        done += n;
    }
    done = FINISH(t.rt, &receiving);
    while (done < MANY) {
        n = AWAIT(t.rt, blz_udp_recv_batch(&receive, &t.b, got + done, (size_t)(ROOM - done)));
        assert_true(n > 0);
        done += n;
    }
    assert_int_equal(done, MANY);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(got[i].received, i % 9 > 4 ? 4 : i % 9);
        assert_int_equal(got[i].flags, i % 9 > 4 ? BLZ_MSG_TRUNCATED : 0);
        assert_true(blz_addr_equal(&got[i].addr, &t.at_a));
        assert_memory_equal(in[i], out[i], got[i].received);
    }
    assert_int_equal(AWAIT(t.rt, blz_udp_recv_batch(&receive, &t.b, got, 0)), 0);
    free_two(&t);
}

ON_EACH_BACKEND(a_batch_can_be_cancelled_and_goes_where_the_socket_is_connected)
{
    struct two t = new_two(backend);
    char words[] = "onetwo";
    blz_datagram d[2] = {{.data = words, .len = 3}, {.data = words + 3, .len = 3}}, got;
    blz_msg msg = {0};
    blz_handle receiving;
    char buf[4];

    got = (blz_datagram){.data = buf, .len = 4};
    START(t.rt, &receiving, blz_udp_recv_batch(&msg, &t.b, &got, 1));
    assert_int_equal(CANCEL(t.rt, &receiving), -ECANCELED);
    assert_int_equal(AWAIT(t.rt, blz_udp_send_batch(&msg, &t.a, d, 2)), -EDESTADDRREQ);
    assert_int_equal(blz_udp_connect(&t.a, &t.at_b), 0);
    assert_int_equal(AWAIT(t.rt, blz_udp_send_batch(&msg, &t.a, d, 2)), 2);
    assert_int_equal(AWAIT(t.rt, blz_udp_recv_batch(&msg, &t.b, &got, 1)), 1);
    assert_memory_equal(buf, "one", 3);
    free_two(&t);
}

ON_EACH_BACKEND(segments_are_sent_as_datagrams_and_received_as_one)
{
    struct two t = new_two(backend);
    static char data[5000], in[65536];
    blz_msg out = {0}, msg = {0};
    uint64_t got = 0;

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i / 3);
    if (blz_udp_set(&t.b, BLZ_OPT_GRO, 1) == -ENOPROTOOPT) {
        free_two(&t);
        return;
    }
    assert_int_equal(AWAIT(t.rt, blz_udp_send_segments(&out, &t.a, data, 5000, 1200, &t.at_b)),
                     5000);
    while (got < 5000) {
        int64_t n = AWAIT(t.rt, blz_udp_recv(&msg, &t.b, in, sizeof in));
        assert_true(n > 0);
        assert_true(msg.segment == 1200 || (msg.segment == 0 && n <= 1200));
        assert_memory_equal(in, data + got, (size_t)n);
        got += (uint64_t)n;
    }
    assert_int_equal(got, 5000);
    /* one segment for the whole socket */
    assert_int_equal(blz_udp_set(&t.b, BLZ_OPT_GRO, 0), 0);
    assert_int_equal(blz_udp_set(&t.a, BLZ_OPT_GSO, 1000), 0);
    assert_int_equal(AWAIT(t.rt, blz_udp_send_to(&out, &t.a, data, 2500, &t.at_b)), 2500);
    assert_int_equal(AWAIT(t.rt, blz_udp_recv(&msg, &t.b, in, sizeof in)), 1000);
    assert_int_equal(AWAIT(t.rt, blz_udp_recv(&msg, &t.b, in, sizeof in)), 1000);
    assert_int_equal(AWAIT(t.rt, blz_udp_recv(&msg, &t.b, in, sizeof in)), 500);
    assert_int_equal(blz_udp_set(&t.a, BLZ_OPT_GSO, 65536), -EINVAL);
    free_two(&t);
}

/* ---- to many ---- */

ON_EACH_BACKEND(what_is_sent_to_a_group_comes_to_its_members)
{
    blz_rt *rt = turning_rt(backend);
    blz_addr group = blz_addr_v4((const uint8_t[4]){239, 7, 7, 7}, 0);
    blz_addr any = blz_addr_any(BLZ_ADDR_V4, 0), here, single;
    uint32_t lo = if_nametoindex("lo");
    blz_udp member, sender;
    blz_msg msg = {0};
    char buf[8];

    assert_int_equal(blz_udp_bind_with(&member, &any, &(blz_udp_options){.rt = rt}), 0);
    assert_int_equal(blz_udp_local_addr(&member, &here), 0);
    blz_addr_set_port(&group, blz_addr_port(&here));
    sender = bind_anywhere(rt, BLZ_ADDR_V4, &single);
    assert_int_equal(blz_udp_leave(&member, &group, lo), -EADDRNOTAVAIL);
    assert_int_equal(blz_udp_join(&member, &group, lo), 0);
    assert_int_equal(blz_udp_join(&member, &group, lo), -EADDRINUSE);
    assert_int_equal(blz_udp_join(&member, &single, lo), -EINVAL);
    assert_int_equal(blz_udp_set_multicast_interface(&sender, lo), 0);
    assert_int_equal(blz_udp_set(&sender, BLZ_OPT_MULTICAST_LOOP, 1), 0);
    assert_int_equal(blz_udp_set(&sender, BLZ_OPT_MULTICAST_TTL, 0), 0);
    assert_int_equal(blz_udp_set(&sender, BLZ_OPT_MULTICAST_TTL, 256), -EINVAL);
    assert_int_equal(AWAIT(rt, blz_udp_send_to(&msg, &sender, "all", 3, &group)), 3);
    assert_int_equal(AWAIT(rt, blz_udp_recv(&msg, &member, buf, 8)), 3);
    assert_int_equal(blz_udp_leave(&member, &group, lo), 0);
    blz_udp_close(&member);
    blz_udp_close(&sender);
    free_rt(rt);
}

static void groups_of_ipv6_are_joined_by_interface(void **state)
{
    blz_rt *rt = turning_rt("poll");
    blz_addr group, here, unix_addr;
    blz_udp udp = bind_anywhere(rt, BLZ_ADDR_V6, &here);
    uint32_t lo = if_nametoindex("lo");

    (void)state;
    assert_int_equal(blz_addr_parse_ip(&group, "ff01::77", 8, 9), 0);
    assert_int_equal(blz_udp_join(&udp, &group, lo), 0);
    assert_int_equal(blz_udp_leave(&udp, &group, lo), 0);
    assert_int_equal(blz_udp_set_multicast_interface(&udp, lo), 0);
    assert_int_equal(blz_addr_unix(&unix_addr, "/x"), 0);
    assert_int_equal(blz_udp_join(&udp, &unix_addr, lo), -EINVAL);
    blz_udp_close(&udp);
    free_rt(rt);
}

static void sending_to_everybody_must_be_allowed(void **state)
{
    blz_rt *rt = turning_rt("poll");
    blz_addr here, all = blz_addr_v4((const uint8_t[4]){255, 255, 255, 255}, 9);
    blz_udp udp = bind_anywhere(rt, BLZ_ADDR_V4, &here);
    blz_msg msg = {0};
    int64_t value;

    (void)state;
    assert_int_equal(AWAIT(rt, blz_udp_send_to(&msg, &udp, "x", 1, &all)), -EACCES);
    assert_int_equal(blz_udp_set(&udp, BLZ_OPT_BROADCAST, 1), 0);
    assert_int_equal(blz_udp_get(&udp, BLZ_OPT_BROADCAST, &value), 0);
    assert_int_equal(value, 1);
    assert_int_not_equal(AWAIT(rt, blz_udp_send_to(&msg, &udp, "x", 1, &all)), -EACCES);
    blz_udp_close(&udp);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_socket_is_bound_to_an_address_that_is_text),
        TEST(a_datagram_comes_with_its_address),
        TEST(ipv6_works_alike),
        TEST(empty_datagrams_are_datagrams),
        TEST(a_datagram_that_is_too_long_is_cut_off_and_says_so),
        TEST(short_datagrams_are_read_one_after_the_other),
        TEST(a_look_leaves_the_datagram_there),
        TEST(a_connected_socket_hears_that_nobody_is_there),
        TEST(errors_are_reported),
        TEST(several_tasks_receive_from_one_socket),
        TEST(a_descriptor_of_elsewhere_is_used),
        TEST(a_batch_is_sent_and_received),
        TEST(a_batch_can_be_cancelled_and_goes_where_the_socket_is_connected),
        TEST(segments_are_sent_as_datagrams_and_received_as_one),
        TEST(what_is_sent_to_a_group_comes_to_its_members),
        TEST(groups_of_ipv6_are_joined_by_interface),
        TEST(sending_to_everybody_must_be_allowed),
    };
    return RUN_TESTS(tests);
}
