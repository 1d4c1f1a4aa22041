/* SPDX-License-Identifier: Apache-2.0 */
/* The date and time. Timers know nothing of it. */
#include "time/time.h"

#include "system/clock.h"

int64_t blz_wall_now(void)
{
    return blz__clock_wall_ns();
}
