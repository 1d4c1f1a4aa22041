/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A static file server, HTTP/1.1.
 *
 *     build/examples/files docs &
 *     curl -i http://127.0.0.1:8000/                         # a listing, or index.html
 *     curl -r 0-99 http://127.0.0.1:8000/performance.md      # a range
 *     kill %1                                                # downloads get five seconds to finish
 *
 * It shows files and sockets together: how a path that a stranger has sent is opened beneath a
 * directory and nowhere else, how small files go out with their headers in one write and large ones
 * from the system's memory to the socket, and how all that a client could use up has a limit: time,
 * memory, connections.
 *
 *   files.c       the program: options, listening, stopping
 *   connection.c  a connection: requests in, replies out, in order
 *   resource.c    from a path to an open file
 *   reply.c       what is sent of it: all, a range, nothing new
 *   body.c        files on their way to the client
 *   listing.c     directories without an index.html
 *   types.c       what kind of file it is, by its name
 *   ../http       requests: parsing, reading and writing with limits; bytes that grow
 */
#ifndef FILES_FILES_H
#define FILES_FILES_H

#include "bytes.h"
#include "http.h"
#include "stream.h"

#include <blitz.h>
#include <stdatomic.h>

struct server {
    struct limits limits;
    blz_file root;
    bool hidden;         /* names that begin with a dot are served, too */
    blz_semaphore slots; /* a permit for each connection that may be open */
    atomic_ullong nr_connections, nr_requests;
};

/* ---- resource.c ---- */

/* What a request is about. */
struct resource {
    blz_file file; /* a regular file, or a directory that has no index.html */
    blz_metadata meta;
    const char *type; /* of its content */
};

/*
 * Opens what a path of a request means: 0 and *out, which must be closed, or a negative status:
 * -301: it is a directory, and the path lacks the slash at its end.
 */
struct resource_open {
    BLZ_FRAME;
    const struct server *server;
    const char *path; /* as it came, with escapes */
    size_t path_len;
    struct resource *out;
    char *name; /* beneath the root */
    blz_file index;
    blz_metadata index_meta;
    blz_io io;
    int64_t rc;
};
BLZ_DECLARE_EXTERN(resource_open);

/* ---- reply.c ---- */

/* What is sent. */
struct reply {
    int status;
    bool close;                /* the connection ends after this one */
    uint64_t at, count;        /* of a file: from where, how many bytes */
    char tag[64];              /* "..." of a file */
    const struct resource *of; /* NULL: a status and its name */
};

/* Decides what a request for a file gets: all of it, a part, or word that it has not changed. */
void reply_decide(struct reply *reply, const char *head, size_t head_len);

/* Writes the head. `body`: the body's, if it is no part of a file. */
void reply_head(struct bytes *out, const struct reply *reply, const struct http_request *request,
                const char *type, uint64_t body_len);

/* Writes a whole reply that is nothing but its status. `where`: of a 301. */
void reply_status(struct bytes *out, const struct reply *reply, const struct http_request *request,
                  const struct bytes *where);

/* ---- body.c ---- */

/*
 * Sends `count` bytes of a file from `at` on, behind what is in stream->out: 0. A few are added to
 * that; many go straight from the file to the socket. -ENODATA: the file has become shorter.
 */
struct send_file {
    BLZ_FRAME;
    struct stream *stream;
    blz_file *file;
    uint64_t at, count;
    int64_t n, deadline_ns;
    char *room;
    union {
        struct stream_flush flush;
        blz_io io;
        struct {
            blz_copy_op copy;
            blz_timeout limit;
        };
    };
};
BLZ_DECLARE_EXTERN(send_file);

/* ---- listing.c ---- */

/* Writes what is in a directory, which is taken, as HTML: 0. */
struct list_directory {
    BLZ_FRAME;
    const struct server *server;
    blz_file *directory;
    const char *path; /* as it came */
    size_t path_len;
    struct bytes *out;
    blz_dir dir;
    blz_dir_entry entry;
    blz_fs_op op;
    struct bytes names; /* each with a zero */
    size_t nr_names;
    bool more; /* than are listed */
    int64_t rc;
};
BLZ_DECLARE_EXTERN(list_directory);

/* ---- types.c ---- */

/* "text/html; charset=utf-8" for a name that ends so. */
const char *type_of_name(const char *name);

/* ---- connection.c ---- */

/* Serves a connection in a task of its own, which gives its slot back. 0 or a negative errno. */
int connection_spawn(struct server *server, blz_tcp conn);

#endif
