/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process supervisor: starts programs, keeps them running, shows what they say, stops them.
 *
 *     cat > services <<END
 *     [clock]
 *     command = sh -c 'while sleep 1; do date; done'
 *     grace = 1s
 *
 *     [web]
 *     command = build/examples/files docs
 *     restart = always
 *     backoff = 100ms 5s
 *     END
 *     build/examples/supervisor services
 *
 * Ctrl-C (or SIGTERM) stops them in reverse order: each is asked to end, and killed if it has not
 * when its grace is over; a second one kills all of them at once. SIGHUP reads the file again: what
 * is new is started, what is gone or has changed is stopped. SIGUSR1 and SIGUSR2 are passed on.
 *
 * It shows processes and signals as something to wait for, beside anything else that is waited for.
 * Each service is a task, and to stop it is to cancel that task: its wait fails, and it cleans up.
 * Signals go to all who have subscribed; so the services pass them on by themselves.
 *
 *   supervisor.c  the program: signals, starting, reloading, stopping
 *   service.c     one service: its lives, and the pauses between them
 *   output.c      what services say, line by line
 *   config.c      the file: plain functions
 */
#ifndef SUPERVISOR_SUPERVISOR_H
#define SUPERVISOR_SUPERVISOR_H

#include <blitz.h>
#include <stdatomic.h>

/* ---- config.c ---- */

enum { MAX_SERVICES = 256, MAX_ARGS = 64 };

enum restart { RESTART_ON_FAILURE, RESTART_ALWAYS, RESTART_NEVER };

/* What a service is. All strings are its own. */
struct definition {
    char *name;
    char *text; /* of its section: another one is another service */
    char *words;
    char *args[MAX_ARGS + 1]; /* in `words`, up to a NULL */
    char *directory;          /* NULL: ours */
    enum restart restart;
    int64_t first_ns, max_ns; /* the pause before it is started again: at first, at most */
    int64_t grace_ns;
};

struct config {
    struct definition *services[MAX_SERVICES]; /* the first `count` of them */
    size_t count;
};

/* Reads a text: 0; -EINVAL, and `why` says what is wrong and where; -ENOMEM. */
int config_parse(struct config *config, const char *text, char *why, size_t size);

void definition_free(struct definition *definition);
void config_free(struct config *config);

/* ---- supervisor.c ---- */

struct supervisor {
    const char *path;
    blz_token *force;    /* cancelled: no more grace */
    blz_semaphore ended; /* released by each service that has ended */
    blz_stream output;
    blz_mutex output_lock;
};

/* Says something, with the program's name in front, on standard error. [any thread] */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- output.c ---- */

enum { LINE = 4000, NAME = 64 }; /* together less than what a pipe takes at once, PIPE_BUF */

/* Copies what is read from a pipe to the output, each line behind a name, until its end. */
struct capture {
    BLZ_FRAME;
    struct supervisor *supervisor;
    blz_pipe pipe;
    char name[NAME + 4]; /* and " | " */
    int64_t n, rc;
    blz_iovec parts[3];
    union {
        blz_io io;
        blz_mutex_op lock;
        blz_stream_op write;
    };
    size_t done, end; /* of `in`: printed, read */
    char in[LINE];
};
BLZ_DECLARE_EXTERN(capture);

/* ---- service.c ---- */

struct service {
    struct supervisor *supervisor;
    struct definition *definition;
    blz_handle task;
    bool failed;       /* its last life did; to be read when it has ended */
    atomic_bool ended; /* it will not live again */
};

/* Starts the task of a service, which is stopped by cancelling it. 0 or a negative errno. */
int service_spawn(struct service *service);

#endif
