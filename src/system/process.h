/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes: starting them, being told of their end, signals to them.
 *
 * A process is a thing that ends. A child is launched, ends, and is reaped once: until it has been
 * reaped its number belongs to no other process. Which thread asks does not matter, but two calls
 * for one child must not overlap if one of them reaps: the caller has a lock for that.
 *
 * Nothing here uses SIGCHLD, and no child is reaped that this header did not launch.
 *
 *   -ENOTSUP    what
 *   ---------------------------------------------------------------------------------------------
 *   Linux       everything before Linux 5.4
 *   Windows     the wishes session, group of another process, user, groups, limits and descriptors
 *               above 2 of a plan, each with its step; signals but SIGKILL and SIGTERM; a signal to
 *               a group other than these two
 *   macOS, BSD  nothing
 */
#ifndef BLZ_SYSTEM_PROCESS_H
#define BLZ_SYSTEM_PROCESS_H

#include <blitz/system.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Plans ---- */

/* What a descriptor of the child is to be. */
enum {
    BLZ__PROCESS_COPY, /* of `source` */
    BLZ__PROCESS_OPEN, /* `path`, by the child, with `flags` and `mode`; targets 0 to 2 */
    BLZ__PROCESS_NULL, /* the device that is empty and takes everything; targets 0 to 2 */
};

typedef struct blz__process_fd {
    int what; /* BLZ__PROCESS_COPY, ... */
    int target;
    blz_sysfd source;
    const char *path;
    int flags;
    unsigned mode;
} blz__process_fd;

/* A limit: RLIMIT_NOFILE and so on. */
typedef struct blz__process_limit {
    int resource;
    uint64_t soft, hard;
} blz__process_limit;

enum {
    BLZ__PROCESS_SESSION = 0x1, /* leads a session of its own */
    BLZ__PROCESS_GROUP = 0x2,   /* `group` */
    BLZ__PROCESS_UID = 0x4,
    BLZ__PROCESS_GID = 0x8,
    BLZ__PROCESS_GROUPS = 0x10, /* `groups` */
    BLZ__PROCESS_MERGE = 0x20,  /* descriptor 2 becomes a copy of 1, after all others are placed */
};

/* All that a child needs. Texts are UTF-8 on Windows, and bytes elsewhere. */
typedef struct blz__process_plan {
    const char *program;
    const char *search;      /* directories to look for it, as PATH has them; NULL: it is a path */
    const char *const *argv; /* up to a NULL */
    const char *const *envp; /* NAME=value, up to a NULL */
    const char *directory;   /* NULL: that of this process */
    blz__process_fd *fds;    /* one at most for each target; used up by the launch */
    size_t nr_fds;
    const blz__process_limit *limits;
    size_t nr_limits;
    unsigned flags; /* BLZ__PROCESS_SESSION, ... */
    int64_t group;  /* 0: a group of its own */
    uint32_t uid, gid;
    const uint32_t *groups;
    size_t nr_groups;
    void *scratch; /* memory of blz__process_scratch_size bytes, aligned to 16 */
} blz__process_plan;

/* How much memory a launch needs besides. */
size_t blz__process_scratch_size(void);

/* ---- Processes ---- */

/* May be copied: all copies are one process. */
typedef struct blz__process {
    int64_t id;       /* its number */
    blz_sysfd handle; /* the system's: a pidfd, a process handle */
} blz__process;

/* Whether this header can do anything: 0 or -ENOTSUP. [any thread] */
int blz__process_supported(void);

/*
 * Waits until the child has become its program, or has failed to: as long as the file system
 * takes. 0; or a negative error, and *step names the step that failed. Then there is no child.
 *
 * The steps in their order: "clone" (making a process), "signals", "session", "group", "open
 * stdin", "open stdout", "open stderr", "descriptors", "rlimit", "groups", "gid", "uid", "chdir",
 * "exec". Files are opened relative to the directory of this process, and before the user changes;
 * directory and program are looked up as the new user.
 *
 * The child inherits descriptors 0 to 2 and those of the plan: others only if the program has made
 * them inheritable. Sources may be targets of others: each target gets what its source was before
 * the launch. No signal is blocked in the child; signals that are handled here have their default
 * action there, and so has SIGPIPE; others that are ignored stay ignored.
 *
 * With a user and no list of groups, the supplementary groups are dropped. If that is not permitted
 * they are kept only if they give no rights to another user; otherwise -EPERM, at "groups".
 * [any thread]
 */
int blz__process_launch(const blz__process_plan *plan, blz__process *child, const char **step);

/*
 * Finds any process by its number, to be told of its end; it need not be a child. 0; -ESRCH: there
 * is none; -EINVAL: cannot be the number of a process; -EMFILE, -ENFILE, -ENOMEM; -ENOTSUP.
 * [any thread]
 */
int blz__process_open(blz__process *process, int64_t id);

/* Forgets a process; it runs on. A child that was not reaped stays a zombie. [any thread] */
void blz__process_close(blz__process *process);

/*
 * The handle by which a backend is told of the end (blz_fd_attach, blz_fd_readable): it becomes
 * readable when the process has ended, and stays so. On Linux a pidfd, on macOS and the BSDs a
 * kqueue with one EVFILT_PROC, on Windows the process itself, for which the backend registers a
 * wait. It belongs to the process: blz__process_close closes it. [any thread]
 */
blz_sysfd blz__process_ends_handle(const blz__process *process);

/* Whether it has ended. It need not be a child. [any thread] */
bool blz__process_has_ended(const blz__process *process);

/*
 * How a child has ended, as blz_exit_code and blz_exit_signal take it; it is not reaped. -EAGAIN:
 * it runs; -ECHILD: it is not a child, or somebody has reaped it. [any thread]
 */
int64_t blz__process_status(const blz__process *child);

/*
 * How a child has ended, and reaps it: its number may become that of another process. -EAGAIN: it
 * runs; -ECHILD: it is not a child, or has been reaped. [any thread]
 */
int64_t blz__process_reap(const blz__process *child);

/* Waits until a child has ended, and reaps it: how it has ended; -ECHILD. [any thread] */
int64_t blz__process_await(const blz__process *child);

/*
 * Sends a signal to a child that was launched here and has not been reaped by the caller; 0 sends
 * nothing and only checks. 0, also if it has ended and is a zombie; -ESRCH: a stranger has reaped
 * it; -EPERM; -EINVAL: no such signal. Never meets another process. [any thread]
 */
int blz__process_signal(const blz__process *child, int signal);

/*
 * Sends a signal to the group that a child leads, which the caller has not reaped. 0, also if only
 * the zombie is left; -ESRCH: there is no such group, or a stranger has reaped the child; -EPERM;
 * -EINVAL. Never meets another group. [any thread]
 */
int blz__process_signal_group(const blz__process *child, int signal);

/* ---- Sets ---- */

/*
 * A set of processes that one thread waits for. To add wakes that thread if need be: a process that
 * has ended already is told of as well.
 */

/* A new, empty set. -EMFILE, -ENFILE, -ENOMEM. [any thread] */
int blz__process_set_open(blz_sysfd *set);

/* Closes it; nobody waits for it. It forgets its processes. [any thread] */
void blz__process_set_close(blz_sysfd set);

/* Adds one; `tag` says which it was. -EEXIST: it is there; -ENOMEM, -ENOSPC. [any thread] */
int blz__process_set_add(blz_sysfd set, const blz__process *process, void *tag);

/*
 * Takes one out: it is not told of any more by waits that begin later. Before its process is
 * closed, since a child that is being launched has copies of the handles. [any thread]
 */
void blz__process_set_remove(blz_sysfd set, const blz__process *process);

/*
 * Waits until at least one process of the set has ended: how many tags were written. One that is
 * not taken out is told of again. May return 0 for no reason. [any thread, one at a time]
 */
int blz__process_set_wait(blz_sysfd set, void **tags, int max);

#endif
