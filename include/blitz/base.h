/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every public header needs: a few attributes, the allocator, time units. Results and
 * errors are explained in blitz/error.h.
 */
#ifndef BLITZ_BASE_H
#define BLITZ_BASE_H

#include <blitz/error.h>
#include <blitz/system.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What compilers should know about a function. */
#define BLZ_NODISCARD __attribute__((warn_unused_result))
#define BLZ_NORETURN  __attribute__((noreturn))
#define BLZ_NOINLINE  __attribute__((noinline))
#define BLZ_COLD      __attribute__((cold, noinline))
#define BLZ_INLINE    inline __attribute__((always_inline))

/* What a condition mostly is. */
#define blz_likely(x)   __builtin_expect(!!(x), 1)
#define blz_unlikely(x) __builtin_expect(!!(x), 0)

/*
 * Says that a result is not needed, where the compiler would warn: blz_ignore(blz_rt_free(rt)). A
 * future whose result is ignored is prepared and does nothing until its operation is polled.
 */
#define blz_ignore(result) ((void)!(result))

/* The struct that holds `member` at `ptr`. */
#define blz_container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* Durations are int64_t nanoseconds: 30 * BLZ_SEC. */
#define BLZ_NSEC ((int64_t)1)
#define BLZ_USEC ((int64_t)1000)
#define BLZ_MSEC ((int64_t)1000000)
#define BLZ_SEC  ((int64_t)1000000000)

/* An instant that is never reached; a duration without end, and a limit that is none. */
#define BLZ_NEVER INT64_MAX

BLZ_BEGIN_DECLS

/*
 * Where a runtime gets its memory. `alloc` returns memory of the given size, aligned to `align` (a
 * power of two), or NULL; `free` gets back exactly what was allocated, with the same size and
 * alignment. Both may be called from any thread, never under a lock of the library.
 */
typedef struct blz_allocator {
    void *(*alloc)(size_t size, size_t align, void *ctx);
    void (*free)(void *ptr, size_t size, size_t align, void *ctx);
    void *ctx;
    uint64_t reserved[2]; /* 0 */
} blz_allocator;

BLZ_END_DECLS
#endif
