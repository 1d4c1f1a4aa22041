/* SPDX-License-Identifier: Apache-2.0 */
/* Files without a name: O_TMPFILE, or where there are none, a file that has a name for a moment. */
#include "system/path.h"

#include "system/random.h"

#include <blitz/error.h>
#include <stdio.h>

static int64_t open_named(blz_sysfd dir)
{
    char name[32];
    int64_t fd;

    do {
        snprintf(name, sizeof name, ".blitz-%016llx", (unsigned long long)blz__random_seed());
        fd = blz__file_open(dir, name, OPEN_READ | OPEN_WRITE | OPEN_CREATE_NEW, 0600);
    } while (fd == -EEXIST);
    if (fd >= 0)
        (void)blz__path_remove(dir, name);
    return fd;
}

/* Kernels and file systems that cannot say one of these three. */
int64_t blz__path_temp_file(const char *dir)
{
    int64_t fd = blz__file_open(FILE_CURRENT_DIR, dir, OPEN_READ | OPEN_WRITE | BLZ_OPEN_UNNAMED,
                                0600),
            parent;

    if (fd != -ENOTSUP && fd != -EISDIR && fd != -ENOENT)
        return fd;
    parent = blz__file_open(FILE_CURRENT_DIR, dir, OPEN_READ | OPEN_DIRECTORY, 0);
    if (parent < 0)
        return parent;
    fd = open_named((blz_sysfd)parent);
    (void)blz__file_close((blz_sysfd)parent);
    return fd;
}
