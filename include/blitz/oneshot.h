/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Oneshot: one 64-bit value, sent once, received once.
 *
 *     blz_oneshot_init(&self->reply);
 *     rc = BLZ_SPAWN(worker, .reply = &self->reply);
 *     BLZ_AWAIT(self->value, blz_oneshot_recv(&self->wait, &self->reply));
 *
 * The channel is a struct of the caller's, with one sender and one receiver, and may be reused
 * after blz_oneshot_init. It must stay until the value has been received, or the receiver has seen
 * -EPIPE; a receiver that was cancelled closes the channel, and then waits for the sender with
 * blz_oneshot_close before the memory goes.
 */
#ifndef BLITZ_ONESHOT_H
#define BLITZ_ONESHOT_H

#include <blitz/future.h>

BLZ_BEGIN_DECLS

typedef struct blz_oneshot {
    uint64_t state;
    int64_t value;
    blz_waker waker;
} blz_oneshot;

typedef struct blz_oneshot_wait {
    blz_future future;
    blz_oneshot *channel;
} blz_oneshot_wait;

BLZ_API void blz_oneshot_init(blz_oneshot *channel);

/*
 * Sends: 0, or -EPIPE if the receiver has closed. Afterwards the sender does not touch the channel
 * any more. [any thread]
 */
BLZ_API int blz_oneshot_send(blz_oneshot *channel, int64_t value);

/* Gives up without a value: the receiver gets -EPIPE. [any thread] */
BLZ_API void blz_oneshot_drop(blz_oneshot *channel);

/* Awaits the value, which must be >= 0, or -EPIPE. Interruptible. */
BLZ_API blz_future *blz_oneshot_recv(blz_oneshot_wait *op, blz_oneshot *channel);

/* The value if it is there: 1 and *value; 0: not yet; -EPIPE: never. [receiver] */
BLZ_API int blz_oneshot_try_recv(blz_oneshot *channel, int64_t *value);

/* Closes: a later send gets -EPIPE. True if the sender is through and the memory may go. */
BLZ_API bool blz_oneshot_close(blz_oneshot *channel);

BLZ_END_DECLS
#endif
