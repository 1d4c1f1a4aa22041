/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parallel loops.
 *
 *     static int scale(blz_par *par, size_t begin, size_t end, void *arg)
 *     {
 *         double *v = arg;
 *
 *         for (size_t i = begin; i < end; i++)
 *             v[i] *= 2;
 *         return 0;
 *     }
 *
 *     rc = blz_par_for(par, n, scale, v, NULL);        // in a computation, see par.h
 *
 * The body is called with parts of [0, n), by as many threads as have nothing else to do. How
 * finely the loop is cut is found out while it runs: a loop that is over in two microseconds is one
 * call, or a few; a long one is cut where other threads come for work. The order of the calls is
 * not defined.
 *
 * A body that returns a negative error ends the loop: no further part is begun, those that are
 * under way are waited for, and the loop returns the error that came first.
 *
 * Errors of every loop are those of its body, and the error of the cancellation in its options.
 */
#ifndef BLITZ_PAR_FOR_H
#define BLITZ_PAR_FOR_H

#include <blitz/par.h>

BLZ_BEGIN_DECLS

/* What the macros make: a program need not use all of it. */
#define BLZ_PAR_DEFINED_ static inline __attribute__((unused))

/* ---- cancellation ---- */

/* Ends computations that know of it. {0} at first: not cancelled. It may be used for many. */
typedef struct blz_par_cancel {
    int32_t code; /* 0, or why; written once, by any thread */
    uint32_t reserved[3];
} blz_par_cancel;

/* Cancels, with a negative error (-ECANCELED, ...). The first error stays. [any thread] */
BLZ_API void blz_par_cancel_set(blz_par_cancel *cancel, int error);

/* The error with which it has been cancelled; 0: it has not been. [any thread] */
BLZ_API int blz_par_cancel_code(const blz_par_cancel *cancel);

/* ---- options ---- */

/* Of a single call of an algorithm. NULL, or all zero: the defaults. */
typedef struct blz_par_options {
    size_t grain;              /* never cut into parts of fewer elements; 0: found out */
    blz_par_cancel *cancel;    /* looked at before each part is begun; NULL: none */
    blz_par_wait_mode waiting; /* for parts that others have taken */
    uint64_t reserved[4];
} blz_par_options;

/* ---- loops ---- */

/* For the indices begin to end - 1. 0, or a negative error, which ends the loop. */
typedef int (*blz_par_range_fn)(blz_par *par, size_t begin, size_t end, void *arg);

/*
 * Calls the body with ranges that make up [0, n), each index once. 0; the first error of a body; or
 * the error of the cancellation. When it returns no thread is in the body any more. [in a
 * computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_for(blz_par *par, size_t n, blz_par_range_fn body, void *arg,
                                      const blz_par_options *options);

/*
 * Defines a parallel loop over one index at a time, with its body inlined: int name(blz_par *,
 * size_t n, type *ctx, const blz_par_options *).
 *
 *     BLZ_PAR_DEFINE_FOR(add, struct vectors, v, i, v->sum[i] = v->a[i] + v->b[i];)
 *
 *     rc = add(par, n, &vectors, NULL);
 */
#define BLZ_PAR_DEFINE_FOR(name, type, ctx, i, ...)                                           \
    BLZ_PAR_DEFINED_ int name##_range_(blz_par *par_, size_t begin_, size_t end_, void *arg_) \
    {                                                                                         \
        type *ctx = (type *)arg_;                                                             \
                                                                                              \
        (void)par_;                                                                           \
        (void)ctx;                                                                            \
        BLZ_PAR_UNROLL_ for (size_t i = begin_; i < end_; i++)                                \
        {                                                                                     \
            __VA_ARGS__                                                                       \
        }                                                                                     \
        return 0;                                                                             \
    }                                                                                         \
    BLZ_PAR_DEFINED_ BLZ_NODISCARD int name(blz_par *par_, size_t n_, type *ctx,              \
                                            const blz_par_options *options_)                  \
    {                                                                                         \
        return blz_par_for(par_, n_, name##_range_, (void *)(uintptr_t)ctx, options_);        \
    }

/* A loop that does little at a time is four times as long and has a quarter of the jumps. */
#if defined(__clang__)
#define BLZ_PAR_UNROLL_ _Pragma("clang loop unroll_count(4)")
#else
#define BLZ_PAR_UNROLL_ _Pragma("GCC unroll 4")
#endif

/* ---- two dimensions ---- */

/* Rows row to row_end - 1, of each the columns col to col_end - 1. */
typedef struct blz_par_tile {
    size_t row, row_end;
    size_t col, col_end;
} blz_par_tile;

/* The body of a loop in two dimensions. 0, or a negative error, which ends the loop. */
typedef int (*blz_par_tile_fn)(blz_par *par, const blz_par_tile *tile, void *arg);

/*
 * Calls the body with tiles that make up rows x cols, each cell once; the longer side of a tile is
 * halved. options->grain counts cells. 0; the first error of a body; or the error of the
 * cancellation. [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_for_2d(blz_par *par, size_t rows, size_t cols,
                                         blz_par_tile_fn body, void *arg,
                                         const blz_par_options *options);

/*
 * Defines a parallel loop over one cell at a time, row y and column x, with its body inlined: int
 * name(blz_par *, size_t rows, size_t cols, type *ctx, const blz_par_options *).
 *
 *     BLZ_PAR_DEFINE_FOR_2D(turn, struct images, m, y, x, m->out[x][y] = m->in[y][x];)
 */
#define BLZ_PAR_DEFINE_FOR_2D(name, type, ctx, y, x, ...)                                          \
    BLZ_PAR_DEFINED_ int name##_tile_(blz_par *par_, const blz_par_tile *tile_, void *arg_)        \
    {                                                                                              \
        type *ctx = (type *)arg_;                                                                  \
                                                                                                   \
        (void)par_;                                                                                \
        (void)ctx;                                                                                 \
        for (size_t y = tile_->row; y < tile_->row_end; y++) {                                     \
            for (size_t x = tile_->col; x < tile_->col_end; x++) {                                 \
                __VA_ARGS__                                                                        \
            }                                                                                      \
        }                                                                                          \
        return 0;                                                                                  \
    }                                                                                              \
    BLZ_PAR_DEFINED_ BLZ_NODISCARD int name(blz_par *par_, size_t rows_, size_t cols_, type *ctx,  \
                                            const blz_par_options *options_)                       \
    {                                                                                              \
        return blz_par_for_2d(par_, rows_, cols_, name##_tile_, (void *)(uintptr_t)ctx, options_); \
    }

/* ---- arrays ---- */

/* Compares: negative: *a comes before *b; positive: after it; 0: either. */
typedef int (*blz_par_compare_fn)(const void *a, const void *b, void *arg);

/* Makes *out of *in. 0, or a negative error, which ends the loop. */
typedef int (*blz_par_map_fn)(void *out, const void *in, void *arg);

/*
 * out[i] = fn(in[i]), for elements of those sizes in bytes; out may be in itself, if the sizes are
 * equal. A size of 0 is allowed: all have the same address then. After an error some are done.
 * [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_map(blz_par *par, void *out, const void *in, size_t n,
                                      size_t out_size, size_t in_size, blz_par_map_fn fn, void *arg,
                                      const blz_par_options *options);

/* Copies *value into each of the n elements of that size in bytes. [in a computation] */
BLZ_API BLZ_NODISCARD int blz_par_fill(blz_par *par, void *out, size_t n, size_t size,
                                       const void *value, const blz_par_options *options);

/*
 * Defines a parallel loop that makes each element of one array from that of another, with the types
 * known and the function inlined: int name(blz_par *, out_type *out, const in_type *in, size_t n,
 * const blz_par_options *).
 *
 *     BLZ_PAR_DEFINE_MAP(square_roots, double, float, x, sqrt(x))
 */
#define BLZ_PAR_DEFINE_MAP(name, out_type, in_type, x, ...)                                    \
    struct name##_arrays_ {                                                                    \
        out_type *out;                                                                         \
        const in_type *in;                                                                     \
    };                                                                                         \
    BLZ_PAR_DEFINED_ out_type name##_of_(const in_type x)                                      \
    {                                                                                          \
        return __VA_ARGS__;                                                                    \
    }                                                                                          \
    BLZ_PAR_DEFINE_FOR(name##_all_, const struct name##_arrays_, arrays_, i_,                  \
                       arrays_->out[i_] = name##_of_(arrays_->in[i_]);)                        \
    BLZ_PAR_DEFINED_ BLZ_NODISCARD int name(blz_par *par_, out_type *out_, const in_type *in_, \
                                            size_t n_, const blz_par_options *options_)        \
    {                                                                                          \
        struct name##_arrays_ arrays_ = {out_, in_};                                           \
                                                                                               \
        return name##_all_(par_, n_, &arrays_, options_);                                      \
    }

/* ---- chunks, zip, enumerate, chain: bodies over other shapes [any thread] ---- */

/*
 * Zip and enumerate need nothing: a body has the index, and uses it for as many arrays as it likes.
 *
 * Chunks of `size` elements (one at least), the last one shorter: a loop over
 * blz_par_chunks(n, size) of them, and in the body
 *
 *     for (size_t c = begin; c < end; c++)
 *         sum[c] = sum_of(v + blz_par_chunk_begin(c, size), v + blz_par_chunk_end(c, n, size));
 */
static inline size_t blz_par_chunks(size_t n, size_t size)
{
    return n / size + (n % size != 0);
}

/* Where a chunk begins. */
static inline size_t blz_par_chunk_begin(size_t chunk, size_t size)
{
    return chunk * size;
}

/* Where a chunk ends: behind its last element. */
static inline size_t blz_par_chunk_end(size_t chunk, size_t n, size_t size)
{
    return n - chunk * size < size ? n : (chunk + 1) * size;
}

/*
 * Several arrays as one: a loop over the sum of their lengths, and in the body, which goes through
 * the pieces of its range,
 *
 *     for (blz_par_piece p = {0}; blz_par_chain_next(&p, lens, 3, begin, end);)
 *         for (size_t i = p.begin; i < p.end; i++)
 *             arrays[p.which][i] = 0;
 */
typedef struct blz_par_piece {
    size_t which;      /* array */
    size_t begin, end; /* within it */
    size_t at, offset; /* in the chain: where the next piece begins, and where its array does */
    size_t next;
} blz_par_piece;

/* Gives the next piece of [begin, end), or false: there is none. */
static inline bool blz_par_chain_next(blz_par_piece *p, const size_t *lens, size_t nr, size_t begin,
                                      size_t end)
{
    if (p->at < begin)
        p->at = begin;
    while (p->next < nr && (lens[p->next] == 0 || p->at - p->offset >= lens[p->next]))
        p->offset += lens[p->next++];
    if (p->next == nr || p->at >= end)
        return false;
    p->which = p->next;
    p->begin = p->at - p->offset;
    p->end = end - p->offset < lens[p->which] ? end - p->offset : lens[p->which];
    p->at = p->offset + p->end;
    return true;
}

BLZ_END_DECLS
#endif
