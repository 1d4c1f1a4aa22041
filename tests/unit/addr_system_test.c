/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses as the system has them: names of Unix sockets, its structs, real sockets. */
#include "addr_text.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { NAME_MAX_LEN = 107, PATH_AT = offsetof(struct sockaddr_un, sun_path) };

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_of_unix_sockets_are_never_cut_off),
        TEST(the_longest_text_fits),
        TEST(names_are_told_apart_from_paths),
        TEST(the_systems_structs_go_in_and_out),
        TEST(unix_names_of_the_system_become_canonical),
        TEST(a_real_socket_has_the_address_it_was_bound_to),
    };
    return RUN_TESTS(tests);
}
