/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file, by a task. Files have their turn in the order in which they were submitted, and each
 * one passes it on. It is waited for at the end of the file, or before that, when the output has
 * become too much to keep.
 *
 * There is a slot more than there are tasks: the turn behind a file is made before that file is
 * begun. The slot is free by then, because a task that passes the turn on has no more use for its
 * own.
 */
#include "grep.h"

#include <stdio.h>
#include <stdlib.h>

enum { OUT_MAX = 64 << 10 };

struct print {
    BLZ_FRAME;
    struct search *search;
    int64_t rc;
    union {
        blz_oneshot_op wait;
        blz_stream_op write;
    };
};

struct search {
    BLZ_FRAME;
    struct grep *grep;
    struct slot *slot, *next;
    char *path; /* NULL: standard input */
    bool in_turn;
    int64_t rc, room_len, printed;
    char *room;
    blz_file file;
    blz_stream in;
    union {
        blz_io io;
        struct print print;
    };
};

void complain(struct grep *grep, const char *path, int64_t error)
{
    fprintf(stderr, "grep: %s: %s\n", path, blz_strerror(error));
    atomic_store(&grep->failed, true);
}

/* ---- printing ---- */

static void note_written(struct grep *grep, int64_t rc)
{
    if (rc >= 0)
        return;
    atomic_store(&grep->stopped, true);
    atomic_store(&grep->failed, true);
    if (rc != -EPIPE) /* whoever reads has seen enough */
        complain(grep, "(standard output)", rc);
}

BLZ_ASYNC(print)
{
    BLZ_BEGIN;
    if (!self->search->in_turn)
        BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->wait, &self->search->slot->turn, NULL));
    self->search->in_turn = true;
    if (self->search->slot->finder.out_len > 0 && !atomic_load(&self->search->grep->stopped)) {
        self->write = (blz_stream_op){.done = 0};
        BLZ_AWAIT(self->rc, blz_stream_write_all(&self->write, &self->search->grep->output,
                                                 self->search->slot->finder.out,
                                                 self->search->slot->finder.out_len));
        note_written(self->search->grep, self->rc);
    }
    self->search->slot->finder.out_len = 0;
    BLZ_END(0);
}

/* ---- searching ---- */

static const char *name_of(const struct search *self)
{
    return self->path ? self->path : "(standard input)";
}

static void note_result(struct search *self)
{
    struct finder *finder = &self->slot->finder;

    if (self->rc >= 0)
        self->rc = find_end(finder);
    if (self->rc < 0)
        complain(self->grep, name_of(self), self->rc);
    if (finder->nr_selected > 0)
        atomic_store(&self->grep->found, true);
}

static bool goes_on(const struct search *self)
{
    return self->rc >= 0 && !self->slot->finder.ended && !atomic_load(&self->grep->stopped);
}

BLZ_ASYNC(search)
{
    BLZ_BEGIN;
    self->rc = find_begin(&self->slot->finder, &self->grep->settings, name_of(self));
    if (self->rc == 0 && !self->path)
        self->rc = blz_stdin(&self->in);
    if (self->rc == 0 && self->path) {
        BLZ_AWAIT(self->rc, blz_file_open(&self->io, &self->file, self->path, NULL));
        if (self->rc == 0)
            self->in = blz_file_stream(&self->file);
    }
    while (goes_on(self)) {
        self->rc = self->room_len = find_room(&self->slot->finder, &self->room);
        if (self->rc < 0)
            break;
        BLZ_AWAIT(self->rc,
                  blz_stream_read(&self->io, &self->in, self->room, (size_t)self->room_len));
        if (self->rc >= 0)
            self->rc = find_more(&self->slot->finder, (size_t)self->rc);
        if (self->slot->finder.out_len >= OUT_MAX) {
            BLZ_CALL(self->printed, self->print, print, .search = self);
            self->io = (blz_io){.done = 0};
        }
    }
    blz_stream_close(&self->in);
    note_result(self);
    BLZ_CALL(self->printed, self->print, print, .search = self);
    free(self->path);
    blz_oneshot_send(&self->next->turn, 0);
    blz_ignore(blz_semaphore_release(&self->grep->free_slots, 1));
    BLZ_END(0);
}

/* ---- submitting ---- */

static int64_t spawn_search(struct submit *self)
{
    struct grep *grep = self->grep;
    struct slot *slot = &grep->slots[grep->nr_files % TURNS];
    struct slot *next = &grep->slots[(grep->nr_files + 1) % TURNS];
    int rc;

    blz_oneshot_init(&next->turn);
    rc = BLZ_SPAWN(search, .grep = grep, .slot = slot, .next = next, .path = self->path);
    if (rc == 0)
        grep->nr_files++;
    return rc;
}

BLZ_ASYNC_EXTERN(submit)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_semaphore_acquire(&self->slot, &self->grep->free_slots, 1));
    if (self->rc == 0) {
        self->rc = spawn_search(self);
        if (self->rc < 0)
            blz_ignore(blz_semaphore_release(&self->grep->free_slots, 1));
    }
    if (self->rc < 0)
        free(self->path);
    BLZ_END(self->rc);
}
