/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small Redis: enough of it for redis-cli, redis-benchmark and most clients' first steps. Strings
 * that expire, counters, publishing; RESP2 and RESP3; all in memory.
 *
 *     build/examples/redis &
 *     redis-cli set fruit apple EX 60
 *     redis-cli get fruit
 *     redis-benchmark -q -t get,set -P 16
 *
 *   redis.c       the program: options, listening, stopping
 *   connection.c  a connection: requests in, replies out, many in one write
 *   commands.c    the table of commands; strings.c, admin.c, channels.c: what they do
 *   store.c       keys and values, in shards that have locks; expire.c: their end
 *   pubsub.c      channels and patterns; outbox.c: what subscribers are sent, by tasks of their own
 *   resp.c        requests, and    } pure functions
 *   glob.c        patterns         }
 *   reply.c       replies, in bytes that grow
 *   hash.c        a hash with a secret
 *   budget.h      how much memory there may be
 *
 * What it shows: a task a connection, on all workers, and how they share data: a lock that is held
 * for a few instructions is a plain mutex; what one task does for another goes through an outbox
 * and a notification. A connection that is silent holds no buffer.
 *
 * What clients send makes the server hold no more memory than it is told to: --maxmemory for keys
 * and values, beyond which commands that need more are refused, and --maxmemory-clients for what
 * has been received and not carried out, and for replies and messages that have not been sent;
 * beyond that, the client that needs more is closed. Beside these there are --maxclients
 * connections, each with up to SUBSCRIPTIONS_MAX subscriptions. A single request is limited by
 * resp.h, and a reply by reply.h.
 */
#ifndef REDIS_REDIS_H
#define REDIS_REDIS_H

#include "pubsub.h"
#include "reply.h"
#include "resp.h"
#include "store.h"

#include <blitz.h>
#include <stdatomic.h>

/* What clients are told: those that ask do so to know which commands there are. */
#define REDIS_VERSION "7.0.0"

enum { CLIENT_NAME_MAX = 64 };

struct server {
    struct store store;
    struct pubsub pubsub;
    struct budget buffers; /* of clients */
    unsigned max_clients;
    uint16_t port;
    int64_t started_ns;
    atomic_ullong nr_clients; /* now */
    atomic_ullong nr_connections, nr_refused, nr_commands;
};

/* A connection as the commands see it. */
struct client {
    struct server *server;
    blz_tcp conn;
    uint64_t id;
    int proto; /* 2 or 3 */
    bool quit; /* this was the last request */
    char name[CLIENT_NAME_MAX];
    struct bytes out;              /* replies that have not been sent */
    struct subscriber *subscriber; /* since it has first subscribed; NULL: it has not */
    blz_handle deliver;            /* the subscriber's task */
};

/* ---- Commands ---- */

struct command;

/* A request that is being carried out. */
struct call {
    struct client *client;
    const struct command *command;
    const char *buf;
    const struct resp_span *args; /* the first is the name of the command */
    unsigned nr_args;
    struct key key; /* the first one, if the command has any; its shard is locked */
};

struct command {
    const char *name; /* in small letters */
    void (*run)(struct call *call);
    int arity;             /* words; negative: at least that many */
    int first, last, step; /* which words are keys; last -1: up to the end; first 0: none */
    bool while_subscribed; /* fine for a subscriber that speaks RESP2 */
    const char *flags[2];  /* what COMMAND says about it */
};

/* Carries out a request that has at least one word, and adds the reply to what is to be sent. */
void command_run(struct client *client, const char *buf, const struct resp_request *request);

extern const struct command commands[];
extern const size_t nr_commands;

static inline const char *arg(const struct call *call, unsigned i)
{
    return call->buf + call->args[i].at;
}

static inline size_t arg_len(const struct call *call, unsigned i)
{
    return call->args[i].len;
}

/* Whether a word is this one, in whatever case. `word` is in small letters. */
bool arg_is(const struct call *call, unsigned i, const char *word);

/* The number that a text is: all of it, without ornaments. False: none, or out of range. */
bool parse_int(const char *text, size_t len, int64_t *n);

/* The same of a word; if it is none, that has been replied. */
bool arg_int(struct call *call, unsigned i, int64_t *n);

void reply_syntax_error(struct call *call);
void reply_bad_arity(struct call *call);

/* strings.c, with the shards of their keys locked */
void run_get(struct call *call);
void run_set(struct call *call);
void run_del(struct call *call);
void run_exists(struct call *call);
void run_expire(struct call *call);
void run_pexpire(struct call *call);
void run_ttl(struct call *call);
void run_pttl(struct call *call);
void run_persist(struct call *call);
void run_incr(struct call *call);
void run_decr(struct call *call);
void run_incrby(struct call *call);
void run_decrby(struct call *call);
void run_append(struct call *call);
void run_strlen(struct call *call);
void run_mget(struct call *call);
void run_mset(struct call *call);

/* admin.c */
void run_ping(struct call *call);
void run_echo(struct call *call);
void run_hello(struct call *call);
void run_client(struct call *call);
void run_command(struct call *call);
void run_config(struct call *call);
void run_info(struct call *call);
void run_dbsize(struct call *call);
void run_flushall(struct call *call);
void run_select(struct call *call);
void run_quit(struct call *call);

/* channels.c */
void run_publish(struct call *call);
void run_subscribe(struct call *call);
void run_unsubscribe(struct call *call);
void run_psubscribe(struct call *call);
void run_punsubscribe(struct call *call);

/* ---- connection.c ---- */

/* Serves a connection in a task of its own. 0 or a negative errno. [worker] */
int connection_spawn(struct server *server, blz_tcp conn);

#endif
