/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From addresses to text, in the form of RFC 5952 for IPv6: lower case, no leading zeros, the
 * longest run of two or more zero groups (of equal ones the first) written "::", an IPv4 address
 * inside in its own form.
 *
 * The text is put together in a buffer that is large enough for all of them, and copied if it fits.
 * So what the caller gets is whole or empty.
 */
#include "net/net.h"

#include <blitz/error.h>
#include <string.h>

enum { NR_GROUPS = 8, MIN_RUN = 2 };

struct text {
    char chars[BLZ_ADDR_TEXT];
    size_t len;
};

/* ---- pieces ---- */

static void put_char(struct text *t, char c)
{
    t->chars[t->len++] = c;
}

static void put_string(struct text *t, const char *string)
{
    while (*string)
        put_char(t, *string++);
}

/* With at least `digits` digits. */
static void put_number(struct text *t, uint32_t value, unsigned base, int digits)
{
    char reversed[10];
    int count = 0;

    do {
        reversed[count++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value > 0 || count < digits);
    while (count > 0)
        put_char(t, reversed[--count]);
}

static void put_v4(struct text *t, const uint8_t ip[4])
{
    for (int i = 0; i < 4; i++) {
        if (i > 0)
            put_char(t, '.');
        put_number(t, ip[i], 10, 1);
    }
}

/* ---- IPv6 ---- */

static unsigned group_of(const uint8_t ip[16], int i)
{
    return (unsigned)ip[2 * i] << 8 | ip[2 * i + 1];
}

/* The run of zero groups that is left out: where it begins; *length 0 if there is none. */
static int longest_run(const uint8_t ip[16], int *length)
{
    int best = 0;

    *length = 0;
    for (int i = 0, run = 0; i < NR_GROUPS; i++) {
        run = group_of(ip, i) == 0 ? run + 1 : 0;
        if (run >= MIN_RUN && run > *length) {
            *length = run;
            best = i + 1 - run;
        }
    }
    return best;
}

static void put_v6(struct text *t, const uint8_t ip[16])
{
    int run, at = longest_run(ip, &run);

    for (int i = 0; i < NR_GROUPS; i++) {
        if (run > 0 && i == at) {
            put_string(t, "::");
            i += run - 1;
            continue;
        }
        if (i > 0 && !(run > 0 && i == at + run))
            put_char(t, ':');
        put_number(t, group_of(ip, i), 16, 1);
    }
}

static void put_ip(struct text *t, const blz_addr *addr)
{
    uint8_t ip[16];

    if (blz_addr_ip(addr, ip) == 4) {
        put_v4(t, ip);
    } else if (blz_addr_is_v4_mapped(addr)) {
        put_string(t, "::ffff:");
        put_v4(t, ip + 12);
    } else {
        put_v6(t, ip);
    }
    if (blz_addr_scope_id(addr) != 0) {
        put_char(t, '%');
        put_number(t, blz_addr_scope_id(addr), 10, 1);
    }
}

/* ---- Unix sockets ---- */

static bool needs_escape(char c)
{
    return (unsigned char)c < ' ' || c == 0x7f || c == '\\';
}

static void put_unix(struct text *t, const blz_addr *addr)
{
    bool abstract;
    size_t len;
    const char *name = blz_addr_unix_name(addr, &len, &abstract);

    put_string(t, abstract ? "unix:@" : "unix:");
    for (size_t i = 0; i < len; i++) {
        if (needs_escape(name[i]) || (i == 0 && name[i] == '@' && !abstract)) {
            put_string(t, "\\x");
            put_number(t, (unsigned char)name[i], 16, 2);
        } else {
            put_char(t, name[i]);
        }
    }
}

/* ---- the whole ---- */

static int give(const struct text *t, char *buf, size_t size)
{
    if (!buf && size == 0)
        return (int)t->len;
    if (t->len >= size) {
        if (size > 0)
            buf[0] = '\0';
        return -ENOSPC;
    }
    memcpy(buf, t->chars, t->len);
    buf[t->len] = '\0';
    return (int)t->len;
}

int blz_addr_format_ip(const blz_addr *addr, char *buf, size_t size)
{
    int family = blz_addr_family(addr);
    struct text t;

    t.len = 0;
    if (family == BLZ_ADDR_NONE || family == BLZ_ADDR_UNIX) {
        if (size > 0)
            buf[0] = '\0';
        return family == BLZ_ADDR_NONE ? -EINVAL : -EAFNOSUPPORT;
    }
    put_ip(&t, addr);
    return give(&t, buf, size);
}

int blz_addr_format(const blz_addr *addr, char *buf, size_t size)
{
    int family = blz_addr_family(addr);
    struct text t;

    t.len = 0;
    if (family == BLZ_ADDR_NONE)
        return blz_addr_format_ip(addr, buf, size);
    if (family == BLZ_ADDR_UNIX) {
        put_unix(&t, addr);
        return give(&t, buf, size);
    }
    if (family == BLZ_ADDR_V6)
        put_char(&t, '[');
    put_ip(&t, addr);
    if (family == BLZ_ADDR_V6)
        put_char(&t, ']');
    put_char(&t, ':');
    put_number(&t, blz_addr_port(addr), 10, 1);
    return give(&t, buf, size);
}
