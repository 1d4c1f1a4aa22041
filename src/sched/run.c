/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a program runs tasks on a runtime: by blocking on one, as its first worker until one has
 * ended, or by turns from a loop of its own.
 */
#include "sched/rt.h"
#include "system/thread.h"

#include <blitz/error.h>

/* ---- blocking ---- */

bool blz__sched_may_block(const blz_rt *rt)
{
    if (blz__sched_on_worker())
        return false;
    return !rt->embedded || blz__load(&rt->turn_owner, RELAXED) != blz__thread_id();
}

int64_t blz_block_on(blz_rt *rt, const void *frame, size_t size, const char *site)
{
    blz_handle handle = {NULL, 0};
    int rc;

    if (!rt)
        return -ENXIO;
    if (!blz__sched_may_block(rt))
        return -EDEADLK;
    rc = blz_spawn(frame, size, &(blz_spawn_args){.rt = rt, .handle = &handle, .site = site});
    if (rc == 0)
        rc = blz_handle_wait(&handle);
    return rc < 0 ? rc : handle.result;
}

/* ---- the calling thread as worker 0 ---- */

/* Ends blz__worker_run when the root task has. */
struct root_done {
    uint32_t done;
    blz_worker *worker;
    int64_t result;
};

static void root_ended(int64_t result, void *arg)
{
    struct root_done *root = arg;
    blz_worker *worker = root->worker; /* root is gone once it is done */

    blz__plain_write(&root->result);
    root->result = result;
    blz__store(&root->done, 1u, RELEASE); /* pairs with the acquire in blz__worker_run */
    blz__parker_unpark(&worker->parker);
}

static int64_t run_root(blz_rt *rt, const void *frame, size_t size, const char *site)
{
    struct root_done root = {.worker = &rt->workers[0]};
    blz_handle handle = {NULL, 0};
    int rc;

    blz__worker_set_current(root.worker);
    rc = blz__worker_spawn(root.worker, frame, size, &handle, site);
    if (rc == 0) {
        rc = blz_task_on_done(&handle, root_ended, &root);
        if (rc < 0) {
            blz_handle_cancel(&handle);
            blz_handle_detach(&handle);
        }
    }
    blz__worker_set_current(NULL);
    if (rc < 0)
        return rc;
    blz__worker_run(root.worker, &root.done, INT64_MAX);
    blz__plain_read(&root.result);
    return root.result;
}

int64_t blz_run(const void *frame, size_t size, const char *site, const blz_options *options)
{
    int64_t result;
    blz_rt *rt;
    int rc;

    if (blz__sched_on_worker())
        return -EDEADLK;
    if (options && options->embedded)
        return -EINVAL;
    rc = blz__rt_create(&rt, options, NULL);
    if (rc < 0)
        return rc;
    rc = blz__rt_start(rt, true);
    if (rc < 0) {
        blz__rt_destroy(rt);
        return rc;
    }
    if (rt->options.on_thread_start)
        rt->options.on_thread_start(0, rt->options.hook_arg);
    result = run_root(rt, frame, size, site);
    rc = blz__rt_shutdown(rt, &rt->workers[0], rt->options.shutdown_ns);
    if (rt->options.on_thread_stop)
        rt->options.on_thread_stop(0, rt->options.hook_arg);
    blz__rt_end(rt);
    return rc < 0 && result >= 0 ? rc : result;
}

/* ---- embedding ---- */

int blz_rt_fd(blz_rt *rt)
{
    blz__driver *driver = rt->workers[0].driver;
    return rt->embedded ? driver->ops->fd(driver) : -ENOTSUP;
}

int64_t blz_rt_deadline(blz_rt *rt)
{
    int64_t next_ns = blz__wheel_next(&rt->workers[0].wheel, false);

    return rt->test_clock.on ? blz__test_clock_real(&rt->test_clock, next_ns) : next_ns;
}

int64_t blz_rt_turn(blz_rt *rt)
{
    blz_worker *w = &rt->workers[0];
    int rc;

    if (!rt->embedded)
        return -ENOTSUP;
    if (rt_is_forked(rt))
        return -EOWNERDEAD;
    if (blz__sched_on_worker() || blz__ready_thread_is_me(rt))
        return -EDEADLK;
    if (!blz__load(&rt->started, ACQUIRE)) {
        rc = blz__rt_start(rt, false);
        if (rc < 0)
            return rc;
    }
    if (!blz__rt_is_turn_owner(rt))
        return -EPERM;
    return blz__worker_turn(w);
}
