/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the page, which the build puts into console_page.h; see cmake/BlitzPage.cmake. */
#include "console/console.h"

#include <string.h>

struct page_file {
    const char *path, *type;
    const unsigned char *data;
    size_t len;
};

#include "console_page.h"

const char *blz__page_find(const char *path, size_t *len, const char **type)
{
    for (size_t i = 0; i < sizeof page_files / sizeof page_files[0]; i++)
        if (strcmp(path, page_files[i].path) == 0) {
            *len = page_files[i].len;
            *type = page_files[i].type;
            return (const char *)page_files[i].data;
        }
    return NULL;
}
