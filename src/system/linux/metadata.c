/* SPDX-License-Identifier: Apache-2.0 */
/* What the system tells about a file: statx(2), or stat where a filter refuses that. */
#include "system/path.h"

#include "system/linux/refused.h"
#include "system/posix/retry.h"
#include "system/posix/stat.h"

#include <sys/sysmacros.h>

static int64_t ns_of_statx(const struct statx_timestamp *t)
{
    return ns_of_time(t->tv_sec, t->tv_nsec);
}

static void metadata_from_statx(blz_metadata *out, const struct statx *x)
{
    *out = (blz_metadata){
        .type = type_of_mode(x->stx_mode),
        .mode = x->stx_mode & 07777u,
        .size = (int64_t)x->stx_size,
        .blocks = (int64_t)x->stx_blocks,
        .block_size = x->stx_blksize,
        .uid = x->stx_uid,
        .gid = x->stx_gid,
        .links = x->stx_nlink,
        .device = makedev(x->stx_dev_major, x->stx_dev_minor),
        .inode = x->stx_ino,
        .special = makedev(x->stx_rdev_major, x->stx_rdev_minor),
        .accessed_ns = ns_of_statx(&x->stx_atime),
        .modified_ns = ns_of_statx(&x->stx_mtime),
        .changed_ns = ns_of_statx(&x->stx_ctime),
        .created_ns = x->stx_mask & STATX_BTIME ? ns_of_statx(&x->stx_btime) : INT64_MIN,
    };
}

/* Without the time of creation. */
static BLZ_COLD int metadata_by_stat(int dir, const char *path, int flags, blz_metadata *out)
{
    struct stat s;
    int rc;

    SYS_RETRY(rc, fstatat(dir, path, &s, flags));
    if (rc < 0)
        return -errno;
    *out = (blz_metadata){
        .type = type_of_mode(s.st_mode),
        .mode = s.st_mode & 07777u,
        .size = s.st_size,
        .blocks = s.st_blocks,
        .block_size = (uint32_t)s.st_blksize,
        .uid = s.st_uid,
        .gid = s.st_gid,
        .links = (uint32_t)s.st_nlink,
        .device = s.st_dev,
        .inode = s.st_ino,
        .special = s.st_rdev,
        .accessed_ns = ns_of_time(s.st_atim.tv_sec, s.st_atim.tv_nsec),
        .modified_ns = ns_of_time(s.st_mtim.tv_sec, s.st_mtim.tv_nsec),
        .changed_ns = ns_of_time(s.st_ctim.tv_sec, s.st_ctim.tv_nsec),
        .created_ns = INT64_MIN,
    };
    return 0;
}

static int metadata_by_statx(int dir, const char *path, int flags, blz_metadata *out)
{
    struct statx x;
    int rc;

    SYS_RETRY(rc, statx(dir, path, flags, STATX_BASIC_STATS | STATX_BTIME, &x));
    if (rc < 0)
        return sys_is_refused(errno) ? metadata_by_stat(dir, path, flags, out) : -errno;
    metadata_from_statx(out, &x);
    return 0;
}

int blz__file_metadata(blz_sysfd fd, blz_metadata *out)
{
    return metadata_by_statx(fd, "", AT_EMPTY_PATH, out);
}

int blz__path_metadata(blz_sysfd at, const char *path, bool follow, blz_metadata *out)
{
    return metadata_by_statx(at_or_current(at), path, follow ? 0 : AT_SYMLINK_NOFOLLOW, out);
}
