// SPDX-License-Identifier: Apache-2.0
// TCP echo server on bare epoll: a listener and an epoll set a thread, no buffer per connection.
// Usage: epoll_echo PORT [THREADS [SPIN]]     SPIN=1: poll epoll_wait without ever blocking
#define _GNU_SOURCE
#include "listen.h"
#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

static int g_port = 7000, g_spin;

static void accept_all(int ep, int listener)
{
    int fd, one = 1;
    while ((fd = accept4(listener, 0, 0, SOCK_NONBLOCK)) >= 0) {
        struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
    }
}

static void echo(int fd)
{
    char buf[1024];
    ssize_t n = recv(fd, buf, sizeof buf, 0);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0 || send(fd, buf, (size_t)n, MSG_NOSIGNAL) != n)
        close(fd);
}

static void *serve(void *unused)
{
    (void)unused;
    int listener = listen_loopback(g_port, SOCK_NONBLOCK), ep = epoll_create1(0);
    struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.fd = listener}, ready[256];
    epoll_ctl(ep, EPOLL_CTL_ADD, listener, &ev);
    for (;;) {
        int n = epoll_wait(ep, ready, 256, g_spin ? 0 : -1);
        for (int i = 0; i < n; i++) {
            if (ready[i].data.fd == listener)
                accept_all(ep, listener);
            else
                echo(ready[i].data.fd);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        g_port = atoi(argv[1]);
    int threads = argc > 2 ? atoi(argv[2]) : 1;
    g_spin = argc > 3 && atoi(argv[3]);
    for (int i = 1; i < threads; i++) {
        pthread_t thread;
        pthread_create(&thread, 0, serve, 0);
    }
    serve(0);
}
