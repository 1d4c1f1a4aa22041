/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The console: who may ask it and how, and its life beside that of the runtimes that it shows. What
 * it says is looked at by tests/console.
 */
#include "harness.h"

#include "console/console.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const backends[] = {"io_uring", "epoll", "poll"};

/* ---- a client ---- */

static int connect_to(const blz_addr *addr)
{
    uint32_t len;
    const struct sockaddr *sa = blz_addr_sockaddr(addr, &len);
    int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, sa, len), 0);
    return fd;
}

static void say(int fd, const char *text, size_t len)
{
    /* The other side may have heard enough. */
    while (len > 0) {
        ssize_t n = send(fd, text, len, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        text += n;
        len -= (size_t)n;
    }
}

static char answer[1 << 18];

/* All that comes until the connection is closed: the status. */
static int hear(int fd)
{
    int64_t len = read_fully(fd, answer, sizeof answer - 1);

    answer[len > 0 ? len : 0] = '\0';
    return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? atoi(answer + 9) : 0;
}

/* One request on a connection of its own: the status. */
static int ask_raw(const blz_console *console, const char *request, size_t len)
{
    blz_addr addr;
    int fd, status;

    blz_console_addr(console, &addr);
    fd = connect_to(&addr);
    say(fd, request, len);
    status = hear(fd);
    close(fd);
    return status;
}

static int ask_with(const blz_console *console, const char *path, const char *headers)
{
    char request[1024];
    int len = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\n%sConnection: close\r\n\r\n",
                       path, headers);

    return ask_raw(console, request, (size_t)len);
}

static int ask(const blz_console *console, const char *path)
{
    return ask_with(console, path, "Host: localhost\r\n");
}

static const char *body(void)
{
    const char *end = strstr(answer, "\r\n\r\n");
    return end ? end + 4 : "";
}

static blz_console *open_console(blz_rt *rt, const char *address)
{
    blz_console *console = NULL;

    assert_int_equal(blz_console_new(&console, rt,
                                     &(blz_console_options){.address =
                                                                address ? address : "127.0.0.1:0"}),
                     0);
    return console;
}

/* ---- what is served ---- */

static void it_answers_on_every_backend_and_transport(void **state)
{
    char path[64];
    const char *addresses[3] = {"127.0.0.1:0", "unix:@blitz-console-test", path};

    (void)state;
    snprintf(path, sizeof path, "unix:/tmp/blitz-console-%d", (int)getpid());
    for (size_t b = 0; b < 3; b++)
        for (size_t a = 0; a < 3; a++) {
            blz_rt *rt = new_rt(&(blz_options){.workers = 1});
            blz_console *console;
            int rc = blz_console_new(&console, rt,
                                     &(blz_console_options){.address = addresses[a],
                                                            .backend = backends[b]});

            if (rc == 0) { /* this system may not have the backend */
                assert_int_equal(ask(console, "/"), 200);
                assert_non_null(strstr(body(), "<title>"));
                assert_int_equal(ask(console, "/api/overview"), 200);
                assert_non_null(strstr(body(), "\"runtimes\":["));
                assert_int_equal(ask(console, "/metrics"), 200);
                assert_non_null(strstr(body(), "# TYPE blitz_tasks gauge"));
                assert_int_equal(ask(console, "/api/tasks"), 200);
                assert_int_equal(ask(console, "/nothing"), 404);
                assert_int_equal(blz_console_free(console), 0);
            } else {
                assert_int_equal(b, 0);
            }
            free_rt(rt);
        }
    assert_int_equal(access(path + 5, F_OK), -1);
}

static void a_connection_serves_many_requests(void **state)
{
    static const char two[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
                              "GET /metrics HTTP/1.1\r\nHost: [::1]:6670\r\n\r\n"
                              "GET /metrics HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n"
                              "GET /never HTTP/1.1\r\nHost: localhost\r\n\r\n";
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_console *console = open_console(rt, NULL);
    int count = 0;

    (void)state;
    assert_int_equal(ask_raw(console, two, sizeof two - 1), 200);
    for (const char *at = answer; (at = strstr(at, "HTTP/1.1 200 OK\r\n")); at++)
        count++;
    assert_int_equal(count, 3); /* HTTP/1.0 ends it */
    blz_console_free(console);
    free_rt(rt);
}

static void other_runtimes_and_pools_are_shown_too(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1, .name = "first"});
    blz_rt *other = new_rt(&(blz_options){.workers = 1, .name = "second"});
    blz_rt *many[BLZ_CONSOLE_MAX + 1] = {other};
    blz_pool *pool;
    blz_console *console;

    (void)state;
    assert_int_equal(blz_pool_new(&pool, &(blz_pool_options){.threads = 1}), 0);
    assert_int_equal(blz_console_new(&console, rt,
                                     &(blz_console_options){.address = "127.0.0.1:0",
                                                            .title = "A \"title\"",
                                                            .others = many,
                                                            .nr_others = 1,
                                                            .pools = &pool,
                                                            .nr_pools = 1}),
                     0);
    assert_int_equal(ask(console, "/api/overview"), 200);
    assert_non_null(strstr(body(), "\"title\":\"A \\\"title\\\"\""));
    assert_non_null(strstr(body(), "\"name\":\"first\""));
    assert_non_null(strstr(body(), "\"name\":\"second\""));
    assert_non_null(strstr(body(), "\"name\":\"pool 0\""));
    assert_int_equal(ask(console, "/metrics"), 200);
    assert_non_null(strstr(body(), "blitz_tasks{runtime=\"1\",name=\"second\"} 0\n"));
    assert_non_null(strstr(body(), "blitz_pool_threads{pool=\"0\"} 1\n"));
    assert_int_equal(ask(console, "/api/tasks?rt=1"), 200);
    assert_int_equal(ask(console, "/api/tasks?rt=2"), 404);
    blz_console_free(console);
    assert_int_equal(blz_console_new(&console, rt,
                                     &(blz_console_options){.others = many,
                                                            .nr_others = BLZ_CONSOLE_MAX + 1}),
                     -EINVAL);
    blz_pool_free(pool);
    free_rt(other);
    free_rt(rt);
}

/* ---- who may ask ---- */

static void only_this_machine_may_be_listened_to(void **state)
{
    static const char *const bad[] = {"0.0.0.0:0",       ":0",           "[::]:0", "192.0.2.1:80",
                                      "example.com:80",  "unix:",        "",       "127.0.0.1",
                                      "127.0.0.1:99999", "[fe80::1%1]:0"};
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_console *console;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(blz_console_start(rt, bad[i]), -EINVAL);
        assert_int_equal(blz_console_new(&console, rt, &(blz_console_options){.address = bad[i]}),
                         -EINVAL);
    }
    assert_int_equal(blz_console_new(&console, NULL, NULL), -EINVAL);
    free_rt(rt);
}

static void other_hosts_and_sites_are_refused(void **state)
{
    static const char *const good[] = {
        "Host: localhost\r\n",
        "Host: LOCALHOST:80\r\n",
        "host:127.0.0.1:6670\r\n",
        "Host: 127.1.2.3\r\n",
        "Host: [::1]:1\r\n",
        "Host: localhost\r\nSec-Fetch-Site: same-origin\r\n",
        "Host: localhost\r\nSec-Fetch-Site: none\r\n",
        "Host: localhost:1\r\nOrigin: http://localhost:1\r\n",
    };
    static const char *const bad[] = {
        "Host: evil.example\r\n",
        "Host: evil.example:6670\r\n",
        "Host: localhost.evil.example\r\n",
        "Host: 127.0.0.1.evil.example\r\n",
        "Host: 10.0.0.1\r\n",
        "Host: [::2]\r\n",
        "Host: [::1\r\n",
        "Host: [::1]x\r\n",
        "Host: localhost:\r\n",
        "Host: localhost:port\r\n",
        "Host:\r\n",
        "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n",
        "Host: localhost\r\nSec-Fetch-Site: same-site\r\n",
        "Host: localhost\r\nOrigin: http://evil.example\r\n",
        "Host: localhost:1\r\nOrigin: http://localhost:2\r\n",
        "Host: localhost\r\nOrigin: null\r\n",
    };
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_console *console = open_console(rt, NULL);

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (ask_with(console, "/api/overview", good[i]) != 200)
            fail_msg("refused: %s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (ask_with(console, "/api/overview", bad[i]) != 403)
            fail_msg("not refused: %s", bad[i]);
        assert_null(strstr(answer, "runtimes"));
        assert_null(strcasestr(answer, "access-control-"));
    }
    blz_console_free(console);
    free_rt(rt);
}

static void what_is_no_plain_get_is_refused(void **state)
{
    static const struct {
        const char *request;
        int status;
    } cases[] = {
        {"POST /api/overview HTTP/1.1\r\nHost: localhost\r\n\r\n", 405},
        {"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405},
        {"OPTIONS / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405},
        {"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 505},
        {"GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody", 400},
        {"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n", 400},
        {"GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /\r\nHost: localhost\r\n\r\n", 400},
        {"\r\n\r\n", 400},
        {"hello\r\n\r\n", 400},
    };
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_console *console = open_console(rt, NULL);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (ask_raw(console, cases[i].request, strlen(cases[i].request)) != cases[i].status)
            fail_msg("not %d: %s", cases[i].status, cases[i].request);
    assert_int_equal(ask_raw(console, "GET /\0 HTTP/1.1\r\nHost: localhost\r\n\r\n", 37), 400);
    blz_console_free(console);
    free_rt(rt);
}

static void a_head_that_is_too_long_is_refused(void **state)
{
    static char request[20000];
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_console *console = open_console(rt, NULL);

    (void)state;
    memset(request, 'x', sizeof request);
    memcpy(request, "GET / HTTP/1.1\r\nX: ", 19);
    assert_int_equal(ask_raw(console, request, sizeof request), 431);
    blz_console_free(console);
    free_rt(rt);
}

static void a_crowd_of_clients_is_turned_away(void **state)
{
    enum { CLIENTS = 80, SERVED = 64 };
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_console *console = open_console(rt, NULL);
    int fds[CLIENTS], served = 0;
    blz_addr addr;
    char byte;

    (void)state;
    blz_console_addr(console, &addr);
    for (int i = 0; i < CLIENTS; i++)
        fds[i] = connect_to(&addr);
    for (int i = 0; i < CLIENTS; i++)
        say(fds[i], request, sizeof request - 1);
    for (int i = 0; i < CLIENTS; i++) {
        served += recv(fds[i], &byte, 1, 0) == 1;
    }
    assert_int_equal(served, SERVED); /* those that stay connected; nobody is left waiting */
    for (int i = 0; i < CLIENTS; i++)
        close(fds[i]);
    blz_console_free(console);
    free_rt(rt);
}

/* ---- its life ---- */

static void it_ends_with_its_runtime(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_console *console;
    blz_addr addr;
    int fd;
    char byte;

    (void)state;
    assert_int_equal(blz_console_new(&console, rt,
                                     &(blz_console_options){.address = "127.0.0.1:0",
                                                            .until_rt_ends = true}),
                     0);
    blz_console_addr(console, &addr);
    assert_int_equal(ask(console, "/metrics"), 200);
    fd = connect_to(&addr); /* a client that says nothing does not keep it */
    free_rt(rt);
    /* A connection that it has not accepted yet is reset when it stops listening. */
    assert_true(read(fd, &byte, 1) == 0 || errno == ECONNRESET);
    close(fd);
}

static void it_may_outlive_its_runtime(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_console *console = open_console(rt, NULL);

    (void)state;
    assert_int_equal(ask(console, "/api/tasks"), 200);
    free_rt(rt);
    assert_int_equal(ask(console, "/api/overview"), 200);
    assert_non_null(strstr(body(), "\"ended\":true"));
    assert_int_equal(ask(console, "/api/tasks?fresh=1"), 404);
    assert_int_equal(ask(console, "/metrics"), 200);
    blz_console_free(console);
}

static blz_console *made_inside;

static int64_t make_inside(void *arg)
{
    int64_t rc;

    (void)arg;
    rc = blz_console_new(&made_inside, blz_rt_current(),
                         &(blz_console_options){.address = "127.0.0.1:0"});
    check(blz_console_free(made_inside) == -EDEADLK);
    return rc;
}

static void a_task_may_start_it_but_not_end_it(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});

    (void)state;
    assert_int_equal(BLZ_BLOCK_ON(rt, calls, .fn = make_inside), 0);
    assert_int_equal(ask(made_inside, "/api/tasks"), 200);
    assert_int_equal(blz_console_free(made_inside), 0);
    assert_int_equal(blz_console_free(NULL), 0);
    free_rt(rt);
}

static void a_runtime_that_ends_is_not_shown_any_more(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_console *console;

    (void)state;
    assert_int_equal(blz_rt_shutdown(rt, BLZ_NEVER), 0);
    assert_int_equal(blz_console_new(&console, rt,
                                     &(blz_console_options){.address = "127.0.0.1:0"}),
                     -ESHUTDOWN);
    free_rt(rt);
}

static void a_second_one_at_the_same_place_is_refused(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_console *console = open_console(rt, NULL), *second;
    char text[BLZ_ADDR_TEXT];
    blz_addr addr;

    (void)state;
    blz_console_addr(console, &addr);
    blz_addr_format(&addr, text, sizeof text);
    assert_int_equal(blz_console_new(&second, rt, &(blz_console_options){.address = text}),
                     -EADDRINUSE);
    blz_console_free(console);
    free_rt(rt);
}

static void a_socket_that_was_left_behind_is_replaced(void **state)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    blz_console *console, *second;
    char address[128];
    struct stat st;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    snprintf(sa.sun_path, sizeof sa.sun_path, "/tmp/blitz-console-left-%d", (int)getpid());
    snprintf(address, sizeof address, "unix:%s", sa.sun_path);
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    close(fd);
    console = open_console(rt, address);
    assert_int_equal(stat(sa.sun_path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(ask(console, "/metrics"), 200);
    assert_int_equal(blz_console_new(&second, rt, &(blz_console_options){.address = address}),
                     -EADDRINUSE);
    blz_console_free(console);
    assert_int_equal(stat(sa.sun_path, &st), -1);
    fd = open(sa.sun_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600); /* a file is left alone */
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(blz_console_new(&console, rt, &(blz_console_options){.address = address}),
                     -EADDRINUSE);
    assert_int_equal(unlink(sa.sun_path), 0);
    free_rt(rt);
}

static void it_shows_an_embedded_runtime_between_its_turns(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_console *console = open_console(rt, NULL);

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, NULL, sleeps), 0);
    assert_int_equal(ask(console, "/api/tasks?fresh=1"), 200);
    assert_non_null(strstr(body(), "\"queued\":1"));
    turn_all(rt);
    assert_int_equal(ask(console, "/api/tasks?fresh=1"), 200);
    assert_non_null(strstr(body(), "\"name\":\"sleeps\""));
    assert_non_null(strstr(body(), "{\"depth\":1,\"fn\":\"pending\"}"));
    assert_non_null(strstr(body(), "\"waiting\":1"));
    blz_console_free(console);
    free_rt(rt);
}

static void it_fails_cleanly_without_memory(void **state)
{
    struct memory *memory = the_memory();
    bool done = false;

    (void)state;
    for (int64_t n = 1; !done && n < 200; n++) {
        blz_rt *rt = new_rt(&(blz_options){.workers = 1});
        blz_console *console;
        int rc;

        memory_fail_at(memory, n, false);
        rc = blz_console_new(&console, rt, &(blz_console_options){.address = "127.0.0.1:0"});
        done = rc == 0 && !memory->failed;
        memory_fail_at(memory, 0, false);
        if (rc == 0)
            blz_console_free(console);
        else
            assert_int_equal(rc, -ENOMEM);
        free_rt(rt);
    }
    assert_true(done);
}

static void a_forked_child_leaves_it_alone(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    char address[64];
    blz_console *console;
    int status = -1;
    pid_t pid;

    (void)state;
    snprintf(address, sizeof address, "unix:/tmp/blitz-console-fork-%d", (int)getpid());
    console = open_console(rt, address);
    pid = fork();
    if (pid == 0)
        _exit(blz_console_free(console) == -EOWNERDEAD ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(ask(console, "/metrics"), 200); /* its socket is still there */
    assert_int_equal(blz_console_free(console), 0);
    free_rt(rt);
}

/* ---- leaking on purpose: in a process of its own ---- */

static struct event stuck = EVENT_INIT, released = EVENT_INIT;
static bool is_stuck;  /* the next allocation of the console's thread does not return */
static bool was_freed; /* the console; atomic */
static pthread_t test_thread;

static void *alloc_or_hang(size_t size, size_t align, void *ctx)
{
    (void)ctx;
    if (!pthread_equal(pthread_self(), test_thread) &&
        __atomic_exchange_n(&is_stuck, false, __ATOMIC_ACQ_REL)) {
        event_post(&stuck);
        event_wait(&released, 1);
    }
    return aligned_alloc(align, (size + align - 1) / align * align);
}

static void free_and_note(void *ptr, size_t size, size_t align, void *ctx)
{
    (void)ctx;
    (void)align;
    if (size == sizeof(blz_console))
        __atomic_store_n(&was_freed, true, __ATOMIC_RELAXED);
    free(ptr);
}

/* A console that is making an answer, and does not get on with it. */
static blz_console *open_stuck_console(blz_rt **rt, bool until_rt_ends)
{
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static const blz_allocator allocator = {.alloc = alloc_or_hang,
                                            .free = free_and_note,
                                            .ctx = NULL};
    blz_console *console;
    blz_addr addr;

    test_thread = pthread_self();
    check(blz_rt_new(rt, &(blz_options){.workers = 1, .allocator = &allocator}) == 0);
    check(blz_console_new(&console, *rt,
                          &(blz_console_options){.address = "127.0.0.1:0",
                                                 .until_rt_ends = until_rt_ends,
                                                 .shutdown_ns = BLZ_MSEC}) == 0);
    blz_console_addr(console, &addr);
    __atomic_store_n(&is_stuck, true, __ATOMIC_RELEASE);
    say(connect_to(&addr), request, sizeof request - 1);
    event_wait(&stuck, 1);
    return console;
}

static int frees_a_stuck_one(void)
{
    blz_rt *rt;
    blz_console *console = open_stuck_console(&rt, false);

    check(blz_console_free(console) == -ETIMEDOUT);
    check(!__atomic_load_n(&was_freed, __ATOMIC_RELAXED));
    event_post(&released);
    check(blz_rt_free(rt) == 0); /* still tells the console, whose tasks may look at it */
    return __atomic_load_n(&was_freed, __ATOMIC_RELAXED);
}

static int frees_the_runtime_of_a_stuck_one(void)
{
    blz_rt *rt;

    open_stuck_console(&rt, true);
    check(blz_rt_free(rt) == 0);
    event_post(&released);
    return __atomic_load_n(&was_freed, __ATOMIC_RELAXED);
}

static int child_main(const char *name)
{
    alarm(CHILD_SECONDS);
    _exit(strcmp(name, "console") == 0 ? frees_a_stuck_one() : frees_the_runtime_of_a_stuck_one());
}

static void what_a_request_that_does_not_end_uses_is_not_freed(void **state)
{
    (void)state;
    in_own_process("console");
    in_own_process("runtime");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(it_answers_on_every_backend_and_transport),
        TEST(a_connection_serves_many_requests),
        TEST(other_runtimes_and_pools_are_shown_too),
        TEST(only_this_machine_may_be_listened_to),
        TEST(other_hosts_and_sites_are_refused),
        TEST(what_is_no_plain_get_is_refused),
        TEST(a_head_that_is_too_long_is_refused),
        TEST(a_crowd_of_clients_is_turned_away),
        TEST(it_ends_with_its_runtime),
        TEST(it_may_outlive_its_runtime),
        TEST(a_task_may_start_it_but_not_end_it),
        TEST(a_runtime_that_ends_is_not_shown_any_more),
        TEST(a_second_one_at_the_same_place_is_refused),
        TEST(a_socket_that_was_left_behind_is_replaced),
        TEST(it_shows_an_embedded_runtime_between_its_turns),
        TEST(it_fails_cleanly_without_memory),
        TEST(a_forked_child_leaves_it_alone),
        TEST(what_a_request_that_does_not_end_uses_is_not_freed),
    };

    if (argc > 1)
        return child_main(argv[1]);
    return RUN_TESTS(tests);
}
