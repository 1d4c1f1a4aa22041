/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small Redis: the program. See redis.h for what it is and how to try it.
 *
 * The main task accepts connections until there is a signal to stop. When it returns, the runtime
 * shuts down: connections that wait for requests end at once, others when their replies are sent.
 */
#include "redis.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRACE_SECONDS = 5 };

/* Called on each worker, for the connections that it accepts. */
static int on_connection(blz_tcp conn, void *server)
{
    return connection_spawn(server, conn);
}

/* A socket for each worker shares the port; but nobody else shall share it by accident. */
static int open_listener(blz_tcp_listener *listener, blz_addr *addr)
{
    int rc = blz_tcp_listen_with(listener, addr, NULL);

    if (rc == 0) {
        blz_tcp_listener_addr(listener, addr);
        blz_tcp_listener_close(listener);
        rc = blz_tcp_listen_with(listener, addr, &(blz_tcp_listen_options){.spread = true});
    }
    return rc;
}

static void greet(const blz_addr *addr)
{
    blz_rt *rt = blz_rt_current();
    char at[BLZ_ADDR_TEXT] = "?";

    blz_addr_format(addr, at, sizeof at);
    printf("Blitz %s, %u workers, I/O by %s\n", blz_version(), blz_rt_workers(rt),
           blz_rt_backend_reason(rt));
    printf("Ready to accept connections on %s; Ctrl-C stops it.\n", at);
    fflush(stdout);
}

struct serve {
    BLZ_FRAME;
    struct server *server;
    blz_addr addr;
    int64_t rc;
    blz_tcp_listener listener;
    blz_stop stop;
    blz_stop_op wait;
    blz_serve_op serve;
    blz_race_op race;
};

BLZ_ASYNC(serve)
{
    BLZ_BEGIN;
    self->rc = open_listener(&self->listener, &self->addr);
    if (self->rc < 0)
        goto out;
    self->server->port = blz_addr_port(&self->addr);
    self->rc = BLZ_SPAWN(expire, .store = &self->server->store);
    if (self->rc == 0)
        self->rc = blz_stop_open(&self->stop);
    if (self->rc < 0)
        goto out_close;
    greet(&self->addr);
    BLZ_AWAIT(self->rc,
              blz_race(&self->race, blz_stop_await(&self->wait, &self->stop),
                       blz_tcp_serve(&self->serve, &self->listener, on_connection, self->server)));
    if (self->rc > 0)
        self->rc = self->serve.future.result;
    blz_stop_close(&self->stop);
out_close:
    blz_tcp_listener_close(&self->listener);
out:
    BLZ_END(self->rc);
}

/* ---- the program ---- */

static const char usage[] =
    "redis [--port N] [--address A] [--workers N] [--maxclients N] [--maxmemory MB]\n"
    "      [--maxmemory-clients MB] [--backend B]\n"
    "\n"
    "  --port N                listen there; default 6379, 0: any that is free\n"
    "  --address A             and at this address; default 127.0.0.1\n"
    "  --workers N             default: as many as there are CPUs\n"
    "  --maxclients N          at a time; default 10000\n"
    "  --maxmemory MB          for keys and values; default 1024\n"
    "  --maxmemory-clients MB  for requests and replies; default 512\n"
    "  --backend B             io_uring, epoll or poll; default: the best that works here\n";

struct settings {
    blz_addr addr;
    unsigned long port, workers, max_clients, max_memory, max_buffers;
    blz_options options;
};

/* False: not a number, or too large. */
static bool number(const char *text, unsigned long max, unsigned long *n)
{
    char *end;

    *n = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == 0 && *n <= max;
}

static bool parse_option(struct settings *settings, int option)
{
    switch (option) {
    case 'p':
        return number(optarg, 65535, &settings->port);
    case 'a':
        return blz_addr_parse_ip(&settings->addr, optarg, strlen(optarg), 0) == 0;
    case 'w':
        return number(optarg, 4096, &settings->workers);
    case 'm':
        return number(optarg, 1000000, &settings->max_clients);
    case 'M':
        return number(optarg, 1 << 20, &settings->max_memory);
    case 'B':
        return number(optarg, 1 << 20, &settings->max_buffers);
    case 'b':
        settings->options.backend = optarg;
        return true;
    default:
        return false;
    }
}

static bool parse_options(struct settings *settings, int argc, char **argv)
{
    static const struct option names[] = {
        {"port", required_argument, NULL, 'p'},
        {"address", required_argument, NULL, 'a'},
        {"workers", required_argument, NULL, 'w'},
        {"backend", required_argument, NULL, 'b'},
        {"maxclients", required_argument, NULL, 'm'},
        {"maxmemory", required_argument, NULL, 'M'},
        {"maxmemory-clients", required_argument, NULL, 'B'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
        if (!parse_option(settings, option))
            return false;
    blz_addr_set_port(&settings->addr, (uint16_t)settings->port);
    settings->options.workers = (unsigned)settings->workers;
    settings->options.shutdown_ns = GRACE_SECONDS * BLZ_SEC;
    return optind == argc;
}

static struct server server;

int main(int argc, char **argv)
{
    struct settings settings = {.addr = blz_addr_loopback(BLZ_ADDR_V4, 0),
                                .port = 6379,
                                .max_clients = 10000,
                                .max_memory = 1024,
                                .max_buffers = 512};
    int64_t rc;

    if (!parse_options(&settings, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    server.max_clients = (unsigned)settings.max_clients;
    server.started_ns = blz_now();
    server.buffers.max = settings.max_buffers << 20;
    rc = store_init(&server.store, settings.max_memory << 20);
    if (rc == 0) {
        pubsub_init(&server.pubsub, &server.store.secret, &server.buffers);
        rc = BLZ_RUN_WITH(&settings.options, serve, .server = &server, .addr = settings.addr);
        pubsub_free(&server.pubsub);
        store_free(&server.store);
    }
    if (rc < 0)
        fprintf(stderr, "redis: %s\n", blz_strerror(rc));
    else
        printf("%llu commands on %llu connections\n", atomic_load(&server.nr_commands),
               atomic_load(&server.nr_connections));
    return rc < 0;
}
