/* SPDX-License-Identifier: Apache-2.0 */
/* What the socket modules of src/net share. */
#ifndef BLZ_NET_SOCKET_H
#define BLZ_NET_SOCKET_H

#include "io/io.h"
#include "net/net.h"

/* The public handles are all laid out like this. */
#define net_ref(handle)         ((const blz__fd_ref *)(const void *)(handle))
#define net_mutable_ref(handle) ((blz__fd_ref *)(void *)(handle))

/*
 * A socket for the address's family, adopted by the runtime. `flags`: FD_SHARED or 0. `type`:
 * SOCK_STREAM and so on. 0 or a negative errno.
 */
int blz__socket_new(blz__fd_ref *ref, blz_rt *rt, int family, int type, unsigned flags);

/* The same for one that exists, as accept gives it. On failure it is closed. */
int blz__socket_adopt(blz__fd_ref *ref, blz_rt *rt, int fd, unsigned flags);

/* Calls setsockopt with an int. */
int blz__socket_set(const blz__fd_ref *ref, int level, int option, int value);
int blz__socket_get(const blz__fd_ref *ref, int level, int option, int *value);

int blz__socket_local_addr(const blz__fd_ref *ref, blz_addr *addr);
int blz__socket_peer_addr(const blz__fd_ref *ref, blz_addr *addr);
int blz__socket_shutdown(const blz__fd_ref *ref, int how);

#endif
