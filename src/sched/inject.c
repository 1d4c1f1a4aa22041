/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inject queue of inject.h. The length is published by a seq_cst exchange after the list has
 * changed: it is the pusher's half of the Dekker pair with a worker that parks (idle.h).
 */
#include "sched/inject.h"

#include "base/assert.h"

static void publish_len(inject *q)
{
    BLZ_ASSERT(blz__lock_is_held(&q->lock));
    blz__plain_write(&q->list);
    blz__swap(&q->len, (uint64_t)q->list.count, SEQ_CST);
}

void blz__inject_push(inject *q, task_list *tasks)
{
    blz__lock_acquire(&q->lock);
    task_list_join(&q->list, tasks);
    publish_len(q);
    blz__lock_release(&q->lock);
}

void blz__inject_spawn_locked(inject *q, blz_task *task)
{
    BLZ_ASSERT(blz__lock_is_held(&q->lock));
    BLZ_ASSERT(!q->closed);
    task_list_append(&q->list, task);
    blz__store(&q->spawned, q->spawned + 1, RELAXED);
    publish_len(q);
}

bool blz__inject_spawn(inject *q, blz_task *task)
{
    bool open;

    blz__lock_acquire(&q->lock);
    blz__plain_read(&q->closed);
    open = !q->closed;
    if (open)
        blz__inject_spawn_locked(q, task);
    blz__lock_release(&q->lock);
    return open;
}

void blz__inject_close(inject *q)
{
    blz__lock_acquire(&q->lock);
    blz__plain_write(&q->closed);
    q->closed = true;
    blz__lock_release(&q->lock);
}

/* Cuts off the first `max` tasks, of more; what follows stays in `rest`. */
static task_list split(task_list *rest, uint32_t max)
{
    task_list taken = {rest->first, rest->first, max};

    BLZ_ASSERT(max > 0 && rest->count > max);
    for (uint32_t i = 1; i < max; i++) {
        taken.last = taken.last->next;
        task_prefetch_neighbour(taken.last);
    }
    rest->first = taken.last->next;
    rest->count -= max;
    taken.last->next = NULL;
    return taken;
}

/*
 * Walking the list means a cache miss a task, so it is done without the lock, on the whole list,
 * and the rest is put back in front of what has come meanwhile. Until then `len` still counts it,
 * or what has come since; a worker that looks meanwhile finds less than there is, and the caller
 * makes up for that by looking at the idle set when it leaves something.
 */
task_list blz__inject_take(inject *q, uint32_t max)
{
    task_list taken = {NULL, NULL, 0}, rest = {NULL, NULL, 0};

    if (inject_len(q) == 0)
        return taken;
    blz__lock_acquire(&q->lock);
    blz__plain_write(&q->list);
    if (q->list.count > max) {
        task_list_join(&rest, &q->list);
    } else {
        task_list_join(&taken, &q->list);
        publish_len(q);
    }
    blz__lock_release(&q->lock);
    if (!rest.first)
        return taken;

    taken = split(&rest, max);
    blz__lock_acquire(&q->lock);
    task_list_join(&rest, &q->list);
    q->list = rest;
    publish_len(q);
    blz__lock_release(&q->lock);
    return taken;
}
