/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which backend a runtime gets: the one that the option or the environment names, or else the best
 * one that works, found by opening and using it once. io_uring is often there and refused all the
 * same, by a container's system call filter or an administrator; the reason is kept for people who
 * wonder.
 *
 * One ring that works does not mean that there will be one for each worker: they take of what the
 * user may lock. So all drivers of a runtime are opened here, and all are of one kind; a worker
 * that finds out later, in the midst of an operation, could not turn back.
 */
#include "base/alloc.h"
#include "system/env.h"
#include "io/io.h"

#include <blitz/error.h>
#include <stdio.h>
#include <string.h>

static void close_all(blz__driver *drivers)
{
    while (drivers) {
        blz__driver *next = drivers->next;
        drivers->ops->close(drivers);
        drivers = next;
    }
}

/* One for each worker, or none. */
static int open_all(const blz__driver_ops *ops, const blz_options *options,
                    const blz_allocator *allocator, blz__driver **drivers)
{
    blz__driver *all = NULL, *driver;

    for (unsigned i = 0; i < options->workers; i++) {
        int rc = ops->open(&driver, options, allocator);
        if (rc < 0) {
            close_all(all);
            return rc;
        }
        driver->next = all;
        all = driver;
    }
    *drivers = all;
    return 0;
}

/* One that has been used is bound to the thread that used it: it is not for the workers. */
static int try_one(const blz__driver_ops *ops, const blz_options *options,
                   const blz_allocator *allocator)
{
    blz__driver *driver;
    int rc = ops->probe ? ops->open(&driver, options, allocator) : 0;

    if (rc < 0 || !ops->probe)
        return rc;
    rc = ops->probe(driver);
    ops->close(driver);
    return rc;
}

static int try_backend(const blz__driver_ops *ops, const blz_options *options,
                       blz__driver **drivers)
{
    const blz_allocator *allocator =
        options->allocator ? options->allocator : &blz__system_allocator;
    int rc = try_one(ops, options, allocator);

    return rc < 0 ? rc : open_all(ops, options, allocator, drivers);
}

static const char *explain(int rc)
{
    switch (rc) {
    case -ENOSYS:
        return "the kernel does not have it";
    case -EPERM:
        return "not permitted: a system call filter, or sysctl kernel.io_uring_disabled";
    case -EACCES:
        return "access denied by a security module";
    case -EINVAL:
        return "the kernel is too old for the features that are needed";
    case -ENOMEM:
        return "no memory, or the limit on locked memory (ulimit -l) is too low";
    case -EMFILE:
    case -ENFILE:
        return "too many open files";
    case -ETIME:
        return "on this kernel its events do not wake a thread that sleeps";
    default:
        return blz_strerror(rc);
    }
}

static int choose_named(const char *name, const char *who, const blz_options *options,
                        const blz__driver_ops **ops, blz__driver **drivers, char *reason,
                        size_t size)
{
    for (int i = 0; blz__backends[i]; i++) {
        if (strcmp(blz__backends[i]->name, name) != 0)
            continue;
        int rc = try_backend(blz__backends[i], options, drivers);
        if (rc < 0) {
            snprintf(reason, size, "%s was asked for by %s, but: %s", name, who, explain(rc));
            return rc;
        }
        snprintf(reason, size, "%s: asked for by %s", name, who);
        *ops = blz__backends[i];
        return 0;
    }
    snprintf(reason, size, "%s was asked for by %s, but there is no such backend", name, who);
    return -EINVAL;
}

/* Whether the next backend may do better. A lack of descriptors is for the program to know. */
static bool is_refusal(int rc)
{
    return rc < 0 && rc != -EMFILE && rc != -ENFILE;
}

static int choose_best(const blz_options *options, const blz__driver_ops **ops,
                       blz__driver **drivers, char *reason, size_t size)
{
    int rc = -ENOSYS, refused = 0;

    for (int i = 0; blz__backends[i] && is_refusal(rc); i++) {
        rc = try_backend(blz__backends[i], options, drivers);
        if (rc == 0) {
            *ops = blz__backends[i];
            if (i == 0)
                snprintf(reason, size, "%s: it works here", blz__backends[i]->name);
            else
                snprintf(reason, size, "%s: %s was refused: %s", blz__backends[i]->name,
                         blz__backends[i - 1]->name, explain(refused));
            return 0;
        }
        refused = rc;
    }
    snprintf(reason, size, "no backend works: %s", explain(rc));
    return rc;
}

int blz__io_choose(const blz_options *options, const blz__driver_ops **ops, blz__driver **drivers,
                   char *reason, size_t size)
{
    const char *named = blz__env_get("BLZ_BACKEND");

    if (options->backend)
        return choose_named(options->backend, "options.backend", options, ops, drivers, reason,
                            size);
    if (named && *named)
        return choose_named(named, "BLZ_BACKEND", options, ops, drivers, reason, size);
    return choose_best(options, ops, drivers, reason, size);
}

int blz__io_mode(blz_rt *rt)
{
    int rc;
    const blz__driver_ops *ops = blz__rt_driver_ops(rt, &rc);

    if (!ops)
        return rc;
    return ops->nonblocking ? FD_NONBLOCK : 0;
}
