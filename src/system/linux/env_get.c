/* SPDX-License-Identifier: Apache-2.0 */
/* The environment, if the program may believe it. */
#include "system/env.h"

#include <stdlib.h>

const char *blz__env_get(const char *name)
{
    return secure_getenv(name);
}
