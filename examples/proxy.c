/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TCP proxy: whoever connects here is connected to somewhere else, and bytes go both ways.
 *
 *     build/examples/proxy 127.0.0.1:8000 example.org:80 &
 *     curl -H 'Host: example.org' http://127.0.0.1:8000/
 *
 *     proxy LISTEN TARGET [--workers N] [--connections N] [--idle SECONDS] [--grace SECONDS]
 *
 * What it shows:
 * - blz_copy_both: each direction ends by itself (half-close), an idle connection ends after a
 *   while, and bytes that come in bulk stay in the kernel.
 * - blz_tcp_connect: names, several addresses, a limit.
 * - An orderly stop: after the first signal nobody is accepted any more, and connections have some
 *   time to end. What a shield defers is exactly that: the runtime cancels all tasks when the main
 *   one has returned, and overrides shields only when its patience is over.
 *
 * An end that is no proper one (an error, silence, the end of our patience) is passed on as what it
 * is: both sides get a reset, so that nobody takes half a file for a whole one.
 */
#include <blitz.h>

#include <getopt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_NS (10 * BLZ_SEC)

struct proxy {
    const char *listen, *target;
    unsigned long max_connections;
    int64_t idle_ns;
    blz_options options;

    atomic_ulong nr_open; /* now */
    atomic_ullong nr_served, nr_refused, nr_unreachable, nr_silent, nr_broken;
    atomic_ullong bytes_up, bytes_down;
};

static void add(atomic_ullong *counter, unsigned long long n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* ---- a connection ---- */

struct relay {
    BLZ_FRAME;
    struct proxy *proxy;
    blz_tcp client, server;
    int64_t rc;
    union {
        blz_tcp_connect_op connect;
        blz_copy_both_op copy;
    };
};

/* Closing sends a reset, and drops what has not been read. */
static void break_off(blz_tcp *conn)
{
    blz_tcp_set(conn, BLZ_OPT_LINGER, 0);
}

static void take_note(struct relay *self)
{
    struct proxy *proxy = self->proxy;

    add(&proxy->nr_served, 1);
    add(&proxy->bytes_up, self->copy.a_to_b);
    add(&proxy->bytes_down, self->copy.b_to_a);
    if (self->rc == -ETIMEDOUT)
        add(&proxy->nr_silent, 1);
    else if (self->rc < 0)
        add(&proxy->nr_broken, 1);
    if (self->rc < 0) {
        break_off(&self->client);
        break_off(&self->server);
    }
}

BLZ_ASYNC(relay)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc,
              blz_tcp_connect(&self->connect, &self->server, self->proxy->target, CONNECT_NS));
    if (self->rc < 0) {
        add(&self->proxy->nr_unreachable, 1);
        break_off(&self->client);
        goto out;
    }
    self->copy = (blz_copy_both_op){0}; /* `connect` was there */
    BLZ_AWAIT_SHIELDED(self->rc,
                       blz_copy_both(&self->copy, blz_tcp_stream(&self->client),
                                     blz_tcp_stream(&self->server),
                                     &(blz_copy_options){.idle_ns = self->proxy->idle_ns}));
    take_note(self);
    blz_tcp_close(&self->server);
out:
    blz_tcp_close(&self->client);
    atomic_fetch_sub_explicit(&self->proxy->nr_open, 1, memory_order_relaxed);
    BLZ_END(self->rc);
}

/* Called on each worker, for the connections that it accepts. What gives an error is closed. */
static int on_connection(blz_tcp conn, void *arg)
{
    struct proxy *proxy = arg;
    unsigned long nr = atomic_fetch_add_explicit(&proxy->nr_open, 1, memory_order_relaxed);
    int rc =
        nr < proxy->max_connections ? BLZ_SPAWN(relay, .proxy = proxy, .client = conn) : -EBUSY;

    if (rc < 0) {
        add(&proxy->nr_refused, 1);
        break_off(&conn);
        atomic_fetch_sub_explicit(&proxy->nr_open, 1, memory_order_relaxed);
    }
    return rc;
}

/* ---- the main task ---- */

struct serve {
    BLZ_FRAME;
    struct proxy *proxy;
    int64_t rc;
    blz_tcp_listener listener;
    blz_stop stop;
    blz_stop_op wait;
    blz_serve_op serve;
    blz_race_op race;
};

/* A socket for each worker shares the port; but nobody else shall share it by accident. */
static int open_listener(blz_tcp_listener *listener, const char *address)
{
    blz_addr addr;
    int rc = blz_tcp_listen(listener, address);

    if (rc < 0)
        return rc;
    rc = blz_tcp_listener_addr(listener, &addr);
    blz_tcp_listener_close(listener);
    return rc < 0 ? rc
                  : blz_tcp_listen_with(listener, &addr, &(blz_tcp_listen_options){.spread = true});
}

static void greet(const struct proxy *proxy, const blz_tcp_listener *listener)
{
    char at[BLZ_ADDR_TEXT] = "?";
    blz_addr addr;

    if (blz_tcp_listener_addr(listener, &addr) == 0)
        blz_addr_format(&addr, at, sizeof at);
    printf("From %s to %s, %u workers, I/O by %s; Ctrl-C stops it.\n", at, proxy->target,
           blz_rt_workers(blz_rt_current()), blz_rt_backend(blz_rt_current()));
    fflush(stdout);
}

BLZ_ASYNC(serve)
{
    BLZ_BEGIN;
    self->rc = blz_stop_open(&self->stop);
    if (self->rc < 0)
        goto out;
    self->rc = open_listener(&self->listener, self->proxy->listen);
    if (self->rc < 0)
        goto out_stop;
    greet(self->proxy, &self->listener);
    BLZ_AWAIT(self->rc,
              blz_race(&self->race, blz_stop_await(&self->wait, &self->stop),
                       blz_tcp_serve(&self->serve, &self->listener, on_connection, self->proxy)));
    if (self->rc > 0)
        self->rc = self->serve.future.result;
    blz_tcp_listener_close(&self->listener);
out_stop:
    blz_stop_close(&self->stop);
out:
    BLZ_END(self->rc);
}

/* ---- the program ---- */

static const char usage[] =
    "proxy LISTEN TARGET [--workers N] [--connections N] [--idle SECONDS] [--grace SECONDS]\n"
    "\n"
    "  LISTEN           where to listen: 127.0.0.1:8000, :8000, [::1]:0\n"
    "  TARGET           where to connect to: example.org:80\n"
    "  --workers N      default: as many as there are CPUs\n"
    "  --connections N  at a time; further ones are refused; default 10000\n"
    "  --idle SECONDS   without a byte in either direction end a connection; default 300\n"
    "  --grace SECONDS  for connections to end when it stops; default 10\n";

/* False: not a number, or too large. */
static bool number(const char *text, unsigned long max, unsigned long *n)
{
    char *end;

    *n = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == 0 && *n <= max;
}

static bool seconds(const char *text, int64_t *ns)
{
    char *end;
    double n = strtod(text, &end);

    *ns = (int64_t)(n * (double)BLZ_SEC);
    return end != text && *end == 0 && n > 0 && n < 1e9;
}

static bool parse_option(struct proxy *proxy, int option)
{
    unsigned long n;

    switch (option) {
    case 'w':
        if (!number(optarg, 4096, &n))
            return false;
        proxy->options.workers = (unsigned)n;
        return true;
    case 'c':
        return number(optarg, 1000000, &proxy->max_connections);
    case 'i':
        return seconds(optarg, &proxy->idle_ns);
    case 'g':
        return seconds(optarg, &proxy->options.shutdown_ns);
    default:
        return false;
    }
}

static bool parse_options(struct proxy *proxy, int argc, char **argv)
{
    static const struct option names[] = {
        {"workers", required_argument, NULL, 'w'},
        {"connections", required_argument, NULL, 'c'},
        {"idle", required_argument, NULL, 'i'},
        {"grace", required_argument, NULL, 'g'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
        if (!parse_option(proxy, option))
            return false;
    if (argc - optind != 2)
        return false;
    proxy->listen = argv[optind];
    proxy->target = argv[optind + 1];
    return true;
}

static void report(struct proxy *proxy)
{
    printf("%llu connections, %llu bytes up, %llu down\n", atomic_load(&proxy->nr_served),
           atomic_load(&proxy->bytes_up), atomic_load(&proxy->bytes_down));
    printf("%llu refused, %llu unreachable, %llu silent, %llu broken off\n",
           atomic_load(&proxy->nr_refused), atomic_load(&proxy->nr_unreachable),
           atomic_load(&proxy->nr_silent), atomic_load(&proxy->nr_broken));
}

int main(int argc, char **argv)
{
    struct proxy proxy = {
        .max_connections = 10000,
        .idle_ns = 300 * BLZ_SEC,
        .options.shutdown_ns = 10 * BLZ_SEC,
    };
    int64_t rc;

    if (!parse_options(&proxy, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    rc = BLZ_RUN_WITH(&proxy.options, serve, .proxy = &proxy);
    if (rc < 0)
        fprintf(stderr, "proxy: %s: %s\n", proxy.listen, blz_strerror(rc));
    else
        report(&proxy);
    return rc < 0;
}
