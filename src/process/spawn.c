/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spawning: what goes around a launch. Everything that can fail is done before the child exists but
 * one thing, the registration of its descriptor; if that fails, the child is killed and taken away.
 *
 * It runs on the thread that calls, which the kernel holds until the child has exec'ed. See
 * docs/design/process.md for how long that takes, and why it is not done by the blocking pool.
 */
#include "process/process.h"

#include "base/alloc.h"
#include "io/io.h"
#include "system/handle.h"
#include "system/pipe.h"
#include "system/signal.h"

_Static_assert(sizeof(blz_child) == 56, "part of the ABI");

struct spawn {
    blz_command *cmd;
    blz_rt *rt;
    int mode;
    struct plan *plan;
    struct blz__child *child;
    blz_sysfd theirs[3]; /* the child's ends of pipes, or -1 */
    blz_pipe ours[3];
};

static int fail_at(struct spawn *s, const char *step, int error)
{
    s->cmd->failed_step_ = step;
    return error;
}

/* ---- pipes ---- */

/* Only our end is in the mode that the backend likes: they are two open files. */
static int adopt_end(blz_pipe *pipe, const struct spawn *s, blz_sysfd fd)
{
    blz__fd_ref ref;
    int rc = s->mode & FD_NONBLOCK ? blz__handle_set_nonblocking(fd, true) : 0;

    if (rc < 0)
        return rc;
    rc = blz__fd_adopt(&ref, s->rt, fd, (unsigned)s->mode);
    if (rc == 0)
        *pipe = (blz_pipe){ref.entry, ref.generation};
    return rc;
}

static int open_pipe(struct spawn *s, int which)
{
    int mine = which == 0; /* we write what it reads */
    blz_sysfd fds[2];
    int rc = blz__pipe_new(false, fds);

    if (rc < 0)
        return rc;
    rc = adopt_end(&s->ours[which], s, fds[mine]);
    if (rc < 0) {
        blz__handle_close(fds[0]);
        blz__handle_close(fds[1]);
        return rc;
    }
    s->theirs[which] = fds[!mine];
    blz__plan_copy(s->plan, which, fds[!mine]);
    return 0;
}

static int open_pipes(struct spawn *s)
{
    int rc = 0;

    for (int i = 0; i < 3 && rc == 0; i++) {
        if (s->plan->pipes[i])
            rc = open_pipe(s, i);
    }
    return rc < 0 ? fail_at(s, "pipe", rc) : 0;
}

static void close_theirs(struct spawn *s)
{
    for (int i = 0; i < 3; i++)
        if (s->theirs[i] >= 0)
            blz__handle_close(s->theirs[i]);
}

static void close_ours(struct spawn *s)
{
    for (int i = 0; i < 3; i++)
        if (s->ours[i].entry_)
            blz_pipe_close(&s->ours[i]);
}

/* ---- memory ---- */

static void free_memory(struct spawn *s)
{
    if (s->plan)
        blz__plan_free(s->plan);
    if (s->child)
        blz__free(blz__rt_allocator(s->rt), s->child, sizeof *s->child,
                  _Alignof(struct blz__child));
}

static int get_memory(struct spawn *s, const int defaults[3])
{
    const blz_allocator *allocator = blz__rt_allocator(s->rt);
    const struct blz__command *spec = s->cmd->spec_;

    s->plan = blz__plan_new(spec, defaults);
    s->child = blz__alloc(allocator, sizeof *s->child, _Alignof(struct blz__child));
    if (!s->plan || !s->child) {
        free_memory(s);
        return fail_at(s, "memory", -ENOMEM);
    }
    *s->child = (struct blz__child){
        .process = {0, BLZ_NO_SYSFD},
        .kill_on_drop = spec->flags & COMMAND_KILL,
        .leads_group =
            (spec->flags & COMMAND_SESSION) || ((spec->flags & COMMAND_GROUP) && spec->group == 0),
        .allocator = *allocator,
    };
    return 0;
}

/* ---- all of it ---- */

static int launch(struct spawn *s)
{
    struct blz__child *child = s->child;
    const char *step;
    int rc = blz__process_launch(&s->plan->launch, &child->process, &step);

    if (rc < 0)
        return fail_at(s, step, rc);
    rc = blz_fd_attach_to(&child->fd, blz__process_ends_handle(&child->process), s->rt);
    if (rc == 0)
        return 0;
    if (blz__child_signal_all(child, SIGKILL) == 0) {
        blz__process_await(&child->process);
        blz__process_close(&child->process);
    } else {
        blz__orphan_add(child); /* it is another user's already, and ends when it likes */
        s->child = NULL;
    }
    return fail_at(s, "register", rc);
}

static int check(struct spawn *s)
{
    int rc = s->cmd->spec_ ? (int)s->cmd->error_ : s->cmd->error_ ? (int)s->cmd->error_ : -EINVAL;

    if (rc < 0)
        return fail_at(s, "build", rc);
    if (!s->rt)
        s->rt = blz_rt_current();
    if (!s->rt)
        return -ENXIO;
    if (blz__rt_is_forked(s->rt))
        return -EOWNERDEAD;
    rc = blz__process_supported();
    s->mode = rc < 0 ? rc : blz__io_mode(s->rt);
    return s->mode < 0 ? s->mode : 0;
}

int blz__command_spawn(blz_command *cmd, blz_child *child, blz_rt *rt, const int defaults[3])
{
    struct spawn s = {.cmd = cmd, .rt = rt, .theirs = {-1, -1, -1}};
    int rc;

    *child = (blz_child){.child_ = NULL};
    cmd->failed_step_ = NULL;
    blz__orphans_sweep();
    rc = check(&s);
    if (rc == 0)
        rc = get_memory(&s, defaults);
    if (rc < 0)
        return rc;
    rc = open_pipes(&s);
    if (rc == 0)
        rc = launch(&s);
    close_theirs(&s);
    if (rc < 0) {
        close_ours(&s);
        free_memory(&s);
        return rc;
    }
    blz__plan_free(s.plan);
    *child = (blz_child){s.ours[0], s.ours[1], s.ours[2], s.child};
    return 0;
}

int blz_command_spawn(blz_command *cmd, blz_child *child, blz_rt *rt)
{
    static const int inherit[3] = {BLZ_STDIO_INHERIT, BLZ_STDIO_INHERIT, BLZ_STDIO_INHERIT};

    return blz__command_spawn(cmd, child, rt, inherit);
}
