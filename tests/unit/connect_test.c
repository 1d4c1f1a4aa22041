/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting to names, with resolvers of the test's own and sockets on loopback: some listen, some
 * refuse, some never answer (a listener whose queue is full). The harness sees to it that no
 * descriptor stays behind. Every test runs on every backend that there is.
 */
#include "harness.h"

#include "sched/rt.h"
#include "time/time.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_TARGETS = 120, NR_FILLERS = 4 };

/* ---- sockets ---- */

struct target {
    int fd;
    blz_addr addr;
    int fillers[NR_FILLERS];
};

static blz_addr local_addr(int fd)
{
    struct sockaddr_storage name;
    socklen_t len = sizeof name;
    blz_addr addr;

    assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &len), 0);
    assert_int_equal(blz_addr_from_sockaddr(&addr, (struct sockaddr *)&name, len), 0);
    return addr;
}

/* Bound to a port of its own, and nobody listens: it refuses. */
static struct target refusing(void)
{
    struct target t = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    blz_addr any = blz_addr_loopback(BLZ_ADDR_V4, 0);
    uint32_t len;
    const struct sockaddr *sa = blz_addr_sockaddr(&any, &len);

    assert_int_equal(bind(t.fd, sa, len), 0);
    t.addr = local_addr(t.fd);
    memset(t.fillers, -1, sizeof t.fillers);
    return t;
}

static struct target listening(int backlog)
{
    struct target t = refusing();

    assert_int_equal(listen(t.fd, backlog), 0);
    return t;
}

/* Its queue is full: it does not answer at all. */
static struct target silent(void)
{
    struct target t = listening(0);
    uint32_t len;
    const struct sockaddr *sa = blz_addr_sockaddr(&t.addr, &len);

    for (int i = 0; i < NR_FILLERS; i++) {
        t.fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int rc = connect(t.fillers[i], sa, len);
        assert_true(rc == 0 || errno == EINPROGRESS);
    }
    return t;
}

static void close_target(struct target *t)
{
    close(t->fd);
    for (int i = 0; i < NR_FILLERS; i++)
        if (t->fillers[i] >= 0)
            close(t->fillers[i]);
}

/* ---- a resolver ---- */

struct fake {
    struct event started, go;
    bool slow;
    int count;
    blz_addr addrs[MAX_TARGETS];
};

static int fake_resolve(blz_addrs *addrs, const char *host, const char *service,
                        const blz_lookup_hints *hints, void *arg)
{
    struct fake *fake = arg;
    int rc = 0;

    (void)hints;
    check(strcmp(host, "name") == 0 && strcmp(service, "service") == 0);
    event_post(&fake->started);
    if (fake->slow)
        event_wait(&fake->go, 1);
    for (int i = 0; rc == 0 && i < fake->count; i++)
        rc = blz_addrs_push(addrs, &fake->addrs[i]);
    return rc;
}

static struct fake resolving_to(const struct target *targets, int count)
{
    struct fake fake = {.started = EVENT_INIT, .go = EVENT_INIT, .count = count};

    for (int i = 0; i < count; i++)
        fake.addrs[i] = targets[i].addr;
    return fake;
}

/* ---- tasks ---- */

struct connects {
    BLZ_FRAME;
    const char *target;
    struct fake *fake;
    int64_t timeout_ns, stagger_ns;
    const blz_addr *bind; /* where it connects from */
    int64_t *took_ns;
    blz_addr *peer; /* whom it is connected to */
    int64_t rc, from_ns;
    blz_tcp conn;
    blz_tcp_connect_op op;
};

static blz_future *connect_it(struct connects *self)
{
    blz_tcp_connect_options options = {.timeout_ns = self->timeout_ns,
                                       .stagger_ns = self->stagger_ns,
                                       .tcp = {.bind = self->bind}};

    if (self->fake)
        options.hints.resolver = (blz_resolver){.resolve = fake_resolve, .arg = self->fake};
    return blz_tcp_connect_name(&self->op, &self->conn,
                                self->target ? self->target : "name:service", &options);
}

BLZ_ASYNC(connects)
{
    BLZ_BEGIN;
    self->from_ns = blz_now();
    BLZ_AWAIT(self->rc, connect_it(self));
    if (self->took_ns)
        *self->took_ns = blz_now() - self->from_ns;
    if (self->rc == 0 && self->peer)
        check(blz_tcp_peer_addr(&self->conn, self->peer) == 0);
    check(blz_tcp_close(&self->conn) == (self->rc == 0 ? 0 : -EBADF));
    BLZ_END(self->rc);
}

/* ---- on every backend ---- */

static const char *const backends[] = {"io_uring", "epoll", "poll"};
enum { NR_BACKENDS = 3 };

#define for_each_backend(rt, options)        \
    for (int b_ = 0; b_ < NR_BACKENDS; b_++) \
        for (blz_rt *rt = new_on(backends[b_], (options)); rt; free_rt(rt), rt = NULL)

/* NULL: this system does not have it. */
static blz_rt *new_on(const char *backend, blz_options options)
{
    blz_rt *rt;

    options.backend = backend;
    rt = new_rt(&options);
    if (strcmp(blz_rt_backend(rt), backend) == 0)
        return rt;
    free_rt(rt);
    return NULL;
}

static const blz_options one_worker = {.workers = 1},
                         virtual_time = {.workers = 1, .test_clock = true},
                         by_hand = {.embedded = true, .test_clock = true, .watchdog_ns = BLZ_NEVER};

static int64_t result_of(blz_handle *handle)
{
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

/* ---- by hand ---- */

/* Sleeps until there is something to do; the poll backend has no descriptor to wait for. */
static void wait_for_events(blz_rt *rt)
{
    struct pollfd fd = {.fd = blz_rt_fd(rt), .events = POLLIN};

    assert_true(poll(&fd, 1, fd.fd >= 0 ? -1 : 1) >= 0);
}

static void turn_until_done(blz_rt *rt, const blz_handle *handle)
{
    for (turn_all(rt); !blz_handle_done(handle); turn_all(rt))
        wait_for_events(rt);
}

static void turn_until_armed(blz_rt *rt, uint64_t timers)
{
    blz_stats stats;

    for (turn_all(rt); blz_rt_stats(rt, &stats), stats.total.timers_armed < timers; turn_all(rt))
        wait_for_events(rt);
}

/* ---- connecting ---- */

static void there_are_backends_to_test(void **state)
{
    int count = 0;

    (void)state;
    for_each_backend(rt, one_worker) count++;
    assert_in_range(count, 2, NR_BACKENDS); /* a kernel may refuse io_uring */
}

static void an_address_is_connected_to(void **state)
{
    struct target t = listening(10);
    char text[BLZ_ADDR_TEXT];
    blz_addr peer;

    (void)state;
    assert_true(blz_addr_format(&t.addr, text, sizeof text) > 0);
    for_each_backend(rt, one_worker)
    {
        assert_int_equal(BLZ_BLOCK_ON(rt, connects, .target = text, .peer = &peer), 0);
        assert_true(blz_addr_equal(&peer, &t.addr));
    }
    close_target(&t);
}

static void a_name_of_the_system_is_connected_to(void **state)
{
    struct target t = listening(10);
    char text[64];

    (void)state;
    snprintf(text, sizeof text, "localhost:%u", blz_addr_port(&t.addr));
    for_each_backend(rt, one_worker)
        assert_int_equal(BLZ_BLOCK_ON(rt, connects, .target = text, .timeout_ns = BLZ_HOUR), 0);
    close_target(&t);
}

static void it_may_connect_from_an_address_of_its_own(void **state)
{
    struct target t[2] = {refusing(), listening(10)};
    struct fake fake = resolving_to(t, 2);
    blz_addr bind;

    (void)state;
    assert_int_equal(blz_addr_parse(&bind, "127.0.0.9:0"), 0);
    for_each_backend(rt, one_worker)
    {
        struct sockaddr_storage name;
        socklen_t len = sizeof name;
        blz_addr from;
        assert_int_equal(BLZ_BLOCK_ON(rt, connects, .fake = &fake, .bind = &bind), 0);
        int fd = accept(t[1].fd, (struct sockaddr *)&name, &len);
        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(blz_addr_from_sockaddr(&from, (struct sockaddr *)&name, len), 0);
        assert_int_equal(blz_addr_set_port(&from, 0), 0);
        assert_true(blz_addr_equal(&from, &bind));
    }
    close_target(&t[0]);
    close_target(&t[1]);
}

/* With an hour between attempts: the next one does not wait for that. */
static void after_a_failure_the_next_address_is_tried_at_once(void **state)
{
    struct target t[3] = {refusing(), refusing(), listening(10)};
    struct fake fake = resolving_to(t, 3);
    blz_addr peer;

    (void)state;
    for_each_backend(rt, one_worker)
    {
        assert_int_equal(BLZ_BLOCK_ON(rt, connects, .fake = &fake, .stagger_ns = BLZ_HOUR,
                                      .peer = &peer),
                         0);
        assert_true(blz_addr_equal(&peer, &t[2].addr));
    }
    for (int i = 0; i < 3; i++)
        close_target(&t[i]);
}

static void a_silent_address_is_overtaken_after_a_while(void **state)
{
    struct target t[3] = {silent(), silent(), listening(10)};
    struct fake fake = resolving_to(t, 3);
    int64_t took_ns;
    blz_addr peer;

    (void)state;
    for_each_backend(rt, virtual_time)
    {
        assert_int_equal(BLZ_BLOCK_ON(rt, connects, .fake = &fake, .peer = &peer,
                                      .took_ns = &took_ns),
                         0);
        assert_true(blz_addr_equal(&peer, &t[2].addr));
        assert_true(took_ns >= 500 * BLZ_MSEC); /* the third begins after two quarters */
    }
    for (int i = 0; i < 3; i++)
        close_target(&t[i]);
}

/* Only the second waits for the first: on a clock that goes on only once. */
static void a_failure_while_others_are_silent_starts_the_next(void **state)
{
    enum { COUNT = 22 };
    struct target t[COUNT];
    struct fake fake;
    int64_t took_ns;
    blz_addr peer;

    (void)state;
    for (int i = 0; i < COUNT; i++)
        t[i] = i == 0 ? silent() : i < COUNT - 1 ? refusing() : listening(10);
    fake = resolving_to(t, COUNT);
    for_each_backend(rt, by_hand)
    {
        blz_handle handle;
        blz__rt_hold_clock(rt);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, connects, .fake = &fake, .stagger_ns = BLZ_HOUR,
                                      .peer = &peer, .took_ns = &took_ns),
                         0);
        turn_until_armed(rt, 1);
        assert_int_equal(blz_clock_advance(rt, BLZ_HOUR), 0);
        turn_until_done(rt, &handle);
        assert_int_equal(result_of(&handle), 0);
        assert_true(blz_addr_equal(&peer, &t[COUNT - 1].addr));
        assert_int_equal(took_ns, BLZ_HOUR);
    }
    for (int i = 0; i < COUNT; i++)
        close_target(&t[i]);
}

/* All at once: one connection is left, and the others are closed. */
static void of_many_connections_one_is_kept(void **state)
{
    enum { COUNT = 16 };
    struct target t[COUNT];
    struct fake fake;

    (void)state;
    for (int i = 0; i < COUNT; i++)
        t[i] = listening(100);
    fake = resolving_to(t, COUNT);
    for_each_backend(rt, one_worker)
    {
        int before = nr_fds();
        for (int i = 0; i < 20; i++)
            assert_int_equal(BLZ_BLOCK_ON(rt, connects, .fake = &fake, .stagger_ns = -1), 0);
        assert_true(nr_fds() <= before + 4); /* the driver's own, made when it was first needed */
    }
    for (int i = 0; i < COUNT; i++)
        close_target(&t[i]);
}

static void as_many_addresses_as_it_takes_are_tried(void **state)
{
    struct target t[MAX_TARGETS];
    struct fake fake;
    blz_addr peer;

    (void)state;
    for (int i = 0; i < MAX_TARGETS; i++)
        t[i] = i < MAX_TARGETS - 1 ? refusing() : listening(10);
    fake = resolving_to(t, MAX_TARGETS);
    for_each_backend(rt, one_worker)
    {
        assert_int_equal(BLZ_BLOCK_ON(rt, connects, .fake = &fake, .stagger_ns = BLZ_HOUR,
                                      .peer = &peer),
                         0);
        assert_true(blz_addr_equal(&peer, &t[MAX_TARGETS - 1].addr));
        assert_int_equal(BLZ_BLOCK_ON(rt, connects, .fake = &fake, .stagger_ns = -1), 0);
    }
    for (int i = 0; i < MAX_TARGETS; i++)
        close_target(&t[i]);
}

/* ---- failing ---- */

static void if_all_fail_the_telling_error_is_reported(void **state)
{
    struct target t = refusing();
    blz_addr nowhere, unix_addr;
    struct fake fake;

    (void)state;
    assert_int_equal(blz_addr_parse(&nowhere, "255.255.255.255:1"), 0); /* never to be reached */
    assert_int_equal(blz_addr_unix(&unix_addr, "/nowhere"), 0);
    fake = resolving_to(&t, 1);
    for_each_backend(rt, one_worker)
    {
        assert_int_equal(BLZ_BLOCK_ON(rt, connects, .fake = &fake), -ECONNREFUSED);
        fake.count = 3;
        fake.addrs[0] = nowhere;
        fake.addrs[1] = unix_addr;
        fake.addrs[2] = t.addr;
        assert_int_equal(BLZ_BLOCK_ON(rt, connects, .fake = &fake), -ECONNREFUSED);
        fake.count = 1;
        fake.addrs[0] = unix_addr;
        assert_int_equal(BLZ_BLOCK_ON(rt, connects, .fake = &fake), -EAFNOSUPPORT);
        fake = resolving_to(&t, 1);
    }
    close_target(&t);
}

static void what_is_not_a_target_is_refused(void **state)
{
    static const char *const wrong[] = {"",        ":",       ":80",     "a",          "a:",
                                        "[::1]",   "[::1]80", "[a]:80",  "::1:80",     "1.2.3.4",
                                        "a:b:c",   "a b:80",  "unix:/a", "unix:@a",    "127.1:80",
                                        "a:65536", "[]:80",   "a:-1",    "http://a:80"};

    (void)state;
    for_each_backend(rt, one_worker) for (size_t i = 0; i < sizeof wrong / sizeof wrong[0];
                                          i++) if (BLZ_BLOCK_ON(rt, connects, .target = wrong[i]) !=
                                                   -EINVAL)
        fail_msg("taken for a target: \"%s\"", wrong[i]);
}

static void silence_ends_with_the_time_limit(void **state)
{
    struct target t[2] = {silent(), silent()};
    struct fake fake = resolving_to(t, 2);
    int64_t took_ns;

    (void)state;
    for_each_backend(rt, virtual_time)
    {
        assert_int_equal(BLZ_BLOCK_ON(rt, connects, .fake = &fake, .timeout_ns = 10 * BLZ_SEC,
                                      .took_ns = &took_ns),
                         -ETIMEDOUT);
        assert_true(took_ns >= 10 * BLZ_SEC && took_ns < 11 * BLZ_SEC);
    }
    close_target(&t[0]);
    close_target(&t[1]);
}

static void a_slow_lookup_ends_with_the_time_limit(void **state)
{
    (void)state;
    for_each_backend(rt, one_worker)
    {
        struct fake fake = {.started = EVENT_INIT, .go = EVENT_INIT, .slow = true};
        assert_int_equal(BLZ_BLOCK_ON(rt, connects, .fake = &fake, .timeout_ns = BLZ_MSEC),
                         -ETIMEDOUT);
        event_post(&fake.go);
        assert_int_equal(blz_rt_shutdown(rt, BLZ_NEVER), 0); /* the resolver has let go of `fake` */
    }
}

/* ---- cancelling ---- */

static void it_can_be_cancelled_before_it_begins(void **state)
{
    (void)state;
    for_each_backend(rt, ((blz_options){.embedded = true, .watchdog_ns = BLZ_NEVER}))
    {
        blz_handle handle;
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, connects, .target = "127.0.0.1:1"), 0);
        blz_handle_cancel(&handle);
        turn_all(rt);
        assert_int_equal(result_of(&handle), -ECANCELED);
    }
}

static void it_can_be_cancelled_during_the_lookup(void **state)
{
    (void)state;
    for_each_backend(rt, one_worker)
    {
        struct fake fake = {.started = EVENT_INIT, .go = EVENT_INIT, .slow = true};
        blz_handle handle;
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, connects, .fake = &fake), 0);
        event_wait(&fake.started, 1);
        blz_handle_cancel(&handle);
        assert_int_equal(result_of(&handle), -ECANCELED);
        event_post(&fake.go);
        assert_int_equal(blz_rt_shutdown(rt, BLZ_NEVER), 0);
    }
}

static void it_can_be_cancelled_while_it_connects(void **state)
{
    struct target t = silent();
    char text[BLZ_ADDR_TEXT];

    (void)state;
    assert_true(blz_addr_format(&t.addr, text, sizeof text) > 0);
    for_each_backend(rt, ((blz_options){.embedded = true, .watchdog_ns = BLZ_NEVER}))
    {
        blz_handle handle;
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, connects, .target = text), 0);
        turn_all(rt); /* an address needs no lookup: the attempt is under way */
        assert_false(blz_handle_done(&handle));
        blz_handle_cancel(&handle);
        turn_until_done(rt, &handle);
        assert_int_equal(result_of(&handle), -ECANCELED);
    }
    close_target(&t);
}

/* The addresses are there, but the task has not looked at them yet. */
static void it_can_be_cancelled_between_lookup_and_attempt(void **state)
{
    struct target t = silent();
    struct fake fake; /* the lookup may end after the task, but not after its runtime */

    (void)state;
    for_each_backend(rt, ((blz_options){.embedded = true, .watchdog_ns = BLZ_NEVER}))
    {
        blz_handle handle;
        fake = resolving_to(&t, 1);
        fake.slow = true;
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, connects, .fake = &fake), 0);
        turn_all(rt);
        event_post(&fake.go);
        wait_for_events(rt); /* the pool has woken it */
        blz_handle_cancel(&handle);
        turn_until_done(rt, &handle);
        assert_int_equal(result_of(&handle), -ECANCELED);
    }
    close_target(&t);
}

/* At any moment: it ends as one thing or the other, and nothing stays behind. */
static void it_can_be_cancelled_at_any_moment(void **state)
{
    enum { COUNT = 4 };
    struct target t[COUNT] = {refusing(), silent(), listening(1000), listening(1000)};
    struct fake fake = resolving_to(t, COUNT);

    (void)state;
    allow_seconds(120);
    for_each_backend(rt, ((blz_options){.workers = 2}))
    {
        int64_t connected = 0, cancelled = 0;
        for (int64_t i = 0; i < scaled(150); i++) {
            blz_handle handle;
            assert_int_equal(BLZ_SPAWN_ON(rt, &handle, connects, .fake = &fake,
                                          .stagger_ns = i % 3 ? -1 : BLZ_MSEC),
                             0);
            for (int64_t spin = i % 50; spin > 0; spin--)
                sched_yield();
            blz_handle_cancel(&handle);
            int64_t rc = result_of(&handle);
            assert_true(rc == 0 || rc == -ECANCELED);
            connected += rc == 0;
            cancelled += rc < 0;
            for (int k = 2; k < COUNT; k++) /* so that their queues do not fill */
                for (int fd; fcntl(t[k].fd, F_SETFL, O_NONBLOCK) == 0 &&
                             (fd = accept(t[k].fd, NULL, NULL)) >= 0;)
                    close(fd);
        }
        assert_int_equal(connected + cancelled, scaled(150));
    }
    for (int i = 0; i < COUNT; i++)
        close_target(&t[i]);
}

static void a_shutdown_ends_it(void **state)
{
    struct target t[2] = {silent(), silent()};
    struct fake fake = resolving_to(t, 2);

    (void)state;
    for_each_backend(rt, one_worker)
    {
        blz_handle handle;
        int64_t seen = event_count(&fake.started);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, connects, .fake = &fake, .stagger_ns = -1), 0);
        event_wait(&fake.started, seen + 1);
        assert_int_equal(blz_rt_shutdown(rt, BLZ_NEVER), 0);
        assert_int_equal(result_of(&handle), -ECANCELED);
    }
    close_target(&t[0]);
    close_target(&t[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(there_are_backends_to_test),
        TEST(an_address_is_connected_to),
        TEST(a_name_of_the_system_is_connected_to),
        TEST(it_may_connect_from_an_address_of_its_own),
        TEST(after_a_failure_the_next_address_is_tried_at_once),
        TEST(a_silent_address_is_overtaken_after_a_while),
        TEST(a_failure_while_others_are_silent_starts_the_next),
        TEST(of_many_connections_one_is_kept),
        TEST(as_many_addresses_as_it_takes_are_tried),
        TEST(if_all_fail_the_telling_error_is_reported),
        TEST(what_is_not_a_target_is_refused),
        TEST(silence_ends_with_the_time_limit),
        TEST(a_slow_lookup_ends_with_the_time_limit),
        TEST(it_can_be_cancelled_before_it_begins),
        TEST(it_can_be_cancelled_during_the_lookup),
        TEST(it_can_be_cancelled_while_it_connects),
        TEST(it_can_be_cancelled_between_lookup_and_attempt),
        TEST(it_can_be_cancelled_at_any_moment),
        TEST(a_shutdown_ends_it),
    };
    return RUN_TESTS(tests);
}
