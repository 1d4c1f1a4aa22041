/* SPDX-License-Identifier: Apache-2.0 */
/* What the process is, and what it was started with. */
#ifndef BLZ_SYSTEM_ENV_H
#define BLZ_SYSTEM_ENV_H

#include <stdint.h>

/*
 * A variable of the environment, or NULL. Always NULL in a program that has more privileges than
 * its caller (setuid, setgid, file capabilities): there the caller chooses the environment, but
 * must not choose what the program does. The library reads the environment only by this function.
 * The text stays valid until the program changes the environment. [any thread]
 */
const char *blz__env_get(const char *name);

/*
 * The whole environment, to be given to a child: NAME=value, up to a NULL. Never NULL itself. Stays
 * valid until the program changes the environment. [any thread]
 */
const char *const *blz__env_list(void);

/* The number of this process, also in a forked child. [any thread, signal handlers] */
int64_t blz__env_pid(void);

#endif
