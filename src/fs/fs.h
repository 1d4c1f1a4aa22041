/* SPDX-License-Identifier: Apache-2.0 */
/* Front door of src/fs: nothing but the public functions, so far. */
#ifndef BLZ_FS_FS_H
#define BLZ_FS_FS_H

#include <blitz/file.h>

#endif
