/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers without SIGPIPE: the signal mask stands in for a flag that these calls do not have. The
 * signal is sent to the thread that made the call, so it is taken away again before the mask is
 * restored.
 */
#include "system/transfer.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

_Static_assert(sizeof(sigset_t) <= sizeof(blz__transfer_mask), "a mask fits");

void blz__transfer_quiet(blz__transfer_mask *mask)
{
    sigset_t sigpipe, old;

    sigemptyset(&sigpipe);
    sigaddset(&sigpipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &sigpipe, &old);
    memcpy(mask, &old, sizeof old);
}

void blz__transfer_quiet_end(const blz__transfer_mask *mask, bool broken)
{
    sigset_t sigpipe, old;

    memcpy(&old, mask, sizeof old);
    if (broken && !sigismember(&old, SIGPIPE)) {
        sigemptyset(&sigpipe);
        sigaddset(&sigpipe, SIGPIPE);
        sigtimedwait(&sigpipe, NULL, &(struct timespec){0});
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}
