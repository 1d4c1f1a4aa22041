/* SPDX-License-Identifier: Apache-2.0 */
/* BLZ_TRACE=FILE,...: a trace of the whole program, from its first runtime to its exit. */
#include "observe/trace.h"

#include "base/shared.h"

#include "system/env.h"

#include <blitz/trace.h>
#include <blitz/error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 1024 };

/* %p is the number of the process. False: too long. */
static bool make_path(char *out, const char *pattern)
{
    const char *at = strstr(pattern, "%p");
    int len;

    if (at)
        len = snprintf(out, PATH_SIZE, "%.*s%d%s", (int)(at - pattern), pattern,
                       (int)blz__env_pid(), at + 2);
    else
        len = snprintf(out, PATH_SIZE, "%s", pattern);
    return len >= 0 && len < PATH_SIZE;
}

static void stop_at_exit(void)
{
    blz_trace_summary summary;
    int rc = blz_trace_stop(&summary);

    if (rc < 0 && rc != -ENXIO && rc != -EOWNERDEAD)
        fprintf(stderr, "blitz: writing the trace: %s\n", strerror(-rc));
}

static BLZ_COLD void start(const char *pattern)
{
    char path[PATH_SIZE];
    blz_trace_options options = {.path = path};
    int rc = make_path(path, pattern) ? blz__trace_parse(&options, path) : -ENAMETOOLONG;

    if (rc == 0)
        rc = blz_trace_start(&options);
    if (rc == 0)
        rc = atexit(stop_at_exit) == 0 ? 0 : -ENOMEM;
    if (rc < 0 && rc != -EBUSY)
        fprintf(stderr, "blitz: BLZ_TRACE=%s: %s\n", pattern, strerror(-rc));
}

void blz__trace_from_environment(void)
{
    uint32_t *asked = &blz__shared()->trace.asked;
    const char *pattern;

    if (blz__load(asked, RELAXED) || blz__swap(asked, 1u, RELAXED))
        return;
    pattern = blz__env_get("BLZ_TRACE");
    if (pattern && *pattern)
        start(pattern);
}
