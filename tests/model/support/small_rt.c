/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime of small_rt.h. */
#include "small_rt.h"

#include "system/thread.h"

blz_rt *small_rt_new(unsigned workers, const blz__driver_ops *driver_ops)
{
    blz_options options = {.workers = workers, .watchdog_ns = BLZ_NEVER, .seed = 1};
    blz_rt *rt;

    model_assert(blz__rt_create(&rt, &options, driver_ops) == 0);
    rt->started = true; /* by the test */
    return rt;
}

void small_rt_free(blz_rt *rt)
{
    model_assert(blz__rt_live(rt) == 0);
    blz__rt_destroy(rt);
}

void small_rt_be(blz_worker *w)
{
    blz__worker_set_current(w);
}

void small_rt_pretend(blz_worker *w)
{
    static blz_cx in_a_poll;

    blz__worker_set_current(w);
    w->cx = &in_a_poll;
}

int small_rt_pretended(blz_worker *w, int rc)
{
    w->cx = NULL;
    return rc;
}

bool small_rt_poll(blz_worker *w)
{
    blz_task *task = blz__worker_next(w);

    if (!task)
        task = blz__worker_take_share(w);
    if (task)
        blz__worker_poll(w, task);
    return task != NULL;
}

void small_rt_poll_all(blz_worker *w)
{
    while (small_rt_poll(w))
        ;
}

int64_t small_rt_join(blz_worker *w, blz_handle *handle)
{
    while (!blz_handle_done(handle))
        if (!small_rt_poll(w))
            blz__thread_yield();
    int64_t result = ((blz_future *)blz_handle_frame(handle))->result;
    blz_handle_detach(handle);
    return result;
}
