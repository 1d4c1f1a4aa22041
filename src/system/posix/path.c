/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files, by POSIX calls. */
#include "system/path.h"

#include "system/env.h"
#include "system/posix/retry.h"
#include "system/posix/stat.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(PATH_MAX <= PATH_SIZE, "realpath may write that much");

bool blz__path_is_separator(char c)
{
    return c == '/';
}

/* ---- names ---- */

/* POSIX says EPERM for a directory, and so do the BSDs; the call for a directory says EISDIR. */
static int error_of_remove(int dir, const char *path)
{
    struct stat st;

    if (errno == EPERM && fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return S_ISDIR(st.st_mode) ? -EISDIR : -EPERM;
    return -errno;
}

int blz__path_remove(blz_sysfd at, const char *path)
{
    int dir = at_or_current(at), rc;

    SYS_RETRY(rc, unlinkat(dir, path, 0));
    return rc < 0 ? error_of_remove(dir, path) : 0;
}

int blz__path_remove_dir(blz_sysfd at, const char *path)
{
    int rc;

    SYS_RETRY(rc, unlinkat(at_or_current(at), path, AT_REMOVEDIR));
    return rc < 0 && errno == EEXIST ? -ENOTEMPTY : sys_result(rc);
}

int blz__path_rename(blz_sysfd from_at, const char *from, blz_sysfd to_at, const char *to)
{
    int rc;

    SYS_RETRY(rc, renameat(at_or_current(from_at), from, at_or_current(to_at), to));
    return sys_result(rc);
}

int blz__path_link(const char *path, const char *name)
{
    int rc;

    SYS_RETRY(rc, link(path, name));
    return sys_result(rc);
}

int blz__path_symlink(const char *text, const char *name)
{
    int rc;

    SYS_RETRY(rc, symlink(text, name));
    return sys_result(rc);
}

/* A text that fills the buffer may have been cut. */
int64_t blz__path_read_link(const char *path, char *text, size_t size)
{
    char whole[PATH_SIZE];
    ssize_t n;

    SYS_RETRY(n, readlink(path, whole, sizeof whole));
    if (n < 0)
        return -errno;
    if (n == (ssize_t)sizeof whole || (size_t)n > size)
        return -ENAMETOOLONG;
    memcpy(text, whole, (size_t)n);
    return n;
}

int64_t blz__path_canonical(const char *path, char text[PATH_SIZE])
{
    const char *found;

    do
        found = realpath(path, text);
    while (!found && errno == EINTR);
    return found ? (int64_t)strlen(text) : -errno;
}

int blz__path_create_dir(const char *path, unsigned mode)
{
    int rc;

    SYS_RETRY(rc, mkdir(path, (mode_t)mode));
    return sys_result(rc);
}

/* ---- what is known ---- */

int blz__path_exists(blz_sysfd at, const char *path)
{
    int rc;

    SYS_RETRY(rc, faccessat(at_or_current(at), path, F_OK, 0));
    if (rc == 0)
        return 1;
    return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
}

int blz__path_set_mode(const char *path, unsigned mode)
{
    int rc;

    SYS_RETRY(rc, chmod(path, (mode_t)mode));
    return sys_result(rc);
}

int blz__path_set_times(const char *path, int64_t accessed_ns, int64_t modified_ns)
{
    const struct timespec times[2] = {time_of_ns(accessed_ns), time_of_ns(modified_ns)};
    int rc;

    SYS_RETRY(rc, utimensat(AT_FDCWD, path, times, 0));
    return sys_result(rc);
}

/* ---- temporary files ---- */

int blz__path_temp_dir(char text[PATH_SIZE])
{
    const char *dir = blz__env_get("TMPDIR");
    int len = snprintf(text, PATH_SIZE, "%s", dir && *dir ? dir : "/tmp");

    return len < 0 || len >= PATH_SIZE ? -ENAMETOOLONG : 0;
}
