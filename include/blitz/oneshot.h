/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Oneshot: one value, sent once, received once.
 *
 *     struct ask { BLZ_FRAME; blz_oneshot reply; blz_oneshot_op op; int64_t value, rc; };
 *
 *     blz_oneshot_init(&self->reply);
 *     self->rc = BLZ_SPAWN(worker, .reply = &self->reply);    // it calls blz_oneshot_send
 *     if (self->rc == 0)                    // shielded, because the channel is in this frame
 *         BLZ_AWAIT_SHIELDED(self->rc, blz_oneshot_recv(&self->op, &self->reply, &self->value));
 *     if (self->rc == 0)
 *         use(self->value);
 *
 * The value is any int64_t; BLZ_ONESHOT(name, type) makes a oneshot of another type.
 *
 * The channel is a struct of the caller's, for one sender and one receiver, and may be used again
 * after blz_oneshot_init. Its memory must stay until the sender is through: until the value has
 * been received, the receiver has seen -EPIPE, or blz_oneshot_close has returned true. Where sender
 * and receiver do not know how long the other one lives, blz_oneshot_new makes a channel on the
 * heap with a handle for each: the side that ends last frees it.
 *
 * A value that has been sent is received even if the channel is closed afterwards: data first.
 */
#ifndef BLITZ_ONESHOT_H
#define BLITZ_ONESHOT_H

#include <blitz/future.h>

BLZ_BEGIN_DECLS

/* A channel for one value, in memory of the program. The fields are the library's. */
typedef struct blz_oneshot {
    uint64_t state;
    int64_t value;
    blz_waker receiver, sender; /* of the side that waits */
    uint64_t reserved;
} blz_oneshot;

/* What waits for a oneshot: one for each side. */
typedef struct blz_oneshot_op {
    blz_future future;
    blz_oneshot *channel;
    int64_t *value;
    uint64_t reserved;
} blz_oneshot_op;

/* clang-format off */
/* Empty. For a static one; blz_oneshot_init does the same. */
#define BLZ_ONESHOT_INIT {0, 0, {NULL, NULL}, {NULL, NULL}, 0}
/* clang-format on */

/* Makes the channel empty, to be used once more. [any thread] */
BLZ_API void blz_oneshot_init(blz_oneshot *channel);

/* ---- the sender ---- */

/*
 * Sends the value: 0; -EPIPE: the receiver has closed, and the value is still the caller's.
 * Afterwards the sender does not touch the channel any more. Sending twice aborts with a sentence
 * where it is noticed. [any thread]
 */
BLZ_API int blz_oneshot_send(blz_oneshot *channel, int64_t value);

/*
 * Gives up without a value: the receiver gets -EPIPE. Called in place of blz_oneshot_send. [any
 * thread]
 */
BLZ_API void blz_oneshot_drop(blz_oneshot *channel);

/* Whether the receiver has closed. [any thread, before sending] */
BLZ_API bool blz_oneshot_is_closed(const blz_oneshot *channel);

/*
 * Awaits that the receiver closes: 0; the sender must still drop or send. Only one such wait at a
 * time, and never at the moment of sending: that aborts with a sentence. Interruptible: with
 * -ECANCELED the channel is as it was. [task, before sending]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_oneshot_closed(blz_oneshot_op *op, blz_oneshot *channel);

/*
 * Blocks this thread until the receiver closes: 0; the sender must still drop or send. -EDEADLK on
 * a worker. [any thread but a worker, before sending]
 */
static inline int blz_oneshot_closed_wait(blz_oneshot *channel)
{
    blz_oneshot_op op;
    return (int)blz_wait(blz_oneshot_closed(BLZ_FRESH_(&op), channel));
}

/* ---- the receiver ---- */

/*
 * Awaits the value: 0 and *value (value may be NULL); -EPIPE: the sender dropped. Only one receive
 * at a time. Interruptible: a receive that ends with -ECANCELED leaves the channel as it was, and
 * may be repeated, or the receiver closes. On a closed channel it waits for the sender, and gives
 * -EPIPE as soon as that is through: await it shielded before the memory is freed. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_oneshot_recv(blz_oneshot_op *op, blz_oneshot *channel,
                                                   int64_t *value);

/*
 * Blocks this thread until the value is there: 0 and *value (value may be NULL); -EPIPE: the sender
 * dropped; -EDEADLK on a worker. [any thread but a worker]
 */
static inline int blz_oneshot_recv_wait(blz_oneshot *channel, int64_t *value)
{
    blz_oneshot_op op;
    return (int)blz_wait(blz_oneshot_recv(BLZ_FRESH_(&op), channel, value));
}

/*
 * Takes the value without waiting: 0 and *value; -EAGAIN: it has not been sent yet; -EPIPE: it
 * never will be. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_oneshot_try_recv(blz_oneshot *channel, int64_t *value);

/*
 * Closes the channel for the receiver: a later send gets -EPIPE, and a wait of blz_oneshot_closed
 * ends. True: the sender is through, its value (if it sent one) can be received, and the memory may
 * be freed. [any thread]
 */
BLZ_API bool blz_oneshot_close(blz_oneshot *channel);

/* ---- with handles ---- */

/*
 * The handle of the sender. Each handle is moved, not copied: a call that ends it leaves NULL in
 * it. On a handle that has ended, sending and receiving give -EBADF, dropping does nothing.
 */
typedef struct blz_oneshot_sender {
    blz_oneshot *channel;
} blz_oneshot_sender;

/* The handle of the receiver; moved, not copied, and NULL once it has ended. */
typedef struct blz_oneshot_receiver {
    blz_oneshot *channel;
} blz_oneshot_receiver;

/*
 * Makes a channel on the heap with a handle for each side: 0; -ENOMEM. The allocator may be NULL
 * (malloc); it must outlive both handles. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_oneshot_new(blz_oneshot_sender *sender,
                                          blz_oneshot_receiver *receiver,
                                          const blz_allocator *allocator);

/*
 * Sends the value and ends the handle: 0; -EPIPE: the receiver has closed, and the value is still
 * the caller's; -EBADF: the handle has ended. [any thread]
 */
static inline int blz_oneshot_sender_send(blz_oneshot_sender *sender, int64_t value)
{
    blz_oneshot *channel = sender->channel;

    sender->channel = NULL;
    return channel ? blz_oneshot_send(channel, value) : -EBADF;
}

/* Gives up without a value and ends the handle: the receiver gets -EPIPE. [any thread] */
static inline void blz_oneshot_sender_drop(blz_oneshot_sender *sender)
{
    blz_oneshot *channel = sender->channel;

    sender->channel = NULL;
    if (channel)
        blz_oneshot_drop(channel);
}

/*
 * Closes and ends the handle; no receive may be pending. A value that has been sent and not
 * received is lost: if it owns something, close first and receive it. [any thread]
 */
BLZ_API void blz_oneshot_receiver_drop(blz_oneshot_receiver *receiver);

/*
 * Awaits that the receiver closes: 0; -EBADF: the handle has ended. Interruptible: with -ECANCELED
 * the channel is as it was. [task, before sending]
 */
static inline BLZ_NODISCARD blz_future *blz_oneshot_sender_closed(blz_oneshot_op *op,
                                                                  blz_oneshot_sender *sender)
{
    return blz_oneshot_closed(op, sender->channel);
}

/*
 * Blocks this thread until the receiver closes: 0; -EBADF: the handle has ended; -EDEADLK on a
 * worker. [any thread but a worker, before sending]
 */
static inline int blz_oneshot_sender_closed_wait(blz_oneshot_sender *sender)
{
    return blz_oneshot_closed_wait(sender->channel);
}

/* Whether the receiver has closed, or the handle has ended. [any thread] */
static inline bool blz_oneshot_sender_is_closed(const blz_oneshot_sender *sender)
{
    return !sender->channel || blz_oneshot_is_closed(sender->channel);
}

/*
 * Awaits the value: 0 and *value (value may be NULL); -EPIPE: the sender dropped; -EBADF: the
 * handle has ended. Interruptible: a receive that ends with -ECANCELED may be repeated. [task]
 */
static inline BLZ_NODISCARD blz_future *blz_oneshot_receiver_recv(blz_oneshot_op *op,
                                                                  blz_oneshot_receiver *receiver,
                                                                  int64_t *value)
{
    return blz_oneshot_recv(op, receiver->channel, value);
}

/*
 * Blocks this thread until the value is there: 0 and *value (value may be NULL); -EPIPE: the sender
 * dropped; -EBADF: the handle has ended; -EDEADLK on a worker. [any thread but a worker]
 */
static inline int blz_oneshot_receiver_recv_wait(blz_oneshot_receiver *receiver, int64_t *value)
{
    return blz_oneshot_recv_wait(receiver->channel, value);
}

/*
 * Takes the value without waiting: 0 and *value; -EAGAIN: it has not been sent yet; -EPIPE: it
 * never will be; -EBADF: the handle has ended. [any thread]
 */
static inline BLZ_NODISCARD int blz_oneshot_receiver_try_recv(blz_oneshot_receiver *receiver,
                                                              int64_t *value)
{
    return receiver->channel ? blz_oneshot_try_recv(receiver->channel, value) : -EBADF;
}

/*
 * Closes the channel for the receiver, whose handle stays: a later send gets -EPIPE. True: the
 * sender is through, its value (if it sent one) can be received; also if the handle has ended. [any
 * thread]
 */
static inline bool blz_oneshot_receiver_close(blz_oneshot_receiver *receiver)
{
    return !receiver->channel || blz_oneshot_close(receiver->channel);
}

/* ---- of any type ---- */

/*
 * Makes the types `name` and `name_op`, and functions name_init, name_send, name_drop, name_recv,
 * name_recv_wait, name_try_recv and name_close, for values of `type`:
 *
 *     BLZ_ONESHOT(answer, struct reply)                // once, in a file or a header
 *     ...
 *     answer_send(&channel, reply);
 *     BLZ_AWAIT(self->rc, answer_recv(&self->op, &self->channel, &self->reply));
 *
 * The rest is called with its member `channel`: blz_oneshot_closed(&op, &answer.channel).
 */
#define BLZ_ONESHOT(name, type)                                                                   \
    typedef struct name {                                                                         \
        blz_oneshot channel;                                                                      \
        type content;                                                                             \
    } name;                                                                                       \
    typedef struct name##_op {                                                                    \
        blz_oneshot_op op;                                                                        \
        type *content;                                                                            \
    } name##_op;                                                                                  \
    BLZ_ONESHOT_FN_ void name##_init(name *self)                                                  \
    {                                                                                             \
        blz_oneshot_init(&self->channel);                                                         \
    }                                                                                             \
    BLZ_ONESHOT_FN_ int name##_send(name *self, type value)                                       \
    {                                                                                             \
        self->content = value;                                                                    \
        return blz_oneshot_send(&self->channel, 0);                                               \
    }                                                                                             \
    BLZ_ONESHOT_FN_ void name##_drop(name *self)                                                  \
    {                                                                                             \
        blz_oneshot_drop(&self->channel);                                                         \
    }                                                                                             \
    BLZ_ONESHOT_FN_ blz_poll name##_recv_poll_(blz_future *future, blz_cx *cx)                    \
    {                                                                                             \
        name##_op *op = (name##_op *)(void *)future;                                              \
        blz_poll poll = blz_oneshot_recv_poll_(future, cx);                                       \
        if (blz_is_ready(poll) && future->result == 0)                                            \
            *op->content = ((name *)(void *)op->op.channel)->content;                             \
        return poll;                                                                              \
    }                                                                                             \
    BLZ_ONESHOT_FN_ BLZ_NODISCARD blz_future *name##_recv(name##_op *op, name *self, type *value) \
    {                                                                                             \
        static const blz_future_ops ops = {#name "_recv",         NULL,                           \
                                           name##_recv_poll_,     blz_oneshot_recv_cancel_,       \
                                           blz_oneshot_describe_, {NULL, NULL, NULL}};            \
        op->content = value;                                                                      \
        blz_future *future = blz_oneshot_recv(&op->op, &self->channel, NULL);                     \
        future->ops = &ops;                                                                       \
        return future;                                                                            \
    }                                                                                             \
    BLZ_ONESHOT_FN_ int name##_recv_wait(name *self, type *value)                                 \
    {                                                                                             \
        name##_op op;                                                                             \
        op.op.future.line = 0;                                                                    \
        return (int)blz_wait(name##_recv(&op, self, value));                                      \
    }                                                                                             \
    BLZ_ONESHOT_FN_ BLZ_NODISCARD int name##_try_recv(name *self, type *value)                    \
    {                                                                                             \
        int rc = blz_oneshot_try_recv(&self->channel, NULL);                                      \
        if (rc == 0)                                                                              \
            *value = self->content;                                                               \
        return rc;                                                                                \
    }                                                                                             \
    BLZ_ONESHOT_FN_ bool name##_close(name *self)                                                 \
    {                                                                                             \
        return blz_oneshot_close(&self->channel);                                                 \
    }

#define BLZ_ONESHOT_FN_ __attribute__((unused)) static inline

BLZ_API blz_poll blz_oneshot_recv_poll_(blz_future *future, blz_cx *cx);
BLZ_API void blz_oneshot_recv_cancel_(blz_future *future, blz_cx *cx);
BLZ_API void blz_oneshot_describe_(const blz_future *future, struct blz_wait_info *info);

BLZ_END_DECLS
#endif
