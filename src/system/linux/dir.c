/* SPDX-License-Identifier: Apache-2.0 */
/* Directories by getdents64(2). A batch is a row of struct dirent64. */
#include "system/dir.h"

#include "system/posix/retry.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

_Static_assert(_Alignof(struct dirent64) <= DIR_BATCH_ALIGN, "a batch is aligned for entries");

int64_t blz__dir_fetch(blz_sysfd fd, void *batch, size_t size)
{
    ssize_t n;

    SYS_RETRY(n, getdents64(fd, batch, size));
    return sys_count(n);
}

static blz_file_type type_of_entry(unsigned char type)
{
    switch (type) {
    case DT_REG:
        return BLZ_FILE_REGULAR;
    case DT_DIR:
        return BLZ_FILE_DIRECTORY;
    case DT_LNK:
        return BLZ_FILE_SYMLINK;
    case DT_FIFO:
        return BLZ_FILE_FIFO;
    case DT_SOCK:
        return BLZ_FILE_SOCKET;
    case DT_CHR:
        return BLZ_FILE_CHAR_DEVICE;
    case DT_BLK:
        return BLZ_FILE_BLOCK_DEVICE;
    default:
        return BLZ_FILE_UNKNOWN;
    }
}

static bool is_dot_entry(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

bool blz__dir_take(const void *batch, size_t len, size_t *used, blz_dir_entry *entry)
{
    while (*used < len) {
        const struct dirent64 *e = (const void *)((const char *)batch + *used);
        *used += e->d_reclen;
        if (is_dot_entry(e->d_name))
            continue;
        *entry =
            (blz_dir_entry){.name = e->d_name, .type = type_of_entry(e->d_type), .inode = e->d_ino};
        return true;
    }
    return false;
}

int blz__dir_rewind(blz_sysfd fd)
{
    return lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;
}
