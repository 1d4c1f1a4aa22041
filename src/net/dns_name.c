/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may be looked up at all.
 *
 * Names come from configurations, from URLs, from other machines, and a resolver is a large piece
 * of software that should not see everything. The rule is that of host names (RFC 1123), with the
 * underscore that is used in practice. Two traps are closed besides: a name is never cut off, since
 * a shorter one may be somebody else's; and it is never an IPv4 address in disguise, as inet_aton
 * would take it. What ends in a number must be an address, as in URLs.
 */
#include "net/net.h"

#include <blitz/error.h>
#include <string.h>

enum { MAX_NAME = 253, MAX_LABEL = 63, MAX_SERVICE = 63, MAX_PORT = 65535 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    c |= 0x20; /* lower case */
    return c >= 'a' && c <= 'z';
}

static bool is_hex(char c)
{
    return is_digit(c) || (is_letter(c) && (c | 0x20) <= 'f');
}

static bool all_of(const char *text, size_t len, bool (*is)(char c))
{
    for (size_t i = 0; i < len; i++)
        if (!is(text[i]))
            return false;
    return true;
}

static bool is_number(const char *label, size_t len)
{
    if (len >= 2 && label[0] == '0' && (label[1] | 0x20) == 'x')
        return all_of(label + 2, len - 2, is_hex);
    return all_of(label, len, is_digit);
}

static bool is_name_char(char c)
{
    return is_letter(c) || is_digit(c) || c == '-' || c == '_';
}

static int check_label(const char *label, size_t len)
{
    if (len > MAX_LABEL)
        return -ENAMETOOLONG;
    return len > 0 && all_of(label, len, is_name_char) ? 0 : -EINVAL;
}

int blz__dns_check_name(const char *name, size_t len)
{
    size_t begin = 0;

    if (len > 1 && name[len - 1] == '.')
        len--; /* the root: it is where it says */
    if (len > MAX_NAME)
        return -ENAMETOOLONG;
    for (size_t i = 0; i <= len; i++) {
        if (i < len && name[i] != '.')
            continue;
        int rc = check_label(name + begin, i - begin);
        if (rc < 0)
            return rc;
        if (i == len && is_number(name + begin, i - begin))
            return -EINVAL;
        begin = i + 1;
    }
    return 0;
}

static bool is_service_char(char c)
{
    return is_name_char(c) || c == '.' || c == '+';
}

/* A sign in front would make a number of it, for getaddrinfo. */
int blz__dns_check_service(const char *service, size_t len, uint16_t *port)
{
    uint32_t number;

    if (len == 0 || len > MAX_SERVICE || !all_of(service, len, is_service_char))
        return -EINVAL;
    if (!is_letter(service[0]) && !is_digit(service[0]))
        return -EINVAL;
    if (!all_of(service, len, is_digit))
        return 0;
    if (!blz__parse_decimal(service, len, MAX_PORT, &number))
        return -EINVAL;
    *port = (uint16_t)number;
    return 1;
}
