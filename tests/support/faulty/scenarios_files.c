/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios with files, directories, changes, and copies between descriptors. */
#include "scenarios.h"

#include <blitz/copy.h>
#include <blitz/file.h>
#include <blitz/fs.h>
#include <blitz/pipe.h>
#include <blitz/stdio.h>
#include <blitz/unix.h>

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], a[96], b[96], c[96], sub[96];

static void make_dir(void)
{
    snprintf(dir, sizeof dir, "/tmp/blitz-contract-XXXXXX");
    check(mkdtemp(dir) != NULL);
    snprintf(a, sizeof a, "%s/a", dir);
    snprintf(b, sizeof b, "%s/b", dir);
    snprintf(c, sizeof c, "%s/c", dir);
    snprintf(sub, sizeof sub, "%s/sub/deep", dir);
}

static int remove_it(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    check(strncmp(path + at->base, ".blitz-", 7) != 0); /* of the library, for a while */
    return remove(path);
}

static void remove_dir(void)
{
    if (access(dir, F_OK) == 0)
        check(nftw(dir, remove_it, 8, FTW_DEPTH | FTW_PHYS) == 0);
}

#define RUN_IN_A_DIRECTORY(name)                                     \
    RUN_SCENARIO(name, options)                                      \
    static int64_t run_##name##_in_a_directory(const blz_options *o) \
    {                                                                \
        int64_t rc;                                                  \
                                                                     \
        make_dir();                                                  \
        rc = run_##name(o);                                          \
        remove_dir();                                                \
        return rc;                                                   \
    }

/* ---- open files ---- */

struct uses_files {
    BLZ_FRAME;
    int64_t rc;
    blz_io io;
    blz_fs_op op;
    blz_file file, at;
    blz_file_lock_op lock;
    blz_metadata metadata;
    char buf[16];
};

static const blz_open_options read_write = {.read = true, .write = true, .create = true};

/* Not every file system can. */
static int64_t unless_unsupported(int64_t rc)
{
    return rc == -ENOTSUP ? 0 : rc;
}

/* The file leaves the runtime and comes back. */
static int readopt_file(blz_file *file)
{
    int64_t fd = blz_file_into_fd(file);
    int rc;

    if (fd < 0)
        return (int)fd;
    rc = blz_file_from_fd(file, (blz_sysfd)fd, NULL);
    if (rc < 0)
        close((int)fd);
    return rc;
}

BLZ_ASYNC(uses_files)
{
    BLZ_BEGIN;
    STEP(blz_file_open(&self->io, &self->file, a, &read_write));
    DO(readopt_file(&self->file));
    STEP(blz_file_write_all(&self->io, &self->file, "0123456789", 10));
    STEP(blz_file_write_all_at(&self->io, &self->file, "ab", 2, 0));
    STEP(blz_file_set_len(&self->io, &self->file, 8));
    STEP(blz_file_read_exact_at(&self->io, &self->file, self->buf, 8, 0));
    STEP(blz_file_allocate(&self->io, &self->file, 0, 4096, true));
    self->rc = unless_unsupported(self->rc);
    STEP(blz_file_metadata(&self->io, &self->file, &self->metadata));
    STEP(blz_file_set_mode(&self->io, &self->file, 0640));
    STEP(blz_file_set_times(&self->io, &self->file, BLZ_TIME_NOW, 0));
    STEP(blz_file_sync(&self->io, &self->file));
    STEP(blz_file_sync_data(&self->io, &self->file));
    STEP(blz_file_try_lock_shared(&self->io, &self->file));
    STEP(blz_file_lock(&self->lock, &self->file));
    STEP(blz_file_unlock(&self->io, &self->file));
    DO(blz_file_seek(&self->file, 0, SEEK_END));
    blz_file_close(&self->file);
    STEP(blz_file_open(&self->io, &self->at, dir, &(blz_open_options){.directory = true}));
    STEP(blz_file_open(&self->io, &self->file, "a",
                       &(blz_open_options){.read = true, .at = &self->at, .beneath = true}));
    blz_file_close(&self->at);
    blz_file_close(&self->file);
    STEP(blz_fs_temp_file(&self->op, &self->file, NULL));
    blz_file_close(&self->file);
    BLZ_END(self->rc);
}

RUN_IN_A_DIRECTORY(uses_files)

/* ---- paths ---- */

struct uses_paths {
    BLZ_FRAME;
    int64_t rc;
    blz_fs_op op;
    blz_dir list;
    blz_dir_entry entry;
    blz_bytes bytes;
    blz_metadata metadata;
    blz_fs_watch watch;
    blz_io next;
    blz_fs_change change;
};

/* What is the file's own: a change, and a watch of a directory. */
static int watch_id(struct uses_paths *self)
{
    int rc = blz_fs_watch_remove(&self->watch, (int)self->rc);

    blz_fs_watch_close(&self->watch);
    return rc;
}

BLZ_ASYNC(uses_paths)
{
    BLZ_BEGIN;
    STEP(blz_fs_create_dir_all(&self->op, sub, 0700));
    STEP(blz_fs_write(&self->op, a, "whole", 5));
    STEP(blz_fs_append(&self->op, a, "more", 4));
    STEP(blz_fs_read(&self->op, a, &self->bytes, 100));
    blz_bytes_free(&self->bytes);
    STEP(blz_fs_write_atomic(&self->op, a, "atomic", 6));
    STEP(blz_fs_remove_unfinished(&self->op, dir));
    STEP(blz_fs_metadata(&self->op, a, &self->metadata));
    STEP(blz_fs_copy(&self->op, a, b));
    STEP(blz_fs_set_mode(&self->op, b, 0600));
    STEP(blz_fs_set_times(&self->op, b, 0, BLZ_TIME_NOW));
    STEP(blz_fs_hard_link(&self->op, b, c));
    STEP(blz_fs_remove(&self->op, b));
    STEP(blz_fs_rename(&self->op, c, b));
    STEP(blz_fs_symlink(&self->op, "b", c));
    STEP(blz_fs_read_link(&self->op, c, &self->bytes));
    blz_bytes_free(&self->bytes);
    STEP(blz_fs_canonicalize(&self->op, c, &self->bytes));
    blz_bytes_free(&self->bytes);
    STEP(blz_fs_exists(&self->op, c));
    STEP(blz_fs_remove_dir(&self->op, sub));
    STEP(blz_dir_open(&self->op, &self->list, dir));
    STEP(blz_dir_next(&self->op, &self->list, &self->entry));
    blz_dir_close(&self->list);
    DO(blz_fs_watch_new(&self->watch, NULL));
    STEP(blz_fs_watch_add(&self->op, &self->watch, dir, BLZ_FS_ALL));
    if (self->rc >= 0)
        self->metadata.size = (uint64_t)self->rc;
    STEP(blz_fs_write(&self->op, b, "change", 6));
    STEP(blz_fs_watch_next(&self->next, &self->watch, &self->change));
    if (self->rc >= 0)
        self->rc = (int64_t)self->metadata.size;
    DO(watch_id(self));
    blz_fs_watch_close(&self->watch);
    STEP(blz_fs_remove_dir_all(&self->op, dir));
    BLZ_END(self->rc);
}

RUN_IN_A_DIRECTORY(uses_paths)

/* ---- copies ---- */

enum { NR_COPIES = 4 };

struct copies_all {
    BLZ_FRAME;
    int64_t rc;
    int i;
    blz_stream from, to;
    blz_stream far;
    blz_io io;
    blz_copy_op op;
    char buf[16];
};

static int file_with(const char *text)
{
    int fd = open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

    check(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    check(lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

static int stream_of_file(blz_stream *stream, const char *text)
{
    int fd = file_with(text), rc;
    blz_file file;

    rc = blz_file_from_fd(&file, fd, NULL);
    if (rc < 0)
        close(fd);
    else
        *stream = blz_file_stream(&file);
    return rc;
}

/* A socket whose other end has sent five bytes and its end. */
static int stream_of_socket(blz_stream *stream, blz_stream *far)
{
    blz_unix near, other;
    int rc = blz_unix_pair(&near, &other, NULL);

    if (rc < 0)
        return rc;
    *stream = blz_unix_stream(&near);
    *far = blz_unix_stream(&other);
    return 0;
}

static int stream_of_full_pipe(blz_stream *stream)
{
    int fds[2], rc;
    blz_pipe pipe_;

    check(pipe2(fds, O_CLOEXEC) == 0 && write(fds[1], "bytes", 5) == 5 && close(fds[1]) == 0);
    rc = blz_pipe_from_fd(&pipe_, fds[0], NULL);
    if (rc < 0)
        close(fds[0]);
    else
        *stream = blz_pipe_stream(&pipe_);
    return rc;
}

/* A socket with five bytes in it, behind which comes the end. */
static int stream_of_full_socket(blz_stream *stream)
{
    int fds[2], rc;
    blz_unix conn;

    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    check(write(fds[1], "bytes", 5) == 5 && close(fds[1]) == 0);
    rc = blz_unix_from_fd(&conn, fds[0], NULL);
    if (rc < 0)
        close(fds[0]);
    else
        *stream = blz_unix_stream(&conn);
    return rc;
}

/* From a file to a file and to a socket, from a pipe and from a socket to a socket. */
static int open_copy(struct copies_all *self)
{
    int rc = self->i == 2   ? stream_of_full_pipe(&self->from)
             : self->i == 3 ? stream_of_full_socket(&self->from)
                            : stream_of_file(&self->from, "bytes");

    if (rc < 0)
        return rc;
    return self->i == 0 ? stream_of_file(&self->to, "") : stream_of_socket(&self->to, &self->far);
}

BLZ_ASYNC(copies_all)
{
    BLZ_BEGIN;
    for (self->i = 0; self->i < NR_COPIES && self->rc >= 0; self->i++) {
        DO(open_copy(self));
        STEP(blz_copy(&self->op, self->from, self->to, NULL));
        if (self->i > 0)
            STEP(blz_stream_read(&self->io, &self->far, self->buf, sizeof self->buf));
        blz_stream_close(&self->from);
        blz_stream_close(&self->to);
        blz_stream_close(&self->far);
    }
    BLZ_END(self->rc);
}

RUN_SCENARIO(copies_all, options)

/* ---- standard streams ---- */

struct uses_stdio {
    BLZ_FRAME;
    int64_t rc;
    int fds[2];
    blz_stream in, out, file;
    blz_io io;
    char buf[16];
};

BLZ_ASYNC(uses_stdio)
{
    BLZ_BEGIN;
    check(pipe2(self->fds, O_CLOEXEC) == 0);
    DO(blz_stdio_open(&self->in, self->fds[0], NULL));
    DO(blz_stdio_open(&self->out, self->fds[1], NULL));
    STEP(blz_stream_write(&self->io, &self->out, "text", 4));
    STEP(blz_stream_read(&self->io, &self->in, self->buf, sizeof self->buf));
    blz_stream_close(&self->in);
    blz_stream_close(&self->out);
    close(self->fds[0]);
    close(self->fds[1]);
    self->fds[0] = file_with("text");
    DO(blz_stdio_open(&self->file, self->fds[0], NULL));
    STEP(blz_stream_read(&self->io, &self->file, self->buf, sizeof self->buf));
    blz_stream_close(&self->file);
    close(self->fds[0]);
    BLZ_END(self->rc);
}

RUN_SCENARIO(uses_stdio, options)

const struct scenario file_scenarios[] = {
    {"files", run_uses_files_in_a_directory, NULL},
    {"paths", run_uses_paths_in_a_directory, NULL},
    {"copies", run_copies_all, NULL},
    {"standard streams", run_uses_stdio, NULL},
    {NULL, NULL, NULL},
};
