/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launching: clone with CLONE_VM and CLONE_VFORK. The child runs in our memory, on a stack of its
 * own, while the calling thread is held until it has exec'ed or exited; other threads run on. No
 * page table is copied, so a large parent costs nothing. posix_spawn is made of the same call, but
 * cannot say which step failed, set limits or change the user, and gives no pidfd without a race.
 *
 * What the child may do follows from that: it changes nothing of ours but the plan and its scratch
 * memory, allocates nothing, takes no lock, and enters the system by bare calls (the C library's
 * setuid would change all threads of the parent; a sanitizer's sigaction would note handlers that
 * are not ours). All signals are blocked from before the clone: a handler of the parent must not
 * run in the child. The child gives them their default actions, in its own table, before it
 * unblocks them.
 *
 * A step that fails leaves its name and errno in the scratch memory, and the child exits; the
 * parent finds both when it goes on, and takes the child away. So there is no pipe to read the
 * error from.
 */
#include "system/process.h"

#include "base/sanitize.h"

#include <blitz/error.h>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * ThreadSanitizer takes a clone for a fork, and the child would let go of locks that are the
 * parent's. It does not know this name of the same function.
 */
#ifdef BLZ_TSAN
int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);
#define CLONE __clone
#else
#define CLONE clone
#endif

/* Runs where the sanitizers know another thread to be. */
#define IN_CHILD __attribute__((no_sanitize("address", "thread", "undefined"), noinline))

#define SYSTEM(...) blz_result(syscall(__VA_ARGS__))

IN_CHILD static long blz_result(long rc)
{
    return rc < 0 ? -errno : rc;
}

enum { CANDIDATE_SIZE = 4096, STACK_SIZE = 32 * 1024 };

/* The scratch memory of a plan: what parent and child share. */
struct launch {
    const blz__process_plan *plan;
    const char *failed; /* the step that the child is at */
    int error;
    int first_free; /* all targets are below */
    char candidate[CANDIDATE_SIZE];
    _Alignas(16) char stack[STACK_SIZE];
};

_Static_assert(offsetof(blz__process_limit, hard) == offsetof(blz__process_limit, soft) + 8,
               "laid out as the kernel wants it, from `soft` on");

size_t blz__process_scratch_size(void)
{
    return sizeof(struct launch);
}

/* ---- in the child ---- */

enum { NR_SIGNALS = 64, SIGSET_BYTES = 8 };

/* The handler comes first in what the kernel has of an action; no action has more than this. */
IN_CHILD static void reset_signal(int signal)
{
    unsigned long action[8] = {0}, standard[8] = {0};

    if (syscall(SYS_rt_sigaction, (long)signal, NULL, action, (long)SIGSET_BYTES) < 0)
        return;
    if (action[0] == (unsigned long)SIG_DFL)
        return;
    if (action[0] == (unsigned long)SIG_IGN && signal != SIGPIPE)
        return;
    syscall(SYS_rt_sigaction, (long)signal, standard, NULL, (long)SIGSET_BYTES);
}

IN_CHILD static long reset_signals(struct launch *launch)
{
    (void)launch;
    for (int signal = 1; signal <= NR_SIGNALS; signal++)
        reset_signal(signal);
    return 0;
}

IN_CHILD static long make_session(struct launch *launch)
{
    return launch->plan->flags & BLZ__PROCESS_SESSION ? SYSTEM(SYS_setsid) : 0;
}

IN_CHILD static long join_group(struct launch *launch)
{
    const blz__process_plan *plan = launch->plan;

    return plan->flags & BLZ__PROCESS_GROUP ? SYSTEM(SYS_setpgid, 0L, (long)plan->group) : 0;
}

/* All sources end up above all targets, so that no copy overwrites one that is still needed. */
IN_CHILD static long raise_source(const struct launch *launch, blz__process_fd *map)
{
    long fd;

    if (map->source == map->target || map->source >= launch->first_free)
        return 0;
    fd = SYSTEM(SYS_fcntl, (long)map->source, (long)F_DUPFD_CLOEXEC, (long)launch->first_free);
    if (fd >= 0)
        map->source = (int)fd;
    return fd;
}

IN_CHILD static long open_file(const struct launch *launch, blz__process_fd *map)
{
    bool null = map->what == BLZ__PROCESS_NULL;
    long fd = SYSTEM(SYS_openat, (long)AT_FDCWD, null ? "/dev/null" : map->path,
                     (long)((null ? O_RDWR : map->flags) | O_CLOEXEC), (long)map->mode);

    if (fd < 0)
        return fd;
    map->source = (int)fd;
    return raise_source(launch, map);
}

IN_CHILD static long open_files(struct launch *launch)
{
    static const char *const names[] = {"open stdin", "open stdout", "open stderr"};
    const blz__process_plan *plan = launch->plan;
    long rc = 0;

    for (size_t i = 0; i < plan->nr_fds && rc >= 0; i++) {
        if (plan->fds[i].what == BLZ__PROCESS_COPY)
            continue;
        launch->failed = names[plan->fds[i].target];
        rc = open_file(launch, &plan->fds[i]);
    }
    return rc;
}

IN_CHILD static long place(const blz__process_fd *map)
{
    if (map->source == map->target)
        return SYSTEM(SYS_fcntl, (long)map->target, (long)F_SETFD, 0L);
    return SYSTEM(SYS_dup3, (long)map->source, (long)map->target, 0L);
}

IN_CHILD static long place_descriptors(struct launch *launch)
{
    const blz__process_plan *plan = launch->plan;
    long rc = 0;

    for (size_t i = 0; i < plan->nr_fds && rc >= 0; i++)
        rc = raise_source(launch, &plan->fds[i]);
    for (size_t i = 0; i < plan->nr_fds && rc >= 0; i++)
        rc = place(&plan->fds[i]);
    if (rc >= 0 && (plan->flags & BLZ__PROCESS_MERGE))
        rc = SYSTEM(SYS_dup3, 1L, 2L, 0L);
    return rc;
}

IN_CHILD static long set_limits(struct launch *launch)
{
    const blz__process_plan *plan = launch->plan;
    long rc = 0;

    for (size_t i = 0; i < plan->nr_limits && rc >= 0; i++)
        rc = SYSTEM(SYS_prlimit64, 0L, (long)plan->limits[i].resource, &plan->limits[i].soft, NULL);
    return rc;
}

/* The groups of the real user are that user's own; another user would get rights by them. */
IN_CHILD static bool may_keep_groups(const blz__process_plan *plan)
{
    return syscall(SYS_getuid) == (long)plan->uid || syscall(SYS_getgroups, 0L, NULL) == 0;
}

IN_CHILD static long set_groups(struct launch *launch)
{
    const blz__process_plan *plan = launch->plan;
    long rc;

    if (plan->flags & BLZ__PROCESS_GROUPS)
        return SYSTEM(SYS_setgroups, (long)plan->nr_groups, plan->groups);
    if (!(plan->flags & BLZ__PROCESS_UID))
        return 0;
    rc = SYSTEM(SYS_setgroups, 0L, NULL);
    return rc == -EPERM && may_keep_groups(plan) ? 0 : rc;
}

IN_CHILD static long set_gid(struct launch *launch)
{
    long gid = (long)launch->plan->gid;

    return launch->plan->flags & BLZ__PROCESS_GID ? SYSTEM(SYS_setresgid, gid, gid, gid) : 0;
}

IN_CHILD static long set_uid(struct launch *launch)
{
    long uid = (long)launch->plan->uid;

    return launch->plan->flags & BLZ__PROCESS_UID ? SYSTEM(SYS_setresuid, uid, uid, uid) : 0;
}

IN_CHILD static long change_directory(struct launch *launch)
{
    return launch->plan->directory ? SYSTEM(SYS_chdir, launch->plan->directory) : 0;
}

/* DIR/PROGRAM, with the next directory of the path. Gives what is left of it, or NULL. */
IN_CHILD static const char *next_candidate(struct launch *launch, const char *path, bool *fits)
{
    const char *name = launch->plan->program;
    size_t n = 0;

    *fits = true;
    while (*path && *path != ':' && n < CANDIDATE_SIZE - 2)
        launch->candidate[n++] = *path++;
    if (*path && *path != ':')
        *fits = false;
    while (*path && *path != ':')
        path++;
    if (n > 0 && launch->candidate[n - 1] != '/')
        launch->candidate[n++] = '/';
    while (*name && n < CANDIDATE_SIZE - 1)
        launch->candidate[n++] = *name++;
    if (*name)
        *fits = false;
    launch->candidate[n] = 0;
    return *path ? path + 1 : NULL;
}

/* One that may not be run is passed over, but is the error if there is no other. */
IN_CHILD static long search_and_execute(struct launch *launch)
{
    const blz__process_plan *plan = launch->plan;
    const char *path = plan->search;
    long error = -ENOENT;
    bool fits;

    while (path) {
        path = next_candidate(launch, path, &fits);
        if (!fits)
            continue;
        long rc = SYSTEM(SYS_execve, launch->candidate, plan->argv, plan->envp);
        if (rc == -EACCES)
            error = rc;
        else if (rc != -ENOENT && rc != -ENOTDIR && rc != -ESTALE && rc != -ENODEV &&
                 rc != -ETIMEDOUT)
            return rc;
    }
    return error;
}

IN_CHILD static long execute(struct launch *launch)
{
    const blz__process_plan *plan = launch->plan;
    unsigned long none = 0;

    syscall(SYS_rt_sigprocmask, (long)SIG_SETMASK, &none, NULL, (long)SIGSET_BYTES);
    if (plan->search)
        return search_and_execute(launch);
    return SYSTEM(SYS_execve, plan->program, plan->argv, plan->envp);
}

/* The user changes after the limits and before the directory and the program are looked up. */
static const struct {
    const char *name;
    long (*step)(struct launch *launch);
} steps[] = {
    {"signals", reset_signals},
    {"session", make_session},
    {"group", join_group},
    {"open", open_files},
    {"descriptors", place_descriptors},
    {"rlimit", set_limits},
    {"groups", set_groups},
    {"gid", set_gid},
    {"uid", set_uid},
    {"chdir", change_directory},
    {"exec", execute},
};

IN_CHILD static int child_main(void *arg)
{
    struct launch *launch = arg;

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        launch->failed = steps[i].name;
        long rc = steps[i].step(launch);
        if (rc < 0) {
            launch->error = (int)rc;
            break;
        }
    }
    syscall(SYS_exit_group, 127L);
    return 127;
}

/* ---- in the parent ---- */

static int first_free_of(const blz__process_plan *plan)
{
    int first_free = 3;

    for (size_t i = 0; i < plan->nr_fds; i++)
        if (first_free <= plan->fds[i].target)
            first_free = plan->fds[i].target + 1;
    return first_free;
}

int blz__process_launch(const blz__process_plan *plan, blz__process *child, const char **step)
{
    const int flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD;
    unsigned long all = ~0ul, before = 0;
    struct launch *launch = plan->scratch;
    int pid, pidfd = -1;

    launch->plan = plan;
    launch->failed = NULL;
    launch->error = 0;
    launch->first_free = first_free_of(plan);
    syscall(SYS_rt_sigprocmask, (long)SIG_SETMASK, &all, &before, (long)SIGSET_BYTES);
    pid = CLONE(child_main, launch->stack + STACK_SIZE, flags, launch, &pidfd);
    pid = pid < 0 ? -errno : pid;
    syscall(SYS_rt_sigprocmask, (long)SIG_SETMASK, &before, NULL, (long)SIGSET_BYTES);
    *child = (blz__process){pid, pidfd};
    *step = pid < 0 ? "clone" : launch->error < 0 ? launch->failed : NULL;
    if (pid < 0)
        return pid;
    if (launch->error == 0)
        return 0;
    blz__process_await(child);
    blz__process_close(child);
    return launch->error;
}
