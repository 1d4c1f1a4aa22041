/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table of the process: handlers, and the herald.
 *
 * The table counts the subscriptions to each signal, of all runtimes. The first one installs the
 * handler, the last one puts the old handler back; the first of all starts the herald, the last of
 * all ends it. One lock keeps these in order. The notice (notice.h) carries a signal from the
 * handler to those who wait.
 *
 * The handler runs on any thread of the program that does not block the signal, between any two of
 * its instructions. It changes the notice, and calls what POSIX lets it call; nothing is allocated.
 *
 * The herald unblocks for itself the signals that somebody wants, because there may be no other
 * thread that does. Only these: others that the program blocks are not ours to let in. So before
 * the old handler of a signal comes back, the herald has blocked it again (wait_for_herald):
 * otherwise the signal might do on the herald what the program keeps it from doing everywhere. The
 * lock is not held in the meantime, nor while the herald is joined: the herald takes it, too.
 *
 * A signal handler survives a fork, and the herald does not. `process` is a word that reads 0 in a
 * forked child: there the handler passes the signal on to the handlers from before, and the first
 * to subscribe wipes the table, whose locks may have been held in the parent. Old subscriptions are
 * recognised by their number: it says in which process they were opened.
 */
#include "signal/table.h"

#include "system/clock.h"
#include "system/fork.h"
#include "system/futex.h"
#include "system/signal.h"
#include "system/thread.h"

#include <string.h>

enum { NR_SIGNALS = BLZ__SIGNAL_LIMIT, PROCESS_NEW = 0, PROCESS_READY = 1, PROCESS_WIPING = 2 };

_Static_assert(__GCC_ATOMIC_LLONG_LOCK_FREE == 2, "a handler must not wait for a lock");

static struct signal_table *table(void)
{
    return &blz__shared()->signals;
}

/* ---- the handler ---- */

static bool is_open(int signal)
{
    return blz__load(table()->process, RELAXED) == PROCESS_READY &&
           (blz__load(&table()->slots[signal].word, RELAXED) & SLOT_OPEN);
}

/*
 * The signal goes to whoever handles it now, or did before us. It comes when the handler ends. If
 * somebody has subscribed meanwhile, that is us again: the word was opened before the handler came.
 */
static void pass_on(int signal)
{
    if (blz__signal_is_caught(signal) && !is_open(signal))
        blz__signal_restore(signal, &table()->previous[signal]);
    blz__signal_raise(signal);
}

static void act_by_default(int signal)
{
    blz__signal_set_default(signal);
    blz__signal_raise(signal);
}

static void on_signal(int signal, int64_t pid, uint32_t uid)
{
    uint64_t sender = (uint64_t)(uint32_t)pid << 32 | uid;
    enum notice_verdict verdict = NOTICE_CLOSED;

    if (blz__load(table()->process, RELAXED) == PROCESS_READY)
        verdict = notice_signal(blz__signals(), signal, sender, blz__clock_ns());
    if (verdict == NOTICE_CLOSED)
        pass_on(signal);
    else if (verdict == NOTICE_SECOND)
        act_by_default(signal);
}

/* ---- the herald ---- */

/* The signals that somebody wants; and up to where that was asked for. */
static bool choose_wanted(uint32_t herald, blz__signal_set *wanted, uint32_t *asked)
{
    bool current;

    *wanted = 0;
    blz__lock_acquire(&table()->lock);
    current = herald == table()->herald_number;
    *asked = table()->asked;
    for (int i = 1; i < NR_SIGNALS; i++)
        if (table()->users[i].nr > table()->users[i].leaving)
            *wanted |= blz__signal_bit(i);
    blz__lock_release(&table()->lock);
    return current;
}

/* Lets in what somebody wants, blocks the rest, and says so. Unless another has its place. */
static void look_at_signals(uint32_t herald)
{
    uint32_t acked = blz__load(&table()->acked, RELAXED), asked;
    blz__signal_set wanted;

    if (!choose_wanted(herald, &wanted, &asked))
        return;
    blz__signal_let_in(wanted);
    /* release: it is done; pairs with the acquire in wait_for_herald */
    while ((int32_t)(asked - acked) > 0 &&
           !blz__cas_weak(&table()->acked, &acked, asked, RELEASE, RELAXED))
        continue;
    blz__futex_wake(&table()->acked, INT32_MAX);
}

static void herald_main(void *arg)
{
    uint32_t herald = (uint32_t)(uintptr_t)arg;

    while (blz__notice_await_ring(blz__signals(), herald)) {
        look_at_signals(herald);
        blz__notice_tell(blz__signals());
    }
}

static int start_herald(void)
{
    uint32_t herald = blz__notice_begin_herald(blz__signals());
    int rc = blz__thread_start(&table()->herald, herald_main, (void *)(uintptr_t)herald, 0,
                               "blitz-signal");

    table()->herald_number = herald;
    if (rc < 0)
        blz__notice_end_herald(blz__signals());
    return rc;
}

/* Until the herald blocks what nobody wants any more. The lock is released and taken again. */
static void wait_for_herald(void)
{
    uint32_t asked = ++table()->asked, acked;

    blz__lock_release(&table()->lock);
    notice_ring(blz__signals());
    /* acquire: it blocks them; pairs with the release in look_at_signals */
    while ((int32_t)((acked = blz__load(&table()->acked, ACQUIRE)) - asked) < 0)
        blz__futex_wait(&table()->acked, acked);
    blz__lock_acquire(&table()->lock);
}

/* ---- the process ---- */

/* The word that reads 0 after a fork, made by the first who needs it. NULL: no memory. */
static uint32_t *process_word(void)
{
    uint32_t *word = blz__load(&table()->process, ACQUIRE), *fresh; /* pairs with the CAS below */

    if (word)
        return word;
    fresh = blz__fork_word_new();
    if (!fresh)
        return NULL;
    blz__store(fresh, PROCESS_NEW, RELAXED);
    if (blz__cas(&table()->process, &word, fresh, RELEASE, ACQUIRE)) /* pairs with the load above */
        return fresh;
    blz__fork_word_free(fresh);
    return word;
}

/*
 * The table as it begins. What the parent's threads were doing at the moment of a fork is not going
 * to be finished.
 */
static void wipe_table(void)
{
    signal_notice *notice = blz__signals();

    blz__store(&table()->number, table()->number + 1, RELAXED); /* published with `process` */
    table()->lock = (blz__lock){0};
    table()->nr_open = table()->nr_stop = table()->asked = table()->acked = 0;
    memset(table()->users, 0, sizeof table()->users);
    memset(table()->slots, 0, sizeof table()->slots);
    notice->bell = 0;
    notice->stop = (signal_list){{0}, {NULL, NULL}};
    notice->slots = table()->slots;
    notice->nr_slots = NR_SIGNALS;
    notice->stops[0] = SIGINT;
    notice->stops[1] = SIGTERM;
    notice->repeat_ns = BLZ_STOP_REPEAT_NS;
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

int blz__signals_check(uint64_t number)
{
    uint32_t *word = blz__load(&table()->process, ACQUIRE); /* pairs with process_word */

    if (number == 0)
        return -EBADF;
    if (!word || blz__load(word, ACQUIRE) != PROCESS_READY || /* pairs with enter_process */
        number != blz__load(&table()->number, RELAXED))
        return -EOWNERDEAD;
    return 0;
}

/* ---- opening and closing; with the lock ---- */

/* The signals of a subscription: one, or those that ask to stop. */
struct set {
    int nr, signals[NR_STOPS];
    uint64_t kind;
};

static struct set set_of(int signal, uint64_t kind)
{
    if (kind == SLOT_STOP)
        return (struct set){NR_STOPS, {SIGINT, SIGTERM}, kind};
    return (struct set){1, {signal, 0}, kind};
}

/* Words are opened before handlers are there, and closed after them. */
static uint64_t open_words(const struct set *set)
{
    int signal = set->signals[0];

    if (set->kind == SLOT_PLAIN)
        return table()->users[signal].nr_plain++ == 0
                   ? slot_open(&table()->slots[signal], SLOT_PLAIN)
                   : slot_count(&table()->slots[signal]);
    if (table()->nr_stop++ == 0)
        blz__notice_open_stop(blz__signals());
    return 0;
}

/* Which of its signals have come, and nobody has received them. */
static void close_words(const struct set *set, bool unseen[NR_STOPS])
{
    int signal = set->signals[0];

    unseen[0] = unseen[1] = false;
    if (set->kind == SLOT_STOP && --table()->nr_stop == 0)
        blz__notice_close_stop(blz__signals(), unseen);
    if (set->kind == SLOT_PLAIN && --table()->users[signal].nr_plain == 0)
        unseen[0] = slot_close(&table()->slots[signal], SLOT_PLAIN);
}

/* Its first `nr` signals lose a user; those that have no other, our handler. */
static void drop_users(const struct set *set, int nr)
{
    for (int i = 0; i < nr; i++)
        if (--table()->users[set->signals[i]].nr == 0)
            blz__signal_restore(set->signals[i], &table()->previous[set->signals[i]]);
}

static int add_users(const struct set *set)
{
    int rc = 0, i;

    for (i = 0; i < set->nr && rc == 0; i++)
        if (table()->users[set->signals[i]].nr++ == 0)
            rc = blz__signal_catch(set->signals[i], on_signal, &table()->previous[set->signals[i]]);
    if (rc < 0)
        drop_users(set, i);
    return rc;
}

static int open_set(const struct set *set, uint64_t *count, bool unseen[NR_STOPS])
{
    int rc;

    *count = open_words(set);
    rc = add_users(set);
    if (rc == 0 && table()->nr_open == 0) {
        rc = start_herald();
        if (rc < 0)
            drop_users(set, set->nr);
    }
    if (rc < 0)
        close_words(set, unseen);
    else
        table()->nr_open++;
    return rc;
}

/* Whether the herald has signals to let in that it did not before. */
static bool is_first(const struct set *set)
{
    bool first = false;

    for (int i = 0; i < set->nr; i++)
        first |= table()->users[set->signals[i]].nr == table()->users[set->signals[i]].leaving + 1;
    return first;
}

/* Has the herald block what nobody else wants. */
static void prepare_to_leave(const struct set *set)
{
    bool last = false;

    for (int i = 0; i < set->nr; i++) {
        struct signal_users *users = &table()->users[set->signals[i]];
        last |= users->nr == ++users->leaving;
    }
    if (last)
        wait_for_herald();
    for (int i = 0; i < set->nr; i++)
        table()->users[set->signals[i]].leaving--;
}

/* Without the lock: it may be the program's turn. To any thread: this one may block it. */
static void raise_again(const struct set *set, const bool unseen[NR_STOPS])
{
    for (int i = 0; i < set->nr; i++)
        if (unseen[i])
            blz__signal_send_self(set->signals[i]);
}

/* ---- the front ---- */

int blz__signals_enter(int signal, uint64_t kind, uint64_t *number, uint64_t *count)
{
    struct set set = set_of(signal, kind);
    bool unseen[NR_STOPS] = {false, false};
    int rc = blz__signal_can_be_caught(set.signals[0]) ? enter_process() : -EINVAL;

    if (rc < 0)
        return rc;
    blz__lock_acquire(&table()->lock);
    rc = open_set(&set, count, unseen);
    *number = table()->number;
    if (rc == 0 && is_first(&set))
        notice_ring(blz__signals());
    blz__lock_release(&table()->lock);
    raise_again(&set, unseen);
    return rc;
}

void blz__signals_leave(int signal, uint64_t kind)
{
    struct set set = set_of(signal, kind);
    blz__thread herald = {0};
    bool unseen[NR_STOPS], last;

    blz__lock_acquire(&table()->lock);
    prepare_to_leave(&set);
    drop_users(&set, set.nr);
    close_words(&set, unseen);
    last = --table()->nr_open == 0;
    if (last) {
        herald = table()->herald;
        blz__notice_end_herald(blz__signals());
    }
    blz__lock_release(&table()->lock);
    if (last)
        blz__thread_join(herald);
    raise_again(&set, unseen);
}
