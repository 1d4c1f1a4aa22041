/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the console listens: a loopback address, or a Unix socket.
 *
 * The file of a Unix socket outlives a program that was killed. If nobody listens there any more it
 * is removed, and if it is no socket it is left alone. Two programs that start at the same path
 * could each take the other's new socket for an old one. So from the look at the old socket to
 * listen(2) a program holds a lock: flock(2) of the file "PATH.lock", which it removes before it
 * lets go. A program that finds the lock taken gives up with -EADDRINUSE.
 *
 * Only the owner may connect. Linux gives the new file the mode that the socket itself has when it
 * is bound, so that is set first: the file never has another mode, and no path is followed twice.
 * The server also checks the user of each client.
 */
#include "console/console.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BACKLOG = 128, LOCK_PATH = 128 }; /* the longest path of a socket has 108 bytes */

int blz__console_address(blz_addr *addr, const char *text)
{
    int rc = blz_addr_parse(addr, text);

    if (rc < 0)
        return rc == -ENAMETOOLONG ? rc : -EINVAL;
    if (blz_addr_family(addr) == BLZ_ADDR_UNIX) {
        size_t len;
        bool abstract;
        (void)blz_addr_unix_name(addr, &len, &abstract);
        return len > 0 ? 0 : -EINVAL;
    }
    return blz_addr_is_loopback(addr) ? 0 : -EINVAL;
}

/* The path of its file, or NULL. */
static const char *path_of(const blz_console *console)
{
    size_t len;
    bool abstract;
    const char *name = blz_addr_unix_name(&console->addr, &len, &abstract);

    return abstract ? NULL : name;
}

/* ---- the lock ---- */

struct start_lock {
    int fd;
    char path[LOCK_PATH];
};

/* False: the file was removed, or replaced, before it was locked. */
static bool is_lock_file(const struct start_lock *lock)
{
    struct stat ours, there;

    return fstat(lock->fd, &ours) == 0 && lstat(lock->path, &there) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/* 0; -EADDRINUSE: another one is starting here; or what the system says. */
static int lock_start(struct start_lock *lock, const char *path)
{
    int rc;

    snprintf(lock->path, sizeof lock->path, "%s.lock", path);
    for (;;) {
        lock->fd = open(lock->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
        if (lock->fd < 0)
            return -errno;
        rc = flock(lock->fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
        if (rc == 0 && is_lock_file(lock))
            return 0;
        close(lock->fd);
        if (rc < 0)
            return rc == -EWOULDBLOCK ? -EADDRINUSE : rc;
    }
}

static void unlock_start(struct start_lock *lock)
{
    (void)unlink(lock->path);
    close(lock->fd);
}

/* ---- Unix sockets ---- */

static bool somebody_listens(const blz_addr *addr)
{
    uint32_t len;
    const struct sockaddr *sa = blz_addr_sockaddr(addr, &len);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

    if (fd < 0)
        return true; /* it cannot be known */
    rc = connect(fd, sa, len);
    if (rc < 0)
        rc = -errno;
    close(fd);
    return rc != -ECONNREFUSED;
}

/* True: what was in the way is gone. Under the lock. */
static bool remove_stale(const blz_addr *addr, const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && !somebody_listens(addr) &&
           unlink(path) == 0;
}

static int bind_to(int fd, const blz_addr *addr)
{
    uint32_t len;
    const struct sockaddr *sa = blz_addr_sockaddr(addr, &len);

    return bind(fd, sa, len) < 0 ? -errno : 0;
}

/* Binds the socket to a path, listens, and notes which file that is. Under the lock. */
static int listen_at(blz_console *console, int fd, const char *path)
{
    struct stat st;
    int rc;

    if (fchmod(fd, S_IRUSR | S_IWUSR) < 0)
        return -errno;
    rc = bind_to(fd, &console->addr);
    if (rc == -EADDRINUSE && remove_stale(&console->addr, path))
        rc = bind_to(fd, &console->addr);
    if (rc < 0)
        return rc;
    if (listen(fd, BACKLOG) < 0 || lstat(path, &st) < 0) {
        rc = -errno;
        (void)unlink(path);
        return rc;
    }
    console->path_dev = st.st_dev;
    console->path_ino = st.st_ino;
    console->owns_path = true;
    return 0;
}

/* Removes the file, unless another one has taken its place. */
static void remove_path(const blz_console *console)
{
    const char *path = path_of(console);
    struct stat st;

    if (lstat(path, &st) == 0 && st.st_dev == console->path_dev && st.st_ino == console->path_ino)
        (void)unlink(path);
}

static int open_path(blz_console *console, const char *path)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

    if (fd < 0)
        return -errno;
    rc = listen_at(console, fd, path);
    if (rc == 0)
        rc = blz_unix_listener_from_fd(&console->unix_, console->rt, fd);
    if (rc < 0) {
        if (console->owns_path)
            remove_path(console);
        close(fd);
    }
    return rc;
}

static int listen_unix(blz_console *console)
{
    const char *path = path_of(console);
    struct start_lock lock;
    int rc;

    if (!path)
        return blz_unix_listen_with(&console->unix_, &console->addr,
                                    &(blz_unix_listen_options){.rt = console->rt});
    rc = lock_start(&lock, path);
    if (rc < 0)
        return rc;
    rc = open_path(console, path);
    unlock_start(&lock);
    return rc;
}

/* ---- both kinds ---- */

int blz__console_listen(blz_console *console)
{
    int rc;

    console->is_unix = blz_addr_family(&console->addr) == BLZ_ADDR_UNIX;
    if (console->is_unix)
        return listen_unix(console);
    rc = blz_tcp_listen_with(&console->tcp, &console->addr,
                             &(blz_tcp_listen_options){.rt = console->rt});
    return rc < 0 ? rc : blz_tcp_listener_addr(&console->tcp, &console->addr);
}

/* Closing makes a handle void, and the one here is read by the server, which may just have begun:
 * copies are closed. */
void blz__console_unlisten(blz_console *console)
{
    blz_unix_listener local = console->unix_;
    blz_tcp_listener tcp = console->tcp;

    if (console->owns_path)
        remove_path(console);
    if (console->is_unix)
        (void)blz_unix_listener_close(&local);
    else
        (void)blz_tcp_listener_close(&tcp);
}
