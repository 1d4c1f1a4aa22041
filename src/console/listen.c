/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the console listens: a loopback address, or a Unix socket.
 *
 * A Unix socket at a path is for the user of this process alone, and takes the place of one that a
 * killed program has left (blz__socket_listen_private). The server also checks the user of each
 * client.
 */
#include "console/console.h"

#include "system/handle.h"

#include <blitz/error.h>

enum { BACKLOG = 128 };

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

/* ---- Unix sockets ---- */

static int adopt_listener(blz_console *console, blz_sysfd fd)
{
    int rc = blz__socket_listen_private(fd, &console->addr, BACKLOG, &console->socket_file);

    if (rc < 0)
        return rc;
    rc = blz_unix_listener_from_fd(&console->unix_, fd, console->rt);
    if (rc < 0)
        blz__socket_remove_file(&console->addr, &console->socket_file);
    else
        console->owns_path = true;
    return rc;
}

static int listen_unix(blz_console *console)
{
    int64_t fd;
    int rc;

    if (!path_of(console))
        return blz_unix_listen_with(&console->unix_, &console->addr,
                                    &(blz_unix_listen_options){.rt = console->rt});
    fd = blz__socket_open(BLZ_ADDR_UNIX, BLZ__SOCKET_STREAM, true);
    if (fd < 0)
        return (int)fd;
    rc = adopt_listener(console, (blz_sysfd)fd);
    if (rc < 0)
        blz__handle_close((blz_sysfd)fd);
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
        blz__socket_remove_file(&console->addr, &console->socket_file);
    if (console->is_unix)
        (void)blz_unix_listener_close(&local);
    else
        (void)blz_tcp_listener_close(&tcp);
}
