/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks an echo server on port 7000 (examples/echo.c) so slowly that it sleeps before each request.
 * Every round has a request on a new connection and one on a connection that stays open. A server
 * that loses a wake-up does not answer, however long the client waits; the limit is far from what
 * an answer takes.
 *
 * Used by tools/kernels inside an emulated machine. It has no library but libc, and is linked
 * statically.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 7000, ROUNDS = 12, PAUSE_MS = 1000, LIMIT_MS = 5000, START_MS = 30000 };

static int now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int)(now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

static int connect_once(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&addr, sizeof addr) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The server may still be starting. */
static int connect_first(void)
{
    int began = now_ms(), fd;

    while ((fd = connect_once()) < 0 && now_ms() - began < START_MS)
        poll(NULL, 0, 50);
    return fd;
}

/* Sends a byte and waits for its echo; gives the milliseconds, or -1. */
static int ask(int fd, char letter)
{
    struct pollfd answer = {.fd = fd, .events = POLLIN};
    int began = now_ms();
    char got = 0;

    if (fd < 0 || send(fd, &letter, 1, MSG_NOSIGNAL) != 1 || poll(&answer, 1, LIMIT_MS) != 1 ||
        recv(fd, &got, 1, 0) != 1 || got != letter)
        return -1;
    return now_ms() - began;
}

int main(void)
{
    int stays = connect_first(), missing = 0, slowest = 0;

    if (stays < 0) {
        printf("the server does not accept\n");
        return 1;
    }
    for (int round = 1; round <= ROUNDS; round++) {
        int fresh, taken[2];
        poll(NULL, 0, PAUSE_MS);
        fresh = connect_once();
        taken[0] = ask(fresh, (char)('a' + round));
        poll(NULL, 0, PAUSE_MS);
        taken[1] = ask(stays, (char)('A' + round));
        for (int i = 0; i < 2; i++) {
            slowest = taken[i] > slowest ? taken[i] : slowest;
            missing += taken[i] < 0;
            if (taken[i] < 0)
                printf("round %d: no answer in %d ms on the %s connection\n", round, LIMIT_MS,
                       i == 0 ? "new" : "old");
        }
        if (fresh >= 0)
            close(fresh);
        if (taken[1] < 0) { /* a late answer would be taken for the next one */
            close(stays);
            stays = connect_once();
        }
    }
    printf("%d of %d requests answered, the slowest after %d ms\n", 2 * ROUNDS - missing,
           2 * ROUNDS, slowest);
    return missing != 0;
}
