/* SPDX-License-Identifier: Apache-2.0 */
/* All of box_test.c with BLZ_DEBUG_FRAMES, in which every await suspends. */
#define BLZ_DEBUG_FRAMES
#include "box_test.c"
