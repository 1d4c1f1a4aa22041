/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory for the files of a conformance test, made and removed by the contract's functions. A
 * case calls enter() first, which gives it a directory of its own.
 */
#ifndef BLZ_TESTS_SYSTEM_PLACE_H
#define BLZ_TESTS_SYSTEM_PLACE_H

#include "conform.h"

#include "system/dir.h"
#include "system/path.h"
#include "system/random.h"

#include <stdio.h>
#include <string.h>

enum { PLACE_SIZE = PATH_SIZE + 256 };

static char place_root[PLACE_SIZE], place[PLACE_SIZE + 16];

static inline void enter(void)
{
    static int number;

    snprintf(place, sizeof place, "%s/%d", place_root, number++);
    assert_int_equal(blz__path_create_dir(place, 0700), 0);
}

/* The path of a name in the directory of the case. Valid until the eighth call from here. */
static inline const char *in_place(const char *name)
{
    static char paths[8][PLACE_SIZE + 512];
    static int next;
    char *path = paths[next++ % 8];

    snprintf(path, sizeof paths[0], "%s/%s", place, name);
    return path;
}

static inline blz_sysfd opened(const char *path, unsigned flags)
{
    int64_t fd = blz__file_open(FILE_CURRENT_DIR, path, flags, 0666);

    if (fd < 0)
        fail_msg("%s: %d", path, (int)fd);
    return (blz_sysfd)fd;
}

static inline void close_file(blz_sysfd fd)
{
    assert_int_equal(blz__file_close(fd), 0);
}

static inline int64_t write_text(blz_sysfd fd, const char *text, int64_t offset)
{
    blz_iovec piece = {(void *)(uintptr_t)text, strlen(text)};

    return blz__file_write(fd, &piece, 1, offset);
}

/* A file with this text. */
static inline const char *make_file(const char *name, const char *text)
{
    const char *path = in_place(name);
    blz_sysfd fd = opened(path, OPEN_WRITE | OPEN_CREATE | OPEN_TRUNCATE);

    assert_int_equal(write_text(fd, text, FILE_AT_POSITION), strlen(text));
    close_file(fd);
    return path;
}

/* Whether these bytes are at that offset of a file, and end there. */
static inline bool has_text(blz_sysfd fd, const char *text, int64_t offset)
{
    char buf[512];
    blz_iovec piece = {buf, sizeof buf};
    int64_t n = blz__file_read(fd, &piece, 1, offset);

    return n == (int64_t)strlen(text) && memcmp(buf, text, strlen(text)) == 0;
}

static inline bool path_has_text(const char *path, const char *text)
{
    blz_sysfd fd = opened(path, OPEN_READ);
    bool yes = has_text(fd, text, 0);

    close_file(fd);
    return yes;
}

static inline blz_metadata metadata_of(const char *path)
{
    blz_metadata about;

    assert_int_equal(blz__path_metadata(FILE_CURRENT_DIR, path, false, &about), 0);
    return about;
}

/* ---- around all cases ---- */

static inline void place_begin(void)
{
    char temp[PATH_SIZE];

    check(blz__path_temp_dir(temp) == 0);
    snprintf(place_root, sizeof place_root, "%s/blitz-system-%016llx", temp,
             (unsigned long long)blz__random_seed());
    check(blz__path_create_dir(place_root, 0700) == 0);
}

static inline void remove_tree(const char *path);

/* Removes what is in an open directory: how much that was. Some may have been passed over. */
static inline int remove_entries(blz_sysfd dir, const char *path)
{
    _Alignas(DIR_BATCH_ALIGN) char batch[DIR_BATCH];
    blz_dir_entry entry;
    int removed = 0;
    int64_t len;

    while ((len = blz__dir_fetch(dir, batch, sizeof batch)) > 0) {
        for (size_t used = 0; blz__dir_take(batch, (size_t)len, &used, &entry); removed++) {
            char inside[PLACE_SIZE + 512];
            snprintf(inside, sizeof inside, "%s/%s", path, entry.name);
            if (blz__path_remove(dir, entry.name) == -EISDIR)
                remove_tree(inside);
        }
    }
    check(len == 0 && blz__dir_rewind(dir) == 0);
    return removed;
}

/* Removes a directory with all that is in it. */
static inline void remove_tree(const char *path)
{
    int64_t fd = blz__file_open(FILE_CURRENT_DIR, path, OPEN_READ | OPEN_DIRECTORY, 0);

    check(fd >= 0);
    while (remove_entries((blz_sysfd)fd, path) > 0)
        ;
    check(blz__file_close((blz_sysfd)fd) == 0);
    check(blz__path_remove_dir(FILE_CURRENT_DIR, path) == 0);
}

/* Runs the cases of a program in a place that is removed afterwards. */
#define RUN_IN_PLACE(tests) (place_begin(), place_end(RUN_TESTS(tests)))

static inline int place_end(int failed)
{
    remove_tree(place_root);
    return failed;
}

#endif
