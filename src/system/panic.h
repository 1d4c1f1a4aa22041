/* SPDX-License-Identifier: Apache-2.0 */
/* The last words of a program. */
#ifndef BLZ_SYSTEM_PANIC_H
#define BLZ_SYSTEM_PANIC_H

#include <stddef.h>

/*
 * Writes the text to the standard error, past every buffer. May wait: that depends on what standard
 * error is. Errors are ignored. [any thread, signal handlers]
 */
void blz__panic_write(const char *text, size_t len);

#endif
