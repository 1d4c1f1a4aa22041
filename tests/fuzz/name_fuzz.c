/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of hosts and services: the check before a resolver sees them, against another one that is
 * written the slow way; and host:service taken apart and put together again.
 */
#include "fuzz.h"

#include "net/net.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>

/* ---- names ---- */

static bool is_ascii_alnum(char c)
{
    return (unsigned char)c < 128 && isalnum((unsigned char)c);
}

/* A number as C writes them: what inet_aton would take for a part of an address. */
static bool looks_like_a_number(const char *label)
{
    if (label[0] == '0' && (label[1] == 'x' || label[1] == 'X'))
        return strspn(label + 2, "0123456789abcdefABCDEF") == strlen(label + 2);
    return strspn(label, "0123456789") == strlen(label);
}

/* The rule, label by label. `name` is a string of `size` bytes, which may hold NULs. */
static int judge(char *name, size_t size)
{
    size_t len = size > 1 && name[size - 1] == '.' ? size - 1 : size;
    char *last = name;

    if (len > 253)
        return -ENAMETOOLONG;
    for (char *label = name;; label = last) {
        size_t n = 0;
        while (label + n < name + len && label[n] != '.')
            n++;
        if (n > 63)
            return -ENAMETOOLONG;
        if (n == 0)
            return -EINVAL;
        for (size_t i = 0; i < n; i++)
            if (!is_ascii_alnum(label[i]) && label[i] != '-' && label[i] != '_')
                return -EINVAL;
        if (label + n == name + len) {
            label[n] = '\0';
            return looks_like_a_number(label) ? -EINVAL : 0;
        }
        last = label + n + 1;
    }
}

static void check_name(const uint8_t *data, size_t size)
{
    char *name = exact_copy(data, size, 0), *string = exact_copy(data, size, 1);
    int rc = blz__dns_check_name(name, size);
    struct in_addr disguised;

    if (rc == 0) {
        blz_addr addr;
        require(strlen(string) == size);
        require(inet_aton(string, &disguised) == 0);
        require(blz_addr_parse_ip(&addr, name, size, 0) == -EINVAL);
    }
    require(rc == judge(string, size));
    free(name);
    free(string);
}

/* ---- services ---- */

static void check_service(const uint8_t *data, size_t size)
{
    char *service = exact_copy(data, size, 0), *string = exact_copy(data, size, 1);
    uint16_t port = 0x5a5a;
    int rc = blz__dns_check_service(service, size, &port);

    require(rc == 1 || rc == 0 || rc == -EINVAL);
    if (rc >= 0)
        require(size > 0 && size < 64 && strlen(string) == size && is_ascii_alnum(string[0]));
    if (rc == 1) {
        char text[8];
        snprintf(text, sizeof text, "%u", port);
        require(strcmp(text, string) == 0);
    } else {
        require(port == 0x5a5a);
    }
    if (rc == 0)
        require(strspn(string, "0123456789") < size); /* no number slips through as a name */
    free(service);
    free(string);
}

/* ---- both ---- */

static void check_split(const uint8_t *data, size_t size)
{
    char *text = exact_copy(data, size, 0);
    struct blz__host_service parts;
    int rc = blz__split_host_service(text, size, &parts);

    require(rc == 0 || rc == -EINVAL);
    if (rc == 0) {
        size_t brackets = text[0] == '[' ? 2 : 0;
        require(parts.host_len + brackets + 1 + parts.service_len == size);
        require(parts.host == text + brackets / 2);
        require(parts.service + parts.service_len == text + size);
        require(parts.service[-1] == ':' && (!brackets || parts.service[-2] == ']'));
        require(!memchr(parts.host, brackets ? ']' : ':', parts.host_len));
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_name(data, size);
    check_service(data, size);
    check_split(data, size);
    return 0;
}
