// SPDX-License-Identifier: Apache-2.0
// TCP echo server on libevent, one thread: the input bufferevent is moved to the output.
// Usage: event_echo PORT
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/tcp.h>
#include <stdlib.h>

static void on_read(struct bufferevent *bev, void *unused)
{
    (void)unused;
    evbuffer_add_buffer(bufferevent_get_output(bev), bufferevent_get_input(bev));
}

static void on_event(struct bufferevent *bev, short what, void *unused)
{
    (void)unused;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        bufferevent_free(bev);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *addr,
                      int len, void *unused)
{
    (void)addr;
    (void)len;
    (void)unused;
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct bufferevent *bev =
        bufferevent_socket_new(evconnlistener_get_base(listener), fd, BEV_OPT_CLOSE_ON_FREE);
    bufferevent_setcb(bev, on_read, 0, on_event, 0);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
}

int main(int argc, char **argv)
{
    struct event_base *base = event_base_new();
    struct sockaddr_in addr = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 7000)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    unsigned flags = LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_FREE;
    if (!evconnlistener_new_bind(base, on_accept, 0, flags, 4096, (struct sockaddr *)&addr,
                                 sizeof addr))
        return 1;
    event_base_dispatch(base);
}
