/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timer wheel: six levels of 64 slots. A slot of level 0 is one tick of a millisecond, a slot
 * of each further level is as long as the whole level below it; together they reach two years.
 *
 * Where a timer goes follows from the tick at which it is due and from `elapsed`, the tick at which
 * the wheel stands: the highest group of six bits in which the two differ is the level, that
 * group's value is the slot. So all timers of level n are in later slots than the wheel's own, and
 * the whole of level n is due before all of level n + 1 (invariant). The next slot is then found
 * by the first level that has any bit set, and one count of trailing zeros.
 *
 * When the wheel reaches a slot of a higher level it moves to the slot's earliest tick and puts the
 * slot's timers where they belong now: further down. It goes from occupied slot to occupied slot,
 * so that the length of a pause costs nothing. Each slot knows the earliest tick of its timers
 * (a lower bound, since cancelled ones are not undone), and the owner sleeps until that, not until
 * the slot begins: a timer of one hour wakes it once.
 *
 * The top level is a ring: what is due later than it reaches goes into its last slot, and is put
 * in place again from there.
 *
 * Deadlines round up to a tick, the present rounds down: nothing fires early. What is due already
 * goes into the first tick that has not been handled (`floor`), and fires with the next look. The
 * ticks up to the present count as handled from the beginning of a look, so that a callback that
 * arms a timer for "now" does not keep that look going for ever. A clock that goes backwards is
 * one that stands still.
 *
 * The memory of a timer: under the lock a timer that fires is unlinked, its target is copied out,
 * and its state becomes FIRED, in this order and by a release store. From then on nobody here
 * touches it: whoever sees FIRED may reuse it at once, also without the lock. Targets are woken
 * and called by the caller of `collect`, without the lock.
 *
 * While the owner is stuck in a poll, the watchdog fires its timers. A callback must not run in
 * parallel to that poll, and needs the owner's runtime around it, so the watchdog leaves callbacks
 * armed: they move to the list WHEEL_LATE, in their order, which the owner fires first.
 */
#include "time/wheel.h"

#include "base/assert.h"

/* How far the top level reaches: it never wraps round to the slot in which the wheel stands. */
#define RANGE ((uint64_t)(WHEEL_SLOTS - 1) << (WHEEL_BITS * (WHEEL_LEVELS - 1)))

/* ---- ticks ---- */

static uint64_t tick_at_or_after(int64_t ns)
{
    if (ns <= 0)
        return 0;
    return (uint64_t)ns / WHEEL_TICK_NS + ((uint64_t)ns % WHEEL_TICK_NS != 0);
}

static uint64_t tick_at_or_before(int64_t ns)
{
    return ns <= 0 ? 0 : (uint64_t)ns / WHEEL_TICK_NS;
}

static int64_t tick_ns(uint64_t tick)
{
    return tick >= INT64_MAX / WHEEL_TICK_NS ? INT64_MAX : (int64_t)tick * WHEEL_TICK_NS;
}

/* ---- slots ---- */

static unsigned level_of(uint64_t elapsed, uint64_t tick)
{
    uint64_t differs = (elapsed ^ tick) | (WHEEL_SLOTS - 1);
    unsigned level = (63 - (unsigned)__builtin_clzll(differs)) / WHEEL_BITS;

    return level < WHEEL_LEVELS ? level : WHEEL_LEVELS - 1;
}

/*
 * A long slot is a chain of cache misses when it fires, so each timer knows one that comes a few
 * places later: `ahead`, which is only ever fetched into the cache, never looked at. It may be
 * gone.
 */
enum { FETCH_AHEAD = 6 };

static inline void set_ahead(wheel_slot *slot, blz_timer *timer)
{
    timer->ahead = NULL;
    if (!slot->behind) {
        slot->behind = timer;
        slot->appended = 0;
    } else if (++slot->appended >= FETCH_AHEAD) {
        slot->behind->ahead = timer;
        slot->behind = slot->behind->next;
    }
}

static void append(wheel_slot *slot, blz_timer *timer)
{
    timer->next = NULL;
    timer->prev = slot->last;
    if (slot->last)
        slot->last->next = timer;
    else
        slot->first = timer;
    slot->last = timer;
    set_ahead(slot, timer);
}

/* Puts a timer with its tick filled in where it belongs. Gives the earliest tick of that slot. */
static uint64_t place(blz__wheel *wheel, blz_timer *timer)
{
    uint64_t tick = timer->tick;

    BLZ_ASSERT(blz__biased_lock_is_held(&wheel->lock));
    BLZ_ASSERT(timer->tick >= wheel->elapsed);
    if (blz_unlikely(tick - wheel->elapsed > RANGE)) {
        if (tick >= INT64_MAX / WHEEL_TICK_NS) {
            timer->slot = WHEEL_NEVER;
            append(&wheel->slots[WHEEL_NEVER], timer);
            return UINT64_MAX;
        }
        tick = wheel->elapsed + RANGE;
    }
    unsigned level = level_of(wheel->elapsed, tick);
    unsigned index = (tick >> (WHEEL_BITS * level)) & (WHEEL_SLOTS - 1);
    uint64_t bit = (uint64_t)1 << index;
    timer->slot = (uint16_t)(level * WHEEL_SLOTS + index);
    wheel_slot *slot = &wheel->slots[timer->slot];
    append(slot, timer);
    if (!(wheel->occupied[level] & bit) || tick < slot->min)
        slot->min = tick;
    wheel->occupied[level] |= bit;
    return slot->min;
}

static void unlink_timer(blz__wheel *wheel, blz_timer *timer)
{
    wheel_slot *slot = &wheel->slots[timer->slot];

    BLZ_ASSERT(blz__biased_lock_is_held(&wheel->lock));
    BLZ_ASSERT(timer->slot < WHEEL_LISTS);
    BLZ_ASSERT(timer->prev ? timer->prev->next == timer : slot->first == timer);
    BLZ_ASSERT(timer->next ? timer->next->prev == timer : slot->last == timer);
    if (slot->behind == timer)
        slot->behind = timer->next;
    if (timer->prev)
        timer->prev->next = timer->next;
    else
        slot->first = timer->next;
    if (timer->next)
        timer->next->prev = timer->prev;
    else
        slot->last = timer->prev;
    if (!slot->first && timer->slot < WHEEL_NEVER)
        wheel->occupied[timer->slot / WHEEL_SLOTS] &= ~((uint64_t)1 << (timer->slot % WHEEL_SLOTS));
}

/* The slot whose timers come first, and the tick at which it begins; NULL: there is none. */
static wheel_slot *first_slot(blz__wheel *wheel, unsigned *level, uint64_t *begins)
{
    BLZ_ASSERT(blz__biased_lock_is_held(&wheel->lock));
    for (unsigned i = 0; i < WHEEL_LEVELS; i++) {
        uint64_t bits = wheel->occupied[i], here = wheel->elapsed >> (WHEEL_BITS * i);
        unsigned index = here & (WHEEL_SLOTS - 1);

        if (!bits)
            continue;
        bits = bits >> index | bits << (-index & (WHEEL_SLOTS - 1));
        unsigned distance = (unsigned)__builtin_ctzll(bits);
        *level = i;
        *begins = (here + distance) << (WHEEL_BITS * i);
        return &wheel->slots[i * WHEEL_SLOTS + ((index + distance) & (WHEEL_SLOTS - 1))];
    }
    return NULL;
}

static void set_next(blz__wheel *wheel, int64_t next_ns)
{
    BLZ_ASSERT(blz__biased_lock_is_held(&wheel->lock));
    if (wheel->next_ns == next_ns)
        return;
    wheel->next_ns = next_ns;
    blz__store(&wheel->next_guess, next_ns, RELAXED);
}

static int64_t find_next(blz__wheel *wheel)
{
    uint64_t begins;
    unsigned level;
    const blz_timer *late = wheel->slots[WHEEL_LATE].first;
    const wheel_slot *slot = first_slot(wheel, &level, &begins);

    set_next(wheel, late ? tick_ns(late->tick) : slot ? tick_ns(slot->min) : INT64_MAX);
    return wheel->next_ns;
}

/* Under the lock, but statistics read it without. */
static void count(uint64_t *counter)
{
    blz__stat_store(counter, *counter + 1);
}

/* ---- the lock ---- */

/* How the lock was taken. */
enum hold { HOLD_OTHER, HOLD_BIASED, HOLD_LOCKED };

static inline enum hold enter(blz__wheel *wheel, bool mine)
{
    enum hold hold = HOLD_OTHER;

    if (mine)
        hold = blz__biased_lock_enter(&wheel->lock) ? HOLD_LOCKED : HOLD_BIASED;
    else
        blz__biased_lock_enter_other(&wheel->lock);
    blz__plain_write(&wheel->elapsed);
    return hold;
}

static inline void leave(blz__wheel *wheel, enum hold hold)
{
    if (hold == HOLD_OTHER)
        blz__biased_lock_leave_other(&wheel->lock);
    else
        blz__biased_lock_leave(&wheel->lock, hold == HOLD_LOCKED);
}

/* ---- arming and disarming ---- */

void blz__wheel_init(blz__wheel *wheel, int64_t now_ns, bool asymmetric_fences)
{
    *wheel = (blz__wheel){.next_ns = INT64_MAX, .next_guess = INT64_MAX, .asleep_until = INT64_MIN};
    blz__biased_lock_init(&wheel->lock, asymmetric_fences);
    wheel->elapsed = wheel->floor = tick_at_or_before(now_ns);
}

/* Under the lock. True: the owner sleeps for longer than that. */
static bool link_timer(blz__wheel *wheel, blz_timer *timer, int64_t deadline_ns)
{
    uint64_t tick = tick_at_or_after(deadline_ns);

    BLZ_ASSERT(blz__biased_lock_is_held(&wheel->lock));
    BLZ_ASSERT(timer->wheel == wheel);
    timer->tick = tick > wheel->floor ? tick : wheel->floor;
    int64_t due_ns = tick_ns(place(wheel, timer));
    if (due_ns < wheel->next_ns)
        set_next(wheel, due_ns);
    return due_ns < wheel->asleep_until;
}

bool blz__wheel_insert(blz__wheel *wheel, blz_timer *timer, int64_t deadline_ns, bool mine)
{
    enum hold hold;
    bool wake;

    BLZ_ASSERT(blz__peek(&timer->state) != TIMER_ARMED);
    timer->wheel = wheel;
    hold = enter(wheel, mine);
    blz__plain_write(&timer->target);
    blz__store(&timer->state, (uint32_t)TIMER_ARMED, RELAXED);
    count(&wheel->nr_armed);
    wake = link_timer(wheel, timer, deadline_ns);
    leave(wheel, hold);
    return wake;
}

bool blz__wheel_remove(blz_timer *timer, bool mine)
{
    blz__wheel *wheel = timer->wheel;
    enum hold hold;
    bool armed;

    if (!timer_is_armed(timer))
        return false;
    hold = enter(wheel, mine);
    armed = blz__load(&timer->state, RELAXED) == TIMER_ARMED;
    if (armed) {
        unlink_timer(wheel, timer);
        blz__store(&timer->state, (uint32_t)TIMER_IDLE, RELAXED);
    }
    leave(wheel, hold);
    return armed;
}

enum wheel_reset blz__wheel_reset(blz_timer *timer, int64_t deadline_ns, bool mine)
{
    enum wheel_reset outcome = WHEEL_RESET_LATE;
    blz__wheel *wheel = timer->wheel;
    enum hold hold;

    if (!timer_is_armed(timer))
        return outcome;
    hold = enter(wheel, mine);
    if (blz__load(&timer->state, RELAXED) == TIMER_ARMED) {
        unlink_timer(wheel, timer);
        outcome = link_timer(wheel, timer, deadline_ns) ? WHEEL_RESET_WAKE : WHEEL_RESET_DONE;
    }
    leave(wheel, hold);
    return outcome;
}

/* ---- firing ---- */

static void fire(blz__wheel *wheel, blz_timer *timer, wheel_fired *fired)
{
    BLZ_ASSERT(blz__peek(&timer->state) == TIMER_ARMED);
    if (timer->ahead) {
        __builtin_prefetch(timer->ahead, 1);
        __builtin_prefetch((char *)timer->ahead + sizeof *timer - 1, 1);
    }
    unlink_timer(wheel, timer);
    blz__plain_read(&timer->target);
    *fired = (wheel_fired){timer->target, timer->calls};
    __builtin_prefetch(timer->target.waker.data, 1);
    count(&wheel->nr_fired);
    /* release: the owner may reuse it; pairs with the acquire in timer_is_armed */
    blz__store(&timer->state, (uint32_t)TIMER_FIRED, RELEASE);
}

/* The wheel has reached a slot of a higher level: its timers move down. */
static void spread(blz__wheel *wheel, wheel_slot *slot, unsigned level)
{
    blz_timer *timer = slot->first;
    unsigned index = (unsigned)(slot - wheel->slots) % WHEEL_SLOTS;

    *slot = (wheel_slot){NULL, NULL, NULL, 0, 0};
    wheel->occupied[level] &= ~((uint64_t)1 << index);
    while (timer) {
        blz_timer *next = timer->next;
        place(wheel, timer);
        timer = next;
    }
}

/* Another thread fires: a callback that is due stays armed, in a list for the owner. */
static void keep_for_owner(blz__wheel *wheel, blz_timer *timer)
{
    unlink_timer(wheel, timer);
    timer->slot = WHEEL_LATE;
    append(&wheel->slots[WHEEL_LATE], timer);
}

/* Under the lock: takes out the timers of a slot that is due, up to `max`. */
static size_t fire_slot(blz__wheel *wheel, wheel_slot *slot, wheel_fired *fired, size_t max,
                        bool owner)
{
    size_t n = 0;

    while (slot->first && n < max) {
        if (blz_unlikely(slot->first->calls && !owner))
            keep_for_owner(wheel, slot->first);
        else
            fire(wheel, slot->first, &fired[n++]);
    }
    return n;
}

static uint64_t clamp(uint64_t tick, uint64_t low, uint64_t high)
{
    return tick < low ? low : tick > high ? high : tick;
}

/* Under the lock: takes out what is due up to tick `now`. */
static size_t collect(blz__wheel *wheel, uint64_t now, wheel_fired *fired, size_t max, bool owner)
{
    uint64_t begins;
    unsigned level;
    size_t n = 0;

    if (owner)
        n = fire_slot(wheel, &wheel->slots[WHEEL_LATE], fired, max, owner);
    while (n < max) {
        wheel_slot *slot = first_slot(wheel, &level, &begins);
        if (!slot || begins > now) {
            if (wheel->elapsed < now)
                wheel->elapsed = now;
            break;
        }
        wheel->elapsed = clamp(slot->min, begins, now);
        if (level > 0)
            spread(wheel, slot, level);
        else
            n += fire_slot(wheel, slot, &fired[n], max - n, owner);
    }
    return n;
}

size_t blz__wheel_collect(blz__wheel *wheel, int64_t now_ns, wheel_fired *fired, size_t max,
                          bool mine)
{
    uint64_t now = tick_at_or_before(now_ns);
    enum hold hold = enter(wheel, mine);
    size_t n;

    if (wheel->floor <= now)
        wheel->floor = now + 1;
    n = collect(wheel, now, fired, max, mine);
    find_next(wheel);
    leave(wheel, hold);
    return n;
}

/* ---- sleeping ---- */

int64_t blz__wheel_next(blz__wheel *wheel, bool mine)
{
    enum hold hold = enter(wheel, mine);
    int64_t next_ns;

    next_ns = find_next(wheel);
    leave(wheel, hold);
    return next_ns;
}

/*
 * Nothing is undone when the owner wakes up: who inserts an earlier timer then wakes it for
 * nothing, and who inserts a later one need not, since it looks before it sleeps again.
 */
int64_t blz__wheel_sleep(blz__wheel *wheel)
{
    enum hold hold = enter(wheel, true);
    int64_t next_ns;

    next_ns = find_next(wheel);
    wheel->asleep_until = next_ns;
    leave(wheel, hold);
    return next_ns;
}

blz_timer *blz__wheel_drop(blz__wheel *wheel)
{
    enum hold hold = enter(wheel, false);
    blz_timer *timer = NULL;

    for (unsigned i = 0; i < WHEEL_LISTS && !timer; i++)
        timer = wheel->slots[i].first;
    if (timer) {
        unlink_timer(wheel, timer);
        blz__store(&timer->state, (uint32_t)TIMER_IDLE, RELAXED);
    }
    leave(wheel, hold);
    return timer;
}

/* ---- validator ---- */

/* Whether the wheel, from where it stands, finds the timer in the slot in which it is. */
static bool is_in_place(const blz__wheel *wheel, const blz_timer *timer, unsigned list)
{
    unsigned level = list / WHEEL_SLOTS, above = WHEEL_BITS * (level + 1);

    if (list >= WHEEL_NEVER || level == WHEEL_LEVELS - 1)
        return true; /* lists without an order; a ring that also has what is out of reach */
    return timer->tick >= wheel->elapsed && timer->tick >> above == wheel->elapsed >> above &&
           ((timer->tick >> (WHEEL_BITS * level)) & (WHEEL_SLOTS - 1)) == list % WHEEL_SLOTS;
}

static const char *list_check(const blz__wheel *wheel, unsigned list)
{
    const wheel_slot *slot = &wheel->slots[list];
    const blz_timer *before = NULL;

    for (const blz_timer *timer = slot->first; timer; timer = timer->next) {
        BLZ_REQUIRE(timer->prev == before);
        BLZ_REQUIRE(timer->wheel == wheel);
        BLZ_REQUIRE(timer->slot == list);
        BLZ_REQUIRE(blz__peek(&timer->state) == TIMER_ARMED);
        BLZ_REQUIRE(is_in_place(wheel, timer, list));
        BLZ_REQUIRE(list >= WHEEL_NEVER || slot->min <= timer->tick);
        BLZ_REQUIRE(list == WHEEL_NEVER || wheel->next_ns <= tick_ns(timer->tick));
        before = timer;
    }
    BLZ_REQUIRE(slot->last == before);
    return NULL;
}

static const char *check_locked(const blz__wheel *wheel)
{
    const char *broken = NULL;

    BLZ_REQUIRE(wheel->next_ns == blz__peek(&wheel->next_guess));
    for (unsigned list = 0; list < WHEEL_LISTS && !broken; list++) {
        if (list < WHEEL_NEVER)
            BLZ_REQUIRE((wheel->occupied[list / WHEEL_SLOTS] >> list % WHEEL_SLOTS & 1) ==
                        (wheel->slots[list].first != NULL));
        broken = list_check(wheel, list);
    }
    return broken;
}

const char *blz__wheel_check(blz__wheel *wheel)
{
    enum hold hold = enter(wheel, true);
    const char *broken = check_locked(wheel);

    leave(wheel, hold);
    return broken;
}
