/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP server to look at Blitz with. `make run` starts it; Ctrl-C ends it.
 *
 * It stops in phases (blitz/shutdown.h). A signal ends accepting, and then the connections that
 * wait for a request; those in the middle of one have some time to finish it. A second signal, or
 * the end of that time, ends them as well, and says which there are.
 */
#include "demo.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRACE_SECONDS = 5 };

static const char usual_console[] = "127.0.0.1:6670"; /* where blitz-top looks, too */

/* ---- listening ---- */

static void complain(uint16_t port, int error)
{
    blz_rt *rt = blz_rt_current();

    if (strcmp(blz_rt_backend(rt), "none") == 0)
        fprintf(stderr, "demo: no I/O: %s\n", blz_rt_backend_reason(rt));
    else if (error == -EADDRINUSE)
        fprintf(stderr,
                "demo: another program listens on port %u. Choose another port:\n"
                "    demo --port %u          make run ARGS='--port %u'\n",
                port, port + 1u, port + 1u);
    else
        fprintf(stderr, "demo: cannot listen on port %u: %s%s\n", port, blz_strerror(error),
                error == -EACCES ? "; try one above 1023" : "");
}

/* A socket for each worker shares the port; but nobody else shall share it by accident. */
static int open_listener(blz_tcp_listener *listener, uint16_t port)
{
    blz_addr addr = blz_addr_loopback(BLZ_ADDR_V4, port);
    int rc = blz_tcp_listen_with(listener, &addr, NULL);

    if (rc == 0) {
        blz_tcp_listener_close(listener);
        rc = blz_tcp_listen_with(listener, &addr, &(blz_tcp_listen_options){.spread = true});
    }
    if (rc < 0)
        complain(port, rc);
    return rc;
}

/* Called on each worker, for the connections that it accepts. */
static int on_connection(blz_tcp conn, void *server)
{
    return connection_spawn(server, conn);
}

/* ---- accepting ---- */

struct accept_all {
    BLZ_FRAME;
    struct server *server;
    blz_tcp_listener listener;
    blz_guard guard;
    int64_t rc;
    blz_serve_op serve;
    blz_guard_op op;
};

BLZ_ASYNC(accept_all)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_guard_run(&self->op, &self->guard,
                                      blz_tcp_serve(&self->serve, &self->listener, on_connection,
                                                    self->server)));
    blz_tcp_listener_close(&self->listener);
    blz_shutdown_begin(self->server->shutdown); /* if that was not the reason */
    BLZ_END(self->rc == -ECANCELED ? 0 : self->rc);
}

/* ---- the main task ---- */

struct serve {
    BLZ_FRAME;
    struct server *server;
    uint16_t port;
    const char *console;
    int64_t rc;
    blz_tcp_listener listener;
    blz_guard guard;
    blz_handle acceptor;
    blz_handle_join_op join;
    blz_shutdown_op op;
};

/* The console, for as long as the demo runs; without it the demo is as good. */
static void open_console(const char *address)
{
    blz_console *console;
    char at[BLZ_ADDR_TEXT] = "?";
    bool usual = strcmp(address, usual_console) == 0;
    blz_addr addr;
    int rc;

    if (strcmp(address, "none") == 0)
        return;
    rc = blz_console_new(&console, blz_rt_current(),
                         &(blz_console_options){.address = address,
                                                .title = "demo",
                                                .until_rt_ends = true});
    if (rc < 0) {
        printf("No console at %s: %s. ", address, blz_strerror(rc));
        puts(rc == -EADDRINUSE ? "--console 127.0.0.1:0 takes a port that is free"
                               : "It can be at 127.0.0.1:PORT, or at a path for a Unix socket");
        return;
    }
    blz_console_addr(console, &addr);
    blz_addr_format(&addr, at, sizeof at);
    if (blz_addr_family(&addr) == BLZ_ADDR_UNIX)
        printf("Console at %s: blitz-top %s\n", at, at);
    else
        printf("Console at http://%s/ ; in a terminal: tools/blitz-top%s%s\n", at, usual ? "" : " ",
               usual ? "" : at);
}

static void greet(const blz_tcp_listener *listener)
{
    blz_rt *rt = blz_rt_current();
    char at[BLZ_ADDR_TEXT] = "?";
    blz_addr addr;

    if (blz_tcp_listener_addr(listener, &addr) == 0)
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

static void on_phase(const blz_shutdown_report *report, void *arg)
{
    (void)arg;
    if (report->phase == BLZ_SHUTDOWN_CANCELLING && report->signal)
        printf("%s: finishing what is under way\n", strsignal(report->signal));
    fflush(stdout);
}

static void on_line(const char *line, void *arg)
{
    (void)arg;
    fprintf(stderr, "%s\n", line);
}

/* Connections are cancelled at once: they finish their requests all the same. */
static int make_shutdown(struct server *server, int64_t grace_ns)
{
    return blz_shutdown_new(&server->shutdown, &(blz_shutdown_options){.drain_ns = BLZ_NO_PHASE,
                                                                       .cancel_ns = grace_ns,
                                                                       .force_ns = grace_ns,
                                                                       .on_phase = on_phase,
                                                                       .write = on_line});
}

BLZ_ASYNC(serve)
{
    BLZ_BEGIN;
    self->rc = open_listener(&self->listener, self->port);
    if (self->rc < 0)
        goto out;
    self->rc = blz_guard_accept(&self->guard, self->server->shutdown);
    if (self->rc == 0)
        self->rc = BLZ_SPAWN_JOIN(&self->acceptor, accept_all, .server = self->server,
                                  .listener = self->listener, .guard = self->guard);
    if (self->rc < 0)
        goto out_close;
    open_console(self->console);
    greet(&self->listener);
    BLZ_AWAIT(self->rc, blz_shutdown_run(&self->op, self->server->shutdown));
    if (self->rc == 0) {
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->acceptor));
        self->rc = self->acceptor.result;
    }
    blz_handle_detach(&self->acceptor);
    goto out;
out_close:
    blz_guard_leave(&self->guard);
    blz_tcp_listener_close(&self->listener);
out:
    BLZ_END(self->rc);
}

/* ---- the program ---- */

static const char usage[] =
    "demo [--port N] [--workers N] [--backend io_uring|epoll|poll] [--hurry N]\n"
    "     [--console ADDRESS]\n"
    "\n"
    "  --port N      listen there; default 8080, 0: any that is free\n"
    "  --workers N   default: as many as there are CPUs\n"
    "  --backend B   default: the best that works here\n"
    "  --hurry N     clients have only the Nth part of the usual time\n"
    "  --console A   show the program there, or at BLZ_CONSOLE; default 127.0.0.1:6670; or none\n"
    "  --help        say this\n";

struct settings {
    uint16_t port;
    int64_t hurry;
    const char *console;
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

    if (option == 'H') {
        fputs(usage, stdout);
        exit(0);
    }
    if (option == 'b' || option == 'c') {
        *(option == 'b' ? &settings->options.backend : &settings->console) = optarg;
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
        {"console", required_argument, NULL, 'c'},
        {"help", no_argument, NULL, 'H'},
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
    const char *console = getenv("BLZ_CONSOLE");
    struct settings settings = {.port = 8080,
                                .hurry = 1,
                                .console = console ? console : usual_console};
    struct server server = {.started_ns = blz_now()};
    int64_t rc;

    if (!parse_options(&settings, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    rc = make_shutdown(&server, GRACE_SECONDS * BLZ_SEC / settings.hurry);
    if (rc < 0) {
        fprintf(stderr, "demo: %s\n", blz_strerror(rc));
        return 1;
    }
    server.limits = (struct limits){
        .idle_ns = 30 * BLZ_SEC / settings.hurry,
        .head_ns = 10 * BLZ_SEC / settings.hurry,
        .body_ns = 10 * BLZ_SEC / settings.hurry,
        .byte_ns = BLZ_SEC / (4 << 10) / settings.hurry, /* 4 KiB a second, at least */
        .linger_ns = 2 * BLZ_SEC / settings.hurry,
    };
    rc = BLZ_RUN_WITH(&settings.options, serve, .server = &server, .port = settings.port,
                      .console = settings.console);
    if (rc == 0)
        printf("%llu requests on %llu connections\n", atomic_load(&server.nr_requests),
               atomic_load(&server.nr_connections));
    blz_shutdown_free(server.shutdown);
    return rc < 0;
}
