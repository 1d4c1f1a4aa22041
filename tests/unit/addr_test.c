/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses: text to address and back, for all kinds and for millions of random ones, next to what
 * inet_pton and inet_ntop say; hostile text; the system's structs; kinds, order, hashes.
 */
#include "harness.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MANY = 300000, NAME_MAX_LEN = 107, PATH_AT = offsetof(struct sockaddr_un, sun_path) };

static blz_addr parsed(const char *text)
{
    blz_addr addr;

    if (blz_addr_parse(&addr, text) != 0)
        fail_msg("not an address: %s", text);
    return addr;
}

static const char *text_of(const blz_addr *addr)
{
    static char text[BLZ_ADDR_TEXT];
    int len = blz_addr_format(addr, text, sizeof text);

    assert_int_equal(len, strlen(text));
    assert_int_equal(blz_addr_format(addr, NULL, 0), len);
    return text;
}

/* Parses from memory that ends where the text does, so that a look behind it is noticed. */
static int parse_exactly(blz_addr *addr, const char *text, size_t len)
{
    char *copy = malloc(len);
    int rc;

    if (len > 0)
        memcpy(copy, text, len);
    rc = blz_addr_parse_n(addr, copy, len);
    free(copy);
    return rc;
}

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

/* ---- names of Unix sockets ---- */

static void names_of_unix_sockets_are_never_cut_off(void **state)
{
    char path[5 + NAME_MAX_LEN + 2] = "unix:";
    blz_addr addr;
    bool abstract;
    size_t len;

    (void)state;
    memset(path + 5, 'a', NAME_MAX_LEN + 1);
    assert_int_equal(blz_addr_parse(&addr, path), -ENAMETOOLONG);
    assert_int_equal(blz_addr_unix(&addr, path + 5), -ENAMETOOLONG);
    assert_int_equal(blz_addr_unix_abstract(&addr, path + 5, NAME_MAX_LEN + 1), -ENAMETOOLONG);
    path[5] = '@';
    assert_int_equal(blz_addr_parse(&addr, path), 0); /* the @ is not part of the name */
    path[5 + NAME_MAX_LEN] = '\0';
    assert_int_equal(blz_addr_unix(&addr, path + 5), 0);
    assert_int_equal(addr.len, PATH_AT + NAME_MAX_LEN + 1);
    assert_string_equal(blz_addr_unix_name(&addr, &len, &abstract), path + 5);
    assert_int_equal(len, NAME_MAX_LEN);
    assert_false(abstract);
    assert_int_equal(blz_addr_unix(&addr, ""), -EINVAL);
    for (size_t longer = 200; longer < 100000; longer *= 7) {
        char *text = malloc(longer);
        memset(text, 'x', longer);
        memcpy(text, "unix:/", 6);
        assert_int_equal(blz_addr_parse_n(&addr, text, longer), -ENAMETOOLONG);
        text[5] = '@';
        assert_int_equal(blz_addr_parse_n(&addr, text, longer), -ENAMETOOLONG);
        free(text);
    }
}

static void the_longest_text_fits(void **state)
{
    char name[NAME_MAX_LEN];
    blz_addr addr, again;

    (void)state;
    memset(name, 1, sizeof name);
    assert_int_equal(blz_addr_unix_abstract(&addr, name, sizeof name), 0);
    assert_int_equal(strlen(text_of(&addr)), 6 + 4 * NAME_MAX_LEN);
    again = parsed(text_of(&addr));
    assert_true(blz_addr_equal(&addr, &again));
}

static void names_are_told_apart_from_paths(void **state)
{
    blz_addr path, abstract, unnamed = blz_addr_unix_unnamed(), v4 = parsed("1.2.3.4:5");
    bool is_abstract;
    size_t len;

    (void)state;
    assert_int_equal(blz_addr_unix(&path, "app"), 0);
    assert_int_equal(blz_addr_unix_abstract(&abstract, "app", 3), 0);
    assert_int_equal(path.len, PATH_AT + 4);
    assert_int_equal(abstract.len, PATH_AT + 4);
    assert_int_equal(unnamed.len, PATH_AT);
    assert_string_equal(blz_addr_unix_name(&path, &len, &is_abstract), "app");
    assert_false(is_abstract);
    assert_string_equal(blz_addr_unix_name(&abstract, &len, &is_abstract), "app");
    assert_true(is_abstract);
    assert_int_equal(len, 3);
    assert_string_equal(blz_addr_unix_name(&unnamed, &len, &is_abstract), "");
    assert_false(is_abstract);
    assert_int_equal(len, 0);
    assert_null(blz_addr_unix_name(&v4, &len, &is_abstract));
    assert_false(blz_addr_equal(&path, &abstract));
    assert_int_equal(blz_addr_unix_abstract(&abstract, NULL, 0), 0);
    assert_false(blz_addr_equal(&abstract, &unnamed));
}

/* ---- the system's structs ---- */

static blz_addr from(const void *sa, size_t len)
{
    blz_addr addr;

    assert_int_equal(blz_addr_from_sockaddr(&addr, sa, len), 0);
    return addr;
}

static void the_systems_structs_go_in_and_out(void **state)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(80)};
    struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6,
                                .sin6_port = htons(443),
                                .sin6_flowinfo = htonl(0x12345),
                                .sin6_scope_id = 7};
    blz_addr v4, v6, again;
    const struct sockaddr *sa;
    uint32_t len;

    (void)state;
    memset(sin.sin_zero, 0xff, sizeof sin.sin_zero); /* must not count */
    inet_pton(AF_INET, "10.1.2.3", &sin.sin_addr);
    inet_pton(AF_INET6, "fe80::1", &sin6.sin6_addr);
    v4 = from(&sin, sizeof sin);
    assert_string_equal(text_of(&v4), "10.1.2.3:80");
    again = parsed("10.1.2.3:80");
    assert_true(blz_addr_equal(&v4, &again));
    v6 = from(&sin6, sizeof sin6);
    assert_string_equal(text_of(&v6), "[fe80::1%7]:443");
    assert_int_equal(blz_addr_flowinfo(&v6), 0x12345);
    sa = blz_addr_sockaddr(&v6, &len);
    assert_int_equal(len, sizeof sin6);
    assert_memory_equal(sa, &sin6, sizeof sin6);
    again = v6; /* in place */
    assert_int_equal(blz_addr_from_sockaddr(&again, blz_addr_sockaddr(&again, &len), again.len), 0);
    assert_true(blz_addr_equal(&v6, &again));
    assert_int_equal(blz_addr_from_sockaddr(&v4, (void *)&sin, sizeof sin - 1), -EINVAL);
    assert_int_equal(blz_addr_from_sockaddr(&v4, (void *)&sin6, sizeof sin6 - 1), -EINVAL);
    assert_int_equal(blz_addr_from_sockaddr(&v4, (void *)&sin, 1), -EINVAL);
    assert_int_equal(blz_addr_from_sockaddr(&v4, (void *)&sin, 0), -EINVAL);
    sin.sin_family = AF_UNSPEC;
    assert_int_equal(blz_addr_from_sockaddr(&v4, (void *)&sin, sizeof sin), -EAFNOSUPPORT);
}

static void unix_names_of_the_system_become_canonical(void **state)
{
    struct sockaddr_storage room = {.ss_family = AF_UNIX};
    struct sockaddr_un *sun = (struct sockaddr_un *)&room;
    blz_addr addr, expected;

    (void)state;
    assert_int_equal(blz_addr_unix(&expected, "/a"), 0);
    memcpy(sun->sun_path, "/a\0rest", 7); /* what follows the NUL is rubbish */
    addr = from(sun, sizeof *sun);
    assert_true(blz_addr_equal(&addr, &expected));
    addr = from(sun, PATH_AT + 2); /* without the NUL */
    assert_true(blz_addr_equal(&addr, &expected));
    addr = from(sun, PATH_AT);
    assert_string_equal(text_of(&addr), "unix:");
    memcpy(sun->sun_path, "\0a\0b", 4);
    addr = from(sun, PATH_AT + 4);
    assert_string_equal(text_of(&addr), "unix:@a\\x00b");
    memset(sun->sun_path, 'p', sizeof sun->sun_path);
    addr = from(sun, sizeof *sun + 1); /* what Linux says of a path of 108 bytes */
    assert_int_equal(strlen(text_of(&addr)), 5 + sizeof sun->sun_path);
    assert_int_equal(blz_addr_from_sockaddr(&addr, (void *)sun, sizeof *sun + 2), -EINVAL);
}

static void a_real_socket_has_the_address_it_was_bound_to(void **state)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_storage name;
    socklen_t name_len = sizeof name;
    blz_addr addr = blz_addr_loopback(BLZ_ADDR_V4, 0), bound;
    uint32_t len;
    const struct sockaddr *sa = blz_addr_sockaddr(&addr, &len);

    (void)state;
    assert_int_equal(bind(fd, sa, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &name_len), 0);
    bound = from(&name, name_len);
    assert_int_not_equal(blz_addr_port(&bound), 0);
    assert_int_equal(blz_addr_set_port(&addr, blz_addr_port(&bound)), 0);
    assert_true(blz_addr_equal(&addr, &bound));
    close(fd);

    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    name_len = sizeof name;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &name_len), 0);
    bound = from(&name, name_len);
    assert_string_equal(text_of(&bound), "unix:");
    snprintf((char *)&name, sizeof name, "blitz-addr-test-%d", (int)getpid());
    assert_int_equal(blz_addr_unix_abstract(&addr, &name, strlen((char *)&name) + 1), 0);
    sa = blz_addr_sockaddr(&addr, &len);
    assert_int_equal(bind(fd, sa, len), 0);
    name_len = sizeof name;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &name_len), 0);
    bound = from(&name, name_len);
    assert_true(blz_addr_equal(&addr, &bound));
    close(fd);
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

/* ---- random ones ---- */

static uint64_t seed;

static void random_bytes(void *out, size_t len)
{
    for (size_t i = 0; i < len; i++)
        ((uint8_t *)out)[i] = (uint8_t)random_below(&seed, 256);
}

/* Mostly zeros, so that runs of them occur. */
static void random_ip6(uint8_t ip[16])
{
    memset(ip, 0, 16);
    for (int i = 0; i < 8; i++)
        if (random_below(&seed, 3) == 0)
            random_bytes(ip + (size_t)2 * i + random_below(&seed, 2), 1);
    if (random_below(&seed, 8) == 0)
        memcpy(ip, (uint8_t[12]){[10] = 0xff, [11] = 0xff}, 12);
}

static blz_addr random_addr(void)
{
    uint8_t bytes[NAME_MAX_LEN];
    uint16_t port = (uint16_t)random_below(&seed, 65536);
    size_t len = random_below(&seed, NAME_MAX_LEN + 1);
    blz_addr addr;

    random_bytes(bytes, sizeof bytes);
    switch (random_below(&seed, 4)) {
    case 0:
        return blz_addr_v4(bytes, port);
    case 1:
        random_ip6(bytes);
        return blz_addr_v6(bytes, port, random_below(&seed, 2) ? random_below(&seed, 1 << 30) : 0);
    case 2:
        assert_int_equal(blz_addr_unix_abstract(&addr, bytes, len), 0);
        return addr;
    default:
        for (size_t i = 0; i < len; i++)
            bytes[i] |= bytes[i] == 0;
        if (len == 0)
            return blz_addr_unix_unnamed();
        if (len == NAME_MAX_LEN)
            len--;
        bytes[len] = '\0';
        assert_int_equal(blz_addr_unix(&addr, (char *)bytes), 0);
        return addr;
    }
}

static void random_addresses_survive_the_round_trip(void **state)
{
    (void)state;
    allow_seconds(120);
    seed = 1;
    for (int64_t i = scaled(MANY); i > 0; i--) {
        blz_addr addr = random_addr(), again;
        char text[BLZ_ADDR_TEXT];
        int len = blz_addr_format(&addr, text, sizeof text);
        assert_true(len > 0);
        assert_int_equal(parse_exactly(&again, text, (size_t)len), 0);
        assert_true(blz_addr_equal(&addr, &again));
        assert_int_equal(blz_addr_compare(&addr, &again), 0);
        assert_true(blz_addr_hash(&addr, 5) == blz_addr_hash(&again, 5));
        const struct sockaddr *sa = blz_addr_sockaddr(&addr, &(uint32_t){0});
        assert_int_equal(blz_addr_from_sockaddr(&again, sa, addr.len), 0);
        assert_memory_equal(&addr, &again, sizeof addr);
    }
}

static void text_is_what_inet_ntop_writes(void **state)
{
    (void)state;
    seed = 2;
    for (int64_t i = scaled(MANY); i > 0; i--) {
        char mine[INET6_ADDRSTRLEN], theirs[INET6_ADDRSTRLEN];
        uint8_t ip[16], back[16];
        blz_addr addr;
        random_ip6(ip);
        addr = blz_addr_v6(ip, 1, 0);
        assert_true(blz_addr_format_ip(&addr, mine, sizeof mine) > 0);
        assert_int_equal(inet_pton(AF_INET6, mine, back), 1);
        assert_memory_equal(ip, back, 16);
        inet_ntop(AF_INET6, ip, theirs, sizeof theirs);
        /* It writes ::1.2.3.4 for addresses that merely begin with six zero groups. */
        if (!strchr(theirs, '.') || blz_addr_is_v4_mapped(&addr))
            assert_string_equal(mine, theirs);
        addr = blz_addr_v4(ip, 1);
        assert_true(blz_addr_format_ip(&addr, mine, sizeof mine) > 0);
        assert_string_equal(mine, inet_ntop(AF_INET, ip, theirs, sizeof theirs));
    }
}

/* A text of IP-like pieces: often nearly an address, now and then one. */
static size_t random_text(char *text, size_t max)
{
    static const char *const pieces[] = {":",  ":",   ":",   "::",      ".",       ".",    "0",
                                         "1",  "255", "256", "25",      "ff",      "fFfF", "12345",
                                         "00", "01",  "g",   "1.2.3.4", "1:2:3:4", "0:0",  " ",
                                         "-1", "0x1", "+",   "4",       "::ffff:"};
    size_t len = 0;

    for (uint32_t left = 1 + random_below(&seed, 9); left > 0; left--) {
        const char *piece = pieces[random_below(&seed, sizeof pieces / sizeof pieces[0])];
        if (len + strlen(piece) >= max)
            break;
        memcpy(text + len, piece, strlen(piece));
        len += strlen(piece);
    }
    text[len] = '\0';
    return len;
}

static void what_inet_pton_takes_is_taken_and_nothing_else(void **state)
{
    int64_t taken = 0;

    (void)state;
    seed = 3;
    for (int64_t i = scaled(10 * MANY); i > 0; i--) {
        char text[128];
        uint8_t theirs[16], mine[16];
        size_t len = random_text(text, sizeof text);
        int family = strchr(text, ':') ? AF_INET6 : AF_INET;
        bool ok = inet_pton(family, text, theirs) == 1;
        blz_addr addr;
        if ((blz_addr_parse_ip(&addr, text, len, 0) == 0) != ok)
            fail_msg("%s: inet_pton says %s", text, ok ? "yes" : "no");
        if (ok) {
            assert_memory_equal(mine, theirs, (size_t)blz_addr_ip(&addr, mine));
            taken++;
        }
    }
    assert_true(taken > scaled(10 * MANY) / 1000); /* the comparison meant something */
}

/* Good texts with a few bytes changed: whatever is still taken must have a round trip. */
static void mutated_text_never_does_harm(void **state)
{
    int64_t taken = 0;

    (void)state;
    allow_seconds(120);
    seed = 4;
    for (int64_t i = scaled(MANY); i > 0; i--) {
        blz_addr addr = random_addr(), again;
        char text[BLZ_ADDR_TEXT];
        size_t len = (size_t)blz_addr_format(&addr, text, sizeof text);
        for (uint32_t left = 1 + random_below(&seed, 3); left > 0; left--)
            random_bytes(&text[random_below(&seed, (uint32_t)len)], 1);
        len -= random_below(&seed, 2);
        if (memchr(text, '%', len))
            continue; /* a name would be looked for among the interfaces */
        if (parse_exactly(&addr, text, len) < 0)
            continue;
        taken++;
        again = parsed(text_of(&addr));
        assert_true(blz_addr_equal(&addr, &again));
    }
    assert_true(taken > 0);
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
        TEST(names_of_unix_sockets_are_never_cut_off),
        TEST(the_longest_text_fits),
        TEST(names_are_told_apart_from_paths),
        TEST(the_systems_structs_go_in_and_out),
        TEST(unix_names_of_the_system_become_canonical),
        TEST(a_real_socket_has_the_address_it_was_bound_to),
        TEST(parts_can_be_read_and_set),
        TEST(kinds_are_recognised),
        TEST(mapped_addresses_are_converted),
        TEST(addresses_are_in_a_total_order),
        TEST(random_addresses_survive_the_round_trip),
        TEST(text_is_what_inet_ntop_writes),
        TEST(what_inet_pton_takes_is_taken_and_nothing_else),
        TEST(mutated_text_never_does_harm),
    };
    return RUN_TESTS(tests);
}
