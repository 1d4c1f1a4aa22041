/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread knows and says of itself. */
#include "system/thread.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

void blz__thread_stack(uintptr_t *low, uintptr_t *size)
{
    pthread_attr_t attr;
    void *address = NULL;
    size_t length = 0;

    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        if (pthread_attr_getstack(&attr, &address, &length) != 0)
            length = 0;
        pthread_attr_destroy(&attr);
    }
    *low = length ? (uintptr_t)address : 0;
    *size = length;
}

void blz__thread_name(char *out, size_t size)
{
    if (pthread_getname_np(pthread_self(), out, size) != 0)
        out[0] = '\0';
}

void blz__thread_set_name(const char *name)
{
    char text[16]; /* the kernel refuses longer ones */

    snprintf(text, sizeof text, "%s", name);
    pthread_setname_np(pthread_self(), text);
}

uint64_t blz__thread_id(void)
{
    return (uint64_t)gettid();
}
