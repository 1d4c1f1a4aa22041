/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a blz_io is: every layout that its memory can have, in one place. `kind` says which. Nothing
 * else in the library gives those bytes a meaning.
 *
 *   kinds                         layout                  in the hands of
 *   ------------------------------------------------------------------------------------------
 *   IO_READ to IO_CALL            struct io               a driver, or its task
 *   IO_FILE_READ to IO_FILE_LOCK  struct io               a driver that takes files; or, with
 *                                                         `pooled`, a thread of the blocking pool
 *   IO_ACCEPT_PAUSE               struct io_pause         a timer (net/accept.c)
 *   IO_OUTER                      struct io_outer         the stream inside of it (stream/outer.h)
 *   IO_STREAM_CALL                struct io_stream_call   its task (stream/stream.c)
 *   IO_PAIR                       struct io_pair          a pipe in memory (stream/pair.c)
 *
 * All of them begin with OP_HEAD (op.h): `done` is public, and io_check (io.h) aborts if `events`
 * says that the operation that had the memory before is still in flight. Within struct io, `kind`
 * also says which of its arguments is meant.
 */
#ifndef BLZ_IO_LAYOUT_H
#define BLZ_IO_LAYOUT_H

#include "io/op.h"

#include <blitz/addr.h>
#include <blitz/blocking.h>
#include <blitz/io.h>
#include <blitz/stream.h>
#include <blitz/time.h>

typedef struct blz__fd blz__fd;
struct io;

/* What a program holds: an entry of the table of descriptors (fd.c). */
typedef struct blz__fd_ref {
    blz__fd *entry;
    uint64_t generation;
} blz__fd_ref;

enum io_kind {
    IO_READ,     /* bytes: recv or read */
    IO_WRITE,    /* bytes: send or write */
    IO_READV,    /* pieces */
    IO_WRITEV,   /* pieces */
    IO_PEEK,     /* bytes */
    IO_LEASE,    /* lease */
    IO_RECVMSG,  /* message */
    IO_SENDMSG,  /* message */
    IO_ACCEPT,   /* accept; value: the new descriptor, still a plain one */
    IO_CONNECT,  /* connect */
    IO_SENDFILE, /* sendfile */
    IO_POLL,     /* readiness; value: the events that are true */
    IO_CALL,     /* call */
    IO_KINDS,
    /* Of files, which are never ready or not: for drivers that do files. -EAGAIN means that a
     * thread has to do it. */
    IO_FILE_READ = IO_KINDS, /* file */
    IO_FILE_WRITE,           /* file */
    IO_FILE_READV,           /* file_pieces */
    IO_FILE_WRITEV,          /* file_pieces */
    IO_FILE_SYNC,            /* sync */
    /* Of files, for the blocking pool alone. */
    IO_FILE_OPEN,      /* open; fd: where to begin, or NULL */
    IO_FILE_SET_LEN,   /* set_len */
    IO_FILE_ALLOCATE,  /* allocate */
    IO_FILE_METADATA,  /* metadata */
    IO_FILE_SET_MODE,  /* set_mode */
    IO_FILE_SET_TIMES, /* set_times */
    IO_FILE_LOCK,      /* lock */
    /* Of none: no driver ever has these. */
    IO_ACCEPT_PAUSE,
    IO_OUTER,
    IO_STREAM_CALL,
    IO_PAIR,
};

#define FILE_POSITION UINT64_MAX /* as the offset of a file: its own position */

/*
 * A system call of the module above that does not wait, whatever mode the descriptor is in: gives
 * its result, or a negative errno, of which -EAGAIN means: not now. [home worker, or the task]
 */
struct io_call {
    int64_t (*call)(struct io *io, int fd);
};

/* An operation on a descriptor. */
struct io {
    union {
        struct {
            blz__op op;
            struct io *next; /* in fd->waiting */
            /* Which of them depends on where the operation is. */
            union {
                uint64_t seen;          /* armed, or about to be: the readiness before the try */
                struct io *next_queued; /* in a worker's list: writes that go out together, edges
                                           to be tried, requests that the ring has no room for */
                uint32_t poll_slot;     /* in the array of the poll backend */
            };
        };
        /* A file's, while the blocking pool has it: no driver knows it, no entry links it, and
         * only its task ends it, so the job lies where these links would be. */
        struct {
            unsigned char before_[offsetof(blz__op, cancel)];
            blz_blocking_job job;
        } pooled;
    };
    blz__fd *fd;
    uint32_t generation;
    uint8_t flags;    /* IO_ALL and on; the task's */
    uint8_t progress; /* IO_CONNECTING and on; its home's, once it is handed over */
    uint16_t spare;
    union {
        struct {
            void *buf;
            size_t len;
        } bytes;
        struct {
            const blz_iovec *iov;
            size_t count;
        } pieces;
        struct {
            blz_buf *out;
        } lease;
        struct {
            struct blz__socket_message *message; /* system/message.h */
        } message;
        struct {
            blz__fd_ref *conn; /* gets the connection */
            uint32_t pause_ms; /* the next pause; see IO_ACCEPT_PAUSE */
        } accept;
        struct {
            const blz_addr *addr;
            blz__fd_ref *conn;   /* gets the connection */
            const void *options; /* of the socket, until it has been opened */
        } connect;
        struct {
            uint64_t offset;
            size_t len;
            int file;
        } sendfile;
        struct {
            uint32_t events; /* BLZ_FD_READ and so on */
        } readiness;
        struct {
            const struct io_call *by;
            uint32_t events; /* BLZ_FD_READ or BLZ_FD_WRITE: when to try again */
        } call;
        struct {
            void *buf;
            size_t len;
            uint64_t offset; /* or FILE_POSITION */
        } file;
        struct {
            const blz_iovec *iov;
            size_t count;
            uint64_t offset; /* or FILE_POSITION */
        } file_pieces;
        struct {
            bool data_only;
        } sync;
        struct {
            const char *path;
            uint64_t how; /* see fs/open.c */
            blz__fd_ref *file;
        } open;
        struct {
            int64_t len;
        } set_len;
        struct {
            int64_t offset, len;
            bool keep_len;
        } allocate;
        struct {
            void *out; /* blz_metadata */
        } metadata;
        struct {
            unsigned mode;
        } set_mode;
        struct {
            int64_t accessed_ns, modified_ns;
        } set_times;
        struct {
            int how; /* LOCK_SH and so on */
        } lock;
    };
};

/* An accept that waits before it tries again, because the system is out of something. */
struct io_pause {
    OP_HEAD;
    bool cancelled;
    uint32_t pause_ms;
    blz__fd_ref listener;
    blz__fd_ref *conn;
    blz_timer timer;
};

/* An operation of a stream that uses another stream: future.child is the inner operation. */
struct io_outer {
    OP_HEAD;
    bool cancelled;
    void *adapter;
    void *buf;
    size_t len; /* of writev: pieces */
};

/* A function of a stream that never waits, as a future. */
struct io_stream_call {
    OP_HEAD;
    blz_stream stream;
    int64_t (*fn)(const blz_stream *stream);
};

/* Reading from or writing to a pipe in memory; future.line says how far it is. */
struct io_pair {
    OP_HEAD;
    bool writes;
    uint8_t end;
    struct pair_slot *slot;
    uint64_t word;     /* of the handle */
    struct pair *pair; /* once it has entered */
    const blz_iovec *iov;
    size_t count;
    blz_iovec one;
};

/* For the size alone. What the system needs of its own (Windows) lies behind struct io. */
union io_layout {
    unsigned char io[sizeof(struct io) + BLZ_IO_SYSTEM_BYTES];
    struct io_pause pause;
    struct io_outer outer;
    struct io_stream_call stream_call;
    struct io_pair pair;
};

_Static_assert(sizeof(union io_layout) <= sizeof(blz_io), "blz_io is too small");
_Static_assert(_Alignof(struct io) <= _Alignof(blz_io), "blz_io is aligned for less");
_Static_assert(offsetof(blz__op, done) == offsetof(blz_io, done), "blz_io.done is elsewhere");
_Static_assert(sizeof(((struct io *)0)->pooled) <= offsetof(struct io, fd), "a job is in the way");

#endif
