/* SPDX-License-Identifier: Apache-2.0 */
/* Messages with more than bytes: what a blz_msg is. See msg.c. */
#ifndef BLZ_NET_MSG_H
#define BLZ_NET_MSG_H

#include "net/socket.h"
#include "system/message.h"

struct msg {
    blz_io io;
    uint32_t flags, segment, nr_fds, reserved; /* public */
    union {
        struct {
            blz__socket_message message; /* what the system gets */
            blz_iovec piece;             /* its bytes */
            blz_sysfd fds[BLZ_MSG_FDS];  /* copies of those that are sent */
        };
        struct {
            blz_datagram *datagrams; /* of a batch */
            size_t nr_datagrams;
        };
    };
};

_Static_assert(sizeof(struct msg) <= sizeof(blz_msg), "a blz_msg has room");
_Static_assert(offsetof(struct msg, nr_fds) == offsetof(blz_msg, nr_fds), "public fields coincide");

static inline struct msg *msg_of(blz_msg *msg)
{
    return (struct msg *)(void *)msg;
}

/* What goes along with the bytes; all zero: nothing. */
struct msg_extras {
    const blz_addr *to; /* sending */
    blz_addr *from;     /* receiving: to fill in */
    const blz_sysfd *sent_fds;
    blz_sysfd *fds;     /* receiving: room for them */
    size_t nr_fds;      /* sent, or room for them */
    uint16_t segment;   /* sending: the size of the pieces */
    bool peeks;         /* receiving: leaves the message where it is */
    bool wants_control; /* receiving: what the socket's options bring */
};

/*
 * Operations: `ops` has the name, blz__msg_recv_poll or blz__io_poll, and blz__io_cancel. With more
 * descriptors than BLZ_MSG_FDS they give -EINVAL.
 */
blz_future *blz__msg_recv(blz_msg *msg, const blz_future_ops *ops, const blz__fd_ref *ref,
                          void *buf, size_t len, const struct msg_extras *extras);
blz_future *blz__msg_send(blz_msg *msg, const blz_future_ops *ops, const blz__fd_ref *ref,
                          const void *buf, size_t len, const struct msg_extras *extras);
blz_poll blz__msg_recv_poll(blz_future *self, blz_cx *cx);

/* An operation that gives -EINVAL, in place of the one that has been made. */
void blz__msg_refuse(blz_msg *msg);

/* clang-format off */
#define NET_RECV(what) \
    {.name = (what), .poll = blz__msg_recv_poll, .cancel = blz__io_cancel, \
     .describe_wait = blz__io_describe}
/* clang-format on */

#endif
