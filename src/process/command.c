/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands: what the program said, kept as a list in the order in which it was said. Each thing is
 * one block with its text; what can be said only once is a field of the command besides.
 *
 * Nothing here fails: the first error is kept in the handle, and what follows it does nothing.
 */
#include "process/process.h"

#include "base/alloc.h"

#include <string.h>

_Static_assert(sizeof(blz_command) == 24, "part of the ABI");

static void fail(blz_command *cmd, int error)
{
    if (cmd->error_ == 0)
        cmd->error_ = error;
}

/* A block with room for `len` bytes of text and a NUL. */
static struct step *new_step(blz_command *cmd, enum step_kind kind, size_t len)
{
    struct blz__command *spec = cmd->spec_;
    size_t size = sizeof(struct step) + len + 1;
    struct step *step;

    if (cmd->error_ < 0 || !spec)
        return NULL;
    step = blz__alloc(&spec->allocator, size, _Alignof(struct step));
    if (!step) {
        fail(cmd, -ENOMEM);
        return NULL;
    }
    *step = (struct step){.size = size, .kind = kind};
    step->text[len] = 0;
    *spec->last = step;
    spec->last = &step->next;
    return step;
}

/* Gives the text, or NULL. */
static char *say(blz_command *cmd, enum step_kind kind, const char *text)
{
    struct step *step;
    size_t len;

    if (!text) {
        fail(cmd, -EINVAL);
        return NULL;
    }
    len = strlen(text);
    step = new_step(cmd, kind, len);
    return step ? memcpy(step->text, text, len) : NULL;
}

/* ---- life ---- */

void blz_command_init_with(blz_command *cmd, const char *program, const blz_allocator *allocator)
{
    struct blz__command *spec;

    *cmd = (blz_command){NULL, NULL, 0};
    spec = blz__alloc(allocator, sizeof *spec, _Alignof(struct blz__command));
    if (!spec) {
        fail(cmd, -ENOMEM);
        return;
    }
    *spec = (struct blz__command){.allocator = *allocator, .last = &spec->first};
    cmd->spec_ = spec;
    spec->program = spec->name = say(cmd, STEP_TEXT, program);
    if (program && !*program)
        fail(cmd, -ENOENT);
}

void blz_command_init(blz_command *cmd, const char *program)
{
    blz_command_init_with(cmd, program, &blz__system_allocator);
}

void blz_command_free(blz_command *cmd)
{
    struct blz__command *spec = cmd->spec_;

    *cmd = (blz_command){NULL, NULL, 0};
    if (!spec)
        return;
    for (struct step *step = spec->first, *next; step; step = next) {
        next = step->next;
        blz__free(&spec->allocator, step, step->size, _Alignof(struct step));
    }
    blz_allocator allocator = spec->allocator;
    blz__free(&allocator, spec, sizeof *spec, _Alignof(struct blz__command));
}

const char *blz_command_failed_step(const blz_command *cmd)
{
    return cmd->failed_step_;
}

/* ---- arguments, environment, directory ---- */

void blz_command_arg(blz_command *cmd, const char *arg)
{
    say(cmd, STEP_ARG, arg);
}

void blz_command_args(blz_command *cmd, const char *const *args)
{
    while (*args)
        blz_command_arg(cmd, *args++);
}

void blz_command_name(blz_command *cmd, const char *name)
{
    const char *text = say(cmd, STEP_TEXT, name);

    if (text)
        cmd->spec_->name = text;
}

static bool is_variable(const char *name)
{
    return name && *name && !strchr(name, '=');
}

void blz_command_env(blz_command *cmd, const char *name, const char *value)
{
    if (!is_variable(name) || !value) {
        fail(cmd, -EINVAL);
        return;
    }
    size_t name_len = strlen(name), value_len = strlen(value);
    struct step *step = new_step(cmd, STEP_ENV_SET, name_len + 1 + value_len);
    if (!step)
        return;
    memcpy(step->text, name, name_len);
    step->text[name_len] = '=';
    memcpy(step->text + name_len + 1, value, value_len);
}

void blz_command_env_remove(blz_command *cmd, const char *name)
{
    if (is_variable(name))
        say(cmd, STEP_ENV_REMOVE, name);
    else
        fail(cmd, -EINVAL);
}

void blz_command_env_clear(blz_command *cmd)
{
    new_step(cmd, STEP_ENV_CLEAR, 0);
}

void blz_command_dir(blz_command *cmd, const char *dir)
{
    const char *text = say(cmd, STEP_TEXT, dir);

    if (text)
        cmd->spec_->dir = text;
}

/* ---- descriptors ---- */

/* What was said about the target before does not count any more. */
static void overrule(struct blz__command *spec, int target)
{
    for (struct step *step = spec->first; step; step = step->next)
        if ((step->kind == STEP_STDIO || step->kind == STEP_PATH || step->kind == STEP_FD) &&
            step->number == target)
            step->kind = STEP_VOID;
}

static void set_target(blz_command *cmd, struct step *step, enum step_kind kind, int target,
                       uint64_t value)
{
    if (!step)
        return;
    overrule(cmd->spec_, target);
    step->kind = kind;
    step->number = target;
    step->value = value;
    if (target == 2)
        cmd->spec_->flags &= ~(unsigned)COMMAND_MERGE;
}

void blz_command_stdio(blz_command *cmd, int which, int what)
{
    if (which < 0 || which > 2 || what < BLZ_STDIO_INHERIT || what > BLZ_STDIO_PIPE)
        fail(cmd, -EINVAL);
    else
        set_target(cmd, new_step(cmd, STEP_VOID, 0), STEP_STDIO, which, (uint64_t)what);
}

void blz_command_stdio_path(blz_command *cmd, int which, const char *path, int flags, unsigned mode)
{
    if (which < 0 || which > 2 || !path) {
        fail(cmd, -EINVAL);
        return;
    }
    size_t len = strlen(path);
    struct step *step = new_step(cmd, STEP_VOID, len);
    if (!step)
        return;
    memcpy(step->text, path, len);
    step->more = mode;
    set_target(cmd, step, STEP_PATH, which, (uint64_t)flags);
}

void blz_command_fd(blz_command *cmd, int target, blz_sysfd fd)
{
    if (target < 0 || fd < 0)
        fail(cmd, -EINVAL);
    else
        set_target(cmd, new_step(cmd, STEP_VOID, 0), STEP_FD, target, (uint64_t)fd);
}

void blz_command_stderr_to_stdout(blz_command *cmd)
{
    if (cmd->error_ < 0 || !cmd->spec_)
        return;
    overrule(cmd->spec_, 2);
    cmd->spec_->flags |= COMMAND_MERGE;
}

/* ---- who and what it is ---- */

static bool set_flag(blz_command *cmd, unsigned flag)
{
    if (cmd->error_ < 0 || !cmd->spec_)
        return false;
    cmd->spec_->flags |= flag;
    if ((cmd->spec_->flags & (COMMAND_GROUP | COMMAND_SESSION)) ==
        (COMMAND_GROUP | COMMAND_SESSION))
        fail(cmd, -EINVAL);
    return true;
}

void blz_command_group(blz_command *cmd, int64_t group)
{
    if (group < 0)
        fail(cmd, -EINVAL);
    if (set_flag(cmd, COMMAND_GROUP))
        cmd->spec_->group = group;
}

void blz_command_session(blz_command *cmd)
{
    set_flag(cmd, COMMAND_SESSION);
}

void blz_command_uid(blz_command *cmd, uint32_t uid)
{
    if (set_flag(cmd, COMMAND_UID))
        cmd->spec_->uid = uid;
}

void blz_command_gid(blz_command *cmd, uint32_t gid)
{
    if (set_flag(cmd, COMMAND_GID))
        cmd->spec_->gid = gid;
}

void blz_command_groups(blz_command *cmd, const uint32_t *groups, size_t count)
{
    struct step *step;

    if (count > 65536) { /* the system's own limit, NGROUPS_MAX */
        fail(cmd, -EINVAL);
        return;
    }
    step = new_step(cmd, STEP_TEXT, count * sizeof *groups);
    if (!step)
        return;
    if (count > 0)
        memcpy(step->text, groups, count * sizeof *groups);
    cmd->spec_->groups = (uint32_t *)(void *)step->text;
    cmd->spec_->nr_groups = count;
    set_flag(cmd, COMMAND_GROUPS);
}

void blz_command_rlimit(blz_command *cmd, int resource, uint64_t soft, uint64_t hard)
{
    struct step *step = new_step(cmd, STEP_RLIMIT, 0);

    if (!step)
        return;
    step->number = resource;
    step->value = soft;
    step->more = hard;
}

void blz_command_kill_on_drop(blz_command *cmd)
{
    set_flag(cmd, COMMAND_KILL);
}
