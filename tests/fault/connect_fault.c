/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting to a name when memory or descriptors run out: an error, and nothing stays behind. */
#include "harness.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NR_LISTENERS = 12 };

static int fds[NR_LISTENERS];
static blz_addr addrs_of[NR_LISTENERS];

static int resolve(blz_addrs *addrs, const char *host, const char *service,
                   const blz_lookup_hints *hints, void *arg)
{
    int rc = 0;

    (void)arg;
    (void)host;
    (void)service;
    (void)hints;
    for (int i = 0; rc == 0 && i < NR_LISTENERS; i++)
        rc = blz_addrs_push(addrs, &addrs_of[i]);
    return rc;
}

static void open_listeners(void)
{
    for (int i = 0; i < NR_LISTENERS; i++) {
        struct sockaddr_storage name;
        socklen_t name_len = sizeof name;
        blz_addr any = blz_addr_loopback(BLZ_ADDR_V4, 0);
        uint32_t len;
        const struct sockaddr *sa = blz_addr_sockaddr(&any, &len);

        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(fds[i], sa, len), 0);
        assert_int_equal(listen(fds[i], 1000), 0);
        assert_int_equal(getsockname(fds[i], (struct sockaddr *)&name, &name_len), 0);
        assert_int_equal(blz_addr_from_sockaddr(&addrs_of[i], (struct sockaddr *)&name, name_len),
                         0);
    }
}

static void close_listeners(void)
{
    for (int i = 0; i < NR_LISTENERS; i++)
        close(fds[i]);
}

struct connects {
    BLZ_FRAME;
    int64_t rc;
    blz_tcp conn;
    blz_tcp_connect_op op;
};

BLZ_ASYNC(connects)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_tcp_connect_name(&self->op, &self->conn, "name:service",
                                             &(blz_tcp_connect_options){
                                                 .timeout_ns = 20 * BLZ_SEC,
                                                 .stagger_ns = -1,
                                                 .hints = {.resolver = {.resolve = resolve}}}));
    check(blz_tcp_close(&self->conn) == (self->rc == 0 ? 0 : -EBADF));
    BLZ_END(self->rc);
}

/* Repeats it with the first allocation failing, then the second, until none fails. */
static void connecting_without_memory(void **state)
{
    bool failed = true;

    (void)state;
    open_listeners();
    for (int n = 1; failed; n++) {
        blz_rt *rt = new_rt(&(blz_options){.workers = 1});
        assert_int_equal(BLZ_BLOCK_ON(rt, connects), 0); /* all is set up */
        memory_fail_at(the_memory(), n, true);
        int64_t rc = BLZ_BLOCK_ON(rt, connects);
        failed = the_memory()->failed;
        memory_fail_at(the_memory(), 0, false);
        free_rt(rt);
        assert_true(rc == 0 || rc == -ENOMEM);
        assert_true(rc == 0 || failed);
        assert_int_equal(memory_blocks(the_memory()), 0);
        assert_true(failed || n > 4);
    }
    close_listeners();
}

/* With room for ever more descriptors, from none to enough. */
static void connecting_without_descriptors(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    struct rlimit before, limit;
    int free_fd, failures = 0;

    (void)state;
    open_listeners();
    assert_int_equal(BLZ_BLOCK_ON(rt, connects), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    free_fd = dup(0);
    close(free_fd);
    for (int room = 0; room <= NR_LISTENERS; room++) {
        limit = before;
        limit.rlim_cur = (rlim_t)(free_fd + room);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        int64_t rc = BLZ_BLOCK_ON(rt, connects);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_true(rc == 0 || rc == -EMFILE);
        failures += rc < 0;
    }
    assert_in_range(failures, 1, NR_LISTENERS);
    free_rt(rt);
    close_listeners();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(connecting_without_memory),
        TEST(connecting_without_descriptors),
    };
    return RUN_TESTS(tests);
}
