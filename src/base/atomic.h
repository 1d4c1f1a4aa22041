/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The atomics of the whole library, behind one door.
 *
 * Every access to memory that two threads share goes through these macros, on plain integers and
 * pointers. They have two implementations:
 *
 * - normally, the compilers' __atomic builtins, at no cost;
 * - with BLZ_MODEL, calls into the explorer of tests/model, which runs the threads of a test one at
 *   a time, tries every interleaving up to a bound, and lets a load see any older store that the
 *   C11 memory model allows. That is why the memory order is spelled out at each call: the explorer
 *   takes it at its word.
 *
 * The order is the bare suffix of the __ATOMIC_ constant:
 *
 *     head = blz__load(&q->head, ACQUIRE);
 *     blz__store(&q->tail, tail + 1, RELEASE);
 *     if (blz__cas(&q->head, &head, next, ACQ_REL, ACQUIRE)) ...
 *
 * A variable that is only ever touched by one thread at a time, with the hand-over ordered by
 * something else, is a plain variable and does not come here.
 */
#ifndef BLZ_BASE_ATOMIC_H
#define BLZ_BASE_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef BLZ_MODEL

#define blz__load(p, mo)         __atomic_load_n((p), __ATOMIC_##mo)
#define blz__store(p, v, mo)     __atomic_store_n((p), (v), __ATOMIC_##mo)
#define blz__swap(p, v, mo)      __atomic_exchange_n((p), (v), __ATOMIC_##mo)
#define blz__fetch_add(p, v, mo) __atomic_fetch_add((p), (v), __ATOMIC_##mo)
#define blz__fetch_sub(p, v, mo) __atomic_fetch_sub((p), (v), __ATOMIC_##mo)
#define blz__fetch_or(p, v, mo)  __atomic_fetch_or((p), (v), __ATOMIC_##mo)
#define blz__fetch_and(p, v, mo) __atomic_fetch_and((p), (v), __ATOMIC_##mo)

/* Compare and swap; on failure *expected is what was found. `weak` may fail for no reason. */
#define blz__cas(p, expected, v, mo, fail_mo) \
    __atomic_compare_exchange_n((p), (expected), (v), false, __ATOMIC_##mo, __ATOMIC_##fail_mo)
#define blz__cas_weak(p, expected, v, mo, fail_mo) \
    __atomic_compare_exchange_n((p), (expected), (v), true, __ATOMIC_##mo, __ATOMIC_##fail_mo)

/*
 * A store-load fence. On x86 a locked no-op on the stack costs a third of the mfence that clang
 * emits for the builtin.
 */
static inline void blz__fence_seq_cst(void)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    __asm__ __volatile__("lock; orl $0, -4(%%rsp)" ::: "memory", "cc");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/*
 * Whether a word is not 0, by a relaxed load; for words that are looked at all the time. The
 * compilers would have it go through a register.
 */
static inline bool blz__is_set(const uint64_t *word)
{
#if defined(__x86_64__)
    bool set;
    __asm__("cmpq $0, %1" : "=@ccne"(set) : "m"(*word));
    return set;
#else
    return blz__load(word, RELAXED) != 0;
#endif
}

/* In a loop that waits for another thread. */
static inline void blz__spin_hint(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* The newest value, for asserts and validators: orders nothing, and is no step of a model. */
#define blz__peek(p) __atomic_load_n((p), __ATOMIC_RELAXED)

/*
 * Before an access to plain memory that is handed from thread to thread: a model fails if nothing
 * orders it with another thread's access. Nothing otherwise.
 */
#define blz__plain_read(p)  ((void)sizeof(*(p)))
#define blz__plain_write(p) ((void)sizeof(*(p)))

/*
 * Figures for people, written by one thread at a time and read by any. Nothing depends on them, so
 * they are no steps of a model.
 */
#define blz__stat_load(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define blz__stat_store(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

/* Zeroes an array of words that no other thread has yet. */
#define blz__clear_words(words, count) \
    ((void)__builtin_memset((words), 0, (count) * sizeof *(words)))

#else /* BLZ_MODEL */

#include "model.h" /* tests/model: the explorer's side of this contract */

#define blz__load(p, mo)                                                              \
    ((__typeof__(*(p)))(uintptr_t)model_load((p), sizeof *(p),                        \
                                             MODEL_SITE(MODEL_OP_LOAD, __ATOMIC_##mo, \
                                                        __ATOMIC_##mo, #p)))
#define blz__store(p, v, mo)                                \
    model_store((p), sizeof *(p), (uint64_t)(uintptr_t)(v), \
                MODEL_SITE(MODEL_OP_STORE, __ATOMIC_##mo, __ATOMIC_##mo, #p))
/* An assignment, because a caller may ignore its value without a warning. */
#define blz__model_rmw(p, op, v, mo, what)                                                      \
    ((__typeof__(*(p))){0} =                                                                    \
         (__typeof__(*(p)))(uintptr_t)model_rmw((p), sizeof *(p), op, (uint64_t)(uintptr_t)(v), \
                                                MODEL_SITE(MODEL_OP_RMW, mo, mo, what)))
#define blz__swap(p, v, mo)      blz__model_rmw(p, MODEL_SWAP, v, __ATOMIC_##mo, #p)
#define blz__fetch_add(p, v, mo) blz__model_rmw(p, MODEL_ADD, v, __ATOMIC_##mo, #p)
#define blz__fetch_sub(p, v, mo) blz__model_rmw(p, MODEL_SUB, v, __ATOMIC_##mo, #p)
#define blz__fetch_or(p, v, mo)  blz__model_rmw(p, MODEL_OR, v, __ATOMIC_##mo, #p)
#define blz__fetch_and(p, v, mo) blz__model_rmw(p, MODEL_AND, v, __ATOMIC_##mo, #p)
#define blz__cas(p, expected, v, mo, fail_mo)                                \
    model_cas((p), sizeof *(p), (expected), (uint64_t)(uintptr_t)(v), false, \
              MODEL_SITE(MODEL_OP_CAS, __ATOMIC_##mo, __ATOMIC_##fail_mo, #p))
#define blz__cas_weak(p, expected, v, mo, fail_mo)                          \
    model_cas((p), sizeof *(p), (expected), (uint64_t)(uintptr_t)(v), true, \
              MODEL_SITE(MODEL_OP_CAS, __ATOMIC_##mo, __ATOMIC_##fail_mo, #p))
#define blz__fence_seq_cst() \
    model_fence(MODEL_SITE(MODEL_OP_FENCE, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST, ""))
#define blz__spin_hint() \
    model_spin_hint(MODEL_SITE(MODEL_OP_SPIN, __ATOMIC_RELAXED, __ATOMIC_RELAXED, ""))
/* The memory of a model always holds the newest value. */
#define blz__peek(p) (*(const volatile __typeof__(*(p)) *)(p))
#define blz__plain_read(p) \
    model_plain_read((p), MODEL_SITE(MODEL_OP_PLAIN_READ, __ATOMIC_RELAXED, __ATOMIC_RELAXED, #p))
#define blz__plain_write(p) \
    model_plain_write((p), MODEL_SITE(MODEL_OP_PLAIN_WRITE, __ATOMIC_RELAXED, __ATOMIC_RELAXED, #p))

#define blz__stat_load(p)     (*(p))
#define blz__stat_store(p, v) ((void)(*(p) = (v)))
#define blz__is_set(word)     (blz__stat_load(word) != 0)

#define blz__clear_words(words, count)             \
    do {                                           \
        for (size_t i_ = 0; i_ < (count); i_++)    \
            blz__store(&(words)[i_], 0u, RELAXED); \
    } while (0)

#endif /* BLZ_MODEL */
#endif
