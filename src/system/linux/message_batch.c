/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of datagrams by recvmmsg(2) and sendmmsg(2). What they want is put together on the stack,
 * and taken apart again. A system call filter may refuse them: then it is one datagram a call.
 */
#include "system/message.h"

#include "system/address.h"
#include "system/linux/refused.h"
#include "system/posix/result.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>

struct batch {
    struct mmsghdr headers[BLZ__MESSAGE_BATCH];
    struct iovec iov[BLZ__MESSAGE_BATCH];
    _Alignas(struct cmsghdr) char control[BLZ__MESSAGE_BATCH][CMSG_SPACE(sizeof(int))];
};

static unsigned batch_size(size_t count)
{
    return count < BLZ__MESSAGE_BATCH ? (unsigned)count : BLZ__MESSAGE_BATCH;
}

/* ---- receiving ---- */

static void prepare_recv(struct batch *b, blz_datagram *datagrams, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        blz_datagram *d = &datagrams[i];
        b->iov[i] = (struct iovec){d->data, d->len};
        b->headers[i].msg_hdr = (struct msghdr){.msg_iov = &b->iov[i],
                                                .msg_iovlen = 1,
                                                .msg_name = d->addr.storage,
                                                .msg_namelen = sizeof d->addr.storage,
                                                .msg_control = b->control[i],
                                                .msg_controllen = sizeof b->control[i]};
    }
}

static uint32_t segment_of(struct msghdr *header)
{
    const struct cmsghdr *c = CMSG_FIRSTHDR(header);
    int size;

    if (!c || c->cmsg_level != IPPROTO_UDP || c->cmsg_type != UDP_GRO)
        return 0;
    memcpy(&size, CMSG_DATA(c), sizeof size);
    return (uint32_t)size;
}

static void finish_recv(struct batch *b, blz_datagram *datagrams, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct msghdr *header = &b->headers[i].msg_hdr;
        blz_datagram *d = &datagrams[i];
        if (blz__address_from_system(&d->addr, blz__address_to_system(&d->addr),
                                     header->msg_namelen) < 0)
            d->addr = (blz_addr){.len = 0};
        d->received = b->headers[i].msg_len;
        d->flags = header->msg_flags & MSG_TRUNC ? BLZ_MSG_TRUNCATED : 0;
        d->segment = segment_of(header);
    }
}

/* Where a filter refuses recvmmsg. */
static BLZ_COLD int receive_one(struct batch *b, int fd)
{
    ssize_t n = recvmsg(fd, &b->headers[0].msg_hdr, MSG_DONTWAIT);

    b->headers[0].msg_len = (unsigned)n;
    return n < 0 ? -1 : 1;
}

int64_t blz__message_recv_batch(blz_sysfd fd, blz_datagram *datagrams, size_t count)
{
    struct batch batch;
    int n;

    prepare_recv(&batch, datagrams, batch_size(count));
    do {
        n = recvmmsg(fd, batch.headers, batch_size(count), MSG_DONTWAIT, NULL);
        if (blz_unlikely(n < 0 && sys_is_refused(errno)))
            n = receive_one(&batch, fd);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return sys_error();
    finish_recv(&batch, datagrams, (unsigned)n);
    return n;
}

/* ---- sending ---- */

static void prepare_send(struct batch *b, const blz_datagram *datagrams, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const blz_datagram *d = &datagrams[i];
        bool has_addr = d->addr.len > 0;
        b->iov[i] = (struct iovec){d->data, d->len};
        b->headers[i].msg_hdr =
            (struct msghdr){.msg_iov = &b->iov[i],
                            .msg_iovlen = 1,
                            .msg_name = has_addr ? (void *)(uintptr_t)d->addr.storage : NULL,
                            .msg_namelen = d->addr.len};
    }
}

/* Where a filter refuses sendmmsg. */
static BLZ_COLD int send_one(const struct batch *b, int fd)
{
    return sendmsg(fd, &b->headers[0].msg_hdr, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -1 : 1;
}

int64_t blz__message_send_batch(blz_sysfd fd, const blz_datagram *datagrams, size_t count)
{
    struct batch batch;
    int n;

    prepare_send(&batch, datagrams, batch_size(count));
    do {
        n = sendmmsg(fd, batch.headers, batch_size(count), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (blz_unlikely(n < 0 && sys_is_refused(errno)))
            n = send_one(&batch, fd);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? sys_error() : n;
}
