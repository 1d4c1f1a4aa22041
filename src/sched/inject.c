/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inject queue of inject.h. The length is published by a seq_cst exchange after the list has
 * changed: it is the pusher's half of the Dekker pair with a worker that parks (idle.h).
 */
#include "sched/inject.h"

static void publish_len(inject *q)
{
    blz__swap(&q->len, (uint64_t)q->list.count, SEQ_CST);
}

void inject_push(inject *q, task_list *tasks)
{
    blz__lock_acquire(&q->lock);
    task_list_join(&q->list, tasks);
    publish_len(q);
    blz__lock_release(&q->lock);
}

bool inject_spawn(inject *q, blz_task *task)
{
    bool open;

    blz__lock_acquire(&q->lock);
    open = !q->closed;
    if (open) {
        task_list_append(&q->list, task);
        blz__store(&q->spawned, q->spawned + 1, RELAXED);
        publish_len(q);
    }
    blz__lock_release(&q->lock);
    return open;
}

void inject_close(inject *q)
{
    blz__lock_acquire(&q->lock);
    q->closed = true;
    blz__lock_release(&q->lock);
}

task_list inject_take(inject *q, uint32_t max)
{
    task_list taken = {NULL, NULL, 0};

    if (inject_len(q) == 0)
        return taken;
    blz__lock_acquire(&q->lock);
    while (taken.count < max && q->list.first)
        task_list_append(&taken, task_list_take(&q->list));
    publish_len(q);
    blz__lock_release(&q->lock);
    return taken;
}
