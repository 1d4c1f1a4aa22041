/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Front door of src/process, and what its files share.
 *
 *   command   what to start: a list of what the program said, in order            command.c
 *   plan      all that the child needs, in one block made before it is started    plan.c
 *   launch    from a plan to a process                                            launch_linux.c
 *   spawn     pipes and handles around a launch                                   spawn.c
 *   child     the handle: waiting, signals, dropping                              child.c
 *   orphans   children that nobody waits for any more                             orphans.c
 *   end       terminate, run: kill and wait                                       end.c
 *   output    keeping what it writes                                              output.c
 *   watch     processes of others                                                 watch.c
 */
#ifndef BLZ_PROCESS_PROCESS_H
#define BLZ_PROCESS_PROCESS_H

#include "base/lock.h"

#include <blitz/process.h>

/* ---- Commands ---- */

enum step_kind {
    STEP_VOID, /* overruled by a later one */
    STEP_ARG,
    STEP_ENV_SET,    /* text: NAME=value */
    STEP_ENV_REMOVE, /* text: NAME */
    STEP_ENV_CLEAR,
    STEP_STDIO,  /* number: the target, value: BLZ_STDIO_* */
    STEP_PATH,   /* number: the target, value: flags, more: mode; text */
    STEP_FD,     /* number: the target, value: the descriptor */
    STEP_RLIMIT, /* number: the resource, value: soft, more: hard */
    STEP_TEXT,   /* program, name or directory: the command points to it */
};

/* One thing that the program said. */
struct step {
    struct step *next;
    size_t size; /* of the block */
    enum step_kind kind;
    int number;
    uint64_t value, more;
    char text[];
};

enum {
    COMMAND_GROUP = 0x1,
    COMMAND_SESSION = 0x2,
    COMMAND_UID = 0x4,
    COMMAND_GID = 0x8,
    COMMAND_GROUPS = 0x10,
    COMMAND_KILL = 0x20,
    COMMAND_MERGE = 0x40
};

struct blz__command {
    blz_allocator allocator;
    struct step *first, **last;
    const char *program, *name, *dir;
    unsigned flags;
    pid_t group;
    uid_t uid;
    gid_t gid;
    gid_t *groups; /* in the text of a step */
    size_t nr_groups;
};

/* ---- Plans ---- */

/* A descriptor of the child: opened by it, or a copy of one of ours. */
struct fd_map {
    int target;
    int source; /* -1: is to be opened, or is a pipe that is not made yet */
    const char *path;
    int flags;
    unsigned mode;
    bool pipe;
};

struct limit {
    int resource;
    struct {
        uint64_t soft, hard;
    } value; /* laid out as the kernel wants it */
};

struct plan {
    size_t size; /* of the block */
    const struct blz__command *spec;
    const char **argv, **envp;
    const char *search; /* the PATH, or NULL if the program is one */
    struct fd_map *maps;
    size_t nr_maps;
    struct limit *limits;
    size_t nr_limits;
    int first_free;     /* all targets are below */
    char *candidate;    /* CANDIDATE_SIZE */
    char *stack;        /* STACK_SIZE */
    const char *failed; /* by the child, or NULL */
    int error;
};

enum { CANDIDATE_SIZE = 4096, STACK_SIZE = 32 * 1024 };

/*
 * What is inherited becomes what `defaults` says for 0 to 2 (BLZ_STDIO_*). NULL: no memory. The
 * command must not change while there is a plan.
 */
struct plan *blz__plan_new(const struct blz__command *spec, const int defaults[3]);
void blz__plan_free(struct plan *plan);

/* The map of a target, or NULL. */
struct fd_map *blz__plan_map(struct plan *plan, int target);

/*
 * Starts the child: its number, and *pidfd; or a negative errno, and plan->failed. Then there is no
 * child. [any thread]
 */
int blz__process_launch(struct plan *plan, int *pidfd);

/* ---- The system ---- */

/* Whether processes have descriptors here. 0, or -ENOTSUP. */
int blz__pidfd_supported(void);
int blz__pidfd_open(pid_t pid);

/* Sends a signal to a child that we have not reaped. 0, -ESRCH: a stranger has; -EPERM. */
int blz__pidfd_signal(int pidfd, pid_t pid, int signal);
bool blz__pidfd_has_ended(int pidfd);

/*
 * Sends a signal to the group that has the number of this process. The process must not have been
 * reaped, or the number may be that of another group; if a stranger has reaped it: -ESRCH.
 */
int blz__group_signal(int pidfd, pid_t pid, int signal);

/* Its status, as blz_exit_code takes it; -EAGAIN: runs; -ECHILD. */
int64_t blz__pidfd_status(int pidfd);

/* Its status, as above; one that has ended is reaped. `wait`: until it has ended. */
int64_t blz__pidfd_reap(int pidfd, bool wait);

/* ---- Children ---- */

/*
 * Everything but `lock`, `ended` and `status` stays as it is from spawn to drop. The lock is held
 * over the calls that reap and signal, so that no signal is sent to a number that has been given
 * back. A child that leads a group is reaped when it is freed, any other one when it has ended.
 */
struct blz__child {
    blz__lock lock;
    bool ended;
    int64_t status; /* or an error */
    pid_t pid;
    int pidfd;
    blz_fd fd; /* the pidfd, attached to the runtime */
    bool kill_on_drop, leads_group;
    blz_allocator allocator;         /* a copy: may outlive the runtime */
    struct blz__child *next, **link; /* in the list of orphans */
};

int blz__command_spawn(blz_command *cmd, blz_child *child, blz_rt *rt, const int defaults[3]);

/* The status, -EAGAIN, or an error. */
int64_t blz__child_reap(struct blz__child *child);

/* Closes and frees one that has ended. */
void blz__child_free(struct blz__child *child);

/*
 * Sends a signal to a child, or to all of the group that it leads. The result is that of the child
 * itself: 0; -ESRCH: has ended; -EPERM.
 */
int blz__child_signal_all(struct blz__child *child, int signal);

/*
 * Kills it, with the group that it leads. Whether its end will come: a program that has become
 * another user's may not be killed, and must not be waited for.
 */
bool blz__child_kill(blz_child *child);

/* Takes over a child that has not ended; it is freed when it has. [any thread] */
void blz__orphan_add(struct blz__child *child);

/* Looks after those that could not be watched. Cheap if there are none. [any thread] */
void blz__orphans_sweep(void);

#endif
