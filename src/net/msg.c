/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages: a blz_msg has room for all that the system wants to have in memory while it works on a
 * recvmsg or sendmsg, so that nothing is allocated.
 *
 * An address is received straight into the caller's blz_addr and brought into its canonical form
 * afterwards. Descriptors are received into the control buffer, close-on-exec; those that the
 * caller has no room for are closed, and those that the buffer has no room for the system drops
 * itself. As every operation here is either carried out or not, a cancellation cannot lose any:
 * an operation that received some has a result.
 */
#include "net/msg.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <unistd.h>

/* ---- receiving ---- */

void blz__msg_fix_addr(blz_addr *addr, size_t len)
{
    blz_addr raw = *addr;

    if (len == 0 || len > sizeof raw.storage ||
        blz_addr_from_sockaddr(addr, (struct sockaddr *)(void *)raw.storage, len) < 0)
        *addr = (blz_addr){.len = 0};
}

static void take_fds(struct msg *m, const struct cmsghdr *c)
{
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    const unsigned char *data = CMSG_DATA(c);

    for (size_t i = 0; i < count; i++) {
        int fd;
        memcpy(&fd, data + i * sizeof fd, sizeof fd);
        if (m->nr_fds < m->max) {
            ((int *)m->items)[m->nr_fds++] = fd;
        } else {
            close(fd);
            m->flags |= BLZ_MSG_FDS_TRUNCATED;
        }
    }
}

static void take_segment(struct msg *m, const struct cmsghdr *c)
{
    int size = 0;

    if (c->cmsg_len >= CMSG_LEN(sizeof size))
        memcpy(&size, CMSG_DATA(c), sizeof size);
    m->segment = (uint32_t)size;
}

static void take_control(struct msg *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m->header); c; c = CMSG_NXTHDR(&m->header, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            take_fds(m, c);
        else if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO)
            take_segment(m, c);
    }
}

blz_poll blz__msg_recv_poll(blz_future *self, blz_cx *cx)
{
    struct msg *m = (struct msg *)self;

    if (blz_is_pending(blz__io_poll(self, cx)))
        return BLZ_PENDING;
    if (self->result < 0)
        return BLZ_READY;
    take_control(m);
    if (m->header.msg_flags & MSG_TRUNC)
        m->flags |= BLZ_MSG_TRUNCATED;
    if ((m->header.msg_flags & MSG_CTRUNC) && m->items)
        m->flags |= BLZ_MSG_FDS_TRUNCATED;
    if (m->addr)
        blz__msg_fix_addr(m->addr, m->header.msg_namelen);
    return BLZ_READY;
}

/* ---- beginning ---- */

static blz_poll invalid_poll(blz_future *self, blz_cx *cx)
{
    (void)cx;
    return blz_future_done(self, -EINVAL);
}

void blz__msg_refuse(blz_msg *msg)
{
    static const blz_future_ops ops = {.name = "invalid_message", .poll = invalid_poll};

    msg->io.future.ops = &ops;
}

static struct msg *init(blz_msg *msg, const blz_future_ops *ops, enum io_kind kind,
                        const blz__fd_ref *ref, void *buf, size_t len)
{
    struct msg *m = msg_of(msg);

    blz__io_init(&msg->io, ops, kind, ref, &m->header, 0); /* first: checks that it is not in use */
    m->flags = m->segment = m->nr_fds = 0;
    m->iov = (struct iovec){buf, len};
    m->header = (struct msghdr){.msg_iov = &m->iov, .msg_iovlen = 1};
    m->addr = NULL;
    m->items = NULL;
    m->max = 0;
    if (!length_is_valid(len))
        blz__msg_refuse(msg);
    return m;
}

blz_future *blz__msg_recv(blz_msg *msg, const blz_future_ops *ops, const blz__fd_ref *ref,
                          void *buf, size_t len, const struct msg_extras *extras)
{
    struct msg *m = init(msg, ops, IO_RECVMSG, ref, buf, len);

    ((struct io *)&msg->io.future)->msg_flags = (uint16_t)extras->flags;
    m->addr = extras->from;
    if (m->addr) {
        m->header.msg_name = m->addr->storage;
        m->header.msg_namelen = sizeof m->addr->storage;
    }
    m->items = extras->fds;
    m->max = extras->nr_fds;
    if (!length_is_valid(m->max))
        blz__msg_refuse(msg);
    if (m->items || extras->wants_control) {
        m->header.msg_control = m->control;
        m->header.msg_controllen = sizeof m->control;
    }
    return &msg->io.future;
}

/* The one control message that there is. */
static void set_control(struct msg *m, int level, int type, const void *data, size_t len)
{
    struct cmsghdr *c = (struct cmsghdr *)(void *)m->control;

    memset(m->control, 0, CMSG_SPACE(len));
    *c = (struct cmsghdr){.cmsg_len = CMSG_LEN(len), .cmsg_level = level, .cmsg_type = type};
    memcpy(CMSG_DATA(c), data, len);
    m->header.msg_control = m->control;
    m->header.msg_controllen = CMSG_SPACE(len);
}

blz_future *blz__msg_send(blz_msg *msg, const blz_future_ops *ops, const blz__fd_ref *ref,
                          const void *buf, size_t len, const struct msg_extras *extras)
{
    struct msg *m = init(msg, ops, IO_SENDMSG, ref, net_bytes(buf), len);
    uint32_t addr_len;

    if (extras->to) {
        m->header.msg_name = net_bytes(blz_addr_sockaddr(extras->to, &addr_len));
        m->header.msg_namelen = addr_len;
    }
    if (extras->nr_fds > BLZ_MSG_FDS)
        blz__msg_refuse(msg);
    else if (extras->nr_fds > 0)
        set_control(m, SOL_SOCKET, SCM_RIGHTS, extras->fds, extras->nr_fds * sizeof(int));
    else if (extras->segment)
        set_control(m, IPPROTO_UDP, UDP_SEGMENT, &extras->segment, sizeof extras->segment);
    return &msg->io.future;
}
