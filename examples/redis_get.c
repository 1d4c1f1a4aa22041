/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets and gets keys of a Redis server, with hiredis: all commands are sent at once, over one
 * connection, and printed as the replies come.
 *
 *     redis_get ADDRESS PORT KEY[=VALUE]...
 *     redis_get 127.0.0.1 6379 fruit=apple colour fruit
 *
 * hiredis calls hooks when it wants to read or write, at any time and as often as it likes; they
 * note it in a blz_fdset, and the next wait heeds it. All calls into hiredis are made by the task
 * that owns the connection, which is the only way to use it from a program with threads.
 */
#include <blitz.h>
#include <hiredis/async.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLY_SECONDS = 10 };

struct redis {
    BLZ_FRAME;
    const char *address;
    int port;
    char **keys;
    redisAsyncContext *context; /* NULL once hiredis has freed it */
    unsigned wanted;            /* BLZ_FD_READ and BLZ_FD_WRITE */
    int waiting;                /* commands without a reply */
    int64_t error;
    blz_fdset set;
    int64_t deadline_ns;
    int64_t rc, closed;
    blz_fdset_ready_op wait;
};

/* ---- what hiredis calls ---- */

static void want(struct redis *self, unsigned wanted)
{
    int rc = blz_fdset_set(&self->set, self->context->c.fd, wanted, NULL);

    self->wanted = wanted;
    if (rc < 0)
        self->error = rc;
}

static void add_read(void *self)
{
    want(self, ((struct redis *)self)->wanted | BLZ_FD_READ);
}

static void del_read(void *self)
{
    want(self, ((struct redis *)self)->wanted & ~(unsigned)BLZ_FD_READ);
}

static void add_write(void *self)
{
    want(self, ((struct redis *)self)->wanted | BLZ_FD_WRITE);
}

static void del_write(void *self)
{
    want(self, ((struct redis *)self)->wanted & ~(unsigned)BLZ_FD_WRITE);
}

/* It is about to close the connection and to free the context. */
static void clean_up(void *data)
{
    struct redis *self = data;

    blz_fdset_remove(&self->set, self->context->c.fd);
    self->context = NULL;
}

static void on_connect(const redisAsyncContext *context, int status)
{
    struct redis *self = context->ev.data;

    if (status != REDIS_OK) {
        fprintf(stderr, "redis_get: %s\n", context->errstr);
        self->error = -ECONNREFUSED;
    }
}

static void on_disconnect(const redisAsyncContext *context, int status)
{
    struct redis *self = context->ev.data;

    if (status != REDIS_OK) {
        fprintf(stderr, "redis_get: %s\n", context->errstr);
        self->error = -ECONNRESET;
    }
}

static void on_reply(redisAsyncContext *context, void *data, void *key)
{
    struct redis *self = context->ev.data;
    const redisReply *reply = data;
    int len = (int)strcspn(key, "=");

    self->waiting--;
    if (!reply)
        return; /* the connection has ended; the other callbacks say why */
    if (reply->type == REDIS_REPLY_NIL)
        printf("%.*s is not set\n", len, (char *)key);
    else if (reply->type == REDIS_REPLY_ERROR)
        printf("%.*s: %s\n", len, (char *)key, reply->str);
    else
        printf("%.*s: %.*s\n", len, (char *)key, (int)reply->len, reply->str);
}

/* ---- the task ---- */

static void hook(struct redis *self)
{
    redisAsyncContext *context = self->context;

    context->ev.data = self;
    context->ev.addRead = add_read;
    context->ev.delRead = del_read;
    context->ev.addWrite = add_write;
    context->ev.delWrite = del_write;
    context->ev.cleanup = clean_up;
    redisAsyncSetConnectCallback(context, on_connect);
    redisAsyncSetDisconnectCallback(context, on_disconnect);
}

static void send_command(struct redis *self, char *key)
{
    const char *value = strchr(key, '=');
    int rc;

    if (value)
        rc = redisAsyncCommand(self->context, on_reply, key, "SET %b %s", key,
                               (size_t)(value - key), value + 1);
    else
        rc = redisAsyncCommand(self->context, on_reply, key, "GET %s", key);
    self->waiting += rc == REDIS_OK;
}

static int begin(struct redis *self)
{
    self->context = redisAsyncConnect(self->address, self->port);
    if (!self->context)
        return -ENOMEM;
    if (self->context->err) {
        fprintf(stderr, "redis_get: %s\n", self->context->errstr);
        redisAsyncFree(self->context); /* has no hooks yet */
        self->context = NULL;
        return -EIO;
    }
    hook(self);
    for (; *self->keys; self->keys++)
        send_command(self, *self->keys);
    return 0;
}

/* Each call may end the connection, and with it the context. */
static void step(struct redis *self)
{
    blz_fdset_event event;

    while (blz_fdset_next(&self->set, &event)) {
        bool ended = event.events & (BLZ_FD_ERR | BLZ_FD_HUP);
        if (self->context && ((event.events & BLZ_FD_READ) || ended))
            redisAsyncHandleRead(self->context);
        if (self->context && ((event.events & BLZ_FD_WRITE) || ended))
            redisAsyncHandleWrite(self->context);
    }
}

BLZ_ASYNC(redis)
{
    BLZ_BEGIN;
    self->rc = begin(self);
    self->deadline_ns = blz_deadline(REPLY_SECONDS * BLZ_SEC);
    while (self->rc >= 0 && self->context && self->waiting > 0 && self->error == 0) {
        BLZ_AWAIT(self->rc, blz_fdset_ready(&self->wait, &self->set, self->deadline_ns));
        if (self->rc > 0)
            step(self);
        else if (self->rc == 0)
            self->rc = -ETIMEDOUT;
    }
    if (self->context)
        redisAsyncFree(self->context);
    BLZ_AWAIT(self->closed, blz_fdset_close(&self->wait, &self->set));
    BLZ_END(self->rc < 0 ? self->rc : self->error);
}

int main(int argc, char **argv)
{
    int64_t rc;

    if (argc < 4) {
        fprintf(stderr, "usage: redis_get ADDRESS PORT KEY[=VALUE]...\n");
        return 2;
    }
    rc = BLZ_RUN(redis, .address = argv[1], .port = atoi(argv[2]), .keys = argv + 3);
    if (rc < 0)
        fprintf(stderr, "redis_get: %s\n", blz_strerror(rc));
    return rc < 0;
}
