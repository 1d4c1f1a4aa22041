/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishing: messages to a channel go to everybody who has subscribed to it, or to a pattern that
 * its name matches.
 *
 * A subscriber is a connection that others send to. It has an outbox, which any of them adds to and
 * a task of its own (deliver) sends: so a publisher never waits for a subscriber. One that does not
 * read what it has subscribed to is closed when its outbox is full. What the connection replies to
 * its own client goes through the outbox, too, so that everything stays in order.
 */
#ifndef REDIS_PUBSUB_H
#define REDIS_PUBSUB_H

#include "hash.h"
#include "reply.h"

#include <blitz.h>
#include <pthread.h>

enum {
    SUBSCRIPTIONS_MAX = 256, /* of one client */
    CHANNEL_NAME_MAX = 256,  /* bytes; of a pattern, too: each may cost its square */
    OUTBOX_MAX = 32 << 20,
    OUTBOX_HIGH = 64 << 10, /* from here on the connection itself waits before it reads on */
};

struct channel;
struct subscription;

struct pubsub {
    pthread_mutex_t lock;
    const struct hash_secret *secret;
    struct budget *budget; /* of outboxes */
    struct channel **buckets;
    size_t nr_buckets, nr_channels;
    struct channel *patterns; /* all of them: each is tried with each message */
};

/* `proto` and the subscriptions are under the lock of the pubsub; the rest is under its own. */
struct subscriber {
    struct pubsub *pubsub;
    struct subscription *first;
    unsigned nr;
    int proto;

    blz_tcp conn;
    pthread_mutex_t lock;
    struct bytes outbox;
    bool closed;        /* nothing more will come */
    bool failed;        /* nothing more will be sent */
    blz_notify filled;  /* for the task that sends: there is something, or it is closed */
    blz_notify drained; /* for the connection: there is less */
};

/* All zero before. `secret` and `budget` stay. */
void pubsub_init(struct pubsub *pubsub, const struct hash_secret *secret, struct budget *budget);
void pubsub_free(struct pubsub *pubsub);

/* NULL: no memory. */
struct subscriber *subscriber_new(struct pubsub *pubsub, blz_tcp conn, int proto);

/* Ends all subscriptions and frees it. Its task has ended. */
void subscriber_free(struct subscriber *subscriber);

/*
 * Subscribes to a channel, or to a pattern, and tells the client. -ENOMEM; -E2BIG: too many
 * subscriptions.
 */
int pubsub_subscribe(struct subscriber *subscriber, bool pattern, const char *name, size_t len);

/* Ends a subscription, if it is there, and tells the client. */
void pubsub_unsubscribe(struct subscriber *subscriber, bool pattern, const char *name, size_t len);

/* Ends all of one kind. */
void pubsub_unsubscribe_all(struct subscriber *subscriber, bool pattern);

/* What a client is told about a subscription that is new or gone; `name` NULL: there was none. */
void reply_subscription(struct bytes *out, int proto, const char *kind, const char *name,
                        size_t len, unsigned nr);

/* The client speaks another version of the protocol from now on. */
void subscriber_set_proto(struct subscriber *subscriber, int proto);

/* Sends a message: how many get it. */
size_t pubsub_publish(struct pubsub *pubsub, const char *name, size_t name_len, const char *message,
                      size_t len);

/* ---- outbox.c ---- */

/* Adds to the outbox. [any thread] */
void outbox_add(struct subscriber *subscriber, const void *data, size_t len);

/* Gives up: what is in it is not sent any more, and the connection reads the end. [any thread] */
void outbox_fail(struct subscriber *subscriber);

/* Nothing more will come: the task ends when all has been sent. */
void outbox_close(struct subscriber *subscriber);

/* Whether there is so much to be sent that the connection should wait for `drained`. */
bool outbox_is_high(struct subscriber *subscriber);

/* Sends what comes into the outbox, until it is closed and empty, or something fails. */
struct deliver {
    BLZ_FRAME;
    struct subscriber *subscriber;
    struct bytes bytes;
    int64_t rc;
    blz_io io;
    blz_notify_op wait;
};
BLZ_DECLARE_EXTERN(deliver);

#endif
