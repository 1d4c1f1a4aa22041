/* SPDX-License-Identifier: Apache-2.0 */
/* See wake.h. */
#include "io/wake.h"

#include "system/clock.h"

#include <blitz/error.h>
#include <limits.h>
#include <sys/eventfd.h>
#include <unistd.h>

int blz__wake_open(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

void blz__wake_send(int fd)
{
    (void)!write(fd, &(uint64_t){1}, sizeof(uint64_t));
}

void blz__wake_drain(int fd)
{
    uint64_t count;
    (void)!read(fd, &count, sizeof count);
}

struct timespec blz__time_left(int64_t deadline_ns)
{
    int64_t ns = deadline_ns == 0 || deadline_ns == INT64_MAX ? 0 : deadline_ns - blz__clock_ns();

    if (ns <= 0)
        return (struct timespec){0};
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

int blz__time_left_ms(int64_t deadline_ns, const struct timespec *left)
{
    if (deadline_ns == INT64_MAX)
        return -1;
    if (left->tv_sec > INT_MAX / 1000 - 1)
        return INT_MAX; /* wakes for nothing once in 24 days */
    return (int)(left->tv_sec * 1000 + (left->tv_nsec + 999999) / 1000000);
}
