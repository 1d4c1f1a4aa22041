/* SPDX-License-Identifier: Apache-2.0 */
/* All of await_test.c with BLZ_DEBUG_FRAMES, in which every await suspends. */
#define BLZ_DEBUG_FRAMES
#include "await_test.c"
