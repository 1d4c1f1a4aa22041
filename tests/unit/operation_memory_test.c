/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule of blitz/io.h for the memory of operations: zero before the first use, never cleared
 * between two, zeroed when it held something else.
 */
#include "net_probe.h"

/* Operations that are never in flight at the same time. */
union any_op {
    blz_io io;
    blz_msg msg;
    blz_stream_op stream;
    blz_sleep_op sleep;
    blz_timeout limit;
    blz_fs_op fs;
    blz_unix_connect_op connect;
    unsigned char bytes[1024];
};

struct ends {
    blz_rt *rt;
    blz_unix a, b;
    union any_op op;
    char buf[16];
};

#define FRESH(member) (e->op.member = (__typeof__(e->op.member)){0}, &e->op.member)

static void send_one(struct ends *e)
{
    blz_io io = {0};

    assert_int_equal(AWAIT(e->rt, blz_unix_write_all(&io, &e->a, "byte", 4)), 4);
}

static void each_in_turn(struct ends *e)
{
    blz_stream from = blz_unix_stream(&e->b);
    blz_bytes bytes = {0};
    blz_unix none;

    send_one(e);
    assert_int_equal(AWAIT(e->rt, blz_unix_read(FRESH(io), &e->b, e->buf, 16)), 4);
    send_one(e);
    assert_int_equal(AWAIT(e->rt, blz_unix_read(&e->op.io, &e->b, e->buf, 16)), 4); /* again */
    send_one(e);
    assert_int_equal(AWAIT(e->rt, blz_unix_recv_fds(FRESH(msg), &e->b, e->buf, 16, NULL, 0)), 4);
    send_one(e);
    assert_int_equal(AWAIT(e->rt, blz_stream_read_exact(FRESH(stream), &from, e->buf, 4)), 4);
    assert_int_equal(AWAIT(e->rt, blz_sleep(FRESH(sleep), 0)), 0);
    assert_int_equal(AWAIT(e->rt, blz_fs_read(FRESH(fs), "/nonexistent", &bytes, 64)), -ENOENT);
    assert_int_equal(AWAIT(e->rt, blz_unix_connect(FRESH(connect), &none, "unix:@blitz-nobody")),
                     -ECONNREFUSED);
}

ON_EACH_BACKEND(a_union_of_operations_is_zeroed_between_them)
{
    struct ends ends = {.rt = turning_rt(backend)}, *e = &ends;

    assert_int_equal(blz_unix_pair(&e->a, &e->b, e->rt), 0);
    for (int i = 0; i < 3; i++) {
        memset(&e->op, 0xa5 + i, sizeof e->op);
        each_in_turn(e);
    }
    blz_unix_close(&e->a);
    blz_unix_close(&e->b);
    free_rt(e->rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_union_of_operations_is_zeroed_between_them),
    };
    return RUN_TESTS(tests);
}
