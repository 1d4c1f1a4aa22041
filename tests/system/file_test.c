/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: system/file.h. */
#include "place.h"

#include "system/clock.h"
#include "system/handle.h"

#include <stdlib.h>
#include <sys/stat.h> /* mkfifo: the contract makes no FIFOs */

static int64_t open_at(blz_sysfd at, const char *path, unsigned flags)
{
    return blz__file_open(at, path, flags, 0666);
}

static int64_t open_path(const char *path, unsigned flags)
{
    return open_at(FILE_CURRENT_DIR, path, flags);
}

/* ---- opening ---- */

static void a_file_that_is_not_there_is_enoent(void **state)
{
    (void)state;
    enter();
    assert_int_equal(open_path(in_place("none"), OPEN_READ), -ENOENT);
    assert_int_equal(open_path(in_place("none"), OPEN_WRITE), -ENOENT);
}

static void create_makes_a_file_and_keeps_one_that_is_there(void **state)
{
    const char *path;
    blz_sysfd fd;

    (void)state;
    enter();
    path = in_place("file");
    fd = opened(path, OPEN_WRITE | OPEN_CREATE);
    assert_int_equal(write_text(fd, "kept", FILE_AT_POSITION), 4);
    close_file(fd);
    close_file(opened(path, OPEN_WRITE | OPEN_CREATE));
    assert_true(path_has_text(path, "kept"));
}

static void create_new_is_eexist_if_the_path_leads_to_something(void **state)
{
    (void)state;
    enter();
    close_file(opened(in_place("file"), OPEN_WRITE | OPEN_CREATE_NEW));
    assert_int_equal(open_path(in_place("file"), OPEN_WRITE | OPEN_CREATE_NEW), -EEXIST);
    assert_int_equal(blz__path_symlink("nowhere", in_place("link")), 0);
    assert_int_equal(open_path(in_place("link"), OPEN_WRITE | OPEN_CREATE_NEW), -EEXIST);
}

static void truncate_empties_a_file_that_is_there(void **state)
{
    const char *path;

    (void)state;
    enter();
    path = make_file("file", "old");
    close_file(opened(path, OPEN_WRITE | OPEN_TRUNCATE));
    assert_true(path_has_text(path, ""));
}

static void a_file_opened_to_read_cannot_be_written_and_the_other_way_round(void **state)
{
    blz_sysfd reads, writes;
    char byte;
    blz_iovec piece = {&byte, 1};

    (void)state;
    enter();
    reads = opened(make_file("file", "x"), OPEN_READ);
    writes = opened(in_place("file"), OPEN_WRITE);
    assert_int_equal(write_text(reads, "y", 0), -EBADF);
    assert_int_equal(blz__file_read(writes, &piece, 1, 0), -EBADF);
    close_file(reads);
    close_file(writes);
}

static void directory_is_enotdir_for_anything_else(void **state)
{
    (void)state;
    enter();
    make_file("file", "x");
    assert_int_equal(open_path(in_place("file"), OPEN_READ | OPEN_DIRECTORY), -ENOTDIR);
    close_file(opened(place, OPEN_READ | OPEN_DIRECTORY));
}

static void no_follow_is_eloop_for_a_symbolic_link(void **state)
{
    (void)state;
    enter();
    make_file("file", "x");
    assert_int_equal(blz__path_symlink("file", in_place("link")), 0);
    assert_int_equal(open_path(in_place("link"), OPEN_READ | OPEN_NO_FOLLOW), -ELOOP);
    close_file(opened(in_place("link"), OPEN_READ));
    close_file(opened(in_place("file"), OPEN_READ | OPEN_NO_FOLLOW));
}

static void a_fifo_is_einval_and_its_other_side_is_not_waited_for(void **state)
{
    (void)state;
    enter();
    assert_int_equal(mkfifo(in_place("fifo"), 0600), 0);
    assert_int_equal(open_path(in_place("fifo"), OPEN_READ), -EINVAL);
    assert_int_equal(open_path(in_place("fifo"), OPEN_WRITE), -EINVAL);
    assert_int_equal(open_path(in_place("fifo"), OPEN_READ | OPEN_WRITE), -EINVAL);
}

static void flags_that_do_not_exist_are_einval(void **state)
{
    (void)state;
    enter();
    assert_int_equal(open_path(place, OPEN_READ | 0x80000000u), -EINVAL);
    assert_int_equal(blz__file_open_now(FILE_CURRENT_DIR, place, OPEN_READ | 0x80000000u, 0),
                     -EINVAL);
}

static void an_open_file_is_not_inherited_and_its_reads_wait(void **state)
{
    blz_sysfd fd;

    (void)state;
    enter();
    fd = opened(make_file("file", "x"), OPEN_READ);
    assert_int_equal(blz__handle_is_inherited(fd), 0);
    assert_int_equal(blz__handle_is_nonblocking(fd), 0);
    close_file(fd);
}

static void a_relative_path_begins_at_the_directory(void **state)
{
    blz_sysfd dir, fd;
    int64_t rc;

    (void)state;
    enter();
    make_file("file", "x");
    dir = opened(place, OPEN_READ | OPEN_DIRECTORY);
    rc = open_at(dir, "file", OPEN_READ);
    assert_true(rc >= 0);
    fd = (blz_sysfd)rc;
    assert_true(has_text(fd, "x", 0));
    close_file(fd);
    close_file(dir);
}

static void a_new_file_has_the_mode_that_the_umask_leaves(void **state)
{
    mode_t mask = umask(027);
    int64_t fd;

    (void)state;
    enter();
    fd = blz__file_open(FILE_CURRENT_DIR, in_place("file"), OPEN_WRITE | OPEN_CREATE, 0666);
    umask(mask);
    assert_true(fd >= 0);
    close_file((blz_sysfd)fd);
    assert_int_equal(metadata_of(in_place("file")).mode, 0640);
}

static void opening_now_opens_what_was_opened_before_or_says_eagain(void **state)
{
    int64_t fd;

    (void)state;
    enter();
    make_file("file", "cached");
    fd = blz__file_open_now(FILE_CURRENT_DIR, in_place("file"), OPEN_READ, 0);
    if (fd == -EAGAIN)
        return;
    assert_true(fd >= 0);
    assert_true(has_text((blz_sysfd)fd, "cached", 0));
    assert_int_equal(blz__handle_is_inherited((blz_sysfd)fd), 0);
    assert_int_equal(blz__handle_is_nonblocking((blz_sysfd)fd), 0);
    close_file((blz_sysfd)fd);
}

static void opening_now_neither_makes_files_nor_says_that_there_is_none(void **state)
{
    (void)state;
    enter();
    assert_int_equal(blz__file_open_now(FILE_CURRENT_DIR, in_place("none"),
                                        OPEN_WRITE | OPEN_CREATE, 0666),
                     -EAGAIN);
    assert_int_equal(blz__path_exists(FILE_CURRENT_DIR, in_place("none")), 0);
    assert_int_equal(blz__file_open_now(FILE_CURRENT_DIR, in_place("none"), OPEN_READ, 0), -EAGAIN);
}

/* ---- staying beneath a directory ---- */

static blz_sysfd dir_with_a_way_out(void)
{
    enter();
    make_file("outside", "secret");
    assert_int_equal(blz__path_create_dir(in_place("dir"), 0700), 0);
    make_file("dir/inside", "open");
    return opened(in_place("dir"), OPEN_READ | OPEN_DIRECTORY);
}

static void beneath_opens_what_is_in_the_directory(void **state)
{
    blz_sysfd dir = dir_with_a_way_out();
    int64_t fd = open_at(dir, "inside", OPEN_READ | OPEN_BENEATH);

    (void)state;
    close_file(dir);
    skip_if_not_supported(fd);
    assert_true(fd >= 0);
    assert_true(has_text((blz_sysfd)fd, "open", 0));
    close_file((blz_sysfd)fd);
}

static void beneath_refuses_the_parent(void **state)
{
    blz_sysfd dir = dir_with_a_way_out();
    int64_t fd = open_at(dir, "../outside", OPEN_READ | OPEN_BENEATH);

    (void)state;
    assert_true(open_at(dir, "..", OPEN_READ | OPEN_DIRECTORY | OPEN_BENEATH) < 0);
    close_file(dir);
    skip_if_not_supported(fd);
    assert_int_equal(fd, -EXDEV);
}

static void beneath_refuses_a_path_from_the_root(void **state)
{
    blz_sysfd dir = dir_with_a_way_out();
    int64_t fd = open_at(dir, in_place("dir/inside"), OPEN_READ | OPEN_BENEATH);

    (void)state;
    close_file(dir);
    skip_if_not_supported(fd);
    assert_int_equal(fd, -EXDEV);
}

static void beneath_refuses_a_link_that_leads_out(void **state)
{
    blz_sysfd dir = dir_with_a_way_out();
    int64_t fd, created;

    (void)state;
    assert_int_equal(blz__path_symlink("../outside", in_place("dir/link")), 0);
    assert_int_equal(blz__path_symlink("../new", in_place("dir/new")), 0);
    fd = open_at(dir, "link", OPEN_READ | OPEN_BENEATH);
    created = open_at(dir, "new", OPEN_WRITE | OPEN_CREATE | OPEN_BENEATH);
    close_file(dir);
    skip_if_not_supported(fd);
    assert_int_equal(fd, -EXDEV);
    assert_int_equal(created, -EXDEV);
    assert_int_equal(blz__path_exists(FILE_CURRENT_DIR, in_place("new")), 0);
}

static void beneath_follows_a_link_that_stays_inside(void **state)
{
    blz_sysfd dir = dir_with_a_way_out();
    int64_t fd;

    (void)state;
    assert_int_equal(blz__path_symlink("inside", in_place("dir/link")), 0);
    fd = open_at(dir, "link", OPEN_READ | OPEN_BENEATH);
    close_file(dir);
    skip_if_not_supported(fd);
    assert_true(fd >= 0);
    close_file((blz_sysfd)fd);
}

/* ---- public flags ---- */

static void an_unnamed_file_is_in_no_directory(void **state)
{
    _Alignas(DIR_BATCH_ALIGN) char batch[DIR_BATCH];
    blz_dir_entry entry;
    size_t used = 0;
    blz_sysfd dir;
    int64_t fd, len;

    (void)state;
    enter();
    fd = open_path(place, OPEN_READ | OPEN_WRITE | BLZ_OPEN_UNNAMED);
    skip_if_not_supported(fd);
    assert_true(fd >= 0);
    assert_int_equal(write_text((blz_sysfd)fd, "x", 0), 1);
    dir = opened(place, OPEN_READ | OPEN_DIRECTORY);
    len = blz__dir_fetch(dir, batch, sizeof batch);
    assert_true(len < 0 || !blz__dir_take(batch, (size_t)len, &used, &entry));
    close_file(dir);
    close_file((blz_sysfd)fd);
}

static void a_path_descriptor_tells_metadata_and_reads_nothing(void **state)
{
    blz_metadata about;
    char byte;
    int64_t fd;

    (void)state;
    enter();
    fd = open_path(make_file("file", "abc"), BLZ_OPEN_PATH);
    skip_if_not_supported(fd);
    assert_true(fd >= 0);
    assert_int_equal(blz__file_metadata((blz_sysfd)fd, &about), 0);
    assert_int_equal(about.size, 3);
    assert_int_equal(blz__file_read((blz_sysfd)fd, &(blz_iovec){&byte, 1}, 1, 0), -EBADF);
    close_file((blz_sysfd)fd);
}

static void a_file_with_synchronous_writes_is_written(void **state)
{
    const char *path;
    int64_t fd;

    (void)state;
    enter();
    path = in_place("file");
    fd = open_path(path, OPEN_WRITE | OPEN_CREATE | BLZ_OPEN_DSYNC);
    skip_if_not_supported(fd);
    assert_true(fd >= 0);
    assert_int_equal(write_text((blz_sysfd)fd, "safe", 0), 4);
    close_file((blz_sysfd)fd);
    assert_true(path_has_text(path, "safe"));
}

/* ---- reading and writing ---- */

static blz_sysfd file_to_use(const char *text)
{
    enter();
    return opened(make_file("file", text), OPEN_READ | OPEN_WRITE);
}

static void reading_at_the_position_moves_it(void **state)
{
    blz_sysfd fd = file_to_use("abcdef");
    char two[2];
    blz_iovec piece = {two, 2};

    (void)state;
    assert_int_equal(blz__file_read(fd, &piece, 1, FILE_AT_POSITION), 2);
    assert_true(memcmp(two, "ab", 2) == 0);
    assert_int_equal(blz__file_seek(fd, 0, SEEK_CUR), 2);
    assert_true(has_text(fd, "cdef", FILE_AT_POSITION));
    assert_true(has_text(fd, "", FILE_AT_POSITION));
    close_file(fd);
}

static void reading_at_an_offset_leaves_the_position_alone(void **state)
{
    blz_sysfd fd = file_to_use("abcdef");

    (void)state;
    assert_int_equal(blz__file_seek(fd, 1, SEEK_SET), 1);
    assert_true(has_text(fd, "ef", 4));
    assert_int_equal(write_text(fd, "EF", 4), 2);
    assert_int_equal(blz__file_seek(fd, 0, SEEK_CUR), 1);
    assert_true(has_text(fd, "bcdEF", FILE_AT_POSITION));
    close_file(fd);
}

static void pieces_are_filled_one_after_the_other(void **state)
{
    blz_sysfd fd = file_to_use("abcdef");
    char a[2], b[3], c[8];
    blz_iovec pieces[] = {{a, 2}, {NULL, 0}, {b, 3}, {c, 8}};

    (void)state;
    for (int at_position = 0; at_position < 2; at_position++) {
        assert_int_equal(blz__file_read(fd, pieces, 4, at_position ? FILE_AT_POSITION : 0), 6);
        assert_true(memcmp(a, "ab", 2) == 0 && memcmp(b, "cde", 3) == 0 && c[0] == 'f');
    }
    close_file(fd);
}

static void pieces_are_written_one_after_the_other(void **state)
{
    blz_sysfd fd = file_to_use("");
    blz_iovec pieces[] = {{(char[]){"ab"}, 2}, {NULL, 0}, {(char[]){"cde"}, 3}};

    (void)state;
    assert_int_equal(blz__file_write(fd, pieces, 3, FILE_AT_POSITION), 5);
    assert_int_equal(blz__file_write(fd, pieces, 3, 2), 5);
    assert_true(has_text(fd, "ababcde", 0));
    close_file(fd);
}

static void at_least_1024_pieces_are_taken_at_a_time(void **state)
{
    blz_sysfd fd = file_to_use("");
    static blz_iovec pieces[1024];

    (void)state;
    for (int i = 0; i < 1024; i++)
        pieces[i] = (blz_iovec){&(char[]){"0123456789"}[i % 10], 1};
    assert_int_equal(blz__file_write(fd, pieces, 1024, 0), 1024);
    assert_int_equal(blz__file_read(fd, pieces, (size_t)INT32_MAX + 1, 0), -EINVAL);
    assert_int_equal(blz__file_seek(fd, 0, SEEK_END), 1024);
    close_file(fd);
}

static void a_negative_offset_is_einval(void **state)
{
    blz_sysfd fd = file_to_use("abc");
    char byte;
    blz_iovec one[] = {{&byte, 1}, {&byte, 0}};

    (void)state;
    for (size_t count = 1; count <= 2; count++) {
        assert_int_equal(blz__file_read(fd, one, count, -2), -EINVAL);
        assert_int_equal(blz__file_read(fd, one, count, INT64_MIN), -EINVAL);
        assert_int_equal(blz__file_write(fd, one, count, INT64_MIN), -EINVAL);
    }
    assert_int_equal(blz__file_seek(fd, 0, SEEK_CUR), 0);
    assert_true(has_text(fd, "abc", 0));
    close_file(fd);
}

static void behind_the_end_there_is_nothing_to_read(void **state)
{
    blz_sysfd fd = file_to_use("abc");

    (void)state;
    assert_true(has_text(fd, "", 3) && has_text(fd, "", 1000));
    close_file(fd);
}

static void a_hole_reads_as_zeros(void **state)
{
    blz_sysfd fd = file_to_use("a");
    char buf[100];
    blz_iovec piece = {buf, sizeof buf};

    (void)state;
    assert_int_equal(write_text(fd, "z", 99), 1);
    memset(buf, 'x', sizeof buf);
    assert_int_equal(blz__file_read(fd, &piece, 1, 0), 100);
    for (int i = 1; i < 99; i++)
        assert_int_equal(buf[i], 0);
    assert_true(buf[0] == 'a' && buf[99] == 'z');
    close_file(fd);
}

static void a_file_opened_to_append_is_written_at_its_end(void **state)
{
    blz_sysfd fd, other;

    (void)state;
    enter();
    fd = opened(make_file("file", "one"), OPEN_READ | OPEN_WRITE | OPEN_APPEND);
    other = opened(in_place("file"), OPEN_WRITE);
    assert_int_equal(write_text(fd, "two", FILE_AT_POSITION), 3);
    assert_int_equal(write_text(other, "OTHER-", 6), 6);
    assert_int_equal(blz__file_seek(fd, 0, SEEK_SET), 0);
    assert_int_equal(write_text(fd, "end", FILE_AT_POSITION), 3);
    assert_true(has_text(fd, "onetwoOTHER-end", 0));
    close_file(other);
    close_file(fd);
}

static void the_position_belongs_to_the_open_file(void **state)
{
    blz_sysfd fd = file_to_use("abcdef");
    int64_t copy = blz__handle_duplicate(fd);
    blz_sysfd other = opened(in_place("file"), OPEN_READ);

    (void)state;
    assert_true(copy >= 0);
    assert_int_equal(blz__file_seek(fd, 3, SEEK_SET), 3);
    assert_true(has_text((blz_sysfd)copy, "def", FILE_AT_POSITION));
    assert_true(has_text(other, "abcdef", FILE_AT_POSITION));
    close_file((blz_sysfd)copy);
    close_file(other);
    close_file(fd);
}

static void a_seek_goes_from_the_beginning_the_position_or_the_end(void **state)
{
    blz_sysfd fd = file_to_use("abcdef");

    (void)state;
    assert_int_equal(blz__file_seek(fd, 2, SEEK_SET), 2);
    assert_int_equal(blz__file_seek(fd, 3, SEEK_CUR), 5);
    assert_int_equal(blz__file_seek(fd, -6, SEEK_END), 0);
    assert_int_equal(blz__file_seek(fd, 10, SEEK_END), 16);
    assert_int_equal(blz__file_seek(fd, -1, SEEK_SET), -EINVAL);
    assert_int_equal(blz__file_seek(fd, 0, 77), -EINVAL);
    assert_int_equal(blz__file_seek(fd, 0, SEEK_CUR), 16);
    close_file(fd);
}

static void reading_now_gives_what_reading_gives_or_nothing_happens(void **state)
{
    blz_sysfd fd = file_to_use("abcdef");
    char buf[6];
    blz_iovec piece = {buf, sizeof buf};
    int64_t n;

    (void)state;
    n = blz__file_read_now(fd, &piece, 1, FILE_AT_POSITION);
    if (n < 0)
        assert_int_equal(blz__file_seek(fd, 0, SEEK_CUR), 0);
    close_file(fd);
    skip_if_not_supported(n);
    assert_true(n == -EAGAIN || (n == 6 && memcmp(buf, "abcdef", 6) == 0));
}

static void writing_now_writes_or_nothing_happens(void **state)
{
    blz_sysfd fd = file_to_use("abc");
    blz_iovec piece = {(char[]){"XYZ"}, 3};
    int64_t n = blz__file_write_now(fd, &piece, 1, 0);

    (void)state;
    assert_true(has_text(fd, n == 3 ? "XYZ" : "abc", 0));
    close_file(fd);
    skip_if_not_supported(n);
    assert_true(n == 3 || n == -EAGAIN);
}

/* ---- length and safety ---- */

static void set_len_cuts_off_and_fills_up_with_zeros(void **state)
{
    blz_sysfd fd = file_to_use("abcdef");
    char buf[8];
    blz_iovec piece = {buf, sizeof buf};

    (void)state;
    assert_int_equal(blz__file_set_len(fd, 2), 0);
    assert_true(has_text(fd, "ab", 0));
    assert_int_equal(blz__file_set_len(fd, 5), 0);
    assert_int_equal(blz__file_read(fd, &piece, 1, 0), 5);
    assert_true(memcmp(buf, "ab\0\0\0", 5) == 0);
    assert_int_equal(blz__file_seek(fd, 0, SEEK_CUR), 0);
    close_file(fd);
}

static void set_len_is_einval_if_negative_or_not_open_to_write(void **state)
{
    blz_sysfd fd = file_to_use("abc"), reads = opened(in_place("file"), OPEN_READ);

    (void)state;
    assert_int_equal(blz__file_set_len(fd, -1), -EINVAL);
    assert_int_equal(blz__file_set_len(reads, 0), -EINVAL);
    assert_true(has_text(fd, "abc", 0));
    close_file(reads);
    close_file(fd);
}

static void allocate_makes_the_file_longer_unless_the_length_is_kept(void **state)
{
    blz_sysfd fd = file_to_use("abc");
    blz_metadata about;
    int keeps = blz__file_allocate(fd, 0, 10000, true), grows;

    (void)state;
    assert_int_equal(blz__file_metadata(fd, &about), 0);
    assert_true(keeps < 0 || (about.size == 3 && about.blocks * 512 >= 10000));
    grows = blz__file_allocate(fd, 0, 10000, false);
    assert_int_equal(blz__file_metadata(fd, &about), 0);
    assert_true(grows < 0 || about.size == 10000);
    assert_int_equal(blz__file_set_len(fd, 3), 0);
    assert_true(has_text(fd, "abc", 0));
    close_file(fd);
    skip_if_not_supported(keeps);
    skip_if_not_supported(grows);
    assert_true(keeps == 0 && grows == 0);
}

static void allocating_nothing_is_einval(void **state)
{
    blz_sysfd fd = file_to_use("abc");
    int nothing = blz__file_allocate(fd, 0, 0, false);
    int negative = blz__file_allocate(fd, -1, 10, false);

    (void)state;
    close_file(fd);
    skip_if_not_supported(nothing);
    assert_int_equal(nothing, -EINVAL);
    assert_int_equal(negative, -EINVAL);
}

static void files_and_directories_can_be_synced(void **state)
{
    blz_sysfd fd = file_to_use("abc"), dir = opened(place, OPEN_READ | OPEN_DIRECTORY);

    (void)state;
    assert_int_equal(blz__file_sync(fd, false), 0);
    assert_int_equal(blz__file_sync(fd, true), 0);
    assert_int_equal(blz__file_sync(dir, false), 0);
    close_file(dir);
    close_file(fd);
}

/* ---- what is known of a file ---- */

static void metadata_follows_what_is_written(void **state)
{
    blz_sysfd fd = file_to_use("abc");
    blz_metadata before, after;

    (void)state;
    assert_int_equal(blz__file_metadata(fd, &before), 0);
    assert_int_equal(before.type, BLZ_FILE_REGULAR);
    assert_true(before.size == 3 && before.links == 1);
    assert_int_equal(write_text(fd, "defgh", 3), 5);
    assert_int_equal(blz__file_metadata(fd, &after), 0);
    assert_int_equal(after.size, 8);
    assert_true(after.inode == before.inode && after.device == before.device);
    assert_true(after.modified_ns >= before.modified_ns);
    close_file(fd);
}

static void times_of_a_new_file_are_now(void **state)
{
    int64_t before = blz__clock_wall_ns(), slack = INT64_C(2000000000);
    blz_sysfd fd = file_to_use("abc");
    blz_metadata about;

    (void)state;
    assert_int_equal(blz__file_metadata(fd, &about), 0);
    assert_true(about.modified_ns >= before - slack); /* file systems round down */
    assert_true(about.modified_ns <= blz__clock_wall_ns() + slack);
    assert_true(about.created_ns == INT64_MIN || about.created_ns >= before - slack);
    close_file(fd);
}

static void times_are_set_kept_or_now(void **state)
{
    const int64_t second = INT64_C(1000000000), past = 1000 * second;
    blz_sysfd fd = file_to_use("abc");
    blz_metadata about;

    (void)state;
    assert_int_equal(blz__file_set_times(fd, past, 2 * past), 0);
    assert_int_equal(blz__file_metadata(fd, &about), 0);
    assert_true(about.accessed_ns == past && about.modified_ns == 2 * past);
    assert_int_equal(blz__file_set_times(fd, BLZ_TIME_KEEP, BLZ_TIME_NOW), 0);
    assert_int_equal(blz__file_metadata(fd, &about), 0);
    assert_int_equal(about.accessed_ns, past);
    assert_true(about.modified_ns >= blz__clock_wall_ns() - 3600 * second);
    assert_int_equal(blz__file_set_times(fd, -past, BLZ_TIME_KEEP), 0);
    assert_int_equal(blz__file_metadata(fd, &about), 0);
    assert_int_equal(about.accessed_ns, -past);
    close_file(fd);
}

static void metadata_now_is_that_of_the_other_form_or_eagain(void **state)
{
    blz_sysfd fd = file_to_use("abc");
    blz_metadata about;
    int rc = blz__file_metadata_now(fd, &about);

    (void)state;
    assert_true(rc == -EAGAIN || (rc == 0 && about.size == 3 && about.type == BLZ_FILE_REGULAR));
    close_file(fd);
}

static void permissions_are_what_was_set_last(void **state)
{
    blz_sysfd fd = file_to_use("abc");
    blz_metadata about;
    int rc = blz__file_set_mode(fd, 0741);

    (void)state;
    assert_int_equal(blz__file_metadata(fd, &about), 0);
    close_file(fd);
    skip_if_not_supported(rc);
    assert_true(rc == 0 && about.mode == 0741);
}

/* ---- locks ---- */

struct lockers {
    blz_sysfd a, b;
};

static struct lockers two_open_files(void)
{
    struct lockers both = {.a = file_to_use("abc")};

    both.b = opened(in_place("file"), OPEN_READ | OPEN_WRITE);
    return both;
}

static void close_both(struct lockers both)
{
    close_file(both.a);
    close_file(both.b);
}

static void one_holds_a_lock_exclusive(void **state)
{
    struct lockers both = two_open_files();

    (void)state;
    assert_int_equal(blz__file_lock(both.a, FILE_LOCK_EXCLUSIVE), 0);
    assert_int_equal(blz__file_lock(both.b, FILE_LOCK_EXCLUSIVE), -EAGAIN);
    assert_int_equal(blz__file_lock(both.b, FILE_LOCK_SHARED), -EAGAIN);
    assert_int_equal(blz__file_lock(both.a, FILE_UNLOCK), 0);
    assert_int_equal(blz__file_lock(both.b, FILE_LOCK_EXCLUSIVE), 0);
    close_both(both);
}

static void any_number_hold_a_lock_shared(void **state)
{
    struct lockers both = two_open_files();

    (void)state;
    assert_int_equal(blz__file_lock(both.a, FILE_LOCK_SHARED), 0);
    assert_int_equal(blz__file_lock(both.b, FILE_LOCK_SHARED), 0);
    assert_int_equal(blz__file_lock(both.b, FILE_LOCK_EXCLUSIVE), -EAGAIN);
    close_both(both);
}

static void a_lock_that_is_held_is_changed(void **state)
{
    struct lockers both = two_open_files();

    (void)state;
    assert_int_equal(blz__file_lock(both.a, FILE_LOCK_EXCLUSIVE), 0);
    assert_int_equal(blz__file_lock(both.a, FILE_LOCK_SHARED), 0);
    assert_int_equal(blz__file_lock(both.b, FILE_LOCK_SHARED), 0);
    close_both(both);
}

static void a_lock_ends_with_the_last_descriptor_of_the_open_file(void **state)
{
    struct lockers both = two_open_files();
    int64_t copy = blz__handle_duplicate(both.a);

    (void)state;
    assert_true(copy >= 0);
    assert_int_equal(blz__file_lock(both.a, FILE_LOCK_EXCLUSIVE), 0);
    assert_int_equal(blz__file_lock((blz_sysfd)copy, FILE_LOCK_EXCLUSIVE), 0);
    close_file(both.a);
    assert_int_equal(blz__file_lock(both.b, FILE_LOCK_SHARED), -EAGAIN);
    close_file((blz_sysfd)copy);
    assert_int_equal(blz__file_lock(both.b, FILE_LOCK_SHARED), 0);
    close_file(both.b);
}

/* ---- closing ---- */

static void a_closed_file_is_ebadf(void **state)
{
    blz_sysfd fd = file_to_use("abc");
    blz_metadata about;

    (void)state;
    close_file(fd);
    assert_int_equal(blz__file_metadata(fd, &about), -EBADF);
    assert_int_equal(blz__file_seek(fd, 0, SEEK_CUR), -EBADF);
    assert_int_equal(blz__file_lock(fd, FILE_LOCK_SHARED), -EBADF);
    assert_int_equal(write_text(fd, "x", 0), -EBADF);
    assert_int_equal(blz__file_close(fd), -EBADF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_that_is_not_there_is_enoent),
        TEST(create_makes_a_file_and_keeps_one_that_is_there),
        TEST(create_new_is_eexist_if_the_path_leads_to_something),
        TEST(truncate_empties_a_file_that_is_there),
        TEST(a_file_opened_to_read_cannot_be_written_and_the_other_way_round),
        TEST(directory_is_enotdir_for_anything_else),
        TEST(no_follow_is_eloop_for_a_symbolic_link),
        TEST(a_fifo_is_einval_and_its_other_side_is_not_waited_for),
        TEST(flags_that_do_not_exist_are_einval),
        TEST(an_open_file_is_not_inherited_and_its_reads_wait),
        TEST(a_relative_path_begins_at_the_directory),
        TEST(a_new_file_has_the_mode_that_the_umask_leaves),
        TEST(opening_now_opens_what_was_opened_before_or_says_eagain),
        TEST(opening_now_neither_makes_files_nor_says_that_there_is_none),
        TEST(beneath_opens_what_is_in_the_directory),
        TEST(beneath_refuses_the_parent),
        TEST(beneath_refuses_a_path_from_the_root),
        TEST(beneath_refuses_a_link_that_leads_out),
        TEST(beneath_follows_a_link_that_stays_inside),
        TEST(an_unnamed_file_is_in_no_directory),
        TEST(a_path_descriptor_tells_metadata_and_reads_nothing),
        TEST(a_file_with_synchronous_writes_is_written),
        TEST(reading_at_the_position_moves_it),
        TEST(reading_at_an_offset_leaves_the_position_alone),
        TEST(pieces_are_filled_one_after_the_other),
        TEST(pieces_are_written_one_after_the_other),
        TEST(at_least_1024_pieces_are_taken_at_a_time),
        TEST(a_negative_offset_is_einval),
        TEST(behind_the_end_there_is_nothing_to_read),
        TEST(a_hole_reads_as_zeros),
        TEST(a_file_opened_to_append_is_written_at_its_end),
        TEST(the_position_belongs_to_the_open_file),
        TEST(a_seek_goes_from_the_beginning_the_position_or_the_end),
        TEST(reading_now_gives_what_reading_gives_or_nothing_happens),
        TEST(writing_now_writes_or_nothing_happens),
        TEST(set_len_cuts_off_and_fills_up_with_zeros),
        TEST(set_len_is_einval_if_negative_or_not_open_to_write),
        TEST(allocate_makes_the_file_longer_unless_the_length_is_kept),
        TEST(allocating_nothing_is_einval),
        TEST(files_and_directories_can_be_synced),
        TEST(metadata_follows_what_is_written),
        TEST(times_of_a_new_file_are_now),
        TEST(times_are_set_kept_or_now),
        TEST(metadata_now_is_that_of_the_other_form_or_eagain),
        TEST(permissions_are_what_was_set_last),
        TEST(one_holds_a_lock_exclusive),
        TEST(any_number_hold_a_lock_shared),
        TEST(a_lock_that_is_held_is_changed),
        TEST(a_lock_ends_with_the_last_descriptor_of_the_open_file),
        TEST(a_closed_file_is_ebadf),
    };

    return RUN_IN_PLACE(tests);
}
