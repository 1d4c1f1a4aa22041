/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands about the server and the connection. Of those that have subcommands here are the ones
 * that clients use on their own: redis-cli when it connects, redis-benchmark before it begins, and
 * libraries to introduce themselves.
 */
#include "redis.h"

#include "glob.h"

#include <stdio.h>
#include <string.h>

static struct bytes *out_of(struct call *call)
{
    return &call->client->out;
}

static void reply_unknown_subcommand(struct call *call)
{
    reply_error(out_of(call), "ERR unknown subcommand or wrong number of arguments for '%.*s'",
                arg_len(call, 1) < 64 ? (int)arg_len(call, 1) : 64, arg(call, 1));
}

/* ---- the connection ---- */

void run_ping(struct call *call)
{
    const struct client *client = call->client;

    if (call->nr_args > 2) {
        reply_bad_arity(call);
    } else if (client->subscriber && client->subscriber->nr > 0 && client->proto == 2) {
        reply_array(out_of(call), 2);
        reply_text(out_of(call), "pong");
        reply_bulk(out_of(call), call->nr_args == 2 ? arg(call, 1) : "",
                   call->nr_args == 2 ? arg_len(call, 1) : 0);
    } else if (call->nr_args == 2) {
        reply_bulk(out_of(call), arg(call, 1), arg_len(call, 1));
    } else {
        reply_simple(out_of(call), "PONG");
    }
}

void run_echo(struct call *call)
{
    reply_bulk(out_of(call), arg(call, 1), arg_len(call, 1));
}

void run_quit(struct call *call)
{
    call->client->quit = true;
    reply_ok(out_of(call));
}

void run_select(struct call *call)
{
    int64_t n;

    if (!arg_int(call, 1, &n))
        return;
    if (n == 0)
        reply_ok(out_of(call));
    else
        reply_error(out_of(call), "ERR DB index is out of range");
}

/* Names have no spaces, as they are shown in lists. False: that has been replied. */
static bool set_name(struct call *call, unsigned i)
{
    const char *name = arg(call, i);
    size_t len = arg_len(call, i);

    if (len >= CLIENT_NAME_MAX) {
        reply_error(out_of(call), "ERR Client names are limited to %d bytes", CLIENT_NAME_MAX - 1);
        return false;
    }
    for (size_t at = 0; at < len; at++) {
        if (name[at] < '!' || name[at] > '~') {
            reply_error(out_of(call), "ERR Client names cannot contain spaces, newlines or special "
                                      "characters.");
            return false;
        }
    }
    memcpy(call->client->name, name, len);
    call->client->name[len] = 0;
    return true;
}

void run_client(struct call *call)
{
    struct client *client = call->client;

    if (arg_is(call, 1, "id") && call->nr_args == 2)
        reply_int(out_of(call), (int64_t)client->id);
    else if (arg_is(call, 1, "getname") && call->nr_args == 2 && client->name[0])
        reply_text(out_of(call), client->name);
    else if (arg_is(call, 1, "getname") && call->nr_args == 2)
        reply_null(out_of(call), client->proto);
    else if (arg_is(call, 1, "setname") && call->nr_args == 3) {
        if (set_name(call, 2))
            reply_ok(out_of(call));
    } else if (arg_is(call, 1, "setinfo") && call->nr_args == 4)
        reply_ok(out_of(call)); /* which library it is: nobody asks us about it */
    else
        reply_unknown_subcommand(call);
}

/* ---- HELLO ---- */

static void reply_hello(struct call *call)
{
    struct bytes *out = out_of(call);

    reply_map(out, call->client->proto, 7);
    reply_text(out, "server");
    reply_text(out, "redis");
    reply_text(out, "version");
    reply_text(out, REDIS_VERSION);
    reply_text(out, "proto");
    reply_int(out, call->client->proto);
    reply_text(out, "id");
    reply_int(out, (int64_t)call->client->id);
    reply_text(out, "mode");
    reply_text(out, "standalone");
    reply_text(out, "role");
    reply_text(out, "master");
    reply_text(out, "modules");
    reply_array(out, 0);
}

/* HELLO [2|3 [SETNAME name]]. Nothing changes unless all of it is right. */
void run_hello(struct call *call)
{
    struct client *client = call->client;
    int64_t proto = client->proto;

    if (call->nr_args > 1 && !parse_int(arg(call, 1), arg_len(call, 1), &proto)) {
        reply_error(out_of(call), "ERR Protocol version is not an integer or out of range");
        return;
    }
    if (proto != 2 && proto != 3) {
        reply_error(out_of(call), "NOPROTO unsupported protocol version");
        return;
    }
    if (call->nr_args > 2) {
        if (call->nr_args != 4 || !arg_is(call, 2, "setname")) {
            reply_error(out_of(call), "ERR Syntax error in HELLO option '%.*s'",
                        arg_len(call, 2) < 64 ? (int)arg_len(call, 2) : 64, arg(call, 2));
            return;
        }
        if (!set_name(call, 3))
            return;
    }
    client->proto = (int)proto;
    if (client->subscriber)
        subscriber_set_proto(client->subscriber, client->proto);
    reply_hello(call);
}

/* ---- the server ---- */

static void reply_command(struct bytes *out, const struct command *command)
{
    reply_array(out, 6);
    reply_text(out, command->name);
    reply_int(out, command->arity);
    reply_array(out, 2);
    reply_simple(out, command->flags[0]);
    reply_simple(out, command->flags[1]);
    reply_int(out, command->first);
    reply_int(out, command->last);
    reply_int(out, command->step);
}

void run_command(struct call *call)
{
    if (call->nr_args == 1) {
        reply_array(out_of(call), nr_commands);
        for (size_t i = 0; i < nr_commands; i++)
            reply_command(out_of(call), &commands[i]);
    } else if (arg_is(call, 1, "count") && call->nr_args == 2) {
        reply_int(out_of(call), (int64_t)nr_commands);
    } else if (arg_is(call, 1, "docs")) {
        reply_map(out_of(call), call->client->proto, 0);
    } else {
        reply_unknown_subcommand(call);
    }
}

/* Settings that cannot be changed, for those who ask before they measure. */
static void reply_config(struct call *call)
{
    char max_clients[16], max_memory[24], max_buffers[24], max_word[16];
    const char *settings[][2] = {
        {"save", ""},
        {"appendonly", "no"},
        {"databases", "1"},
        {"maxclients", max_clients},
        {"maxmemory", max_memory},
        {"maxmemory-clients", max_buffers},
        {"maxmemory-policy", "noeviction"},
        {"proto-max-bulk-len", max_word},
    };
    size_t nr = sizeof settings / sizeof *settings, nr_found = 0;

    snprintf(max_clients, sizeof max_clients, "%u", call->client->server->max_clients);
    snprintf(max_memory, sizeof max_memory, "%zu", call->client->server->store.budget.max);
    snprintf(max_buffers, sizeof max_buffers, "%zu", call->client->server->buffers.max);
    snprintf(max_word, sizeof max_word, "%d", RESP_WORD_MAX);
    for (int write = 0; write < 2; write++) { /* first count them */
        if (write)
            reply_map(out_of(call), call->client->proto, nr_found);
        for (size_t i = 0; i < nr; i++) {
            if (!glob_match(arg(call, 2), arg_len(call, 2), settings[i][0], strlen(settings[i][0])))
                continue;
            nr_found += !write;
            if (write) {
                reply_text(out_of(call), settings[i][0]);
                reply_text(out_of(call), settings[i][1]);
            }
        }
    }
}

void run_config(struct call *call)
{
    if (arg_is(call, 1, "get") && call->nr_args == 3)
        reply_config(call);
    else
        reply_unknown_subcommand(call);
}

void run_info(struct call *call)
{
    struct server *server = call->client->server;
    size_t nr_due, nr = store_count(&server->store, &nr_due);
    struct bytes text = {0};

    bytes_print(&text,
                "# Server\r\n"
                "redis_version:%s\r\n"
                "blitz_version:%s\r\n"
                "tcp_port:%u\r\n"
                "workers:%u\r\n"
                "io:%s\r\n"
                "uptime_in_seconds:%lld\r\n"
                "\r\n# Clients\r\n"
                "connected_clients:%llu\r\n"
                "maxclients:%u\r\n",
                REDIS_VERSION, blz_version(), server->port, blz_rt_workers(blz_rt_current()),
                blz_rt_backend(blz_rt_current()),
                (long long)((blz_now() - server->started_ns) / BLZ_SEC),
                atomic_load(&server->nr_clients), server->max_clients);
    bytes_print(&text,
                "\r\n# Memory\r\n"
                "used_memory_dataset:%zu\r\n"
                "maxmemory:%zu\r\n"
                "mem_clients:%zu\r\n"
                "maxmemory_clients:%zu\r\n",
                atomic_load(&server->store.budget.used), server->store.budget.max,
                atomic_load(&server->buffers.used), server->buffers.max);
    bytes_print(&text,
                "\r\n# Stats\r\n"
                "total_connections_received:%llu\r\n"
                "rejected_connections:%llu\r\n"
                "total_commands_processed:%llu\r\n"
                "expired_keys:%llu\r\n"
                "\r\n# Keyspace\r\n",
                atomic_load(&server->nr_connections), atomic_load(&server->nr_refused),
                atomic_load(&server->nr_commands), atomic_load(&server->store.nr_expired));
    if (nr > 0)
        bytes_print(&text, "db0:keys=%zu,expires=%zu\r\n", nr, nr_due);
    reply_bulk(out_of(call), text.data, text.len);
    out_of(call)->failed |= text.failed;
    bytes_free(&text);
}

void run_dbsize(struct call *call)
{
    size_t nr_due;

    reply_int(out_of(call), (int64_t)store_count(&call->client->server->store, &nr_due));
}

void run_flushall(struct call *call)
{
    if (call->nr_args > 2 ||
        (call->nr_args == 2 && !arg_is(call, 1, "sync") && !arg_is(call, 1, "async"))) {
        reply_syntax_error(call);
        return;
    }
    store_flush(&call->client->server->store);
    reply_ok(out_of(call));
}
