/* SPDX-License-Identifier: Apache-2.0 */
/* Name lookups when memory runs out, at every place, and when no thread can be started. */
#include "harness.h"

#include "faulty.h"

static int resolve(blz_addrs *addrs, const char *host, const char *service,
                   const blz_lookup_hints *hints, void *arg)
{
    blz_addr addr = blz_addr_loopback(BLZ_ADDR_V6, 0);
    int rc = 0;

    (void)arg;
    (void)host;
    (void)service;
    (void)hints;
    for (int i = 0; rc == 0 && i < 20; i++)
        rc = blz_addrs_push(addrs, &addr);
    return rc;
}

struct looks {
    BLZ_FRAME;
    const char *host;
    int64_t rc;
    blz_dns dns;
    blz_addrs addrs;
};

BLZ_ASYNC(looks)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_lookup(&self->dns, &self->addrs, self->host, "80",
                                   &(blz_lookup_hints){.resolver = {.resolve = resolve}}));
    check(self->rc > 0 ? self->addrs.count == (size_t)self->rc : self->addrs.count == 0);
    if (self->rc > 0)
        (void)blz_addrs_interleave(&self->addrs, BLZ_ADDR_V6);
    blz_addrs_free(&self->addrs);
    BLZ_END(self->rc);
}

/* Repeats the lookup with the first allocation failing, then the second, until none fails. */
static int fail_everywhere(const char *host, int64_t found, bool all)
{
    for (int n = 1;; n++) {
        blz_rt *rt = new_rt(&(blz_options){.workers = 1});
        assert_int_equal(BLZ_BLOCK_ON(rt, looks, .host = host), found); /* all is set up */
        memory_fail_at(the_memory(), n, all);
        int64_t rc = BLZ_BLOCK_ON(rt, looks, .host = host);
        bool failed = the_memory()->failed;
        memory_fail_at(the_memory(), 0, false);
        free_rt(rt);
        assert_true(rc == found || rc == -ENOMEM);
        assert_int_equal(memory_blocks(the_memory()), 0);
        if (!failed)
            return n;
    }
}

static void a_lookup_without_memory(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++) {
        assert_true(fail_everywhere("a.name", 20, all) > 4);
        assert_true(fail_everywhere("::1", 1, all) > 1);
    }
}

static void a_lookup_without_a_thread(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, looks, .host = "::1"), 1); /* the workers have started */
    fail_call(FAULTY_THREAD_START, 1, true, EAGAIN);
    assert_int_equal(BLZ_BLOCK_ON(rt, looks, .host = "a.name"), -EAGAIN);
    assert_true(stop_failing(FAULTY_THREAD_START));
    assert_int_equal(BLZ_BLOCK_ON(rt, looks, .host = "a.name"), 20);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_lookup_without_memory),
        TEST(a_lookup_without_a_thread),
    };
    return RUN_TESTS(tests);
}
