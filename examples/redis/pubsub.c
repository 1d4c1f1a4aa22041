/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See pubsub.h. A channel exists as long as somebody subscribes to it; a subscription is linked to
 * both. All of that is under one lock, which a publisher holds while it fills outboxes. It wakes
 * their tasks under it, too: a subscriber that it had seen could be gone by the time it had let go.
 * (To wake a task is to put it in a queue; nothing of it runs here.)
 */
#include "pubsub.h"

#include "glob.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_BUCKETS = 64 };

struct channel {
    struct channel *next; /* in its bucket, or of the patterns */
    uint64_t hash;
    struct subscription *first;
    size_t len;
    bool pattern;
    char name[];
};

struct subscription {
    struct subscriber *subscriber;
    struct channel *channel;
    struct subscription *next, **link;  /* of the channel */
    struct subscription *next_of_owner; /* of the subscriber */
};

void pubsub_init(struct pubsub *p, const struct hash_secret *secret, struct budget *budget)
{
    pthread_mutex_init(&p->lock, NULL);
    p->secret = secret;
    p->budget = budget;
}

void pubsub_free(struct pubsub *p)
{
    free(p->buckets);
    pthread_mutex_destroy(&p->lock);
}

/* ---- channels ---- */

static struct channel **list_of(struct pubsub *p, bool pattern, uint64_t hash)
{
    if (pattern)
        return &p->patterns;
    return p->nr_buckets > 0 ? &p->buckets[hash & (p->nr_buckets - 1)] : NULL;
}

/* The pointer to the channel, or NULL. */
static struct channel **find_channel(struct pubsub *p, bool pattern, uint64_t hash,
                                     const char *name, size_t len)
{
    struct channel **link = list_of(p, pattern, hash);

    for (; link && *link; link = &(*link)->next)
        if ((*link)->hash == hash && (*link)->len == len && memcmp((*link)->name, name, len) == 0)
            return link;
    return NULL;
}

static bool grow(struct pubsub *p)
{
    size_t old = p->nr_buckets, nr = old > 0 ? 2 * old : MIN_BUCKETS;
    struct channel **from = p->buckets, **buckets = calloc(nr, sizeof(struct channel *));

    if (!buckets)
        return old > 0;
    p->buckets = buckets;
    p->nr_buckets = nr;
    for (size_t i = 0; i < old; i++) {
        for (struct channel *channel = from[i], *next; channel; channel = next) {
            struct channel **to = &buckets[channel->hash & (nr - 1)];
            next = channel->next;
            channel->next = *to;
            *to = channel;
        }
    }
    free(from);
    return true;
}

static struct channel *add_channel(struct pubsub *p, bool pattern, uint64_t hash, const char *name,
                                   size_t len)
{
    struct channel *channel, **list;

    if (!pattern && p->nr_channels >= p->nr_buckets && !grow(p))
        return NULL;
    channel = malloc(sizeof *channel + len);
    if (!channel)
        return NULL;
    list = list_of(p, pattern, hash);
    *channel = (struct channel){.next = *list, .hash = hash, .len = len, .pattern = pattern};
    memcpy(channel->name, name, len);
    *list = channel;
    p->nr_channels += !pattern;
    return channel;
}

static void remove_channel(struct pubsub *p, struct channel *channel)
{
    struct channel **link = list_of(p, channel->pattern, channel->hash);

    while (*link != channel)
        link = &(*link)->next;
    *link = channel->next;
    p->nr_channels -= !channel->pattern;
    free(channel);
}

/* ---- subscribers ---- */

struct subscriber *subscriber_new(struct pubsub *p, blz_tcp conn, int proto)
{
    struct subscriber *s = calloc(1, sizeof *s);

    if (s) {
        s->pubsub = p;
        s->conn = conn;
        s->proto = proto;
        s->outbox.budget = p->budget;
        pthread_mutex_init(&s->lock, NULL);
        blz_notify_init(&s->filled);
        blz_notify_init(&s->drained);
    }
    return s;
}

/* Unlinks and frees the subscription that *owned points to, and the channel if it was the last. */
static void drop(struct subscriber *s, struct subscription **owned)
{
    struct subscription *sub = *owned;

    *owned = sub->next_of_owner;
    *sub->link = sub->next;
    if (sub->next)
        sub->next->link = sub->link;
    s->nr--;
    if (!sub->channel->first)
        remove_channel(s->pubsub, sub->channel);
    free(sub);
}

void subscriber_free(struct subscriber *s)
{
    pthread_mutex_lock(&s->pubsub->lock);
    while (s->first)
        drop(s, &s->first);
    pthread_mutex_unlock(&s->pubsub->lock);
    bytes_free(&s->outbox);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void subscriber_set_proto(struct subscriber *s, int proto)
{
    pthread_mutex_lock(&s->pubsub->lock);
    s->proto = proto;
    pthread_mutex_unlock(&s->pubsub->lock);
}

void reply_subscription(struct bytes *out, int proto, const char *kind, const char *name,
                        size_t len, unsigned nr)
{
    reply_push(out, proto, 3);
    reply_text(out, kind);
    if (name)
        reply_bulk(out, name, len);
    else
        reply_null(out, proto);
    reply_int(out, nr);
}

/* Under the pubsub's lock, so that it stands before the first message, or behind the last. */
static void tell(struct subscriber *s, const char *kind, const char *name, size_t len)
{
    struct bytes bytes = {0};

    reply_subscription(&bytes, s->proto, kind, name, len, s->nr);
    if (bytes.failed)
        outbox_fail(s);
    else
        outbox_add(s, bytes.data, bytes.len);
    bytes_free(&bytes);
}

/* The pointer to a subscription, or NULL. There are not many. */
static struct subscription **find_subscription(struct subscriber *s, bool pattern, const char *name,
                                               size_t len)
{
    for (struct subscription **owned = &s->first; *owned; owned = &(*owned)->next_of_owner) {
        const struct channel *channel = (*owned)->channel;
        if (channel->pattern == pattern && channel->len == len &&
            memcmp(channel->name, name, len) == 0)
            return owned;
    }
    return NULL;
}

static int add_subscription(struct subscriber *s, bool pattern, const char *name, size_t len)
{
    uint64_t hash = hash_bytes(s->pubsub->secret, name, len);
    struct channel **found = find_channel(s->pubsub, pattern, hash, name, len), *channel;
    struct subscription *sub = malloc(sizeof *sub);

    if (!sub)
        return -ENOMEM;
    channel = found ? *found : add_channel(s->pubsub, pattern, hash, name, len);
    if (!channel) {
        free(sub);
        return -ENOMEM;
    }
    *sub = (struct subscription){s, channel, channel->first, &channel->first, s->first};
    if (sub->next)
        sub->next->link = &sub->next;
    channel->first = s->first = sub;
    s->nr++;
    return 0;
}

int pubsub_subscribe(struct subscriber *s, bool pattern, const char *name, size_t len)
{
    int rc = 0;

    pthread_mutex_lock(&s->pubsub->lock);
    if (!find_subscription(s, pattern, name, len))
        rc = s->nr < SUBSCRIPTIONS_MAX ? add_subscription(s, pattern, name, len) : -E2BIG;
    if (rc == 0)
        tell(s, pattern ? "psubscribe" : "subscribe", name, len);
    pthread_mutex_unlock(&s->pubsub->lock);
    return rc;
}

void pubsub_unsubscribe(struct subscriber *s, bool pattern, const char *name, size_t len)
{
    struct subscription **owned;

    pthread_mutex_lock(&s->pubsub->lock);
    owned = find_subscription(s, pattern, name, len);
    if (owned)
        drop(s, owned);
    tell(s, pattern ? "punsubscribe" : "unsubscribe", name, len);
    pthread_mutex_unlock(&s->pubsub->lock);
}

void pubsub_unsubscribe_all(struct subscriber *s, bool pattern)
{
    const char *kind = pattern ? "punsubscribe" : "unsubscribe";
    struct subscription **owned = &s->first;
    char name[CHANNEL_NAME_MAX];
    bool any = false;

    pthread_mutex_lock(&s->pubsub->lock);
    while (*owned) {
        size_t len = (*owned)->channel->len;
        if ((*owned)->channel->pattern != pattern) {
            owned = &(*owned)->next_of_owner;
            continue;
        }
        memcpy(name, (*owned)->channel->name, len); /* it may go with this subscription */
        drop(s, owned);
        tell(s, kind, name, len);
        any = true;
    }
    if (!any)
        tell(s, kind, NULL, 0);
    pthread_mutex_unlock(&s->pubsub->lock);
}

/* ---- messages ---- */

/* Adds a message to the outboxes of a channel's subscribers, as each of them speaks. */
static size_t send_to(const struct channel *channel, struct bytes *message)
{
    size_t nr = 0;

    if (message->failed)
        return 0;
    for (const struct subscription *sub = channel->first; sub; sub = sub->next) {
        message->data[0] = sub->subscriber->proto == 3 ? '>' : '*';
        outbox_add(sub->subscriber, message->data, message->len);
        nr++;
    }
    return nr;
}

static size_t send_to_patterns(struct pubsub *p, const char *name, size_t name_len,
                               const char *text, size_t len)
{
    size_t nr = 0;

    for (struct channel *channel = p->patterns; channel; channel = channel->next) {
        struct bytes message = {0};
        if (!glob_match(channel->name, channel->len, name, name_len))
            continue;
        reply_push(&message, 2, 4);
        reply_text(&message, "pmessage");
        reply_bulk(&message, channel->name, channel->len);
        reply_bulk(&message, name, name_len);
        reply_bulk(&message, text, len);
        nr += send_to(channel, &message);
        bytes_free(&message);
    }
    return nr;
}

size_t pubsub_publish(struct pubsub *p, const char *name, size_t name_len, const char *text,
                      size_t len)
{
    uint64_t hash = hash_bytes(p->secret, name, name_len);
    struct bytes message = {0};
    struct channel **channel;
    size_t nr = 0;

    pthread_mutex_lock(&p->lock);
    channel = find_channel(p, false, hash, name, name_len);
    if (channel) {
        reply_push(&message, 2, 3);
        reply_text(&message, "message");
        reply_bulk(&message, name, name_len);
        reply_bulk(&message, text, len);
        nr = send_to(*channel, &message);
    }
    nr += send_to_patterns(p, name, name_len, text, len);
    pthread_mutex_unlock(&p->lock);
    bytes_free(&message);
    return nr;
}
