/* SPDX-License-Identifier: Apache-2.0 */
/* The file system: whole files, paths, directories, on every backend. */
#include "net_probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static char dir[64];

/* The third call reuses the first one's memory. */
static const char *in_dir(const char *name)
{
    static char path[2][512];
    static int turn;

    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

static blz_rt *begin(const char *backend)
{
    strcpy(dir, "/tmp/blitz-fs-XXXXXX");
    assert_non_null(mkdtemp(dir));
    return turning_rt(backend);
}

/* The directory goes by the function that is tested for it. */
static void end(blz_rt *rt)
{
    blz_fs_op op = {0};

    assert_int_equal(AWAIT(rt, blz_fs_remove_dir_all(&op, dir)), 0);
    assert_int_equal(access(dir, F_OK), -1);
    free_rt(rt);
}

static void expect_file(blz_rt *rt, const char *name, const char *text)
{
    blz_fs_op op = {0};
    blz_bytes bytes;

    assert_int_equal(AWAIT(rt, blz_fs_read(&op, in_dir(name), &bytes, 1000)), strlen(text));
    assert_string_equal(bytes.data, text);
    blz_bytes_free(&bytes);
    assert_null(bytes.data);
}

static void write_file(blz_rt *rt, const char *name, const char *text)
{
    blz_fs_op op = {0};

    assert_int_equal(AWAIT(rt, blz_fs_write(&op, in_dir(name), text, strlen(text))), 0);
}

/* How many names there are in a directory. */
static int nr_names(blz_rt *rt, const char *path)
{
    blz_dir_entry entry;
    blz_fs_op op = {0};
    blz_dir d;
    int n = 0;

    assert_int_equal(AWAIT(rt, blz_dir_open(&op, &d, path)), 0);
    while (AWAIT(rt, blz_dir_next(&op, &d, &entry)) == 1)
        n++;
    assert_int_equal(AWAIT(rt, blz_dir_next(&op, &d, &entry)), 0);
    blz_dir_close(&d);
    assert_int_equal(AWAIT(rt, blz_dir_next(&op, &d, &entry)), -EBADF);
    return n;
}

/* ---- whole files ---- */

ON_EACH_BACKEND(a_file_is_written_read_and_appended_to)
{
    blz_rt *rt = begin(backend);
    blz_fs_op op = {0};
    blz_bytes bytes;

    write_file(rt, "a", "a long text");
    write_file(rt, "a", "short");
    expect_file(rt, "a", "short");
    assert_int_equal(AWAIT(rt, blz_fs_append(&op, in_dir("a"), "er", 2)), 0);
    assert_int_equal(AWAIT(rt, blz_fs_append(&op, in_dir("b"), "new", 3)), 0);
    expect_file(rt, "a", "shorter");
    expect_file(rt, "b", "new");
    write_file(rt, "empty", "");
    expect_file(rt, "empty", "");
    assert_int_equal(AWAIT(rt, blz_fs_read(&op, in_dir("none"), &bytes, 10)), -ENOENT);
    assert_null(bytes.data);
    assert_int_equal(AWAIT(rt, blz_fs_read(&op, dir, &bytes, 10)), -EISDIR);
    assert_int_equal(AWAIT(rt, blz_fs_write(&op, dir, "x", 1)), -EISDIR);
    end(rt);
}

ON_EACH_BACKEND(reading_ends_at_the_limit)
{
    blz_rt *rt = begin(backend);
    blz_fs_op op = {0};
    blz_bytes bytes;

    write_file(rt, "a", "seven77");
    assert_int_equal(AWAIT(rt, blz_fs_read(&op, in_dir("a"), &bytes, 7)), 7);
    blz_bytes_free(&bytes);
    assert_int_equal(AWAIT(rt, blz_fs_read(&op, in_dir("a"), &bytes, 6)), -EFBIG);
    assert_int_equal(AWAIT(rt, blz_fs_read(&op, in_dir("a"), &bytes, 0)), -EFBIG);
    assert_null(bytes.data);
    /* endless, and without a length */
    assert_int_equal(AWAIT(rt, blz_fs_read(&op, "/dev/zero", &bytes, 100000)), -EFBIG);
    assert_int_equal(AWAIT(rt, blz_fs_read(&op, "/dev/null", &bytes, SIZE_MAX)), 0);
    blz_bytes_free(&bytes);
    assert_true(AWAIT(rt, blz_fs_read(&op, "/proc/self/status", &bytes, SIZE_MAX)) > 100);
    assert_int_equal(strncmp(bytes.data, "Name:", 5), 0);
    blz_bytes_free(&bytes);
    end(rt);
}

ON_EACH_BACKEND(an_atomic_write_replaces_the_file_and_leaves_nothing_else)
{
    blz_rt *rt = begin(backend);
    blz_fs_op op = {0};
    struct stat before, after;

    write_file(rt, "a", "old");
    check(chmod(in_dir("a"), 0604) == 0 && stat(in_dir("a"), &before) == 0);
    assert_int_equal(AWAIT(rt, blz_fs_write_atomic(&op, in_dir("a"), "new text", 8)), 0);
    expect_file(rt, "a", "new text");
    check(stat(in_dir("a"), &after) == 0);
    assert_int_not_equal(before.st_ino, after.st_ino);
    assert_int_equal(after.st_mode & 07777, 0604);
    assert_int_equal(AWAIT(rt, blz_fs_write_atomic(&op, in_dir("b"), "first", 5)), 0);
    expect_file(rt, "b", "first");
    assert_int_equal(AWAIT(rt, blz_fs_write_atomic(&op, in_dir("b/"), "", 0)), -EISDIR);
    assert_int_equal(AWAIT(rt, blz_fs_write_atomic(&op, in_dir("no/b"), "", 0)), -ENOENT);
    check(mkdir(in_dir("d"), 0700) == 0);
    assert_int_equal(AWAIT(rt, blz_fs_write_atomic(&op, in_dir("d"), "", 0)), -EISDIR);
    assert_int_equal(nr_names(rt, dir), 3);
    end(rt);
}

ON_EACH_BACKEND(a_copy_is_the_same)
{
    enum { SIZE = 300000 };
    blz_rt *rt = begin(backend);
    char *data = malloc(SIZE);
    blz_bytes bytes;
    blz_fs_op op = {0};
    struct stat st;

    for (int i = 0; i < SIZE; i++)
        data[i] = (char)(i * 7 >> 2);
    assert_int_equal(AWAIT(rt, blz_fs_write(&op, in_dir("a"), data, SIZE)), 0);
    check(chmod(in_dir("a"), 0640) == 0);
    write_file(rt, "b", "something else");
    assert_int_equal(AWAIT(rt, blz_fs_copy(&op, in_dir("a"), in_dir("b"))), SIZE);
    assert_int_equal(AWAIT(rt, blz_fs_read(&op, in_dir("b"), &bytes, SIZE)), SIZE);
    assert_memory_equal(bytes.data, data, SIZE);
    blz_bytes_free(&bytes);
    check(stat(in_dir("b"), &st) == 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(AWAIT(rt, blz_fs_copy(&op, in_dir("a"), in_dir("a"))), -EINVAL);
    check(stat(in_dir("a"), &st) == 0 && st.st_size == SIZE);
    assert_int_equal(AWAIT(rt, blz_fs_copy(&op, dir, in_dir("c"))), -EINVAL);
    /* other file systems, one of which has files without a length */
    assert_true(AWAIT(rt, blz_fs_copy(&op, "/proc/self/status", in_dir("c"))) > 100);
    assert_int_equal(AWAIT(rt, blz_fs_copy(&op, in_dir("a"), "/dev/null")), SIZE);
    assert_int_equal(AWAIT(rt, blz_fs_copy(&op, in_dir("none"), in_dir("c"))), -ENOENT);
    free(data);
    end(rt);
}

/* ---- paths ---- */

ON_EACH_BACKEND(links_are_made_read_and_followed)
{
    blz_rt *rt = begin(backend);
    blz_metadata m;
    blz_bytes text;
    blz_fs_op op = {0};
    char real[4096];

    write_file(rt, "a", "abc");
    assert_int_equal(AWAIT(rt, blz_fs_symlink(&op, "a", in_dir("link"))), 0);
    assert_int_equal(AWAIT(rt, blz_fs_hard_link(&op, in_dir("a"), in_dir("hard"))), 0);
    assert_int_equal(AWAIT(rt, blz_fs_metadata(&op, in_dir("link"), &m)), 0);
    assert_true(m.type == BLZ_FILE_REGULAR && m.size == 3 && m.links == 2);
    assert_int_equal(AWAIT(rt, blz_fs_link_metadata(&op, in_dir("link"), &m)), 0);
    assert_int_equal(m.type, BLZ_FILE_SYMLINK);
    assert_int_equal(AWAIT(rt, blz_fs_read_link(&op, in_dir("link"), &text)), 0);
    assert_string_equal(text.data, "a");
    blz_bytes_free(&text);
    assert_int_equal(AWAIT(rt, blz_fs_read_link(&op, in_dir("a"), &text)), -EINVAL);
    assert_non_null(realpath(in_dir("a"), real));
    assert_int_equal(AWAIT(rt, blz_fs_canonicalize(&op, in_dir("./../././tmp/../link"), &text)),
                     -ENOENT);
    assert_int_equal(AWAIT(rt, blz_fs_canonicalize(&op, in_dir("./link"), &text)), 0);
    assert_string_equal(text.data, real);
    assert_int_equal(text.len, strlen(real));
    blz_bytes_free(&text);
    end(rt);
}

ON_EACH_BACKEND(names_are_changed_and_removed)
{
    blz_rt *rt = begin(backend);
    blz_metadata m;
    blz_fs_op op = {0};

    assert_int_equal(AWAIT(rt, blz_fs_exists(&op, in_dir("a"))), 0);
    write_file(rt, "a", "x");
    assert_int_equal(AWAIT(rt, blz_fs_exists(&op, in_dir("a"))), 1);
    assert_int_equal(AWAIT(rt, blz_fs_exists(&op, in_dir("a/b"))), 0);
    assert_int_equal(AWAIT(rt, blz_fs_set_mode(&op, in_dir("a"), 0400)), 0);
    assert_int_equal(AWAIT(rt, blz_fs_set_times(&op, in_dir("a"), BLZ_TIME_KEEP, 5 * BLZ_SEC)), 0);
    assert_int_equal(AWAIT(rt, blz_fs_metadata(&op, in_dir("a"), &m)), 0);
    assert_true(m.mode == 0400 && m.modified_ns == 5 * BLZ_SEC && m.accessed_ns > BLZ_SEC);
    assert_int_equal(AWAIT(rt, blz_fs_rename(&op, in_dir("a"), in_dir("b"))), 0);
    assert_int_equal(AWAIT(rt, blz_fs_exists(&op, in_dir("a"))), 0);
    assert_int_equal(AWAIT(rt, blz_fs_remove(&op, in_dir("b"))), 0);
    assert_int_equal(AWAIT(rt, blz_fs_remove(&op, in_dir("b"))), -ENOENT);
    assert_int_equal(AWAIT(rt, blz_fs_remove(&op, dir)), -EISDIR);
    assert_int_equal(AWAIT(rt, blz_fs_metadata(&op, in_dir("b"), &m)), -ENOENT);
    end(rt);
}

/* ---- directories ---- */

ON_EACH_BACKEND(directories_are_made_with_those_above_them)
{
    blz_rt *rt = begin(backend);
    blz_fs_op op = {0};

    assert_int_equal(AWAIT(rt, blz_fs_create_dir(&op, in_dir("a/b"), 0777)), -ENOENT);
    assert_int_equal(AWAIT(rt, blz_fs_create_dir_all(&op, in_dir("a//b/c/"), 0777)), 0);
    assert_int_equal(AWAIT(rt, blz_fs_create_dir_all(&op, in_dir("a/b/c"), 0777)), 0);
    assert_int_equal(AWAIT(rt, blz_fs_create_dir_all(&op, "/", 0777)), 0);
    assert_int_equal(AWAIT(rt, blz_fs_create_dir_all(&op, "", 0777)), -ENOENT);
    write_file(rt, "a/f", "x");
    assert_int_equal(AWAIT(rt, blz_fs_create_dir_all(&op, in_dir("a/f"), 0777)), -ENOTDIR);
    assert_int_equal(AWAIT(rt, blz_fs_create_dir_all(&op, in_dir("a/f/g"), 0777)), -ENOTDIR);
    assert_int_equal(AWAIT(rt, blz_fs_create_dir(&op, in_dir("a"), 0777)), -EEXIST);
    assert_int_equal(AWAIT(rt, blz_fs_remove_dir(&op, in_dir("a"))), -ENOTEMPTY);
    assert_int_equal(AWAIT(rt, blz_fs_remove_dir(&op, in_dir("a/b/c"))), 0);
    end(rt);
}

ON_EACH_BACKEND(removing_a_tree_does_not_follow_links)
{
    blz_rt *rt = begin(backend);
    blz_fs_op op = {0};

    assert_int_equal(AWAIT(rt, blz_fs_create_dir_all(&op, in_dir("t/1/2/3"), 0777)), 0);
    assert_int_equal(AWAIT(rt, blz_fs_create_dir(&op, in_dir("keep"), 0777)), 0);
    write_file(rt, "keep/f", "kept");
    write_file(rt, "t/1/2/f", "gone");
    check(symlink(dir, in_dir("t/1/up")) == 0);
    check(symlink("../keep", in_dir("t/keep")) == 0);
    check(symlink("keep", in_dir("link")) == 0);
    assert_int_equal(AWAIT(rt, blz_fs_remove_dir_all(&op, in_dir("link"))), -ENOTDIR);
    assert_int_equal(AWAIT(rt, blz_fs_remove_dir_all(&op, in_dir("keep/f"))), -ENOTDIR);
    assert_int_equal(AWAIT(rt, blz_fs_remove_dir_all(&op, in_dir("none"))), -ENOENT);
    assert_int_equal(AWAIT(rt, blz_fs_remove_dir_all(&op, in_dir("t"))), 0);
    assert_int_equal(AWAIT(rt, blz_fs_exists(&op, in_dir("t"))), 0);
    expect_file(rt, "keep/f", "kept");
    end(rt);
}

ON_EACH_BACKEND(all_entries_are_listed_once)
{
    enum { NAMES = 700 }; /* more than one batch */
    blz_rt *rt = begin(backend);
    bool seen[NAMES] = {false};
    blz_dir_entry entry;
    blz_fs_op op = {0};
    blz_dir d;
    char name[64];
    int n = 0;

    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "%d-%032d", i, 0);
        int fd = open(in_dir(name), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        check(fd >= 0);
        close(fd);
    }
    assert_int_equal(AWAIT(rt, blz_dir_open(&op, &d, in_dir("none"))), -ENOENT);
    blz_dir_close(&d);
    assert_int_equal(AWAIT(rt, blz_dir_open(&op, &d, dir)), 0);
    while (AWAIT(rt, blz_dir_next(&op, &d, &entry)) == 1) {
        int i = atoi(entry.name);
        assert_false(seen[i]);
        seen[i] = true;
        assert_true(entry.type == BLZ_FILE_REGULAR || entry.type == BLZ_FILE_UNKNOWN);
        n++;
    }
    assert_int_equal(n, NAMES);
    blz_dir_close(&d);
    end(rt);
}

ON_EACH_BACKEND(an_open_directory_is_listed)
{
    blz_rt *rt = begin(backend);
    blz_dir_entry entry;
    blz_io io = {0};
    blz_fs_op op = {0};
    blz_file f;
    blz_dir d;
    int fd;

    write_file(rt, "a", "x");
    assert_int_equal(AWAIT(rt, blz_file_open(&io, &f, dir, NULL)), 0);
    fd = (int)blz_file_into_fd(&f);
    assert_int_equal(blz_dir_from_fd(&d, fd, NULL), -ENXIO);
    assert_int_equal(blz_dir_from_fd(&d, -1, rt), -EBADF);
    assert_int_equal(blz_dir_from_fd(&d, fd, rt), 0);
    assert_int_equal(AWAIT(rt, blz_dir_next(&op, &d, &entry)), 1);
    assert_string_equal(entry.name, "a");
    assert_int_equal(AWAIT(rt, blz_dir_next(&op, &d, &entry)), 0);
    blz_dir_close(&d);
    assert_int_equal(fcntl(fd, F_GETFD), -1);

    assert_int_equal(AWAIT(rt, blz_file_open(&io, &f, in_dir("a"), NULL)), 0);
    fd = (int)blz_file_into_fd(&f);
    assert_int_equal(blz_dir_from_fd(&d, fd, rt), -ENOTDIR);
    assert_int_equal(close(fd), 0);
    blz_dir_close(&d);
    end(rt);
}

/* ---- for a while ---- */

ON_EACH_BACKEND(temporary_things_are_where_they_should_be)
{
    blz_rt *rt = begin(backend);
    blz_io io = {0};
    blz_bytes path;
    blz_fs_op op = {0};
    blz_file f;
    struct stat st;
    char buf[8];

    assert_int_equal(AWAIT(rt, blz_fs_temp_file(&op, &f, dir)), 0);
    assert_int_equal(AWAIT(rt, blz_file_write_all(&io, &f, "temp", 4)), 4);
    assert_int_equal(AWAIT(rt, blz_file_read_at(&io, &f, buf, 8, 0)), 4);
    assert_int_equal(nr_names(rt, dir), 0);
    assert_int_equal(blz_file_close(&f), 0);
    assert_int_equal(AWAIT(rt, blz_fs_temp_file(&op, &f, in_dir("none"))), -ENOENT);
    assert_int_equal(AWAIT(rt, blz_fs_temp_file(&op, &f, NULL)), 0);
    assert_int_equal(blz_file_close(&f), 0);
    assert_int_equal(AWAIT(rt, blz_fs_temp_dir(&op, &path, dir, "job-")), 0);
    assert_int_equal(strlen(path.data), path.len);
    assert_int_equal(strncmp(path.data, in_dir("job-"), strlen(dir) + 5), 0);
    check(stat(path.data, &st) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 0777) == 0700);
    blz_bytes_free(&path);
    assert_int_equal(AWAIT(rt, blz_fs_temp_dir(&op, &path, in_dir("none"), "x")), -ENOENT);
    assert_null(path.data);
    end(rt);
}

/* ---- cancelling ---- */

/* What was handed out, or nothing: never memory or a descriptor that nobody knows of. */
ON_EACH_BACKEND(what_is_cancelled_leaves_nothing_behind)
{
    blz_rt *rt = begin(backend);
    blz_handle handle;
    blz_bytes bytes, path;
    blz_fs_op op = {0};
    blz_file f;
    blz_dir d;

    write_file(rt, "a", "text");
    for (int i = 0; i < 40; i++) {
        START(rt, &handle, blz_fs_read(&op, in_dir("a"), &bytes, 100));
        blz_handle_cancel(&handle);
        if (FINISH(rt, &handle) < 0)
            assert_null(bytes.data);
        blz_bytes_free(&bytes);
        START(rt, &handle, blz_fs_temp_file(&op, &f, dir));
        blz_handle_cancel(&handle);
        assert_int_equal(FINISH(rt, &handle), blz_file_close(&f) == 0 ? 0 : -ECANCELED);
        START(rt, &handle, blz_dir_open(&op, &d, dir));
        blz_handle_cancel(&handle);
        FINISH(rt, &handle);
        blz_dir_close(&d);
        START(rt, &handle, blz_fs_temp_dir(&op, &path, dir, "x"));
        blz_handle_cancel(&handle);
        if (FINISH(rt, &handle) == 0)
            assert_int_equal(rmdir(path.data), 0);
        blz_bytes_free(&path);
        START(rt, &handle, blz_fs_write_atomic(&op, in_dir("a"), "text", 4));
        blz_handle_cancel(&handle);
        FINISH(rt, &handle);
    }
    assert_int_equal(nr_names(rt, dir), 1);
    expect_file(rt, "a", "text");
    end(rt);
}

/* ---- changes ---- */

static void expect_change(blz_rt *rt, blz_fs_watch *w, int id, uint32_t events, const char *name)
{
    blz_io io = {0};
    blz_fs_change change;

    assert_int_equal(AWAIT(rt, blz_fs_watch_next(&io, w, &change)), 1);
    assert_int_equal(change.id, id);
    assert_int_equal(change.events, events);
    assert_string_equal(change.name, name);
}

ON_EACH_BACKEND(changes_are_reported_in_order)
{
    blz_rt *rt = begin(backend);
    blz_fs_change change;
    blz_handle waiting;
    blz_io io = {0};
    blz_fs_watch w;
    blz_fs_op op = {0};
    int id;

    assert_int_equal(blz_fs_watch_new(&w, NULL), -ENXIO);
    blz_fs_watch_close(&w);
    assert_int_equal(blz_fs_watch_new(&w, rt), 0);
    assert_int_equal(AWAIT(rt, blz_fs_watch_add(&op, &w, in_dir("none"), BLZ_FS_ALL)), -ENOENT);
    id = (int)AWAIT(rt, blz_fs_watch_add(&op, &w, dir, BLZ_FS_ALL & ~BLZ_FS_MODIFIED));
    assert_true(id >= 0);
    START(rt, &waiting, blz_fs_watch_next(&io, &w, &change));
    assert_false(blz_handle_done(&waiting));
    check(mkdir(in_dir("d"), 0700) == 0);
    assert_int_equal(FINISH(rt, &waiting), 1);
    assert_true(change.id == id && change.events == (BLZ_FS_CREATED | BLZ_FS_OF_DIRECTORY));
    write_file(rt, "f", "x");
    check(rename(in_dir("f"), in_dir("g")) == 0);
    check(unlink(in_dir("g")) == 0);
    expect_change(rt, &w, id, BLZ_FS_CREATED, "f");
    expect_change(rt, &w, id, BLZ_FS_WRITTEN, "f");
    expect_change(rt, &w, id, BLZ_FS_MOVED_FROM, "f");
    expect_change(rt, &w, id, BLZ_FS_MOVED_TO, "g");
    expect_change(rt, &w, id, BLZ_FS_REMOVED, "g");
    assert_int_equal(blz_fs_watch_remove(&w, id), 0);
    assert_int_equal(blz_fs_watch_remove(&w, id), -ENOENT);
    expect_change(rt, &w, id, BLZ_FS_GONE, "");
    START(rt, &waiting, blz_fs_watch_next(&io, &w, &change));
    assert_int_equal(CANCEL(rt, &waiting), -ECANCELED);
    blz_fs_watch_close(&w);
    assert_int_equal(blz_fs_watch_remove(&w, id), -EBADF);
    end(rt);
}

ON_EACH_BACKEND(a_cancelled_wait_loses_no_change)
{
    blz_rt *rt = begin(backend);
    blz_fs_change change;
    blz_handle waiting;
    blz_io io = {0};
    blz_fs_watch w;
    blz_fs_op op = {0};
    char name[16];
    int next = 0;

    assert_int_equal(blz_fs_watch_new(&w, rt), 0);
    assert_true(AWAIT(rt, blz_fs_watch_add(&op, &w, dir, BLZ_FS_CREATED)) >= 0);
    for (int i = 0; i < 50; i++) {
        START(rt, &waiting, blz_fs_watch_next(&io, &w, &change));
        snprintf(name, sizeof name, "%d", i);
        check(mkdir(in_dir(name), 0700) == 0);
        blz_handle_cancel(&waiting);
        if (FINISH(rt, &waiting) == 1)
            assert_int_equal(atoi(change.name), next++);
    }
    for (; next < 50; next++) {
        assert_int_equal(AWAIT(rt, blz_fs_watch_next(&io, &w, &change)), 1);
        assert_int_equal(atoi(change.name), next);
    }
    blz_fs_watch_close(&w);
    end(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_written_read_and_appended_to),
        TEST(reading_ends_at_the_limit),
        TEST(an_atomic_write_replaces_the_file_and_leaves_nothing_else),
        TEST(a_copy_is_the_same),
        TEST(links_are_made_read_and_followed),
        TEST(names_are_changed_and_removed),
        TEST(directories_are_made_with_those_above_them),
        TEST(removing_a_tree_does_not_follow_links),
        TEST(all_entries_are_listed_once),
        TEST(an_open_directory_is_listed),
        TEST(temporary_things_are_where_they_should_be),
        TEST(what_is_cancelled_leaves_nothing_behind),
        TEST(changes_are_reported_in_order),
        TEST(a_cancelled_wait_loses_no_change),
    };
    return RUN_TESTS(tests);
}
