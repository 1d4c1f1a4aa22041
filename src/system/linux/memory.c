/* SPDX-License-Identifier: Apache-2.0 */
/* Pages by mmap(2). */
#include "system/memory.h"

#include <stdint.h>
#include <sys/mman.h>

void *blz__pages_map(size_t size)
{
    char *raw = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *aligned;

    if (raw == MAP_FAILED)
        return NULL;
    aligned = (char *)(((uintptr_t)raw + size - 1) & ~(uintptr_t)(size - 1));
    if (aligned > raw)
        munmap(raw, (size_t)(aligned - raw));
    munmap(aligned + size, (size_t)(raw + size - aligned));
    return aligned;
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

void blz__pages_prefault(void *pages, size_t size)
{
    madvise(pages, size, MADV_POPULATE_WRITE);
}

void blz__pages_unmap(void *pages, size_t size)
{
    munmap(pages, size);
}

/* The kernel takes whole pages only. What lies around them is left as it is. */
void blz__pages_want_huge(void *memory, size_t size)
{
    uintptr_t page = 4096, begin = ((uintptr_t)memory + page - 1) & ~(page - 1);
    uintptr_t end = ((uintptr_t)memory + size) & ~(page - 1);

    if (begin < end)
        madvise((char *)memory + (begin - (uintptr_t)memory), end - begin, MADV_HUGEPAGE);
}
