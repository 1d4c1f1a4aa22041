/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets: TCP, UDP and Unix sockets, by their descriptors.
 *
 * Families are BLZ_ADDR_V4, BLZ_ADDR_V6 and BLZ_ADDR_UNIX. A socket that is made here is not
 * inherited by children and is in the mode that was asked for, from the first moment on Linux,
 * FreeBSD and Windows. macOS sets both after the socket has been made: a child that the program
 * forks by itself in between inherits it.
 *
 * No function waits, but for blz__socket_connect on a socket in blocking mode. Nothing here raises
 * SIGPIPE. -EAGAIN means that nothing has happened. All functions: [any thread].
 *
 *   -ENOTSUP                          where
 *   ----------------------------------------------------------------------------------------
 *   blz__socket_open                  Windows: datagrams of Unix sockets
 *   blz__socket_pair                  Windows: datagrams
 *   blz__socket_backlog               macOS, NetBSD, OpenBSD, Windows
 *   blz__socket_peer_cred             Windows. The BSDs but FreeBSD do not know the process: 0
 *   blz__socket_listen_private        Windows
 */
#ifndef BLZ_SYSTEM_SOCKET_H
#define BLZ_SYSTEM_SOCKET_H

#include <blitz/addr.h>
#include <blitz/io.h>
#include <blitz/system.h>

enum blz__socket_type { BLZ__SOCKET_STREAM = 1, BLZ__SOCKET_DATAGRAM = 2 };

/* ---- making ---- */

/*
 * A new socket: its descriptor, or a negative error. -EAFNOSUPPORT: the system does not have the
 * family; -EMFILE, -ENFILE: too many descriptors; -EINVAL: no such family or type.
 */
int64_t blz__socket_open(int family, enum blz__socket_type type, bool nonblocking);

/* Two Unix sockets that are connected to each other. 0 or a negative error. */
int blz__socket_pair(enum blz__socket_type type, bool nonblocking, blz_sysfd fds[2]);

/* What a socket is. */
struct blz__socket_kind {
    int family; /* BLZ_ADDR_NONE: one that the library does not know */
    int type;   /* enum blz__socket_type; 0: another */
    bool listens;
};

/* 0; -ENOTSOCK: it is another descriptor; -EBADF. */
int blz__socket_kind(blz_sysfd fd, struct blz__socket_kind *kind);

/* ---- addresses ---- */

/*
 * Gives the socket an address. A port of 0 is replaced by a free one. 0; -EADDRINUSE;
 * -EADDRNOTAVAIL; -EACCES; or what a path has wrong (-ENOENT, -ENOTDIR).
 */
int blz__socket_bind(blz_sysfd fd, const blz_addr *addr);

/* The address of this side; an unnamed Unix address if it has none. 0 or a negative error. */
int blz__socket_local_addr(blz_sysfd fd, blz_addr *addr);

/* The address of the other side. 0; -ENOTCONN. */
int blz__socket_peer_addr(blz_sysfd fd, blz_addr *addr);

/* ---- connecting ---- */

/*
 * Connects to an address. Waits if a stream socket is in blocking mode. 0: it is connected;
 * -EINPROGRESS: it will be, or not: when the socket is writable, blz__socket_connect_result says.
 * -ECONNREFUSED: nobody listens there, or the queue of a Unix listener is full. A datagram socket
 * sends to this address from now on, and receives from it alone.
 */
int blz__socket_connect(blz_sysfd fd, const blz_addr *addr);

/* How a connect ended that was in progress: 0 or a negative error; -EAGAIN: it has not ended. */
int blz__socket_connect_result(blz_sysfd fd);

/* A datagram socket is connected no more. 0 or a negative error. */
int blz__socket_disconnect(blz_sysfd fd);

/* ---- accepting ---- */

/* Listens; the system may shorten the queue. 0; -EADDRINUSE. */
int blz__socket_listen(blz_sysfd fd, int backlog);

/* The length of the queue that blz__socket_listen was given, as the system has it. */
int blz__socket_backlog(blz_sysfd fd);

/*
 * Accepts a connection if there is one: its descriptor; -EAGAIN: there is none; -ECONNABORTED: it
 * was gone already; -EMFILE and other errors leave the connection in the queue. A listener that is
 * in blocking mode is put into non-blocking mode first, because other processes may share it,
 * change its mode, and take the connection that made it readable.
 */
int64_t blz__socket_accept(blz_sysfd fd, bool nonblocking);

/* ---- bytes ---- */

/*
 * Receives what is there, at most `len` bytes, whatever mode the socket is in: the number of bytes;
 * 0: the end of a stream, or an empty datagram; -EAGAIN: nothing is there; -ECONNRESET.
 */
int64_t blz__socket_recv(blz_sysfd fd, void *buf, size_t len);

/* Receives like blz__socket_recv, and leaves the bytes where they are. */
int64_t blz__socket_peek(blz_sysfd fd, void *buf, size_t len);

/*
 * Sends as much as there is room for, whatever mode the socket is in: the number of bytes; -EAGAIN:
 * there is no room; -EPIPE: the other side has closed, or this one has ended its stream;
 * -ENOTCONN, -ECONNRESET.
 */
int64_t blz__socket_send(blz_sysfd fd, const void *buf, size_t len);

/*
 * Sends up to `len` bytes of a file from `offset` on: the number of bytes; 0: the file has ended;
 * -EAGAIN. May wait for the disk that the file is on, never for the receiver, which is a socket or
 * a pipe. Unless the receiver is in non-blocking mode, and the caller says so, its mode is changed
 * for the call if need be, and changed back: of a pipe that others read or write at the same time
 * the caller holds the lock that system/pipe.h speaks of. Where the system has no such call
 * -ENOTSUP.
 */
int64_t blz__socket_send_file(blz_sysfd fd, blz_sysfd file, int64_t offset, size_t len,
                              bool nonblocking);

/*
 * Ends the receiving half (1), the sending half (2) or both (3): BLZ_SHUT_READ and so on. The other
 * side reads the end behind what has been sent. 0; -ENOTCONN; -EINVAL: another number.
 */
int blz__socket_shutdown(blz_sysfd fd, int how);

/* ---- readiness ---- */

/*
 * Which of these are true of any descriptor now: BLZ_FD_READ, BLZ_FD_WRITE, BLZ_FD_PRI as asked
 * for, and BLZ_FD_ERR and BLZ_FD_HUP in any case; 0: none. -EBADF. Windows: of sockets only, and
 * not BLZ_FD_PRI; otherwise -ENOTSUP.
 */
int blz__socket_events(blz_sysfd fd, unsigned events);

/* ---- Unix sockets ---- */

/* A process and its user; `pid` 0: unknown. */
struct blz__socket_cred {
    int64_t pid;
    uint32_t uid, gid;
};

/*
 * Who the other side of a Unix socket was when it connected, listened, or made the pair. 0 or
 * -ENOTCONN
 */
int blz__socket_peer_cred(blz_sysfd fd, struct blz__socket_cred *cred);

/* Whether this user may do what it likes with this process anyway: the same user, or root. */
bool blz__socket_user_is_trusted(uint32_t uid);

/* Which file it is that a socket was bound to. */
struct blz__socket_file {
    uint64_t device, inode;
};

/*
 * Binds a Unix stream socket to a path for the user of this process alone, and listens. May wait
 * for the disk. The file of a program that has ended is replaced; one at which another program
 * listens, or is about to: -EADDRINUSE, and so is anything that is no socket. 0 and *file, or
 * another negative error.
 */
int blz__socket_listen_private(blz_sysfd fd, const blz_addr *addr, int backlog,
                               struct blz__socket_file *file);

/* Removes the file of blz__socket_listen_private, unless another one has taken its place. */
void blz__socket_remove_file(const blz_addr *addr, const struct blz__socket_file *file);

#endif
