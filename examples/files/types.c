/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of files. What is not known is bytes: the client is told not to guess. */
#include "files.h"

#include <string.h>
#include <strings.h>

const char *type_of_name(const char *name)
{
    static const struct {
        const char *ending, *type;
    } types[] = {
        {"aac", "audio/aac"},
        {"avif", "image/avif"},
        {"bmp", "image/bmp"},
        {"c", "text/plain; charset=utf-8"},
        {"css", "text/css; charset=utf-8"},
        {"csv", "text/csv; charset=utf-8"},
        {"gif", "image/gif"},
        {"gz", "application/gzip"},
        {"h", "text/plain; charset=utf-8"},
        {"htm", "text/html; charset=utf-8"},
        {"html", "text/html; charset=utf-8"},
        {"ico", "image/x-icon"},
        {"jpeg", "image/jpeg"},
        {"jpg", "image/jpeg"},
        {"js", "text/javascript; charset=utf-8"},
        {"json", "application/json"},
        {"log", "text/plain; charset=utf-8"},
        {"md", "text/markdown; charset=utf-8"},
        {"mjs", "text/javascript; charset=utf-8"},
        {"mp3", "audio/mpeg"},
        {"mp4", "video/mp4"},
        {"ogg", "audio/ogg"},
        {"otf", "font/otf"},
        {"pdf", "application/pdf"},
        {"png", "image/png"},
        {"svg", "image/svg+xml"},
        {"tar", "application/x-tar"},
        {"ttf", "font/ttf"},
        {"txt", "text/plain; charset=utf-8"},
        {"wasm", "application/wasm"},
        {"wav", "audio/wav"},
        {"webm", "video/webm"},
        {"webp", "image/webp"},
        {"woff", "font/woff"},
        {"woff2", "font/woff2"},
        {"xml", "application/xml"},
        {"zip", "application/zip"},
    };
    const char *dot = strrchr(name, '.');

    if (dot && !strchr(dot, '/'))
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            if (strcasecmp(dot + 1, types[i].ending) == 0)
                return types[i].type;
    return "application/octet-stream";
}
