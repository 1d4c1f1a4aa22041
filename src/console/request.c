/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests; see request.h.
 *
 * Who may ask: any program of this machine may, it could read what we say. But a browser also asks
 * on behalf of pages from elsewhere, and these shall learn nothing:
 *
 * - `Host` must be a loopback address or "localhost". A page whose own name has been made to lead
 *   to 127.0.0.1 (DNS rebinding) is of one origin with us for the browser, but sends its name.
 * - `Sec-Fetch-Site`, which browsers add and pages cannot change, must not say that the request
 *   comes from another site; nor may `Origin`, in older browsers, be another than `Host`.
 * - There is nothing but GET, and no answer has a header that lets other origins read it.
 */
#include "console/request.h"

#include <blitz/addr.h>
#include <string.h>
#include <strings.h>

size_t blz__request_head_len(const char *text, size_t len, size_t seen)
{
    for (size_t i = seen > 3 ? seen - 3 : 0; i + 4 <= len; i++)
        if (memcmp(text + i, "\r\n\r\n", 4) == 0)
            return i + 4;
    return 0;
}

/* ---- headers ---- */

struct headers {
    const char *host, *origin, *fetch_site, *connection;
    bool has_body, twice;
};

static bool is_token(const char *s)
{
    static const char others[] = "!#$%&'*+-.^_`|~";

    if (!*s)
        return false;
    for (; *s; s++)
        if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9') ||
              strchr(others, *s)))
            return false;
    return true;
}

static const char *trim(char *s)
{
    size_t len;

    while (*s == ' ' || *s == '\t')
        s++;
    len = strlen(s);
    while (len > 0 && (s[len - 1] == ' ' || s[len - 1] == '\t'))
        s[--len] = '\0';
    return s;
}

static void keep(struct headers *h, const char **slot, const char *value)
{
    h->twice |= *slot != NULL;
    *slot = value;
}

static bool take_header(struct headers *h, char *line)
{
    char *colon = strchr(line, ':');
    const char *value;

    if (!colon)
        return false;
    *colon = '\0';
    value = trim(colon + 1);
    if (!is_token(line))
        return false;
    if (strcasecmp(line, "host") == 0)
        keep(h, &h->host, value);
    else if (strcasecmp(line, "origin") == 0)
        keep(h, &h->origin, value);
    else if (strcasecmp(line, "sec-fetch-site") == 0)
        keep(h, &h->fetch_site, value);
    else if (strcasecmp(line, "connection") == 0)
        h->connection = value;
    else if (strcasecmp(line, "transfer-encoding") == 0)
        h->has_body = true;
    else if (strcasecmp(line, "content-length") == 0)
        h->has_body |= strcmp(value, "0") != 0;
    return true;
}

/* The line at *at, without its end; *at is behind it then. NULL: there is none. */
static char *next_line(char **at)
{
    char *line = *at, *end = strstr(line, "\r\n");

    if (!end)
        return NULL;
    *end = '\0';
    *at = end + 2;
    return strchr(line, '\n') || strchr(line, '\r') ? NULL : line;
}

/* ---- who asks ---- */

static bool is_port(const char *s)
{
    size_t digits = strspn(s, "0123456789");
    return digits > 0 && digits <= 5 && !s[digits];
}

/* "127.0.0.1:6670", "[::1]", "localhost:8080" */
static bool is_here(const char *host)
{
    const char *name = host, *end;
    blz_addr addr;

    if (*host == '[') {
        name++;
        end = strchr(host, ']');
        if (!end || (end[1] && (end[1] != ':' || !is_port(end + 2))) || strchr(host, '%'))
            return false; /* a zone is no part of a name */
    } else {
        end = host + strcspn(host, ":");
        if (*end && !is_port(end + 1))
            return false;
        if (end - host == 9 && strncasecmp(host, "localhost", 9) == 0)
            return true;
    }
    return blz_addr_parse_ip(&addr, name, (size_t)(end - name), 0) == 0 &&
           blz_addr_is_loopback(&addr) && (*host == '[') == (blz_addr_family(&addr) == BLZ_ADDR_V6);
}

static bool is_ours(const struct headers *h)
{
    if (h->fetch_site && strcmp(h->fetch_site, "same-origin") != 0 &&
        strcmp(h->fetch_site, "none") != 0)
        return false;
    return !h->origin ||
           (strncmp(h->origin, "http://", 7) == 0 && strcasecmp(h->origin + 7, h->host) == 0);
}

/* ---- all of it ---- */

static bool wants(const struct headers *h, const char *what)
{
    return h->connection && strcasecmp(h->connection, what) == 0;
}

/* "GET /path?query HTTP/1.1" */
static int parse_first(struct request *out, char *line, bool *is_11)
{
    char *target = strchr(line, ' '), *version = target ? strchr(target + 1, ' ') : NULL, *mark;

    if (!version)
        return 400;
    *target++ = *version++ = '\0';
    if (strncmp(version, "HTTP/", 5) != 0 || !is_token(line))
        return 400;
    if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0)
        return 505;
    *is_11 = version[7] == '1';
    if (strcmp(line, "GET") != 0)
        return 405;
    if (*target != '/')
        return 400;
    mark = strchr(target, '?');
    if (mark)
        *mark++ = '\0';
    out->path = target;
    out->query = mark ? mark : "";
    return 0;
}

int blz__request_parse(struct request *out, char *head, size_t len)
{
    struct headers h = {0};
    char *at = head, *line;
    bool is_11 = false;
    int status;

    if (memchr(head, '\0', len))
        return 400;
    head[len - 2] = '\0'; /* of the empty line */
    line = next_line(&at);
    status = line ? parse_first(out, line, &is_11) : 400;
    if (status)
        return status;
    while (*at) {
        line = next_line(&at);
        if (!line || !take_header(&h, line))
            return 400;
    }
    if (!h.host || h.twice || h.has_body)
        return 400;
    out->keep_alive = is_11 ? !wants(&h, "close") : wants(&h, "keep-alive");
    return is_here(h.host) && is_ours(&h) ? 0 : 403;
}

const char *blz__status_text(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 408:
        return "Request Timeout";
    case 431:
        return "Request Header Fields Too Large";
    case 503:
        return "Service Unavailable";
    case 505:
        return "HTTP Version Not Supported";
    default:
        return "Internal Server Error";
    }
}

/* ---- the query ---- */

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void decode(const char *from, size_t len, char *out, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < len && n + 1 < size; i++) {
        char c = from[i];
        if (c == '+') {
            c = ' ';
        } else if (c == '%' && i + 2 < len && hex(from[i + 1]) >= 0 && hex(from[i + 2]) >= 0) {
            c = (char)(hex(from[i + 1]) << 4 | hex(from[i + 2]));
            i += 2;
        }
        if (c)
            out[n++] = c;
    }
    out[n] = '\0';
}

bool blz__query_text(const char *query, const char *name, char *out, size_t size)
{
    size_t name_len = strlen(name);

    while (*query) {
        size_t len = strcspn(query, "&");

        if (len > name_len && memcmp(query, name, name_len) == 0 && query[name_len] == '=') {
            decode(query + name_len + 1, len - name_len - 1, out, size);
            return true;
        }
        query += len + (query[len] == '&');
    }
    return false;
}

uint64_t blz__query_number(const char *query, const char *name, uint64_t max, uint64_t otherwise)
{
    uint64_t number = 0;
    char text[24];

    if (!blz__query_text(query, name, text, sizeof text) || !*text)
        return otherwise;
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9')
            return otherwise;
        number = number * 10 + (uint64_t)(*c - '0');
        if (number > max)
            return max;
    }
    return number;
}
