/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Noticing a fork: words that read 1 in the process that made them, and 0 in its forked children.
 *
 * Linux and FreeBSD clear the word in every child. Where a system cannot do that, the word is
 * cleared by fork(), and a child of a bare system call does not notice. Windows has no fork: the
 * word stays 1.
 */
#ifndef BLZ_SYSTEM_FORK_H
#define BLZ_SYSTEM_FORK_H

#include <stdint.h>

/*
 * Has `fn` called in each child that fork() makes from now on, by the thread that forked. Asking
 * again for a function does nothing. `fn` may use atomics and close descriptors, and nothing else.
 * 0, or -ENOMEM. On Windows 0, and it is never called. [any thread]
 */
int blz__fork_in_child(void (*fn)(void));

/* Makes a word, which reads 1. NULL: no memory. [any thread] */
uint32_t *blz__fork_word_new(void);

/* Frees a word; or NULL. [any thread; also in a forked child] */
void blz__fork_word_free(uint32_t *word);

#endif
