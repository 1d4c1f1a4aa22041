/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of commands, and how one is carried out: find it, check the number of words, lock the
 * shards of all its keys, run it, unlock. So whatever a command does to its keys is done at once
 * for everybody else.
 */
#include "redis.h"

#include <string.h>

#define READ               \
    {                      \
        "readonly", "fast" \
    }
#define WRITE              \
    {                      \
        "write", "denyoom" \
    }
#define OTHER              \
    {                      \
        "loading", "stale" \
    }

/* The first ones are found first. */
const struct command commands[] = {
    {"get", run_get, 2, 1, 1, 1, false, READ},
    {"set", run_set, -3, 1, 1, 1, false, WRITE},
    {"del", run_del, -2, 1, -1, 1, false, WRITE},
    {"exists", run_exists, -2, 1, -1, 1, false, READ},
    {"expire", run_expire, 3, 1, 1, 1, false, WRITE},
    {"pexpire", run_pexpire, 3, 1, 1, 1, false, WRITE},
    {"ttl", run_ttl, 2, 1, 1, 1, false, READ},
    {"pttl", run_pttl, 2, 1, 1, 1, false, READ},
    {"persist", run_persist, 2, 1, 1, 1, false, WRITE},
    {"incr", run_incr, 2, 1, 1, 1, false, WRITE},
    {"decr", run_decr, 2, 1, 1, 1, false, WRITE},
    {"incrby", run_incrby, 3, 1, 1, 1, false, WRITE},
    {"decrby", run_decrby, 3, 1, 1, 1, false, WRITE},
    {"append", run_append, 3, 1, 1, 1, false, WRITE},
    {"strlen", run_strlen, 2, 1, 1, 1, false, READ},
    {"mget", run_mget, -2, 1, -1, 1, false, READ},
    {"mset", run_mset, -3, 1, -1, 2, false, WRITE},
    {"publish", run_publish, 3, 0, 0, 0, false, OTHER},
    {"subscribe", run_subscribe, -2, 0, 0, 0, true, OTHER},
    {"unsubscribe", run_unsubscribe, -1, 0, 0, 0, true, OTHER},
    {"psubscribe", run_psubscribe, -2, 0, 0, 0, true, OTHER},
    {"punsubscribe", run_punsubscribe, -1, 0, 0, 0, true, OTHER},
    {"ping", run_ping, -1, 0, 0, 0, true, OTHER},
    {"echo", run_echo, 2, 0, 0, 0, false, OTHER},
    {"hello", run_hello, -1, 0, 0, 0, false, OTHER},
    {"client", run_client, -2, 0, 0, 0, false, OTHER},
    {"command", run_command, -1, 0, 0, 0, false, OTHER},
    {"config", run_config, -2, 0, 0, 0, false, OTHER},
    {"info", run_info, -1, 0, 0, 0, false, OTHER},
    {"dbsize", run_dbsize, 1, 0, 0, 0, false, READ},
    {"flushall", run_flushall, -1, 0, 0, 0, false, {"write", "fast"}},
    {"select", run_select, 2, 0, 0, 0, false, OTHER},
    {"quit", run_quit, -1, 0, 0, 0, true, OTHER},
};
const size_t nr_commands = sizeof commands / sizeof *commands;

/* ---- words ---- */

/* `text` may be in capitals. Only letters differ from small ones by that bit alone. */
static bool same_word(const char *text, size_t len, const char *word)
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] | 0x20) : text[i];
        if (word[i] == 0 || c != word[i])
            return false;
    }
    return word[len] == 0;
}

bool arg_is(const struct call *call, unsigned i, const char *word)
{
    return same_word(arg(call, i), arg_len(call, i), word);
}

bool parse_int(const char *text, size_t len, int64_t *n)
{
    size_t i = len > 0 && text[0] == '-';
    uint64_t value = 0, max = (uint64_t)INT64_MAX + i;

    if (len == i || len > 20 || (text[i] == '0' && len > 1))
        return false;
    for (size_t at = i; at < len; at++) {
        unsigned digit = (unsigned char)text[at] - (unsigned)'0';
        if (digit > 9 || value > (max - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *n = (int64_t)(i ? 0 - value : value);
    return true;
}

bool arg_int(struct call *call, unsigned i, int64_t *n)
{
    if (parse_int(arg(call, i), arg_len(call, i), n))
        return true;
    reply_error(&call->client->out, "ERR value is not an integer or out of range");
    return false;
}

void reply_syntax_error(struct call *call)
{
    reply_error(&call->client->out, "ERR syntax error");
}

void reply_bad_arity(struct call *call)
{
    reply_error(&call->client->out, "ERR wrong number of arguments for '%s' command",
                call->command->name);
}

/* ---- running ---- */

static const struct command *find_command(const char *name, size_t len)
{
    char first = (char)(len > 0 ? name[0] | 0x20 : 0);

    for (size_t i = 0; i < nr_commands; i++)
        if (commands[i].name[0] == first && same_word(name, len, commands[i].name))
            return &commands[i];
    return NULL;
}

/* As much of the words as fits a line that people read. */
static void reply_unknown(struct call *call)
{
    struct bytes *out = &call->client->out;
    char words[128];
    size_t len = 0;

    for (unsigned i = 1; i < call->nr_args && len + 4 < sizeof words; i++) {
        size_t room = sizeof words - len - 4, n = arg_len(call, i) < room ? arg_len(call, i) : room;
        words[len++] = '\'';
        memcpy(words + len, arg(call, i), n);
        len += n;
        words[len++] = '\'';
        words[len++] = ' ';
    }
    reply_error(out, "ERR unknown command '%.*s', with args beginning with: %.*s",
                arg_len(call, 0) < 128 ? (int)arg_len(call, 0) : 128, arg(call, 0), (int)len,
                words);
}

/* Whether the command may be run like this; if not, that has been replied. */
static bool may_run(struct call *call)
{
    const struct command *command = call->command;
    const struct client *client = call->client;

    if (!command) {
        reply_unknown(call);
        return false;
    }
    if (command->arity > 0 ? call->nr_args != (unsigned)command->arity
                           : call->nr_args < (unsigned)-command->arity) {
        reply_bad_arity(call);
        return false;
    }
    if (client->subscriber && client->subscriber->nr > 0 && client->proto == 2 &&
        !command->while_subscribed) {
        reply_error(&call->client->out,
                    "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT "
                    "/ RESET are allowed in this context",
                    command->name);
        return false;
    }
    return true;
}

/* The shards of all its keys. The first key is kept: most commands have no other. */
static uint64_t shards_of(struct call *call)
{
    const struct store *store = &call->client->server->store;
    unsigned first = (unsigned)call->command->first, step = (unsigned)call->command->step;
    uint64_t shards;

    call->key = store_key(store, arg(call, first), arg_len(call, first));
    shards = store_shard(&call->key);
    if (call->command->last > 0)
        return shards;
    for (unsigned i = first + step; i < call->nr_args; i += step) {
        struct key key = store_key(store, arg(call, i), arg_len(call, i));
        shards |= store_shard(&key);
    }
    return shards;
}

void command_run(struct client *client, const char *buf, const struct resp_request *request)
{
    struct call call = {
        .client = client,
        .buf = buf,
        .args = request->args,
        .nr_args = request->nr_args,
    };
    uint64_t shards = 0;

    call.command = find_command(arg(&call, 0), arg_len(&call, 0));
    if (!may_run(&call))
        return;
    if (call.command->first > 0) {
        shards = shards_of(&call);
        store_lock(&client->server->store, shards);
    }
    call.command->run(&call);
    if (shards)
        store_unlock(&client->server->store, shards);
}
