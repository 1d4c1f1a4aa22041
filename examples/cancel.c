/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a task is cancelled, and how it cleans up.
 *
 *     cancel [FILE]
 *
 * A logger gathers records for a file. Its parent cancels it while it waits for the next one. To
 * the logger that is an await that fails: it goes on to its cleanup, as after any error, flushes
 * what it has (which takes awaits too, hence the shield), closes the file and returns. The parent
 * joins it, sees how it ended, and reads its frame.
 */
#include <blitz.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- writing out a buffer, in steps ---- */

struct flush {
    BLZ_FRAME;
    FILE *file;
    const char *text;
    size_t left;
    int64_t rc;
    blz_future pause;
};

static void write_step(struct flush *self)
{
    size_t step = self->left < 16 ? self->left : 16;

    fwrite(self->text, 1, step, self->file);
    self->text += step;
    self->left -= step;
}

BLZ_ASYNC(flush)
{
    BLZ_BEGIN;
    while (self->left > 0) {
        write_step(self);
        BLZ_AWAIT(self->rc, blz_yield(&self->pause));
        if (self->rc < 0)
            break;
    }
    BLZ_END(self->rc);
}

/* ---- the logger ---- */

struct logger {
    BLZ_FRAME;
    const char *path;
    blz_oneshot *ready; /* told when the logger waits */
    FILE *file;
    char text[256];
    int nr_records;
    int64_t rc, flushed;
    blz_future next_record;
    struct flush flush;
};

static void add_record(struct logger *self)
{
    size_t len = strlen(self->text);

    self->nr_records++;
    snprintf(self->text + len, sizeof self->text - len, "record %d\n", self->nr_records);
}

BLZ_ASYNC(logger)
{
    BLZ_BEGIN;
    self->file = fopen(self->path, "w");
    if (!self->file) {
        self->rc = -errno;
        blz_oneshot_drop(self->ready);
        goto out;
    }
    while (self->nr_records < 3)
        add_record(self);
    printf("logger: %d records, waiting for more\n", self->nr_records);
    blz_oneshot_send(self->ready, 0);

    BLZ_AWAIT(self->rc, blz_pending(&self->next_record)); /* none will come */
    printf("logger: no more records: %s\n", blz_strerror(self->rc));

    /* We have been cancelled, so a plain await would be refused. A shield holds that off: here for
     * a call; for a single future there is BLZ_AWAIT_SHIELDED. */
    self->flushed = blz_shield(cx);
    if (self->flushed == 0) {
        BLZ_CALL(self->flushed, self->flush, flush, .file = self->file, .text = self->text,
                 .left = strlen(self->text));
        blz_unshield(cx);
    }
    printf("logger: flushed: %s\n", blz_strerror(self->flushed));
    fclose(self->file);
out:
    BLZ_END(self->rc);
}

/* ---- its parent ---- */

struct parent {
    BLZ_FRAME;
    const char *path;
    blz_handle logger;
    blz_handle_join_op join;
    blz_oneshot ready;
    blz_oneshot_op wait;
    int64_t rc;
};

BLZ_ASYNC(parent)
{
    BLZ_BEGIN;
    blz_oneshot_init(&self->ready);
    self->rc = BLZ_SPAWN_JOIN(&self->logger, logger, .path = self->path, .ready = &self->ready);
    if (self->rc < 0)
        goto out;
    BLZ_AWAIT(self->rc, blz_oneshot_recv(&self->wait, &self->ready, NULL));

    if (self->rc == 0)
        printf("parent: cancels the logger\n");
    blz_handle_cancel(&self->logger); /* asks; any thread could. Harmless if it has ended */
    /* Waits until it has ended. `keep`: so that its frame can still be read. */
    BLZ_AWAIT(self->rc, blz_handle_join_keep(&self->join, &self->logger));
    if (self->rc < 0)
        goto out_detach;
    printf("parent: the logger ended with: %s; it wrote %d records\n",
           blz_strerror(self->logger.result),
           ((struct logger *)blz_handle_frame(&self->logger))->nr_records);
    self->rc = self->logger.result == -ECANCELED ? 0 : self->logger.result;
out_detach:
    blz_handle_detach(&self->logger);
out:
    BLZ_END(self->rc);
}

int main(int argc, char **argv)
{
    int64_t rc = BLZ_RUN(parent, .path = argc > 1 ? argv[1] : "/dev/null");

    if (rc < 0)
        fprintf(stderr, "cancel: %s\n", blz_strerror(rc));
    return rc < 0;
}
