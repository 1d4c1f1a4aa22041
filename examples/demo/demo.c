/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP server to look at Blitz with. `make run` starts it; Ctrl-C ends it.
 *
 * The main task accepts connections until there is a signal to stop. When it returns, the runtime
 * shuts down: it cancels the connections, and gives those that are in the middle of a request some
 * time to finish it.
 */
#include "demo.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRACE_SECONDS = 5 };

/* ---- listening ---- */

static void complain(uint16_t port, int error)
{
    if (error == -EADDRINUSE)
        fprintf(stderr,
                "demo: another program listens on port %u. Choose another port:\n"
                "    demo --port %u          make run ARGS='--port %u'\n",
                port, port + 1u, port + 1u);
    else
        fprintf(stderr, "demo: cannot listen on port %u: %s\n", port, blz_strerror(error));
}

/* A socket for each worker shares the port; but nobody else shall share it by accident. */
static int open_listener(blz_listener *listener, uint16_t port)
{
    blz_addr addr = blz_addr_loopback(BLZ_ADDR_V4, port);
    int rc = blz_listen_with(listener, &addr, NULL);

    if (rc == 0) {
        blz_listener_close(listener);
        rc = blz_listen_with(listener, &addr, &(blz_listen_options){.spread = true});
    }
    if (rc < 0)
        complain(port, rc);
    return rc;
}

/* Called on each worker, for the connections that it accepts. */
static int on_connection(void *server, blz_tcp conn)
{
    return connection_spawn(server, conn);
}

/* ---- the main task ---- */

struct serve {
    BLZ_FRAME;
    struct server *server;
    uint16_t port;
    int64_t rc;
    blz_listener listener;
    blz_stop stop;
    blz_stop_op wait;
    blz_serve_op serve;
    blz_race_op race;
};

static void greet(const blz_listener *listener)
{
    blz_rt *rt = blz_rt_current();
    char at[BLZ_ADDR_TEXT] = "?";
    blz_addr addr;

    if (blz_listener_addr(listener, &addr) == 0)
        blz_addr_format(&addr, at, sizeof at);
    printf("Blitz %s, %u workers, I/O by %s\n", blz_version(), blz_rt_workers(rt),
           blz_rt_backend_reason(rt));
    printf("Listening on http://%s/\n\n", at);
    printf("    curl http://%s/\n", at);
    printf("    curl http://%s/stats\n", at);
    printf("    curl http://%s/tasks\n", at);
    printf("    curl 'http://%s/sleep?ms=500'\n", at);
    printf("    curl --data-binary @README.md http://%s/echo\n", at);
    printf("    wrk -t2 -c64 -d5s http://%s/hello\n\n", at);
    printf("Ctrl-C stops it.\n");
    fflush(stdout);
}

BLZ_ASYNC(serve)
{
    BLZ_BEGIN;
    self->rc = open_listener(&self->listener, self->port);
    if (self->rc < 0)
        goto out;
    self->rc = blz_stop_open(&self->stop);
    if (self->rc < 0)
        goto out_close;
    greet(&self->listener);
    BLZ_AWAIT(self->rc,
              blz_race(&self->race, blz_stop_wait(&self->wait, &self->stop),
                       blz_serve(&self->serve, &self->listener, on_connection, self->server)));
    if (self->rc == 0)
        printf("%s: finishing what is under way\n", strsignal((int)self->wait.future.result));
    else
        self->rc = self->serve.future.result;
    fflush(stdout);
    blz_stop_close(&self->stop);
out_close:
    blz_listener_close(&self->listener);
out:
    BLZ_END(self->rc);
}

/* ---- the program ---- */

static const char usage[] =
    "demo [--port N] [--workers N] [--backend io_uring|epoll|poll] [--hurry N]\n"
    "\n"
    "  --port N      listen there; default 8080, 0: any that is free\n"
    "  --workers N   default: as many as there are CPUs\n"
    "  --backend B   default: the best that works here\n"
    "  --hurry N     clients have only the Nth part of the usual time\n";

struct settings {
    uint16_t port;
    int64_t hurry;
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
    unsigned long n = 0;

    if (option == 'b') {
        settings->options.backend = optarg;
        return true;
    }
    if (!strchr("pwh", option) || !number(optarg, option == 'p' ? 65535 : 4096, &n))
        return false;
    if (option == 'p')
        settings->port = (uint16_t)n;
    else if (option == 'w')
        settings->options.workers = (unsigned)n;
    else
        settings->hurry = n > 0 ? (int64_t)n : 1;
    return true;
}

static bool parse_options(struct settings *settings, int argc, char **argv)
{
    static const struct option names[] = {
        {"port", required_argument, NULL, 'p'},
        {"workers", required_argument, NULL, 'w'},
        {"backend", required_argument, NULL, 'b'},
        {"hurry", required_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
        if (!parse_option(settings, option))
            return false;
    return optind == argc;
}

int main(int argc, char **argv)
{
    struct settings settings = {.port = 8080, .hurry = 1};
    struct server server = {.started_ns = blz_now()};
    int64_t rc;

    if (!parse_options(&settings, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    settings.options.shutdown_ns = GRACE_SECONDS * BLZ_SEC / settings.hurry;
    server.limits = (struct limits){
        .idle_ns = 30 * BLZ_SEC / settings.hurry,
        .head_ns = 10 * BLZ_SEC / settings.hurry,
        .body_ns = 10 * BLZ_SEC / settings.hurry,
        .byte_ns = BLZ_SEC / (4 << 10) / settings.hurry, /* 4 KiB a second, at least */
        .linger_ns = 2 * BLZ_SEC / settings.hurry,
    };
    rc = BLZ_RUN_WITH(&settings.options, serve, .server = &server, .port = settings.port);
    if (rc == 0)
        printf("%llu requests on %llu connections\n", atomic_load(&server.nr_requests),
               atomic_load(&server.nr_connections));
    return rc < 0;
}
