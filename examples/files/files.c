/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program. The main task takes a slot, accepts a connection into it, and so on, until there is
 * a signal to stop: when all slots are in use, clients wait in the system's queue. When it returns,
 * the runtime shuts down: it cancels the connections, and gives those that are in the middle of a
 * request some time to finish it.
 */
#include "files.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRACE_SECONDS = 5 };

struct settings {
    const char *root, *address;
    unsigned long max_connections, hurry;
    bool hidden;
    blz_options options;
};

/* ---- the main task ---- */

struct accept_all {
    BLZ_FRAME;
    struct server *server;
    const blz_tcp_listener *listener;
    int64_t rc;
    blz_semaphore_op slot;
    blz_io io;
    blz_tcp conn;
};

BLZ_ASYNC(accept_all)
{
    BLZ_BEGIN;
    for (;;) {
        BLZ_AWAIT(self->rc, blz_semaphore_acquire(&self->slot, &self->server->slots, 1));
        if (self->rc < 0)
            break;
        BLZ_AWAIT(self->rc, blz_tcp_accept(&self->io, self->listener, &self->conn));
        if (self->rc < 0)
            break;
        if (connection_spawn(self->server, self->conn) < 0) {
            blz_tcp_close(&self->conn);
            blz_ignore(blz_semaphore_release(&self->server->slots, 1));
        }
    }
    BLZ_END(self->rc);
}

struct serve {
    BLZ_FRAME;
    struct server *server;
    const struct settings *settings;
    int64_t rc;
    blz_tcp_listener listener;
    blz_stop stop;
    blz_stop_op wait;
    struct accept_all accept;
    blz_race_op race;
    blz_file probe;
    blz_io io;
};

static void greet(const struct serve *self)
{
    char at[BLZ_ADDR_TEXT] = "?";
    blz_addr addr;

    if (blz_tcp_listener_addr(&self->listener, &addr) == 0)
        blz_addr_format(&addr, at, sizeof at);
    printf("Serving %s at http://%s/; Ctrl-C stops it.\n", self->settings->root, at);
    fflush(stdout);
}

static void complain(const char *what, int64_t error)
{
    fprintf(stderr, "files: %s: %s\n", what, blz_strerror(error));
}

BLZ_ASYNC(serve)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_file_open(&self->io, &self->server->root, self->settings->root,
                                      &(blz_open_options){.directory = true}));
    if (self->rc == 0) /* can it be served safely on this system? */
        BLZ_AWAIT(self->rc,
                  blz_file_open(&self->io, &self->probe, ".",
                                &(blz_open_options){.at = &self->server->root, .beneath = true}));
    blz_file_close(&self->probe);
    if (self->rc < 0) {
        complain(self->settings->root, self->rc);
        goto out;
    }
    self->rc = blz_tcp_listen(&self->listener, self->settings->address);
    if (self->rc < 0) {
        complain(self->settings->address, self->rc);
        goto out;
    }
    self->rc = blz_stop_open(&self->stop);
    if (self->rc < 0)
        goto out_close;
    greet(self);
    BLZ_AWAIT(self->rc, blz_race(&self->race, blz_stop_await(&self->wait, &self->stop),
                                 BLZ_FUTURE(self->accept, accept_all, .server = self->server,
                                            .listener = &self->listener)));
    if (self->rc == 0)
        printf("%s: finishing what is under way\n", strsignal((int)self->wait.future.result));
    else
        self->rc = self->accept.rc;
    fflush(stdout);
    blz_stop_close(&self->stop);
out_close:
    blz_tcp_listener_close(&self->listener);
out:
    BLZ_END(self->rc);
}

/* ---- the program ---- */

static const char usage[] =
    "files [--listen ADDRESS] [--connections N] [--hidden] [--workers N] [--hurry N] [DIRECTORY]\n"
    "\n"
    "  --listen A        default 127.0.0.1:8000; \":80\": for everybody\n"
    "  --connections N   so many at a time; default 1000\n"
    "  --hidden          serve names that begin with a dot, too\n"
    "  --workers N       default: as many as there are CPUs\n"
    "  --hurry N         clients have only the Nth part of the usual time\n";

/* False: not a number, or none that makes sense. */
static bool number(const char *text, unsigned long *n)
{
    char *end;

    *n = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == 0 && *n > 0 && *n <= 1000000;
}

static bool parse_option(struct settings *settings, int option)
{
    unsigned long n;

    if (option == 'l')
        settings->address = optarg;
    else if (option == 'a')
        settings->hidden = true;
    else if (!strchr("cwh", option) || !number(optarg, &n))
        return false;
    else if (option == 'c')
        settings->max_connections = n;
    else if (option == 'w')
        settings->options.workers = (unsigned)n;
    else
        settings->hurry = n;
    return true;
}

static bool parse_options(struct settings *settings, int argc, char **argv)
{
    static const struct option names[] = {
        {"listen", required_argument, NULL, 'l'}, {"connections", required_argument, NULL, 'c'},
        {"hidden", no_argument, NULL, 'a'},       {"workers", required_argument, NULL, 'w'},
        {"hurry", required_argument, NULL, 'h'},  {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
        if (!parse_option(settings, option))
            return false;
    if (optind < argc)
        settings->root = argv[optind++];
    return optind == argc;
}

int main(int argc, char **argv)
{
    struct settings settings = {.root = ".",
                                .address = "127.0.0.1:8000",
                                .max_connections = 1000,
                                .hurry = 1};
    struct server server = {.nr_requests = 0};
    int64_t rc, part;

    if (!parse_options(&settings, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    part = (int64_t)settings.hurry;
    settings.options.shutdown_ns = GRACE_SECONDS * BLZ_SEC / part;
    server.hidden = settings.hidden;
    server.limits = (struct limits){
        .idle_ns = 30 * BLZ_SEC / part,
        .head_ns = 10 * BLZ_SEC / part,
        .body_ns = 10 * BLZ_SEC / part,
        .byte_ns = BLZ_SEC / (4 << 10) / part, /* 4 KiB a second, at least */
        .linger_ns = 2 * BLZ_SEC / part,
    };
    blz_semaphore_init(&server.slots, (uint32_t)settings.max_connections);
    rc = BLZ_RUN_WITH(&settings.options, serve, .server = &server, .settings = &settings);
    if (rc == 0)
        printf("%llu requests on %llu connections\n", atomic_load(&server.nr_requests),
               atomic_load(&server.nr_connections));
    return rc < 0;
}
