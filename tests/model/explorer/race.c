/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data races on annotated plain memory.
 *
 * Each annotated address remembers its last write and each thread's last read. An access that the
 * other's event does not happen before is a race, in whatever order the two were executed: it is
 * found in any execution that reaches both, so the annotations are no scheduling points. Only
 * synchronisation counts, not the visibility that seq_cst fences give, as in C11.
 */
#include "explorer.h"

static _Noreturn void report(const char *access, unsigned other, const char *other_access,
                             const struct model_site *there, const struct model_site *here)
{
    model_fail("data race: thread %u's %s of %s at %s:%u in %s is not ordered with thread %u's %s "
               "at %s:%u in %s",
               model_thread_id(), access, here->what, model_basename(here->file), here->line,
               here->function, other, other_access, model_basename(there->file), there->line,
               there->function);
}

static void check_against_write(const struct plain *plain, const struct thread *self,
                                const char *access, const struct model_site *site)
{
    if (plain->writer >= 0 && plain->write_clock > self->view.happened[plain->writer])
        report(access, (unsigned)plain->writer, "write", plain->write_site, site);
}

/* An event of its own in the thread's clock, so that later synchronisation covers it. */
static struct thread *begin(struct model_site *site)
{
    struct thread *self = model__run.self;

    model__step(self);
    site->executed++;
    self->last_site = site;
    model__trace(self, TRACE_SITE);
    return self;
}

void model_plain_read(const volatile void *memory, struct model_site *site)
{
    if (!model__run.active)
        return;
    struct thread *self = begin(site);
    struct plain *plain = model__plain(memory);

    check_against_write(plain, self, "read", site);
    plain->reads[self->id] = self->clock;
    plain->read_site = site;
}

void model_plain_write(const volatile void *memory, struct model_site *site)
{
    if (!model__run.active)
        return;
    struct thread *self = begin(site);
    struct plain *plain = model__plain(memory);

    check_against_write(plain, self, "write", site);
    for (unsigned other = 0; other < MODEL_MAX_THREADS; other++)
        if (plain->reads[other] > self->view.happened[other])
            report("write", other, "read", plain->read_site, site);
    plain->writer = (int8_t)self->id;
    plain->write_clock = self->clock;
    plain->write_site = site;
}
