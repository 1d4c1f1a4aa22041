/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans: what a child needs to know, made before it is started, because between its start and its
 * exec it shares our memory and may not allocate. One block holds the arrays and the child's stack;
 * the strings stay where they are, in the command and in the environment.
 *
 * The block is measured first: each array gets as many entries as there could be.
 */
#include "process/process.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- measuring ---- */

struct counts {
    size_t args, env, maps, limits;
};

static struct counts count_steps(const struct blz__command *spec)
{
    struct counts n = {.args = 2, .env = 1, .maps = 3}; /* name and NULL; NULL; defaults */

    for (const struct step *step = spec->first; step; step = step->next) {
        n.args += step->kind == STEP_ARG;
        n.env += step->kind == STEP_ENV_SET;
        n.maps += step->kind == STEP_PATH || step->kind == STEP_FD;
        n.limits += step->kind == STEP_RLIMIT;
    }
    for (char **variable = environ; variable && *variable; variable++)
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
    plan->maps = carve(block, &used, n->maps * sizeof *plan->maps);
    plan->limits = carve(block, &used, n->limits * sizeof *plan->limits);
    plan->candidate = carve(block, &used, CANDIDATE_SIZE);
    plan->stack = carve(block, &used, STACK_SIZE);
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

static void fill_environment(struct plan *plan)
{
    size_t n = 0;

    for (char **variable = environ; variable && *variable; variable++)
        plan->envp[n++] = *variable;
    plan->envp[n] = NULL;
    for (const struct step *step = plan->spec->first; step; step = step->next) {
        if (step->kind == STEP_ENV_CLEAR)
            plan->envp[0] = NULL;
        else if (step->kind == STEP_ENV_SET)
            set_variable(plan->envp, step->text);
        else if (step->kind == STEP_ENV_REMOVE)
            remove_variable(plan->envp, step->text);
    }
}

static const char *search_path(const struct plan *plan)
{
    const char *path;

    if (strchr(plan->spec->program, '/'))
        return NULL;
    path = *find_variable(plan->envp, "PATH", 4);
    return path ? path + 5 : "/bin:/usr/bin";
}

/* ---- descriptors ---- */

struct fd_map *blz__plan_map(struct plan *plan, int target)
{
    for (size_t i = 0; i < plan->nr_maps; i++)
        if (plan->maps[i].target == target)
            return &plan->maps[i];
    return NULL;
}

static void add_map(struct plan *plan, struct fd_map map)
{
    plan->maps[plan->nr_maps++] = map;
    if (plan->first_free <= map.target)
        plan->first_free = map.target + 1;
}

static void add_stdio(struct plan *plan, int target, int what)
{
    struct fd_map map = {.target = target, .source = -1, .pipe = what == BLZ_STDIO_PIPE};

    if (what == BLZ_STDIO_NULL) {
        map.path = "/dev/null";
        map.flags = O_RDWR;
    }
    if (what != BLZ_STDIO_INHERIT)
        add_map(plan, map);
}

static void fill_maps(struct plan *plan, const int defaults[3])
{
    int stdio[3] = {defaults[0], defaults[1], defaults[2]};

    if (plan->spec->flags & COMMAND_MERGE)
        stdio[2] = BLZ_STDIO_INHERIT;
    for (const struct step *step = plan->spec->first; step; step = step->next) {
        struct fd_map map = {.target = step->number, .source = -1};
        if (step->kind == STEP_PATH) {
            map.path = step->text;
            map.flags = (int)step->value;
            map.mode = (unsigned)step->more;
        } else if (step->kind == STEP_FD) {
            map.source = (int)step->value;
        } else {
            if (step->kind == STEP_STDIO && step->value != BLZ_STDIO_INHERIT)
                stdio[step->number] = (int)step->value;
            continue;
        }
        if (map.target <= 2)
            stdio[map.target] = BLZ_STDIO_INHERIT;
        add_map(plan, map);
    }
    for (int i = 0; i < 3; i++)
        add_stdio(plan, i, stdio[i]);
}

/* ---- the rest ---- */

static void fill_arguments(struct plan *plan)
{
    size_t n = 0;

    plan->argv[n++] = plan->spec->name;
    for (const struct step *step = plan->spec->first; step; step = step->next)
        if (step->kind == STEP_ARG)
            plan->argv[n++] = step->text;
    plan->argv[n] = NULL;
}

static void fill_limits(struct plan *plan)
{
    for (const struct step *step = plan->spec->first; step; step = step->next)
        if (step->kind == STEP_RLIMIT)
            plan->limits[plan->nr_limits++] =
                (struct limit){step->number, {step->value, step->more}};
}

struct plan *blz__plan_new(const struct blz__command *spec, const int defaults[3])
{
    struct counts n = count_steps(spec);
    struct plan empty = {0}, *plan;
    size_t size = lay_out(&empty, &n, NULL);

    plan = blz__alloc(&spec->allocator, size, 16);
    if (!plan)
        return NULL;
    *plan = (struct plan){.size = size, .spec = spec, .first_free = 3};
    lay_out(plan, &n, (char *)plan);
    fill_arguments(plan);
    fill_environment(plan);
    plan->search = search_path(plan);
    fill_maps(plan, defaults);
    fill_limits(plan);
    return plan;
}

void blz__plan_free(struct plan *plan)
{
    blz__free(&plan->spec->allocator, plan, plan->size, 16);
}
