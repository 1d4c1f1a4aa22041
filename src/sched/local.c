/* SPDX-License-Identifier: Apache-2.0 */
/* The watchdog's side of a worker's own queue (local.h). */
#include "sched/local.h"

#include "base/assert.h"

bool blz__local_empty(local_queue *local, task_list *tasks)
{
    if (!local->revocable || !blz__biased_lock_try_other(&local->lock))
        return false;
    blz__plain_write(&local->lifo);
    if (local->lifo)
        task_list_append(tasks, local->lifo);
    local->lifo = NULL;
    task_list_join(tasks, &local->resumed);
    task_list_join(tasks, &local->yielded);
    BLZ_ASSERT(!local->lifo && !local->yielded.first && !local->resumed.first);
    blz__biased_lock_leave_other(&local->lock);
    return true;
}
