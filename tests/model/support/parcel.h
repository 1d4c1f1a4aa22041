/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that nobody polls: something to put into queues. Each has a number and contents in plain
 * memory. Whoever takes one out of a queue opens it; a second time, or without being
 * ordered after the sender, fails the model.
 *
 *     parcels_new(3);
 *     ... threads queue parcels[0..2] and open what they find ...
 *     parcels_free();   // fails unless all three have been opened
 */
#ifndef BLZ_MODEL_PARCEL_H
#define BLZ_MODEL_PARCEL_H

#include "task/task.h"

enum { MAX_PARCELS = 8 };

struct parcel {
    uint32_t number;
    uint32_t opened;
};

static blz_task *parcels[MAX_PARCELS];
static unsigned nr_parcels;

static inline struct parcel *parcel_of(blz_task *task)
{
    return (struct parcel *)(void *)task->root;
}

static inline void parcels_new(unsigned count)
{
    nr_parcels = count;
    for (unsigned i = 0; i < count; i++) {
        parcels[i] = model_alloc(sizeof(blz_task) + sizeof(struct parcel), _Alignof(blz_task));
        parcels[i]->next = NULL;
        *parcel_of(parcels[i]) = (struct parcel){.number = i};
    }
}

/* The sender fills it. */
static inline blz_task *parcel_fill(unsigned number)
{
    blz__plain_write(parcel_of(parcels[number]));
    return parcels[number];
}

/* Returns its number. */
static inline uint32_t parcel_open(blz_task *task)
{
    struct parcel *parcel = parcel_of(task);

    blz__plain_write(parcel);
    if (parcel->opened++)
        model_fail("parcel %u came out twice", parcel->number);
    return parcel->number;
}

static inline void parcels_free(void)
{
    for (unsigned i = 0; i < nr_parcels; i++) {
        if (!parcel_of(parcels[i])->opened)
            model_fail("parcel %u never came out", i);
        model_free(parcels[i]);
    }
}

#endif
