/* SPDX-License-Identifier: Apache-2.0 */
/* The library's thread-local variables, which every fibre has for itself. */
#include "explorer.h"

#include "base/thread_locals.h"

_Thread_local struct blz__thread_locals blz__locals;

__attribute__((constructor)) static void keep_locals_apart(void)
{
    model_thread_local(&blz__locals, sizeof blz__locals);
}
