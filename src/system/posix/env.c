/* SPDX-License-Identifier: Apache-2.0 */
/* The process and its environment. How far the environment is believed is in env_get.c. */
#include "system/env.h"

#include <stddef.h>
#include <unistd.h>

const char *const *blz__env_list(void)
{
    static const char *const none[] = {NULL};

    return environ ? (const char *const *)environ : none;
}

int64_t blz__env_pid(void)
{
    return getpid();
}
