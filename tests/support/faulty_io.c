/* SPDX-License-Identifier: Apache-2.0 */
/* The wrappers of faulty.h that stand before sockets, epoll, poll and liburing. */
#include "faulty.h"

#include <blitz/system.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

/* What the linker is asked for, so that this file is found. */
extern const int blz_faulty_io;
const int blz_faulty_io = 1;

/* A wrapper of `result name(params)`: fails, or calls the real one with `args`. */
#define WRAP(which, result, name, params, args)        \
    result __real_##name params;                       \
    result __wrap_##name params;                       \
    result __wrap_##name params                        \
    {                                                  \
        return fails(which) ? -1 : __real_##name args; \
    }

WRAP(FAULTY_SOCKET, int, socket, (int domain, int type, int protocol), (domain, type, protocol))
WRAP(FAULTY_BIND, int, bind, (int fd, const struct sockaddr *sa, socklen_t len), (fd, sa, len))
WRAP(FAULTY_LISTEN, int, listen, (int fd, int backlog), (fd, backlog))
WRAP(FAULTY_ACCEPT4, int, accept4, (int fd, struct sockaddr *sa, socklen_t *len, int flags),
     (fd, sa, len, flags))
WRAP(FAULTY_CONNECT, int, connect, (int fd, const struct sockaddr *sa, socklen_t len),
     (fd, sa, len))
/* A wrapper of a function of the contract. */
#define WRAP_CONTRACT(which, result, name, params, args) \
    result __real_##name params;                         \
    result __wrap_##name params;                         \
    result __wrap_##name params                          \
    {                                                    \
        int error = error_of(which);                     \
        return error ? -error : __real_##name args;      \
    }

WRAP_CONTRACT(FAULTY_RECV, int64_t, blz__socket_recv, (blz_sysfd fd, void *buf, size_t len),
              (fd, buf, len))
WRAP_CONTRACT(FAULTY_SEND, int64_t, blz__socket_send, (blz_sysfd fd, const void *buf, size_t len),
              (fd, buf, len))
WRAP(FAULTY_RECVMSG, ssize_t, recvmsg, (int fd, struct msghdr *msg, int flags), (fd, msg, flags))
WRAP(FAULTY_SENDMSG, ssize_t, sendmsg, (int fd, const struct msghdr *msg, int flags),
     (fd, msg, flags))
WRAP(FAULTY_EPOLL_CREATE1, int, epoll_create1, (int flags), (flags))
WRAP(FAULTY_EPOLL_CTL, int, epoll_ctl, (int set, int what, int fd, struct epoll_event *event),
     (set, what, fd, event))
WRAP(FAULTY_EPOLL_PWAIT2, int, epoll_pwait2,
     (int set, struct epoll_event *events, int max, const struct timespec *time,
      const sigset_t *mask),
     (set, events, max, time, mask))
WRAP(FAULTY_PPOLL, int, ppoll,
     (struct pollfd * fds, nfds_t count, const struct timespec *time, const sigset_t *mask),
     (fds, count, time, mask))

#ifdef BLZ_HAVE_URING
#include <liburing.h>

/* The same for functions that return the error. */
#define WRAP_URING(which, name, params, args)       \
    int __real_##name params;                       \
    int __wrap_##name params;                       \
    int __wrap_##name params                        \
    {                                               \
        int error = error_of(which);                \
        return error ? -error : __real_##name args; \
    }

WRAP_URING(FAULTY_URING_INIT, io_uring_queue_init_params,
           (unsigned entries, struct io_uring *ring, struct io_uring_params *params),
           (entries, ring, params))
WRAP_URING(FAULTY_URING_SUBMIT, io_uring_submit, (struct io_uring * ring), (ring))
WRAP_URING(FAULTY_URING_SUBMIT_AND_WAIT, io_uring_submit_and_wait,
           (struct io_uring * ring, unsigned count), (ring, count))
WRAP_URING(FAULTY_URING_SUBMIT_AND_GET_EVENTS, io_uring_submit_and_get_events,
           (struct io_uring * ring), (ring))
WRAP_URING(FAULTY_URING_REGISTER_EVENTFD, io_uring_register_eventfd,
           (struct io_uring * ring, int fd), (ring, fd))
WRAP_URING(FAULTY_URING_REGISTER_RING_FD, io_uring_register_ring_fd, (struct io_uring * ring),
           (ring))
#endif
