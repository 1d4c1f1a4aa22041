/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much operations move, on every backend: all of it in as many pieces as it takes, what there
 * was before the end, lengths of nothing and of everything.
 */
#include "io_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- tasks ---- */

/* One read or write of a given length, or all of it. */
struct moves {
    BLZ_FRAME;
    blz__fd_ref ref;
    int kind;
    bool all;
    char *buf;
    size_t len;
    uint64_t *done;
    int64_t rc;
    blz_io io;
};

static blz_future *move(struct moves *self)
{
    static const blz_future_ops ops = {.name = "move",
                                       .poll = blz__io_poll,
                                       .cancel = blz__io_cancel};
    blz_future *io =
        blz__io_init(&self->io, &ops, (enum io_kind)self->kind, &self->ref, self->buf, self->len);

    if (self->all)
        ((struct io *)io)->flags |= IO_ALL;
    return io;
}

BLZ_ASYNC(moves)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, move(self));
    if (self->done)
        *self->done = self->io.done;
    BLZ_END(self->rc);
}

static int64_t result_of(blz_handle *handle)
{
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

/* ---- pieces ---- */

enum { LARGE = 300000 };

static char large[LARGE], arrived[LARGE];

static void make_large(void)
{
    uint64_t seed = 7;

    for (size_t i = 0; i < LARGE; i++)
        large[i] = (char)random_below(&seed, 256);
    memset(arrived, 0, sizeof arrived);
}

static void all_in_pieces(blz_rt *rt)
{
    static const enum pair_kind kinds[] = {PAIR_TCP, PAIR_UNIX, PAIR_PIPE_OUT};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct pair pair;
        blz_handle handle;
        size_t got = 0;
        make_large();
        open_pair(&pair, rt, kinds[i]);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, moves, .ref = pair.ours, .kind = IO_WRITE,
                                      .all = true, .buf = large, .len = LARGE),
                         0);
        while (got < LARGE) {
            struct pollfd p = {.fd = pair.far, .events = POLLIN};
            assert_int_equal(poll(&p, 1, -1), 1);
            ssize_t n = read(pair.far, arrived + got, got % 2 ? 777 : 4000);
            assert_true(n > 0);
            got += (size_t)n;
        }
        assert_int_equal(result_of(&handle), LARGE);
        assert_memory_equal(large, arrived, LARGE);
        close_pair(&pair);
    }
}

static void write_all_writes_in_as_many_pieces_as_it_takes(void **state)
{
    (void)state;
    on_every_backend(all_in_pieces);
}

static void exact_from_pieces(blz_rt *rt)
{
    static const enum pair_kind kinds[] = {PAIR_TCP, PAIR_UNIX, PAIR_PIPE_IN};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct pair pair;
        blz_handle handle;
        make_large();
        open_pair(&pair, rt, kinds[i]);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, moves, .ref = pair.ours, .kind = IO_READ,
                                      .all = true, .buf = arrived, .len = LARGE),
                         0);
        for (size_t put = 0; put < LARGE;) {
            struct pollfd p = {.fd = pair.far, .events = POLLOUT};
            size_t len = LARGE - put < 1777 ? LARGE - put : 1777;
            assert_int_equal(poll(&p, 1, -1), 1);
            ssize_t n = write(pair.far, large + put, len);
            assert_true(n > 0);
            put += (size_t)n;
        }
        assert_int_equal(result_of(&handle), LARGE);
        assert_memory_equal(large, arrived, LARGE);
        close_pair(&pair);
    }
}

static void read_exact_reads_in_as_many_pieces_as_it_takes(void **state)
{
    (void)state;
    on_every_backend(exact_from_pieces);
}

static void exact_ends_early(blz_rt *rt)
{
    struct pair pair;
    blz_handle handle;
    uint64_t done = 0;

    open_pair(&pair, rt, PAIR_TCP);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, moves, .ref = pair.ours, .kind = IO_READ,
                                  .all = true, .buf = arrived, .len = 100, .done = &done),
                     0);
    assert_int_equal(write(pair.far, "hello", 5), 5);
    assert_int_equal(shutdown(pair.far, SHUT_WR), 0);
    assert_int_equal(result_of(&handle), -ENODATA);
    assert_int_equal(done, 5);
    close_pair(&pair);
}

static void read_exact_says_how_much_there_was_before_the_end(void **state)
{
    (void)state;
    on_every_backend(exact_ends_early);
}

static void progress_of_a_write(blz_rt *rt)
{
    struct pair pair;
    blz_handle handle;
    uint64_t done = 0;

    make_large();
    open_pair(&pair, rt, PAIR_UNIX);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, moves, .ref = pair.ours, .kind = IO_WRITE,
                                  .all = true, .buf = large, .len = LARGE, .done = &done),
                     0);
    wait_until_idle(rt);
    blz_handle_cancel(&handle);
    assert_int_equal(result_of(&handle), -ECANCELED);
    assert_true(done > 0 && done < LARGE);
    assert_int_equal(drain(pair.far), done);
    close_pair(&pair);
}

static void a_cancelled_write_all_says_how_far_it_came(void **state)
{
    (void)state;
    on_every_backend(progress_of_a_write);
}

/* The data is there before the read starts, so it is known to have been taken. */
static void progress_of_a_read(blz_rt *rt)
{
    struct pair pair;
    blz_handle handle;
    uint64_t done = 0;

    open_pair(&pair, rt, PAIR_UNIX);
    assert_int_equal(write(pair.far, "hello", 5), 5);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, moves, .ref = pair.ours, .kind = IO_READ,
                                  .all = true, .buf = arrived, .len = 100, .done = &done),
                     0);
    wait_until_idle(rt);
    blz_handle_cancel(&handle);
    assert_int_equal(result_of(&handle), -ECANCELED);
    assert_int_equal(done, 5);
    assert_memory_equal(arrived, "hello", 5);
    close_pair(&pair);
}

static void a_cancelled_read_exact_says_how_far_it_came(void **state)
{
    (void)state;
    on_every_backend(progress_of_a_read);
}

static void closed_half_way(blz_rt *rt)
{
    struct pair pair;
    blz_handle handle;
    uint64_t done = 0;

    make_large();
    open_pair(&pair, rt, PAIR_UNIX);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, moves, .ref = pair.ours, .kind = IO_WRITE,
                                  .all = true, .buf = large, .len = LARGE, .done = &done),
                     0);
    wait_until_idle(rt);
    assert_int_equal(blz__fd_close(&pair.ours), 0);
    assert_int_equal(result_of(&handle), -EBADF);
    assert_int_equal(drain(pair.far), done);
    close_pair(&pair);
}

static void a_write_all_whose_descriptor_is_closed_ends(void **state)
{
    (void)state;
    on_every_backend(closed_half_way);
}

/* A worker must not be stuck in a write to a pipe that is larger than the room in it. */
static void large_vector_to_a_pipe(blz_rt *rt)
{
    struct pair pair;
    blz_handle handle;
    blz_iovec iov[2] = {{large, 100000}, {large + 100000, 200000}};
    int64_t first;

    make_large();
    open_pair(&pair, rt, PAIR_PIPE_OUT);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, moves, .ref = pair.ours, .kind = IO_WRITEV,
                                  .buf = (char *)iov, .len = 2),
                     0);
    first = result_of(&handle);
    assert_true(first > 0 && first < LARGE);
    assert_int_equal(drain(pair.far), first);
    close_pair(&pair);
}

static void a_vector_that_a_pipe_has_no_room_for_is_written_in_part(void **state)
{
    (void)state;
    on_every_backend(large_vector_to_a_pipe);
}

/* ---- lengths ---- */

static void nothing_at_all(blz_rt *rt)
{
    static const int kinds[] = {IO_READ, IO_WRITE, IO_READV, IO_WRITEV, IO_PEEK};
    struct pair pair;

    open_pair(&pair, rt, PAIR_TCP);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int all = 0; all < 2; all++) /* nothing is there, and nothing need be */
            assert_int_equal(BLZ_BLOCK_ON(rt, moves, .ref = pair.ours, .kind = kinds[i],
                                          .all = all && i < 2, .buf = arrived, .len = 0),
                             0);
    close_pair(&pair);
}

static void a_length_of_zero_is_done_at_once(void **state)
{
    (void)state;
    on_every_backend(nothing_at_all);
}

static void more_than_four_gigabytes(blz_rt *rt)
{
    size_t len = ((size_t)4 << 30) + 4096;
    char *room =
        mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    static const enum pair_kind kinds[] = {PAIR_TCP, PAIR_UNIX, PAIR_PIPE_IN};

    assert_true(room != MAP_FAILED);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct pair pair;
        blz_handle handle;
        open_pair(&pair, rt, kinds[i]);
        assert_int_equal(BLZ_SPAWN_ON(rt, &handle, moves, .ref = pair.ours, .kind = IO_READ,
                                      .buf = room, .len = len),
                         0);
        assert_int_equal(write(pair.far, "hello", 5), 5);
        assert_int_equal(result_of(&handle), 5);
        assert_memory_equal(room, "hello", 5);
        if (kinds[i] != PAIR_PIPE_IN) {
            int64_t n = BLZ_BLOCK_ON(rt, moves, .ref = pair.ours, .kind = IO_WRITE, .buf = room,
                                     .len = len);
            assert_true(n > 0 && n <= 1 << 30);
        }
        close_pair(&pair);
    }
    munmap(room, len);
}

static void lengths_above_four_gigabytes_are_moved_in_part(void **state)
{
    (void)state;
    on_every_backend(more_than_four_gigabytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(write_all_writes_in_as_many_pieces_as_it_takes),
        TEST(read_exact_reads_in_as_many_pieces_as_it_takes),
        TEST(read_exact_says_how_much_there_was_before_the_end),
        TEST(a_cancelled_write_all_says_how_far_it_came),
        TEST(a_cancelled_read_exact_says_how_far_it_came),
        TEST(a_write_all_whose_descriptor_is_closed_ends),
        TEST(a_vector_that_a_pipe_has_no_room_for_is_written_in_part),
        TEST(a_length_of_zero_is_done_at_once),
        TEST(lengths_above_four_gigabytes_are_moved_in_part),
    };
    return RUN_TESTS(tests);
}
