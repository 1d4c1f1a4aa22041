/* SPDX-License-Identifier: Apache-2.0 */
/* Front door of src/combine. What the modules above need is public. */
#ifndef BLZ_COMBINE_COMBINE_H
#define BLZ_COMBINE_COMBINE_H

#include <blitz/combine.h>

#endif
