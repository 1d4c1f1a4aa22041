/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: pages of the system, and blocks of its heap. */
#ifndef BLZ_SYSTEM_MEMORY_H
#define BLZ_SYSTEM_MEMORY_H

#include <stddef.h>

/* A block of the heap, aligned to `align` (a power of two). NULL: no memory. [any thread] */
void *blz__memory_alloc(size_t size, size_t align);

/* A block of the heap that reads as zeros. NULL: no memory. [any thread] */
void *blz__memory_alloc_zeroed(size_t size, size_t align);

/* Frees a block, of the alignment that it was allocated with; or NULL. [any thread] */
void blz__memory_free(void *block, size_t align);

/*
 * Maps pages that read as zeros, aligned to their own size, which is a power of two and a multiple
 * of the page size. Their addresses are below 2^47. NULL: no memory. [any thread]
 */
void *blz__pages_map(size_t size);

/* Unmaps what blz__pages_map mapped. [any thread] */
void blz__pages_unmap(void *pages, size_t size);

/* Says that these pages are about to be written, which saves a fault for each. A wish. */
void blz__pages_prefault(void *pages, size_t size);

/* Asks for huge pages for memory of any origin that will all be used. A wish. */
void blz__pages_want_huge(void *memory, size_t size);

#endif
