/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans: what a child needs to know, made before it is started, because between its start and its
 * exec it may share our memory and not allocate. One block holds the arrays and the memory that the
 * launch needs; the strings stay where they are, in the command and in the environment.
 *
 * The block is measured first: each array gets as many entries as there could be.
 */
#include "process/process.h"

#include "base/alloc.h"
#include "system/env.h"

#include <string.h>

/* ---- measuring ---- */

struct counts {
    size_t args, env, fds, limits;
};

static struct counts count_steps(const struct blz__command *spec)
{
    struct counts n = {.args = 2, .env = 1, .fds = 3}; /* name and NULL; NULL; defaults */

    for (const struct step *step = spec->first; step; step = step->next) {
        n.args += step->kind == STEP_ARG;
        n.env += step->kind == STEP_ENV_SET;
        n.fds += step->kind == STEP_PATH || step->kind == STEP_FD;
        n.limits += step->kind == STEP_RLIMIT;
    }
    for (const char *const *variable = blz__env_list(); *variable; variable++)
        n.env++;
    return n;
}

/* The next piece of a block, or NULL while it is only measured. */
static void *carve(char *block, size_t *used, size_t size)
{
    void *piece = block ? block + *used : NULL;

    *used += (size + 15) & ~(size_t)15;
    return piece;
}

/* Gives the size of the block. */
static size_t lay_out(struct plan *plan, const struct counts *n, char *block)
{
    size_t used = 0;

    carve(block, &used, sizeof *plan);
    plan->argv = carve(block, &used, n->args * sizeof *plan->argv);
    plan->envp = carve(block, &used, n->env * sizeof *plan->envp);
    plan->fds = carve(block, &used, n->fds * sizeof *plan->fds);
    plan->limits = carve(block, &used, n->limits * sizeof *plan->limits);
    plan->launch.scratch = carve(block, &used, blz__process_scratch_size());
    return used;
}

/* ---- environment ---- */

static size_t name_length(const char *variable)
{
    return strcspn(variable, "=");
}

static const char **find_variable(const char **envp, const char *name, size_t len)
{
    while (*envp && !(strncmp(*envp, name, len) == 0 && (*envp)[len] == '='))
        envp++;
    return envp;
}

/* There is room: it was counted. */
static void set_variable(const char **envp, const char *variable)
{
    const char **slot = find_variable(envp, variable, name_length(variable));

    if (!*slot)
        slot[1] = NULL;
    *slot = variable;
}

static void remove_variable(const char **envp, const char *name)
{
    const char **slot;

    while (*(slot = find_variable(envp, name, strlen(name))))
        for (; *slot; slot++)
            slot[0] = slot[1];
}

static void fill_environment(struct plan *plan, const struct blz__command *spec)
{
    size_t n = 0;

    for (const char *const *variable = blz__env_list(); *variable; variable++)
        plan->envp[n++] = *variable;
    plan->envp[n] = NULL;
    for (const struct step *step = spec->first; step; step = step->next) {
        if (step->kind == STEP_ENV_CLEAR)
            plan->envp[0] = NULL;
        else if (step->kind == STEP_ENV_SET)
            set_variable(plan->envp, step->text);
        else if (step->kind == STEP_ENV_REMOVE)
            remove_variable(plan->envp, step->text);
    }
}

static const char *search_path(const struct plan *plan, const struct blz__command *spec)
{
    const char *path;

    if (strchr(spec->program, '/'))
        return NULL;
    path = *find_variable(plan->envp, "PATH", 4);
    return path ? path + 5 : "/bin:/usr/bin";
}

/* ---- descriptors ---- */

static void add_fd(struct plan *plan, blz__process_fd fd)
{
    plan->fds[plan->launch.nr_fds++] = fd;
}

void blz__plan_copy(struct plan *plan, int target, blz_sysfd source)
{
    add_fd(plan, (blz__process_fd){.what = BLZ__PROCESS_COPY, .target = target, .source = source});
}

static void add_stdio(struct plan *plan, int target, int what)
{
    plan->pipes[target] = what == BLZ_STDIO_PIPE;
    if (what == BLZ_STDIO_NULL)
        add_fd(plan, (blz__process_fd){.what = BLZ__PROCESS_NULL, .target = target});
}

static void add_step(struct plan *plan, const struct step *step)
{
    if (step->kind == STEP_FD)
        blz__plan_copy(plan, step->number, (blz_sysfd)step->value);
    else
        add_fd(plan, (blz__process_fd){.what = BLZ__PROCESS_OPEN,
                                       .target = step->number,
                                       .path = step->text,
                                       .flags = (int)step->value,
                                       .mode = (unsigned)step->more});
}

static void fill_fds(struct plan *plan, const struct blz__command *spec, const int defaults[3])
{
    int stdio[3] = {defaults[0], defaults[1], defaults[2]};

    if (spec->flags & COMMAND_MERGE)
        stdio[2] = BLZ_STDIO_INHERIT;
    for (const struct step *step = spec->first; step; step = step->next) {
        if (step->kind == STEP_PATH || step->kind == STEP_FD) {
            add_step(plan, step);
            if (step->number <= 2)
                stdio[step->number] = BLZ_STDIO_INHERIT;
        } else if (step->kind == STEP_STDIO && step->value != BLZ_STDIO_INHERIT) {
            stdio[step->number] = (int)step->value;
        }
    }
    for (int i = 0; i < 3; i++)
        add_stdio(plan, i, stdio[i]);
}

/* ---- the rest ---- */

static void fill_arguments(struct plan *plan, const struct blz__command *spec)
{
    size_t n = 0;

    plan->argv[n++] = spec->name;
    for (const struct step *step = spec->first; step; step = step->next)
        if (step->kind == STEP_ARG)
            plan->argv[n++] = step->text;
    plan->argv[n] = NULL;
}

static void fill_limits(struct plan *plan, const struct blz__command *spec)
{
    for (const struct step *step = spec->first; step; step = step->next)
        if (step->kind == STEP_RLIMIT)
            plan->limits[plan->launch.nr_limits++] =
                (blz__process_limit){step->number, step->value, step->more};
}

static unsigned launch_flags(const struct blz__command *spec)
{
    static const unsigned flags[][2] = {{COMMAND_SESSION, BLZ__PROCESS_SESSION},
                                        {COMMAND_GROUP, BLZ__PROCESS_GROUP},
                                        {COMMAND_UID, BLZ__PROCESS_UID},
                                        {COMMAND_GID, BLZ__PROCESS_GID},
                                        {COMMAND_GROUPS, BLZ__PROCESS_GROUPS},
                                        {COMMAND_MERGE, BLZ__PROCESS_MERGE}};
    unsigned all = 0;

    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        all |= spec->flags & flags[i][0] ? flags[i][1] : 0;
    return all;
}

static void fill_launch(struct plan *plan, const struct blz__command *spec)
{
    blz__process_plan *launch = &plan->launch;

    launch->program = spec->program;
    launch->search = search_path(plan, spec);
    launch->argv = plan->argv;
    launch->envp = plan->envp;
    launch->directory = spec->dir;
    launch->fds = plan->fds;
    launch->limits = plan->limits;
    launch->flags = launch_flags(spec);
    launch->group = spec->group;
    launch->uid = spec->uid;
    launch->gid = spec->gid;
    launch->groups = spec->groups;
    launch->nr_groups = spec->nr_groups;
}

struct plan *blz__plan_new(const struct blz__command *spec, const int defaults[3])
{
    struct counts n = count_steps(spec);
    struct plan empty = {0}, *plan;
    size_t size = lay_out(&empty, &n, NULL);

    plan = blz__alloc(&spec->allocator, size, 16);
    if (!plan)
        return NULL;
    *plan = (struct plan){.size = size, .allocator = spec->allocator};
    lay_out(plan, &n, (char *)plan);
    fill_arguments(plan, spec);
    fill_environment(plan, spec);
    fill_fds(plan, spec, defaults);
    fill_limits(plan, spec);
    fill_launch(plan, spec);
    return plan;
}

void blz__plan_free(struct plan *plan)
{
    blz_allocator allocator = plan->allocator;

    blz__free(&allocator, plan, plan->size, 16);
}
