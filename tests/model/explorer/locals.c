/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread-local variables of the code under test. All fibres share the one system thread and so
 * the one copy of each _Thread_local: the bytes of those that the program has named are exchanged
 * whenever another fibre runs.
 */
#include "explorer.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LOCALS 8

static struct {
    void *variable[MAX_LOCALS];
    size_t size[MAX_LOCALS];
    int count;
    size_t total;
} locals;

void model_thread_local(void *variable, size_t size)
{
    if (locals.count == MAX_LOCALS) {
        fprintf(stderr, "model: more than %d thread-local variables\n", MAX_LOCALS);
        exit(2);
    }
    locals.variable[locals.count] = variable;
    locals.size[locals.count++] = size;
    locals.total += size;
}

static void save(struct thread *thread)
{
    size_t at = 0;

    for (int i = 0; i < locals.count; at += locals.size[i++])
        memcpy(thread->locals + at, locals.variable[i], locals.size[i]);
}

static void restore(const struct thread *thread)
{
    size_t at = 0;

    for (int i = 0; i < locals.count; at += locals.size[i++])
        memcpy(locals.variable[i], thread->locals + at, locals.size[i]);
}

/* From NULL: there is nothing to keep. */
void model__locals_switch(struct thread *from, const struct thread *to)
{
    if (locals.count == 0)
        return;
    if (from != NULL)
        save(from);
    restore(to);
}

/* The copy of a new thread. */
void model__locals_clear(struct thread *thread)
{
    if (locals.count == 0)
        return;
    if (thread->locals == NULL && (thread->locals = malloc(locals.total)) == NULL) {
        perror("model: no memory for thread-local variables");
        exit(2);
    }
    memset(thread->locals, 0, locals.total);
}
