/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program by someone who has only the installed tree. The first line it prints is the version;
 * extend `use_library` with what a first user of the C API would try.
 */
#include <blitz/version.h>
#include <stdio.h>

static int use_library(void)
{
    return 0;
}

int main(void)
{
    printf("blitz %s\n", blz_version());
    return use_library();
}
