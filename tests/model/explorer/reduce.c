/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reduction: does not go on from a state from which another execution has already gone on.
 *
 * Two executions that have so far read the same stores, written each location in the same order,
 * and done their seq_cst operations in the same order are in the same state, however their other
 * steps were interleaved. That is hashed incrementally: a trail for each thread (which stores it
 * has read, who woke it), for each location (who wrote it), and for the seq_cst operations.
 * Addresses are part of it, so allocations in another order are another state, which is harmless.
 * The remaining budgets of preemptions and stale reads are kept beside the hash: a state is known
 * if it was visited with at least as much of both.
 *
 * The table forgets when it is full. That, too, is harmless: the state is explored again.
 *
 * What is shared without atomics and without synchronisation is not part of the state: a test that
 * keeps count in plain variables across threads must not ask for the reduction.
 */
#include "explorer.h"

#include <stdlib.h>
#include <sys/mman.h>

#define TABLE_BITS 21
#define WAYS       4

struct visit {
    uint64_t hash;
    uint32_t check; /* which model_check; others' entries are free */
    uint16_t preemptions_left;
    uint16_t stale_reads_left;
};

static struct visit *visits;
static uint32_t current_check;

void model__reduce_begin(void)
{
    current_check++;
    if (visits != NULL || !model__run.options.reduce)
        return;
    visits = mmap(NULL, sizeof *visits << TABLE_BITS, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (visits == MAP_FAILED) {
        perror("model: no memory for the reduction");
        exit(2);
    }
}

/* ---- The state as a number ---- */

/*
 * How a thread that has ever spun stands to the others decides whether it may spin on; that
 * depends on the order of steps, which nothing else does.
 */
static uint64_t hash_spinning(const struct thread *thread)
{
    const struct run *run = &model__run;
    uint64_t bits = (uint64_t)thread->idle_spins << 32 | thread->wants_newest << 2 |
                    thread->spun_on_newest << 1 |
                    (run->changes - thread->own_changes != thread->spin_changes);

    for (unsigned id = 0; id < MODEL_MAX_THREADS; id++) {
        bits = bits << 2 | (uint64_t)(run->threads[id].last_step > thread->spin_step) << 1 |
               (run->threads[id].last_step > thread->previous_spin_step);
        bits = model__mix(bits, id);
    }
    return bits;
}

static uint64_t hash_thread(const struct thread *thread)
{
    uint64_t hash = model__mix(thread->trail, thread->id);

    hash = model__mix(hash, (uint64_t)thread->state << 32 | (uint64_t)thread->clock << 8 |
                                (uint64_t)thread->just_switched << 1 | thread->timed_out);
    if (thread->state == THREAD_IN_FUTEX)
        hash = model__mix(hash, (uint64_t)(uintptr_t)thread->futex);
    if (thread->spin_step >= 0)
        hash = model__mix(hash, hash_spinning(thread));
    return hash;
}

static uint64_t hash_state(void)
{
    const struct run *run = &model__run;
    uint64_t hash = model__mix(run->locations_hash, run->seq_cst_trail);

    hash = model__mix(hash, (uint64_t)run->now_ns);
    hash = model__mix(hash, (uint64_t)run->spurious_cas_left << 32 |
                                (uint64_t)run->spurious_wakes_left << 16 |
                                (uint64_t)run->timeouts_left);
    hash = model__mix(hash, run->self->id);
    for (unsigned id = 0; id < MODEL_MAX_THREADS; id++)
        if (run->threads[id].state != THREAD_UNUSED)
            hash += hash_thread(&run->threads[id]);
    return hash;
}

/* ---- The table ---- */

static uint16_t clamp(int budget)
{
    return budget < UINT16_MAX ? (uint16_t)budget : UINT16_MAX;
}

/* True if the state was visited before with as much budget; otherwise it is noted. */
bool model__visited_before(void)
{
    const struct run *run = &model__run;
    struct visit now = {hash_state(), current_check, clamp(run->preemptions_left),
                        clamp(run->stale_reads_left)};
    struct visit *bucket = &visits[(now.hash & ((UINT64_C(1) << TABLE_BITS) - 1)) & ~(WAYS - 1ull)];
    struct visit *victim = &bucket[(now.hash >> 60) % WAYS];

    for (int way = 0; way < WAYS; way++) {
        struct visit *visit = &bucket[way];

        if (visit->check != current_check) {
            victim = visit;
        } else if (visit->hash == now.hash) {
            if (visit->preemptions_left >= now.preemptions_left &&
                visit->stale_reads_left >= now.stale_reads_left)
                return true;
            if (visit->preemptions_left <= now.preemptions_left &&
                visit->stale_reads_left <= now.stale_reads_left) {
                victim = visit;
                break;
            }
        }
    }
    *victim = now;
    return false;
}
