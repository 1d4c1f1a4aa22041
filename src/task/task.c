/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task from its first byte to its last: initialise, complete, destroy; names and task-locals.
 *
 * The ext of a task is read by dumps, which hold the heap's walk lock but no reference: so it is
 * destroyed under that lock. Everything else is touched only by the worker that runs the task, or
 * by holders of a reference after it has completed.
 */
#include "task/task.h"
#include "task/wait.h"

#include <blitz/error.h>
#include <string.h>

/* ---- life ---- */

/* Frames are mostly a few words: not worth a call. Their size is a multiple of 8. */
static inline void copy_frame(void *to, const void *from, size_t size)
{
    if (blz_unlikely(size > 128)) {
        memcpy(to, from, size);
        return;
    }
    for (size_t i = 0; i < size; i += 8)
        memcpy((char *)to + i, (const char *)from + i, 8);
}

void blz__task_init(blz_task *task, const void *frame, size_t size, const char *origin, uint64_t id)
{
    task->next = NULL;
    blz__plain_write(&task->join);
    task->join = (blz_waker){NULL, NULL};
    blz__store(&task->origin, (uintptr_t)origin, RELAXED);
    blz__store(&task->id, id << 1, RELAXED);
    blz__store(&task->polls, 0u, RELAXED);
    blz__store(&task->busy, 0u, RELAXED);
    blz__plain_write(&task->root->child);
    copy_frame(task->root, frame, size);
    task->root->result = 0; /* carried the size of the tail */
}

/* The completer owns the slot: wake whoever is in it. */
static void wake_joiner(blz_task *task)
{
    blz__plain_read(&task->join);
    blz_waker joiner = task->join;
    uint64_t group;
    blz_task *parent = task_of_waker(&joiner, &group);

    if (parent) {
        enum task_action action = task_state_wake_group(&parent->state, group, true);
        if (action == TASK_QUEUE)
            blz__sched_queue_joiner(parent);
        else
            task_act(parent, action);
    } else if (joiner.ops->wake)
        blz_waker_wake(&joiner);
    else
        ((const struct join_hook_ops *)(const void *)joiner.ops)->complete(joiner.data, task);
}

void blz__task_complete(blz_task *task, uint32_t unused)
{
    bool destroy;

    if (task_state_is_private(&task->state, unused, 1)) {
        blz__task_destroy(task);
        return;
    }
    task_set_result(task);
    if (task_state_complete(&task->state, unused, &destroy)) {
        wake_joiner(task);
        destroy = task_state_unref(&task->state, unused + 1);
    }
    if (destroy)
        blz__task_destroy(task);
}

void blz__task_destroy(blz_task *task)
{
    if (blz_unlikely(task_has_ext(task)))
        blz__task_drop_ext(task);
    blz__plain_write(&task->root->child); /* after all accesses of others */
    blz__plain_write(&task->join);
    /* A walker that still sees the old word fails its compare-and-swap: it was not idle. */
    blz__store(&task->state, (uint64_t)0, RELAXED);
    blz__sched_free_block(task);
}

/* ---- references and wakers ---- */

blz_task *blz_task_ref(blz_task *task)
{
    task_hold(task);
    return task;
}

void blz_task_unref(blz_task *task)
{
    if (task && task_unhold(task))
        blz__task_destroy(task);
}

void blz_task_cancel(blz_task *task)
{
    task_act(task, task_state_cancel(&task->state));
}

static void drop_waker(blz_task *task)
{
    if (task_state_unref(&task->state, 1))
        blz__task_destroy(task);
}

static void waker_wake(void *data)
{
    blz_task *task = data;
    task_act(task, task_state_wake(&task->state, true));
}

static void waker_wake_by_ref(void *data)
{
    task_wake(data);
}

static void waker_clone(void *data)
{
    task_state_ref(&((blz_task *)data)->state, 1);
}

static void waker_drop(void *data)
{
    drop_waker(data);
}

const blz_waker_ops blz__task_waker_ops = {
    waker_wake, waker_wake_by_ref, waker_clone, waker_drop, {NULL, NULL}};

/* `data` of a branch's waker; `tags` is the number of the group less what is in there. */
static void branch_wake(void *data, uint32_t tags, bool consume)
{
    blz_task *task = branch_waker_task(data);
    uint64_t group = TASK_GROUP(tags + (uintptr_t)data % BRANCH_WAKER_TAGS);

    task_act(task, task_state_wake_group(&task->state, group, consume));
}

static void branch_wake_low(void *data)
{
    branch_wake(data, 0, true);
}

static void branch_wake_low_by_ref(void *data)
{
    branch_wake(data, 0, false);
}

static void branch_wake_high(void *data)
{
    branch_wake(data, BRANCH_WAKER_TAGS, true);
}

static void branch_wake_high_by_ref(void *data)
{
    branch_wake(data, BRANCH_WAKER_TAGS, false);
}

static void branch_clone(void *data)
{
    task_state_ref(&branch_waker_task(data)->state, 1);
}

static void branch_drop(void *data)
{
    drop_waker(branch_waker_task(data));
}

_Static_assert(TASK_GROUP_COUNT == 2 * BRANCH_WAKER_TAGS, "one kind of waker for each half");

const blz_waker_ops blz__branch_waker_ops[] = {
    {branch_wake_low, branch_wake_low_by_ref, branch_clone, branch_drop, {NULL, NULL}},
    {branch_wake_high, branch_wake_high_by_ref, branch_clone, branch_drop, {NULL, NULL}},
};

void blz__task_waker_drop(blz_cx *cx, blz_waker *waker)
{
    uint64_t group;
    const blz_task *task = task_of_waker(waker, &group);

    if (task && task == cx->task)
        cx->refs_left++;
    else
        blz_waker_drop(waker);
}

blz_waker blz_cx_waker(blz_cx *cx)
{
    if (blz_unlikely(cx->refs_left == 0)) {
        if (!cx->task)
            return blz__thread_waker(cx);
        task_state_ref(&cx->task->state, TASK_BIAS);
        cx->refs_left = TASK_BIAS;
    }
    cx->refs_left--;
    if (blz_unlikely(cx->group))
        return branch_waker(cx->task, cx->group - 1);
    return (blz_waker){cx->task, &blz__task_waker_ops};
}

blz_rt *blz_cx_rt(const blz_cx *cx)
{
    return cx->task ? blz__heap_rt(cx->task) : NULL;
}

/* ---- ids, names ---- */

uint64_t blz_task_id(const blz_task *task)
{
    return blz__load(&task->id, RELAXED) >> 1;
}

const char *blz__task_origin(const blz_task *task)
{
    struct task_ext *ext = task_ext(task);
    return ext ? ext->origin : (const char *)blz__load(&task->origin, RELAXED);
}

const char *blz_task_name(const blz_task *task)
{
    const char *given = task_given_name(task);
    return given ? given : task->root->ops->name;
}

int blz__task_make_ext(blz_task *task)
{
    blz_rt *rt = blz__heap_rt(task);
    struct task_ext *ext;

    if (task_has_ext(task))
        return 0;
    if (blz__rt_is_forked(rt))
        return -EOWNERDEAD; /* the lock may be held by a thread that the child does not have */
    ext = blz__rt_alloc(rt, sizeof *ext, _Alignof(struct task_ext));
    if (!ext)
        return -ENOMEM;
    memset(ext, 0, sizeof *ext);
    ext->origin = (const char *)blz__load(&task->origin, RELAXED);
    blz__heap *heap = blz__heap_of(task);
    blz__lock_acquire(&heap->walk_lock); /* dumps see both words change at once */
    blz__store(&task->origin, (uintptr_t)ext, RELAXED);
    /* release: the ext; pairs with the acquire in task_has_ext */
    blz__store(&task->id, blz__load(&task->id, RELAXED) | 1, RELEASE);
    blz__lock_release(&heap->walk_lock);
    return 0;
}

void blz__task_drop_ext(blz_task *task)
{
    blz_rt *rt = blz__heap_rt(task);
    blz__heap *heap = blz__heap_of(task);
    struct task_ext *ext = task_ext(task);

    if (blz__rt_is_forked(rt))
        return; /* the lock may be held by a thread that the child does not have */
    blz__lock_acquire(&heap->walk_lock);
    blz__store(&task->origin, (uintptr_t)ext->origin, RELAXED);
    blz__store(&task->id, blz__load(&task->id, RELAXED) & ~(uint64_t)1, RELAXED);
    blz__lock_release(&heap->walk_lock);

    for (uint32_t i = 0; i < ext->nr_locals; i++)
        if (ext->locals[i].key->destroy && ext->locals[i].value)
            ext->locals[i].key->destroy(ext->locals[i].value);
    if (ext->locals)
        blz__rt_free(rt, ext->locals, ext->max_locals * sizeof *ext->locals,
                     _Alignof(struct task_local));
    while (ext->name) {
        struct task_name *older = ext->name->older;
        blz__rt_free(rt, ext->name, ext->name->size, _Alignof(struct task_name));
        ext->name = older;
    }
    blz__rt_free(rt, ext, sizeof *ext, _Alignof(struct task_ext));
}

int blz__task_rename(blz_task *task, const char *name)
{
    size_t len = strlen(name) + 1, size = sizeof(struct task_name) + len;
    struct task_name *newest;
    int rc = blz__task_make_ext(task);

    if (rc < 0)
        return rc;
    newest = blz__rt_alloc(blz__heap_rt(task), size, _Alignof(struct task_name));
    if (!newest)
        return -ENOMEM;
    struct task_ext *ext = task_ext(task);
    newest->older = ext->name;
    newest->size = size;
    memcpy(newest->text, name, len);
    blz__store(&ext->name, newest, RELEASE); /* pairs with the acquire in task_given_name */
    return 0;
}

int blz_task_set_name(const char *name)
{
    blz_task *task = blz_task_current();
    return task ? blz__task_rename(task, name) : -ENXIO;
}

/* ---- task-locals ---- */

static struct task_local *find_local(struct task_ext *ext, const blz_local *key)
{
    for (uint32_t i = 0; ext && i < ext->nr_locals; i++)
        if (ext->locals[i].key == key)
            return &ext->locals[i];
    return NULL;
}

static struct task_local *add_local(blz_rt *rt, struct task_ext *ext, const blz_local *key)
{
    if (ext->nr_locals == ext->max_locals) {
        uint32_t max = ext->max_locals ? 2 * ext->max_locals : 4;
        struct task_local *bigger =
            blz__rt_alloc(rt, max * sizeof *bigger, _Alignof(struct task_local));
        if (!bigger)
            return NULL;
        if (ext->locals) {
            memcpy(bigger, ext->locals, ext->nr_locals * sizeof *bigger);
            blz__rt_free(rt, ext->locals, ext->max_locals * sizeof *bigger,
                         _Alignof(struct task_local));
        }
        ext->locals = bigger;
        ext->max_locals = max;
    }
    struct task_local *local = &ext->locals[ext->nr_locals++];
    *local = (struct task_local){key, NULL};
    return local;
}

int blz_local_set(const blz_local *key, void *value)
{
    blz_task *task = blz_task_current();
    struct task_local *local;
    int rc;

    if (!task)
        return -ENXIO;
    local = find_local(task_ext(task), key);
    if (!local) {
        if (!value)
            return 0;
        rc = blz__task_make_ext(task);
        if (rc < 0)
            return rc;
        local = add_local(blz__heap_rt(task), task_ext(task), key);
        if (!local)
            return -ENOMEM;
    }
    void *old = local->value;
    local->value = value;
    if (old && old != value && key->destroy)
        key->destroy(old);
    return 0;
}

void *blz_local_get(const blz_local *key)
{
    blz_task *task = blz_task_current();
    struct task_local *local = task ? find_local(task_ext(task), key) : NULL;

    return local ? local->value : NULL;
}
