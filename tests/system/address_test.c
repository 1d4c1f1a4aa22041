/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: system/address.h. */
#include "conform.h"

#include "system/address.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static const struct blz__address_ip v4 = {.family = BLZ_ADDR_V4,
                                          .bytes = {192, 0, 2, 7},
                                          .port = 443};
static const struct blz__address_ip v6 = {.family = BLZ_ADDR_V6,
                                          .bytes = {0xfe, 0x80, [15] = 9},
                                          .port = 65535,
                                          .scope_id = 3,
                                          .flowinfo = 0x12345};

static void check_canonical(const blz_addr *addr)
{
    const char *bytes = (const char *)addr->storage;

    for (size_t i = addr->len; i < sizeof addr->storage; i++)
        assert_int_equal(bytes[i], 0);
}

static void an_ip_address_is_taken_apart_into_what_it_was_made_of(void **state)
{
    const struct blz__address_ip *both[] = {&v4, &v6};

    (void)state;
    for (int i = 0; i < 2; i++) {
        blz_addr addr = blz__address_from_ip(both[i]);
        struct blz__address_ip parts;
        assert_int_equal(blz__address_family(&addr), both[i]->family);
        assert_true(blz__address_to_ip(&addr, &parts));
        assert_memory_equal(parts.bytes, both[i]->bytes, sizeof parts.bytes);
        assert_int_equal(parts.family, both[i]->family);
        assert_int_equal(parts.port, both[i]->port);
        assert_int_equal(parts.scope_id, both[i]->scope_id);
        assert_int_equal(parts.flowinfo, both[i]->flowinfo);
        check_canonical(&addr);
    }
}

static void what_is_no_ip_address_has_no_parts(void **state)
{
    blz_addr none = {.len = 0}, path = blz__address_unnamed();
    struct blz__address_ip parts = v4;

    (void)state;
    assert_int_equal(blz__address_family(&none), BLZ_ADDR_NONE);
    assert_false(blz__address_to_ip(&none, &parts));
    assert_int_equal(parts.port, 0);
    parts = v4;
    assert_false(blz__address_to_ip(&path, &parts));
    assert_int_equal(parts.family, BLZ_ADDR_NONE);
}

static void an_address_survives_the_way_through_the_system(void **state)
{
    blz_addr addrs[4], back;

    (void)state;
    addrs[0] = blz__address_from_ip(&v4);
    addrs[1] = blz__address_from_ip(&v6);
    assert_int_equal(blz__address_from_path(&addrs[2], "/tmp/x", 6), 0);
    addrs[3] = blz__address_unnamed();
    for (int i = 0; i < 4; i++) {
        memset(&back, 0xff, sizeof back);
        assert_int_equal(blz__address_from_system(&back, blz__address_to_system(&addrs[i]),
                                                  addrs[i].len),
                         0);
        assert_memory_equal(&back, &addrs[i], sizeof back);
    }
}

static void an_address_may_be_put_into_its_form_in_place(void **state)
{
    blz_addr addr = blz__address_from_ip(&v4), wanted = addr;

    (void)state;
    memset((char *)addr.storage + addr.len, 0xff, sizeof addr.storage - addr.len);
    assert_int_equal(blz__address_from_system(&addr, blz__address_to_system(&addr), addr.len), 0);
    assert_memory_equal(&addr, &wanted, sizeof addr);
}

static void bytes_without_a_meaning_make_no_difference(void **state)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX, .sun_path = "/tmp/x"};
    blz_addr addr, wanted;

    (void)state;
    memset(sun.sun_path + 7, 'j', sizeof sun.sun_path - 7); /* behind the NUL */
    assert_int_equal(blz__address_from_system(&addr, (struct sockaddr *)&sun, sizeof sun), 0);
    assert_int_equal(blz__address_from_path(&wanted, "/tmp/x", 6), 0);
    assert_memory_equal(&addr, &wanted, sizeof addr);
}

static void too_short_or_too_long_for_its_family_is_invalid(void **state)
{
    blz_addr ip = blz__address_from_ip(&v4), ip6 = blz__address_from_ip(&v6), addr = ip;
    struct sockaddr_storage storage = {.ss_family = AF_UNIX};

    (void)state;
    assert_int_equal(blz__address_from_system(&addr, blz__address_to_system(&ip), 0), -EINVAL);
    assert_int_equal(blz__address_from_system(&addr, blz__address_to_system(&ip), ip.len - 1),
                     -EINVAL);
    assert_int_equal(blz__address_from_system(&addr, blz__address_to_system(&ip6), ip6.len - 1),
                     -EINVAL);
    assert_int_equal(blz__address_from_system(&addr, (struct sockaddr *)&storage, sizeof storage),
                     -EINVAL);
    assert_memory_equal(&addr, &ip, sizeof addr);
}

static void another_family_is_not_supported(void **state)
{
    struct sockaddr sa = {.sa_family = 250};
    blz_addr addr = blz__address_from_ip(&v4), before = addr;

    (void)state;
    assert_int_equal(blz__address_from_system(&addr, &sa, sizeof sa), -EAFNOSUPPORT);
    assert_memory_equal(&addr, &before, sizeof addr);
}

/* ---- Unix sockets ---- */

static void a_path_is_given_back_with_a_nul(void **state)
{
    blz_addr addr;
    size_t len = 99;
    bool abstract = true;
    const char *name;

    (void)state;
    assert_int_equal(blz__address_from_path(&addr, "/run/a.sock-and-more", 11), 0);
    assert_int_equal(blz__address_family(&addr), BLZ_ADDR_UNIX);
    name = blz__address_unix_name(&addr, &len, &abstract);
    assert_string_equal(name, "/run/a.sock");
    assert_int_equal(len, 11);
    assert_false(abstract);
    check_canonical(&addr);
}

static void the_longest_path_fits_and_a_longer_one_does_not(void **state)
{
    char path[256];
    size_t longest = sizeof((struct sockaddr_un){0}.sun_path) - 1, len;
    blz_addr addr = {.len = 0}, before;
    bool abstract;

    (void)state;
    memset(path, 'p', sizeof path);
    assert_int_equal(blz__address_from_path(&addr, path, longest), 0);
    assert_memory_equal(blz__address_unix_name(&addr, &len, &abstract), path, longest);
    assert_int_equal(len, longest);
    before = addr;
    assert_int_equal(blz__address_from_path(&addr, path, longest + 1), -ENAMETOOLONG);
    assert_memory_equal(&addr, &before, sizeof addr);
}

static void a_path_is_not_empty_and_has_no_nul(void **state)
{
    blz_addr addr;

    (void)state;
    assert_int_equal(blz__address_from_path(&addr, "", 0), -EINVAL);
    assert_int_equal(blz__address_from_path(&addr, "a\0b", 3), -EINVAL);
}

static void an_abstract_name_is_any_bytes(void **state)
{
    static const char names[][4] = {"", "abc", "\0\0\0", "a\0b"};
    blz_addr addr, same, path;
    size_t len;
    bool abstract;
    int rc = blz__address_from_abstract(&addr, "x", 1);

    (void)state;
    skip_if_not_supported(rc);
    for (int i = 0; i < 4; i++) {
        size_t size = i ? 3 : 0;
        assert_int_equal(blz__address_from_abstract(&addr, names[i], size), 0);
        assert_memory_equal(blz__address_unix_name(&addr, &len, &abstract), names[i], size);
        assert_int_equal(len, size);
        assert_true(abstract);
        check_canonical(&addr);
        assert_int_equal(blz__address_from_system(&same, blz__address_to_system(&addr), addr.len),
                         0);
        assert_memory_equal(&same, &addr, sizeof addr);
    }
    assert_int_equal(blz__address_from_path(&path, "abc", 3), 0);
    assert_int_equal(blz__address_from_abstract(&addr, "abc", 3), 0);
    assert_memory_not_equal(&path, &addr, sizeof addr);
}

static void an_abstract_name_that_is_too_long_is_refused(void **state)
{
    char name[256] = "";
    blz_addr addr;
    int rc = blz__address_from_abstract(&addr, name, sizeof name);

    (void)state;
    skip_if_not_supported(rc);
    assert_int_equal(rc, -ENAMETOOLONG);
}

static void a_socket_without_a_name_has_an_empty_one(void **state)
{
    blz_addr addr = blz__address_unnamed(), ip = blz__address_from_ip(&v4);
    size_t len = 99;
    bool abstract = true;

    (void)state;
    assert_int_equal(blz__address_family(&addr), BLZ_ADDR_UNIX);
    assert_non_null(blz__address_unix_name(&addr, &len, &abstract));
    assert_int_equal(len, 0);
    assert_false(abstract);
    assert_null(blz__address_unix_name(&ip, &len, &abstract));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_ip_address_is_taken_apart_into_what_it_was_made_of),
        TEST(what_is_no_ip_address_has_no_parts),
        TEST(an_address_survives_the_way_through_the_system),
        TEST(an_address_may_be_put_into_its_form_in_place),
        TEST(bytes_without_a_meaning_make_no_difference),
        TEST(too_short_or_too_long_for_its_family_is_invalid),
        TEST(another_family_is_not_supported),
        TEST(a_path_is_given_back_with_a_nul),
        TEST(the_longest_path_fits_and_a_longer_one_does_not),
        TEST(a_path_is_not_empty_and_has_no_nul),
        TEST(an_abstract_name_is_any_bytes),
        TEST(an_abstract_name_that_is_too_long_is_refused),
        TEST(a_socket_without_a_name_has_an_empty_one),
    };

    return RUN_TESTS(tests);
}
