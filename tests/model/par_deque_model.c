/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of a worker's jobs: its owner, who forks, publishes and takes back, against thieves,
 * also those that take what is not public. Each job is had by exactly one of them, and what the
 * owner wrote into it is seen by whoever has it.
 */
#include "base/assert.h"
#include "par/deque.h"

#include <string.h>

enum { MAX_JOBS = 6, CAPACITY = 2 };

struct parcel {
    blz_par_job job;
    uint32_t contents;
    uint32_t taken; /* how often */
};

static ring r;
static blz_par_job *slots[8];
static struct parcel parcels[MAX_JOBS];

static void begin_with(uint32_t capacity, int64_t first)
{
    memset(parcels, 0, sizeof parcels);
    memset(slots, 0, sizeof slots);
    ring_init(&r, slots, capacity, first);
}

static void begin(void)
{
    begin_with(CAPACITY, 0);
}

static void take(blz_par_job *job)
{
    struct parcel *p = blz_container_of(job, struct parcel, job);

    model_assert(p >= parcels && p < parcels + MAX_JOBS);
    blz__plain_read(&p->contents);
    model_assert(p->contents == (uint32_t)(p - parcels) + 1);
    model_assert(blz__fetch_add(&p->taken, 1u, RELAXED) == 0);
}

/* ---- the owner ---- */

/* As blz_par_fork without fuel, and blz_par_refuel_. */
static void fork_job(unsigned number)
{
    struct parcel *p = &parcels[number];

    blz__plain_write(&p->contents);
    p->contents = number + 1;
    p->job.index = r.own.tail;
    ring_room(&r);
    ring_add(&r, &p->job);
}

static void publish(void)
{
    if (ring_publish_begin(&r))
        ring_publish_end(&r);
}

static void fork_published(unsigned number)
{
    fork_job(number);
    publish();
}

bool blz_par_reclaim_(blz_par *par, blz_par_job *job, blz_par_wait_mode waiting)
{
    (void)par, (void)waiting;
    return ring_unfork(&r, job->index);
}

/* True: the owner has it. */
static bool unfork_job(unsigned number)
{
    bool mine = blz_par_unfork(&r.own, &parcels[number].job);

    if (mine)
        take(&parcels[number].job);
    return mine;
}

static void all_must_be_taken(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        model_assert(blz__load(&parcels[i].taken, RELAXED) == 1);
    BLZ_ASSERT_VALID(blz__deque_check_idle(&r));
}

/* ---- thieves ---- */

static void steal(void *arg)
{
    blz_par_job *job;

    for (unsigned i = 0; i < (unsigned)(uintptr_t)arg; i++)
        if (ring_steal(&r, &job) == RING_TAKEN)
            take(job);
}

static model_thread start_thief(unsigned attempts)
{
    return model_start_named(steal, (void *)(uintptr_t)attempts, "thief");
}

static void force(void *arg)
{
    for (unsigned i = 0; i < (unsigned)(uintptr_t)arg; i++) {
        blz_par_job *job = ring_force_begin(&r);
        if (!job)
            continue;
        ring_force_end(&r);
        take(job);
    }
}

static model_thread start_forcing(unsigned attempts)
{
    return model_start_named(force, (void *)(uintptr_t)attempts, "forcing thief");
}

/* ---- the models ---- */

static void the_last_job_is_had_by_one(void)
{
    begin();
    model_thread first = start_thief(1), second = start_thief(1);
    fork_published(0);
    unfork_job(0);
    model_join(first);
    model_join(second);
    all_must_be_taken(1);
}

static void owner_and_thief_share_two_jobs(void)
{
    begin();
    fork_published(0);
    fork_published(1);
    model_thread thief = start_thief(2);
    unfork_job(1);
    unfork_job(0);
    model_join(thief);
    all_must_be_taken(2);
}

/* One thief takes the first of two, so the other one and the owner meet at the second. */
static void two_thieves_and_the_owner_share_two_jobs(void)
{
    begin();
    fork_published(0);
    fork_published(1);
    model_thread first = start_thief(1), second = start_thief(1);
    unfork_job(1);
    unfork_job(0);
    model_join(first);
    model_join(second);
    all_must_be_taken(2);
}

/* The oldest becomes public while a newer one stays private. */
static void a_job_is_published_under_a_private_one(void)
{
    begin();
    model_thread thief = start_thief(2);
    fork_job(0);
    fork_job(1);
    publish();
    model_assert(unfork_job(1));
    unfork_job(0);
    model_join(thief);
    all_must_be_taken(2);
}

/* A slot is used again only when no thief reads it; a slow one fails. */
static void a_ring_goes_round_under_thieves(void)
{
    begin_with(1, 0);
    model_thread thief = start_thief(2);
    for (unsigned i = 0; i < 3; i++) {
        fork_published(i);
        unfork_job(i);
    }
    model_join(thief);
    all_must_be_taken(3);
}

/* Jobs beyond the capacity have no slot, also when thieves have made room below them. */
static void a_full_ring_keeps_the_rest_private(void)
{
    begin();
    model_thread thief = start_thief(4);
    for (unsigned i = 0; i < 5; i++)
        fork_published(i);
    for (unsigned i = 5; i-- > 0;)
        unfork_job(i);
    model_join(thief);
    all_must_be_taken(5);
}

/* A job that is taken back, and another in its place: a thief gets the one or the other. */
static void a_slot_is_filled_anew(void)
{
    begin();
    fork_published(0);
    model_thread thief = start_thief(1);
    fork_published(1);
    unfork_job(1);
    fork_published(2);
    unfork_job(2);
    unfork_job(0);
    model_join(thief);
    all_must_be_taken(3);
}

/* What the owner left with its last publication is seen by a thief that reads a later bottom. */
static void a_thief_takes_what_is_below_a_job_that_was_taken_back(void)
{
    begin();
    model_thread thief = start_thief(2);
    fork_published(0);
    fork_published(1);
    unfork_job(1);
    unfork_job(0);
    model_join(thief);
    all_must_be_taken(2);
}

static void a_private_job_is_had_by_one(void)
{
    begin();
    model_thread thief = start_forcing(1);
    fork_job(0);
    unfork_job(0);
    fork_job(1);
    unfork_job(1);
    model_join(thief);
    all_must_be_taken(2);
}

/* The oldest goes first, and the owner has the newer one meanwhile. */
static void private_jobs_are_taken_one_by_one(void)
{
    begin();
    model_thread thief = start_forcing(2);
    fork_job(0);
    fork_job(1);
    unfork_job(1);
    unfork_job(0);
    model_join(thief);
    all_must_be_taken(2);
}

static void two_thieves_take_private_jobs(void)
{
    begin();
    fork_job(0);
    fork_job(1);
    model_thread first = start_forcing(1), second = start_forcing(1);
    unfork_job(1);
    unfork_job(0);
    model_join(first);
    model_join(second);
    all_must_be_taken(2);
}

/* The owner publishes what one thief is about to take in the other way. */
static void a_job_is_published_while_a_thief_takes_it(void)
{
    begin();
    model_thread thief = start_thief(1), forcing = start_forcing(1);
    fork_job(0);
    fork_published(1);
    unfork_job(1);
    unfork_job(0);
    model_join(thief);
    model_join(forcing);
    all_must_be_taken(2);
}

/* A job that is taken back looks private for a moment. */
static void a_public_job_is_not_taken_as_a_private_one(void)
{
    begin();
    fork_published(0);
    fork_published(1);
    model_thread thief = start_thief(1), forcing = start_forcing(1);
    unfork_job(1);
    fork_job(2);
    unfork_job(2);
    unfork_job(0);
    model_join(thief);
    model_join(forcing);
    all_must_be_taken(3);
}

/* Jobs without a slot are nobody else's. */
static void a_full_ring_is_not_taken_beyond_its_slots(void)
{
    begin_with(1, 0);
    model_thread forcing = start_forcing(2);
    for (unsigned i = 0; i < 3; i++)
        fork_job(i);
    for (unsigned i = 3; i-- > 0;)
        unfork_job(i);
    fork_job(3);
    unfork_job(3);
    model_join(forcing);
    all_must_be_taken(4);
}

/* A thief that looks at it, and does not want it. */
static void look(void *arg)
{
    (void)arg;
    if (ring_force_begin(&r))
        ring_force_cancel(&r);
}

static void a_job_that_a_thief_leaves_stays_private(void)
{
    begin();
    model_thread thief = model_start(look, NULL);
    fork_job(0);
    model_assert(unfork_job(0));
    model_join(thief);
    model_assert(blz__load(&r.own.guard, RELAXED) == 0);
    all_must_be_taken(1);
}

static const struct model models[] = {
    {"the_last_job_is_had_by_one", the_last_job_is_had_by_one, {.preemptions = 3, .reduce = true}},
    {"owner_and_thief_share_two_jobs", owner_and_thief_share_two_jobs, {.preemptions = 4}},
    {"two_thieves_and_the_owner_share_two_jobs",
     two_thieves_and_the_owner_share_two_jobs,
     {.preemptions = 3, .reduce = true}},
    {"a_job_is_published_under_a_private_one",
     a_job_is_published_under_a_private_one,
     {.preemptions = 3}},
    {"a_ring_goes_round_under_thieves", a_ring_goes_round_under_thieves, {.reduce = true}},
    {"a_full_ring_keeps_the_rest_private",
     a_full_ring_keeps_the_rest_private,
     {.preemptions = 3, .reduce = true}},
    {"a_slot_is_filled_anew", a_slot_is_filled_anew, {.reduce = true}},
    {"a_thief_takes_what_is_below_a_job_that_was_taken_back",
     a_thief_takes_what_is_below_a_job_that_was_taken_back,
     {.reduce = true}},
    {"a_private_job_is_had_by_one", a_private_job_is_had_by_one, {.preemptions = 4}},
    {"private_jobs_are_taken_one_by_one",
     private_jobs_are_taken_one_by_one,
     {.preemptions = 3, .reduce = true}},
    {"two_thieves_take_private_jobs", two_thieves_take_private_jobs, {.reduce = true}},
    {"a_job_is_published_while_a_thief_takes_it",
     a_job_is_published_while_a_thief_takes_it,
     {.preemptions = 3, .reduce = true}},
    {"a_public_job_is_not_taken_as_a_private_one",
     a_public_job_is_not_taken_as_a_private_one,
     {.preemptions = 3, .reduce = true}},
    {"a_full_ring_is_not_taken_beyond_its_slots",
     a_full_ring_is_not_taken_beyond_its_slots,
     {.reduce = true}},
    {"a_job_that_a_thief_leaves_stays_private",
     a_job_that_a_thief_leaves_stays_private,
     {.preemptions = 3}},
};

MODEL_MAIN(models)
