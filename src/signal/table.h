/* SPDX-License-Identifier: Apache-2.0 */
/* The signal table of the process. Between the files of src/signal. */
#ifndef BLZ_SIGNAL_TABLE_H
#define BLZ_SIGNAL_TABLE_H

#include "base/shared.h"
#include "signal/notice.h"

/* What all subscriptions of this process use. */
static inline signal_notice *blz__signals(void)
{
    return &blz__shared()->signals.notice;
}

/*
 * One more subscription: to a signal (kind SLOT_PLAIN), or to those that ask to stop (SLOT_STOP,
 * signal 0). *number is the process's, and *count where a plain one begins. 0 or a negative errno.
 * [any thread]
 */
int blz__signals_enter(int signal, uint64_t kind, uint64_t *number, uint64_t *count);

/* One less. [any thread] */
void blz__signals_leave(int signal, uint64_t kind);

/* 0: a subscription with this number is of this process; -EBADF, -EOWNERDEAD. [any thread] */
int blz__signals_check(uint64_t number);

#endif
