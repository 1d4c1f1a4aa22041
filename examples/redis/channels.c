/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands about channels. The first subscription of a connection makes it a subscriber, with an
 * outbox and a task that sends what is in it; that it stays to its end.
 *
 * Replies that were written before must come first, so they go to the outbox at once; what is told
 * about a subscription then goes there in the same step in which messages begin or cease to.
 */
#include "redis.h"

#include <errno.h>
#include <string.h>

static bool is_too_long(struct call *call, unsigned i)
{
    if (arg_len(call, i) <= CHANNEL_NAME_MAX)
        return false;
    reply_error(&call->client->out, "ERR channel name is too long");
    return true;
}

void run_publish(struct call *call)
{
    struct pubsub *pubsub = &call->client->server->pubsub;

    if (!is_too_long(call, 1))
        reply_int(&call->client->out,
                  (int64_t)pubsub_publish(pubsub, arg(call, 1), arg_len(call, 1), arg(call, 2),
                                          arg_len(call, 2)));
}

/* Makes the client a subscriber, if it is none. 0 or a negative errno. */
static int become_subscriber(struct client *client)
{
    int rc;

    if (client->subscriber)
        return 0;
    client->subscriber = subscriber_new(&client->server->pubsub, client->conn, client->proto);
    if (!client->subscriber)
        return -ENOMEM;
    rc = BLZ_SPAWN_JOIN(&client->deliver, deliver, .subscriber = client->subscriber,
                        .bytes.budget = client->subscriber->outbox.budget);
    if (rc < 0) {
        subscriber_free(client->subscriber);
        client->subscriber = NULL;
    }
    return rc;
}

static void send_replies(struct client *client)
{
    if (client->out.failed)
        return; /* the connection will be closed */
    outbox_add(client->subscriber, client->out.data, client->out.len);
    bytes_clear(&client->out);
}

static void subscribe(struct call *call, bool pattern)
{
    struct client *client = call->client;
    int rc = become_subscriber(client);

    for (unsigned i = 1; i < call->nr_args && rc == 0; i++) {
        if (is_too_long(call, i))
            return;
        send_replies(client);
        rc = pubsub_subscribe(client->subscriber, pattern, arg(call, i), arg_len(call, i));
    }
    if (rc == -E2BIG)
        reply_error(&client->out, "ERR too many subscriptions");
    else if (rc < 0)
        reply_error(&client->out, "ERR cannot subscribe: %s", blz_strerror(rc));
}

void run_subscribe(struct call *call)
{
    subscribe(call, false);
}

void run_psubscribe(struct call *call)
{
    subscribe(call, true);
}

/* Of who has never subscribed to anything: the replies are the same, but there is no outbox. */
static void unsubscribe_nothing(struct call *call, const char *kind)
{
    struct client *client = call->client;

    if (call->nr_args == 1)
        reply_subscription(&client->out, client->proto, kind, NULL, 0, 0);
    for (unsigned i = 1; i < call->nr_args; i++)
        reply_subscription(&client->out, client->proto, kind, arg(call, i), arg_len(call, i), 0);
}

static void unsubscribe(struct call *call, bool pattern)
{
    struct subscriber *subscriber = call->client->subscriber;

    if (!subscriber) {
        unsubscribe_nothing(call, call->command->name);
        return;
    }
    send_replies(call->client);
    if (call->nr_args == 1)
        pubsub_unsubscribe_all(subscriber, pattern);
    for (unsigned i = 1; i < call->nr_args; i++)
        pubsub_unsubscribe(subscriber, pattern, arg(call, i), arg_len(call, i));
}

void run_unsubscribe(struct call *call)
{
    unsubscribe(call, false);
}

void run_punsubscribe(struct call *call)
{
    unsubscribe(call, true);
}
