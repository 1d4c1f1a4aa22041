/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Front door of src/process, and what its files share.
 *
 *   command   what to start: a list of what the program said, in order            command.c
 *   plan      all that the child needs, in one block made before it is started    plan.c
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
#include "system/process.h"

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
    int64_t group;
    uint32_t uid, gid;
    const uint32_t *groups; /* in the text of a step */
    size_t nr_groups;
};

/* ---- Plans ---- */

/* One block: the arrays and the scratch memory of a launch. The texts are elsewhere. */
struct plan {
    size_t size; /* of the block */
    blz_allocator allocator;
    blz__process_plan launch;
    const char **argv, **envp;
    blz__process_fd *fds;
    blz__process_limit *limits;
    bool pipes[3]; /* which targets are pipes that blz__command_spawn makes */
};

/*
 * What is inherited becomes what `defaults` says for 0 to 2 (BLZ_STDIO_*). NULL: no memory. The
 * command must not change while there is a plan.
 */
struct plan *blz__plan_new(const struct blz__command *spec, const int defaults[3]);
void blz__plan_free(struct plan *plan);

/* The child's descriptor `target` will be a copy of `source`. There is room for each pipe. */
void blz__plan_copy(struct plan *plan, int target, blz_sysfd source);

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
    blz__process process;
    blz_fd fd; /* what becomes readable at its end, attached to the runtime */
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
