/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An array that is filled before an await and read after it.
 *
 * plain:   kept
 * debug:   lost
 * checker: `text` is used here, but its value is lost at the await
 */
#include "hand.h"

struct message {
    BLZ_FRAME;
    char text[48];
    int64_t rc;
    blz_future op;
};

BLZ_ASYNC(message)
{
    BLZ_BEGIN;
#ifdef BAD
    char text[48];
    fill_text(text, sizeof text);
    BLZ_AWAIT(self->rc, blz_ready(&self->op, 0));
    self->rc = check_text(text, sizeof text);
#else
    fill_text(self->text, sizeof self->text);
    BLZ_AWAIT(self->rc, blz_ready(&self->op, 0));
    self->rc = check_text(self->text, sizeof self->text);
#endif
    BLZ_END(self->rc);
}

int main(void)
{
    return RUN_IT(message) != 1;
}
