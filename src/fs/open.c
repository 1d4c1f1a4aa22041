/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening files, and taking over descriptors. First a call that fails if the path is not all in the
 * system's memory (RESOLVE_CACHED, Linux 5.12), then one that waits, on a thread.
 *
 * Opening a FIFO would wait for its other side, for ever perhaps. So everything is opened in
 * non-blocking mode, which is then taken away again.
 *
 * A descriptor that comes when its taker has been cancelled is closed.
 */
#include <blitz/file.h>

#include "fs/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * What blz__open_how packs into one number: flags of open(2), the mode above them, and above that
 * whether the path must stay beneath its beginning.
 */
enum { MODE_SHIFT = 32, BENEATH_SHIFT = 44 };

enum { MAX_MOVED = 8 }; /* how often that is taken for the reason of an EAGAIN */

/* ---- what is asked for ---- */

static int access_of(const blz_open_options *o)
{
    if (o->append || o->write)
        return (o->read ? O_RDWR : O_WRONLY) | (o->append ? O_APPEND : 0);
    return O_RDONLY;
}

uint64_t blz__open_how(const blz_open_options *o)
{
    bool writes = o->write || o->append;
    int flags = access_of(o) | o->flags | O_CLOEXEC | O_NOCTTY;
    unsigned mode = o->mode ? o->mode : 0666;

    if (!writes && (o->truncate || o->create || o->create_new))
        return UINT64_MAX;
    if ((o->append && o->truncate) || (mode & ~07777u))
        return UINT64_MAX;
    flags |= o->truncate ? O_TRUNC : 0;
    flags |= o->create || o->create_new ? O_CREAT : 0;
    flags |= o->create_new ? O_EXCL : 0;
    flags |= o->directory ? O_DIRECTORY : 0;
    flags |= o->no_follow ? O_NOFOLLOW : 0;
    return (uint64_t)o->beneath << BENEATH_SHIFT | (uint64_t)mode << MODE_SHIFT | (uint32_t)flags;
}

/* ---- the calls ---- */

static int open_cached(int dir, const char *path, int flags, bool beneath)
{
    struct open_how how = {.flags = (uint64_t)(unsigned)flags,
                           .resolve = RESOLVE_CACHED | (beneath ? RESOLVE_BENEATH : 0)};
    long fd;

    if (flags & (O_CREAT | O_TRUNC | O_PATH)) /* O_TMPFILE makes things, too */
        return -EAGAIN;
    if ((flags & O_TMPFILE) == O_TMPFILE)
        return -EAGAIN;
    fd = syscall(SYS_openat2, dir, path, &how, sizeof how);
    if (fd >= 0)
        return (int)fd;
    /* old systems do not know one or the other; what does not exist is told by a call that waits,
     * because a file system over a network may have to ask */
    return -EAGAIN;
}

/*
 * openat, that may have to stay beneath `dir`. The newer call refuses what the older one ignores: a
 * mode for nothing, and most flags with O_PATH. It gives EAGAIN (which is EWOULDBLOCK) also if
 * something was moved meanwhile, so that it cannot be sure.
 */
static int open_call(int dir, const char *path, int flags, mode_t mode, bool beneath)
{
    struct open_how how = {.flags = (uint64_t)(unsigned)flags, .resolve = RESOLVE_BENEATH};

    if (!beneath)
        return openat(dir, path, flags, mode);
    if (flags & O_PATH)
        how.flags &= O_PATH | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW;
    else if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE)
        how.mode = mode;
    return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

static int open_patiently(int dir, const char *path, int flags, mode_t mode, bool beneath)
{
    int fd, moved = beneath ? MAX_MOVED : 0;

    do {
        fd = open_call(dir, path, flags, mode, beneath);
        if (fd < 0 && errno == EWOULDBLOCK && moved-- <= 0)
            flags &= ~O_NONBLOCK; /* a regular file, and another process has to give up its lease */
    } while (fd < 0 && (errno == EINTR || errno == EWOULDBLOCK));
    if (fd < 0 && errno == ENOSYS)
        return -ENOTSUP;
    return fd < 0 ? -errno : fd;
}

static bool is_file(mode_t mode)
{
    return !S_ISFIFO(mode) && !S_ISSOCK(mode);
}

/* Of a descriptor in non-blocking mode: 0, or an error. */
static int make_usable(int fd, int flags)
{
    struct stat st;

    if (flags & O_PATH)
        return 0;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!is_file(st.st_mode))
        return -EINVAL;
    return fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0 ? -errno : 0;
}

int blz__open_run(int dir, const char *path, uint64_t how, bool cached)
{
    int flags = (int)(uint32_t)how | O_NONBLOCK, fd, rc;
    mode_t mode = (mode_t)(how >> MODE_SHIFT & 07777);
    bool beneath = how >> BENEATH_SHIFT & 1;

    if (how == UINT64_MAX)
        return -EINVAL;
    fd = cached ? open_cached(dir, path, flags, beneath)
                : open_patiently(dir, path, flags, mode, beneath);
    if (fd < 0)
        return fd == -ENXIO ? -EINVAL : fd; /* a socket; a FIFO that nobody reads */
    rc = make_usable(fd, flags);
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}

/* ---- the future ---- */

static int64_t hand_out(struct io *io, blz_cx *cx, int fd)
{
    blz__fd_ref *ref = (blz__fd_ref *)(uintptr_t)io->len; /* what blz_file_open was given */
    int rc = io->flags & IO_CANCELLED ? -ECANCELED : blz__fd_adopt(ref, blz_cx_rt(cx), fd, 0);

    if (rc < 0)
        close(fd);
    return rc;
}

static blz_poll open_poll(blz_future *self, blz_cx *cx)
{
    if (blz_is_pending(blz__file_poll(self, cx)))
        return BLZ_PENDING;
    if (self->result >= 0)
        self->result = hand_out((struct io *)self, cx, (int)self->result);
    return BLZ_READY;
}

blz_future *blz_file_open(blz_io *public, blz_file *file, const char *path,
                          const blz_open_options *options)
{
    static const blz_future_ops ops = {.name = "file_open",
                                       .poll = open_poll,
                                       .cancel = blz__file_cancel,
                                       .look = blz__file_look};
    static const blz_open_options none;
    const blz_open_options *o = options ? options : &none;
    struct io *io = (struct io *)public;

    blz__file_init(public, &ops, FILE_OPEN, o->at, (void *)(uintptr_t)path, (uintptr_t)file,
                   blz__open_how(o));
    if (o->at && !io->fd)
        io->generation = 1; /* a handle that is none is not the current directory */
    *file = (blz_file){NULL, 0};
    return &io->op.future;
}

blz_future *blz_file_create(blz_io *io, blz_file *file, const char *path)
{
    static const blz_open_options options = {.write = true, .create = true, .truncate = true};

    return blz_file_open(io, file, path, &options);
}

int blz_file_close(blz_file *file)
{
    int rc = blz__fd_close(file_mutable_ref(file), NULL);

    *file = (blz_file){NULL, 0};
    return rc;
}

/* ---- from elsewhere ---- */

int blz_file_from_fd(blz_file *file, blz_rt *rt, int fd)
{
    struct stat st;

    *file = (blz_file){NULL, 0};
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!is_file(st.st_mode))
        return -EINVAL;
    return blz__fd_adopt(file_mutable_ref(file), rt ? rt : blz_rt_current(), fd, 0);
}

int blz_file_into_fd(blz_file *file)
{
    int fd = blz__fd_take(file_mutable_ref(file));

    if (fd >= 0)
        *file = (blz_file){NULL, 0};
    return fd;
}
