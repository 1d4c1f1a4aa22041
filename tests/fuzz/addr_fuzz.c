/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses: what is parsed is printed and parsed again to the same; what inet_pton takes we take,
 * and nothing else; what the system hands out is put into canonical form.
 */
#include "fuzz.h"

#include "net/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

/* ---- text and back ---- */

/* Every size of buffer: all of the text or none of it. */
static void check_sizes(const blz_addr *addr, const char *text, int len)
{
    for (size_t size = 0; size <= (size_t)len + 1; size += size < 8 ? 1 : (size_t)len - 6) {
        char *buf = exact_copy(text, size, 0);
        int rc = blz_addr_format(addr, buf, size);
        if (size <= (size_t)len)
            require(rc == -ENOSPC && (size == 0 || buf[0] == '\0'));
        else
            require(rc == len && strcmp(buf, text) == 0);
        free(buf);
    }
}

static void check_equal(const blz_addr *a, const blz_addr *b)
{
    require(blz_addr_equal(a, b) && blz_addr_compare(a, b) == 0);
    require(blz_addr_hash(a, 7) == blz_addr_hash(b, 7));
    require(memcmp(a, b, sizeof *a) == 0); /* canonical */
}

/* The one name that has no text which could be read back: Linux allows 108 bytes without a NUL. */
static bool has_no_room_for_nul(const blz_addr *addr)
{
    return blz_addr_family(addr) == BLZ_ADDR_UNIX && addr->len == sizeof(struct sockaddr_un) &&
           ((const char *)addr->storage)[offsetof(struct sockaddr_un, sun_path)] != '\0' &&
           ((const char *)addr->storage)[addr->len - 1] != '\0';
}

static void check_round_trip(const blz_addr *addr)
{
    blz_addr plain = *addr, again = {0};
    char text[BLZ_ADDR_TEXT];
    int len = blz_addr_format(addr, text, sizeof text);

    require(len > 0 && (size_t)len == strlen(text));
    require(blz_addr_format(addr, NULL, 0) == len);
    check_sizes(addr, text, len);
    if (blz_addr_family(addr) == BLZ_ADDR_V6)
        require(blz_addr_set_flowinfo(&plain, 0) == 0); /* it has no text */
    if (has_no_room_for_nul(addr)) {
        require(blz_addr_parse(&again, text) == -ENAMETOOLONG);
        return;
    }
    require(blz_addr_parse(&again, text) == 0);
    check_equal(&plain, &again);
}

static void check_parse(const uint8_t *data, size_t size)
{
    char *text = exact_copy(data, size, 0), *string = exact_copy(data, size, 1);
    blz_addr addr, copy, again;
    int rc;

    memset(&addr, 0x5a, sizeof addr);
    again = copy = addr;
    rc = blz_addr_parse_n(&addr, text, size);
    require(rc == 0 || rc == -EINVAL || rc == -ENAMETOOLONG || rc == -ENODEV);
    if (rc == 0)
        check_round_trip(&addr);
    else
        require(memcmp(&addr, &copy, sizeof addr) == 0);
    if (strlen(string) == size) {
        require(blz_addr_parse(&again, string) == rc);
        require(memcmp(&addr, &again, sizeof addr) == 0);
    }
    free(text);
    free(string);
}

/* ---- compared with the system ---- */

static void compare_with_getaddrinfo(const blz_addr *addr, const char *string)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *list;
    blz_addr theirs;

    require(getaddrinfo(string, NULL, &hints, &list) == 0);
    require(blz_addr_from_sockaddr(&theirs, list->ai_addr, list->ai_addrlen) == 0);
    check_equal(addr, &theirs);
    freeaddrinfo(list);
}

/* The system takes the name of an interface for some addresses only. */
static bool has_no_name(const char *string)
{
    const char *zone = strchr(string, '%');

    return !zone || zone[1 + strspn(zone + 1, "0123456789")] == '\0';
}

static void check_ip(const uint8_t *data, size_t size)
{
    char *text = exact_copy(data, size, 0), *string = exact_copy(data, size, 1);
    bool is_v6 = memchr(string, ':', size), has_zone = memchr(string, '%', size);
    uint8_t theirs[16] = {0}, ours[16] = {0};
    blz_addr addr = {0};
    int rc = blz_addr_parse_ip(&addr, text, size, 0);

    if (rc == 0 && has_no_name(string))
        compare_with_getaddrinfo(&addr, string);
    if (!has_zone && strlen(string) == size) {
        int taken = inet_pton(is_v6 ? AF_INET6 : AF_INET, string, theirs);
        require((rc == 0) == (taken == 1));
        if (rc == 0) {
            require(blz_addr_ip(&addr, ours) == (is_v6 ? 16 : 4));
            require(memcmp(ours, theirs, is_v6 ? 16 : 4) == 0);
        }
    }
    free(text);
    free(string);
}

/* ---- from the system ---- */

static void check_sockaddr(const uint8_t *data, size_t size)
{
    static const sa_family_t families[] = {AF_INET, AF_INET6, AF_UNIX, AF_UNSPEC};
    struct input in = {data, size};
    sa_family_t family = families[take_byte(&in) % 4];
    uint8_t raw[256] = {0};
    blz_addr addr, again;
    size_t len = in.size < 200 ? in.size : 200;
    char *exact;
    int rc;

    memcpy(raw, &family, sizeof family);
    memcpy(raw + sizeof family, in.data, len);
    exact = exact_copy(raw, len + sizeof family, 0);
    rc = blz_addr_from_sockaddr(&addr, (const struct sockaddr *)(void *)exact, len + sizeof family);
    require(rc == 0 || rc == -EINVAL || rc == -EAFNOSUPPORT);
    if (rc == 0) {
        uint32_t sa_len;
        const struct sockaddr *sa = blz_addr_sockaddr(&addr, &sa_len);
        require(blz_addr_from_sockaddr(&again, sa, sa_len) == 0);
        check_equal(&addr, &again);
        check_round_trip(&addr);
    }
    free(exact);
}

/* ---- order ---- */

static int sign(int number)
{
    return (number > 0) - (number < 0);
}

static void check_order(const uint8_t *data, size_t size)
{
    size_t half = size / 2;
    blz_addr a = {0}, b = {0};

    if (blz_addr_parse_n(&a, (const char *)data, half) < 0 ||
        blz_addr_parse_n(&b, (const char *)data + half, size - half) < 0)
        return;
    require(sign(blz_addr_compare(&a, &b)) == -sign(blz_addr_compare(&b, &a)));
    require((blz_addr_compare(&a, &b) == 0) == blz_addr_equal(&a, &b));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_parse(data, size);
    check_ip(data, size);
    check_sockaddr(data, size);
    check_order(data, size);
    return 0;
}
