/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading directories. The system fills a buffer with entries in a form of its own, on a thread
 * that may wait; they are taken out of it without waiting. The descriptor is that of
 * blz__file_open with OPEN_READ and OPEN_DIRECTORY, and its position is the place in the directory.
 *
 * Each entry that exists from the first fetch to the end comes once. Whether an entry comes that is
 * made or removed meanwhile is not known. Removing entries that have been fetched does not make
 * others come twice; with some file systems it makes others be passed over.
 *
 * Every system has these. [any thread, one at a time for each descriptor]
 */
#ifndef BLZ_SYSTEM_DIR_H
#define BLZ_SYSTEM_DIR_H

#include <blitz/fs.h>

enum {
    DIR_BATCH = 32 << 10, /* bytes: room for many entries, and for one with the longest name */
    DIR_BATCH_ALIGN = 8
};

/*
 * May wait: for the disk. Fills the buffer, of at least DIR_BATCH bytes and aligned to
 * DIR_BATCH_ALIGN, with entries: how many bytes they take. 0: the end. -ENOTDIR.
 */
int64_t blz__dir_fetch(blz_sysfd fd, void *batch, size_t size);

/*
 * Takes the next entry out of a batch of `len` bytes, of which *used have been taken, and leaves
 * out "." and "..". False: there is none. The name stays valid as long as the batch.
 */
bool blz__dir_take(const void *batch, size_t len, size_t *used, blz_dir_entry *entry);

/* The next fetch begins at the first entry again: 0, or an error. */
int blz__dir_rewind(blz_sysfd fd);

#endif
