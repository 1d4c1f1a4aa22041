/* SPDX-License-Identifier: Apache-2.0 */
/* The number of the process. */
#include "system/env.h"

#include <unistd.h>

int64_t blz__env_pid(void)
{
    return getpid();
}
