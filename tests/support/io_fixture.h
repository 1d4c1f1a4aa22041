/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the I/O tests share: the backends that every case runs on, pairs of connected descriptors
 * with one end adopted by the runtime, and a task that does one operation.
 *
 * The far end of a pair is a plain descriptor, so that a test decides when something becomes ready.
 */
#ifndef BLZ_TESTS_IO_FIXTURE_H
#define BLZ_TESTS_IO_FIXTURE_H

#include "harness.h"

#include "io/io.h"
#include "system/message.h"

#include <sys/socket.h>

/* ---- backends ---- */

struct io_config {
    const char *label;
    blz_options options;
};

extern const struct io_config io_configs[];
extern const int nr_io_configs;

/* Makes a runtime for the configuration. NULL: this system does not have the backend. */
blz_rt *io_rt(const struct io_config *config);

/* Calls the body with a runtime for each configuration; the runtime is freed behind it. */
void on_every_backend(void (*body)(blz_rt *rt));

/* The same with some options of the test's own: backend, workers and mode are filled in. */
void on_every_backend_with(const blz_options *options, void (*body)(blz_rt *rt));

/* The same for those with that many workers. */
void on_every_backend_of(unsigned workers, void (*body)(blz_rt *rt));

/* Blocks until every worker sleeps: what has been started is in flight, or has ended. */
void wait_until_idle(blz_rt *rt);

/* ---- descriptors ---- */

enum pair_kind {
    PAIR_TCP,      /* ours and far are two ends of a connection on loopback */
    PAIR_UNIX,     /* stream */
    PAIR_PIPE_IN,  /* we read */
    PAIR_PIPE_OUT, /* we write */
    PAIR_LISTENER, /* ours listens; far is not used */
};

struct pair {
    blz__fd_ref ours;
    int fd; /* that of ours */
    int far;
};

void open_pair(struct pair *pair, blz_rt *rt, enum pair_kind kind);

/* Closes what is open. */
void close_pair(struct pair *pair);

/* Two connected TCP sockets on loopback, plain ones. */
void tcp_socketpair(int fds[2]);

/* A TCP socket that listens on loopback. */
int tcp_listener(struct sockaddr_in *sa, int backlog);

/* A descriptor of which calls do not wait from now on. */
void set_nonblocking(int fd);

/* Adopts a plain descriptor, in the mode that the runtime wants. */
blz__fd_ref adopt_fd(blz_rt *rt, int fd, unsigned flags);

/* Writes until nothing more fits, reads until nothing more is there: the number of bytes. */
size_t fill(int fd);
size_t drain(int fd);

/* ---- one operation ---- */

/* Memory of an operation, whatever it is. */
struct io_memory {
    blz_io io;
    char buf[64];
    blz_iovec iov[2];
    blz_buf lease;
    blz__socket_message msg;
};

/* A future for the kind: reads ask for 64 bytes, writes write 64 (of `file` for sendfile). */
blz_future *make_io(struct io_memory *memory, enum io_kind kind, const blz__fd_ref *ref);

/* Gives back what came with a result: a lease, an accepted connection. */
void drop_result(struct io_memory *memory, enum io_kind kind, int64_t result);

enum does_how {
    DO_PLAIN,
    DO_CANCELLED_FIRST, /* told to end before its first poll */
    DO_CANCELLED_SOON,  /* told to end right behind its first poll, if it is pending then */
    DO_TIMEOUT,         /* with a limit of 2 ms */
};

/* A task that does one operation and ends with its result. */
struct does_io {
    BLZ_FRAME;
    int kind, how;
    blz__fd_ref ref;
    struct event *started; /* posted just before, if there is one */
    int64_t *got;          /* the result, for those who do not join */
    int64_t rc;
    struct io_memory memory;
    blz_timeout limit;
    blz_future wrap; /* of the cancelled ones */
};
BLZ_DECLARE_EXTERN(does_io);

#endif
