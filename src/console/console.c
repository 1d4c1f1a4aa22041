/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The console's life.
 *
 * It has a runtime of its own, with one worker: it is not held up by what it looks at, does not
 * take a worker from it, and does not show up in it.
 *
 * The runtimes that it shows may end before it does. Each tells the console when its memory is
 * about to go (blz__rt_end_hook), on the thread that frees it: that waits until nobody looks, and
 * from then on the console has no way to the runtime any more.
 *
 *   rt       users   event           next
 *   -----------------------------------------------------------------------------------------
 *   set      n       enter           users + 1
 *   set      n       leave           users - 1
 *   set      n       ended           rt is NULL; waits for users to be 0
 *   NULL     n       enter           fails
 *   NULL     n       leave           users - 1; at 0 the one who waits is woken
 *
 * A console that lives as long as its runtime is freed in the same way, as the last thing.
 *
 * If the console's own tasks do not end in time, they may go on using the console, its snapshots
 * and the runtimes that it shows. All of that memory is leaked on purpose, and the runtimes still
 * tell the console when they end, and wait for a task that looks at them.
 */
#include "console/console.h"

#include "base/alloc.h"
#include "system/futex.h"

#include <blitz/runtime.h>
#include <blitz/error.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_ADDRESS "127.0.0.1:6670"

/* ---- targets ---- */

blz_rt *blz__target_enter(struct target *target)
{
    blz_console *console = target->console;
    blz_rt *rt;

    blz__lock_acquire(&console->lock);
    rt = target->rt;
    if (rt)
        target->users++;
    blz__lock_release(&console->lock);
    return rt;
}

void blz__target_leave(struct target *target)
{
    blz_console *console = target->console;
    bool last;

    blz__lock_acquire(&console->lock);
    last = blz__load(&target->users, RELAXED) == 1 && !target->rt;
    blz__store(&target->users, target->users - 1, RELEASE); /* pairs with wait_for_users */
    blz__lock_release(&console->lock);
    if (last)
        blz__futex_wake(&target->users, 1);
}

static void wait_for_users(struct target *target)
{
    uint32_t users;

    while ((users = blz__load(&target->users, ACQUIRE)) > 0) /* pairs with target_leave */
        blz__futex_wait(&target->users, users);
}

static int console_end(blz_console *console);

/* The thread that frees the runtime calls this. */
static void target_ended(blz__rt_end_hook *hook, blz_rt *rt)
{
    struct target *target = (struct target *)hook;
    blz_console *console = target->console;
    bool ends = console->until_rt_ends && target == &console->targets[0];

    (void)rt;
    blz__lock_acquire(&console->lock);
    target->rt = NULL;
    blz__lock_release(&console->lock);
    wait_for_users(target);
    if (target->walking)
        blz__observe_end(&target->walk);     /* it will not be gone on with */
    blz__store(&target->ended, 1u, RELEASE); /* pairs with the acquire in forget_targets */
    if (ends)
        (void)console_end(console);
    else
        blz__futex_wake(&target->ended, 1);
}

/* The runtimes no longer know of us. One that is ending has told us, when this returns. */
static void forget_targets(blz_console *console)
{
    for (uint32_t i = 0; i < console->nr_targets; i++) {
        struct target *target = &console->targets[i];
        blz_rt *rt = blz__target_enter(target);
        bool forgotten = rt && blz__rt_remove_end_hook(rt, &target->end_hook);

        if (rt)
            blz__target_leave(target);
        if (forgotten)
            continue;
        while (!blz__load(&target->ended, ACQUIRE)) /* pairs with the release in target_ended */
            blz__futex_wait(&target->ended, 0);
    }
}

static int add_target(blz_console *console, blz_rt *rt)
{
    struct target *target = &console->targets[console->nr_targets];
    int rc;

    *target = (struct target){.end_hook.ended = target_ended, .console = console, .rt = rt};
    blz__snapshot_init(&target->snapshot, &console->allocator);
    rc = blz__rt_add_end_hook(rt, &target->end_hook);
    if (rc == 0)
        console->nr_targets++;
    return rc;
}

static int add_targets(blz_console *console, blz_rt *rt, const blz_console_options *options)
{
    int rc = add_target(console, rt);

    for (size_t i = 0; i < options->nr_others && rc == 0; i++)
        rc = add_target(console, options->others[i]);
    if (rc < 0)
        forget_targets(console);
    return rc;
}

/* ---- starting ---- */

static void fill_in(blz_console *console, const blz_allocator *allocator,
                    const blz_console_options *options)
{
    memset(console, 0, sizeof *console);
    console->allocator = *allocator;
    console->until_rt_ends = options->until_rt_ends;
    blz_mutex_init(&console->snapshot_mutex);
    snprintf(console->title, sizeof console->title, "%s",
             options->title ? options->title : "blitz");
    for (size_t i = 0; i < options->nr_pools; i++)
        console->pools[console->nr_pools++] = options->pools[i];
}

static int open_runtime(blz_console *console, const blz_console_options *options)
{
    return blz_rt_new(&console->rt, &(blz_options){.workers = 1,
                                                   .name = "console",
                                                   .allocator = &console->allocator,
                                                   .backend = options->backend,
                                                   .shutdown_ns = options->shutdown_ns,
                                                   .watchdog_ns = BLZ_NEVER});
}

static int spawn_server(blz_console *console)
{
    return BLZ_SPAWN_ON(console->rt, NULL, blz__console_serve, .console = console);
}

static int start(blz_console *console, blz_rt *rt, const blz_console_options *options)
{
    int rc = open_runtime(console, options);

    if (rc < 0)
        return rc;
    rc = blz__console_listen(console);
    if (rc < 0)
        goto out_rt;
    rc = add_targets(console, rt, options);
    if (rc < 0)
        goto out_listener;
    rc = spawn_server(console);
    if (rc < 0)
        goto out_targets;
    return 0;
out_targets:
    forget_targets(console);
out_listener:
    blz__console_unlisten(console);
out_rt:
    blz_ignore(blz_rt_free(console->rt));
    return rc;
}

int blz_console_new(blz_console **out, blz_rt *rt, const blz_console_options *given)
{
    static const blz_console_options defaults;
    const blz_console_options *options = given ? given : &defaults;
    const blz_allocator *allocator;
    blz_console *console;
    blz_addr addr;
    int rc;

    if (!rt || options->nr_others > BLZ_CONSOLE_MAX || options->nr_pools > BLZ_CONSOLE_MAX)
        return -EINVAL;
    rc = blz__console_address(&addr, options->address ? options->address : DEFAULT_ADDRESS);
    if (rc < 0)
        return rc;
    if (blz__rt_is_forked(rt))
        return -EOWNERDEAD;
    allocator = blz__rt_allocator(rt);
    console = blz__alloc(allocator, sizeof *console, _Alignof(blz_console));
    if (!console)
        return -ENOMEM;
    fill_in(console, allocator, options);
    console->addr = addr;
    rc = start(console, rt, options);
    if (rc < 0)
        blz__free(allocator, console, sizeof *console, _Alignof(blz_console));
    else
        *out = console;
    return rc;
}

int blz_console_start(blz_rt *rt, const char *address)
{
    blz_console *console;

    return blz_console_new(&console, rt,
                           &(blz_console_options){.address = address, .until_rt_ends = true});
}

void blz_console_addr(const blz_console *console, blz_addr *addr)
{
    *addr = console->addr;
}

/* ---- ending ---- */

/*
 * Nothing refers to it any more but its own tasks. 0, or -ETIMEDOUT: these have not ended, and
 * nothing that they could use has been freed. [any thread but a worker]
 */
static int console_end(blz_console *console)
{
    blz_allocator allocator = console->allocator;
    int rc;

    blz__console_unlisten(console);
    rc = blz_rt_free(console->rt); /* its tasks first: they look at the runtimes until they end */
    if (rc < 0)
        return rc;
    forget_targets(console);
    for (uint32_t i = 0; i < console->nr_targets; i++)
        blz__snapshot_free(&console->targets[i].snapshot);
    blz__free(&allocator, console, sizeof *console, _Alignof(blz_console));
    return 0;
}

int blz_console_free(blz_console *console)
{
    if (!console)
        return 0;
    if (blz__sched_on_worker())
        return -EDEADLK;
    if (blz__rt_is_forked(console->rt))
        return -EOWNERDEAD;
    return console_end(console);
}
