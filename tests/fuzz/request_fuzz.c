/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The console's HTTP: the end of a head is found wherever the input is cut; what is taken for a
 * request lies inside of it; and nothing is answered but what names a loopback address as its host,
 * once, and no other site as who asks; but all of that is. This is found out a second time here,
 * in another way.
 */
#include "fuzz.h"

#include "console/request.h"

#include <arpa/inet.h>
#include <strings.h>

/* ---- the head ---- */

static size_t check_end(const uint8_t *data, size_t size)
{
    char *whole = exact_copy(data, size, 0);
    size_t len = blz__request_head_len(whole, size, 0);

    require(len <= size && (len == 0 || (len >= 4 && memcmp(whole + len - 4, "\r\n\r\n", 4) == 0)));
    for (size_t cut = 0; cut < size; cut += size / 64 + 1) {
        char *part = exact_copy(data, cut, 0);
        size_t early = blz__request_head_len(part, cut, 0);

        require(early == (len <= cut ? len : 0));
        if (early == 0)
            require(blz__request_head_len(whole, size, cut) == len);
        free(part);
    }
    free(whole);
    return len;
}

/* ---- who asks, by other means ---- */

static bool is_loopback(const char *host)
{
    struct in6_addr six;
    char name[64];
    size_t len = strlen(host);

    while (len > 0 && host[len - 1] >= '0' && host[len - 1] <= '9') /* a port */
        len--;
    if (len == 0 || len == strlen(host) || len + 5 < strlen(host) || host[len - 1] != ':')
        len = strlen(host) + 1;
    len--;
    if (len == 0 || len >= sizeof name)
        return false;
    memcpy(name, host, len);
    name[len] = '\0';
    if (name[0] != '[')
        return strcasecmp(name, "localhost") == 0 ||
               (strncmp(name, "127.", 4) == 0 && inet_pton(AF_INET, name, &six) == 1);
    if (name[len - 1] != ']')
        return false;
    name[len - 1] = '\0';
    if (inet_pton(AF_INET6, name + 1, &six) != 1)
        return false;
    return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

static bool is_own(const char *site)
{
    return strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
}

/* What the headers say of who asks. */
struct asked {
    int hosts;
    bool foreign, has_origin;
};

static void take_header(struct asked *asked, char *line)
{
    char *value = strchr(line, ':');

    require(value);
    *value++ = '\0';
    value += strspn(value, " \t");
    for (size_t len = strlen(value); len > 0 && strchr(" \t", value[len - 1]); len--)
        value[len - 1] = '\0';
    if (strcasecmp(line, "host") == 0) {
        asked->hosts++;
        asked->foreign |= !is_loopback(value);
    }
    asked->foreign |= strcasecmp(line, "sec-fetch-site") == 0 && !is_own(value);
    asked->has_origin |= strcasecmp(line, "origin") == 0;
    require(strcasecmp(line, "transfer-encoding") != 0);
}

/* Of a head that is well formed. */
static struct asked who_asks(const uint8_t *data, size_t len)
{
    char *head = exact_copy(data, len - 2, 1), *line = head, *end;
    struct asked asked = {0};

    require(memcmp(head, "GET /", 5) == 0);
    for (bool first = true; (end = strstr(line, "\r\n")); line = end + 2, first = false) {
        *end = '\0';
        if (!first)
            take_header(&asked, line);
    }
    require(*line == '\0' && asked.hosts == 1);
    free(head);
    return asked;
}

/* ---- all of it ---- */

static void check_query(const char *query)
{
    static const char *const names[] = {"q", "sort", "limit", "a"};
    char text[24];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (size_t size = 1; size <= sizeof text; size += 7) {
            memset(text, 'x', sizeof text);
            if (blz__query_text(query, names[i], text, size))
                require(strlen(text) < size);
        }
        uint64_t number = blz__query_number(query, names[i], 1000, 7777);
        require(number <= 1000 || number == 7777);
        blz__query_number(query, names[i], UINT64_MAX, 0);
    }
}

static bool inside(const char *text, const char *head, size_t len)
{
    return text >= head && text + strlen(text) < head + len;
}

static void check_request(const uint8_t *data, size_t len)
{
    char *head = exact_copy(data, len, 0);
    struct request request = {0};
    int status = blz__request_parse(&request, head, len);

    require(status == 0 || status == 400 || status == 403 || status == 405 || status == 505);
    require(strcmp(blz__status_text(status ? status : 200), "Internal Server Error") != 0);
    if (status == 0) {
        require(inside(request.path, head, len) && request.path[0] == '/');
        require(!*request.query || inside(request.query, head, len));
        require(!strpbrk(request.path, "\r\n ?") && !strpbrk(request.query, "\r\n "));
        check_query(request.query);
        require(!who_asks(data, len).foreign);
    }
    if (status == 403) {
        struct asked asked = who_asks(data, len);
        require(asked.foreign || asked.has_origin);
    }
    free(head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *query = exact_copy(data, size, 1);
    size_t len = check_end(data, size);

    if (len > 0)
        check_request(data, len);
    check_query(query);
    free(query);
    return 0;
}
