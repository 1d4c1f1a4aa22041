/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors that other processes share, as standard input, output and errors are.
 *
 * What such a descriptor is decides how it is waited for. Whether its calls wait (O_NONBLOCK) is
 * shared with every process that has it, and is never changed here.
 */
#ifndef BLZ_SYSTEM_STDIO_H
#define BLZ_SYSTEM_STDIO_H

#include <blitz/system.h>

#include <stdbool.h>

enum {
    BLZ__STDIO_FILE, /* never waited for: a file, a directory, a disk, /dev/null and its like */
    BLZ__STDIO_PIPE, /* waited for, then called in a way that does not wait whatever its mode */
};

/*
 * Gives a descriptor of our own for one that others use, and says of which kind it is. It is not
 * inherited, and its number is above 2.
 *
 * A terminal is opened anew, in a mode that does not wait; so there is a mode that is nobody
 * else's. Where it cannot be opened (it is another user's, there is no /proc), and for all that is
 * no terminal, it is a duplicate, in the mode that it is in; the position of a file stays shared.
 *
 * BLZ__STDIO_FILE or BLZ__STDIO_PIPE; -EBADF: `fd` is not open; -EMFILE. On Windows a console is
 * given as a pipe whose reads wait on a thread. [any thread]
 */
int blz__stdio_open(blz_sysfd *own, blz_sysfd fd);

#endif
