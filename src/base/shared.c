/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the process (shared.h). All of it begins as zeros: it takes no room in a program. */
#include "base/shared.h"

struct blz__shared blz__shared_state;
