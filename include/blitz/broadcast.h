/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Broadcast: every receiver gets every message that is sent after it has subscribed.
 *
 *     BLZ_BROADCAST(prices, struct price)               // once, in a file or a header
 *
 *     prices_sender tx;
 *     rc = prices_new(&tx, NULL, 1024);                 // the last 1024 are kept
 *     self->rx = prices_subscribe(&tx);
 *     ...
 *     rc = prices_send(&tx, price);                     // never waits
 *     BLZ_AWAIT(self->rc, prices_recv(&self->op, &self->rx, &self->price));     // another task
 *     if (self->rc == -EOVERFLOW)
 *         printf("missed %llu\n", (unsigned long long)prices_missed(&self->rx));
 *
 * BLZ_BROADCAST makes functions for one type; they are listed at the end. The functions before are
 * the same for messages of any size, by pointer.
 *
 * Lag. Sending never waits: when the channel is full, the oldest message goes, and a receiver that
 * had not read it yet *lags*. Its next receive fails, once, with -EOVERFLOW; blz_broadcast_missed
 * says how many messages are lost to it, and the receive after that gives the oldest one that is
 * left. It is an error, rather than a count beside the next message, so that code that looks for
 * nothing but errors cannot take a stream with holes for a whole one.
 *
 * Handles. A channel lives as long as there are handles to it. A sender may be used by several
 * tasks at once; a receiver is one place in the stream, used by one at a time. A handle must stay
 * until the futures made from it are ready.
 *
 * Closing. A channel is closed when its last sender is dropped, or by blz_broadcast_close. Sends
 * then fail with -EPIPE. Receivers get what was sent before, each to its end, and -EPIPE after
 * that. A channel without receivers is not closed: what is sent is lost, and others may subscribe.
 *
 * Messages that own something have a function that copies and one that destroys them, in the
 * options: reference and unreference, say. Each receiver gets a copy of its own; the original is
 * destroyed when it is overwritten, or with the channel. Copies of one message are made one after
 * the other, under a lock of that message alone, so the function need not be safe for threads.
 */
#ifndef BLITZ_BROADCAST_H
#define BLITZ_BROADCAST_H

#include <blitz/future.h>
#include <blitz/waiter.h>

BLZ_BEGIN_DECLS

/* A channel, as its handles share it. */
typedef struct blz_broadcast blz_broadcast;

/* Sends; keeps the channel open. Dropped, or moved; never copied without a clone. */
typedef struct blz_broadcast_sender {
    blz_broadcast *channel;
} blz_broadcast_sender;

/* A sender that does not keep the channel open. */
typedef struct blz_broadcast_weak_sender {
    blz_broadcast *channel;
} blz_broadcast_weak_sender;

/* Receives what is sent after it has subscribed. Used by one task or thread at a time. */
typedef struct blz_broadcast_receiver {
    blz_broadcast *channel;
    uint64_t next;   /* the message that it receives next, counted from the first of all */
    uint64_t missed; /* before that, as the last -EOVERFLOW said */
} blz_broadcast_receiver;

/* The most messages that can be kept. */
#define BLZ_BROADCAST_CAPACITY_MAX ((size_t)1 << 27)
/* Of messages that have a `copy`: larger ones are better sent as pointers. */
#define BLZ_BROADCAST_COPY_MAX ((size_t)256)

/*
 * How to make a channel: blz_broadcast_new. It has room for all of its messages from the beginning:
 * the capacity, rounded up to a power of two, times the size of a message and 8 bytes (16 with a
 * `copy`). From malloc, pages of it that have held no message yet take no memory; an allocator of
 * your own has to give all of it at once.
 */
typedef struct blz_broadcast_options {
    size_t capacity;  /* messages that are kept: 1 to BLZ_BROADCAST_CAPACITY_MAX */
    size_t elem_size; /* of a message; 0: it is only counted */
    /*
     * Makes *to a copy of the message *from, which is aligned for any type: 0, or a negative errno
     * that the receive then fails with; the message can be received again. Must not use the
     * channel. NULL: a copy of its bytes is enough.
     */
    int (*copy)(void *to, const void *from, void *arg);
    /* Destroys a message, with no lock held. Needs a `copy`. May be NULL. */
    void (*destroy)(void *elem, void *arg);
    void *arg;                      /* of copy and destroy */
    const blz_allocator *allocator; /* copied; NULL: malloc */
    uint64_t reserved[4];
} blz_broadcast_options;

/*
 * An operation that waits, in the frame of the function that awaits it. All fields are the
 * library's.
 */
typedef struct blz_broadcast_op {
    blz_future future;
    blz_waiter waiter;
    blz_broadcast_receiver *receiver;
    void *elem;
    uint64_t reserved;
} blz_broadcast_op;

/* ---- Channels and handles ---- */

/*
 * Creates a channel with one sender, and one receiver if rx is not NULL: 0; -EINVAL: a capacity of
 * 0 or too large, a `destroy` without a `copy`, a `copy` for messages that are too large; -ENOMEM.
 * [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_broadcast_new(blz_broadcast_sender *tx, blz_broadcast_receiver *rx,
                                            const blz_broadcast_options *options);

/* Makes a receiver from a sender, for what is sent from now on. [any thread] */
BLZ_API blz_broadcast_receiver blz_broadcast_subscribe(const blz_broadcast_sender *tx);

/* Makes another receiver from a receiver, for what is sent from now on. [any thread] */
BLZ_API blz_broadcast_receiver blz_broadcast_resubscribe(const blz_broadcast_receiver *rx);

/* Makes another sender. [any thread] */
BLZ_API blz_broadcast_sender blz_broadcast_sender_clone(const blz_broadcast_sender *tx);

/* Drops a handle, which is empty afterwards. Dropping an empty handle does nothing. [any thread] */
BLZ_API void blz_broadcast_sender_drop(blz_broadcast_sender *tx);
BLZ_API void blz_broadcast_receiver_drop(blz_broadcast_receiver *rx);

/*
 * Makes a handle that does not keep the channel open, or drops it. Each must be dropped. [any
 * thread]
 */
BLZ_API blz_broadcast_weak_sender blz_broadcast_sender_downgrade(const blz_broadcast_sender *tx);
BLZ_API void blz_broadcast_weak_sender_drop(blz_broadcast_weak_sender *weak);

/* Makes a sender of a weak one: 0; -EPIPE: the channel is closed, and *tx is empty. [any thread] */
BLZ_API BLZ_NODISCARD int blz_broadcast_weak_sender_upgrade(const blz_broadcast_weak_sender *weak,
                                                            blz_broadcast_sender *tx);

/* Closes the channel, although it has senders. May be called any number of times. [any thread] */
BLZ_API void blz_broadcast_close(blz_broadcast *channel);

/* ---- Looking at a channel: true at some moment during the call [any thread] ---- */

/* Whether the channel has been closed. */
BLZ_API bool blz_broadcast_is_closed(const blz_broadcast *channel);

/* How many messages the channel keeps. */
BLZ_API size_t blz_broadcast_capacity(const blz_broadcast *channel);

/* How many handles of each kind the channel has. */
BLZ_API size_t blz_broadcast_senders(blz_broadcast *channel);
BLZ_API size_t blz_broadcast_receivers(blz_broadcast *channel);

/* How many messages the receiver could receive without waiting. */
BLZ_API size_t blz_broadcast_len(const blz_broadcast_receiver *rx);

/* How many messages were lost to this receiver, as its last -EOVERFLOW said. */
static inline uint64_t blz_broadcast_missed(const blz_broadcast_receiver *rx)
{
    return rx->missed;
}

/* ---- Sending and receiving ---- */

/*
 * Sends the message *elem, whose bytes are copied: the channel owns it then. Gives the number of
 * receivers that it is for; if that is 0, it has been destroyed. -EPIPE: the channel is closed, and
 * the message is still the caller's. Never waits for receivers. [any thread]
 */
BLZ_API int64_t blz_broadcast_send(const blz_broadcast_sender *tx, const void *elem);

/*
 * Receives the next message into *elem without waiting: 0; -EAGAIN: there is none yet; -EOVERFLOW:
 * messages have been missed, and blz_broadcast_missed says how many; -EPIPE: the channel is closed,
 * and there will be none; or what `copy` returned. The contents of *elem are undefined unless the
 * result is 0. [any thread; one at a time]
 */
BLZ_API BLZ_NODISCARD int blz_broadcast_try_recv(blz_broadcast_receiver *rx, void *elem);

/*
 * Awaits the next message, into *elem: 0; -EOVERFLOW: messages have been missed, and
 * blz_broadcast_missed says how many; -EPIPE: the channel is closed, and there will be none; or
 * what `copy` returned. Interruptible: with -ECANCELED nothing has been received, and nothing lost.
 * [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_broadcast_recv(blz_broadcast_op *op,
                                                     blz_broadcast_receiver *rx, void *elem);

/*
 * Blocks this thread until the next message is there, and receives it into *elem: 0; -EOVERFLOW:
 * messages have been missed, and blz_broadcast_missed says how many; -EPIPE: the channel is closed,
 * and there will be none; -EDEADLK on a worker; or what `copy` returned. [any thread but a worker]
 */
static inline int blz_broadcast_recv_wait(blz_broadcast_receiver *rx, void *elem)
{
    blz_broadcast_op op;
    return (int)blz_wait(blz_broadcast_recv(BLZ_FRESH_(&op), rx, elem));
}

/*
 * BLZ_BROADCAST(name, type) defines, for messages of `type`:
 *
 *     name_sender, name_receiver      handles; .raw is that of the functions above
 *     name_op                         an operation
 *     rc = name_new(&tx, &rx, capacity)
 *     rc = name_new_with(&tx, &rx, &options)            elem_size is set by it
 *     tx = name_sender_clone(&tx)     name_sender_drop(&tx)      name_receiver_drop(&rx)
 *     name_sender_close(&tx)          name_receiver_close(&rx)   as blz_broadcast_close
 *     rx = name_subscribe(&tx)        rx = name_resubscribe(&rx)
 *     n  = name_send(&tx, message)    n = name_missed(&rx)
 *     rc = name_try_recv(&rx, &message)                 name_recv_wait(&rx, &message)
 *     BLZ_AWAIT(rc, name_recv(&op, &rx, &message))
 */
#define BLZ_BROADCAST(name, type)      \
    typedef struct name##_sender {     \
        blz_broadcast_sender raw;      \
    } name##_sender;                   \
    typedef struct name##_receiver {   \
        blz_broadcast_receiver raw;    \
    } name##_receiver;                 \
    typedef struct name##_op {         \
        blz_broadcast_op op;           \
    } name##_op;                       \
    BLZ_BROADCAST_HANDLES_(name, type) \
    BLZ_BROADCAST_FLOW_(name, type)

#define BLZ_BROADCAST_INLINE_ static inline __attribute__((unused))

#define BLZ_BROADCAST_HANDLES_(name, type)                                                        \
    BLZ_BROADCAST_INLINE_ BLZ_NODISCARD int name##_new_with(name##_sender *tx,                    \
                                                            name##_receiver *rx,                  \
                                                            const blz_broadcast_options *options) \
    {                                                                                             \
        blz_broadcast_options typed = *options;                                                   \
        typed.elem_size = sizeof(type);                                                           \
        return blz_broadcast_new(&tx->raw, rx ? &rx->raw : NULL, &typed);                         \
    }                                                                                             \
    BLZ_BROADCAST_INLINE_ BLZ_NODISCARD int name##_new(name##_sender *tx, name##_receiver *rx,    \
                                                       size_t capacity)                           \
    {                                                                                             \
        blz_broadcast_options options = BLZ_BROADCAST_OPTIONS_INIT;                               \
        options.capacity = capacity;                                                              \
        return name##_new_with(tx, rx, &options);                                                 \
    }                                                                                             \
    BLZ_BROADCAST_INLINE_ name##_receiver name##_subscribe(const name##_sender *tx)               \
    {                                                                                             \
        name##_receiver rx = {blz_broadcast_subscribe(&tx->raw)};                                 \
        return rx;                                                                                \
    }                                                                                             \
    BLZ_BROADCAST_INLINE_ name##_receiver name##_resubscribe(const name##_receiver *rx)           \
    {                                                                                             \
        name##_receiver other = {blz_broadcast_resubscribe(&rx->raw)};                            \
        return other;                                                                             \
    }                                                                                             \
    BLZ_BROADCAST_INLINE_ name##_sender name##_sender_clone(const name##_sender *tx)              \
    {                                                                                             \
        name##_sender other = {blz_broadcast_sender_clone(&tx->raw)};                             \
        return other;                                                                             \
    }                                                                                             \
    BLZ_BROADCAST_INLINE_ void name##_sender_drop(name##_sender *tx)                              \
    {                                                                                             \
        blz_broadcast_sender_drop(&tx->raw);                                                      \
    }                                                                                             \
    BLZ_BROADCAST_INLINE_ void name##_sender_close(const name##_sender *tx)                       \
    {                                                                                             \
        blz_broadcast_close(tx->raw.channel);                                                     \
    }                                                                                             \
    BLZ_BROADCAST_INLINE_ void name##_receiver_close(const name##_receiver *rx)                   \
    {                                                                                             \
        blz_broadcast_close(rx->raw.channel);                                                     \
    }                                                                                             \
    BLZ_BROADCAST_INLINE_ void name##_receiver_drop(name##_receiver *rx)                          \
    {                                                                                             \
        blz_broadcast_receiver_drop(&rx->raw);                                                    \
    }

#define BLZ_BROADCAST_FLOW_(name, type)                                                           \
    BLZ_BROADCAST_INLINE_ int64_t name##_send(const name##_sender *tx, type value)                \
    {                                                                                             \
        return blz_broadcast_send(&tx->raw, &value);                                              \
    }                                                                                             \
    BLZ_BROADCAST_INLINE_ uint64_t name##_missed(const name##_receiver *rx)                       \
    {                                                                                             \
        return blz_broadcast_missed(&rx->raw);                                                    \
    }                                                                                             \
    BLZ_BROADCAST_INLINE_ BLZ_NODISCARD int name##_try_recv(name##_receiver *rx, type *value)     \
    {                                                                                             \
        return blz_broadcast_try_recv(&rx->raw, value);                                           \
    }                                                                                             \
    BLZ_BROADCAST_INLINE_ BLZ_NODISCARD blz_future *name##_recv(name##_op *op,                    \
                                                                name##_receiver *rx, type *value) \
    {                                                                                             \
        return blz_broadcast_recv(&op->op, &rx->raw, value);                                      \
    }                                                                                             \
    BLZ_BROADCAST_INLINE_ int name##_recv_wait(name##_receiver *rx, type *value)                  \
    {                                                                                             \
        return blz_broadcast_recv_wait(&rx->raw, value);                                          \
    }

/* All zero. */
#define BLZ_BROADCAST_OPTIONS_INIT    \
    {                                 \
        0, 0, NULL, NULL, NULL, NULL, \
        {                             \
            0, 0, 0, 0                \
        }                             \
    }

BLZ_END_DECLS
#endif
