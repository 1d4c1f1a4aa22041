/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors. Every result of the library that is negative is the negative of one of the names of
 * <errno.h>; zero and more is success. Nothing in the library sets errno.
 *
 *     int64_t rc = BLZ_RUN(serve);
 *     if (rc < 0)
 *         fprintf(stderr, "serve: %s\n", blz_strerror(rc));
 *
 * Programs compare with the same names on every system: those that a system lacks are defined here,
 * with numbers from 4000 up, which no system uses. The numbers themselves differ between systems.
 *
 * Where a system has two numbers for one meaning the library uses one: -EAGAIN, never -EWOULDBLOCK;
 * -ENOTSUP, never -EOPNOTSUPP.
 */
#ifndef BLITZ_ERROR_H
#define BLITZ_ERROR_H

#include <blitz/system.h>
#include <errno.h>

/* macOS, the BSDs and Windows lack some of these. */
#ifndef EBADMSG
#define EBADMSG 4001
#endif
#ifndef EDQUOT
#define EDQUOT 4002
#endif
#ifndef EHOSTDOWN
#define EHOSTDOWN 4003
#endif
#ifndef ENODATA
#define ENODATA 4004
#endif
#ifndef ENONET
#define ENONET 4005
#endif
#ifndef EOWNERDEAD
#define EOWNERDEAD 4006
#endif
#ifndef EPFNOSUPPORT
#define EPFNOSUPPORT 4007
#endif
#ifndef EREMOTEIO
#define EREMOTEIO 4008
#endif
#ifndef ESHUTDOWN
#define ESHUTDOWN 4009
#endif
#ifndef ESOCKTNOSUPPORT
#define ESOCKTNOSUPPORT 4010
#endif
#ifndef ESTALE
#define ESTALE 4011
#endif
#ifndef ETIME
#define ETIME 4012
#endif
#ifndef ETOOMANYREFS
#define ETOOMANYREFS 4013
#endif
#ifndef EUSERS
#define EUSERS 4014
#endif
#ifndef ENOTBLK
#define ENOTBLK 4015
#endif

BLZ_BEGIN_DECLS

/*
 * The text for a result: "success" for zero and more. Never NULL. The texts are the library's own
 * and the same on every system. [any thread]
 */
BLZ_API const char *blz_strerror(int64_t error);

BLZ_END_DECLS
#endif
