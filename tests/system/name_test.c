/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: system/name.h. No case needs a network. */
#include "conform.h"

#include "system/name.h"

#include <string.h>

struct found {
    blz_addr addrs[16];
    int count;
    int rc; /* what the callback gives */
};

static int note(const blz_addr *addr, void *arg)
{
    struct found *found = arg;

    if (found->count < 16)
        found->addrs[found->count] = *addr;
    found->count++;
    return found->rc;
}

static int resolve(struct found *found, struct blz__name_query query)
{
    *found = (struct found){.rc = found->rc};
    return blz__name_resolve(&query, note, found);
}

static void a_numeric_address_is_itself(void **state)
{
    static const uint8_t ip[4] = {192, 0, 2, 1}, ip6[16] = {0x20, 1, 0xd, 0xb8, [15] = 1};
    blz_addr v4 = blz_addr_v4(ip, 0), v6 = blz_addr_v6(ip6, 0, 0);
    struct found found = {.rc = 0};

    (void)state;
    assert_int_equal(resolve(&found, (struct blz__name_query){.host = "192.0.2.1"}), 0);
    assert_int_equal(found.count, 1);
    assert_true(blz_addr_equal(&found.addrs[0], &v4));
    assert_int_equal(resolve(&found, (struct blz__name_query){.host = "2001:db8::1"}), 0);
    assert_int_equal(found.count, 1);
    assert_true(blz_addr_equal(&found.addrs[0], &v6));
}

static void localhost_is_a_loopback_address_of_the_family(void **state)
{
    struct found found = {.rc = 0};

    (void)state;
    assert_int_equal(resolve(&found,
                             (struct blz__name_query){.host = "localhost", .family = BLZ_ADDR_V4}),
                     0);
    assert_true(found.count >= 1);
    for (int i = 0; i < found.count && i < 16; i++) {
        assert_int_equal(blz_addr_family(&found.addrs[i]), BLZ_ADDR_V4);
        assert_true(blz_addr_is_loopback(&found.addrs[i]));
        assert_int_equal(blz_addr_port(&found.addrs[i]), 0);
    }
}

static void a_service_is_the_port_of_each_address(void **state)
{
    struct found found = {.rc = 0};

    (void)state;
    assert_int_equal(resolve(&found,
                             (struct blz__name_query){.host = "127.0.0.1", .service = "8080"}),
                     0);
    assert_int_equal(found.count, 1);
    assert_int_equal(blz_addr_port(&found.addrs[0]), 8080);
}

static void a_lookup_for_datagrams_gives_each_address_once(void **state)
{
    struct found found = {.rc = 0};

    (void)state;
    assert_int_equal(resolve(&found, (struct blz__name_query){.host = "127.0.0.1",
                                                              .service = "53",
                                                              .datagram = true}),
                     0);
    assert_int_equal(found.count, 1);
}

static void an_unknown_service_is_told(void **state)
{
    struct found found = {.rc = 0};
    int rc = resolve(&found,
                     (struct blz__name_query){.host = "127.0.0.1", .service = "blitz-no-service"});

    (void)state;
    assert_true(rc == -EPROTONOSUPPORT || rc == -ENONET);
    assert_int_equal(found.count, 0);
}

/* RFC 6761: no such name is ever there. Without a network there may be no server to say so. */
static void an_unknown_host_is_told(void **state)
{
    struct found found = {.rc = 0};
    int rc = resolve(&found, (struct blz__name_query){.host = "no-such-host.invalid"});

    (void)state;
    assert_true(rc == -ENONET || rc == -EAGAIN || rc == -EREMOTEIO || rc == -ENODATA);
    assert_int_equal(found.count, 0);
}

static void an_address_of_another_family_is_refused(void **state)
{
    struct found found = {.rc = 0};
    int rc = resolve(&found, (struct blz__name_query){.host = "::1", .family = BLZ_ADDR_V4});

    (void)state;
    assert_true(rc == -EAFNOSUPPORT || rc == -ENODATA || rc == -ENONET);
    assert_int_equal(found.count, 0);
}

static void what_the_callback_says_ends_the_lookup(void **state)
{
    struct found found = {.rc = -ENOSPC};

    (void)state;
    assert_int_equal(resolve(&found, (struct blz__name_query){.host = "127.0.0.1"}), -ENOSPC);
    assert_int_equal(found.count, 1);
}

static void an_interface_that_is_there_has_a_number(void **state)
{
    static const char *const loopbacks[] = {"lo", "lo0"};
    int64_t number = -ENODEV;

    (void)state;
    for (int i = 0; i < 2 && number < 0; i++)
        number = blz__name_interface(loopbacks[i], strlen(loopbacks[i]));
    if (number == -ENODEV)
        skip();
    assert_true(number >= 1);
}

static void the_name_of_an_interface_ends_where_it_says(void **state)
{
    (void)state;
    assert_int_equal(blz__name_interface("lo-and-more", 2), blz__name_interface("lo", 2));
}

static void an_interface_that_is_not_there_has_none(void **state)
{
    (void)state;
    assert_int_equal(blz__name_interface("blitz-none", 10), -ENODEV);
    assert_int_equal(blz__name_interface("", 0), -ENODEV);
    assert_int_equal(blz__name_interface("a-name-that-is-far-too-long-for-one", 35), -ENODEV);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_numeric_address_is_itself),
        TEST(localhost_is_a_loopback_address_of_the_family),
        TEST(a_service_is_the_port_of_each_address),
        TEST(a_lookup_for_datagrams_gives_each_address_once),
        TEST(an_unknown_service_is_told),
        TEST(an_unknown_host_is_told),
        TEST(an_address_of_another_family_is_refused),
        TEST(what_the_callback_says_ends_the_lookup),
        TEST(an_interface_that_is_there_has_a_number),
        TEST(the_name_of_an_interface_ends_where_it_says),
        TEST(an_interface_that_is_not_there_has_none),
    };

    return RUN_TESTS(tests);
}
