/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies. A client that has a copy says which, by a tag or by a date, and is sent the file only if
 * it has become another one. The tag counts more: it is made of what no change leaves as it was.
 */
#include "files.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- deciding ---- */

static int64_t modified_seconds(const blz_metadata *meta)
{
    int64_t ns = meta->modified_ns;

    return ns / BLZ_SEC - (ns % BLZ_SEC < 0);
}

/* Whether the date is one of a copy that is as new as the file. */
static bool is_recent(const struct reply *reply, const char *date, size_t len)
{
    int64_t seconds;

    return http_date_parse(date, len, &seconds) && modified_seconds(&reply->of->meta) <= seconds;
}

static bool is_known(const struct reply *reply, const char *head, size_t len)
{
    struct http_span span;

    if (http_header(head, len, "if-none-match", &span) > 0)
        return http_tag_in(head + span.at, span.len, reply->tag);
    return http_header(head, len, "if-modified-since", &span) > 0 &&
           is_recent(reply, head + span.at, span.len);
}

/* Whether a range is wanted of this very file; a weak tag, or an older date, is not enough. */
static bool range_applies(const struct reply *reply, const char *head, size_t len)
{
    struct http_span span;
    int64_t seconds;

    if (http_header(head, len, "if-range", &span) == 0)
        return true;
    if (span.len > 0 && head[span.at] == '"')
        return span.len == strlen(reply->tag) && memcmp(head + span.at, reply->tag, span.len) == 0;
    return http_date_parse(head + span.at, span.len, &seconds) &&
           seconds == modified_seconds(&reply->of->meta);
}

void reply_decide(struct reply *reply, const char *head, size_t len)
{
    const blz_metadata *meta = &reply->of->meta;
    struct http_span span;
    int rc = 0;

    snprintf(reply->tag, sizeof reply->tag, "\"%" PRIx64 "-%" PRIx64 "-%" PRIx64 "\"", meta->inode,
             (uint64_t)meta->size, (uint64_t)meta->modified_ns);
    reply->status = 200;
    reply->at = 0;
    reply->count = (uint64_t)meta->size;
    if (is_known(reply, head, len))
        reply->status = 304;
    else if (http_header(head, len, "range", &span) == 1 && range_applies(reply, head, len))
        rc = http_range_parse(head + span.at, span.len, (uint64_t)meta->size, &reply->at,
                              &reply->count);
    if (rc != 0)
        reply->status = rc > 0 ? 206 : 416;
}

/* ---- writing ---- */

/* What is known of a file, in all replies about it. */
static void put_file(struct bytes *out, const struct reply *reply)
{
    char date[HTTP_DATE];
    uint64_t size = (uint64_t)reply->of->meta.size;

    http_date_format(date, modified_seconds(&reply->of->meta));
    bytes_print(out, "Last-Modified: %s\r\nETag: %s\r\nAccept-Ranges: bytes\r\n", date, reply->tag);
    if (reply->status == 206)
        bytes_print(out, "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n", reply->at,
                    reply->at + reply->count - 1, size);
    if (reply->status == 416)
        bytes_print(out, "Content-Range: bytes */%" PRIu64 "\r\n", size);
}

void reply_head(struct bytes *out, const struct reply *reply, const struct http_request *request,
                const char *type, uint64_t body_len)
{
    char date[HTTP_DATE];

    http_date_format(date, time(NULL));
    bytes_print(out, "HTTP/1.1 %d %s\r\nDate: %s\r\n", reply->status,
                http_status_name(reply->status), date);
    if (reply->status != 304)
        bytes_print(out, "Content-Type: %s\r\nContent-Length: %" PRIu64 "\r\n", type, body_len);
    bytes_print(out, "X-Content-Type-Options: nosniff\r\n");
    if (reply->of && reply->of->meta.type == BLZ_FILE_REGULAR)
        put_file(out, reply);
    if (reply->status == 405)
        bytes_print(out, "Allow: GET, HEAD\r\n");
    if (reply->close)
        bytes_print(out, "Connection: close\r\n");
    else if (request->minor == 0)
        bytes_print(out, "Connection: keep-alive\r\n");
}

void reply_status(struct bytes *out, const struct reply *reply, const struct http_request *request,
                  const struct bytes *where)
{
    char body[64];
    int len =
        snprintf(body, sizeof body, "%d %s\n", reply->status, http_status_name(reply->status));

    reply_head(out, reply, request, "text/plain; charset=utf-8", (uint64_t)len);
    if (reply->status == 301)
        bytes_print(out, "Location: %.*s\r\n", (int)where->len, where->data);
    bytes_add(out, "\r\n", 2);
    if (reply->status != 304 && request->method != HTTP_HEAD)
        bytes_add(out, body, (size_t)len);
}
