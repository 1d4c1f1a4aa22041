/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata and times: the system's structs and the library's. */
#ifndef BLZ_SYSTEM_POSIX_STAT_H
#define BLZ_SYSTEM_POSIX_STAT_H

#include "system/file.h"

#include <fcntl.h>
#include <sys/stat.h>

/* A directory that a path begins at, for the calls whose names end with "at". */
static inline int at_or_current(blz_sysfd at)
{
    return at == FILE_CURRENT_DIR ? AT_FDCWD : at;
}

static inline blz_file_type type_of_mode(unsigned mode)
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
static inline int64_t ns_of_time(int64_t sec, int64_t ns)
{
    const int64_t most = INT64_MAX / BLZ_SEC - 1;

    if (sec > most)
        return most * BLZ_SEC;
    if (sec < -most)
        return -most * BLZ_SEC;
    return sec * BLZ_SEC + ns;
}

static inline struct timespec time_of_ns(int64_t ns)
{
    int64_t sec = ns / BLZ_SEC, rest = ns % BLZ_SEC;

    if (ns == BLZ_TIME_NOW)
        return (struct timespec){.tv_nsec = UTIME_NOW};
    if (ns == BLZ_TIME_KEEP)
        return (struct timespec){.tv_nsec = UTIME_OMIT};
    return rest < 0 ? (struct timespec){.tv_sec = sec - 1, .tv_nsec = rest + BLZ_SEC}
                    : (struct timespec){.tv_sec = sec, .tv_nsec = rest};
}

#endif
