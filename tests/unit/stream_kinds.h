/* SPDX-License-Identifier: Apache-2.0 */
/* Two streams that are connected, of every kind there is. */
#ifndef BLZ_TESTS_STREAM_KINDS_H
#define BLZ_TESTS_STREAM_KINDS_H

#include "net_probe.h"

#include "io_fixture.h"

enum kind { KIND_TCP, KIND_UNIX, KIND_PIPE, KIND_PAIR, NR_KINDS };

/* What is written to `to` is read from `from`; the other way round with all but pipes. */
struct ends {
    blz_stream from, to;
    enum kind kind;
};

static inline bool is_two_way(const struct ends *ends)
{
    return ends->kind != KIND_PIPE;
}

static inline void open_ends(struct ends *ends, enum kind kind, blz_rt *rt)
{
    int fds[2];
    blz_tcp tcp[2];
    blz_unix local[2];
    blz_pipe in, out;

    ends->kind = kind;
    switch (kind) {
    case KIND_TCP:
        tcp_socketpair(fds);
        assert_int_equal(blz_tcp_from_fd(&tcp[0], fds[0], rt), 0);
        assert_int_equal(blz_tcp_from_fd(&tcp[1], fds[1], rt), 0);
        ends->from = blz_tcp_stream(&tcp[0]);
        ends->to = blz_tcp_stream(&tcp[1]);
        break;
    case KIND_UNIX:
        assert_int_equal(blz_unix_pair(&local[0], &local[1], rt), 0);
        ends->from = blz_unix_stream(&local[0]);
        ends->to = blz_unix_stream(&local[1]);
        break;
    case KIND_PIPE:
        assert_int_equal(blz_pipe_new(&in, &out, rt), 0);
        ends->from = blz_pipe_stream(&in);
        ends->to = blz_pipe_stream(&out);
        break;
    default:
        assert_int_equal(blz_stream_pair(&ends->from, &ends->to, 65536, test_memory()), 0);
        break;
    }
}

static inline void close_ends(struct ends *ends)
{
    blz_stream_close(&ends->from);
    blz_stream_close(&ends->to);
}

/* Runs a body for every backend and every kind. */
#define ON_EACH_KIND(name)                                         \
    static void name##_with(blz_rt *rt, struct ends *ends);        \
    ON_EACH_BACKEND(name)                                          \
    {                                                              \
        for (enum kind kind = KIND_TCP; kind < NR_KINDS; kind++) { \
            blz_rt *rt = turning_rt(backend);                      \
            struct ends ends;                                      \
            open_ends(&ends, kind, rt);                            \
            name##_with(rt, &ends);                                \
            close_ends(&ends);                                     \
            free_rt(rt);                                           \
        }                                                          \
    }                                                              \
    static void name##_with(blz_rt *rt, struct ends *ends)

#endif
