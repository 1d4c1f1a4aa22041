/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parallel algorithms in which the place of a result depends on what comes before it: scans (prefix
 * sums), filters, partitions; and those that move elements: flatten, gather, scatter; histograms.
 *
 *     BLZ_PAR_DEFINE_SCAN(sum, uint64_t, acc + right)
 *     BLZ_PAR_DEFINE_FILTER(even, uint64_t, x % 2 == 0)
 *
 *     static void tidy(blz_par *par, void *arg)               // in a computation, see par.h
 *     {
 *         struct numbers *v = arg;
 *
 *         v->rc = even_filter(par, v->out, &v->nr, v->in, v->n, NULL, NULL);
 *         if (v->rc == 0)
 *             v->rc = sum_inclusive(par, v->out, v->out, v->nr, NULL, NULL);
 *     }
 *
 * Each BLZ_PAR_DEFINE_ macro makes functions for one element type with the operation compiled into
 * their loops. The operation is an expression of names that mean the same in all of them: `x` is an
 * element and `i` its index, `a` and `b` point to two elements that are compared, `acc` and `right`
 * are two values that are combined, and `arg` is the argument of the call. Beside them are
 * functions for elements of any size with callbacks.
 *
 * An operation may be called for the same elements twice, by several threads at once, in any
 * order; it must depend on nothing but its operands and what `arg` points to. Results are the same
 * for any number of threads, with one exception: a scan with an operation that is not quite
 * associative (sums of floats) may differ in the last bits from run to run.
 *
 * Elements may have no bytes (size 0). Then only their number counts: callbacks get pointers that
 * are not to be read, and nothing is written.
 *
 * All take options as in par_for.h, where `grain` is the number of elements in a block. One thread
 * needs no more time than the plain loop.
 *
 * Errors of every function: the error of the cancellation; -ENOMEM where that is said; and of
 * blz_par_histogram the first error of its callback. A predicate gives no error: it ends the call
 * by blz_par_cancel_set. After an error the contents of the outputs are undefined; no thread works
 * on them any more.
 */
#ifndef BLITZ_PAR_SCAN_H
#define BLITZ_PAR_SCAN_H

#include <blitz/par_kernels.h>

BLZ_BEGIN_DECLS

/* ---- scans ---- */

/*
 * BLZ_PAR_DEFINE_SCAN(name, type, operation): acc and right are values of the type; the operation
 * is associative. Defines
 *
 *     int name_inclusive(blz_par *par, type *out, const type *in, size_t n, void *arg,
 *                        const blz_par_options *options);
 *
 *     int name_exclusive(blz_par *par, type *out, type *total, const type *in, size_t n,
 *                        type first, void *arg, const blz_par_options *options);
 *
 * inclusive: out[i] is in[0] op in[1] ... op in[i]. exclusive: out[i] is first op in[0] ... op
 * in[i - 1], and *total (unless NULL) is what would come next. out may be in. [in a computation]
 */
#define BLZ_PAR_DEFINE_SCAN(name, type, operation)                                                 \
    BLZ_PAR_DEFINED_ type name##_op_(type acc, type right, void *arg)                              \
    {                                                                                              \
        (void)arg;                                                                                 \
        return (operation);                                                                        \
    }                                                                                              \
                                                                                                   \
    BLZ_PAR_SCAN_KERNELS_(name, type)                                                              \
                                                                                                   \
    BLZ_PAR_DEFINED_ BLZ_NODISCARD int name##_inclusive(blz_par *par, type *out, const type *in,   \
                                                        size_t n, void *arg,                       \
                                                        const blz_par_options *options)            \
    {                                                                                              \
        struct blz_par_arrays_ arrays = {in, out, NULL, n, arg};                                   \
        struct blz_par_chain_ chain = {n,           sizeof(type),      sizeof(type), &arrays,      \
                                       name##_sum_, name##_inclusive_, name##_add_};               \
        type value;                                                                                \
                                                                                                   \
        return blz_par_chain_run_(par, &chain, &value, false, options);                            \
    }                                                                                              \
                                                                                                   \
    BLZ_PAR_DEFINED_ BLZ_NODISCARD int name##_exclusive(blz_par *par, type *out, type *total,      \
                                                        const type *in, size_t n, type first,      \
                                                        void *arg, const blz_par_options *options) \
    {                                                                                              \
        struct blz_par_arrays_ arrays = {in, out, NULL, n, arg};                                   \
        struct blz_par_chain_ chain = {n,           sizeof(type),      sizeof(type), &arrays,      \
                                       name##_sum_, name##_exclusive_, name##_add_};               \
        type value = first;                                                                        \
        int rc = blz_par_chain_run_(par, &chain, &value, true, options);                           \
                                                                                                   \
        if (total)                                                                                 \
            *total = value;                                                                        \
        return rc;                                                                                 \
    }

/* *sum = *sum op *x. */
typedef void (*blz_par_op_fn)(void *sum, const void *x, void *arg);

/*
 * Scans elements of `size` bytes. Inclusive: out[i] is in[0] op in[1] ... op in[i]. Exclusive:
 * out[i] is *first op in[0] ... op in[i - 1], and *total (unless NULL) is what would come next. out
 * may be in. -ENOMEM for large elements only. [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_scan_inclusive(blz_par *par, void *out, const void *in, size_t n,
                                                 size_t size, blz_par_op_fn op, void *arg,
                                                 const blz_par_options *options);
BLZ_API BLZ_NODISCARD int blz_par_scan_exclusive(blz_par *par, void *out, void *total,
                                                 const void *in, size_t n, size_t size,
                                                 const void *first, blz_par_op_fn op, void *arg,
                                                 const blz_par_options *options);

/* ---- filters and partitions ---- */

/*
 * BLZ_PAR_DEFINE_FILTER(name, type, keep): x is an element, i its index; keep is true or false.
 * Defines
 *
 *     int name_filter(blz_par *par, type *out, size_t *nr, const type *in, size_t n, void *arg,
 *                     const blz_par_options *options);
 *
 *     int name_index(blz_par *par, size_t *out, size_t *nr, const type *in, size_t n, void *arg,
 *                    const blz_par_options *options);
 *
 *     int name_partition(blz_par *par, type *out, type *rest, size_t *nr, const type *in, size_t n,
 *                        void *arg, const blz_par_options *options);
 *
 * filter: out gets the elements that are kept; index: their indices; partition: the others go to
 * `rest`, or, if that is NULL, behind those that are kept, and out has room for all. Order is
 * preserved everywhere. *nr is the number of those kept. out and rest must have room for what they
 * get (n is always enough), and may not overlap with anything. [in a computation]
 */
#define BLZ_PAR_DEFINE_FILTER(name, type, keep)                                                    \
    BLZ_PAR_DEFINED_ bool name##_keep_(const type *in, size_t i, void *arg)                        \
    {                                                                                              \
        const type x = in[i];                                                                      \
                                                                                                   \
        (void)x;                                                                                   \
        (void)arg;                                                                                 \
        return (keep);                                                                             \
    }                                                                                              \
                                                                                                   \
    BLZ_PAR_COUNT_KERNEL_(name, type)                                                              \
    BLZ_PAR_WRITE_KERNEL_(name##_filter_, name, type, type, in[i])                                 \
    BLZ_PAR_WRITE_KERNEL_(name##_index_, name, type, size_t, i)                                    \
    BLZ_PAR_SPLIT_KERNEL_(name##_partition_, name, type)                                           \
    BLZ_PAR_PACK_FUNCTION_(name##_filter, name, type, type)                                        \
    BLZ_PAR_PACK_FUNCTION_(name##_index, name, type, size_t)                                       \
                                                                                                   \
    BLZ_PAR_DEFINED_ BLZ_NODISCARD int name##_partition(blz_par *par, type *out, type *rest,       \
                                                        size_t *nr, const type *in, size_t n,      \
                                                        void *arg, const blz_par_options *options) \
    {                                                                                              \
        struct blz_par_arrays_ arrays = {in, out, rest, n, arg};                                   \
                                                                                                   \
        return blz_par_partition_(par, sizeof(type), &arrays, name##_count_, name##_partition_,    \
                                  nr, options);                                                    \
    }

/*
 * BLZ_PAR_DEFINE_UNIQUE(name, type, equal): a and b point to neighbours; equal is true or false.
 * Defines
 *
 *     int name_unique(blz_par *par, type *out, size_t *nr, const type *in, size_t n, void *arg,
 *                     const blz_par_options *options);
 *
 * which leaves out every element that is equal to the one before it: of a sorted array the distinct
 * ones remain. (Of an array that is not sorted: name_distinct in par_group.h.) [in a computation]
 */
#define BLZ_PAR_DEFINE_UNIQUE(name, type, equal)                                 \
    BLZ_PAR_DEFINED_ bool name##_equal_(const type *a, const type *b, void *arg) \
    {                                                                            \
        (void)arg;                                                               \
        return (equal);                                                          \
    }                                                                            \
                                                                                 \
    BLZ_PAR_DEFINED_ bool name##_keep_(const type *in, size_t i, void *arg)      \
    {                                                                            \
        return i == 0 || !name##_equal_(&in[i - 1], &in[i], arg);                \
    }                                                                            \
                                                                                 \
    BLZ_PAR_COUNT_KERNEL_(name, type)                                            \
    BLZ_PAR_WRITE_KERNEL_(name##_unique_, name, type, type, in[i])               \
    BLZ_PAR_PACK_FUNCTION_(name##_unique, name, type, type)

/* Whether an element is kept. */
typedef bool (*blz_par_keep_fn)(const void *x, void *arg);

/* Whether two elements are equal. */
typedef bool (*blz_par_equal_fn)(const void *a, const void *b, void *arg);

/*
 * Copies the elements of `size` bytes that are kept to out; *nr is their number. The order is
 * preserved. [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_filter(blz_par *par, void *out, size_t *nr, const void *in,
                                         size_t n, size_t size, blz_par_keep_fn keep, void *arg,
                                         const blz_par_options *options);

/*
 * Writes the indices of the elements that are kept to out; *nr is their number. [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_filter_index(blz_par *par, size_t *out, size_t *nr,
                                               const void *in, size_t n, size_t size,
                                               blz_par_keep_fn keep, void *arg,
                                               const blz_par_options *options);

/*
 * Copies the elements that are kept to out, and the others to `rest`, or, if that is NULL, behind
 * those that are kept; *nr is the number of those kept. The order is preserved. [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_partition(blz_par *par, void *out, void *rest, size_t *nr,
                                            const void *in, size_t n, size_t size,
                                            blz_par_keep_fn keep, void *arg,
                                            const blz_par_options *options);

/*
 * Copies the elements that are not equal to the one before them to out; *nr is their number. [in a
 * computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_unique(blz_par *par, void *out, size_t *nr, const void *in,
                                         size_t n, size_t size, blz_par_equal_fn equal, void *arg,
                                         const blz_par_options *options);

/*
 * Copies in[i] to out where flags[i] is true; *nr is their number. The order is preserved. [in a
 * computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_pack(blz_par *par, void *out, size_t *nr, const void *in,
                                       size_t n, size_t size, const bool *flags,
                                       const blz_par_options *options);

/* Writes the indices i where flags[i] is true to out; *nr is their number. [in a computation] */
BLZ_API BLZ_NODISCARD int blz_par_pack_index(blz_par *par, size_t *out, size_t *nr,
                                             const bool *flags, size_t n,
                                             const blz_par_options *options);

/* ---- moving ---- */

/* One of the arrays that are put together. */
typedef struct blz_par_slice {
    const void *data;
    size_t len; /* elements */
} blz_par_slice;

/*
 * Computes where each of the arrays begins in the whole: offsets has nr + 1 elements, the last one
 * is the length of all. [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_offsets(blz_par *par, size_t *offsets,
                                          const blz_par_slice *slices, size_t nr,
                                          const blz_par_options *options);

/*
 * Copies the arrays to where blz_par_offsets said, one behind the other. A long one is copied by
 * several threads. [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_flatten(blz_par *par, void *out, const blz_par_slice *slices,
                                          size_t nr, size_t size, const size_t *offsets,
                                          const blz_par_options *options);

/* out[i] = in[index[i]] for i < n; -ERANGE if an index is not below len. [in a computation] */
BLZ_API BLZ_NODISCARD int blz_par_gather(blz_par *par, void *out, const void *in, size_t len,
                                         size_t size, const size_t *index, size_t n,
                                         const blz_par_options *options);

/*
 * out[index[i]] = in[i] for i < n; -ERANGE if an index is not below len. The indices must be
 * different from each other. [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_scatter(blz_par *par, void *out, size_t len, const void *in,
                                          size_t n, size_t size, const size_t *index,
                                          const blz_par_options *options);

/* ---- histograms ---- */

/*
 * BLZ_PAR_DEFINE_HISTOGRAM(name, type, bucket): x is an element, i its index; bucket is an integer.
 * Defines
 *
 *     int name_histogram(blz_par *par, size_t *counts, size_t nr, const type *in, size_t n,
 *                        void *arg, const blz_par_options *options);
 *
 * counts[k], k < nr, becomes the number of elements whose bucket is k. -ERANGE: a bucket is not
 * below nr. [in a computation]
 */
#define BLZ_PAR_DEFINE_HISTOGRAM(name, type, bucket)                                             \
    BLZ_PAR_DEFINED_ size_t name##_bucket_(const type *in, size_t i, void *arg)                  \
    {                                                                                            \
        const type x = in[i];                                                                    \
                                                                                                 \
        (void)x;                                                                                 \
        (void)arg;                                                                               \
        return (size_t)(bucket);                                                                 \
    }                                                                                            \
                                                                                                 \
    BLZ_PAR_HISTOGRAM_KERNELS_(name, type)                                                       \
                                                                                                 \
    BLZ_PAR_DEFINED_ BLZ_NODISCARD int name##_histogram(blz_par *par, size_t *counts, size_t nr, \
                                                        const type *in, size_t n, void *arg,     \
                                                        const blz_par_options *options)          \
    {                                                                                            \
        struct blz_par_arrays_ arrays = {in, NULL, NULL, n, arg};                                \
                                                                                                 \
        return blz_par_histogram_(par, &arrays, name##_tally_, name##_tally_shared_, counts, nr, \
                                  options);                                                      \
    }

/* The bucket of an element, or a negative error. */
typedef int64_t (*blz_par_bucket_fn)(const void *x, void *arg);

/*
 * Counts elements of `size` bytes by their buckets: counts[k], k < nr, becomes the number of
 * elements whose bucket is k. -ERANGE: a bucket is not below nr. [in a computation]
 */
BLZ_API BLZ_NODISCARD int blz_par_histogram(blz_par *par, size_t *counts, size_t nr, const void *in,
                                            size_t n, size_t size, blz_par_bucket_fn bucket,
                                            void *arg, const blz_par_options *options);

BLZ_END_DECLS
#endif
