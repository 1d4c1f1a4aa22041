/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses: text to address and back, for all kinds; text that is none; parts, kinds, order,
 * hashes.
 */
#include "addr_text.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>

static void assert_text(const char *text, const char *expected)
{
    blz_addr addr = parsed(text), again;

    assert_string_equal(text_of(&addr), expected);
    again = parsed(expected);
    assert_true(blz_addr_equal(&addr, &again));
    assert_int_equal(parse_exactly(&again, text, strlen(text)), 0);
    assert_true(blz_addr_equal(&addr, &again));
}

/* ---- text ---- */

static void addresses_of_all_kinds_are_read_and_written(void **state)
{
    (void)state;
    assert_text("127.0.0.1:80", "127.0.0.1:80");
    assert_text("0.0.0.0:0", "0.0.0.0:0");
    assert_text("255.255.255.255:65535", "255.255.255.255:65535");
    assert_text("[::1]:80", "[::1]:80");
    assert_text("[::]:0", "[::]:0");
    assert_text(":8080", "[::]:8080");
    assert_text("[1:2:3:4:5:6:7:8]:1", "[1:2:3:4:5:6:7:8]:1");
    assert_text("[0001:0020:0300:4000::]:1", "[1:20:300:4000::]:1");
    assert_text("[ABCD:EF00::fFfF]:1", "[abcd:ef00::ffff]:1");
    assert_text("[::ffff:1.2.3.4]:5", "[::ffff:1.2.3.4]:5");
    assert_text("[::FFFF:102:304]:5", "[::ffff:1.2.3.4]:5");
    assert_text("[64:ff9b::1.2.3.4]:5", "[64:ff9b::102:304]:5");
    assert_text("[fe80::1%3]:80", "[fe80::1%3]:80");
    assert_text("[fe80::1%4294967295]:80", "[fe80::1%4294967295]:80");
    assert_text("unix:/run/app.sock", "unix:/run/app.sock");
    assert_text("unix:relative", "unix:relative");
    assert_text("unix:@app", "unix:@app");
    assert_text("unix:@", "unix:@");
    assert_text("unix:", "unix:");
    assert_text("unix:/tmp/\xc3\xa4", "unix:/tmp/\xc3\xa4");
}

/* RFC 5952, sections 4.2.2 and 4.2.3. */
static void the_longest_run_of_zeros_is_left_out(void **state)
{
    (void)state;
    assert_text("[1:0:2:3:4:5:6:7]:1", "[1:0:2:3:4:5:6:7]:1");
    assert_text("[1:0:0:2:3:4:5:6]:1", "[1::2:3:4:5:6]:1");
    assert_text("[1:0:0:2:0:0:3:4]:1", "[1::2:0:0:3:4]:1");
    assert_text("[1:0:0:2:0:0:0:4]:1", "[1:0:0:2::4]:1");
    assert_text("[0:0:1:0:0:0:0:0]:1", "[0:0:1::]:1");
    assert_text("[0:0:0:0:1:0:0:0]:1", "[::1:0:0:0]:1");
    assert_text("[1:2:3:4:5:6:7::]:1", "[1:2:3:4:5:6:7:0]:1");
    assert_text("[::2:3:4:5:6:7:8]:1", "[0:2:3:4:5:6:7:8]:1");
}

static void an_interface_may_be_named(void **state)
{
    char text[64], expected[64];
    unsigned index = if_nametoindex("lo");
    blz_addr addr;

    (void)state;
    if (index == 0)
        skip();
    addr = parsed("[fe80::1%lo]:80");
    assert_int_equal(blz_addr_scope_id(&addr), index);
    snprintf(expected, sizeof expected, "[fe80::1%%%u]:80", index);
    assert_string_equal(text_of(&addr), expected);
    assert_int_equal(blz_addr_parse(&addr, "[fe80::1%nosuch0]:80"), -ENODEV);
    assert_int_equal(blz_addr_parse(&addr, "[fe80::1%a-name-of-more-than-15]:80"), -ENODEV);
    snprintf(text, sizeof text, "fe80::1%%lo");
    assert_int_equal(blz_addr_parse_ip(&addr, text, strlen(text), 7), 0);
    assert_int_equal(blz_addr_scope_id(&addr), index);
}

static void bytes_that_do_not_print_are_escaped(void **state)
{
    static const char name[] = {'a', 0, '\n', '\\', 0x7f, 'z', '@', 0};
    blz_addr addr, again;

    (void)state;
    assert_int_equal(blz_addr_unix_abstract(&addr, name, sizeof name), 0);
    assert_string_equal(text_of(&addr), "unix:@a\\x00\\x0a\\x5c\\x7fz@\\x00");
    again = parsed(text_of(&addr));
    assert_true(blz_addr_equal(&addr, &again));
    assert_int_equal(blz_addr_unix(&addr, "@not abstract"), 0);
    assert_string_equal(text_of(&addr), "unix:\\x40not abstract");
    again = parsed(text_of(&addr));
    assert_true(blz_addr_equal(&addr, &again));
    assert_int_equal(parse_exactly(&again, "unix:@\0raw", 10), 0); /* raw bytes are fine too */
    assert_string_equal(text_of(&again), "unix:@\\x00raw");
}

static void what_is_not_an_address_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        ":",
        "::",
        "::1",
        "[::1]",
        "[::1]:",
        "[]:80",
        "[:80",
        "]:80",
        "[::1]80",
        "[::1]x:80",
        "[::1:80",
        "[[::1]]:80",
        "[127.0.0.1]:80",
        "::1:80",
        "1.2.3.4",
        "1.2.3.4:",
        "1.2.3:80",
        "1.2.3.4.5:80",
        "1.2.3.:80",
        ".1.2.3:80",
        "1..2.3:80",
        "256.0.0.1:80",
        "1.2.3.-4:80",
        "01.2.3.4:80",
        "1.2.3.04:80",
        "1.2.3.00:80",
        "0x7f.0.0.1:80",
        "0x7f000001:80",
        "2130706433:80",
        "127.1:80",
        "1.2.3.4 :80",
        " 1.2.3.4:80",
        "1.2.3.4:80 ",
        "1.2.3.4:+80",
        "1.2.3.4:-1",
        "1.2.3.4:080",
        "1.2.3.4:00",
        "1.2.3.4:65536",
        "1.2.3.4:99999999999999999999",
        "1.2.3.4:4294967376",
        "1.2.3.4:0x50",
        "1.2.3.4:80:80",
        "1.2.3.4:http",
        ":65536",
        ":x",
        ":-1",
        ": 80",
        "localhost:80",
        "*:80",
        "[1:2:3:4:5:6:7]:1",
        "[1:2:3:4:5:6:7:8:9]:1",
        "[1:2:3:4:5:6:7:8::]:1",
        "[::1:2:3:4:5:6:7:8]:1",
        "[1::2::3]:1",
        "[:::]:1",
        "[1:::2]:1",
        "[:1:2:3:4:5:6:7]:1",
        "[:1::]:1",
        "[1:]:1",
        "[::1:]:1",
        "[12345::]:1",
        "[00001::]:1",
        "[g::]:1",
        "[-1::]:1",
        "[0x1::]:1",
        "[::1.2.3]:1",
        "[::1.2.3.4.5]:1",
        "[::01.2.3.4]:1",
        "[::256.0.0.1]:1",
        "[1.2.3.4::]:1",
        "[::1.2.3.4:5]:1",
        "[1:2:3:4:5:6:7:1.2.3.4]:1",
        "[1:2:3:4:5:6:1.2.3.4:7]:1",
        "[::1%]:1",
        "[::1%0]:1",
        "[%1]:1",
        "[::1 ]:1",
        "[ ::1]:1",
        "Unix:/a",
        "unix",
        "UNIX:/a",
        "unix:/a\\",
        "unix:/a\\x",
        "unix:/a\\x0",
        "unix:/a\\xg0",
        "unix:/a\\n",
        "unix:/a\\X41",
        "unix:/a\\x00b",
        "unix:\\x00",
        "tcp:1.2.3.4:80",
    };
    blz_addr before, addr;

    (void)state;
    memset(&before, 0x5a, sizeof before);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        addr = before;
        if (parse_exactly(&addr, wrong[i], strlen(wrong[i])) != -EINVAL)
            fail_msg("taken for an address: \"%s\"", wrong[i]);
        assert_memory_equal(&addr, &before, sizeof addr); /* untouched */
    }
}

static void a_nul_inside_is_not_the_end(void **state)
{
    blz_addr addr;

    (void)state;
    assert_int_equal(parse_exactly(&addr, "1.2.3.4:80\0", 11), -EINVAL);
    assert_int_equal(parse_exactly(&addr, "1.2.3.4\0:80", 11), -EINVAL);
    assert_int_equal(parse_exactly(&addr, "[::1\0]:80", 9), -EINVAL);
    assert_int_equal(parse_exactly(&addr, "[::1%lo\0]:80", 12), -EINVAL);
    assert_int_equal(parse_exactly(&addr, "[::1%1\0]:80", 11), -EINVAL);
    assert_int_equal(parse_exactly(&addr, "unix:/a\0b", 9), -EINVAL);
    assert_int_equal(parse_exactly(&addr, "unix:/a\0", 8), -EINVAL);
}

static void an_ip_address_may_come_alone(void **state)
{
    static const char *const wrong[] = {"", "[::1]", "1.2.3.4:80", "::1%", "localhost", "1.2.3"};
    blz_addr addr, expected = parsed("10.0.0.1:53");
    char text[64];

    (void)state;
    assert_int_equal(blz_addr_parse_ip(&addr, "10.0.0.1", 8, 53), 0);
    assert_true(blz_addr_equal(&addr, &expected));
    assert_int_equal(blz_addr_format_ip(&addr, text, sizeof text), 8);
    assert_string_equal(text, "10.0.0.1");
    expected = parsed("[fe80::2%9]:53");
    assert_int_equal(blz_addr_parse_ip(&addr, "fe80::2%9", 9, 53), 0);
    assert_true(blz_addr_equal(&addr, &expected));
    assert_int_equal(blz_addr_format_ip(&addr, text, sizeof text), 9);
    assert_string_equal(text, "fe80::2%9");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(blz_addr_parse_ip(&addr, wrong[i], strlen(wrong[i]), 53), -EINVAL);
    addr = parsed("unix:/a");
    assert_int_equal(blz_addr_format_ip(&addr, text, sizeof text), -EAFNOSUPPORT);
    assert_string_equal(text, "");
}

static void text_that_does_not_fit_is_not_cut_off(void **state)
{
    blz_addr addr = parsed("[fe80::1%3]:80"), none = {.len = 0};
    char text[32];

    (void)state;
    for (size_t size = 1; size <= 14; size++) {
        memset(text, '#', sizeof text);
        assert_int_equal(blz_addr_format(&addr, text, size), -ENOSPC);
        assert_string_equal(text, "");
        assert_int_equal(text[size], '#');
    }
    text[0] = '#';
    assert_int_equal(blz_addr_format(&addr, text, 0), -ENOSPC);
    assert_int_equal(text[0], '#');
    assert_int_equal(blz_addr_format(&addr, text, 15), 14);
    assert_int_equal(blz_addr_format(&none, text, sizeof text), -EINVAL);
    assert_string_equal(text, "");
    assert_int_equal(blz_addr_format(&none, NULL, 0), -EINVAL);
}

/* ---- parts and kinds ---- */

static void parts_can_be_read_and_set(void **state)
{
    static const uint8_t ip4[4] = {1, 2, 3, 4}, ip6[16] = {0xfe, 0x80, [15] = 9};
    blz_addr v4 = blz_addr_v4(ip4, 80), v6 = blz_addr_v6(ip6, 443, 5), none = {.len = 0};
    blz_addr unix_addr = parsed("unix:/a");
    uint8_t ip[16];

    (void)state;
    assert_int_equal(blz_addr_family(&v4), BLZ_ADDR_V4);
    assert_int_equal(blz_addr_family(&v6), BLZ_ADDR_V6);
    assert_int_equal(blz_addr_family(&unix_addr), BLZ_ADDR_UNIX);
    assert_int_equal(blz_addr_family(&none), BLZ_ADDR_NONE);
    assert_int_equal(blz_addr_port(&v4), 80);
    assert_int_equal(blz_addr_port(&v6), 443);
    assert_int_equal(blz_addr_port(&unix_addr), 0);
    assert_int_equal(blz_addr_set_port(&v4, 65535), 0);
    assert_int_equal(blz_addr_set_port(&v6, 1), 0);
    assert_int_equal(blz_addr_set_port(&unix_addr, 1), -EAFNOSUPPORT);
    assert_int_equal(blz_addr_set_port(&none, 1), -EAFNOSUPPORT);
    assert_string_equal(text_of(&v4), "1.2.3.4:65535");
    assert_string_equal(text_of(&v6), "[fe80::9%5]:1");
    assert_int_equal(blz_addr_set_scope_id(&v6, 6), 0);
    assert_int_equal(blz_addr_set_flowinfo(&v6, 77), 0);
    assert_int_equal(blz_addr_scope_id(&v6), 6);
    assert_int_equal(blz_addr_flowinfo(&v6), 77);
    assert_int_equal(blz_addr_set_scope_id(&v4, 6), -EAFNOSUPPORT);
    assert_int_equal(blz_addr_set_flowinfo(&unix_addr, 6), -EAFNOSUPPORT);
    assert_int_equal(blz_addr_scope_id(&v4), 0);
    assert_int_equal(blz_addr_flowinfo(&v4), 0);
    assert_int_equal(blz_addr_ip(&v4, ip), 4);
    assert_memory_equal(ip, ip4, 4);
    assert_int_equal(blz_addr_ip(&v6, ip), 16);
    assert_memory_equal(ip, ip6, 16);
    assert_int_equal(blz_addr_ip(&unix_addr, ip), 0);
    v4 = blz_addr_any(BLZ_ADDR_UNIX, 1);
    assert_int_equal(blz_addr_family(&v4), BLZ_ADDR_NONE);
}

static void kinds_are_recognised(void **state)
{
    static const struct {
        const char *text;
        bool loopback, multicast, unspecified, link_local;
    } cases[] = {
        {"127.0.0.1:1", true, false, false, false},
        {"127.255.0.9:1", true, false, false, false},
        {"128.0.0.1:1", false, false, false, false},
        {"[::1]:1", true, false, false, false},
        {"[::2]:1", false, false, false, false},
        {"[1::1]:1", false, false, false, false},
        {"[::ffff:127.0.0.1]:1", true, false, false, false},
        {"224.0.0.1:1", false, true, false, false},
        {"239.255.255.255:1", false, true, false, false},
        {"223.0.0.1:1", false, false, false, false},
        {"240.0.0.1:1", false, false, false, false},
        {"[ff02::1]:1", false, true, false, false},
        {"[::ffff:224.0.0.1]:1", false, true, false, false},
        {"0.0.0.0:1", false, false, true, false},
        {"0.0.0.1:1", false, false, false, false},
        {"[::]:1", false, false, true, false},
        {"[::ffff:0.0.0.0]:1", false, false, true, false},
        {"169.254.1.1:1", false, false, false, true},
        {"[fe80::1]:1", false, false, false, true},
        {"[febf::1]:1", false, false, false, true},
        {"[fec0::1]:1", false, false, false, false},
        {"unix:/a", false, false, false, false},
        {"unix:", false, false, false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        blz_addr addr = parsed(cases[i].text);
        assert_int_equal(blz_addr_is_loopback(&addr), cases[i].loopback);
        assert_int_equal(blz_addr_is_multicast(&addr), cases[i].multicast);
        assert_int_equal(blz_addr_is_unspecified(&addr), cases[i].unspecified);
        assert_int_equal(blz_addr_is_link_local(&addr), cases[i].link_local);
    }
}

static void mapped_addresses_are_converted(void **state)
{
    blz_addr v4 = parsed("1.2.3.4:80"), mapped = blz_addr_to_v4_mapped(&v4), back, other;

    (void)state;
    assert_string_equal(text_of(&mapped), "[::ffff:1.2.3.4]:80");
    assert_true(blz_addr_is_v4_mapped(&mapped));
    assert_false(blz_addr_is_v4_mapped(&v4));
    back = blz_addr_from_v4_mapped(&mapped);
    assert_true(blz_addr_equal(&back, &v4));
    other = parsed("[::fffe:1.2.3.4]:80");
    assert_false(blz_addr_is_v4_mapped(&other));
    back = blz_addr_from_v4_mapped(&other);
    assert_true(blz_addr_equal(&back, &other));
    other = parsed("unix:/a");
    back = blz_addr_to_v4_mapped(&other);
    assert_true(blz_addr_equal(&back, &other));
}

static void addresses_are_in_a_total_order(void **state)
{
    static const char *const sorted[] = {
        "0.0.0.0:0", "1.2.3.4:5", "1.2.3.4:256", "1.2.4.0:1", "255.0.0.1:1",  "[::]:0",  "[::1]:1",
        "[::1%1]:1", "[::1%2]:1", "[::1]:2",     "[1::]:0",   "unix:",        "unix:/a", "unix:/aa",
        "unix:/b",   "unix:@",    "unix:@\\x00", "unix:@a",   "unix:@a\\x00", "unix:@b",
    };
    enum { COUNT = sizeof sorted / sizeof sorted[0] };
    blz_addr none = {.len = 0}, flow = parsed("[::1%1]:1");

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        for (int j = 0; j < COUNT; j++) {
            blz_addr a = parsed(sorted[i]), b = parsed(sorted[j]);
            int found = blz_addr_compare(&a, &b);
            if ((found > 0) - (found < 0) != (i > j) - (i < j))
                fail_msg("%s and %s: %d", sorted[i], sorted[j], found);
            assert_int_equal(blz_addr_equal(&a, &b), i == j);
            if (blz_addr_hash(&a, 1) == blz_addr_hash(&b, 1))
                assert_int_equal(i, j);
        }
        blz_addr one = parsed(sorted[i]);
        assert_true(blz_addr_compare(&none, &one) < 0);
        assert_true(blz_addr_compare(&one, &none) > 0);
        assert_int_not_equal(blz_addr_hash(&one, 1), blz_addr_hash(&one, 2));
    }
    assert_int_equal(blz_addr_compare(&none, &none), 0);
    blz_addr other = flow;
    assert_int_equal(blz_addr_set_flowinfo(&other, 1), 0);
    assert_true(blz_addr_compare(&flow, &other) < 0);
    assert_false(blz_addr_equal(&flow, &other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(addresses_of_all_kinds_are_read_and_written),
        TEST(the_longest_run_of_zeros_is_left_out),
        TEST(an_interface_may_be_named),
        TEST(bytes_that_do_not_print_are_escaped),
        TEST(what_is_not_an_address_is_refused),
        TEST(a_nul_inside_is_not_the_end),
        TEST(an_ip_address_may_come_alone),
        TEST(text_that_does_not_fit_is_not_cut_off),
        TEST(parts_can_be_read_and_set),
        TEST(kinds_are_recognised),
        TEST(mapped_addresses_are_converted),
        TEST(addresses_are_in_a_total_order),
    };
    return RUN_TESTS(tests);
}
