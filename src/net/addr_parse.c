/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From text to addresses.
 *
 * Input is a pointer and a length, may hold any bytes, and comes from anywhere: each function reads
 * [text, text + len) and nothing else, takes all of it or fails, and writes its result only if it
 * succeeds. The system's own functions are not used for the text: inet_aton takes "0177.1" for
 * 127.0.0.1, and what inet_pton makes of leading zeros differs from system to system.
 */
#include "net/net.h"

#include "system/address.h"
#include "system/name.h"

#include <blitz/error.h>
#include <string.h>

enum { MAX_PORT = 65535, MAX_OCTET = 255, NR_GROUPS = 8, MAX_HEX = 4, ESCAPE = 4 };

/* ---- numbers ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool blz__parse_decimal(const char *text, size_t len, uint32_t max, uint32_t *value)
{
    uint64_t number = 0;

    if (len == 0 || (len > 1 && text[0] == '0'))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!is_digit(text[i]))
            return false;
        number = number * 10 + (uint64_t)(text[i] - '0');
        if (number > max)
            return false;
    }
    *value = (uint32_t)number;
    return true;
}

static int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    c |= 0x20; /* lower case */
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_hex(const char *text, size_t len, unsigned *value)
{
    unsigned number = 0;

    if (len == 0 || len > MAX_HEX)
        return false;
    for (size_t i = 0; i < len; i++) {
        int digit = hex_value(text[i]);
        if (digit < 0)
            return false;
        number = number << 4 | (unsigned)digit;
    }
    *value = number;
    return true;
}

/* How far it is to the first `c`, or to the end. */
static size_t span_to(const char *text, size_t len, char c)
{
    const char *found = len > 0 ? memchr(text, c, len) : NULL;
    return found ? (size_t)(found - text) : len;
}

static int parse_port(const char *text, size_t len, uint16_t *port)
{
    uint32_t number;

    if (!blz__parse_decimal(text, len, MAX_PORT, &number))
        return -EINVAL;
    *port = (uint16_t)number;
    return 0;
}

/* ---- IP addresses ---- */

static bool parse_v4(const char *text, size_t len, uint8_t ip[4])
{
    for (int i = 0; i < 4; i++) {
        size_t span = i < 3 ? span_to(text, len, '.') : len;
        uint32_t octet;
        if ((i < 3 && span == len) || !blz__parse_decimal(text, span, MAX_OCTET, &octet))
            return false;
        ip[i] = (uint8_t)octet;
        text += span + (i < 3);
        len -= span + (i < 3);
    }
    return true;
}

/* An IPv6 address as it is read: groups so far, and how many of them stand before the "::". */
struct groups {
    uint8_t bytes[2 * NR_GROUPS];
    int count, gap; /* gap -1: there is none */
};

/* One group, or an IPv4 address, which stands for two and must be the last. */
static bool parse_group(struct groups *g, const char *text, size_t len, bool last)
{
    uint8_t *to = g->bytes + (size_t)g->count * 2;
    unsigned value;

    if (last && g->count <= NR_GROUPS - 2 && parse_v4(text, len, to)) {
        g->count += 2;
        return true;
    }
    if (g->count == NR_GROUPS || !parse_hex(text, len, &value))
        return false;
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)value;
    g->count++;
    return true;
}

/* What follows a group: nothing, or one or two colons and then more. */
static bool parse_colons(struct groups *g, const char **text, size_t *len)
{
    size_t colons = *len >= 2 && (*text)[1] == ':' ? 2 : 1;

    if (*len == 0)
        return true;
    if (colons == 2) {
        if (g->gap >= 0)
            return false;
        g->gap = g->count;
    } else if (*len == 1) {
        return false; /* ends in a single colon */
    }
    *text += colons;
    *len -= colons;
    return true;
}

static bool parse_groups(struct groups *g, const char *text, size_t len)
{
    if (len >= 2 && text[0] == ':' && (text[1] != ':' || !parse_colons(g, &text, &len)))
        return false;
    while (len > 0) {
        size_t span = span_to(text, len, ':');
        if (!parse_group(g, text, span, span == len))
            return false;
        text += span;
        len -= span;
        if (!parse_colons(g, &text, &len))
            return false;
    }
    return g->gap < 0 ? g->count == NR_GROUPS : g->count < NR_GROUPS;
}

static bool parse_v6(const char *text, size_t len, uint8_t ip[16])
{
    struct groups g = {.gap = -1};
    size_t head, tail;

    if (!parse_groups(&g, text, len))
        return false;
    head = g.gap < 0 ? sizeof g.bytes : (size_t)g.gap * 2;
    tail = g.gap < 0 ? 0 : (size_t)g.count * 2 - head;
    memset(ip, 0, sizeof g.bytes);
    memcpy(ip, g.bytes, head);
    memcpy(ip + sizeof g.bytes - tail, g.bytes + head, tail);
    return true;
}

/* The part behind the %: the number of an interface, or its name. */
static int parse_zone(const char *text, size_t len, uint32_t *scope_id)
{
    int64_t number;

    if (len == 0)
        return -EINVAL;
    if (blz__parse_decimal(text, len, UINT32_MAX, scope_id))
        return *scope_id == 0 ? -EINVAL : 0;
    if (memchr(text, '\0', len))
        return -EINVAL;
    number = blz__name_interface(text, len);
    if (number < 0)
        return (int)number;
    *scope_id = (uint32_t)number;
    return 0;
}

static int parse_v6_zone(blz_addr *addr, const char *text, size_t len, uint16_t port)
{
    size_t span = span_to(text, len, '%');
    uint32_t scope_id = 0;
    uint8_t ip[16];
    int rc = 0;

    if (!parse_v6(text, span, ip))
        return -EINVAL;
    if (span < len)
        rc = parse_zone(text + span + 1, len - span - 1, &scope_id);
    if (rc == 0)
        *addr = blz_addr_v6(ip, port, scope_id);
    return rc;
}

int blz_addr_parse_ip(blz_addr *addr, const char *text, size_t len, uint16_t port)
{
    uint8_t ip[4];

    if (span_to(text, len, ':') < len)
        return parse_v6_zone(addr, text, len, port);
    if (!parse_v4(text, len, ip))
        return -EINVAL;
    *addr = blz_addr_v4(ip, port);
    return 0;
}

/* ---- Unix sockets ---- */

/* Unescapes up to `max` bytes. -ENAMETOOLONG: there are more. */
static int unescape(const char *text, size_t len, char *out, size_t max, size_t *out_len)
{
    size_t count = 0;
    unsigned byte;

    for (size_t i = 0; i < len; i++) {
        if (count == max)
            return -ENAMETOOLONG;
        if (text[i] != '\\') {
            out[count++] = text[i];
            continue;
        }
        if (len - i < ESCAPE || text[i + 1] != 'x' || !parse_hex(text + i + 2, 2, &byte))
            return -EINVAL;
        out[count++] = (char)byte;
        i += ESCAPE - 1;
    }
    *out_len = count;
    return 0;
}

static int parse_unix(blz_addr *addr, const char *text, size_t len)
{
    bool abstract = len > 0 && text[0] == '@';
    char name[sizeof addr->storage];
    size_t name_len;
    int rc = unescape(text + abstract, len - abstract, name, sizeof name, &name_len);

    if (rc < 0)
        return rc;
    if (abstract)
        return blz_addr_unix_abstract(addr, name, name_len);
    if (name_len > 0)
        return blz__address_from_path(addr, name, name_len);
    *addr = blz_addr_unix_unnamed();
    return 0;
}

/* ---- addresses with a port ---- */

int blz__split_host_service(const char *text, size_t len, struct blz__host_service *parts)
{
    bool brackets = len > 0 && text[0] == '[';
    size_t end = brackets ? span_to(text, len, ']') : span_to(text, len, ':');

    if (end + brackets >= len || text[end + brackets] != ':')
        return -EINVAL;
    *parts = (struct blz__host_service){.host = text + brackets,
                                        .host_len = end - brackets,
                                        .service = text + end + brackets + 1,
                                        .service_len = len - end - brackets - 1};
    return 0;
}

static int parse_ip_port(blz_addr *addr, const char *text, size_t len)
{
    struct blz__host_service parts;
    uint16_t port;

    if (blz__split_host_service(text, len, &parts) < 0 ||
        parse_port(parts.service, parts.service_len, &port) < 0)
        return -EINVAL;
    if (text[0] == '[')
        return parse_v6_zone(addr, parts.host, parts.host_len, port);
    if (parts.host_len > 0)
        return blz_addr_parse_ip(addr, parts.host, parts.host_len, port);
    *addr = blz_addr_any(BLZ_ADDR_V6, port);
    return 0;
}

int blz_addr_parse_n(blz_addr *addr, const char *text, size_t len)
{
    static const char prefix[] = "unix:";
    size_t prefix_len = sizeof prefix - 1;

    if (len >= prefix_len && memcmp(text, prefix, prefix_len) == 0)
        return parse_unix(addr, text + prefix_len, len - prefix_len);
    return parse_ip_port(addr, text, len);
}

int blz_addr_parse(blz_addr *addr, const char *text)
{
    return blz_addr_parse_n(addr, text, strlen(text));
}
