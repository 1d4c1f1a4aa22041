/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of a worker's jobs: its owner, who forks, publishes and takes back, against thieves.
 * Each job is had by exactly one of them, and what the owner wrote into it is seen by whoever has
 * it.
 */
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
    ring_write(&r, &p->job);
    r.own.tail++;
}

static void publish(void)
{
    if (ring_oldest_private(&r))
        ring_publish(&r);
}

static void fork_published(unsigned number)
{
    fork_job(number);
    publish();
}

/* As blz_par_unfork. True: the owner has it. */
static bool unfork_job(unsigned number)
{
    int64_t index = parcels[number].job.index;
    bool mine = true;

    if (index >= blz__load(&r.own.bottom, RELAXED))
        r.own.tail = index;
    else
        mine = ring_take_public(&r);
    if (mine)
        take(&parcels[number].job);
    return mine;
}

static void all_must_be_taken(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        model_assert(blz__load(&parcels[i].taken, RELAXED) == 1);
    model_assert(!ring_has_public(&r));
    model_assert(r.own.tail == blz__load(&r.own.bottom, RELAXED));
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

static const struct model models[] = {
    {"the_last_job_is_had_by_one", the_last_job_is_had_by_one, {.preemptions = 3}},
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
};

MODEL_MAIN(models)
