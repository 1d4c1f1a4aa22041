// SPDX-License-Identifier: Apache-2.0
// Work shared by the fork-join programs: sizes, input arrays, and the row kernel of matmul1024.
#pragma once
#include "bench.h"

enum {
    SUM_N = 100000000,        // elements of sum_*, indices of mapreduce_splitmix
    SORT_N = 10000000,        // elements of sort_*
    TREE_N = (1 << 24) - 1,   // nodes of tree24
    QUEENS_NODES = 856189,    // nodes of the 12-queens search tree
    QUEENS_SOLUTIONS = 14200, // its solutions
    MATRIX = 1024,            // order of the matrices of matmul1024
    WAKE_SHORT_SAMPLES = 400, // after 1 ms of idleness
    WAKE_LONG_SAMPLES = 60,   // after 20 ms
};

// Joins made by fib(k) when every call with k >= 2 joins: fib(k + 1) - 1.
#define FIB30_JOINS 1346268
#define FIB35_JOINS 14930351
#define FIB38_JOINS 63245985
#define FIB40_JOINS 165580140

static inline uint64_t *iota_u64(size_t n)
{
    uint64_t *a = (uint64_t *)malloc(n * sizeof *a);
    for (size_t i = 0; i < n; i++)
        a[i] = i;
    return a;
}

static inline double *iota_f64(size_t n)
{
    double *a = (double *)malloc(n * sizeof *a);
    for (size_t i = 0; i < n; i++)
        a[i] = (double)i;
    return a;
}

struct matrices {
    double *x, *y, *z; // z = x * y, row major
};

static inline struct matrices matrices_new(void)
{
    size_t n = (size_t)MATRIX * MATRIX;
    struct matrices m = {(double *)malloc(n * 8), (double *)malloc(n * 8), (double *)malloc(n * 8)};
    for (size_t i = 0; i < n; i++) {
        m.x[i] = (double)(i % 97);
        m.y[i] = (double)(i % 89);
        m.z[i] = 0;
    }
    return m;
}

static inline void matrices_free(struct matrices *m)
{
    g_sink = (uint64_t)m->z[77];
    free(m->x);
    free(m->y);
    free(m->z);
}

// One row of the product, i-k-j order.
static inline void matmul_row(const struct matrices *m, int i)
{
    double *__restrict row = m->z + (size_t)i * MATRIX;
    memset(row, 0, MATRIX * sizeof *row);
    for (int k = 0; k < MATRIX; k++) {
        double a = m->x[(size_t)i * MATRIX + k];
        const double *b = m->y + (size_t)k * MATRIX;
        for (int j = 0; j < MATRIX; j++)
            row[j] += a * b[j];
    }
}

static inline void check_queens(uint64_t solutions)
{
    if (solutions != QUEENS_SOLUTIONS)
        abort();
}

#define LENGTH(array) (sizeof(array) / sizeof *(array))
