// SPDX-License-Identifier: Apache-2.0
// A loopback TCP listener with SO_REUSEPORT, for the raw echo servers (one listener a thread).
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static inline int listen_loopback(int port, int socket_flags)
{
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | socket_flags, 0);
    struct sockaddr_in addr = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); // inherited by accepted sockets
    if (bind(fd, (struct sockaddr *)&addr, sizeof addr) || listen(fd, 4096)) {
        perror("bind");
        exit(1);
    }
    return fd;
}
