/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The distance at which two threads' data do not disturb each other. Twice the line on x86-64,
 * whose prefetcher fetches pairs of lines, and on aarch64, where some cores have lines of 128.
 */
#ifndef BLZ_BASE_CACHELINE_H
#define BLZ_BASE_CACHELINE_H

#if defined(__x86_64__) || defined(__aarch64__) || defined(__powerpc64__)
#define BLZ_CACHE_LINE 128
#elif defined(__s390x__)
#define BLZ_CACHE_LINE 256
#elif defined(__arm__) || defined(__mips__) || defined(__sparc__)
#define BLZ_CACHE_LINE 32
#else
#define BLZ_CACHE_LINE 64
#endif

#define blz__cache_aligned __attribute__((aligned(BLZ_CACHE_LINE)))

#endif
