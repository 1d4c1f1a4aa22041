/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells AddressSanitizer what is free inside memory that we manage ourselves, and ThreadSanitizer
 * what is ordered by system calls that it does not see.
 */
#ifndef BLZ_BASE_SANITIZE_H
#define BLZ_BASE_SANITIZE_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BLZ_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define BLZ_ASAN 1
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(BLZ_ASAN)
#define BLZ_ASAN 1
#endif

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BLZ_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) && !defined(BLZ_TSAN)
#define BLZ_TSAN 1
#endif

#ifdef BLZ_TSAN
#include <sanitizer/tsan_interface.h>
#define blz__tsan_acquire(p) __tsan_acquire(p)
#define blz__tsan_release(p) __tsan_release(p)
#else
#define blz__tsan_acquire(p) ((void)(p))
#define blz__tsan_release(p) ((void)(p))
#endif

#ifdef BLZ_ASAN
#include <sanitizer/asan_interface.h>
#define blz__asan_poison(p, n)   ASAN_POISON_MEMORY_REGION((p), (n))
#define blz__asan_unpoison(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
#else
#define blz__asan_poison(p, n)   ((void)(p), (void)(n))
#define blz__asan_unpoison(p, n) ((void)(p), (void)(n))
#endif

#endif
