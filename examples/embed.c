/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blitz inside somebody else's event loop: here a poll(2) loop that reads numbers from stdin, a
 * line each, and factors each in a task.
 *
 *     seq 999999999999989 1000000000000005 | embed
 *     embed 60                              # ends when nothing was typed for a minute
 *
 * There are no threads: the tasks run when the loop calls blz_rt_turn. It waits for two
 * descriptors, stdin and the runtime's, which is readable when there is something to run; and for
 * the time at which the next timer of a task is due. As the tasks yield every so often, a hard
 * number holds up neither the easy ones nor the loop.
 */
#include <blitz.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- one number ---- */

struct factor {
    BLZ_FRAME;
    uint64_t number, rest, divisor;
    char text[512];
    int64_t rc;
    blz_future pause;
};

static unsigned nr_live; /* all tasks run on this thread: no atomics needed */

static void add_factor(struct factor *self, uint64_t p)
{
    size_t len = strlen(self->text);
    snprintf(self->text + len, sizeof self->text - len, " %" PRIu64, p);
}

/* Tries some divisors. False: there are more to try. */
static bool try_some(struct factor *self)
{
    for (int i = 0; i < 20000; i++, self->divisor++) {
        if (self->divisor > self->rest / self->divisor)
            return true;
        while (self->rest % self->divisor == 0) {
            add_factor(self, self->divisor);
            self->rest /= self->divisor;
        }
    }
    return false;
}

BLZ_ASYNC(factor)
{
    BLZ_BEGIN;
    self->rest = self->number;
    self->divisor = 2;
    while (!try_some(self)) {
        BLZ_AWAIT(self->rc, blz_yield(&self->pause));
        if (self->rc < 0)
            goto out; /* cancelled: the program ends */
    }
    if (self->rest > 1)
        add_factor(self, self->rest);
    printf("%" PRIu64 ":%s\n", self->number, self->text);
out:
    nr_live--;
    BLZ_END(self->rc);
}

/* ---- the end of a user's patience ---- */

static bool is_open = true; /* stdin may still bring something */
static int64_t idle_limit_ns, idle_until_ns;

struct stop_when_idle {
    BLZ_FRAME;
    int64_t rc;
    blz_sleep_op pause;
};

BLZ_ASYNC(stop_when_idle)
{
    BLZ_BEGIN;
    while (self->rc == 0 && blz_now() < idle_until_ns) /* which each input moves */
        BLZ_AWAIT(self->rc, blz_sleep_until(&self->pause, idle_until_ns));
    is_open = false;
    BLZ_END(self->rc);
}

/* ---- the loop ---- */

static void start_task(blz_rt *rt, const char *line)
{
    char *end;
    uint64_t number = strtoull(line, &end, 10);
    int rc = -EINVAL;

    if (end != line && *end == '\0' && number > 0)
        rc = BLZ_SPAWN_ON(rt, NULL, factor, .number = number);
    if (rc < 0)
        fprintf(stderr, "embed: %s: %s\n", line, blz_strerror(rc));
    else
        nr_live++;
}

/* Takes what there is on stdin, and starts a task for each full line. False: the end. */
static bool read_lines(blz_rt *rt)
{
    static char text[4096];
    static size_t len;
    ssize_t n = read(STDIN_FILENO, text + len, sizeof text - 1 - len);
    char *line = text, *newline;

    idle_until_ns = blz_deadline(idle_limit_ns);
    if (n < 0)
        return errno == EINTR;
    if (n == 0 && len > 0)
        text[len++] = '\n'; /* the last line had none */
    len += (size_t)n;
    text[len] = '\0';
    for (; (newline = strchr(line, '\n')); line = newline + 1) {
        *newline = '\0';
        start_task(rt, line);
    }
    len -= (size_t)(line - text);
    memmove(text, line, len);
    return n > 0 && len < sizeof text - 1; /* a longer line is no number */
}

/* How long poll(2) may wait, in milliseconds: until the next timer is due, an hour at most. */
static int wait_ms(blz_rt *rt)
{
    int64_t left_ns = blz_deadline_left(blz_rt_deadline(rt));
    return (int)((left_ns < BLZ_HOUR ? left_ns + BLZ_MSEC - 1 : BLZ_HOUR) / BLZ_MSEC);
}

static int run_loop(blz_rt *rt)
{
    int64_t rc = 0;

    while (rc >= 0 && (is_open || nr_live > 0)) {
        struct pollfd fds[2] = {
            {.fd = blz_rt_fd(rt), .events = POLLIN},
            {.fd = is_open ? STDIN_FILENO : -1, .events = POLLIN},
        };
        if (poll(fds, 2, wait_ms(rt)) < 0 && errno != EINTR)
            return -errno;
        if (fds[1].revents)
            is_open = read_lines(rt);
        rc = blz_rt_turn(rt); /* runs tasks for a while, never blocks */
    }
    return rc < 0 ? (int)rc : 0;
}

int main(int argc, char **argv)
{
    blz_rt *rt;
    int rc = blz_rt_new(&rt, &(blz_options){.embedded = true});

    if (rc == 0 && argc > 1) {
        idle_limit_ns = (int64_t)(strtod(argv[1], NULL) * BLZ_SEC);
        idle_until_ns = blz_deadline(idle_limit_ns);
        rc = BLZ_SPAWN_ON(rt, NULL, stop_when_idle);
    }
    if (rc == 0)
        rc = run_loop(rt);
    if (rc < 0)
        fprintf(stderr, "embed: %s\n", blz_strerror(rc));
    return blz_rt_free(rt) < 0 || rc < 0;
}
