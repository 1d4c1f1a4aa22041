/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which Blitz this is: the headers at compile time, the library at run time.
 *
 *     #if BLZ_VERSION_AT_LEAST(0, 1, 0)
 *     ...
 *     #endif
 *     printf("compiled for %s, running on %s\n", BLZ_VERSION_STRING, blz_version());
 */
#ifndef BLITZ_VERSION_H
#define BLITZ_VERSION_H

#include <blitz/base.h>

/* The version of these headers. */
#define BLZ_VERSION_MAJOR  0
#define BLZ_VERSION_MINOR  1
#define BLZ_VERSION_PATCH  0
#define BLZ_VERSION_STRING "0.1.0"

/* True if these headers are of the given version or a later one. */
#define BLZ_VERSION_AT_LEAST(major, minor, patch)                               \
    (BLZ_VERSION_MAJOR * 10000 + BLZ_VERSION_MINOR * 100 + BLZ_VERSION_PATCH >= \
     (major)*10000 + (minor)*100 + (patch))

BLZ_BEGIN_DECLS

/* The version of the library in use, "MAJOR.MINOR.PATCH". [any thread] */
BLZ_API const char *blz_version(void);

BLZ_END_DECLS

#endif
