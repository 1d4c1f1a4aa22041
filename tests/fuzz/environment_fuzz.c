/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the environment and a program's options say of a runtime: numbers within their limits or
 * -EINVAL, and a reason that is a string, whatever name a backend is asked for by.
 */
#include "fuzz.h"

#include "sched/rt.h"
#include "sched/sched.h"

#include <errno.h>

static const char *const names[] = {"BLZ_WORKERS", "BLZ_WATCHDOG_MS", "BLZ_SEED", "BLZ_OBSERVE"};

static void check_numbers(const char *name, const char *text)
{
    blz_options options;
    int rc;

    require(setenv(name, text, 1) == 0);
    rc = blz__options_resolve(&options, NULL);
    require(unsetenv(name) == 0);
    require(rc == 0 || rc == -EINVAL);
    if (rc == 0) {
        require(options.workers >= 1 && options.workers <= 4096);
        require(options.watchdog_ns != 0 && options.seed != 0);
    }
}

static void check_reason(const blz_options *options, const char *name)
{
    const blz__driver_ops *ops = NULL;
    blz__driver *driver = NULL;
    char *reason = malloc(32);
    int rc;

    require(reason);
    memset(reason, 'x', 32);
    rc = blz__io_choose(options, &ops, &driver, reason, 32);
    require(memchr(reason, '\0', 32));
    if (rc == 0)
        require(ops && (strcmp(ops->name, name) == 0 || !*name));
    else
        require(!ops && (rc == -EINVAL || strcmp(name, "io_uring") == 0));
    require(!driver == (rc < 0));
    if (driver)
        ops->close(driver);
    free(reason);
}

/* A backend by its name, from the program and from the environment. */
static void check_backend(const char *name)
{
    check_reason(&(blz_options){.backend = name, .workers = 1}, name);
    require(setenv("BLZ_BACKEND", name, 1) == 0);
    check_reason(&(blz_options){.workers = 1}, name);
    require(unsetenv("BLZ_BACKEND") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = exact_copy(data, size, 1);

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_numbers(names[i], text);
    if (*text)
        check_backend(text);
    free(text);
    return 0;
}
