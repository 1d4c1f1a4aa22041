/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of sockets, by the numbers and in the units of blitz/socket.h: times are nanoseconds.
 *
 * A value that is out of range is refused here, because systems cut some of them off in silence.
 * All functions: [any thread]. None waits.
 *
 *   -ENOTSUP                          where
 *   ----------------------------------------------------------------------------------------
 *   BLZ_OPT_QUICKACK                  macOS, FreeBSD, NetBSD, OpenBSD, Windows
 *   BLZ_OPT_USER_TIMEOUT              FreeBSD, NetBSD, OpenBSD. Windows: whole seconds
 *   BLZ_OPT_REUSE_PORT                Windows. macOS and plain BSD share the address, but do not
 *                                     spread connections over the sockets; FreeBSD does
 *   BLZ_OPT_FAST_OPEN                 NetBSD, OpenBSD
 *   BLZ_OPT_FAST_OPEN_CONNECT         macOS, FreeBSD, NetBSD, OpenBSD
 *   BLZ_OPT_GRO, BLZ_OPT_GSO          macOS, FreeBSD, NetBSD, OpenBSD
 *   BLZ_OPT_PASS_CRED                 macOS, OpenBSD, Windows
 *   the device                        macOS, FreeBSD, NetBSD, OpenBSD, Windows
 *
 * BLZ_OPT_REUSE_ADDR does nothing on Windows: there it would let other programs take the port.
 */
#ifndef BLZ_SYSTEM_OPTION_H
#define BLZ_SYSTEM_OPTION_H

#include <blitz/socket.h>
#include <blitz/system.h>

/*
 * Sets an option. A time is rounded up to the unit of the system. 0; -EINVAL: no such option, one
 * that cannot be set, or a value out of range; -ENOPROTOOPT or -ENOTSUP: not for this kind of
 * socket, or not on this system; -ENOTSOCK, -EBADF.
 */
int blz__option_set(blz_sysfd fd, int option, int64_t value);

/* Gets an option: 0 and *value. Errors as in blz__option_set. */
int blz__option_get(blz_sysfd fd, int option, int64_t *value);

/*
 * The socket uses this network interface alone; "" or NULL: any. 0; -ENODEV: there is none of this
 * name; -ENAMETOOLONG; -EPERM: not for this process.
 */
int blz__option_set_device(blz_sysfd fd, const char *device);

/* Gets the name of the interface, or "". 0 or a negative error. */
int blz__option_get_device(blz_sysfd fd, char device[BLZ_DEVICE_NAME]);

/*
 * A datagram socket joins a group of the family that it has, on an interface (0: the system
 * chooses). 0; -EINVAL: no multicast address; -EADDRINUSE: it is a member already; -ENODEV.
 */
int blz__option_join(blz_sysfd fd, const blz_addr *group, uint32_t interface);

/* The socket leaves a group. 0; -EADDRNOTAVAIL: it is no member. */
int blz__option_leave(blz_sysfd fd, const blz_addr *group, uint32_t interface);

/* Datagrams to groups go out by this interface; 0: the system chooses. 0 or a negative error. */
int blz__option_set_multicast_interface(blz_sysfd fd, uint32_t interface);

#endif
