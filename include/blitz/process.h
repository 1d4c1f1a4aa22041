/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes: starting them, talking to them, waiting for their end.
 *
 *     struct sum { BLZ_FRAME; blz_command cmd; blz_output out; blz_output_op op; int64_t rc; };
 *
 *     BLZ_ASYNC(sum)
 *     {
 *         BLZ_BEGIN;
 *         blz_command_init(&self->cmd, "sha256sum");
 *         blz_command_arg(&self->cmd, "/etc/hostname");
 *         BLZ_AWAIT(self->rc, blz_command_output(&self->op, &self->cmd, &self->out));
 *         if (self->rc == 0)                               // it has exited with 0
 *             fwrite(self->out.out, 1, self->out.out_len, stdout);
 *         else if (self->rc < 0)                           // it did not come to that
 *             fprintf(stderr, "%s: %s\n", blz_command_failed_step(&self->cmd),
 *                     blz_strerror(self->rc));
 *         blz_output_free(&self->out);
 *         blz_command_free(&self->cmd);
 *         BLZ_END(self->rc);
 *     }
 *
 * Nothing here uses SIGCHLD, and no child of another part of the program is ever waited for. A part
 * that waits for all children (waitpid(-1)) or ignores SIGCHLD takes those of Blitz as well; their
 * status is lost then: -ECHILD.
 *
 * Needs Linux 5.4; -ENOTSUP before that, and nothing is started. Windows has no sessions, groups of
 * other processes, users, limits and descriptors above 2: to start a command that asks for one of
 * them is -ENOTSUP there, at the step that blz_command_failed_step names. A signal other than
 * SIGKILL and SIGTERM is -ENOTSUP there, and blz_exit_signal is always 0.
 */
#ifndef BLITZ_PROCESS_H
#define BLITZ_PROCESS_H

#include <blitz/fd.h>
#include <blitz/pipe.h>
#include <blitz/system.h>

BLZ_BEGIN_DECLS

/* ---- Commands [any thread] ---- */

/*
 * What to start, and how. May be started any number of times. Belongs to one task or thread at a
 * time. The functions that build it copy what they are given, and do not fail: what goes wrong
 * (-ENOMEM, -EINVAL) is kept, and given when it is to be started. [any thread]
 */
typedef struct blz_command {
    struct blz__command *spec_;
    const char *failed_step_;
    int64_t error_;
} blz_command;

/*
 * Prepares a command without arguments. A program without a slash is looked for in the PATH that
 * the child is going to have (/bin:/usr/bin if it has none). Memory comes from malloc, or from
 * `allocator`, which is copied.
 */
BLZ_API void blz_command_init(blz_command *cmd, const char *program);
BLZ_API void blz_command_init_with(blz_command *cmd, const char *program,
                                   const blz_allocator *allocator);

/* Frees the command. All zero, or freed already, is allowed. */
BLZ_API void blz_command_free(blz_command *cmd);

/* Adds one argument; or several, up to a NULL. */
BLZ_API void blz_command_arg(blz_command *cmd, const char *arg);
BLZ_API void blz_command_args(blz_command *cmd, const char *const *args);

/* Sets what the child sees as its own name, argv[0]; default: the program as given. */
BLZ_API void blz_command_name(blz_command *cmd, const char *name);

/*
 * Sets or removes a variable of the child's environment, or removes all. By default it is the
 * environment of this process as it is when the child is started (it must not be changed at that
 * moment). The last call for a variable counts; to clear forgets the calls before it. -EINVAL when
 * it is started: a name that is empty or has a '='.
 */
BLZ_API void blz_command_env(blz_command *cmd, const char *name, const char *value);
BLZ_API void blz_command_env_remove(blz_command *cmd, const char *name);
BLZ_API void blz_command_env_clear(blz_command *cmd);

/* Sets the working directory of the child. A relative program is looked up from there. */
BLZ_API void blz_command_dir(blz_command *cmd, const char *dir);

/* What its descriptors 0 to 2 are. */
enum {
    BLZ_STDIO_INHERIT, /* the default: those of this process */
    BLZ_STDIO_NULL,    /* /dev/null */
    BLZ_STDIO_PIPE,    /* the other end is in the blz_child */
};

/* Sets what descriptor `which` of the child is: 0, 1 or 2. */
BLZ_API void blz_command_stdio(blz_command *cmd, int which, int what);

/*
 * Sets a file as descriptor `which` of the child, opened by the child with the flags of open(2),
 * relative to the directory of this process. To open a FIFO waits for its other side, and starting
 * with it.
 */
BLZ_API void blz_command_stdio_path(blz_command *cmd, int which, const char *path, int flags,
                                    unsigned mode);

/*
 * Gives the child a copy of `fd` as its `target`: 0 to 2, or any other number. `fd` must be open
 * when the child is started; it stays the caller's. What Blitz opens itself is close-on-exec.
 */
BLZ_API void blz_command_fd(blz_command *cmd, int target, blz_sysfd fd);

/* Sends the errors of the child where its output goes, wherever that is. */
BLZ_API void blz_command_stderr_to_stdout(blz_command *cmd);

/*
 * Starts the child in a process group: 0 for one of its own, or the number of one; or in a session
 * of its own. Not both. A child that has a group or session of its own is ended with all of its
 * group: by blz_child_terminate, by a drop with blz_command_kill_on_drop, and by a cancelled (or
 * timed out) blz_command_run or blz_command_output. Processes that have left the group are not
 * reached.
 */
BLZ_API void blz_command_group(blz_command *cmd, int64_t group);
BLZ_API void blz_command_session(blz_command *cmd);

/*
 * Sets the user, the group and the supplementary groups of the child. With a user and no groups
 * said, the supplementary groups are dropped. If the system does not permit that (it takes
 * CAP_SETGID), they are kept only if they give no rights to another user: there are none, or the
 * user is this process's own. Otherwise starting it is -EPERM, at the step "groups". Directory and
 * program are looked up as that user; files of blz_command_stdio_path are opened before.
 */
BLZ_API void blz_command_uid(blz_command *cmd, uint32_t uid);
BLZ_API void blz_command_gid(blz_command *cmd, uint32_t gid);
BLZ_API void blz_command_groups(blz_command *cmd, const uint32_t *groups, size_t count);

/* Sets a limit of the child: RLIMIT_NOFILE and so on. */
BLZ_API void blz_command_rlimit(blz_command *cmd, int resource, uint64_t soft, uint64_t hard);

/*
 * Has the child killed if its handle is dropped before its end. If it has a group of its own, all
 * of the group is killed when the handle is dropped, also after the end of the child itself.
 */
BLZ_API void blz_command_kill_on_drop(blz_command *cmd);

/*
 * The step at which the last start failed: "build" (the functions that build the command),
 * "memory", "pipe", "clone", "session", "group", "open stdin", "open stdout", "open stderr",
 * "descriptors", "rlimit", "groups", "gid", "uid", "chdir", "exec", "register"; or NULL. A static
 * string.
 */
BLZ_API const char *blz_command_failed_step(const blz_command *cmd);

/* ---- Children [any thread] ---- */

/*
 * The handle of a child. Belongs to one task at a time, and must be dropped. The pipes are none
 * unless they were asked for; they may be copied and closed (a child that reads to the end waits
 * for its `in` to be closed). All zero: none.
 */
typedef struct blz_child {
    blz_pipe in, out, err;
    struct blz__child *child_;
} blz_child;

/*
 * Starts the command: 0 and *child; or a negative errno, and blz_command_failed_step says where.
 * The parent's memory is not copied, so its size does not matter. The child has no signal blocked;
 * signals that are handled here have their default action there, and so has SIGPIPE; those that are
 * ignored stay ignored.
 *
 * The calling thread waits until the child has become its program, or has failed to: half a
 * millisecond as a rule, longer where the file system is slow. Tasks that cannot have that call it
 * by blz_blocking. `rt` NULL: the runtime of this thread; -ENXIO: there is none. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_command_spawn(blz_command *cmd, blz_child *child, blz_rt *rt);

/*
 * The exit code in a status; -1: a signal has killed the process. A status of 0 is an exit with 0.
 * It cannot fail.
 */
static inline int blz_exit_code(int64_t status)
{
    return (status >> 8 & 0xff) ? -1 : (int)(status & 0xff);
}

/* The signal that has killed the process, or 0. It cannot fail. */
static inline int blz_exit_signal(int64_t status)
{
    return (int)(status >> 8 & 0xff);
}

/* Whether the process has left a core file. */
static inline bool blz_exit_dumped_core(int64_t status)
{
    return (status >> 16 & 1) != 0;
}

/* The future of blz_child_await. */
typedef struct blz_child_await_op {
    blz_future future;
    struct blz__child *child;
    blz_io io;
    uint64_t reserved[2];
} blz_child_await_op;

/*
 * Awaits the end of the child: gives its status (blz_exit_code, blz_exit_signal), and again each
 * time it is awaited. Does not close `in`. -ECHILD: another part of the program has waited for it;
 * -EBADF: no child. Interruptible: -ECANCELED. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_child_await(blz_child_await_op *op, blz_child *child);

/*
 * The status of the child if it has ended; -EAGAIN: it has not; -ECHILD: another part of the
 * program has waited for it; -EBADF: no child. [any thread]
 */
BLZ_API int64_t blz_child_try_await(blz_child *child);

/*
 * Sends a signal to the child alone; never to a process that has its number by now. 0; -ESRCH: it
 * has ended; -EPERM; -EINVAL: no such signal; -EBADF: no child. [any thread]
 */
BLZ_API int blz_child_signal(blz_child *child, int signal);

/*
 * Sends a signal to the group of a child that has a group or session of its own, until the handle
 * is dropped, also when the child itself has ended; never to a group that has its number by now.
 * The system keeps the number for that: the child is a zombie until the drop. 0, also if nothing
 * but the ended child is left; -ESRCH; -EPERM; -EINVAL, also for any other child; -EBADF. [any
 * thread]
 */
BLZ_API int blz_child_signal_group(blz_child *child, int signal);

/*
 * Sends SIGKILL to the child alone. 0; -ESRCH: it has ended; -EPERM; -EBADF: no child. [any thread]
 */
BLZ_API int blz_child_kill(blz_child *child);

/* The future of blz_child_terminate. */
typedef struct blz_child_terminate_op {
    blz_future future;
    uint64_t private_[72];
} blz_child_terminate_op;

/*
 * Sends SIGTERM, and SIGKILL if the child has not ended within `grace_ns` (zero or less: at once);
 * awaits its end: the status, or the errors of blz_child_await. If it has a group or session of its
 * own, all of the group gets both signals, and what is left of the group when the child has ended
 * is killed at once. Cancelled: kills at once, and completes when done; it is not refused in a task
 * that has been cancelled, but shield it there to have the grace. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_child_terminate(blz_child_terminate_op *op, blz_child *child,
                                                      int64_t grace_ns);

/*
 * The number of the child. It means the child until its end has been awaited; of a child with a
 * group of its own, until it is dropped. -EBADF: no child. [any thread]
 */
BLZ_API int64_t blz_child_pid(const blz_child *child);

/*
 * Drops the handle: closes the pipes, kills the child if the command says so; *child is none
 * afterwards. No task may be waiting for it. A child that has not ended runs on, and the library
 * waits for its end, also when the runtime is gone: no zombie stays. To drop none does nothing.
 * [any thread]
 */
BLZ_API void blz_child_drop(blz_child *child);

/* ---- Output ---- */

/* What a child wrote. Zero the limits for the default: 16 MiB each. */
typedef struct blz_output {
    size_t max_out, max_err; /* limits, set before */
    char *out, *err;         /* with a NUL behind them; or NULL */
    size_t out_len, err_len;
    size_t sizes_[2];
    const blz_allocator *allocator_;
    uint64_t reserved[1];
} blz_output;

/* The future of blz_command_output. */
typedef struct blz_output_op {
    blz_future future;
    uint64_t private_[128];
} blz_output_op;

/*
 * Starts the command, keeps what it writes to its output and errors, awaits its end: the status.
 * What was said about the child's descriptors stays in force, but what would be inherited is NULL
 * for input and PIPE for the other two. Ends when the child has ended and all processes that have
 * the pipes have closed them. -EMSGSIZE: it wrote more than the limit; -ENOMEM; or the errors of
 * blz_command_spawn. When it fails, or is cancelled, the child is killed and awaited, and what was
 * read so far is there. Free the output in any case; it must be empty (or freed) before. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_command_output(blz_output_op *op, blz_command *cmd,
                                                     blz_output *output);

/* Frees the memory; the limits stay. Before the runtime is freed. [any thread] */
BLZ_API void blz_output_free(blz_output *output);

/* The future of blz_command_run. */
typedef struct blz_command_run_op {
    blz_future future;
    uint64_t private_[72];
} blz_command_run_op;

/*
 * Starts the command and awaits its end: the status, or the errors of blz_command_spawn and
 * blz_child_await. Cancelled: -ECANCELED, and the child is killed and awaited. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_command_run(blz_command_run_op *op, blz_command *cmd);

/* ---- Processes of others ---- */

/* The future of blz_process_watch. */
typedef struct blz_process_watch_op {
    blz_future future;
    int64_t pid;
    blz_sysfd handle_;
    blz_fd fd;
    blz_io io;
    uint64_t reserved[2];
} blz_process_watch_op;

/*
 * Awaits the end of any process: 0. It need not be a child; if it is one, it still has to be waited
 * for. -ESRCH: there is none; -EINVAL: not a process; -EMFILE and so on. Interruptible. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_process_watch(blz_process_watch_op *op, int64_t pid);

BLZ_END_DECLS
#endif
