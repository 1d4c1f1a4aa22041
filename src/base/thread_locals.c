/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of a thread. Models have their own: tests/model/explorer/library_locals.c. */
#include "base/thread_locals.h"

_Thread_local struct blz__thread_locals blz__locals;
