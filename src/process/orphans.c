/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orphans: children whose handle was dropped before their end. They may outlive the runtime that
 * has started them, so a runtime cannot look after them. The process has one small thread that
 * does: it comes with the first orphan, sleeps until one of them has ended, takes it away, and ends
 * with the last. It waits for a set of processes (system/process.h), to which the threads that drop
 * a child add it.
 *
 *   list      thread     event                      who
 *   ---------------------------------------------------------------------------------------------
 *   empty     none       add                        links it, opens the set, starts the thread
 *   some      runs       add                        links it, adds it to the set
 *   some      none       add, or a sweep            as the first, since the set or the thread was
 *                                                   refused before; if it is again, takes away
 *                                                   those that have ended
 *   some      runs       one has ended              the thread unlinks, reaps and frees it
 *   empty     runs       looked at by the thread    it closes the set and ends
 *
 * All is under one lock; nothing is freed under it. While the thread runs, only the thread
 * frees: it may have been told of any of them. One that could not be added to the set is counted as
 * unwatched, and tried again by sweeps, which are part of every spawn and drop.
 *
 * A forked process has none of these children, and no thread: the table is emptied there.
 */
#include "process/process.h"

#include "base/shared.h"
#include "system/fork.h"
#include "system/thread.h"

static struct orphans *orphans(void)
{
    return &blz__shared()->orphans;
}

/* ---- the list, under the lock ---- */

static void link_child(struct blz__child *child)
{
    child->next = orphans()->first;
    child->link = &orphans()->first;
    if (child->next)
        child->next->link = &child->next;
    orphans()->first = child;
}

static void unlink_child(struct blz__child *child)
{
    *child->link = child->next;
    if (child->next)
        child->next->link = child->link;
}

static int watch_child(struct blz__child *child)
{
    return blz__process_set_add(orphans()->set, &child->process, child);
}

/* Adds those that are not in the set: it tells which ones are. */
static void watch_all(void)
{
    uint32_t unwatched = 0;

    for (struct blz__child *child = orphans()->first; child; child = child->next) {
        int rc = watch_child(child);
        unwatched += rc < 0 && rc != -EEXIST;
    }
    blz__store(&orphans()->unwatched, unwatched, RELAXED);
}

/* ---- the thread ---- */

/* Takes one away if it has ended. */
static void bury(struct blz__child *child)
{
    if (blz__child_reap(child) == -EAGAIN)
        return;
    blz__lock_acquire(&orphans()->lock);
    unlink_child(child);
    blz__process_set_remove(orphans()->set, &child->process);
    blz__lock_release(&orphans()->lock);
    blz__child_free(child);
}

/* False: there are none left, and the thread is none any more. */
static bool stays(void)
{
    bool some;

    blz__lock_acquire(&orphans()->lock);
    some = orphans()->first != NULL;
    if (!some) {
        blz__process_set_close(orphans()->set);
        orphans()->runs = false;
    }
    blz__lock_release(&orphans()->lock);
    return some;
}

static void keeper_main(void *arg)
{
    void *ended[64];

    (void)arg;
    while (stays()) {
        int n = blz__process_set_wait(orphans()->set, ended, 64);
        for (int i = 0; i < n; i++)
            bury(ended[i]);
    }
}

/* ---- the others ---- */

/* Under the lock. Where the set or the thread is refused, sweeps do the work. */
static void start_keeper(void)
{
    blz__thread thread;

    if (orphans()->runs)
        return;
    if (blz__process_set_open(&orphans()->set) < 0)
        return;
    orphans()->runs = blz__thread_start(&thread, keeper_main, NULL, 0, "blitz-orphans") == 0;
    if (orphans()->runs)
        blz__thread_detach(thread);
    else
        blz__process_set_close(orphans()->set);
}

static void in_forked_process(void)
{
    if (orphans()->runs)
        blz__process_set_close(orphans()->set);
    orphans()->lock = (blz__lock){0};
    orphans()->first = NULL;
    orphans()->runs = false;
    orphans()->unwatched = 0;
}

/* Without a thread: takes those that have ended out of the list. */
static struct blz__child *take_ended(void)
{
    struct blz__child *ended = NULL;

    for (struct blz__child *child = orphans()->first, *next; child; child = next) {
        next = child->next;
        if (blz__child_reap(child) == -EAGAIN)
            continue;
        unlink_child(child);
        child->next = ended;
        ended = child;
    }
    return ended;
}

/* Under the lock: all in the list are watched, or looked at now. Gives those that have ended. */
static struct blz__child *look_after(void)
{
    struct blz__child *ended = NULL;
    uint32_t left = 0;

    start_keeper();
    if (orphans()->runs) {
        watch_all();
        return NULL;
    }
    ended = take_ended();
    for (struct blz__child *child = orphans()->first; child; child = child->next)
        left++;
    blz__store(&orphans()->unwatched, left, RELAXED);
    return ended;
}

static void free_all(struct blz__child *ended)
{
    while (ended) {
        struct blz__child *child = ended;
        ended = child->next;
        blz__child_free(child);
    }
}

void blz__orphan_add(struct blz__child *child)
{
    struct blz__child *ended = NULL;

    (void)blz__fork_in_child(in_forked_process);
    blz__lock_acquire(&orphans()->lock);
    link_child(child);
    if (!orphans()->runs || orphans()->unwatched > 0)
        ended = look_after();
    else if (watch_child(child) < 0)
        blz__store(&orphans()->unwatched, 1, RELAXED);
    blz__lock_release(&orphans()->lock);
    free_all(ended);
}

void blz__orphans_sweep(void)
{
    struct blz__child *ended;

    if (blz_likely(blz__load(&orphans()->unwatched, RELAXED) == 0))
        return;
    blz__lock_acquire(&orphans()->lock);
    ended = look_after();
    blz__lock_release(&orphans()->lock);
    free_all(ended);
}
