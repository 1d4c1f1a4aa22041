/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the macros of par_sort.h are made of. Nothing here is for programs to use by itself.
 *
 * The library decides what is sorted where and by which thread; the work on the elements is done
 * by a handful of functions that know the type and the comparison, the kernels. They are written
 * for bytes here, with the size of an element and the comparison as parameters, and compiled for
 * each type with both of them constant: a copy is a load and a store then, a comparison an
 * instruction.
 *
 * No kernel branches on the result of a comparison where data decides it: half of such branches
 * would be mispredicted, and each costs more than ten comparisons. And none relies on comparisons
 * that make sense. Whatever they say, each reads and writes only what it was given, and its output
 * is a permutation of its input.
 */
#ifndef BLITZ_PAR_SORT_KERNELS_H
#define BLITZ_PAR_SORT_KERNELS_H

#include <blitz/par_for.h>

#include <string.h>

BLZ_BEGIN_DECLS

/* Whether *a must come before *b. */
typedef bool (*blz_sort_less_fn_)(const void *a, const void *b, void *arg);

enum { BLZ_SORT_MAX_BUCKETS_ = 2048 };

/* How elements are distributed to buckets. */
struct blz_sort_split_ {
    const char *tree;   /* splitters as a binary search tree: 1 is the root, 2 i, 2 i + 1 below i */
    const char *sorted; /* the same in order */
    unsigned log;       /* there are 2^log buckets... */
    bool equal;         /* ...each divided: what equals the splitter before it, and the rest */
    unsigned shift;     /* radix: bits of the key below those that number the bucket */
};

struct blz_sort_kernels_ {
    size_t size, align;
    blz_sort_less_fn_ less;
    /* Sorts, stably, through a spare array of n elements, where the result may be wanted. */
    void (*leaf)(char *v, char *spare, size_t n, bool into_spare, void *arg);
    /* Merges two sorted arrays, stably. */
    void (*merge)(const char *a, size_t na, const char *b, size_t nb, char *out, void *arg);
    /* The length of the run at the beginning: ascending, or (*down) strictly descending. */
    size_t (*run)(const char *v, size_t n, bool *down, void *arg);
    /* Counts the elements of each bucket, and writes down which is whose (a radix sort need not:
     * it sees that again). */
    void (*classify)(const struct blz_sort_split_ *by, const char *v, size_t n, uint16_t *ids,
                     size_t *counts, void *arg);
    /* Moves each element to where its bucket has got to. */
    void (*scatter)(const struct blz_sort_split_ *by, const char *v, const uint16_t *ids, size_t n,
                    char **to);
    /* Moves what is less than the first (or: no greater) to the front, then the first itself;
     * tells where that is. */
    size_t (*partition)(char *v, size_t n, bool with_equals, void *arg);
    /* Radix: the bits in which the keys differ. Otherwise NULL. */
    uint64_t (*differing)(const char *v, size_t n);
};

#define BLZ_SORT_INLINE_ static inline __attribute__((always_inline))

/* Fewer do not keep the processor busy, and for more it has not the registers. */
#define BLZ_SORT_LANES_ 8
#ifdef __clang__
#define BLZ_SORT_UNROLL_ _Pragma("clang loop unroll(full)")
#else
#define BLZ_SORT_UNROLL_ _Pragma("GCC unroll 8")
#endif

BLZ_SORT_INLINE_ void blz_sort_copy_(char *to, const char *from, size_t size)
{
    __builtin_memcpy(to, from, size);
}

/* c ? a : b, as arithmetic for the compiler that would branch. */
BLZ_SORT_INLINE_ const char *blz_sort_pick_(size_t c, const char *a, const char *b)
{
#ifdef __clang__
    return c ? a : b;
#else
    return b + ((a - b) & -(ptrdiff_t)c);
#endif
}

/* Hides from the compiler what it knows of a comparison's result, so that it does not branch. */
#define BLZ_SORT_OPAQUE_(c) __asm__("" : "+r"(c))

/* ---- merging ---- */

/* One element after the other. */
BLZ_SORT_INLINE_ void blz_sort_merge_slowly_(const char *a, size_t na, const char *b, size_t nb,
                                             char *out, size_t s, blz_sort_less_fn_ less, void *arg)
{
    const char *a_end = a + na * s, *b_end = b + nb * s;

    while (a < a_end && b < b_end) {
        size_t c = less(b, a, arg);
        blz_sort_copy_(out, c ? b : a, s);
        b += c * s;
        a += s - c * s;
        out += s;
    }
    if (a < a_end)
        memcpy(out, a, (size_t)(a_end - a));
    if (b < b_end)
        memcpy(out, b, (size_t)(b_end - b));
}

/* Elements of these sizes are held in registers. */
BLZ_SORT_INLINE_ bool blz_sort_is_word_(size_t s)
{
    return s == 4 || s == 8;
}

BLZ_SORT_INLINE_ uint64_t blz_sort_load_(const char *from, size_t s)
{
    uint64_t word = 0;

    blz_sort_copy_((char *)&word, from, s == 4 ? 4 : 8); /* gcc doubts that it is one of them */
    return word;
}

BLZ_SORT_INLINE_ void blz_sort_store_(char *to, uint64_t word, size_t s)
{
    blz_sort_copy_(to, (const char *)&word, s == 4 ? 4 : 8);
}

/* The comparison reads them as elements, which a word is not. */
BLZ_SORT_INLINE_ bool blz_sort_less_words_(uint64_t a, uint64_t b, blz_sort_less_fn_ less,
                                           void *arg)
{
    char x[sizeof a] __attribute__((aligned(8))), y[sizeof b] __attribute__((aligned(8)));

    blz_sort_copy_(x, (const char *)&a, sizeof a);
    blz_sort_copy_(y, (const char *)&b, sizeof b);
    return less(x, y, arg);
}

/* c ? a : b for a comparison that is true as often as not: compilers should not branch. */
BLZ_SORT_INLINE_ uint64_t blz_sort_choose_(bool c, uint64_t a, uint64_t b)
{
#ifdef __clang__
    return __builtin_unpredictable(c) ? a : b;
#else
    return __builtin_expect_with_probability(c, 1, 0.5) ? a : b;
#endif
}

/*
 * A merge from both ends at once: two chains of comparisons that do not wait for each other. After
 * i steps as many elements are at either end of the output. For as many steps as the shorter input
 * has elements, neither end can leave the inputs.
 */
struct blz_sort_ends_ {
    const char *a, *b, *a_last, *b_last;
    char *out, *out_last;
    ptrdiff_t low;  /* of those at the low end so many came from b */
    ptrdiff_t high; /* of those at the high end so many came from a, negative */
};

BLZ_SORT_INLINE_ struct blz_sort_ends_ blz_sort_ends_of_(const char *a, size_t na, const char *b,
                                                         size_t nb, char *out, size_t s)
{
    struct blz_sort_ends_ e;

    e.a = a;
    e.b = b;
    e.a_last = a + (na - 1) * s;
    e.b_last = b + (nb - 1) * s;
    e.out = out;
    e.out_last = out + (na + nb - 1) * s;
    e.low = e.high = 0;
    return e;
}

/* *out is the first of *a and *b, or the last of them; tells whether *b comes before *a. */
BLZ_SORT_INLINE_ ptrdiff_t blz_sort_put_(char *out, bool first, const char *a, const char *b,
                                         size_t s, blz_sort_less_fn_ less, void *arg)
{
    ptrdiff_t c;

    if (blz_sort_is_word_(s)) {
        uint64_t x = blz_sort_load_(a, s), y = blz_sort_load_(b, s);
        bool is_less = blz_sort_less_words_(y, x, less, arg);

        blz_sort_store_(out, blz_sort_choose_(is_less, first ? y : x, first ? x : y), s);
        return is_less;
    }
    c = less(b, a, arg);
    BLZ_SORT_OPAQUE_(c);
    blz_sort_copy_(out, first ? a + ((b - a) & -c) : b + ((a - b) & -c), s);
    return c;
}

BLZ_SORT_INLINE_ void blz_sort_merge_step_(struct blz_sort_ends_ *e, ptrdiff_t i, size_t s,
                                           blz_sort_less_fn_ less, void *arg)
{
    ptrdiff_t size = (ptrdiff_t)s;
    const char *a = e->a + (i - e->low) * size, *b = e->b + e->low * size;
    const char *a_last = e->a_last + e->high * size, *b_last = e->b_last + (-i - e->high) * size;

    e->low += blz_sort_put_(e->out + i * size, true, a, b, s, less, arg);
    e->high -= blz_sort_put_(e->out_last - i * size, false, a_last, b_last, s, less, arg);
}

/* If the comparisons contradict each other the ends may have crossed: then again, slowly. */
BLZ_SORT_INLINE_ void blz_sort_merge_(const char *a, size_t na, const char *b, size_t nb, char *out,
                                      size_t s, blz_sort_less_fn_ less, void *arg)
{
    while (na > 0 && nb > 0) {
        struct blz_sort_ends_ e = blz_sort_ends_of_(a, na, b, nb, out, s);
        size_t steps = na < nb ? na : nb, from_a, from_b;

        for (size_t i = 0; i < steps; i++)
            blz_sort_merge_step_(&e, (ptrdiff_t)i, s, less, arg);
        from_a = steps - (size_t)e.low - (size_t)e.high;
        from_b = 2 * steps - from_a;
        if (blz_unlikely(from_a > na || from_b > nb))
            break;
        a += (steps - (size_t)e.low) * s;
        b += (size_t)e.low * s;
        na -= from_a;
        nb -= from_b;
        out += steps * s;
    }
    blz_sort_merge_slowly_(a, na, b, nb, out, s, less, arg);
}

/* The same for two runs of `width`, one behind the other. */
BLZ_SORT_INLINE_ void blz_sort_merge_pair_(const char *from, char *to, size_t width, size_t s,
                                           blz_sort_less_fn_ less, void *arg)
{
    const char *b = from + width * s;
    struct blz_sort_ends_ e = blz_sort_ends_of_(from, width, b, width, to, s);

    for (size_t i = 0; i < width; i++)
        blz_sort_merge_step_(&e, (ptrdiff_t)i, s, less, arg);
    if (blz_unlikely(e.low + e.high != 0))
        blz_sort_merge_slowly_(from, width, b, width, to, s, less, arg);
}

/* Two such pairs side by side: four chains. */
BLZ_SORT_INLINE_ void blz_sort_merge_two_pairs_(const char *from, char *to, size_t width, size_t s,
                                                blz_sort_less_fn_ less, void *arg)
{
    size_t len = width * s;
    const char *c = from + 2 * len;
    struct blz_sort_ends_ e = blz_sort_ends_of_(from, width, from + len, width, to, s);
    struct blz_sort_ends_ f = blz_sort_ends_of_(c, width, c + len, width, to + 2 * len, s);

    for (size_t i = 0; i < width; i++) {
        blz_sort_merge_step_(&e, (ptrdiff_t)i, s, less, arg);
        blz_sort_merge_step_(&f, (ptrdiff_t)i, s, less, arg);
    }
    if (blz_unlikely(e.low + e.high != 0))
        blz_sort_merge_slowly_(from, width, from + len, width, to, s, less, arg);
    if (blz_unlikely(f.low + f.high != 0))
        blz_sort_merge_slowly_(c, width, c + len, width, to + 2 * len, s, less, arg);
}

/* ---- small arrays ---- */

/* Four elements to another place, stably, with five comparisons. */
BLZ_SORT_INLINE_ void blz_sort_four_(const char *v, char *out, size_t s, blz_sort_less_fn_ less,
                                     void *arg)
{
    size_t first = less(v + s, v, arg), second = less(v + 3 * s, v + 2 * s, arg);
    const char *a = v + first * s, *b = v + (1 - first) * s; /* a <= b, c <= d */
    const char *c = v + (2 + second) * s, *d = v + (3 - second) * s;
    size_t low = less(c, a, arg), high = less(d, b, arg);
    const char *min = blz_sort_pick_(low, c, a), *max = blz_sort_pick_(high, b, d);
    /* The two that are left, in the order in which they were */
    const char *l = blz_sort_pick_(low, a, blz_sort_pick_(high, c, b));
    const char *r = blz_sort_pick_(high, d, blz_sort_pick_(low, b, c));
    size_t middle = less(r, l, arg);

    blz_sort_copy_(out, min, s);
    blz_sort_copy_(out + s, blz_sort_pick_(middle, r, l), s);
    blz_sort_copy_(out + 2 * s, blz_sort_pick_(middle, l, r), s);
    blz_sort_copy_(out + 3 * s, max, s);
}

/* By insertion, for a few, of which the first `sorted` are in order; hole: room for one. */
BLZ_SORT_INLINE_ void blz_sort_insert_(char *v, size_t sorted, size_t n, char *hole, size_t s,
                                       blz_sort_less_fn_ less, void *arg)
{
    for (size_t i = sorted; i < n; i++) {
        size_t j = i;

        blz_sort_copy_(hole, v + i * s, s);
        for (; j > 0 && less(hole, v + (j - 1) * s, arg); j--)
            blz_sort_copy_(v + j * s, v + (j - 1) * s, s);
        blz_sort_copy_(v + j * s, hole, s);
    }
}

/* Fewer than eight; other: room for four. */
BLZ_SORT_INLINE_ void blz_sort_few_(char *v, char *other, size_t n, size_t s,
                                    blz_sort_less_fn_ less, void *arg)
{
    size_t sorted = 1;

    if (n >= 4) {
        blz_sort_four_(v, other, s, less, arg);
        blz_sort_copy_(v, other, 4 * s);
        sorted = 4;
    }
    blz_sort_insert_(v, sorted, n, other, s, less, arg);
}

/* Sorts each eight of v, the rest at the end too, into `to`, which is v or the spare array. */
BLZ_SORT_INLINE_ void blz_sort_eights_(char *v, char *spare, size_t n, char *to, size_t s,
                                       blz_sort_less_fn_ less, void *arg)
{
    char *other = to == v ? spare : v;
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        if (to != v)
            blz_sort_copy_(spare + i * s, v + i * s, 8 * s);
        blz_sort_four_(to + i * s, other + i * s, s, less, arg);
        blz_sort_four_(to + (i + 4) * s, other + (i + 4) * s, s, less, arg);
        blz_sort_merge_pair_(other + i * s, to + i * s, 4, s, less, arg);
    }
    if (i < n) {
        if (to != v)
            memcpy(spare + i * s, v + i * s, (n - i) * s);
        blz_sort_few_(to + i * s, other + i * s, n - i, s, less, arg);
    }
}

/* ---- small arrays of words ---- */

/*
 * A network: neighbours change places if they must, in as many rounds as there are elements. That
 * is more comparisons than the least, but it is stable, and they do not wait for each other.
 */
BLZ_SORT_INLINE_ void blz_sort_network_(const char *v, char *to, size_t n, size_t s,
                                        blz_sort_less_fn_ less, void *arg)
{
    uint64_t x[8]; /* registers, as far as there are */

    BLZ_SORT_UNROLL_
    for (size_t i = 0; i < n; i++)
        x[i] = blz_sort_load_(v + i * s, s);
    BLZ_SORT_UNROLL_
    for (size_t round = 0; round < n; round++) {
        BLZ_SORT_UNROLL_
        for (size_t i = round % 2; i + 1 < n; i += 2) {
            uint64_t a = x[i], b = x[i + 1];
            bool c = blz_sort_less_words_(b, a, less, arg);

            x[i] = blz_sort_choose_(c, b, a);
            x[i + 1] = blz_sort_choose_(c, a, b);
        }
    }
    BLZ_SORT_UNROLL_
    for (size_t i = 0; i < n; i++)
        blz_sort_store_(to + i * s, x[i], s);
}

#define BLZ_SORT_NETWORKS_(width)                                            \
    case width:                                                              \
        for (size_t i = 0; i < (width)*nr; i += (width))                     \
            blz_sort_network_(v + i * s, to + i * s, (width), s, less, arg); \
        break;

/* Sorts nr runs of at most eight. */
BLZ_SORT_INLINE_ void blz_sort_networks_(const char *v, char *to, size_t width, size_t nr, size_t s,
                                         blz_sort_less_fn_ less, void *arg)
{
    switch (width) {
        BLZ_SORT_NETWORKS_(1)
        BLZ_SORT_NETWORKS_(2)
        BLZ_SORT_NETWORKS_(3)
        BLZ_SORT_NETWORKS_(4)
        BLZ_SORT_NETWORKS_(5)
        BLZ_SORT_NETWORKS_(6)
        BLZ_SORT_NETWORKS_(7)
        BLZ_SORT_NETWORKS_(8)
    default:
        break;
    }
}

/* Nine to sixteen: a network for each half, then a merge without a loop. */
BLZ_SORT_INLINE_ void blz_sort_two_networks_(const char *v, char *to, size_t n, size_t s,
                                             blz_sort_less_fn_ less, void *arg)
{
    char a[16 * sizeof(uint64_t)] __attribute__((aligned(8)));
    size_t na = n / 2;
    char *b = a + na * s;
    struct blz_sort_ends_ e;
    size_t rest;

    blz_sort_network_(v, a, na, s, less, arg);
    blz_sort_network_(v + na * s, b, n - na, s, less, arg);
    e = blz_sort_ends_of_(a, na, b, n - na, to, s);
    BLZ_SORT_UNROLL_
    for (size_t i = 0; i < na; i++)
        blz_sort_merge_step_(&e, (ptrdiff_t)i, s, less, arg);
    rest = (size_t)(e.low + e.high); /* of a; if n is odd there may be one, or else it is of b */
    if (blz_unlikely(rest > n % 2))
        memcpy(to, a, n * (s == 4 ? 4 : 8)); /* comparisons that contradict each other */
    else if (n % 2)
        blz_sort_copy_(to + na * s, rest ? a + (na - (size_t)e.low) * s : b + (size_t)e.low * s, s);
}

#define BLZ_SORT_CASE_(n, how)                     \
    case n:                                        \
        blz_sort_##how##_(v, to, n, s, less, arg); \
        break;

/* Sorts at most sixteen. Their number is known in each case, so the processor has to guess which
 * case it is, and nothing else. */
BLZ_SORT_INLINE_ void blz_sort_small_(const char *v, char *to, size_t nr, size_t s,
                                      blz_sort_less_fn_ less, void *arg)
{
    switch (nr) {
        BLZ_SORT_CASE_(1, network)
        BLZ_SORT_CASE_(2, network)
        BLZ_SORT_CASE_(3, network)
        BLZ_SORT_CASE_(4, network)
        BLZ_SORT_CASE_(5, network)
        BLZ_SORT_CASE_(6, network)
        BLZ_SORT_CASE_(7, network)
        BLZ_SORT_CASE_(8, network)
        BLZ_SORT_CASE_(9, two_networks)
        BLZ_SORT_CASE_(10, two_networks)
        BLZ_SORT_CASE_(11, two_networks)
        BLZ_SORT_CASE_(12, two_networks)
        BLZ_SORT_CASE_(13, two_networks)
        BLZ_SORT_CASE_(14, two_networks)
        BLZ_SORT_CASE_(15, two_networks)
        BLZ_SORT_CASE_(16, two_networks)
    default:
        break;
    }
}

/* ---- leaves: merge sort from small to large ---- */

/* Merges all pairs of runs of `width`. */
BLZ_SORT_INLINE_ void blz_sort_merge_pairs_(const char *from, char *to, size_t n, size_t width,
                                            size_t s, blz_sort_less_fn_ less, void *arg)
{
    size_t i = 0;

    for (; i + 4 * width <= n; i += 4 * width)
        blz_sort_merge_two_pairs_(from + i * s, to + i * s, width, s, less, arg);
    for (; i < n; i += 2 * width) {
        size_t left = n - i < width ? n - i : width;
        size_t right = n - i - left < width ? n - i - left : width;

        blz_sort_merge_(from + i * s, left, from + (i + left) * s, right, to + i * s, s, less, arg);
    }
}

/* Runs of `width`, and a shorter one, of v into `to`, which is v or the spare array. */
BLZ_SORT_INLINE_ void blz_sort_make_runs_(char *v, char *spare, size_t n, size_t width, char *to,
                                          size_t s, blz_sort_less_fn_ less, void *arg)
{
    size_t nr = n / width, done = nr * width;

    if (blz_sort_is_word_(s)) {
        for (size_t i = 0; i < n;) { /* twice at most, by the same code */
            bool full = i < done;
            blz_sort_networks_(v + i * s, to + i * s, full ? width : n - i, full ? nr : 1, s, less,
                               arg);
            i = full ? done : n;
        }
    } else {
        blz_sort_eights_(v, spare, n, to, s, less, arg);
    }
}

BLZ_SORT_INLINE_ void blz_sort_leaf_(char *v, char *spare, size_t n, bool into_spare, size_t s,
                                     blz_sort_less_fn_ less, void *arg)
{
    char *from = into_spare ? spare : v, *other = into_spare ? v : spare, *swap;
    size_t width = 8;
    unsigned levels = 0;

    if (blz_sort_is_word_(s) && n <= 16) {
        blz_sort_small_(v, from, n, s, less, arg);
        return;
    }
    for (; width << levels < n; levels++) { /* so that the last merge ends where it should */
        swap = from;
        from = other;
        other = swap;
    }
    if (blz_sort_is_word_(s))
        width = ((n - 1) >> levels) + 1; /* so that the last run is not much shorter */
    blz_sort_make_runs_(v, spare, n, width, from, s, less, arg);
    for (; width < n; width *= 2) {
        blz_sort_merge_pairs_(from, other, n, width, s, less, arg);
        swap = from;
        from = other;
        other = swap;
    }
}

BLZ_SORT_INLINE_ size_t blz_sort_run_(const char *v, size_t n, bool *down, size_t s,
                                      blz_sort_less_fn_ less, void *arg)
{
    size_t i = 2;

    *down = n > 1 && less(v + s, v, arg);
    if (n < 2)
        return n;
    if (*down)
        while (i < n && less(v + i * s, v + (i - 1) * s, arg))
            i++;
    else
        while (i < n && !less(v + i * s, v + (i - 1) * s, arg))
            i++;
    return i;
}

/* ---- distributing ---- */

/* What equals the splitter before its bucket goes to the even number, the rest to the odd one. */
BLZ_SORT_INLINE_ size_t blz_sort_bucket_(const struct blz_sort_split_ *by, const char *x,
                                         size_t node, size_t s, blz_sort_less_fn_ less, void *arg)
{
    size_t bucket = node - ((size_t)1 << by->log);

    if (!by->equal)
        return bucket;
    return bucket == 0 ? 0 : 2 * bucket + less(by->sorted + (bucket - 1) * s, x, arg);
}

/* Down the tree to the left or to the right, in the form of which each compiler makes the fewest
 * instructions. */
BLZ_SORT_INLINE_ size_t blz_sort_child_(size_t node, bool left)
{
#ifdef __clang__
    return 2 * node + !left;
#else
    return 2 * node + 1 - left;
#endif
}

BLZ_SORT_INLINE_ void blz_sort_classify_one_(const struct blz_sort_split_ *by, const char *x,
                                             uint16_t *id, size_t *counts, size_t s,
                                             blz_sort_less_fn_ less, void *arg)
{
    size_t node = 1, bucket;

    for (unsigned level = 0; level < by->log; level++)
        node = blz_sort_child_(node, less(x, by->tree + node * s, arg));
    bucket = blz_sort_bucket_(by, x, node, s, less, arg);
    *id = (uint16_t)bucket;
    counts[bucket]++;
}

/* Down the tree, several elements side by side. */
BLZ_SORT_INLINE_ void blz_sort_classify_(const struct blz_sort_split_ *by, const char *v, size_t n,
                                         uint16_t *ids, size_t *counts, size_t s,
                                         blz_sort_less_fn_ less, void *arg)
{
    const char *tree = by->tree;
    size_t i = 0;

    for (; i + BLZ_SORT_LANES_ <= n; i += BLZ_SORT_LANES_) {
        size_t node[BLZ_SORT_LANES_] = {
            1, 1, 1, 1, 1, 1, 1, 1,
        };

        for (unsigned level = 0; level < by->log; level++) {
            BLZ_SORT_UNROLL_
            for (size_t lane = 0; lane < BLZ_SORT_LANES_; lane++)
                node[lane] = blz_sort_child_(node[lane],
                                             less(v + (i + lane) * s, tree + node[lane] * s, arg));
        }
        BLZ_SORT_UNROLL_
        for (size_t lane = 0; lane < BLZ_SORT_LANES_; lane++) {
            size_t bucket = blz_sort_bucket_(by, v + (i + lane) * s, node[lane], s, less, arg);
            ids[i + lane] = (uint16_t)bucket;
            counts[bucket]++;
        }
    }
    for (; i < n; i++)
        blz_sort_classify_one_(by, v + i * s, &ids[i], counts, s, less, arg);
}

/* The line after the one that is written to will be needed: there are too many streams for the
 * processor to notice by itself. */
BLZ_SORT_INLINE_ void blz_sort_move_(const char *element, char **to, size_t s)
{
    char *place = *to;

    blz_sort_copy_(place, element, s);
    __builtin_prefetch(place + 64, 1);
    *to = place + s;
}

BLZ_SORT_INLINE_ void blz_sort_scatter_(const char *v, const uint16_t *ids, size_t n, char **to,
                                        size_t s)
{
    for (size_t i = 0; i < n; i++) {
        blz_sort_move_(v + i * s, &to[ids[i]], s);
    }
}

/* ---- in place ---- */

BLZ_SORT_INLINE_ void blz_sort_swap_(char *a, char *b, size_t s)
{
    char buffer[64];
    size_t done = 0;

    for (; s - done > sizeof buffer; done += sizeof buffer) {
        memcpy(buffer, a + done, sizeof buffer);
        memmove(a + done, b + done, sizeof buffer);
        memcpy(b + done, buffer, sizeof buffer);
    }
    memcpy(buffer, a + done, s - done);
    memmove(a + done, b + done, s - done);
    memcpy(b + done, buffer, s - done);
}

/* Each element changes places with the first that was not moved to the front; that one moves on
 * if it was. No branch, and no position that depends on more than a count. */
BLZ_SORT_INLINE_ size_t blz_sort_partition_(char *v, size_t n, bool with_equals, size_t s,
                                            blz_sort_less_fn_ less, void *arg)
{
    size_t front = 1;

    for (size_t i = 1; i < n; i++) {
        size_t c = with_equals ? !less(v, v + i * s, arg) : less(v + i * s, v, arg);

        blz_sort_swap_(v + front * s, v + i * s, s);
        front += c;
    }
    blz_sort_swap_(v, v + (front - 1) * s, s);
    return front - 1;
}

/* ---- the functions behind the macros ---- */

BLZ_API int blz_par_sort_(blz_par *par, const struct blz_sort_kernels_ *kernels, void *v, size_t n,
                          bool stable, void *arg, const blz_par_options *options);
BLZ_API int blz_par_merge_(blz_par *par, const struct blz_sort_kernels_ *kernels, const void *a,
                           size_t na, const void *b, size_t nb, void *out, void *arg,
                           const blz_par_options *options);
BLZ_API int blz_par_kth_(blz_par *par, const struct blz_sort_kernels_ *kernels, void *v, size_t n,
                         size_t k, void *arg, const blz_par_options *options);

/* For keys that are computed once: pairs of a key and the number of its element. */
struct blz_sort_cached_ {
    const struct blz_sort_kernels_ *pairs;
    size_t size;         /* of an element */
    size_t index_offset; /* of the number in a pair, a size_t */
    void (*fill)(const void *v, size_t begin, size_t end, void *pairs, void *arg);
};
BLZ_API int blz_par_sort_cached_(blz_par *par, const struct blz_sort_cached_ *cached, void *v,
                                 size_t n, void *arg, const blz_par_options *options);

/* ---- kernels of a type ---- */

#define BLZ_SORT_DEFINED_ static inline __attribute__((unused))

/* gcc with -O3 gives each choice at the end of a loop a way back of its own, and a branch. */
#ifdef __clang__
#define BLZ_SORT_MERGES_
#else
#define BLZ_SORT_MERGES_ __attribute__((optimize("no-split-paths")))
#endif

/* All but `less`, `classify` and `scatter`, which radix sorts do differently. */
#define BLZ_SORT_COMMON_KERNELS_(name, type)                                                       \
    BLZ_SORT_MERGES_ BLZ_SORT_DEFINED_ void name##_leaf_(char *v, char *spare, size_t n,           \
                                                         bool into_spare, void *arg)               \
    {                                                                                              \
        blz_sort_leaf_(v, spare, n, into_spare, sizeof(type), name##_less_, arg);                  \
    }                                                                                              \
    BLZ_SORT_MERGES_ BLZ_SORT_DEFINED_ void name##_merge_(const char *a, size_t na, const char *b, \
                                                          size_t nb, char *out, void *arg)         \
    {                                                                                              \
        blz_sort_merge_(a, na, b, nb, out, sizeof(type), name##_less_, arg);                       \
    }                                                                                              \
    BLZ_SORT_DEFINED_ size_t name##_run_(const char *v, size_t n, bool *down, void *arg)           \
    {                                                                                              \
        return blz_sort_run_(v, n, down, sizeof(type), name##_less_, arg);                         \
    }                                                                                              \
    BLZ_SORT_DEFINED_ size_t name##_partition_(char *v, size_t n, bool with_equals, void *arg)     \
    {                                                                                              \
        return blz_sort_partition_(v, n, with_equals, sizeof(type), name##_less_, arg);            \
    }

/* With the comparison name##_less_. */
#define BLZ_SORT_KERNELS_(name, type)                                                           \
    BLZ_SORT_COMMON_KERNELS_(name, type)                                                        \
    BLZ_SORT_DEFINED_ void name##_classify_(const struct blz_sort_split_ *by, const char *v,    \
                                            size_t n, uint16_t *ids, size_t *counts, void *arg) \
    {                                                                                           \
        blz_sort_classify_(by, v, n, ids, counts, sizeof(type), name##_less_, arg);             \
    }                                                                                           \
    BLZ_SORT_DEFINED_ void name##_scatter_(const struct blz_sort_split_ *by, const char *v,     \
                                           const uint16_t *ids, size_t n, char **to)            \
    {                                                                                           \
        (void)by;                                                                               \
        blz_sort_scatter_(v, ids, n, to, sizeof(type));                                         \
    }                                                                                           \
    __attribute__((unused)) static const struct blz_sort_kernels_ name##_kernels_ = {           \
        sizeof(type), __alignof__(type), name##_less_,    name##_leaf_,      name##_merge_,     \
        name##_run_,  name##_classify_,  name##_scatter_, name##_partition_, NULL,              \
    };

BLZ_END_DECLS
#endif
