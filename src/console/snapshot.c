/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots; see snapshot.h. The walk hands out up to STEP tasks at a time, with a lock of the
 * runtime's heaps held for so long at most; here they are packed into rows, without any. Between
 * two steps the target is left, so that a runtime that ends need not wait for us, and other
 * connections of the console have their turn.
 *
 * The strings in a frame are in static storage: they are read here, right after the step, and not
 * later, when the code that they belong to may have been unloaded.
 */
#include "console/console.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "system/clock.h"

#include <string.h>

enum { STEP = 128 };

/* Room for one element more. */
static bool grow(const blz_allocator *allocator, void **array, size_t *max, size_t count,
                 size_t size)
{
    size_t bigger = *max ? *max * 2 : 256;
    void *new_array;

    if (count < *max)
        return true;
    new_array = blz__alloc(allocator, bigger * size, _Alignof(uint64_t));
    if (!new_array)
        return false;
    if (*array) {
        memcpy(new_array, *array, count * size);
        blz__free(allocator, *array, *max * size, _Alignof(uint64_t));
    }
    *array = new_array;
    *max = bigger;
    return true;
}

static void drop(const blz_allocator *allocator, void *array, size_t max, size_t size)
{
    if (array)
        blz__free(allocator, array, max * size, _Alignof(uint64_t));
}

void blz__snapshot_init(struct snapshot *s, const blz_allocator *allocator)
{
    *s = (struct snapshot){.allocator = allocator};
    s->names.allocator = s->names.bytes.allocator = allocator;
    s->stacks.allocator = s->stacks.bytes.allocator = allocator;
    s->stack_json.allocator = allocator;
}

void blz__snapshot_free(struct snapshot *s)
{
    drop(s->allocator, s->rows, s->max_rows, sizeof *s->rows);
    drop(s->allocator, s->waits, s->max_waits, sizeof *s->waits);
    drop(s->allocator, s->stack_texts, s->max_stack_texts, sizeof *s->stack_texts);
    drop(s->allocator, s->index, s->index_size, sizeof *s->index);
    blz__bag_free(&s->names);
    blz__bag_free(&s->stacks);
    blz__text_free(&s->stack_json);
    blz__snapshot_init(s, s->allocator);
}

static void clear(struct snapshot *s)
{
    if (s->index)
        memset(s->index, 0, s->index_size * sizeof *s->index);
    s->nr_rows = s->nr_waits = s->nr_cancelled = 0;
    memset(s->nr_state, 0, sizeof s->nr_state);
    blz__bag_clear(&s->names);
    blz__bag_clear(&s->stacks);
    text_clear(&s->stack_json);
    s->failed = false;
}

/* ---- a task ---- */

static uint32_t name_of(struct snapshot *s, const char *string)
{
    bool fresh;
    return blz__bag_add(&s->names, string, strlen(string), &fresh);
}

static const char *without_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void write_stack(struct text *out, const struct observed_task *task)
{
    blz__text_add(out, "[", 1);
    for (uint32_t i = 0; i < task->nr_frames; i++) {
        const struct observed_frame *frame = &task->frames[i];

        blz__text_print(out, "%s{\"depth\":%u,\"fn\":", i ? "," : "", frame->depth);
        blz__text_json(out, frame->name, strlen(frame->name));
        if (frame->branch >= 0)
            blz__text_print(out, ",\"branch\":%d", frame->branch);
        if (frame->file) {
            const char *file = without_folder(frame->file);
            blz__text_add(out, ",\"at\":", 6);
            blz__text_json(out, file, strlen(file));
            out->len -= !out->failed; /* the line comes before the quote */
            blz__text_print(out, ":%u\"", frame->line);
        }
        blz__text_add(out, "}", 1);
    }
    blz__text_add(out, "]", 1);
}

static uint32_t stack_of(struct snapshot *s, const struct observed_task *task)
{
    size_t at = s->stack_json.len;
    bool fresh;
    uint32_t stack =
        blz__bag_add(&s->stacks, task->frames, task->nr_frames * sizeof task->frames[0], &fresh);

    if (!fresh)
        return stack;
    if (!grow(s->allocator, (void **)&s->stack_texts, &s->max_stack_texts, stack,
              sizeof *s->stack_texts)) {
        s->failed = true;
        return 0;
    }
    write_stack(&s->stack_json, task);
    s->stack_texts[stack] = (struct stack_text){at, s->stack_json.len - at};
    return stack;
}

static void add_waits(struct snapshot *s, struct row *row, const struct observed_task *task)
{
    row->first_wait = (uint32_t)s->nr_waits;
    for (uint32_t i = 0; i < task->nr_waits; i++) {
        const struct observed_wait *from = &task->waits[i];

        if (!grow(s->allocator, (void **)&s->waits, &s->max_waits, s->nr_waits, sizeof *s->waits)) {
            s->failed = true;
            return;
        }
        s->waits[s->nr_waits++] = (struct wait){.id = task->id,
                                                .holder = from->holder,
                                                .holder32 = from->holder32,
                                                .object = from->object,
                                                .due_ns = from->due_ns,
                                                .kind = name_of(s, from->kind),
                                                .row = (uint32_t)s->nr_rows,
                                                .fd = from->fd,
                                                .optional = from->optional};
        row->nr_waits++;
    }
}

static void add_task(struct snapshot *s, const struct observed_task *task)
{
    struct row row = {.id = task->id,
                      .since_ns = task->since_ns,
                      .busy_ns = task->busy_ns,
                      .polls = task->polls,
                      .state = task->state,
                      .cancelled = task->cancelled,
                      .worker = (int16_t)task->worker};

    if (!grow(s->allocator, (void **)&s->rows, &s->max_rows, s->nr_rows, sizeof *s->rows)) {
        s->failed = true;
        return;
    }
    row.name = name_of(s, task->name);
    row.origin = name_of(s, without_folder(task->origin));
    row.stack = stack_of(s, task);
    add_waits(s, &row, task);
    s->nr_state[row.state]++;
    s->nr_cancelled += row.cancelled;
    s->rows[s->nr_rows++] = row;
    s->failed |= s->names.failed || s->stacks.failed || s->stack_json.failed;
}

/* ---- all of them ---- */

static bool begin(struct blz__snapshot_take *take)
{
    blz_rt *rt = blz__target_enter(take->target);

    clear(&take->target->snapshot);
    if (!rt)
        return false;
    blz__observe_begin(&take->target->walk, rt);
    take->target->walking = true;
    blz__target_leave(take->target);
    return true;
}

/* If the runtime ends before, it is ended there (see target_ended). */
static void end_walk(struct blz__snapshot_take *take)
{
    blz__observe_end(&take->target->walk);
    take->target->walking = false;
}

/* 0, with take->more; or a negative errno. */
static int64_t step(struct blz__snapshot_take *take)
{
    struct snapshot *s = &take->target->snapshot;
    size_t count = 0;

    if (!blz__target_enter(take->target))
        return -ESHUTDOWN;
    if (!s->failed)
        count = blz__observe_step(&take->target->walk, take->tasks, STEP, &take->more);
    if (s->failed || !take->more) {
        take->more = false;
        end_walk(take);
    }
    blz__target_leave(take->target);
    for (size_t i = 0; i < count && !s->failed; i++)
        add_task(s, &take->tasks[i]);
    return 0;
}

/* ---- the index ---- */

static size_t place_of(const struct snapshot *s, uint32_t half)
{
    return (half * 2654435769u) & (s->index_size - 1);
}

/* At most half full. */
static bool make_index(struct snapshot *s)
{
    size_t size = 256;

    while (size < s->nr_rows * 2)
        size *= 2;
    if (size != s->index_size) {
        drop(s->allocator, s->index, s->index_size, sizeof *s->index);
        s->index = blz__alloc(s->allocator, size * sizeof *s->index, _Alignof(uint64_t));
        s->index_size = s->index ? size : 0;
        if (!s->index)
            return false;
    }
    memset(s->index, 0, size * sizeof *s->index);
    for (size_t row = 0; row < s->nr_rows; row++) {
        size_t at = place_of(s, (uint32_t)s->rows[row].id);
        while (s->index[at])
            at = (at + 1) & (size - 1);
        s->index[at] = (uint32_t)row + 1;
    }
    return true;
}

const struct row *blz__snapshot_find(const struct snapshot *s, uint64_t id, uint32_t half)
{
    if (!s->index || (id == 0 && half == 0))
        return NULL;
    half = id ? (uint32_t)id : half;
    for (size_t at = place_of(s, half); s->index[at]; at = (at + 1) & (s->index_size - 1)) {
        const struct row *row = &s->rows[s->index[at] - 1];
        if (id ? row->id == id : (uint32_t)row->id == half)
            return row;
    }
    return NULL;
}

/* ---- the end ---- */

static void finish(struct blz__snapshot_take *take)
{
    struct snapshot *s = &take->target->snapshot;

    if (take->tasks)
        blz__free(s->allocator, take->tasks, STEP * sizeof *take->tasks, _Alignof(uint64_t));
    take->tasks = NULL;
    s->failed |= take->rc == 0 && !s->failed && !make_index(s);
    if (s->failed && take->rc == 0)
        take->rc = -ENOMEM;
    if (take->rc < 0)
        clear(s);
    s->failed = take->rc < 0;
    s->taken_ns = blz__clock_ns();
    s->took_ns = s->taken_ns - take->began_ns;
    s->number++;
}

/* Ends the walk: it is cancelled, with everything else. */
static void give_up(struct blz__snapshot_take *take)
{
    if (take->more && blz__target_enter(take->target)) {
        end_walk(take);
        blz__target_leave(take->target);
    }
}

BLZ_ASYNC_EXTERN(blz__snapshot_take)
{
    BLZ_BEGIN;
    self->began_ns = blz__clock_ns();
    self->tasks = blz__alloc(self->target->snapshot.allocator, STEP * sizeof *self->tasks,
                             _Alignof(uint64_t));
    self->rc = self->tasks ? 0 : -ENOMEM;
    if (self->rc == 0 && !begin(self))
        self->rc = -ESHUTDOWN;
    self->more = self->rc == 0;
    while (self->more && self->rc == 0) {
        self->rc = step(self);
        if (self->rc == 0 && self->more)
            BLZ_AWAIT(self->rc, blz_yield(&self->yield));
    }
    if (self->rc == -ECANCELED)
        give_up(self);
    finish(self);
    BLZ_END(self->rc);
}

void blz__snapshot_write_task(const struct snapshot *s, struct text *out, const struct row *row)
{
    size_t len;
    const char *name = bag_get(&s->names, row->name, &len);

    blz__text_print(out, "{\"id\":%llu,\"name\":", (unsigned long long)row->id);
    blz__text_json(out, name, len);
    blz__text_add(out, "}", 1);
}
