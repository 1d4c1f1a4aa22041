/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages by recvmsg(2) and sendmsg(2). The header and the control buffer are put together on the
 * stack for each call, which is a few stores.
 *
 * Descriptors are received close-on-exec. The kernel installs as many as the control buffer has
 * room for and drops the others; those that the caller has no room for are closed here.
 */
#include "system/message.h"

#include "system/address.h"
#include "system/handle.h"
#include "system/posix/result.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>

/* Room for what may come along with a message: all of it at once. */
enum {
    CONTROL_SIZE = CMSG_SPACE(BLZ_MSG_FDS * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred)) +
                   CMSG_SPACE(sizeof(int))
};

union control {
    struct cmsghdr first;
    char bytes[CONTROL_SIZE];
};

static int64_t recv_header(blz_sysfd fd, struct msghdr *header, int flags)
{
    ssize_t n;

    do
        n = recvmsg(fd, header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | flags);
    while (n < 0 && errno == EINTR);
    return n < 0 ? sys_error() : n;
}

static int64_t send_header(blz_sysfd fd, const struct msghdr *header)
{
    ssize_t n;

    do
        n = sendmsg(fd, header, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? sys_error() : n;
}

/* ---- receiving ---- */

static void take_fds(blz__socket_message *m, const struct cmsghdr *c)
{
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    const unsigned char *data = CMSG_DATA(c);

    for (size_t i = 0; i < count; i++) {
        int fd;
        memcpy(&fd, data + i * sizeof fd, sizeof fd);
        if (m->nr_fds < m->max_fds) {
            m->fds[m->nr_fds++] = fd;
        } else {
            blz__handle_close(fd);
            m->flags |= BLZ_MSG_FDS_TRUNCATED;
        }
    }
}

static void take_segment(blz__socket_message *m, const struct cmsghdr *c)
{
    int size = 0;

    if (c->cmsg_len >= CMSG_LEN(sizeof size))
        memcpy(&size, CMSG_DATA(c), sizeof size);
    m->segment = (uint32_t)size;
}

static void take_cred(blz__socket_message *m, const struct cmsghdr *c)
{
    struct ucred cred;

    if (c->cmsg_len < CMSG_LEN(sizeof cred))
        return;
    memcpy(&cred, CMSG_DATA(c), sizeof cred);
    m->cred = (struct blz__socket_cred){cred.pid, cred.uid, cred.gid};
    m->has_cred = true;
}

static void take_control(blz__socket_message *m, struct msghdr *header)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            take_fds(m, c);
        else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
            take_cred(m, c);
        else if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO)
            take_segment(m, c);
    }
}

static void take_addr(blz_addr *addr, size_t len)
{
    if (blz__address_from_system(addr, blz__address_to_system(addr), len) < 0)
        *addr = (blz_addr){.len = 0};
}

int64_t blz__message_recv(blz_sysfd fd, blz__socket_message *m)
{
    struct msghdr header = {.msg_iov = sys_pieces(m->pieces), .msg_iovlen = m->nr_pieces};
    union control control;
    int64_t n;

    if (m->addr) {
        header.msg_name = m->addr->storage;
        header.msg_namelen = sizeof m->addr->storage;
    }
    if (m->fds || m->wants_extras) {
        header.msg_control = control.bytes;
        header.msg_controllen = sizeof control.bytes;
    }
    n = recv_header(fd, &header, m->peeks ? MSG_PEEK : 0);
    if (n < 0)
        return n;
    m->flags = header.msg_flags & MSG_TRUNC ? BLZ_MSG_TRUNCATED : 0;
    m->nr_fds = m->segment = 0;
    m->has_cred = false;
    if (header.msg_controllen > 0)
        take_control(m, &header);
    if ((header.msg_flags & MSG_CTRUNC) && m->fds)
        m->flags |= BLZ_MSG_FDS_TRUNCATED;
    if (m->addr)
        take_addr(m->addr, header.msg_namelen);
    return n;
}

int64_t blz__message_recv_pieces(blz_sysfd fd, const blz_iovec *pieces, size_t count)
{
    struct msghdr header = {.msg_iov = sys_pieces(pieces), .msg_iovlen = count};

    return recv_header(fd, &header, 0);
}

/* ---- sending ---- */

static void set_control(struct msghdr *header, union control *control, int level, int type,
                        const void *data, size_t len)
{
    memset(control->bytes, 0, CMSG_SPACE(len));
    control->first =
        (struct cmsghdr){.cmsg_len = CMSG_LEN(len), .cmsg_level = level, .cmsg_type = type};
    memcpy(CMSG_DATA(&control->first), data, len);
    header->msg_control = control->bytes;
    header->msg_controllen = CMSG_SPACE(len);
}

int64_t blz__message_send(blz_sysfd fd, const blz__socket_message *m)
{
    struct msghdr header = {.msg_iov = sys_pieces(m->pieces), .msg_iovlen = m->nr_pieces};
    uint16_t segment = (uint16_t)m->segment;
    union control control;

    if (m->addr) {
        header.msg_name = m->addr->storage;
        header.msg_namelen = m->addr->len;
    }
    if (m->nr_fds > BLZ_MSG_FDS || m->segment > UINT16_MAX)
        return -EINVAL;
    if (m->nr_fds > 0)
        set_control(&header, &control, SOL_SOCKET, SCM_RIGHTS, m->fds, m->nr_fds * sizeof(int));
    else if (segment)
        set_control(&header, &control, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment);
    return send_header(fd, &header);
}

int64_t blz__message_send_pieces(blz_sysfd fd, const blz_iovec *pieces, size_t count)
{
    struct msghdr header = {.msg_iov = sys_pieces(pieces), .msg_iovlen = count};

    return send_header(fd, &header);
}
