/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the console listens: a loopback address, or a Unix socket.
 *
 * The file of a Unix socket outlives a program that was killed. If nobody listens there any more it
 * is removed, and if it is no socket it is left alone. The file is for its owner; whoever could
 * connect before it was made so is refused by the server, which looks at who it is.
 */
#include "console/console.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

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

static bool somebody_listens(const blz_addr *addr)
{
    uint32_t len;
    const struct sockaddr *sa = blz_addr_sockaddr(addr, &len);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

    if (fd < 0)
        return true; /* who knows */
    rc = connect(fd, sa, len);
    if (rc < 0)
        rc = -errno;
    close(fd);
    return rc != -ECONNREFUSED;
}

/* True: what was in the way is gone. */
static bool remove_stale(blz_console *console)
{
    const char *path = path_of(console);
    struct stat st;

    return path && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) &&
           !somebody_listens(&console->addr) && unlink(path) == 0;
}

static int listen_unix(blz_console *console)
{
    int rc = blz_unix_listen(&console->unix_, &console->addr, console->rt, 0);

    if (rc == -EADDRINUSE && remove_stale(console))
        rc = blz_unix_listen(&console->unix_, &console->addr, console->rt, 0);
    if (rc < 0)
        return rc;
    console->owns_path = path_of(console) != NULL;
    if (console->owns_path)
        (void)fchmodat(AT_FDCWD, path_of(console), S_IRUSR | S_IWUSR, AT_SYMLINK_NOFOLLOW);
    return 0;
}

int blz__console_listen(blz_console *console)
{
    int rc;

    console->is_unix = blz_addr_family(&console->addr) == BLZ_ADDR_UNIX;
    if (console->is_unix)
        return listen_unix(console);
    rc = blz_listen_with(&console->tcp, &console->addr, &(blz_listen_options){.rt = console->rt});
    return rc < 0 ? rc : blz_listener_addr(&console->tcp, &console->addr);
}

/* Closing makes a handle void, and the one here is read by the server, which may just have begun:
 * copies are closed. */
void blz__console_unlisten(blz_console *console)
{
    blz_unix_listener local = console->unix_;
    blz_listener tcp = console->tcp;

    if (console->owns_path)
        (void)unlink(path_of(console));
    if (console->is_unix)
        (void)blz_unix_listener_close(&local);
    else
        (void)blz_listener_close(&tcp);
}
