/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels: messages of one type from any number of senders to any number of receivers, each
 * message to one of them. Bounded (a send to a full channel waits) or unbounded.
 *
 *     BLZ_CHANNEL(jobs, struct job)                     // once, in a file or a header
 *
 *     jobs_sender tx;
 *     jobs_receiver rx;
 *     rc = jobs_new(&tx, &rx, 64);                      // at most 64 messages wait in it
 *     ...
 *     BLZ_AWAIT(self->rc, jobs_send(&self->op, &self->tx, job));            // a task
 *     if (self->rc < 0)
 *         goto out;                                     // cancelled, or no receiver is left
 *     ...
 *     BLZ_AWAIT(self->rc, jobs_recv(&self->op, &self->rx, &self->job));     // another
 *     if (self->rc < 0)
 *         goto out;                                     // cancelled, or no sender is left
 *     ...
 *     rc = jobs_send_wait(&tx, job);                    // a thread that is no worker
 *     jobs_sender_drop(&tx);                            // the last one closes the channel
 *
 * BLZ_CHANNEL makes functions for one type, in which a message is copied by assignment; they are
 * listed at the end. The functions before are the same for messages of any size, by pointer.
 *
 * Handles. A channel lives as long as there are handles to it. Each blz_sender and blz_receiver is
 * one reference: clone it for another owner, drop it once. An operation uses the handle that it was
 * made from, and a permit the sender that it was made from: that handle must stay until the future
 * is ready, or the permit used up or given back. A handle may be used by several tasks at once. Two
 * handles are of the same channel if their `channel` is the same.
 *
 * Closing. A channel is closed when its last sender is dropped, when its last receiver is dropped,
 * or by blz_channel_close. From then on
 * - sends and reserves fail with -EPIPE at once, also those that were waiting; their message stays
 *   with the caller;
 * - receives still get all that was sent before, and what comes by permits that were given out
 *   before; then they fail with -EPIPE;
 * - without receivers, the messages that are left are destroyed (options.destroy).
 *
 * Order. A channel is a queue. What one sender sends is received in that order. Senders that wait
 * are served in the order in which they came, and none overtakes them. Receivers that wait are
 * served in order; one that comes when a message is there may take it first.
 *
 * Cancelling a send or a receive: -ECANCELED means that nothing has been sent or received; if it
 * had been, the result is that of success. So no message is lost, nor sent twice.
 */
#ifndef BLITZ_CHANNEL_H
#define BLITZ_CHANNEL_H

#include <blitz/future.h>
#include <blitz/waiter.h>

BLZ_BEGIN_DECLS

/* A channel, as its handles share it. */
typedef struct blz_channel blz_channel;

/* A handle that sends. The channel is closed when the last one is dropped. */
typedef struct blz_sender {
    blz_channel *channel;
} blz_sender;

/* A handle that receives. When the last one is dropped, sends fail. */
typedef struct blz_receiver {
    blz_channel *channel;
} blz_receiver;

/* A handle that does not keep the channel open. */
typedef struct blz_weak_sender {
    blz_channel *channel;
} blz_weak_sender;

/* Room for messages that is reserved for the holder of the permit. */
typedef struct blz_permit {
    blz_channel *channel;
    uint32_t count;
    uint32_t reserved;
} blz_permit;

/* As capacity: the channel is never full. */
#define BLZ_UNBOUNDED SIZE_MAX

/* The largest capacity of a bounded channel. */
#define BLZ_CHANNEL_CAPACITY_MAX ((size_t)1 << 27)

/*
 * How to make a channel: blz_channel_new. A bounded channel has room for all of its messages from
 * the beginning: the capacity, rounded up to a power of two, times the size of a message and 4
 * bytes, rounded up to its alignment. From malloc, pages of it that have held no message yet take
 * no memory; an allocator of your own has to give all of it at once.
 */
typedef struct blz_channel_options {
    size_t capacity;   /* messages: 1 to BLZ_CHANNEL_CAPACITY_MAX, or BLZ_UNBOUNDED */
    size_t elem_size;  /* of a message; 0: it is only counted */
    size_t elem_align; /* a power of two; 0: whatever suits a type of that size */
    /* Called for messages that no receiver will get, on the thread that drops the last one. */
    void (*destroy)(void *elem, void *arg);
    void *destroy_arg;
    const blz_allocator *allocator; /* copied; default: malloc */
    uint64_t reserved[4];
} blz_channel_options;

/*
 * An operation that waits, in the frame of the function that awaits it. All fields are the
 * library's.
 */
typedef struct blz_channel_op {
    blz_future future;
    blz_waiter waiter;
    blz_channel *channel;
    void *elem;
    uint32_t count;
    uint32_t reserved;
} blz_channel_op;

/* ---- Channels and handles ---- */

/*
 * Creates a channel, with one sender and one receiver: 0; -EINVAL: a capacity of 0 or too large, or
 * an alignment that is not a power of two; -ENOMEM. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_channel_new(blz_sender *tx, blz_receiver *rx,
                                          const blz_channel_options *options);

/* Makes another handle to the channel. [any thread] */
BLZ_API blz_sender blz_sender_clone(const blz_sender *tx);
BLZ_API blz_receiver blz_receiver_clone(const blz_receiver *rx);

/* Drops a handle, which is empty afterwards. Dropping an empty handle does nothing. [any thread] */
BLZ_API void blz_sender_drop(blz_sender *tx);
BLZ_API void blz_receiver_drop(blz_receiver *rx);

/*
 * Makes a handle that does not keep the channel open, or drops it. Each must be dropped. [any
 * thread]
 */
BLZ_API blz_weak_sender blz_sender_downgrade(const blz_sender *tx);
BLZ_API blz_weak_sender blz_weak_sender_clone(const blz_weak_sender *weak);
BLZ_API void blz_weak_sender_drop(blz_weak_sender *weak);

/* Makes a sender of a weak one: 0; -EPIPE: the channel is closed, and *tx is empty. [any thread] */
BLZ_API BLZ_NODISCARD int blz_weak_sender_upgrade(const blz_weak_sender *weak, blz_sender *tx);

/* Closes the channel, although it has handles. May be called any number of times. [any thread] */
BLZ_API void blz_channel_close(blz_channel *channel);

/* ---- Looking at a channel: true at some moment during the call [any thread] ---- */

/* Whether the channel has been closed. */
BLZ_API bool blz_channel_is_closed(const blz_channel *channel);

/* How many messages the channel can hold, or BLZ_UNBOUNDED. */
BLZ_API size_t blz_channel_capacity(const blz_channel *channel);

/* How many messages are in the channel. */
BLZ_API size_t blz_channel_len(const blz_channel *channel);

/* How many messages could be sent without waiting; room that permits hold is not counted. */
BLZ_API size_t blz_channel_room(const blz_channel *channel);

/* How many handles of each kind the channel has. */
BLZ_API size_t blz_channel_senders(const blz_channel *channel);
BLZ_API size_t blz_channel_receivers(const blz_channel *channel);
BLZ_API size_t blz_channel_weak_senders(const blz_channel *channel);

/* Whether no message is in the channel. */
static inline bool blz_channel_is_empty(const blz_channel *channel)
{
    return blz_channel_len(channel) == 0;
}

/* ---- Sending ---- */

/*
 * Sends a copy of *elem without waiting: 0; -EAGAIN: the channel is full, or other senders wait;
 * -EPIPE: it is closed; -ENOMEM: it is unbounded, and there is no memory. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_sender_try_send(const blz_sender *tx, const void *elem);

/*
 * Sends a copy of *elem as soon as there is room: 0; -EPIPE: the channel is closed; -ENOMEM: it is
 * unbounded, and there is no memory. *elem must stay until the future is ready. Interruptible: with
 * -ECANCELED nothing has been sent. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_sender_send(blz_channel_op *op, const blz_sender *tx,
                                                  const void *elem);

/* Awaits the moment when the channel is closed: 0. Interruptible: -ECANCELED. [task] */
BLZ_API BLZ_NODISCARD blz_future *blz_sender_closed(blz_channel_op *op, const blz_sender *tx);

/*
 * Blocks this thread until a copy of *elem has been sent: 0; -EPIPE: the channel is closed;
 * -ENOMEM: it is unbounded, and there is no memory; -EDEADLK on a worker. [any thread but a worker]
 */
static inline int blz_sender_send_wait(const blz_sender *tx, const void *elem)
{
    blz_channel_op op;
    return (int)blz_wait(blz_sender_send(BLZ_FRESH_(&op), tx, elem));
}

/*
 * Blocks this thread until the channel is closed: 0; -EDEADLK on a worker. [any thread but a
 * worker]
 */
static inline int blz_sender_closed_wait(const blz_sender *tx)
{
    blz_channel_op op;
    return (int)blz_wait(blz_sender_closed(BLZ_FRESH_(&op), tx));
}

/* ---- Permits: first the room, then the message ---- */

/*
 * Reserves room for `count` messages without waiting: 0 and *permit; -EAGAIN: there is not enough,
 * or other senders wait; -EPIPE: the channel is closed; -EINVAL: a count of 0, or more than the
 * capacity; -ENOTSUP: the channel is unbounded and needs no permits. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_sender_try_reserve(const blz_sender *tx, blz_permit *permit,
                                                 uint32_t count);

/*
 * Awaits room for `count` messages: 0 and *permit; -EPIPE: the channel is closed; -EINVAL: a count
 * of 0, or more than the capacity; -ENOTSUP: the channel is unbounded. Room that becomes free is
 * kept for the first sender in the queue until it is enough. Interruptible: with -ECANCELED there
 * is no permit. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_sender_reserve(blz_channel_op *op, const blz_sender *tx,
                                                     blz_permit *permit, uint32_t count);

/*
 * Blocks this thread until it has room for `count` messages: 0 and *permit; -EPIPE: the channel is
 * closed; -EINVAL: a count of 0, or more than the capacity; -ENOTSUP: the channel is unbounded;
 * -EDEADLK on a worker. [any thread but a worker]
 */
static inline int blz_sender_reserve_wait(const blz_sender *tx, blz_permit *permit, uint32_t count)
{
    blz_channel_op op;
    return (int)blz_wait(blz_sender_reserve(BLZ_FRESH_(&op), tx, permit, count));
}

/*
 * Sends one message with a permit, which must not be used up. Never fails: a channel that has been
 * closed still takes the message, and if there are no receivers any more, it is destroyed. [any
 * thread]
 */
BLZ_API void blz_permit_send(blz_permit *permit, const void *elem);

/* Gives back what is left of a permit, which is used up afterwards. [any thread] */
BLZ_API void blz_permit_release(blz_permit *permit);

/* ---- Receiving ---- */

/*
 * Takes the first message, into *elem, without waiting: 0; -EAGAIN: there is none, or its sender is
 * still writing it; -EPIPE: the channel is closed, and there will be none. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_receiver_try_recv(const blz_receiver *rx, void *elem);

/*
 * Awaits a message, into *elem: 0; -EPIPE: the channel is closed, and there will be none. The
 * message may be written before the future is polled again: *elem must stay until the future is
 * ready. Interruptible: with -ECANCELED nothing has been received. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_receiver_recv(blz_channel_op *op, const blz_receiver *rx,
                                                    void *elem);

/*
 * Takes up to `count` messages, into an array, without waiting: how many, at least 1; -EAGAIN:
 * there is none; -EPIPE: the channel is closed, and there will be none. [any thread]
 */
BLZ_API BLZ_NODISCARD int64_t blz_receiver_try_recv_many(const blz_receiver *rx, void *elems,
                                                         uint32_t count);

/*
 * Awaits one message and takes those behind it that are there, up to `count`: how many; -EPIPE: the
 * channel is closed, and there will be none. With a count of 0 the result is 0 at once.
 * Interruptible: with -ECANCELED nothing has been received. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_receiver_recv_many(blz_channel_op *op, const blz_receiver *rx,
                                                         void *elems, uint32_t count);

/*
 * Blocks this thread until it has received a message, into *elem: 0; -EPIPE: the channel is closed,
 * and there will be none; -EDEADLK on a worker. [any thread but a worker]
 */
static inline int blz_receiver_recv_wait(const blz_receiver *rx, void *elem)
{
    blz_channel_op op;
    return (int)blz_wait(blz_receiver_recv(BLZ_FRESH_(&op), rx, elem));
}

/*
 * Blocks this thread until it has received one message, and takes those behind it that are there,
 * up to `count`: how many; -EPIPE: the channel is closed, and there will be none; -EDEADLK on a
 * worker. [any thread but a worker]
 */
static inline int64_t blz_receiver_recv_many_wait(const blz_receiver *rx, void *elems,
                                                  uint32_t count)
{
    blz_channel_op op;
    return blz_wait(blz_receiver_recv_many(BLZ_FRESH_(&op), rx, elems, count));
}

/* ---- What BLZ_CHANNEL is made of ---- */

/* A place in the channel that is ours for a moment: no waiting, no other call before it is over. */
typedef struct blz_slot_ {
    void *elem; /* NULL: not now, or not so simply */
    uint64_t pos;
} blz_slot_;

BLZ_API blz_slot_ blz_channel_claim_(blz_channel *channel);
BLZ_API void blz_channel_publish_(blz_channel *channel, blz_slot_ slot);
BLZ_API blz_slot_ blz_channel_take_(blz_channel *channel);
BLZ_API void blz_channel_release_(blz_channel *channel, blz_slot_ slot);
BLZ_API blz_slot_ blz_permit_claim_(blz_permit *permit);
BLZ_API int blz_channel_send_slow_(blz_channel *channel, const void *elem);
BLZ_API int blz_channel_recv_slow_(blz_channel *channel, void *elem);
BLZ_API blz_poll blz_channel_send_poll_(blz_future *future, blz_cx *cx);
BLZ_API blz_poll blz_channel_recv_poll_(blz_future *future, blz_cx *cx);
BLZ_API void blz_channel_send_cancel_(blz_future *future, blz_cx *cx);
BLZ_API void blz_channel_recv_cancel_(blz_future *future, blz_cx *cx);
BLZ_API void blz_channel_describe_(const blz_future *future, struct blz_wait_info *info);

static inline BLZ_NODISCARD blz_future *blz_channel_op_init_(blz_channel_op *op,
                                                             const blz_future_ops *ops,
                                                             blz_channel *channel, void *elem)
{
    blz_op_check(&op->future, ops);
    op->future.ops = ops;
    op->future.child = NULL;
    op->future.line = 0;
    op->future.flags = 0;
    op->channel = channel;
    op->elem = elem;
    return &op->future;
}

/* ---- Channels of one type ---- */

/*
 * BLZ_CHANNEL(name, type) defines, for messages of `type`, functions with the results of those that
 * take pointers:
 *
 *     name_sender, name_receiver      handles; .raw is the blz_sender or blz_receiver
 *     name_op                         an operation; a message to be sent is in it
 *     rc = name_new(&tx, &rx, capacity)
 *     rc = name_new_with(&tx, &rx, &options)            elem_size and elem_align are set by it
 *     tx = name_sender_clone(&tx)     name_sender_drop(&tx)      (and the same for receivers)
 *     name_sender_close(&tx)          name_receiver_close(&rx)   as blz_channel_close
 *     rc = name_upgrade(&weak, &tx)
 *     rc = name_try_send(&tx, message)                  name_send_wait(&tx, message)
 *     BLZ_AWAIT(rc, name_send(&op, &tx, message))
 *     rc = name_try_recv(&rx, &message)                 name_recv_wait(&rx, &message)
 *     BLZ_AWAIT(rc, name_recv(&op, &rx, &message))
 *     BLZ_AWAIT(n, name_recv_many(&op, &rx, messages, count))
 *     n = name_try_recv_many(&rx, messages, count)
 *     name_permit_send(&permit, message)                from blz_sender_reserve(&op, &tx.raw, ...)
 */
#define BLZ_CHANNEL(name, type)      \
    typedef struct name##_sender {   \
        blz_sender raw;              \
    } name##_sender;                 \
    typedef struct name##_receiver { \
        blz_receiver raw;            \
    } name##_receiver;               \
    typedef struct name##_op {       \
        blz_channel_op op;           \
        type value;                  \
    } name##_op;                     \
    BLZ_CHANNEL_HANDLES_(name, type) \
    BLZ_CHANNEL_SEND_(name, type)    \
    BLZ_CHANNEL_RECV_(name, type)    \
    BLZ_CHANNEL_MANY_(name, type)

#define BLZ_CHANNEL_INLINE_ static inline __attribute__((unused))

#define BLZ_CHANNEL_HANDLES_(name, type)                                                          \
    BLZ_CHANNEL_INLINE_ BLZ_NODISCARD int name##_new_with(name##_sender *tx, name##_receiver *rx, \
                                                          const blz_channel_options *options)     \
    {                                                                                             \
        struct align_ {                                                                           \
            char c;                                                                               \
            type value;                                                                           \
        };                                                                                        \
        blz_channel_options typed = *options;                                                     \
        typed.elem_size = sizeof(type);                                                           \
        typed.elem_align = offsetof(struct align_, value);                                        \
        return blz_channel_new(&tx->raw, &rx->raw, &typed);                                       \
    }                                                                                             \
    BLZ_CHANNEL_INLINE_ BLZ_NODISCARD int name##_new(name##_sender *tx, name##_receiver *rx,      \
                                                     size_t capacity)                             \
    {                                                                                             \
        blz_channel_options options = {capacity, 0, 0, NULL, NULL, NULL, {0, 0, 0, 0}};           \
        return name##_new_with(tx, rx, &options);                                                 \
    }                                                                                             \
    BLZ_CHANNEL_INLINE_ name##_sender name##_sender_clone(const name##_sender *tx)                \
    {                                                                                             \
        name##_sender clone = {blz_sender_clone(&tx->raw)};                                       \
        return clone;                                                                             \
    }                                                                                             \
    BLZ_CHANNEL_INLINE_ name##_receiver name##_receiver_clone(const name##_receiver *rx)          \
    {                                                                                             \
        name##_receiver clone = {blz_receiver_clone(&rx->raw)};                                   \
        return clone;                                                                             \
    }                                                                                             \
    BLZ_CHANNEL_INLINE_ void name##_sender_drop(name##_sender *tx)                                \
    {                                                                                             \
        blz_sender_drop(&tx->raw);                                                                \
    }                                                                                             \
    BLZ_CHANNEL_INLINE_ void name##_receiver_drop(name##_receiver *rx)                            \
    {                                                                                             \
        blz_receiver_drop(&rx->raw);                                                              \
    }                                                                                             \
    BLZ_CHANNEL_INLINE_ void name##_sender_close(const name##_sender *tx)                         \
    {                                                                                             \
        blz_channel_close(tx->raw.channel);                                                       \
    }                                                                                             \
    BLZ_CHANNEL_INLINE_ void name##_receiver_close(const name##_receiver *rx)                     \
    {                                                                                             \
        blz_channel_close(rx->raw.channel);                                                       \
    }                                                                                             \
    BLZ_CHANNEL_INLINE_ BLZ_NODISCARD int name##_upgrade(const blz_weak_sender *weak,             \
                                                         name##_sender *tx)                       \
    {                                                                                             \
        return blz_weak_sender_upgrade(weak, &tx->raw);                                           \
    }

#define BLZ_CHANNEL_SEND_(name, type)                                                              \
    BLZ_CHANNEL_INLINE_ BLZ_NODISCARD int name##_try_send(const name##_sender *tx, type value)     \
    {                                                                                              \
        blz_slot_ slot = blz_channel_claim_(tx->raw.channel);                                      \
        if (blz_unlikely(!slot.elem))                                                              \
            return blz_channel_send_slow_(tx->raw.channel, &value);                                \
        *(type *)slot.elem = value;                                                                \
        blz_channel_publish_(tx->raw.channel, slot);                                               \
        return 0;                                                                                  \
    }                                                                                              \
    static inline blz_poll name##_send_poll_(blz_future *future, blz_cx *cx)                       \
    {                                                                                              \
        name##_op *op = (name##_op *)(void *)future;                                               \
        blz_slot_ slot;                                                                            \
        if (blz_likely(future->line == 0 && cx->budget > 0) &&                                     \
            (slot = blz_channel_claim_(op->op.channel)).elem) {                                    \
            cx->budget--;                                                                          \
            *(type *)slot.elem = op->value;                                                        \
            blz_channel_publish_(op->op.channel, slot);                                            \
            return blz_future_done(future, 0);                                                     \
        }                                                                                          \
        return blz_channel_send_poll_(future, cx);                                                 \
    }                                                                                              \
    BLZ_CHANNEL_INLINE_ BLZ_NODISCARD blz_future *name##_send(name##_op *op,                       \
                                                              const name##_sender *tx, type value) \
    {                                                                                              \
        static const blz_future_ops ops = {#name "_send",         NULL,                            \
                                           name##_send_poll_,     blz_channel_send_cancel_,        \
                                           blz_channel_describe_, {NULL, NULL, NULL}};             \
        op->value = value;                                                                         \
        return blz_channel_op_init_(&op->op, &ops, tx->raw.channel, &op->value);                   \
    }                                                                                              \
    BLZ_CHANNEL_INLINE_ int name##_send_wait(const name##_sender *tx, type value)                  \
    {                                                                                              \
        name##_op op;                                                                              \
        op.op.future.line = 0;                                                                     \
        return (int)blz_wait(name##_send(&op, tx, value));                                         \
    }                                                                                              \
    BLZ_CHANNEL_INLINE_ void name##_permit_send(blz_permit *permit, type value)                    \
    {                                                                                              \
        blz_slot_ slot = blz_permit_claim_(permit);                                                \
        *(type *)slot.elem = value;                                                                \
        blz_channel_publish_(permit->channel, slot);                                               \
    }

#define BLZ_CHANNEL_RECV_(name, type)                                                             \
    BLZ_CHANNEL_INLINE_ BLZ_NODISCARD int name##_try_recv(const name##_receiver *rx, type *value) \
    {                                                                                             \
        blz_slot_ slot = blz_channel_take_(rx->raw.channel);                                      \
        if (blz_unlikely(!slot.elem))                                                             \
            return blz_channel_recv_slow_(rx->raw.channel, value);                                \
        *value = *(type *)slot.elem;                                                              \
        blz_channel_release_(rx->raw.channel, slot);                                              \
        return 0;                                                                                 \
    }                                                                                             \
    static inline blz_poll name##_recv_poll_(blz_future *future, blz_cx *cx)                      \
    {                                                                                             \
        name##_op *op = (name##_op *)(void *)future;                                              \
        blz_slot_ slot;                                                                           \
        if (blz_likely(future->line == 0 && cx->budget > 0) &&                                    \
            (slot = blz_channel_take_(op->op.channel)).elem) {                                    \
            cx->budget--;                                                                         \
            *(type *)op->op.elem = *(type *)slot.elem;                                            \
            blz_channel_release_(op->op.channel, slot);                                           \
            return blz_future_done(future, 0);                                                    \
        }                                                                                         \
        return blz_channel_recv_poll_(future, cx);                                                \
    }                                                                                             \
    BLZ_CHANNEL_INLINE_ BLZ_NODISCARD blz_future *name##_recv(name##_op *op,                      \
                                                              const name##_receiver *rx,          \
                                                              type *value)                        \
    {                                                                                             \
        static const blz_future_ops ops = {#name "_recv",         NULL,                           \
                                           name##_recv_poll_,     blz_channel_recv_cancel_,       \
                                           blz_channel_describe_, {NULL, NULL, NULL}};            \
        return blz_channel_op_init_(&op->op, &ops, rx->raw.channel, value);                       \
    }                                                                                             \
    BLZ_CHANNEL_INLINE_ int name##_recv_wait(const name##_receiver *rx, type *value)              \
    {                                                                                             \
        name##_op op;                                                                             \
        op.op.future.line = 0;                                                                    \
        return (int)blz_wait(name##_recv(&op, rx, value));                                        \
    }

#define BLZ_CHANNEL_MANY_(name, type)                                                            \
    BLZ_CHANNEL_INLINE_ BLZ_NODISCARD blz_future *name##_recv_many(name##_op *op,                \
                                                                   const name##_receiver *rx,    \
                                                                   type *values, uint32_t count) \
    {                                                                                            \
        return blz_receiver_recv_many(&op->op, &rx->raw, values, count);                         \
    }                                                                                            \
    BLZ_CHANNEL_INLINE_ BLZ_NODISCARD int64_t name##_try_recv_many(const name##_receiver *rx,    \
                                                                   type *values, uint32_t count) \
    {                                                                                            \
        return blz_receiver_try_recv_many(&rx->raw, values, count);                              \
    }

BLZ_END_DECLS
#endif
