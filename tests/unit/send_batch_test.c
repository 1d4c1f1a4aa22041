/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tasks write while others wait for their turn is sent when the worker next looks at its
 * driver: not before, and not at all if it ends before that.
 *
 * On one worker tasks run in an order that is known: a task that has been spawned last, then the
 * others in turn. So the witness runs right behind the writer.
 */
#include "io_fixture.h"

#include <poll.h>
#include <unistd.h>

enum act { LOOKS_ON, CLOSES };

struct scene {
    struct pair pair;
    blz_handle writer;
    int kind, how;
    enum act act;
    struct event started; /* the writer */
    bool was_second;      /* the witness ran behind the writer, */
    bool was_done;        /* which had ended by then, */
    size_t came;          /* and this many bytes had arrived */
};

struct witness {
    BLZ_FRAME;
    struct scene *scene;
};

BLZ_ASYNC(witness)
{
    struct scene *scene = self->scene;

    BLZ_BEGIN;
    scene->was_second = event_count(&scene->started) == 1;
    scene->was_done = blz_handle_done(&scene->writer);
    scene->came = drain(scene->pair.far);
    if (scene->act == CLOSES)
        blz__fd_close(&scene->pair.ours);
    BLZ_END(0);
}

struct bystander {
    BLZ_FRAME;
};

BLZ_ASYNC(bystander)
{
    (void)self;
    BLZ_BEGIN;
    BLZ_END(0);
}

struct stage {
    BLZ_FRAME;
    struct scene *scene;
    blz_handle_join_op join;
    int64_t rc;
};

BLZ_ASYNC(stage)
{
    struct scene *scene = self->scene;

    BLZ_BEGIN;
    check(BLZ_SPAWN_JOIN(&scene->writer, does_io, .kind = scene->kind, .how = scene->how,
                         .ref = scene->pair.ours, .started = &scene->started) == 0);
    check(BLZ_SPAWN(witness, .scene = scene) == 0);
    check(BLZ_SPAWN(bystander) == 0);
    BLZ_AWAIT(self->rc, blz_handle_join(&self->join, &self->scene->writer));
    BLZ_END(self->rc < 0 ? self->rc : self->scene->writer.result);
}

static const int kinds[] = {IO_WRITE, IO_WRITEV, IO_SENDMSG};

/* False: the worker looked at its driver before the witness had its turn, as a slow one does. */
static bool play_once(blz_rt *rt, struct scene *scene, int64_t expected, size_t arrives)
{
    bool as_planned;
    int64_t rc;

    open_pair(&scene->pair, rt, PAIR_UNIX);
    rc = BLZ_BLOCK_ON(rt, stage, .scene = scene);
    assert_true(scene->was_second);
    as_planned = scene->came == 0 && scene->was_done == (scene->how == DO_CANCELLED_SOON);
    if (as_planned) {
        assert_int_equal(rc, expected);
        assert_int_equal(drain(scene->pair.far), arrives);
    }
    close_pair(&scene->pair);
    return as_planned;
}

/* For each kind of write, until it has gone as planned. */
static void play(blz_rt *rt, int how, enum act act, int64_t expected, size_t arrives)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        bool as_planned = false;
        for (int tries = 0; tries < 1000 && !as_planned; tries++) {
            struct scene scene = {.kind = kinds[i], .how = how, .act = act, .started = EVENT_INIT};
            as_planned = play_once(rt, &scene, expected, arrives);
        }
        assert_true(as_planned);
    }
}

static void send_in_the_end(blz_rt *rt)
{
    play(rt, DO_PLAIN, LOOKS_ON, 64, 64);
}

static void cancel_before(blz_rt *rt)
{
    play(rt, DO_CANCELLED_SOON, LOOKS_ON, -ECANCELED, 0);
}

static void close_before(blz_rt *rt)
{
    play(rt, DO_PLAIN, CLOSES, -EBADF, 0);
}

static void what_is_written_in_a_crowd_is_sent_with_the_rest(void **state)
{
    (void)state;
    on_every_backend_of(1, send_in_the_end);
}

static void what_is_cancelled_before_that_is_not_sent(void **state)
{
    (void)state;
    on_every_backend_of(1, cancel_before);
}

static void what_is_closed_before_that_is_not_sent(void **state)
{
    (void)state;
    on_every_backend_of(1, close_before);
}

/* Many that cannot be sent, in between those that can: each has its own result. */
enum { CROWD = 8 };

static int64_t result_of(blz_handle *handle)
{
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

static void full_ones_in_between(blz_rt *rt)
{
    struct pair pairs[CROWD];
    blz_handle handles[CROWD];

    for (int i = 0; i < CROWD; i++) {
        open_pair(&pairs[i], rt, PAIR_UNIX);
        if (i % 2)
            check(fill(pairs[i].fd) > 0);
    }
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], does_io, .kind = IO_WRITE,
                                      .ref = pairs[i].ours),
                         0);
    for (int i = 0; i < CROWD; i += 2)
        assert_int_equal(result_of(&handles[i]), 64);
    for (int i = 1; i < CROWD; i += 2) {
        assert_false(blz_handle_done(&handles[i]));
        check(drain(pairs[i].far) > 0);
        assert_int_equal(result_of(&handles[i]), 64);
    }
    for (int i = 0; i < CROWD; i++)
        close_pair(&pairs[i]);
}

static void what_does_not_fit_waits_for_room(void **state)
{
    (void)state;
    on_every_backend(full_ones_in_between);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_in_a_crowd_is_sent_with_the_rest),
        TEST(what_is_cancelled_before_that_is_not_sent),
        TEST(what_is_closed_before_that_is_not_sent),
        TEST(what_does_not_fit_waits_for_room),
    };
    return RUN_TESTS(tests);
}
