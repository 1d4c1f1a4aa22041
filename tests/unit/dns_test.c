/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Name lookups: addresses without the pool, names through resolvers of the test's own (slow ones,
 * failing ones, generous ones), hostile names, cancellation. Nothing here needs a network.
 */
#include "addr_numbers.h"

#include "blocking/blocking.h"
#include "net/net.h"

#include <stdlib.h>
#include <string.h>

/* ---- a resolver ---- */

struct fake {
    struct event started, go; /* it begins; it may go on, if `slow` */
    bool slow;
    bool shared; /* several lookups use it at once: it takes no notes */
    int error;
    int v4, v6; /* how many addresses it finds, in turn */
    char host[300], service[100];
    int family;
};

static int fake_resolve(blz_addrs *addrs, const char *host, const char *service,
                        const blz_lookup_hints *hints, void *arg)
{
    struct fake *fake = arg;
    int rc = 0;

    if (!fake->shared) {
        strcpy(fake->host, host);
        strcpy(fake->service, service ? service : "(none)");
        fake->family = hints->family;
    }
    event_post(&fake->started);
    if (fake->slow)
        event_wait(&fake->go, 1);
    for (int i = 0; rc == 0 && (i < fake->v6 || i < fake->v4); i++) {
        blz_addr v6 = numbered(BLZ_ADDR_V6, i), v4 = numbered(BLZ_ADDR_V4, i);
        if (i < fake->v6)
            rc = blz_addrs_push(addrs, &v6);
        if (rc == 0 && i < fake->v4)
            rc = blz_addrs_push(addrs, &v4);
    }
    return fake->error ? fake->error : rc;
}

#define FAKE(...)                                            \
    {                                                        \
        .started = EVENT_INIT, .go = EVENT_INIT, __VA_ARGS__ \
    }

static blz_lookup_hints asking(struct fake *fake)
{
    return (blz_lookup_hints){.resolver = {.resolve = fake_resolve, .arg = fake}};
}

/* ---- tasks ---- */

struct looks {
    BLZ_FRAME;
    const char *host, *service;
    size_t host_len; /* 0: the host ends at its NUL */
    blz_lookup_hints hints;
    int64_t limit_ns;
    int64_t rc;
    blz_dns dns;
    blz_addrs addrs;
    blz_addrs *keep; /* gets the list; NULL: it is freed */
    blz_timeout limit;
};

static blz_future *look(struct looks *self)
{
    if (self->host_len > 0)
        return blz_lookup_n(&self->dns, &self->addrs, self->host, self->host_len, self->service,
                            self->service ? strlen(self->service) : 0, &self->hints);
    return blz_lookup(&self->dns, &self->addrs, self->host, self->service, &self->hints);
}

BLZ_ASYNC(looks)
{
    BLZ_BEGIN;
    if (self->limit_ns > 0)
        BLZ_AWAIT(self->rc, blz_with_timeout(&self->limit, self->limit_ns, look(self)));
    else
        BLZ_AWAIT(self->rc, look(self));
    check(self->rc > 0 ? (size_t)self->rc == self->addrs.count : self->addrs.count == 0);
    if (self->keep)
        *self->keep = self->addrs;
    else
        blz_addrs_free(&self->addrs);
    BLZ_END(self->rc);
}

static int64_t result_of(blz_handle *handle)
{
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

static const char *text_of(const blz_addr *addr)
{
    static char text[BLZ_ADDR_TEXT];

    assert_true(blz_addr_format(addr, text, sizeof text) > 0);
    return text;
}

static uint64_t pool_jobs(blz_rt *rt)
{
    blz__blocking_counts counts;

    blz__blocking_count(rt, &counts);
    return counts.jobs;
}

/* ---- addresses ---- */

static void addresses_are_answered_without_the_pool(void **state)
{
    static const struct {
        const char *host, *service, *expected;
    } cases[] = {
        {"127.0.0.1", "80", "127.0.0.1:80"},           {"::1", "65535", "[::1]:65535"},
        {"fe80::1%7", "1", "[fe80::1%7]:1"},           {"10.0.0.1", NULL, "10.0.0.1:0"},
        {"::ffff:1.2.3.4", "0", "[::ffff:1.2.3.4]:0"},
    };
    blz_rt *rt = new_embedded_rt();
    struct fake fake = FAKE(.error = -EBUSY);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        blz_handle handle;
        blz_addrs addrs;
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, looks, .host = cases[i].host,
                                      .service = cases[i].service, .hints = asking(&fake),
                                      .keep = &addrs),
                         0);
        assert_int_equal(turn_all(rt), 1);
        assert_int_equal(result_of(&handle), 1);
        assert_string_equal(text_of(&addrs.items[0]), cases[i].expected);
        blz_addrs_free(&addrs);
    }
    assert_int_equal(pool_jobs(rt), 0);
    assert_int_equal(event_count(&fake.started), 0);
    free_rt(rt);
}

static int64_t look_up(blz_rt *rt, const char *host, size_t len, const char *service,
                       blz_lookup_hints hints)
{
    return BLZ_BLOCK_ON(rt, looks, .host = host, .host_len = len, .service = service,
                        .hints = hints);
}

static void an_address_of_the_wrong_family_is_refused(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_lookup_hints v4 = {.family = BLZ_ADDR_V4}, v6 = {.family = BLZ_ADDR_V6};

    (void)state;
    assert_int_equal(look_up(rt, "::1", 0, "1", v4), -EAFNOSUPPORT);
    assert_int_equal(look_up(rt, "::1", 0, "1", v6), 1);
    assert_int_equal(look_up(rt, "1.2.3.4", 0, "1", v6), -EAFNOSUPPORT);
    assert_int_equal(look_up(rt, "1.2.3.4", 0, "1", v4), 1);
    assert_int_equal(look_up(rt, "1.2.3.4", 0, "1", (blz_lookup_hints){.family = 9}), -EINVAL);
    assert_int_equal(look_up(rt, "fe80::1%nosuch0", 0, "1", v6), -ENODEV);
    free_rt(rt);
}

/* ---- names ---- */

static void a_name_is_looked_up_and_gets_its_port(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    struct fake fake = FAKE(.v4 = 2, .v6 = 1);
    blz_addrs addrs;

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, looks, .host = "www.Example.org", .service = "443",
                                  .hints = asking(&fake), .keep = &addrs),
                     3);
    free_rt(rt); /* the list outlives it */
    assert_string_equal(fake.host, "www.Example.org");
    assert_string_equal(fake.service, "(none)");
    assert_string_equal(text_of(&addrs.items[0]), "[a00::]:443");
    assert_string_equal(text_of(&addrs.items[1]), "10.0.0.0:443");
    assert_string_equal(text_of(&addrs.items[2]), "10.0.0.1:443");
    blz_addrs_free(&addrs);
    blz_addrs_free(&addrs);
}

static void a_service_with_a_name_is_the_resolvers_business(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    struct fake fake = FAKE(.v4 = 1);
    blz_lookup_hints hints = asking(&fake);

    (void)state;
    hints.family = BLZ_ADDR_V4;
    assert_int_equal(look_up(rt, "a", 0, "https", hints), 1);
    assert_string_equal(fake.service, "https");
    assert_int_equal(fake.family, BLZ_ADDR_V4);
    assert_int_equal(look_up(rt, "1.2.3.4", 0, "914c-g", hints), 1); /* an address, too */
    assert_string_equal(fake.host, "1.2.3.4");
    free_rt(rt);
}

static void the_texts_need_no_end(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    struct fake fake = FAKE(.v4 = 1);
    char *host = malloc(3);

    (void)state;
    memcpy(host, "abc", 3);
    assert_int_equal(look_up(rt, host, 3, NULL, asking(&fake)), 1);
    assert_string_equal(fake.host, "abc");
    free(host);
    free_rt(rt);
}

static void errors_of_the_resolver_come_through(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    struct fake fake = FAKE(.v4 = 5, .error = -EAGAIN);

    (void)state;
    assert_int_equal(look_up(rt, "a.b", 0, "1", asking(&fake)), -EAGAIN); /* and no address */
    fake.error = 0;
    fake.v4 = 0;
    assert_int_equal(look_up(rt, "a.b", 0, "1", asking(&fake)), -ENODATA);
    free_rt(rt);
}

static void as_many_addresses_as_there_are(void **state)
{
    enum { MANY = 20000 };
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    struct fake fake = FAKE(.v4 = MANY, .v6 = MANY);
    blz_addrs addrs;

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, looks, .host = "many", .service = "7", .hints = asking(&fake),
                                  .keep = &addrs),
                     2 * MANY);
    for (int i = 0; i < 2 * MANY; i++) {
        blz_addr expected = numbered(i % 2 ? BLZ_ADDR_V4 : BLZ_ADDR_V6, i / 2);
        blz_addr_set_port(&expected, 7);
        assert_true(blz_addr_equal(&addrs.items[i], &expected));
    }
    blz_addrs_free(&addrs);
    free_rt(rt);
}

/* ---- hostile names ---- */

/* "aaa.aaa.", labels of `label` letters, `len` in all; NUL at the end. */
static char *long_name(size_t label, size_t len)
{
    static char name[1000];

    for (size_t i = 0; i < len; i++)
        name[i] = i % (label + 1) == label ? '.' : 'a';
    name[len] = '\0';
    return name;
}

static void a_name_is_never_cut_off(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    struct fake fake = FAKE(.v4 = 1);
    blz_lookup_hints hints = asking(&fake);
    char *name = long_name(61, 253);

    (void)state;
    assert_int_equal(look_up(rt, name, 0, "1", hints), 1);
    assert_string_equal(fake.host, name);
    name[252] = 'a';
    name[253] = '.'; /* the root does not count */
    name[254] = '\0';
    assert_int_equal(look_up(rt, name, 0, "1", hints), 1);
    assert_string_equal(fake.host, name);
    assert_int_equal(look_up(rt, long_name(61, 254), 0, "1", hints), -ENAMETOOLONG);
    assert_int_equal(look_up(rt, long_name(61, 256), 0, "1", hints), -ENAMETOOLONG);
    assert_int_equal(look_up(rt, long_name(61, 999), 0, "1", hints), -ENAMETOOLONG);
    assert_int_equal(look_up(rt, long_name(63, 127), 0, "1", hints), 1);
    assert_int_equal(look_up(rt, long_name(64, 100), 0, "1", hints), -ENAMETOOLONG);
    assert_int_equal(look_up(rt, long_name(200, 200), 0, "1", hints), -ENAMETOOLONG);
    assert_int_equal(event_count(&fake.started), 3);
    free_rt(rt);
}

static void what_is_no_name_is_asked_of_nobody(void **state)
{
    static const char *const wrong[] = {
        "",
        ".",
        "..",
        ".a",
        "a..b",
        "a..",
        " ",
        "a b",
        " a",
        "a ",
        "a\tb",
        "a\nb",
        "a\r",
        "a\x7f",
        "a\x01",
        "a/b",
        "a\\b",
        "a@b",
        "a#b",
        "a?b",
        "a%b",
        "a:b",
        "[::1]",
        "::1%",
        "::g",
        ":",
        "a,b",
        "a;b",
        "a'b",
        "a\"b",
        "a$b",
        "a&b",
        "a*b",
        "*",
        "a(b",
        "a<b",
        "a=b",
        "a|b",
        "a~b",
        "\xc3\xa4",
        "a\xff",
        ("b\xc3\xbc"
         "cher.example"),
        /* IPv4 addresses in disguise */
        "127.1",
        "0177.0.0.1",
        "0x7f.0.0.1",
        "0x7f000001",
        "2130706433",
        "1.2.3",
        "1.2.3.4.5",
        "1.2.3.256",
        "01.2.3.4",
        "1.2.3.4.",
        "127.0.0.0x1",
        "a.1",
        "example.0x",
        "example.0X1f.",
        "1",
        "0",
        "0x",
    };
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    struct fake fake = FAKE(.v4 = 1);

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (look_up(rt, wrong[i], 0, "1", asking(&fake)) != -EINVAL)
            fail_msg("taken for a name: \"%s\"", wrong[i]);
    assert_int_equal(look_up(rt, "a\0b", 3, "1", asking(&fake)), -EINVAL);
    assert_int_equal(look_up(rt, "127.0.0.1\0", 10, "1", asking(&fake)), -EINVAL);
    assert_int_equal(look_up(rt, "a\0", 2, "1", asking(&fake)), -EINVAL);
    assert_int_equal(event_count(&fake.started), 0);
    free_rt(rt);
}

static void names_of_all_sorts_are_asked_for(void **state)
{
    static const char *const right[] = {"a",
                                        "localhost",
                                        "a.b.c.",
                                        "_tcp.a",
                                        "xn--bcher-kva.example",
                                        "1a",
                                        "1.a",
                                        "4.3.2.1.in-addr.arpa",
                                        "a-b",
                                        "A.B",
                                        "0x7g",
                                        "x0",
                                        "127.0.0.1.a"};
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    struct fake fake = FAKE(.v4 = 1);

    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        assert_int_equal(look_up(rt, right[i], 0, NULL, asking(&fake)), 1);
        assert_string_equal(fake.host, right[i]);
    }
    free_rt(rt);
}

static void what_is_no_service_is_refused(void **state)
{
    static const char *const wrong[] = {"",
                                        " ",
                                        "80 ",
                                        " 80",
                                        "+80",
                                        "-",
                                        "-1",
                                        "080",
                                        "00",
                                        "65536",
                                        "99999999999999999999",
                                        "a b",
                                        "a/b",
                                        "a\n",
                                        "\xff",
                                        "0x50 ",
                                        "http:"};
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    struct fake fake = FAKE(.v4 = 1);

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (look_up(rt, "a", 0, wrong[i], asking(&fake)) != -EINVAL)
            fail_msg("taken for a service: \"%s\"", wrong[i]);
    assert_int_equal(event_count(&fake.started), 0);
    free_rt(rt);
}

/* ---- slow resolvers ---- */

static void a_cancelled_lookup_ends_while_the_resolver_goes_on(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    struct fake fake = FAKE(.slow = true, .v4 = 100);
    blz_handle handle;
    char *host = malloc(3);

    (void)state;
    strcpy(host, "ab");
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, looks, .host = host, .service = "1",
                                  .hints = asking(&fake)),
                     0);
    event_wait(&fake.started, 1);
    free(host); /* it has been copied */
    blz_handle_cancel(&handle);
    assert_int_equal(result_of(&handle), -ECANCELED); /* and the resolver is still there */
    event_post(&fake.go);
    free_rt(rt); /* waits for it, and everything has been given back */
}

static void a_lookup_can_be_limited(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    struct fake fake = FAKE(.slow = true, .v4 = 100);

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, looks, .host = "slow", .hints = asking(&fake),
                                  .limit_ns = BLZ_MSEC),
                     -ETIMEDOUT);
    event_post(&fake.go);
    free_rt(rt);
}

static void a_lookup_cancelled_before_it_begins_asks_nobody(void **state)
{
    blz_rt *rt = new_embedded_rt();
    struct fake fake = FAKE(.v4 = 1);
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, looks, .host = "a", .hints = asking(&fake)), 0);
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -ECANCELED);
    assert_int_equal(pool_jobs(rt), 0);
    free_rt(rt);
}

static void many_lookups_are_cancelled_at_once(void **state)
{
    enum { COUNT = 40 };
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    struct fake fake = FAKE(.slow = true, .shared = true, .v4 = 1);
    blz_handle handles[COUNT];

    (void)state;
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], looks, .host = "slow",
                                      .hints = asking(&fake)),
                         0);
    event_wait(&fake.started, 1);
    for (int i = 0; i < COUNT; i++)
        blz_handle_cancel(&handles[i]);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(result_of(&handles[i]), -ECANCELED);
    event_post(&fake.go);
    free_rt(rt);
}

static int quick_resolve(blz_addrs *addrs, const char *host, const char *service,
                         const blz_lookup_hints *hints, void *arg)
{
    blz_addr addr = blz_addr_loopback(BLZ_ADDR_V4, 0);

    (void)arg;
    (void)host;
    (void)service;
    (void)hints;
    return blz_addrs_push(addrs, &addr);
}

/* Results and cancellations meet: one of the two, and nothing is lost or freed twice. */
static void results_and_cancellations_race(void **state)
{
    enum { AT_ONCE = 16 };
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    blz_lookup_hints hints = {.resolver = {.resolve = quick_resolve}};
    int64_t found = 0, cancelled = 0;

    (void)state;
    for (int64_t round = scaled(500); round > 0; round--) {
        blz_handle handles[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++)
            assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], looks, .host = "a", .hints = hints), 0);
        for (int i = 0; i < AT_ONCE; i += 2)
            blz_handle_cancel(&handles[i]);
        for (int i = 0; i < AT_ONCE; i++) {
            int64_t rc = result_of(&handles[i]);
            assert_true(rc == 1 || (rc == -ECANCELED && i % 2 == 0));
            found += rc == 1;
            cancelled += rc < 0;
        }
    }
    assert_true(found >= AT_ONCE / 2 * scaled(500) && cancelled > 0);
    free_rt(rt);
}

/* ---- the system's resolver ---- */

static void the_system_knows_localhost(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_addrs addrs;
    int64_t rc;

    (void)state;
    rc = BLZ_BLOCK_ON(rt, looks, .host = "localhost", .service = "80", .keep = &addrs);
    assert_true(rc > 0);
    for (size_t i = 0; i < addrs.count; i++) {
        assert_true(blz_addr_is_loopback(&addrs.items[i]));
        assert_int_equal(blz_addr_port(&addrs.items[i]), 80);
    }
    blz_addrs_free(&addrs);
    assert_int_equal(look_up(rt, "127.0.0.1", 0, "no-such-service-at-all", (blz_lookup_hints){0}),
                     -EPROTONOSUPPORT);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(addresses_are_answered_without_the_pool),
        TEST(an_address_of_the_wrong_family_is_refused),
        TEST(a_name_is_looked_up_and_gets_its_port),
        TEST(a_service_with_a_name_is_the_resolvers_business),
        TEST(the_texts_need_no_end),
        TEST(errors_of_the_resolver_come_through),
        TEST(as_many_addresses_as_there_are),
        TEST(a_name_is_never_cut_off),
        TEST(what_is_no_name_is_asked_of_nobody),
        TEST(names_of_all_sorts_are_asked_for),
        TEST(what_is_no_service_is_refused),
        TEST(a_cancelled_lookup_ends_while_the_resolver_goes_on),
        TEST(a_lookup_can_be_limited),
        TEST(a_lookup_cancelled_before_it_begins_asks_nobody),
        TEST(many_lookups_are_cancelled_at_once),
        TEST(results_and_cancellations_race),
        TEST(the_system_knows_localhost),
    };
    return RUN_TESTS(tests);
}
