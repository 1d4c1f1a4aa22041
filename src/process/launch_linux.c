/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launching: clone with CLONE_VM and CLONE_VFORK. The child runs in our memory, on a stack of its
 * own, while the calling thread is held until it has exec'ed or exited; other threads run on. No
 * page table is copied, so a large parent costs nothing. posix_spawn is made of the same call, but
 * cannot say which step failed, set limits or change the user, and gives no pidfd without a race.
 *
 * What the child may do follows from that: it changes nothing of ours but the plan, allocates
 * nothing, takes no lock, and enters the system by bare calls (the C library's setuid would change
 * all threads of the parent; a sanitizer's sigaction would note handlers that are not ours). All
 * signals are blocked from before the clone: a handler of the parent must not run in the child. The
 * child gives them their default actions, in its own table, before it unblocks them.
 *
 * A step that fails leaves its name and errno in the plan, and the child exits; the parent finds
 * both when it goes on, and takes the child away. So there is no pipe to read the error from.
 */
#include "process/process.h"
#include "system/linux/refused.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif
#ifndef PIDFD_SIGNAL_PROCESS_GROUP
#define PIDFD_SIGNAL_PROCESS_GROUP 4 /* Linux 6.9 */
#endif

/*
 * ThreadSanitizer takes a clone for a fork, and the child would let go of locks that are the
 * parent's. It does not know this name of the same function.
 */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BLZ_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(BLZ_TSAN)
int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);
#define clone __clone
#endif

/* Runs where the sanitizers know another thread to be. */
#define IN_CHILD __attribute__((no_sanitize("address", "thread", "undefined"), noinline))

#define SYSTEM(...) blz_result(syscall(__VA_ARGS__))

IN_CHILD static long blz_result(long rc)
{
    return rc < 0 ? -errno : rc;
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

IN_CHILD static long reset_signals(struct plan *plan)
{
    (void)plan;
    for (int signal = 1; signal <= NR_SIGNALS; signal++)
        reset_signal(signal);
    return 0;
}

IN_CHILD static long make_session(struct plan *plan)
{
    return plan->spec->flags & COMMAND_SESSION ? SYSTEM(SYS_setsid) : 0;
}

IN_CHILD static long join_group(struct plan *plan)
{
    return plan->spec->flags & COMMAND_GROUP ? SYSTEM(SYS_setpgid, 0L, (long)plan->spec->group) : 0;
}

/* All sources end up above all targets, so that no copy overwrites one that is still needed. */
IN_CHILD static long raise_source(struct plan *plan, struct fd_map *map)
{
    long fd;

    if (map->source == map->target || map->source >= plan->first_free)
        return 0;
    fd = SYSTEM(SYS_fcntl, (long)map->source, (long)F_DUPFD_CLOEXEC, (long)plan->first_free);
    if (fd >= 0)
        map->source = (int)fd;
    return fd;
}

IN_CHILD static long open_files(struct plan *plan)
{
    static const char *const names[] = {"open stdin", "open stdout", "open stderr"};

    for (size_t i = 0; i < plan->nr_maps; i++) {
        struct fd_map *map = &plan->maps[i];
        if (!map->path)
            continue;
        plan->failed = names[map->target];
        long fd = SYSTEM(SYS_openat, (long)AT_FDCWD, map->path, (long)(map->flags | O_CLOEXEC),
                         (long)map->mode);
        if (fd < 0)
            return fd;
        map->source = (int)fd;
        fd = map->source == map->target ? 0 : raise_source(plan, map);
        if (fd < 0)
            return fd;
    }
    return 0;
}

IN_CHILD static long place(const struct fd_map *map)
{
    if (map->source == map->target)
        return SYSTEM(SYS_fcntl, (long)map->target, (long)F_SETFD, 0L);
    return SYSTEM(SYS_dup3, (long)map->source, (long)map->target, 0L);
}

IN_CHILD static long place_descriptors(struct plan *plan)
{
    long rc = 0;

    for (size_t i = 0; i < plan->nr_maps && rc >= 0; i++)
        rc = raise_source(plan, &plan->maps[i]);
    for (size_t i = 0; i < plan->nr_maps && rc >= 0; i++)
        rc = place(&plan->maps[i]);
    if (rc >= 0 && (plan->spec->flags & COMMAND_MERGE))
        rc = SYSTEM(SYS_dup3, 1L, 2L, 0L);
    return rc;
}

IN_CHILD static long set_limits(struct plan *plan)
{
    long rc = 0;

    for (size_t i = 0; i < plan->nr_limits && rc >= 0; i++)
        rc =
            SYSTEM(SYS_prlimit64, 0L, (long)plan->limits[i].resource, &plan->limits[i].value, NULL);
    return rc;
}

/* The groups of the real user are that user's own; another user would get rights by them. */
IN_CHILD static bool may_keep_groups(const struct blz__command *spec)
{
    return syscall(SYS_getuid) == (long)spec->uid || syscall(SYS_getgroups, 0L, NULL) == 0;
}

IN_CHILD static long set_groups(struct plan *plan)
{
    const struct blz__command *spec = plan->spec;
    long rc;

    if (spec->flags & COMMAND_GROUPS)
        return SYSTEM(SYS_setgroups, (long)spec->nr_groups, spec->groups);
    if (!(spec->flags & COMMAND_UID))
        return 0;
    rc = SYSTEM(SYS_setgroups, 0L, NULL);
    return rc == -EPERM && may_keep_groups(spec) ? 0 : rc;
}

IN_CHILD static long set_gid(struct plan *plan)
{
    long gid = (long)plan->spec->gid;

    return plan->spec->flags & COMMAND_GID ? SYSTEM(SYS_setresgid, gid, gid, gid) : 0;
}

IN_CHILD static long set_uid(struct plan *plan)
{
    long uid = (long)plan->spec->uid;

    return plan->spec->flags & COMMAND_UID ? SYSTEM(SYS_setresuid, uid, uid, uid) : 0;
}

IN_CHILD static long change_directory(struct plan *plan)
{
    return plan->spec->dir ? SYSTEM(SYS_chdir, plan->spec->dir) : 0;
}

/* DIR/PROGRAM, with the next directory of the path. Gives what is left of it, or NULL. */
IN_CHILD static const char *next_candidate(struct plan *plan, const char *path, bool *fits)
{
    const char *name = plan->spec->program;
    size_t n = 0;

    *fits = true;
    while (*path && *path != ':' && n < CANDIDATE_SIZE - 2)
        plan->candidate[n++] = *path++;
    if (*path && *path != ':')
        *fits = false;
    while (*path && *path != ':')
        path++;
    if (n > 0 && plan->candidate[n - 1] != '/')
        plan->candidate[n++] = '/';
    while (*name && n < CANDIDATE_SIZE - 1)
        plan->candidate[n++] = *name++;
    if (*name)
        *fits = false;
    plan->candidate[n] = 0;
    return *path ? path + 1 : NULL;
}

/* One that may not be run is passed over, but is the error if there is no other. */
IN_CHILD static long search_and_execute(struct plan *plan)
{
    const char *path = plan->search;
    long error = -ENOENT;
    bool fits;

    while (path) {
        path = next_candidate(plan, path, &fits);
        if (!fits)
            continue;
        long rc = SYSTEM(SYS_execve, plan->candidate, plan->argv, plan->envp);
        if (rc == -EACCES)
            error = rc;
        else if (rc != -ENOENT && rc != -ENOTDIR && rc != -ESTALE && rc != -ENODEV &&
                 rc != -ETIMEDOUT)
            return rc;
    }
    return error;
}

IN_CHILD static long execute(struct plan *plan)
{
    unsigned long none = 0;

    syscall(SYS_rt_sigprocmask, (long)SIG_SETMASK, &none, NULL, (long)SIGSET_BYTES);
    if (plan->search)
        return search_and_execute(plan);
    return SYSTEM(SYS_execve, plan->spec->program, plan->argv, plan->envp);
}

/* The user changes after the limits and before the directory and the program are looked up. */
static const struct {
    const char *name;
    long (*step)(struct plan *plan);
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
    struct plan *plan = arg;

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        plan->failed = steps[i].name;
        long rc = steps[i].step(plan);
        if (rc < 0) {
            plan->error = (int)rc;
            break;
        }
    }
    syscall(SYS_exit_group, 127L);
    return 127;
}

/* ---- in the parent ---- */

int blz__process_launch(struct plan *plan, int *pidfd)
{
    const int flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD;
    unsigned long all = ~0ul, before = 0;
    int pid;

    *pidfd = -1;
    plan->failed = NULL;
    plan->error = 0;
    syscall(SYS_rt_sigprocmask, (long)SIG_SETMASK, &all, &before, (long)SIGSET_BYTES);
    pid = clone(child_main, plan->stack + STACK_SIZE, flags, plan, pidfd);
    pid = pid < 0 ? -errno : pid;
    syscall(SYS_rt_sigprocmask, (long)SIG_SETMASK, &before, NULL, (long)SIGSET_BYTES);
    if (pid < 0) {
        plan->failed = "clone";
        return pid;
    }
    if (plan->error == 0) {
        plan->failed = NULL;
        return pid;
    }
    blz__pidfd_reap(*pidfd, true);
    close(*pidfd);
    *pidfd = -1;
    return plan->error;
}

/* ---- descriptors of processes ---- */

int blz__pidfd_open(pid_t pid)
{
    return (int)SYSTEM(SYS_pidfd_open, (long)pid, 0L);
}

/* By number, where a filter refuses the call. A child that a stranger has reaped has none. */
static BLZ_COLD int signal_by_number(int pidfd, pid_t target, int signal)
{
    if (blz__pidfd_status(pidfd) == -ECHILD)
        return -ESRCH;
    return (int)SYSTEM(SYS_kill, (long)target, (long)signal);
}

int blz__pidfd_signal(int pidfd, pid_t pid, int signal)
{
    int rc = (int)SYSTEM(SYS_pidfd_send_signal, (long)pidfd, (long)signal, NULL, 0L);

    return rc < 0 && sys_is_refused(-rc) ? signal_by_number(pidfd, pid, signal) : rc;
}

/*
 * The kernel's own call for it cannot meet another group, whatever happens to the number. Without
 * it, a number is used only while the process is there, at least as a zombie.
 */
int blz__group_signal(int pidfd, pid_t pid, int signal)
{
    long rc = SYSTEM(SYS_pidfd_send_signal, (long)pidfd, (long)signal, NULL,
                     (long)PIDFD_SIGNAL_PROCESS_GROUP);

    return rc == -EINVAL || sys_is_refused((int)-rc) ? signal_by_number(pidfd, -pid, signal)
                                                     : (int)rc;
}

/* Readiness is a hint; this is not. */
bool blz__pidfd_has_ended(int pidfd)
{
    struct pollfd it = {.fd = pidfd, .events = POLLIN};

    return poll(&it, 1, 0) == 1;
}

/* waitid learnt of them last, in 5.4: it is asked about one that cannot be. */
int blz__pidfd_supported(void)
{
    static int known; /* 0: not yet; 1; or -ENOTSUP. Found again by whoever comes early */
    int answer = blz__load(&known, RELAXED);

    if (answer == 0) {
        siginfo_t info;
        answer = waitid(P_PIDFD, INT32_MAX, &info, WEXITED | WNOHANG) < 0 && errno == EINVAL
                     ? -ENOTSUP
                     : 1;
        blz__store(&known, answer, RELAXED);
    }
    return answer < 0 ? answer : 0;
}

static int64_t status_of(const siginfo_t *info)
{
    if (info->si_code == CLD_EXITED)
        return info->si_status & 0xff;
    return (int64_t)(info->si_status & 0x7f) << 8 | (int64_t)(info->si_code == CLD_DUMPED) << 16;
}

/* Without a child to tell about, waitid leaves the number 0. */
static int64_t wait_for(int pidfd, int flags)
{
    siginfo_t info;
    int rc;

    do {
        info.si_pid = 0;
        rc = waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | flags);
    } while (rc < 0 && errno == EINTR);
    if (rc < 0)
        return -errno;
    return info.si_pid == 0 ? -EAGAIN : status_of(&info);
}

int64_t blz__pidfd_status(int pidfd)
{
    return wait_for(pidfd, WNOHANG | WNOWAIT);
}

int64_t blz__pidfd_reap(int pidfd, bool wait)
{
    return wait_for(pidfd, wait ? 0 : WNOHANG);
}
