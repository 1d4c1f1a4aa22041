/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the examples make of single values of HTTP: a path never leads above its root, a range never
 * leads outside of its file, a date that is understood is written the same way.
 */
#include "fuzz.h"

#include "http.h"

/* ---- paths ---- */

/* Parts that are not empty, not "." and not "..", with a slash between them; or a lone ".". */
static bool is_plain_path(const char *path)
{
    if (strcmp(path, ".") == 0)
        return true;
    for (;;) {
        size_t n = strcspn(path, "/");
        if (n == 0 || (n <= 2 && strncmp(path, "..", n) == 0))
            return false;
        if (path[n] == '\0')
            return true;
        path += n + 1;
    }
}

static void check_path(const char *text, size_t len)
{
    char *out = calloc(1, len + 2);

    require(out);

    if (http_path_decode(out, text, len)) {
        require(memchr(out, '\0', len + 2));
        require(is_plain_path(out));
        if (!memchr(out, '%', strlen(out))) { /* it is what it says */
            char *again = calloc(1, strlen(out) + 2);
            require(again);
            require(http_path_decode(again, out, strlen(out)));
            require(strcmp(again, out) == 0);
            free(again);
        }
    }
    free(out);
}

/* ---- ranges ---- */

static void check_range(const char *text, size_t len, uint64_t size)
{
    uint64_t at = 0, count = 0;
    int rc = http_range_parse(text, len, size, &at, &count);

    require(rc == 0 || rc == 1 || rc == -416);
    if (rc == 1)
        require(count > 0 && count <= size && at <= size - count);
}

/* ---- dates ---- */

static void check_date(const char *text, size_t len)
{
    char again[HTTP_DATE];
    int64_t seconds;

    if (http_date_parse(text, len, &seconds)) {
        http_date_format(again, seconds);
        require(strlen(again) == len && memcmp(again, text, len) == 0);
    }
}

static void check_seconds(int64_t seconds)
{
    char text[HTTP_DATE];
    int64_t again = -1;

    http_date_format(text, seconds);
    require(http_date_parse(text, strlen(text), &again));
    require(again == seconds || seconds < 0 || seconds > INT64_C(253402300799));
}

/* ---- headers ---- */

static void check_header(const char *head, size_t len)
{
    struct http_span value = {0, 0};

    if (len <= HTTP_HEAD_MAX && http_header(head, len, "range", &value) > 0)
        require((size_t)value.at + value.len <= len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    char *text = exact_copy(data, size, 0);

    check_path(text, size);
    check_range(text, size, 100);
    check_range(text, size, UINT64_MAX);
    check_range(text, size, 0);
    check_date(text, size);
    check_header(text, size);
    (void)http_tag_in(text, size, "\"tag\"");
    check_seconds((int64_t)take_number(&in, 8));
    check_seconds((int64_t)(take_number(&in, 8) % UINT64_C(253402300800)));
    free(text);
    return 0;
}
