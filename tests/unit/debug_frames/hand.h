/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the cases of this folder: programs with one async function, polled by hand, with a mistake
 * that is there if BAD is defined. They end with 0 if what the function computes is right, with 1
 * if a value was lost. Their first comment says what must happen; run.py reads that.
 */
#ifndef HAND_H
#define HAND_H

#include <blitz/async.h>

/* Polls until it is ready, and gives its result; exits if that does not happen. */
int64_t hand_run(blz_future *future);

/* A context for polling by hand; the budget is full. */
blz_cx hand_cx(blz_future *root);

struct pair {
    int first, second;
};

/* Functions of another file, so that the compiler does not know what they do. */
void fill_text(char *text, size_t size);
int check_text(const char *text, size_t size); /* whether it is what fill_text left */
void get_number(int *number);                  /* 12345 */
void get_pair(struct pair *pair);              /* 1, 12345 */
int second_of(const struct pair *pair);
int same_number(int number); /* as given */

#define RUN_IT(fn) hand_run(&(struct fn){.blz_frame.ops = &fn##_ops}.blz_frame)

#endif
