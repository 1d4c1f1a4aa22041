/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes by pidfds: the end of one makes its pidfd readable, for every descriptor of it, and
 * nothing but the reaping of the child by its parent makes it something else. How they are started
 * is in launch.c.
 */
#include "system/process.h"

#include "base/atomic.h"
#include "system/linux/refused.h"

#include <blitz/base.h>
#include <blitz/error.h>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif
#ifndef PIDFD_SIGNAL_PROCESS_GROUP
#define PIDFD_SIGNAL_PROCESS_GROUP 4 /* Linux 6.9 */
#endif

static long result_of(long rc)
{
    return rc < 0 ? -errno : rc;
}

/* ---- finding and forgetting ---- */

/* waitid learnt of pidfds last, in 5.4: it is asked about one that cannot be. */
int blz__process_supported(void)
{
    static int known; /* 0: not yet; 1; or -ENOTSUP. Several threads may find out */
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

int blz__process_open(blz__process *process, int64_t id)
{
    int fd;

    *process = (blz__process){id, BLZ_NO_SYSFD};
    if (id <= 0 || id > INT32_MAX)
        return -EINVAL;
    fd = (int)result_of(syscall(SYS_pidfd_open, (long)id, 0L));
    if (fd < 0)
        return fd == -ENOSYS ? -ENOTSUP : fd;
    process->handle = fd;
    return 0;
}

void blz__process_close(blz__process *process)
{
    if (process->handle >= 0)
        close(process->handle);
    process->handle = BLZ_NO_SYSFD;
}

/* ---- the end ---- */

blz_sysfd blz__process_ends_handle(const blz__process *process)
{
    return process->handle;
}

bool blz__process_has_ended(const blz__process *process)
{
    struct pollfd it = {.fd = process->handle, .events = POLLIN};
    int rc;

    do {
        rc = poll(&it, 1, 0);
    } while (rc < 0 && errno == EINTR);
    return rc == 1;
}

static int64_t status_of(const siginfo_t *info)
{
    if (info->si_code == CLD_EXITED)
        return info->si_status & 0xff;
    return (int64_t)(info->si_status & 0x7f) << 8 | (int64_t)(info->si_code == CLD_DUMPED) << 16;
}

/* Without a child to tell about, waitid leaves the number 0. */
static int64_t wait_for(const blz__process *child, int flags)
{
    siginfo_t info;
    int rc;

    do {
        info.si_pid = 0;
        rc = waitid(P_PIDFD, (id_t)child->handle, &info, WEXITED | flags);
    } while (rc < 0 && errno == EINTR);
    if (rc < 0)
        return -errno;
    return info.si_pid == 0 ? -EAGAIN : status_of(&info);
}

int64_t blz__process_status(const blz__process *child)
{
    return wait_for(child, WNOHANG | WNOWAIT);
}

int64_t blz__process_reap(const blz__process *child)
{
    return wait_for(child, WNOHANG);
}

int64_t blz__process_await(const blz__process *child)
{
    return wait_for(child, 0);
}

/* ---- signals ---- */

/* By number, where a filter refuses the call. A child that a stranger has reaped has none. */
static BLZ_COLD int signal_by_number(const blz__process *child, int64_t target, int signal)
{
    if (blz__process_status(child) == -ECHILD)
        return -ESRCH;
    return (int)result_of(syscall(SYS_kill, (long)target, (long)signal));
}

int blz__process_signal(const blz__process *child, int signal)
{
    long rc =
        result_of(syscall(SYS_pidfd_send_signal, (long)child->handle, (long)signal, NULL, 0L));

    return rc < 0 && sys_is_refused((int)-rc) ? signal_by_number(child, child->id, signal)
                                              : (int)rc;
}

/*
 * The kernel's own call for it cannot meet another group, whatever happens to the number. Without
 * it, a number is used only while the process is there, at least as a zombie.
 */
int blz__process_signal_group(const blz__process *child, int signal)
{
    long rc = result_of(syscall(SYS_pidfd_send_signal, (long)child->handle, (long)signal, NULL,
                                (long)PIDFD_SIGNAL_PROCESS_GROUP));

    return rc == -EINVAL || sys_is_refused((int)-rc) ? signal_by_number(child, -child->id, signal)
                                                     : (int)rc;
}

/* ---- sets, by epoll: to add does not wake the thread that waits ---- */

int blz__process_set_open(blz_sysfd *set)
{
    *set = epoll_create1(EPOLL_CLOEXEC);
    return *set < 0 ? -errno : 0;
}

void blz__process_set_close(blz_sysfd set)
{
    close(set);
}

int blz__process_set_add(blz_sysfd set, const blz__process *process, void *tag)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = tag};

    return epoll_ctl(set, EPOLL_CTL_ADD, process->handle, &event) < 0 ? -errno : 0;
}

void blz__process_set_remove(blz_sysfd set, const blz__process *process)
{
    epoll_ctl(set, EPOLL_CTL_DEL, process->handle, NULL);
}

int blz__process_set_wait(blz_sysfd set, void **tags, int max)
{
    struct epoll_event events[64];
    int n = epoll_wait(set, events, max < 64 ? max : 64, -1);

    for (int i = 0; i < n; i++)
        tags[i] = events[i].data.ptr;
    return n > 0 ? n : 0;
}
