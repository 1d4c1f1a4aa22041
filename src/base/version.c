/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The version compiled into the library. The header states it once; CMakeLists.txt reads the
 * number again for the file names, and the install test compares the two.
 */
#include <blitz/version.h>

const char *blz_version(void)
{
    return BLZ_VERSION_STRING;
}
