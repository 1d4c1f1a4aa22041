/* SPDX-License-Identifier: Apache-2.0 */
/* What the system tells about a file, in our words; and times in its. */
#include "fs/file.h"

#include "system/linux/refused.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static blz_file_type type_of(unsigned mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return BLZ_FILE_REGULAR;
    case S_IFDIR:
        return BLZ_FILE_DIRECTORY;
    case S_IFLNK:
        return BLZ_FILE_SYMLINK;
    case S_IFIFO:
        return BLZ_FILE_FIFO;
    case S_IFSOCK:
        return BLZ_FILE_SOCKET;
    case S_IFCHR:
        return BLZ_FILE_CHAR_DEVICE;
    case S_IFBLK:
        return BLZ_FILE_BLOCK_DEVICE;
    default:
        return BLZ_FILE_UNKNOWN;
    }
}

/* As near as 64 bits come: they reach from 1678 to 2262. */
static int64_t ns_of(const struct statx_timestamp *t)
{
    const int64_t most = INT64_MAX / BLZ_SEC - 1;

    if (t->tv_sec > most)
        return most * BLZ_SEC;
    if (t->tv_sec < -most)
        return -most * BLZ_SEC;
    return t->tv_sec * BLZ_SEC + t->tv_nsec;
}

static void translate(blz_metadata *out, const struct statx *x)
{
    *out = (blz_metadata){
        .type = type_of(x->stx_mode),
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
        .accessed_ns = ns_of(&x->stx_atime),
        .modified_ns = ns_of(&x->stx_mtime),
        .changed_ns = ns_of(&x->stx_ctime),
        .created_ns = x->stx_mask & STATX_BTIME ? ns_of(&x->stx_btime) : INT64_MIN,
    };
}

static int64_t ns_of_old(const struct timespec *t)
{
    return ns_of(&(struct statx_timestamp){.tv_sec = t->tv_sec, .tv_nsec = (uint32_t)t->tv_nsec});
}

/* Where a filter refuses statx: without the time of creation. */
static BLZ_COLD int get_by_stat(int dir, const char *path, int flags, blz_metadata *out)
{
    struct stat s;

    if (fstatat(dir, path, &s, flags) < 0)
        return -errno;
    *out = (blz_metadata){
        .type = type_of(s.st_mode),
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
        .accessed_ns = ns_of_old(&s.st_atim),
        .modified_ns = ns_of_old(&s.st_mtim),
        .changed_ns = ns_of_old(&s.st_ctim),
        .created_ns = INT64_MIN,
    };
    return 0;
}

int blz__metadata_get(int dir, const char *path, int flags, blz_metadata *out)
{
    struct statx x;
    int rc;

    do
        rc = statx(dir, path, flags, STATX_BASIC_STATS | STATX_BTIME, &x);
    while (rc < 0 && errno == EINTR);
    if (rc < 0)
        return sys_is_refused(errno) ? get_by_stat(dir, path, flags, out) : -errno;
    translate(out, &x);
    return 0;
}

static struct timespec timespec_of(int64_t ns)
{
    int64_t sec = ns / BLZ_SEC, rest = ns % BLZ_SEC;

    if (ns == BLZ_TIME_NOW)
        return (struct timespec){.tv_nsec = UTIME_NOW};
    if (ns == BLZ_TIME_KEEP)
        return (struct timespec){.tv_nsec = UTIME_OMIT};
    return rest < 0 ? (struct timespec){.tv_sec = sec - 1, .tv_nsec = rest + BLZ_SEC}
                    : (struct timespec){.tv_sec = sec, .tv_nsec = rest};
}

void blz__times_make(struct timespec times[2], int64_t accessed_ns, int64_t modified_ns)
{
    times[0] = timespec_of(accessed_ns);
    times[1] = timespec_of(modified_ns);
}
