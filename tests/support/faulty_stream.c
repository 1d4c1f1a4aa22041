/* SPDX-License-Identifier: Apache-2.0 */
/* The wrappers of faulty.h that stand before what src/stream calls. */
#include "faulty.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <unistd.h>

/* What the linker is asked for, so that this file is found. */
extern const int blz_faulty_stream;
const int blz_faulty_stream = 1;

/* A wrapper of `result name(params)`: fails, or calls the real one with `args`. */
#define WRAP(which, result, name, params, args)        \
    result __real_##name params;                       \
    result __wrap_##name params;                       \
    result __wrap_##name params                        \
    {                                                  \
        return fails(which) ? -1 : __real_##name args; \
    }

WRAP(FAULTY_SPLICE, ssize_t, splice,
     (int from, off_t *at, int to, off_t *there, size_t len, unsigned flags),
     (from, at, to, there, len, flags))
WRAP(FAULTY_SENDFILE, ssize_t, sendfile, (int to, int from, off_t *at, size_t len),
     (to, from, at, len))
WRAP(FAULTY_POLL, int, poll, (struct pollfd * fds, nfds_t count, int ms), (fds, count, ms))
