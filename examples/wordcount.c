/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts lines, words and bytes of files, as wc does, each file in a task of its own, on all cores.
 *
 *     wordcount FILE...
 *
 * The files are reported in the order in which they are done. Note what the parent does with its
 * children: it spawns them into a scope, takes them one by one as they end, and reads what they
 * found straight from their frames.
 *
 * What is in the system's memory is read at once; for the rest the ring or a thread waits, and the
 * worker goes on with other files.
 */
#include <blitz.h>
#include <ctype.h>
#include <stdio.h>

struct counts {
    uint64_t lines, words, bytes;
};

/* ---- one file: ends with 0 or a negative errno ---- */

struct count_file {
    BLZ_FRAME;
    const char *path;
    struct counts counts;
    bool in_word;
    int64_t rc;
    blz_file file;
    blz_io io;
    char piece[16384];
};

static void count_piece(struct count_file *self, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bool space = isspace((unsigned char)self->piece[i]);
        self->counts.lines += self->piece[i] == '\n';
        self->counts.words += !space && !self->in_word;
        self->in_word = !space;
    }
    self->counts.bytes += len;
}

BLZ_ASYNC(count_file)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_file_open(&self->io, &self->file, self->path, NULL));
    if (self->rc < 0)
        goto out;
    do {
        BLZ_AWAIT(self->rc, blz_file_read(&self->io, &self->file, self->piece, sizeof self->piece));
        if (self->rc > 0)
            count_piece(self, (size_t)self->rc);
    } while (self->rc > 0); /* until the end, an error, or a cancellation */
    blz_file_close(&self->file);
out:
    BLZ_END(self->rc);
}

/* ---- all files: ends with the number of those that failed ---- */

struct count_all {
    BLZ_FRAME;
    char **paths;
    struct counts total;
    int64_t rc, nr_files, nr_failed;
    blz_scope scope;
    blz_scope_op wait;
    blz_handle child;
};

static void print_counts(const struct counts *c, const char *name)
{
    printf("%8llu %8llu %10llu  %s\n", (unsigned long long)c->lines, (unsigned long long)c->words,
           (unsigned long long)c->bytes, name);
}

/* The child has ended, and its frame is ours to read until we detach it. */
static void report(struct count_all *self)
{
    const struct count_file *file = blz_handle_frame(&self->child);

    if (self->child.result < 0) {
        fprintf(stderr, "wordcount: %s: %s\n", file->path, blz_strerror(self->child.result));
        self->nr_failed++;
    } else {
        print_counts(&file->counts, file->path);
        self->total.lines += file->counts.lines;
        self->total.words += file->counts.words;
        self->total.bytes += file->counts.bytes;
    }
    blz_handle_detach(&self->child);
}

BLZ_ASYNC(count_all)
{
    BLZ_BEGIN;
    blz_scope_init(&self->scope, BLZ_SCOPE_COLLECT);
    for (; *self->paths; self->paths++, self->nr_files++) {
        self->rc = BLZ_SCOPE_SPAWN(&self->scope, count_file, .path = *self->paths);
        if (self->rc < 0) {
            fprintf(stderr, "wordcount: %s: %s\n", *self->paths, blz_strerror(self->rc));
            self->nr_failed++;
        }
    }
    for (;;) {
        BLZ_AWAIT(self->rc, blz_scope_next(&self->wait, &self->scope, &self->child));
        if (self->rc != 1)
            break; /* no more */
        report(self);
    }
    BLZ_AWAIT(self->rc, blz_scope_join(&self->wait, &self->scope));
    if (self->nr_files > 1)
        print_counts(&self->total, "total");
    BLZ_END(self->nr_failed);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: wordcount FILE...\n");
        return 2;
    }
    return BLZ_RUN(count_all, .paths = argv + 1) != 0;
}
