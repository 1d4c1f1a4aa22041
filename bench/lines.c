/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Going through the lines of a file that is in memory: 1 GiB in lines of 80 bytes (one operation is
 * a line), beside a loop of getline(3), and beside `wc -l` from its start to its end, which only
 * counts. The file has a name for a moment only, in $TMPDIR or /tmp.
 */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE = 80, PIECE = LINE * 1024, BUFFER = 128 << 10 };

#define FILE_SIZE (1ll << 30)
#define NR_LINES  ((uint64_t)(FILE_SIZE / LINE))

/* The file is made once, and read once so that it is in memory; from now on at its beginning. */
static int the_file(void)
{
    static int fd = -1;
    static char piece[PIECE];

    if (fd < 0) {
        FILE *file = tmpfile();
        bench_check(file ? 0 : -errno, "tmpfile");
        fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, 3);
        fclose(file);
        for (size_t i = 0; i < sizeof piece; i++)
            piece[i] = (char)(i % LINE == LINE - 1 ? '\n' : 'a' + i % 26);
        for (uint64_t left = NR_LINES * LINE; left > 0;) {
            ssize_t n = write(fd, piece, left < PIECE ? left : PIECE);
            bench_check(n > 0 ? 0 : -errno, "write");
            left -= (uint64_t)n;
        }
        bench_check(lseek(fd, 0, SEEK_SET), "lseek");
        while (read(fd, piece, PIECE) > 0)
            ;
    }
    bench_check(lseek(fd, 0, SEEK_SET), "lseek");
    return fd;
}

static void check_count(const struct run *run, uint64_t lines, uint64_t bytes)
{
    bench_check(lines == run->n && bytes == run->n * (LINE - 1) ? 0 : -EIO, "the lines");
}

/* ---- blitz ---- */

struct lines {
    BLZ_FRAME;
    struct run *run;
    blz_file file;
    blz_reader in;
    blz_split lines;
    uint64_t nr, bytes;
    int64_t rc;
};

BLZ_ASYNC(lines)
{
    blz_view line;
    BLZ_BEGIN;
    bench_check(blz_file_from_fd(&self->file, dup(the_file()), NULL), "from_fd");
    bench_start(self->run);
    bench_check(blz_reader_init(&self->in, blz_file_stream(&self->file), NULL, BUFFER), "reader");
    blz_lines_init(&self->lines, &self->in, 0);
    do {
        while (blz_split_next(&self->lines, &line)) {
            self->nr++;
            self->bytes += line.len;
        }
        BLZ_AWAIT(self->rc, blz_split_more(&self->lines));
        bench_check(self->rc, "lines");
    } while (self->rc > 0);
    blz_reader_free(&self->in);
    bench_stop(self->run);
    check_count(self->run, self->nr, self->bytes);
    blz_file_close(&self->file);
    BLZ_END(0);
}

static void lines_blitz(struct run *run)
{
    bench_check(BLZ_BLOCK_ON(run->rt, lines, .run = run), "lines");
}

/* ---- others ---- */

static void lines_getline(struct run *run)
{
    FILE *file = fdopen(dup(the_file()), "r");
    char *line = NULL;
    size_t size = 0;
    uint64_t nr = 0, bytes = 0;
    ssize_t n;

    bench_check(file ? 0 : -errno, "fdopen");
    bench_start(run);
    while ((n = getline(&line, &size, file)) > 0) {
        nr++;
        bytes += (uint64_t)n - 1;
    }
    bench_stop(run);
    check_count(run, nr, bytes);
    free(line);
    fclose(file);
}

static void lines_wc(struct run *run)
{
    int fd = the_file(), status;
    pid_t pid;

    bench_start(run);
    pid = fork();
    bench_check(pid < 0 ? -errno : 0, "fork");
    if (pid == 0) {
        dup2(fd, 0);
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 1);
        execlp("wc", "wc", "-l", (char *)NULL);
        _exit(1);
    }
    bench_check(waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -ECHILD, "wc");
    bench_stop(run);
}

const struct bench lines_benches[] = {
    {"lines", NR_LINES, lines_blitz, false},
    {"lines_getline", NR_LINES, lines_getline, false},
    {"lines_wc", NR_LINES, lines_wc, false},
    {0},
};
