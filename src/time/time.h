/* SPDX-License-Identifier: Apache-2.0 */
/* Front door of src/time. What the modules above need is public. */
#ifndef BLZ_TIME_TIME_H
#define BLZ_TIME_TIME_H

#include <blitz/time.h>

#endif
