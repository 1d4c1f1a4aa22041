/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The task dump, written to a descriptor: a line is one write, so that lines of others stay whole.
 */
#include "system/file.h"

#include <blitz/runtime.h>
#include <string.h>

/* What cannot be written is lost: a dump is for a program that is in trouble already. */
static void write_line(const char *line, void *arg)
{
    blz_iovec pieces[] = {{(void *)(uintptr_t)line, strlen(line)}, {(char[]){'\n'}, 1}};

    (void)blz__file_write(*(const blz_sysfd *)arg, pieces, 2, FILE_AT_POSITION);
}

int blz_task_dump_fd(blz_rt *rt, blz_sysfd fd)
{
    return blz_task_dump(rt, write_line, &fd);
}
