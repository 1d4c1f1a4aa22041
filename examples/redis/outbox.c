/* SPDX-License-Identifier: Apache-2.0 */
/* Outboxes: see pubsub.h. Many fill them, one task empties each. */
#include "pubsub.h"

void outbox_add(struct subscriber *s, const void *data, size_t len)
{
    bool failed;

    pthread_mutex_lock(&s->lock);
    failed = !s->failed && s->outbox.len + len > OUTBOX_MAX;
    if (!s->failed && !failed)
        bytes_add(&s->outbox, data, len);
    failed |= s->outbox.failed;
    pthread_mutex_unlock(&s->lock);
    if (failed)
        outbox_fail(s);
    else
        blz_notify_one(&s->filled);
}

/* The task may be in the middle of sending to a client that does not read: that ends, too. */
void outbox_fail(struct subscriber *s)
{
    pthread_mutex_lock(&s->lock);
    s->failed = true;
    bytes_free(&s->outbox);
    pthread_mutex_unlock(&s->lock);
    blz_tcp_shutdown(&s->conn, BLZ_SHUT_BOTH);
    blz_notify_one(&s->filled);
    blz_notify_one(&s->drained);
}

void outbox_close(struct subscriber *s)
{
    pthread_mutex_lock(&s->lock);
    s->closed = true;
    pthread_mutex_unlock(&s->lock);
    blz_notify_one(&s->filled);
}

bool outbox_is_high(struct subscriber *s)
{
    bool high;

    pthread_mutex_lock(&s->lock);
    high = s->outbox.len > OUTBOX_HIGH && !s->failed;
    pthread_mutex_unlock(&s->lock);
    return high;
}

/* Takes all there is, and leaves *bytes, which is empty. 0: nothing; -ENODATA: that was all. */
static int64_t take(struct subscriber *s, struct bytes *bytes)
{
    struct bytes empty = *bytes;
    int64_t rc;

    pthread_mutex_lock(&s->lock);
    *bytes = s->outbox;
    s->outbox = empty;
    rc = s->failed ? -EPIPE : s->closed && bytes->len == 0 ? -ENODATA : (int64_t)bytes->len;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

BLZ_ASYNC_EXTERN(deliver)
{
    BLZ_BEGIN;
    while ((self->rc = take(self->subscriber, &self->bytes)) >= 0) {
        if (self->rc == 0) {
            BLZ_AWAIT(self->rc, blz_notify_await(&self->wait, &self->subscriber->filled));
        } else {
            BLZ_AWAIT(self->rc, blz_tcp_write_all(&self->io, &self->subscriber->conn,
                                                  self->bytes.data, self->bytes.len));
            bytes_clear(&self->bytes);
            blz_notify_one(&self->subscriber->drained);
        }
        if (self->rc < 0)
            break;
    }
    if (self->rc != -ENODATA)
        outbox_fail(self->subscriber);
    bytes_free(&self->bytes);
    BLZ_END(self->rc);
}
