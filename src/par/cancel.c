/* SPDX-License-Identifier: Apache-2.0 */
/* Cancellation of computations: a word that is written once. */
#include "par/pool.h"

#include <blitz/par_for.h>

void blz_par_cancel_set(blz_par_cancel *cancel, int error)
{
    int32_t none = 0;

    /* release: pairs with the acquire in blz_par_cancel_code */
    blz__cas(&cancel->code, &none, error, RELEASE, RELAXED);
}

int blz_par_cancel_code(const blz_par_cancel *cancel)
{
    /* acquire: what was done before the cancellation is seen by who finds it */
    return blz__load(&cancel->code, ACQUIRE);
}
