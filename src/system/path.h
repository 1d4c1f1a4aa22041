/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done with names of files. A relative path begins at the directory `at`, or at the current
 * one (FILE_CURRENT_DIR, and functions without `at`). Paths are bytes that end with a zero, UTF-8
 * on Windows and macOS. All functions: [any thread].
 *
 * -ENOTSUP, by system:
 *
 *   blz__path_set_mode     Windows, beyond the permission to write
 *   blz__path_symlink      Windows, without the privilege or developer mode: -EPERM
 *   blz__path_link         file systems that have none: -EPERM
 *
 * Windows renames over an open file and removes an open file only where the file system has POSIX
 * semantics (NTFS since Windows 10 1709).
 */
#ifndef BLZ_SYSTEM_PATH_H
#define BLZ_SYSTEM_PATH_H

#include "system/file.h"

/* Room for the longest path of any system that is supported, with its zero. */
enum { PATH_SIZE = 4096 };

/* Whether the character separates the parts of a path. */
bool blz__path_is_separator(char c);

/* ---- Names ---- */

/*
 * May wait: for the file system. Removes a file or a symbolic link, which is not followed: 0. Open
 * files stay readable. -EISDIR: a directory.
 */
int blz__path_remove(blz_sysfd at, const char *path);

/* May wait: for the file system. Removes an empty directory: 0. -ENOTDIR; -ENOTEMPTY. */
int blz__path_remove_dir(blz_sysfd at, const char *path);

/*
 * May wait: for the file system. Moves within a file system, in one step; what `to` named is
 * replaced, and stays readable where it is open: 0. -EXDEV: another file system.
 */
int blz__path_rename(blz_sysfd from_at, const char *from, blz_sysfd to_at, const char *to);

/* May wait: for the file system. Gives the file `path` another name: 0. -EEXIST: the name is taken.
 */
int blz__path_link(const char *path, const char *name);

/* May wait: for the file system. Makes a symbolic link with that text: 0. -EEXIST. */
int blz__path_symlink(const char *text, const char *name);

/*
 * May wait: for the file system. The text of a symbolic link: its length; no zero is added.
 * -EINVAL: no symbolic link; -ENAMETOOLONG: it is longer than `size`.
 */
int64_t blz__path_read_link(const char *path, char *text, size_t size);

/*
 * May wait: for the file system. The path from the root, without links, "." and "..": its length,
 * without the zero. -ENOENT: it leads to nothing; -ENAMETOOLONG.
 */
int64_t blz__path_canonical(const char *path, char text[PATH_SIZE]);

/* May wait: for the file system. Makes a directory; `mode` is before the umask: 0. -EEXIST. */
int blz__path_create_dir(const char *path, unsigned mode);

/* ---- What is known ---- */

/*
 * May wait: for the file system. Fills in *out: 0. A symbolic link at the end is followed, or is
 * what is described.
 */
int blz__path_metadata(blz_sysfd at, const char *path, bool follow, blz_metadata *out);

/*
 * May wait: for the file system. 1: the path leads to something; 0: to nothing. An error: it cannot
 * be known. Symbolic links are followed.
 */
int blz__path_exists(blz_sysfd at, const char *path);

/* May wait: for the file system. Sets permissions, as blz__file_set_mode; follows links: 0. */
int blz__path_set_mode(const char *path, unsigned mode);

/* May wait: for the file system. Sets times, as blz__file_set_times; follows links: 0. */
int blz__path_set_times(const char *path, int64_t accessed_ns, int64_t modified_ns);

/* ---- Temporary files ---- */

/*
 * The directory for temporary files, with its zero: 0. The environment may name it (TMPDIR), unless
 * the program has more privileges than its caller. -ENAMETOOLONG.
 */
int blz__path_temp_dir(char text[PATH_SIZE]);

/*
 * May wait: for the file system. Opens a new file in a directory, to read and write, for this user
 * alone, that is gone when it is closed: its descriptor. Other programs see no name of it, or see
 * one for a moment where the system cannot make files without one.
 */
int64_t blz__path_temp_file(const char *dir);

#endif
