/* SPDX-License-Identifier: Apache-2.0 */
/* Replies: a status line, some headers, a body. */
#include "demo.h"

#include <string.h>
#include <time.h>

static void put_head(struct bytes *out, int status, const char *type, size_t len)
{
    char date[HTTP_DATE];

    http_date_format(date, time(NULL));
    bytes_print(out,
                "HTTP/1.1 %d %s\r\n"
                "Date: %s\r\n"
                "Content-Type: %s\r\n"
                "Content-Length: %zu\r\n",
                status, http_status_name(status), date, type, len);
}

static void put_text(struct bytes *out, const char *text)
{
    bytes_add(out, text, strlen(text));
}

void reply(struct bytes *out, const struct exchange *x, const struct bytes *body)
{
    struct bytes failure = {0};

    if (x->status != 200) {
        bytes_print(&failure, "%d %s\n", x->status, http_status_name(x->status));
        body = &failure;
    }
    put_head(out, x->status, x->status == 200 ? x->page->type : "text/plain", body->len);
    if (x->status == 405)
        bytes_print(out, "Allow: %s\r\n", x->page->methods);
    if (x->close)
        put_text(out, "Connection: close\r\n");
    else if (x->request.minor == 0)
        put_text(out, "Connection: keep-alive\r\n");
    put_text(out, "\r\n");
    if (x->request.method != HTTP_HEAD)
        bytes_add(out, body->data, body->len);
    out->failed |= body->failed;
    bytes_free(&failure);
}
