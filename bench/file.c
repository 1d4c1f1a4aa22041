/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a file that is in memory: from its beginning to its end in pieces of 64 KiB (one
 * operation is a piece), beside a plain loop of read(2); and pieces of 4 KiB from anywhere, 32 at a
 * time (one operation is a read). The file has a name for a moment only, in $TMPDIR or /tmp.
 */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 64 << 10, SMALL = 4 << 10, IN_FLIGHT = 32 };

#define FILE_SIZE (1ll << 30)

/* The file is made once, and read once so that it is in memory. */
static int the_file(void)
{
    static int fd = -1;
    static char piece[PIECE];

    if (fd >= 0)
        return fd;
    FILE *file = tmpfile();
    bench_check(file ? 0 : -errno, "tmpfile");
    fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, 3);
    fclose(file);
    memset(piece, 'x', sizeof piece);
    for (int64_t i = 0; i < FILE_SIZE / PIECE; i++)
        bench_check(write(fd, piece, PIECE) == PIECE ? 0 : -errno, "write");
    bench_check(lseek(fd, 0, SEEK_SET), "lseek");
    while (read(fd, piece, PIECE) > 0)
        ;
    return fd;
}

static char *memory(size_t size)
{
    char *buf = malloc(size);

    bench_check(buf ? 0 : -ENOMEM, "memory");
    memset(buf, 0, size);
    return buf;
}

/* ---- from the beginning to the end ---- */

struct file_seq {
    BLZ_FRAME;
    struct run *run;
    blz_file file;
    blz_io io;
    char *buf;
    uint64_t i;
    int64_t n;
};

BLZ_ASYNC(file_seq)
{
    BLZ_BEGIN;
    self->buf = memory(PIECE);
    bench_check(blz_file_from_fd(&self->file, dup(the_file()), NULL), "from_fd");
    bench_check(blz_file_seek(&self->file, 0, SEEK_SET), "seek");
    bench_start(self->run);
    for (self->i = 0; self->i < self->run->n; self->i++) {
        BLZ_AWAIT(self->n, blz_file_read(&self->io, &self->file, self->buf, PIECE));
        bench_check(self->n == PIECE ? 0 : -EIO, "file_read");
    }
    bench_stop(self->run);
    blz_file_close(&self->file);
    free(self->buf);
    BLZ_END(0);
}

static void file_read_seq(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, file_seq, .run = run), "file_read_seq");
}

static void file_read_seq_plain(struct run *run)
{
    char *buf = memory(PIECE);
    int fd = the_file();

    bench_check(lseek(fd, 0, SEEK_SET), "lseek");
    bench_start(run);
    for (uint64_t i = 0; i < run->n; i++)
        bench_check(read(fd, buf, PIECE) == PIECE ? 0 : -EIO, "read");
    bench_stop(run);
    free(buf);
}

/* ---- from anywhere ---- */

struct file_reader {
    BLZ_FRAME;
    const blz_file *file;
    uint64_t seed, left;
    blz_io io;
    int64_t n;
    char buf[SMALL];
};

static int64_t next_offset(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((*seed >> 33) % (FILE_SIZE / SMALL)) * SMALL;
}

BLZ_ASYNC(file_reader)
{
    BLZ_BEGIN;
    for (; self->left > 0; self->left--) {
        BLZ_AWAIT(self->n, blz_file_read_at(&self->io, self->file, self->buf, SMALL,
                                            next_offset(&self->seed)));
        bench_check(self->n == SMALL ? 0 : -EIO, "file_read_at");
    }
    BLZ_END(0);
}

struct file_random {
    BLZ_FRAME;
    struct run *run;
    blz_file file;
    blz_handle readers[IN_FLIGHT];
    blz_handle_join_op join;
    int i;
    int64_t rc;
};

BLZ_ASYNC(file_random)
{
    BLZ_BEGIN;
    bench_check(blz_file_from_fd(&self->file, dup(the_file()), NULL), "from_fd");
    bench_start(self->run);
    for (int i = 0; i < IN_FLIGHT; i++)
        bench_check(BLZ_SPAWN_JOIN(&self->readers[i], file_reader, .file = &self->file,
                                   .seed = (uint64_t)i, .left = self->run->n / IN_FLIGHT),
                    "spawn");
    for (self->i = 0; self->i < IN_FLIGHT; self->i++) {
        BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->readers[self->i]));
        bench_check(self->rc, "reader");
    }
    bench_stop(self->run);
    blz_file_close(&self->file);
    BLZ_END(0);
}

static void file_read_random(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, file_random, .run = run), "file_read_random");
}

const struct bench file_benches[] = {
    {"file_read_seq", FILE_SIZE / PIECE, file_read_seq, false},
    {"file_read_seq_plain", FILE_SIZE / PIECE, file_read_seq_plain, false},
    {"file_read_random", 320000, file_read_random, false},
    {NULL, 0, NULL, false},
};
