/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching files and directories for changes. A descriptor collects the changes of everything that
 * was added to it, and is ready to read when there are some. The system fills a buffer with
 * changes in a form of its own; they are taken out of it one by one, as the public blz_fs_change.
 *
 * What a system can tell differs:
 *
 *   Linux, FreeBSD 15   every event
 *   macOS               all but BLZ_FS_WRITTEN; changes may be reported together
 *   other BSDs          all but BLZ_FS_WRITTEN; names in a directory are not told
 *   Windows             directories only; no BLZ_FS_WRITTEN; BLZ_FS_GONE without a reason
 *
 * BLZ_FS_GONE, BLZ_FS_OVERFLOW and BLZ_FS_OF_DIRECTORY cannot be asked for, and are told by all.
 * -ENOTSUP: no system that is supported. [any thread, one at a time for each descriptor]
 */
#ifndef BLZ_SYSTEM_CHANGE_H
#define BLZ_SYSTEM_CHANGE_H

#include <blitz/fs.h>

enum {
    CHANGE_BATCH = 4096, /* bytes: room for a change with the longest name, at least */
    CHANGE_BATCH_ALIGN = 8
};

/* The events that this system can tell, of BLZ_FS_ALL. */
uint32_t blz__change_events(void);

/*
 * Opens a descriptor that watches nothing, not inherited by children. -EMFILE: too many, for the
 * process or its user; -ENOMEM.
 */
int64_t blz__change_open(void);

/*
 * May wait: for the file system. Watches a file, or a directory and what is directly in it: its id.
 * The file again, by any of its names: the id that it has, and the events replace those before.
 * Events that the system cannot tell are ignored; -EINVAL: none is left. -ENOSPC: too many.
 */
int64_t blz__change_add(blz_sysfd fd, const char *path, uint32_t events);

/* Watches it no more: 0; BLZ_FS_GONE is the last that is told of it. -ENOENT: no such id. */
int blz__change_remove(blz_sysfd fd, int id);

/*
 * Fills the buffer, of at least CHANGE_BATCH bytes and aligned to CHANGE_BATCH_ALIGN, with changes:
 * how many bytes they take. -EAGAIN: there are none.
 */
int64_t blz__change_fetch(blz_sysfd fd, void *batch, size_t size);

/*
 * Takes the next change out of a batch of `len` bytes, of which *used have been taken. False: there
 * is none. The name stays valid as long as the batch.
 */
bool blz__change_take(const void *batch, size_t len, size_t *used, blz_fs_change *change);

#endif
