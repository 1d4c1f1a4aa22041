/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stop signals: the one table of the process, and the futures that wait for it.
 *
 * The table counts the open blz_stops of all runtimes. The first one starts the herald and installs
 * the handlers, the last one puts the old handlers back and ends the herald; one lock keeps these
 * in order. The notice (notice.h) carries a signal from the handler to the waiters.
 *
 * The handler runs on any thread of the program that does not block the signals, between any two of
 * its instructions. It reads and changes the notice's word, and calls what POSIX lets it call. The
 * herald unblocks the two signals for itself, because there may be no other thread that does.
 *
 * A signal handler survives a fork, and the herald does not. `process` is a word that reads 0 in a
 * forked child: there the handler passes the signal on to the handlers from before, and the first
 * to open a blz_stop wipes the table, whose locks may have been held in the parent. Old blz_stops
 * are recognised by their number: it says in which process they were opened.
 */
#include "signal/notice.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(blz_stop) == 16 && sizeof(blz_stop_op) == 104, "part of the ABI");

enum { NR_SIGNALS = 2, PROCESS_NEW = 0, PROCESS_READY = 1, PROCESS_WIPING = 2 };

static const int signals[NR_SIGNALS] = {SIGINT, SIGTERM};

static struct {
    uint32_t *process; /* PROCESS_*; NULL: never used */
    uint64_t number;   /* of the process: how many forks, plus one */
    blz__lock lock;    /* of what follows, up to the notice */
    uint32_t nr_open;
    blz__thread herald;
    stop_notice notice;
    struct sigaction previous[NR_SIGNALS]; /* survives a fork, as our handlers do */
} table = {.number = 1};

/* ---- the handler ---- */

static void on_signal(int signal);

static bool is_ours(const struct sigaction *action)
{
    return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == on_signal;
}

/* The signal goes to whoever handles it now, or did before us. It comes when the handler ends. */
static void pass_on(int signal)
{
    struct sigaction now;

    sigaction(signal, NULL, &now);
    for (int i = 0; i < NR_SIGNALS; i++)
        if (signals[i] == signal && is_ours(&now))
            sigaction(signal, &table.previous[i], NULL);
    raise(signal);
}

static void act_by_default(int signal)
{
    struct sigaction action = {.sa_handler = SIG_DFL};

    sigaction(signal, &action, NULL);
    raise(signal);
}

static void on_signal(int signal)
{
    int saved = errno;
    enum notice_verdict verdict = NOTICE_CLOSED;

    if (blz__load(table.process, RELAXED) == PROCESS_READY)
        verdict = notice_signal(&table.notice, signal);
    if (verdict == NOTICE_CLOSED)
        pass_on(signal);
    else if (verdict == NOTICE_SECOND)
        act_by_default(signal);
    errno = saved;
}

/* One signal at a time on a thread, and interrupted system calls go on. */
static void install_handlers(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, old;

    sigemptyset(&action.sa_mask);
    for (int i = 0; i < NR_SIGNALS; i++)
        sigaddset(&action.sa_mask, signals[i]);
    for (int i = 0; i < NR_SIGNALS; i++) {
        sigaction(signals[i], NULL, &old);
        if (!is_ours(&old)) /* it is in a forked child */
            table.previous[i] = old;
        sigaction(signals[i], &action, NULL);
    }
}

/* Unless the program has put other handlers over ours. */
static void restore_handlers(void)
{
    struct sigaction now;

    for (int i = 0; i < NR_SIGNALS; i++) {
        sigaction(signals[i], NULL, &now);
        if (is_ours(&now))
            sigaction(signals[i], &table.previous[i], NULL);
    }
}

/* ---- the herald ---- */

static void herald_main(void *arg)
{
    sigset_t set;

    (void)arg;
    sigemptyset(&set);
    for (int i = 0; i < NR_SIGNALS; i++)
        sigaddset(&set, signals[i]);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    blz__notice_herald(&table.notice);
}

/* ---- the process ---- */

/* The word that reads 0 after a fork, made by the first who needs it. NULL: no memory. */
static uint32_t *process_word(void)
{
    uint32_t *word = blz__load(&table.process, ACQUIRE), *fresh; /* pairs with the CAS below */

    if (word)
        return word;
    fresh = blz__fork_word_new();
    if (!fresh)
        return NULL;
    blz__store(fresh, PROCESS_READY, RELAXED);
    if (blz__cas(&table.process, &word, fresh, RELEASE, ACQUIRE)) /* pairs with the load above */
        return fresh;
    blz__fork_word_free(fresh);
    return word;
}

/* What the parent's threads were doing at the moment of the fork is not going to be finished. */
static void wipe_table(void)
{
    blz__store(&table.number, table.number + 1, RELAXED); /* published with `process` */
    table.lock = (blz__lock){0};
    table.nr_open = 0;
    table.notice = (stop_notice){0};
}

/* Makes the table this process's. */
static int enter_process(void)
{
    uint32_t *word = process_word(), state = PROCESS_NEW;

    if (!word)
        return -ENOMEM;
    if (blz__cas(word, &state, (uint32_t)PROCESS_WIPING, ACQUIRE, ACQUIRE)) {
        wipe_table();
        blz__store(word, PROCESS_READY, RELEASE); /* pairs with the acquire of those below */
        return 0;
    }
    while (state == PROCESS_WIPING) {
        blz__thread_yield();
        state = blz__load(word, ACQUIRE); /* pairs with the release above */
    }
    return 0;
}

/* 0 if the blz_stop is open in this process. */
static int check_open(const blz_stop *stop)
{
    uint32_t *word = blz__load(&table.process, ACQUIRE); /* pairs with process_word */

    if (stop->private_[0] == 0)
        return -EBADF;
    if (!word || blz__load(word, ACQUIRE) != PROCESS_READY || /* pairs with enter_process */
        stop->private_[0] != blz__load(&table.number, RELAXED))
        return -EOWNERDEAD;
    return 0;
}

/* ---- opening and closing ---- */

/* Gives the signal that came and that nobody looked at, or 0. */
static int put_back(void)
{
    restore_handlers();
    return notice_close(&table.notice);
}

/* Handlers first: the herald unblocks signals that may have been waiting for that. */
static int begin_watching(int *unseen)
{
    int rc;

    notice_open(&table.notice);
    install_handlers();
    rc = blz__thread_start(&table.herald, herald_main, NULL, 0, "blitz-stop");
    if (rc < 0)
        *unseen = put_back();
    return rc;
}

/* To any thread: this one may block it. Without the lock: it may be the program's turn. */
static void raise_again(int unseen)
{
    if (unseen)
        kill(getpid(), unseen);
}

int blz_stop_open(blz_stop *stop)
{
    int unseen = 0, rc = enter_process();

    *stop = (blz_stop){{0}};
    if (rc < 0)
        return rc;
    blz__lock_acquire(&table.lock);
    if (table.nr_open == 0)
        rc = begin_watching(&unseen);
    if (rc == 0) {
        table.nr_open++;
        stop->private_[0] = table.number;
    }
    blz__lock_release(&table.lock);
    raise_again(unseen);
    return rc;
}

void blz_stop_close(blz_stop *stop)
{
    int unseen = 0;

    if (check_open(stop) == 0) {
        blz__lock_acquire(&table.lock);
        if (--table.nr_open == 0) {
            unseen = put_back();
            blz__thread_join(table.herald);
        }
        blz__lock_release(&table.lock);
    }
    *stop = (blz_stop){{0}};
    raise_again(unseen);
}

int blz_stop_received(const blz_stop *stop)
{
    int rc = check_open(stop);
    return rc < 0 ? rc : notice_look(&table.notice);
}

/* ---- waiting ---- */

enum { WAIT_START = 0, WAIT_LINKED = 1, WAIT_CANCELLED = 2 };

static blz_poll wait_end(blz_stop_op *op, int64_t result)
{
    if (op->future.line != WAIT_START)
        blz__notice_leave(&table.notice, op);
    blz_stop_close(&op->own);
    return blz_future_done(&op->future, result);
}

static int wait_begin(blz_stop_op *op, blz_cx *cx)
{
    int rc = op->stop ? check_open(op->stop) : blz_stop_open(&op->own);

    if (rc < 0)
        return rc;
    op->future.line = WAIT_LINKED;
    return blz__notice_wait(&table.notice, op, blz_cx_waker(cx));
}

static blz_poll wait_poll(blz_future *self, blz_cx *cx)
{
    blz_stop_op *op = (blz_stop_op *)self;
    int rc;

    if (self->line == WAIT_CANCELLED)
        return wait_end(op, -ECANCELED); /* and the signal stays unseen */
    if (!blz_coop_take(cx))
        return BLZ_PENDING;
    rc = self->line == WAIT_START ? wait_begin(op, cx) : notice_look(&table.notice);
    if (rc != 0)
        return wait_end(op, rc);
    blz_coop_give_back(cx);
    return BLZ_PENDING;
}

static void wait_cancel(blz_future *self, blz_cx *cx)
{
    blz_stop_op *op = (blz_stop_op *)self;

    (void)cx;
    if (self->line == WAIT_LINKED)
        blz__notice_leave(&table.notice, op);
    self->line = WAIT_CANCELLED;
}

blz_future *blz_stop_wait(blz_stop_op *op, blz_stop *stop)
{
    static const blz_future_ops ops = {.name = "stop_wait",
                                       .poll = wait_poll,
                                       .cancel = wait_cancel};

    *op = (blz_stop_op){.future = {.ops = &ops}, .stop = stop};
    return &op->future;
}

blz_future *blz_stop_signal(blz_stop_op *op)
{
    return blz_stop_wait(op, NULL);
}
