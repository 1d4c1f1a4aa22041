/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stop signals: everybody is told, nothing is lost between two waits, the handlers from before come
 * back, a second signal kills, a forked child is on its own.
 *
 * What kills is tested in programs of its own: this one, started again with BLZ_STOP_CHILD set.
 */
#include "harness.h"

#include "signal/table.h"

#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const int both[] = {SIGINT, SIGTERM};

/* ---- the program's own handlers ---- */

static struct {
    int calls[2]; /* atomic */
    sem_t called;
} own;

static void count_call(int signal)
{
    __atomic_fetch_add(&own.calls[signal == SIGTERM], 1, __ATOMIC_RELAXED);
    sem_post(&own.called);
}

/* From now on signals that are not caught by the library are counted here. */
static void install_own(void)
{
    struct sigaction action = {.sa_handler = count_call, .sa_flags = SA_NODEFER};

    memset(own.calls, 0, sizeof own.calls);
    sem_init(&own.called, 0, 0);
    for (int i = 0; i < 2; i++)
        sigaction(both[i], &action, NULL);
}

static bool own_is_installed(void)
{
    struct sigaction now[2];

    for (int i = 0; i < 2; i++)
        sigaction(both[i], NULL, &now[i]);
    return now[0].sa_handler == count_call && now[1].sa_handler == count_call &&
           (now[0].sa_flags & now[1].sa_flags & SA_NODEFER);
}

static int own_calls(int signal)
{
    return __atomic_load_n(&own.calls[signal == SIGTERM], __ATOMIC_RELAXED);
}

/* ---- tasks ---- */

struct waits {
    BLZ_FRAME;
    blz_stop *stop;        /* NULL: one of its own, for each wait */
    struct event *started; /* posted before it waits, if there is one */
    struct event *ended;   /* and after */
    int times;             /* how often, at least once */
    int64_t rc;
    blz_stop_op op;
};

BLZ_ASYNC(waits)
{
    BLZ_BEGIN;
    if (self->started)
        event_post(self->started);
    do {
        BLZ_AWAIT(self->rc,
                  self->stop ? blz_stop_await(&self->op, self->stop) : blz_stop_signal(&self->op));
    } while (self->rc > 0 && --self->times > 0);
    if (self->ended)
        event_post(self->ended);
    BLZ_END(self->rc);
}

static int64_t result_of(blz_handle *handle)
{
    assert_int_equal(blz_handle_wait(handle), 0);
    return handle->result;
}

/* The thread that tells of signals may have the waiter in its hands. */
static void turn_until_done(blz_rt *rt, const blz_handle *handle)
{
    struct pollfd fd = {.fd = blz_rt_fd(rt), .events = POLLIN};

    for (turn_all(rt); !blz_handle_done(handle); turn_all(rt))
        assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
}

static blz_stop opened(void)
{
    blz_stop stop;

    assert_int_equal(blz_stop_open(&stop), 0);
    return stop;
}

/* ---- waiting ---- */

static void a_signal_wakes_all_waiters_of_all_runtimes(void **state)
{
    enum { COUNT = 50 };
    blz_rt *rts[2] = {new_rt(&(blz_options){.workers = 2}), new_rt(&(blz_options){.workers = 1})};
    struct event started = EVENT_INIT;
    blz_handle handles[2 * COUNT];
    blz_stop stop;

    (void)state;
    for (int k = 0; k < 2; k++) {
        stop = opened();
        for (int i = 0; i < 2 * COUNT; i++)
            assert_int_equal(BLZ_SPAWN_ON(rts[i % 2], &handles[i], waits,
                                          .stop = i % 3 ? &stop : NULL, .started = &started),
                             0);
        event_wait(&started, (k + 1) * 2 * COUNT);
        raise(both[k]);
        for (int i = 0; i < 2 * COUNT; i++)
            assert_int_equal(result_of(&handles[i]), both[k]);
        assert_int_equal(blz_stop_received(&stop), both[k]);
        blz_stop_close(&stop);
    }
    free_rt(rts[0]);
    free_rt(rts[1]);
}

static void a_signal_is_kept_for_those_who_come_later(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_stop stop = opened(), another;
    blz_handle handle;

    (void)state;
    assert_int_equal(blz_stop_received(&stop), 0);
    raise(SIGTERM);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits, .stop = &stop, .times = 5), 0);
    assert_int_equal(turn_all(rt), 1); /* ready at once, every time */
    assert_int_equal(result_of(&handle), SIGTERM);
    another = opened();
    assert_int_equal(blz_stop_received(&another), SIGTERM);
    blz_stop_close(&stop);
    assert_int_equal(blz_stop_received(&another), SIGTERM);
    blz_stop_close(&another);
    stop = opened(); /* all were closed in between: the request is over */
    assert_int_equal(blz_stop_received(&stop), 0);
    blz_stop_close(&stop);
    free_rt(rt);
}

static void a_loop_that_waits_for_an_embedded_runtime_is_woken(void **state)
{
    /* Not poll, which has no descriptor to wait for. */
    blz_rt *rt =
        new_rt(&(blz_options){.embedded = true, .watchdog_ns = BLZ_NEVER, .backend = "epoll"});
    blz_stop stop = opened();
    blz_handle handle;

    (void)state;
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits, .stop = &stop), 0);
    turn_all(rt);
    assert_false(blz_handle_done(&handle));
    raise(SIGINT);
    while (!blz_handle_done(&handle)) {
        struct pollfd fd = {.fd = blz_rt_fd(rt), .events = POLLIN};
        assert_int_equal(poll(&fd, 1, -1), 1);
        turn_all(rt);
    }
    assert_int_equal(result_of(&handle), SIGINT);
    blz_stop_close(&stop);
    free_rt(rt);
}

static void a_wait_can_be_cancelled(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_stop stop = opened();
    blz_handle handles[3];

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], waits, .stop = i ? &stop : NULL), 0);
    blz_handle_cancel(&handles[2]); /* before it has begun */
    turn_all(rt);
    blz_handle_cancel(&handles[0]);
    blz_handle_cancel(&handles[1]);
    turn_all(rt);
    for (int i = 0; i < 3; i++)
        assert_int_equal(result_of(&handles[i]), -ECANCELED);
    assert_int_equal(blz_stop_received(&stop), 0);
    blz_stop_close(&stop);
    free_rt(rt);
}

static void what_is_not_open_says_so(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_stop stop = {{0}};
    blz_handle handle;

    (void)state;
    assert_int_equal(blz_stop_received(&stop), -EBADF);
    blz_stop_close(&stop);
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits, .stop = &stop), 0);
    turn_all(rt);
    assert_int_equal(result_of(&handle), -EBADF);
    stop = opened();
    blz_stop_close(&stop);
    blz_stop_close(&stop);
    assert_int_equal(blz_stop_received(&stop), -EBADF);
    free_rt(rt);
}

/* ---- handlers ---- */

static void the_last_one_closed_puts_the_handlers_back(void **state)
{
    blz_stop first, second;

    (void)state;
    install_own();
    first = opened();
    assert_false(own_is_installed());
    second = opened();
    blz_stop_close(&first);
    assert_false(own_is_installed());
    first = opened();
    blz_stop_close(&second);
    assert_false(own_is_installed());
    blz_stop_close(&first);
    assert_true(own_is_installed());
    raise(SIGINT);
    assert_int_equal(own_calls(SIGINT), 1);
}

static void a_wait_alone_puts_the_handlers_back(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    install_own();
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits), 0);
    turn_all(rt);
    assert_false(own_is_installed());
    blz_handle_cancel(&handle);
    turn_all(rt);
    assert_true(own_is_installed());
    assert_int_equal(result_of(&handle), -ECANCELED);
    assert_int_equal(own_calls(SIGINT) + own_calls(SIGTERM), 0);
    free_rt(rt);
}

static void a_signal_that_nobody_has_seen_is_raised_again(void **state)
{
    blz_stop stop;

    (void)state;
    install_own();
    stop = opened();
    raise(SIGTERM);
    assert_int_equal(own_calls(SIGTERM), 0);
    blz_stop_close(&stop);
    while (sem_wait(&own.called) < 0)
        continue;
    assert_int_equal(own_calls(SIGTERM), 1);
}

static void a_cancelled_wait_has_not_seen_the_signal(void **state)
{
    blz_rt *rt = new_embedded_rt();
    blz_handle handle;

    (void)state;
    install_own();
    assert_int_equal(BLZ_SPAWN_ON(rt, &handle, waits), 0);
    turn_all(rt);
    raise(SIGINT);
    blz_handle_cancel(&handle);
    turn_until_done(rt, &handle);
    assert_int_equal(result_of(&handle), -ECANCELED);
    while (sem_wait(&own.called) < 0)
        continue;
    assert_int_equal(own_calls(SIGINT), 1);
    free_rt(rt);
}

static void a_signal_that_was_seen_is_not_raised_again(void **state)
{
    blz_stop stop;

    (void)state;
    install_own();
    stop = opened();
    raise(SIGTERM);
    assert_int_equal(blz_stop_received(&stop), SIGTERM);
    blz_stop_close(&stop);
    raise(SIGINT); /* and this one is the next that they get */
    assert_int_equal(own_calls(SIGINT), 1);
    assert_int_equal(own_calls(SIGTERM), 0);
}

static void handlers_put_over_ours_are_left_alone(void **state)
{
    struct sigaction ours;
    blz_stop stop;

    (void)state;
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    stop = opened();
    sigaction(SIGINT, NULL, &ours);
    install_own();
    blz_stop_close(&stop);
    assert_true(own_is_installed());
    /* What the program had put aside may even come back after the end. */
    sigaction(SIGINT, &ours, NULL);
    raise(SIGINT); /* passed on to the handler from before us: ignored */
    sigaction(SIGINT, NULL, &ours);
    assert_true(ours.sa_handler == SIG_IGN);
    assert_int_equal(own_calls(SIGINT), 0);
}

static void errno_survives_the_handler(void **state)
{
    blz_stop stop = opened();

    (void)state;
    errno = EXDEV;
    raise(SIGINT);
    assert_int_equal(errno, EXDEV);
    assert_int_equal(blz_stop_received(&stop), SIGINT);
    blz_stop_close(&stop);
}

/* ---- many at once ---- */

struct opener {
    int rounds;
    struct event *go;
};

static void *open_and_close(void *arg)
{
    struct opener *opener = arg;

    event_wait(opener->go, 1);
    for (int i = 0; i < opener->rounds; i++) {
        blz_stop stop;
        check(blz_stop_open(&stop) == 0);
        check(blz_stop_received(&stop) >= 0);
        blz_stop_close(&stop);
    }
    return NULL;
}

static void opening_and_closing_on_many_threads(void **state)
{
    enum { THREADS = 4 };
    struct event go = EVENT_INIT;
    struct opener opener = {(int)scaled(500), &go};
    pthread_t threads[THREADS];

    (void)state;
    install_own();
    for (int i = 0; i < THREADS; i++)
        threads[i] = start_thread(open_and_close, &opener);
    event_post(&go);
    for (int i = 0; i < THREADS; i++)
        join_thread(threads[i]);
    assert_true(own_is_installed());
    assert_int_equal(own_calls(SIGINT) + own_calls(SIGTERM), 0);
}

/* Each signal ends the waits of one round, of which some are cancelled at the same moment. */
static void signals_and_cancellations_race(void **state)
{
    enum { TASKS = 8 };
    blz_rt *rt = new_rt(&(blz_options){.workers = 2});
    int64_t told = 0, cancelled = 0;

    (void)state;
    for (int64_t round = scaled(300); round > 0; round--) {
        blz_handle handles[TASKS];
        blz_stop stop = opened();
        for (int i = 0; i < TASKS; i++)
            assert_int_equal(BLZ_SPAWN_ON(rt, &handles[i], waits, .stop = i % 2 ? &stop : NULL), 0);
        for (int i = 0; i < TASKS; i++) {
            if (i == TASKS / 2)
                raise(SIGTERM);
            if (i % 4 == 0)
                blz_handle_cancel(&handles[i]);
        }
        for (int i = 0; i < TASKS; i++) {
            int64_t result = result_of(&handles[i]);
            assert_true(result == SIGTERM || (result == -ECANCELED && i % 4 == 0));
            told += result == SIGTERM;
            cancelled += result == -ECANCELED;
        }
        assert_int_equal(blz_stop_received(&stop), SIGTERM);
        blz_stop_close(&stop);
    }
    assert_true(told > 0 && told + cancelled == TASKS * scaled(300));
    free_rt(rt);
}

/* ---- programs that are killed ---- */

static void say(char c)
{
    check(write(STDOUT_FILENO, &c, 1) == 1);
}

/*
 * Says 's' when the stop has come, and then hangs in its shutdown. The main thread, which gets the
 * signals, sleeps in a call that the thread sanitizer knows: elsewhere it holds signals back.
 */
static int hangs_in_its_shutdown(void)
{
    static struct event ended = EVENT_INIT;
    blz_stop stop = opened();
    blz_rt *rt;

    blz__store(&blz__signals()->repeat_ns, 0, RELAXED); /* every signal is a request of its own */
    check(blz_rt_new(&rt, NULL) == 0);
    check(BLZ_SPAWN_ON(rt, NULL, waits, .stop = &stop, .ended = &ended) == 0);
    say('r');
    event_wait(&ended, 1);
    check(blz_stop_received(&stop) == SIGINT);
    say('s');
    event_wait(&ended, 2);
    return 1;
}

/*
 * Says 's' when the stop has come, and ends in order when it is told to. For this program there is
 * no time after which a second signal is a request of its own.
 */
static int ends_in_order(void)
{
    blz_stop stop = opened();
    char c;

    check(blz__signals()->repeat_ns == BLZ_STOP_REPEAT_NS);
    blz__store(&blz__signals()->repeat_ns, INT64_MAX, RELAXED);
    say('r');
    check(BLZ_RUN(waits, .stop = &stop) == SIGTERM);
    say('s');
    while (read(STDIN_FILENO, &c, 1) < 0)
        check(errno == EINTR);
    check(blz_stop_received(&stop) == SIGTERM);
    blz_stop_close(&stop);
    return 42;
}

/* The main thread is a worker, and every thread blocks the signals. */
static int blocks_the_signals(void)
{
    sigset_t set;
    int64_t rc;

    sigfillset(&set);
    sigprocmask(SIG_SETMASK, &set, NULL);
    say('r');
    rc = BLZ_RUN(waits, .times = 1);
    return rc == SIGINT ? 42 : 1;
}

/* Its parent has opened one; what it inherits is void, but it may have its own. */
static int is_stopped_after_a_fork(void)
{
    blz_stop stop = opened();
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        blz_stop mine;
        if (blz_stop_received(&stop) != -EOWNERDEAD)
            _exit(1);
        if (blz_stop_open(&mine) != 0 || blz_stop_received(&mine) != 0)
            _exit(2);
        raise(SIGINT);
        if (blz_stop_received(&mine) != SIGINT)
            _exit(3);
        blz_stop_close(&stop); /* the parent's: nothing happens */
        if (blz_stop_received(&mine) != SIGINT)
            _exit(4);
        blz_stop_close(&mine);
        raise(SIGINT); /* the default action: the handlers from before the parent's */
        _exit(5);
    }
    check(waitpid(pid, &status, 0) == pid);
    check(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    check(blz_stop_received(&stop) == 0); /* that was not for us */
    say('r');
    check(BLZ_RUN(waits, .stop = &stop) == SIGTERM);
    blz_stop_close(&stop);
    return 42;
}

static int child_program(const char *name)
{
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    alarm(CHILD_SECONDS);
    if (strcmp(name, "hangs") == 0)
        return hangs_in_its_shutdown();
    if (strcmp(name, "orderly") == 0)
        return ends_in_order();
    if (strcmp(name, "blocks") == 0)
        return blocks_the_signals();
    if (strcmp(name, "forks") == 0)
        return is_stopped_after_a_fork();
    return 99;
}

struct child {
    pid_t pid;
    int input, output;
};

static struct child start_child(const char *name)
{
    struct child child;
    int in[2], out[2];

    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    child.pid = fork();
    if (child.pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        setenv("BLZ_STOP_CHILD", name, 1);
        execl("/proc/self/exe", "stop", (char *)NULL);
        _exit(98);
    }
    close(in[0]);
    close(out[1]);
    child.input = in[1];
    child.output = out[0];
    return child;
}

static void expect_output(struct child *child, char expected)
{
    char c = 0;

    assert_int_equal(read(child->output, &c, 1), 1);
    assert_int_equal(c, expected);
}

/* How it ended: its exit code, or -signal. */
static int end_of(struct child *child)
{
    int status = 0;

    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    close(child->input);
    close(child->output);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void a_second_signal_of_either_kind_kills(void **state)
{
    (void)state;
    if (is_sanitized())
        skip(); /* the thread sanitizer holds the signal back if it comes at a bad moment */
    for (int i = 0; i < 2; i++) {
        struct child child = start_child("hangs");
        expect_output(&child, 'r');
        kill(child.pid, SIGINT);
        expect_output(&child, 's');
        kill(child.pid, both[i]);
        assert_int_equal(end_of(&child), -both[i]);
    }
}

static void tell_to_end(struct child *child)
{
    assert_int_equal(write(child->input, "e", 1), 1);
}

static void a_signal_that_is_repeated_soon_does_not_kill(void **state)
{
    struct child child;

    (void)state;
    child = start_child("orderly");
    expect_output(&child, 'r');
    kill(child.pid, SIGTERM);
    expect_output(&child, 's');
    for (int i = 0; i < 3; i++)
        kill(child.pid, both[i % 2]);
    tell_to_end(&child);
    assert_int_equal(end_of(&child), 42);
}

/* As timeout(1) does. */
static void two_signals_at_once_do_not_kill(void **state)
{
    (void)state;
    for (int64_t round = scaled(50); round > 0; round--) {
        struct child child = start_child("orderly");
        expect_output(&child, 'r');
        kill(child.pid, SIGTERM);
        kill(child.pid, SIGTERM);
        tell_to_end(&child);
        expect_output(&child, 's');
        assert_int_equal(end_of(&child), 42);
    }
}

static void a_program_that_blocks_the_signals_is_told_all_the_same(void **state)
{
    struct child child;

    (void)state;
    if (is_sanitized())
        skip(); /* the thread sanitizer holds signals back from a thread that sleeps */
    child = start_child("blocks");
    expect_output(&child, 'r');
    kill(child.pid, SIGINT);
    assert_int_equal(end_of(&child), 42);
}

static void a_forked_child_has_a_table_of_its_own(void **state)
{
    struct child child;

    (void)state;
    if (is_sanitized())
        skip(); /* the thread sanitizer forbids threads after a fork */
    child = start_child("forks");
    expect_output(&child, 'r');
    kill(child.pid, SIGTERM);
    assert_int_equal(end_of(&child), 42);
}

int main(void)
{
    const char *child = getenv("BLZ_STOP_CHILD");
    const struct CMUnitTest tests[] = {
        TEST(a_signal_wakes_all_waiters_of_all_runtimes),
        TEST(a_signal_is_kept_for_those_who_come_later),
        TEST(a_loop_that_waits_for_an_embedded_runtime_is_woken),
        TEST(a_wait_can_be_cancelled),
        TEST(what_is_not_open_says_so),
        TEST(the_last_one_closed_puts_the_handlers_back),
        TEST(a_wait_alone_puts_the_handlers_back),
        TEST(a_signal_that_nobody_has_seen_is_raised_again),
        TEST(a_cancelled_wait_has_not_seen_the_signal),
        TEST(a_signal_that_was_seen_is_not_raised_again),
        TEST(handlers_put_over_ours_are_left_alone),
        TEST(errno_survives_the_handler),
        TEST(opening_and_closing_on_many_threads),
        TEST(signals_and_cancellations_race),
        TEST(a_second_signal_of_either_kind_kills),
        TEST(a_signal_that_is_repeated_soon_does_not_kill),
        TEST(two_signals_at_once_do_not_kill),
        TEST(a_program_that_blocks_the_signals_is_told_all_the_same),
        TEST(a_forked_child_has_a_table_of_its_own),
    };

    if (child)
        return child_program(child);
    return RUN_TESTS(tests);
}
