// SPDX-License-Identifier: Apache-2.0
// Closed-loop TCP load generator: one thread, edge-triggered epoll, loopback.
//
//   loadgen --port P --pid SERVER_PID [--mode echo|accept|idle] [--conns N] [--size BYTES]
//           [--secs S] [--cpu C] [--peer NAME] [--threads T]
//
// echo    N connections, each sends SIZE bytes, waits for them, sends again. 0.3 s of warm-up, then
//         S seconds: messages per second, latency percentiles, server CPU time per message.
// accept  N connections in flight: connect, send 1 byte, read 1 byte, close with RST, again.
// idle    N connections, one echo of SIZE bytes on each, then 0.3 s of silence: server RSS growth.
//
// Server CPU and RSS are read from /proc/SERVER_PID; CPU has a resolution of 10 ms.
#include "bench.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { MAX_SIZE = 65536, WARMUP_NS = 300000000 };

struct conn {
    int fd, received, sent;
    uint64_t sent_ns;
};

// The measured part of a run.
struct window {
    uint64_t start_ns, end_ns, ops, busy0, self0, server0;
    int open;
};

static int g_port = 7000, g_conns = 64, g_size = 64, g_cpu = -1, g_pid;
static double g_secs = 1.5;
static const char *g_mode = "echo";
static char g_buf[MAX_SIZE];
static struct sockaddr_in g_addr;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

// ---- /proc of the server ----

static uint64_t server_cpu_ns(void)
{
    char path[64], text[1024];
    unsigned long user, sys;
    snprintf(path, sizeof path, "/proc/%d/stat", g_pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return 0;
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    char *fields = strrchr(text, ')');
    if (!fields ||
        sscanf(fields + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &sys) != 2)
        return 0;
    return (user + sys) * 10000000ull;
}

static long server_rss(void)
{
    char path[64];
    long size, resident = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", g_pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return 0;
    if (fscanf(f, "%ld %ld", &size, &resident) != 2)
        resident = 0;
    fclose(f);
    return resident * 4096;
}

static long kernel_slab(void)
{
    char line[256];
    long kib = 0, x;
    FILE *f = fopen("/proc/meminfo", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Slab: %ld", &x) == 1)
            kib = x;
    if (f)
        fclose(f);
    return kib * 1024;
}

// ---- latency histogram: 64 linear steps per power of two ----

enum { STEPS = 64, BUCKETS = 41 * STEPS };
static uint64_t g_hist[BUCKETS], g_samples;

static void record_latency(uint64_t ns)
{
    int e = ns < STEPS ? 0 : 63 - __builtin_clzll(ns);
    size_t i = ns < STEPS ? ns : (size_t)(e - 5) * STEPS + ((ns >> (e - 6)) & (STEPS - 1));
    g_hist[i < BUCKETS ? i : BUCKETS - 1]++;
    g_samples++;
}

static double percentile_us(double p)
{
    uint64_t target = (uint64_t)((double)g_samples * p), seen = 0;
    for (size_t i = 0; i < BUCKETS; i++) {
        seen += g_hist[i];
        if (seen <= target)
            continue;
        if (i < STEPS)
            return (double)i / 1e3;
        int e = (int)(i / STEPS) + 5;
        return (double)((1ull << e) + ((uint64_t)(i % STEPS) << (e - 6))) / 1e3;
    }
    return 0;
}

// ---- connections ----

static int dial(int flags)
{
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    if (fd < 0)
        die("socket");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (!strcmp(g_mode, "accept")) { // RST on close: no TIME_WAIT to run out of ports with
        struct linger linger = {1, 0};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    }
    if (connect(fd, (struct sockaddr *)&g_addr, sizeof g_addr) < 0 && errno != EINPROGRESS)
        die("connect");
    return fd;
}

static void watch(int ep, struct conn *c, uint32_t events)
{
    struct epoll_event ev = {.events = events | EPOLLET, .data.ptr = c};
    epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &ev);
}

static void send_message(struct conn *c)
{
    c->sent_ns = now_ns();
    if (send(c->fd, g_buf, (size_t)g_size, 0) != g_size)
        die("send");
}

static void on_echo(struct conn *c, struct window *w)
{
    ssize_t n = recv(c->fd, g_buf, sizeof g_buf, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0)
        die("recv");
    c->received += (int)n;
    if (c->received < g_size)
        return;
    c->received = 0;
    if (w->open)
        record_latency(now_ns() - c->sent_ns);
    w->ops++;
    send_message(c);
}

static void on_accept(int ep, struct conn *c, uint32_t events, struct window *w)
{
    if (!c->sent) {
        if (events & (EPOLLERR | EPOLLHUP))
            die("connection refused");
        if (events & EPOLLOUT)
            c->sent = write(c->fd, g_buf, 1) == 1;
    } else if ((events & EPOLLIN) && read(c->fd, g_buf, 16) >= 1) {
        close(c->fd);
        w->ops++;
        c->sent = 0;
        c->fd = dial(SOCK_NONBLOCK);
        watch(ep, c, EPOLLIN | EPOLLOUT);
    }
}

static void open_window(struct window *w)
{
    w->open = 1;
    w->ops = 0;
    w->start_ns = now_ns();
    w->end_ns = w->start_ns + (uint64_t)(g_secs * 1e9);
    w->busy0 = machine_busy_ns();
    w->self0 = cpu_ns();
    w->server0 = server_cpu_ns();
}

static void drive(int ep, struct window *w)
{
    int accepting = !strcmp(g_mode, "accept");
    struct epoll_event ready[256];
    uint64_t now = now_ns();
    w->start_ns = now + WARMUP_NS;
    w->end_ns = w->start_ns + (uint64_t)(g_secs * 1e9);
    while (now < w->end_ns) {
        int n = epoll_wait(ep, ready, 256, 1000);
        if (n == 0) {
            fprintf(stderr, "the server has not answered for a second\n");
            exit(1);
        }
        for (int i = 0; i < n; i++) {
            if (accepting)
                on_accept(ep, ready[i].data.ptr, ready[i].events, w);
            else
                on_echo(ready[i].data.ptr, w);
        }
        now = now_ns();
        if (!w->open && now >= w->start_ns)
            open_window(w);
    }
}

static void report(const struct window *w)
{
    double elapsed_ns = (double)(now_ns() - w->start_ns), ops = (double)w->ops;
    double server_ns = (double)(server_cpu_ns() - w->server0);
    double other_ns =
        (double)(machine_busy_ns() - w->busy0) - (double)(cpu_ns() - w->self0) - server_ns;
    double rate = ops * 1e9 / elapsed_ns, other = other_ns < 0 ? 0 : other_ns / elapsed_ns;
    printf("bench=%s peer=%s threads=%d conns=%d ", g_mode, g_peer, g_threads, g_conns);
    if (!strcmp(g_mode, "accept"))
        printf("conns_per_s=%.0f srv_us_per_conn=%.2f", rate, server_ns / 1e3 / ops);
    else
        printf("size=%d msgs_per_s=%.0f p50_us=%.1f p99_us=%.1f p999_us=%.1f srv_us_per_msg=%.3f",
               g_size, rate, percentile_us(.5), percentile_us(.99), percentile_us(.999),
               server_ns / 1e3 / ops);
    printf(" srv_cpu=%.2f other=%.2f\n", server_ns / elapsed_ns, other);
}

static void run_load(void)
{
    int ep = epoll_create1(0), accepting = !strcmp(g_mode, "accept");
    struct conn *conns = calloc((size_t)g_conns, sizeof *conns);
    struct window w = {0};
    for (int i = 0; i < g_conns; i++)
        conns[i].fd = dial(accepting ? SOCK_NONBLOCK : 0);
    uint32_t events = accepting ? EPOLLIN | EPOLLOUT : EPOLLIN;
    for (int i = 0; i < g_conns; i++)
        watch(ep, &conns[i], events);
    for (int i = 0; i < g_conns && !accepting; i++)
        send_message(&conns[i]);
    drive(ep, &w);
    report(&w);
}

static void run_idle(void)
{
    long rss0 = server_rss(), slab0 = kernel_slab();
    for (int i = 0; i < g_conns; i++) {
        int fd = dial(0), received = 0;
        if (write(fd, g_buf, (size_t)g_size) != g_size)
            die("write");
        while (received < g_size) {
            ssize_t n = read(fd, g_buf, (size_t)g_size);
            if (n <= 0)
                die("read");
            received += (int)n;
        }
    }
    usleep(300000);
    long rss1 = server_rss(), slab1 = kernel_slab();
    printf("bench=idle_conn_mem peer=%s threads=%d conns=%d rss_per_conn=%.0f "
           "slab_per_conn_pair=%.0f rss0=%ld rss1=%ld\n",
           g_peer, g_threads, g_conns, (double)(rss1 - rss0) / g_conns,
           (double)(slab1 - slab0) / g_conns, rss0, rss1);
}

static void parse(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *key = argv[i], *value = argv[i + 1];
        if (!strcmp(key, "--port"))
            g_port = atoi(value);
        else if (!strcmp(key, "--pid"))
            g_pid = atoi(value);
        else if (!strcmp(key, "--mode"))
            g_mode = value;
        else if (!strcmp(key, "--conns"))
            g_conns = atoi(value);
        else if (!strcmp(key, "--size"))
            g_size = atoi(value);
        else if (!strcmp(key, "--secs"))
            g_secs = atof(value);
        else if (!strcmp(key, "--cpu"))
            g_cpu = atoi(value);
        else if (!strcmp(key, "--peer"))
            g_peer = value;
        else if (!strcmp(key, "--threads"))
            g_threads = atoi(value);
        else {
            fprintf(stderr, "unknown option %s\n", key);
            exit(2);
        }
    }
    if (g_size < 1 || g_size > MAX_SIZE || g_conns < 1) {
        fprintf(stderr, "--size must be 1..%d, --conns at least 1\n", MAX_SIZE);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    g_threads = 1;
    parse(argc, argv);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (g_cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(g_cpu, &set);
        sched_setaffinity(0, sizeof set, &set);
    }
    memset(g_buf, 'x', sizeof g_buf);
    g_addr.sin_family = AF_INET;
    g_addr.sin_port = htons((uint16_t)g_port);
    g_addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (!strcmp(g_mode, "idle"))
        run_idle();
    else
        run_load();
}
