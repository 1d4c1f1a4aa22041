/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Polling by hand. What futures ask of a runtime is stood in for here, so that these programs need
 * of the library only the files that they test, and can be built in any way.
 */
#include "hand.h"

#include "task/task.h"

#include <blitz/runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUDGET = 128, PATIENCE = 1000 };

blz_cx hand_cx(blz_future *root)
{
    return (blz_cx){.scope = root, .budget = BUDGET};
}

int64_t hand_run(blz_future *future)
{
    for (int i = 0; i < PATIENCE; i++) {
        blz_cx cx = hand_cx(future);
        if (blz_is_ready(future->ops->poll(future, &cx)))
            return future->result;
    }
    fprintf(stderr, "`%s` does not become ready\n", future->ops->name);
    exit(2);
}

void fill_text(char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        text[i] = (char)(i + 1);
}

int check_text(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] != (char)(i + 1))
            return 0;
    return 1;
}

void get_number(int *number)
{
    *number = 12345;
}

void get_pair(struct pair *pair)
{
    *pair = (struct pair){1, 12345};
}

int second_of(const struct pair *pair)
{
    return pair->second;
}

int same_number(int number)
{
    return number;
}

/* ---- Stand-ins ---- */

static void not_here(const char *what)
{
    fprintf(stderr, "%s: there is no runtime here\n", what);
    exit(2);
}

const blz_waker_ops blz__task_waker_ops;

void blz__task_waker_drop(blz_cx *cx, blz_waker *waker)
{
    (void)cx, (void)waker;
}

blz_waker blz_cx_waker(blz_cx *cx)
{
    (void)cx;
    return (blz_waker){0};
}

void blz_waker_wake(blz_waker *waker)
{
    (void)waker;
}

blz_rt *blz_cx_rt(const blz_cx *cx)
{
    (void)cx;
    return NULL;
}

blz_rt *blz_rt_current(void)
{
    return NULL;
}

blz_cx *blz__sched_current_cx(void)
{
    return NULL;
}

void blz__task_refused(blz_cx *cx)
{
    (void)cx;
}

void *blz__rt_alloc(blz_rt *rt, size_t size, size_t align)
{
    (void)rt, (void)size, (void)align;
    not_here("blz__rt_alloc");
    return NULL;
}

void blz__rt_free(blz_rt *rt, void *ptr, size_t size, size_t align)
{
    (void)rt, (void)ptr, (void)size, (void)align;
    not_here("blz__rt_free");
}
