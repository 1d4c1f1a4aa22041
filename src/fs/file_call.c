/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls of operations on files: those that may wait, for threads of the pool, and those
 * that do not, for workers.
 *
 * Reads and writes have a flag that makes them take or give only what is in the system's memory
 * (RWF_NOWAIT). Not every file system has it, and some have it for reading alone; what was found
 * out is kept in `ready` of the descriptor's entry, which is a hint here as it is with sockets:
 *
 *   FD_READY               the flag has worked, or has not been tried
 *   FD_READY | FD_ENDED    all of the file system is memory: plain calls do not wait
 *   0                      neither: calls are left to others
 */
#include "fs/file.h"

#include "system/linux/refused.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

static int direction_of(const struct io *io)
{
    return io->op.kind == IO_FILE_WRITE || io->op.kind == IO_FILE_WRITEV ? FD_OUT : FD_IN;
}

/* Where a filter refuses the calls with flags. */
static BLZ_COLD ssize_t transfer_by_old_call(const struct io *io, int fd, const struct iovec *iov,
                                             int count)
{
    off_t offset = (off_t)io->offset;

    if (direction_of(io) == FD_OUT)
        return offset < 0 ? writev(fd, iov, count) : pwritev(fd, iov, count, offset);
    return offset < 0 ? readv(fd, iov, count) : preadv(fd, iov, count, offset);
}

/* One read or write. The offset -1 means the position, here as everywhere. */
static int64_t transfer(const struct io *io, int fd, int flags)
{
    bool vectored = io->op.kind == IO_FILE_READV || io->op.kind == IO_FILE_WRITEV;
    struct iovec one = {io->buf, io_clamp(io->len)};
    const struct iovec *iov = vectored ? io->buf : &one;
    int count = vectored ? (int)io_clamp(io->len) : 1;
    ssize_t n;

    do {
        n = direction_of(io) == FD_OUT ? pwritev2(fd, iov, count, (off_t)io->offset, flags)
                                       : preadv2(fd, iov, count, (off_t)io->offset, flags);
        if (blz_unlikely(n < 0 && flags == 0 && sys_is_refused(errno)))
            n = transfer_by_old_call(io, fd, iov, count);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

/* ---- without waiting ---- */

static bool is_all_memory(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

static int64_t try_transfer(const struct io *io, int fd)
{
    uint32_t *hint = &io->fd->ready[direction_of(io)], seen = blz__load(hint, RELAXED);
    int64_t n;

    if (!(seen & FD_READY))
        return -EAGAIN;
    n = transfer(io, fd, seen & FD_ENDED ? 0 : RWF_NOWAIT);
    if (blz_likely(n >= 0 || (n != -EOPNOTSUPP && !sys_is_refused((int)-n))) || (seen & FD_ENDED))
        return n;
    seen = is_all_memory(fd) ? FD_READY | FD_ENDED : 0;
    blz__store(hint, seen, RELAXED);
    return seen ? transfer(io, fd, 0) : -EAGAIN;
}

/* What an open file is known by is in memory with these; with others it may be a server's. */
static bool is_local(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 &&
           (fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == XFS_SUPER_MAGIC ||
            fs.f_type == BTRFS_SUPER_MAGIC || fs.f_type == F2FS_SUPER_MAGIC ||
            fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

int64_t blz__file_try(const struct io *io, int fd)
{
    if (io->op.kind < IO_FILE_SYNC)
        return try_transfer(io, fd);
    if (io->op.kind == FILE_OPEN)
        return blz__open_run(fd, io->buf, io->offset, true);
    if (io->op.kind == FILE_METADATA && is_local(fd))
        return blz__file_call(io, fd);
    return -EAGAIN;
}

/* ---- with patience ---- */

static int set_times(int fd, int64_t accessed_ns, int64_t modified_ns)
{
    struct timespec times[2];

    blz__times_make(times, accessed_ns, modified_ns);
    return futimens(fd, times);
}

static int call_of(const struct io *io, int fd)
{
    switch (io->op.kind) {
    case IO_FILE_SYNC:
        return io->len ? fdatasync(fd) : fsync(fd);
    case FILE_SET_LEN:
        return ftruncate(fd, (off_t)io->offset);
    case FILE_ALLOCATE:
        return fallocate(fd, io->msg_flags ? FALLOC_FL_KEEP_SIZE : 0, (off_t)io->offset,
                         (off_t)io->len);
    case FILE_SET_MODE:
        return fchmod(fd, (mode_t)io->len);
    case FILE_SET_TIMES:
        return set_times(fd, (int64_t)io->offset, (int64_t)io->len);
    default:
        return flock(fd, (int)io->len);
    }
}

int64_t blz__file_call(const struct io *io, int fd)
{
    int rc;

    if (io->op.kind < IO_FILE_SYNC)
        return transfer(io, fd, 0);
    if (io->op.kind == FILE_OPEN)
        return blz__open_run(fd, io->buf, io->offset, false);
    if (io->op.kind == FILE_METADATA)
        return blz__metadata_get(fd, "", AT_EMPTY_PATH, io->buf);
    do
        rc = call_of(io, fd);
    while (rc < 0 && errno == EINTR);
    return rc < 0 ? -errno : 0;
}
