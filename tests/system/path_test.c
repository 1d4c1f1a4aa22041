/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: system/path.h. */
#include "place.h"

#include <sys/socket.h> /* one of each kind of file */
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { HERE = FILE_CURRENT_DIR };

/* ---- removing ---- */

static void a_removed_file_is_gone_and_stays_readable_where_it_is_open(void **state)
{
    blz_sysfd fd;

    (void)state;
    enter();
    fd = opened(make_file("file", "abc"), OPEN_READ);
    assert_int_equal(blz__path_remove(HERE, in_place("file")), 0);
    assert_int_equal(blz__path_remove(HERE, in_place("file")), -ENOENT);
    assert_true(has_text(fd, "abc", 0));
    close_file(fd);
}

static void a_link_is_removed_and_not_followed(void **state)
{
    (void)state;
    enter();
    make_file("file", "abc");
    assert_int_equal(blz__path_symlink("file", in_place("link")), 0);
    assert_int_equal(blz__path_remove(HERE, in_place("link")), 0);
    assert_int_equal(blz__path_exists(HERE, in_place("file")), 1);
}

static void removing_a_directory_as_a_file_is_eisdir(void **state)
{
    (void)state;
    enter();
    assert_int_equal(blz__path_create_dir(in_place("dir"), 0700), 0);
    assert_int_equal(blz__path_remove(HERE, in_place("dir")), -EISDIR);
    assert_int_equal(blz__path_exists(HERE, in_place("dir")), 1);
}

static void a_directory_is_removed_once_it_is_empty(void **state)
{
    (void)state;
    enter();
    assert_int_equal(blz__path_create_dir(in_place("dir"), 0700), 0);
    make_file("dir/file", "abc");
    assert_int_equal(blz__path_remove_dir(HERE, in_place("dir")), -ENOTEMPTY);
    assert_int_equal(blz__path_remove_dir(HERE, in_place("dir/file")), -ENOTDIR);
    assert_int_equal(blz__path_remove(HERE, in_place("dir/file")), 0);
    assert_int_equal(blz__path_remove_dir(HERE, in_place("dir")), 0);
    assert_int_equal(blz__path_exists(HERE, in_place("dir")), 0);
}

static void names_begin_at_the_directory(void **state)
{
    blz_metadata about;
    blz_sysfd dir;

    (void)state;
    enter();
    make_file("a", "abc");
    dir = opened(place, OPEN_READ | OPEN_DIRECTORY);
    assert_int_equal(blz__path_exists(dir, "a"), 1);
    assert_int_equal(blz__path_rename(dir, "a", dir, "b"), 0);
    assert_int_equal(blz__path_metadata(dir, "b", true, &about), 0);
    assert_int_equal(about.size, 3);
    assert_int_equal(blz__path_remove(dir, "b"), 0);
    assert_int_equal(blz__path_exists(dir, "b"), 0);
    close_file(dir);
}

/* ---- names ---- */

static void a_rename_replaces_a_file_which_stays_readable_where_it_is_open(void **state)
{
    blz_sysfd old;

    (void)state;
    enter();
    make_file("new", "new");
    old = opened(make_file("file", "old"), OPEN_READ);
    assert_int_equal(blz__path_rename(HERE, in_place("new"), HERE, in_place("file")), 0);
    assert_true(has_text(old, "old", 0));
    assert_true(path_has_text(in_place("file"), "new"));
    assert_int_equal(blz__path_exists(HERE, in_place("new")), 0);
    close_file(old);
}

static void a_rename_of_nothing_is_enoent(void **state)
{
    (void)state;
    enter();
    make_file("file", "kept");
    assert_int_equal(blz__path_rename(HERE, in_place("none"), HERE, in_place("file")), -ENOENT);
    assert_true(path_has_text(in_place("file"), "kept"));
}

static void another_name_is_the_same_file(void **state)
{
    blz_metadata a, b;
    int rc;

    (void)state;
    enter();
    make_file("a", "abc");
    rc = blz__path_link(in_place("a"), in_place("b"));
    skip_if_not_supported(rc);
    assert_int_equal(rc, 0);
    a = metadata_of(in_place("a"));
    b = metadata_of(in_place("b"));
    assert_true(a.inode == b.inode && a.device == b.device && a.links == 2);
    assert_int_equal(blz__path_link(in_place("a"), in_place("b")), -EEXIST);
    assert_int_equal(blz__path_remove(HERE, in_place("a")), 0);
    assert_true(path_has_text(in_place("b"), "abc"));
}

static void a_symbolic_link_has_its_text(void **state)
{
    char text[PATH_SIZE];

    (void)state;
    enter();
    assert_int_equal(blz__path_symlink("some/../where", in_place("link")), 0);
    assert_int_equal(blz__path_read_link(in_place("link"), text, sizeof text), 13);
    assert_true(memcmp(text, "some/../where", 13) == 0);
    assert_int_equal(blz__path_symlink("x", in_place("link")), -EEXIST);
}

static void a_text_that_does_not_fit_is_enametoolong(void **state)
{
    char text[13];

    (void)state;
    enter();
    assert_int_equal(blz__path_symlink("some/../where", in_place("link")), 0);
    assert_int_equal(blz__path_read_link(in_place("link"), text, 12), -ENAMETOOLONG);
    assert_int_equal(blz__path_read_link(in_place("link"), text, 13), 13);
}

static void reading_a_link_that_is_none_is_einval(void **state)
{
    char text[16];

    (void)state;
    enter();
    assert_int_equal(blz__path_read_link(make_file("file", ""), text, sizeof text), -EINVAL);
}

static void a_canonical_path_has_neither_links_nor_dots(void **state)
{
    char expected[PATH_SIZE], text[PATH_SIZE];
    int64_t len;

    (void)state;
    enter();
    assert_int_equal(blz__path_create_dir(in_place("dir"), 0700), 0);
    make_file("dir/file", "abc");
    assert_int_equal(blz__path_symlink("dir", in_place("link")), 0);
    len = blz__path_canonical(in_place("dir/file"), expected);
    assert_true(len > 0 && expected[len] == '\0' && blz__path_is_separator(expected[0]));
    assert_int_equal(blz__path_canonical(in_place("link/../link/./file"), text), len);
    assert_string_equal(text, expected);
    assert_int_equal(blz__path_canonical(in_place("dir/none"), text), -ENOENT);
}

static void a_directory_has_the_mode_that_the_umask_leaves(void **state)
{
    mode_t mask = umask(027);
    int rc;

    (void)state;
    enter();
    rc = blz__path_create_dir(in_place("dir"), 0777);
    umask(mask);
    assert_int_equal(rc, 0);
    assert_int_equal(metadata_of(in_place("dir")).mode & 0777, 0750);
    assert_int_equal(blz__path_create_dir(in_place("dir"), 0777), -EEXIST);
}

/* ---- what is known ---- */

static void each_kind_of_file_has_its_type(void **state)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    (void)state;
    enter();
    assert_int_equal(metadata_of(make_file("file", "abc")).type, BLZ_FILE_REGULAR);
    assert_int_equal(metadata_of(place).type, BLZ_FILE_DIRECTORY);
    assert_int_equal(blz__path_symlink("file", in_place("link")), 0);
    assert_int_equal(metadata_of(in_place("link")).type, BLZ_FILE_SYMLINK);
    assert_int_equal(mkfifo(in_place("fifo"), 0600), 0);
    assert_int_equal(metadata_of(in_place("fifo")).type, BLZ_FILE_FIFO);
    assert_int_equal(metadata_of("/dev/null").type, BLZ_FILE_CHAR_DEVICE);
    assert_true(fd >= 0 && strlen(in_place("socket")) < sizeof addr.sun_path);
    strcpy(addr.sun_path, in_place("socket"));
    assert_int_equal(bind(fd, (const struct sockaddr *)(const void *)&addr, sizeof addr), 0);
    assert_int_equal(metadata_of(in_place("socket")).type, BLZ_FILE_SOCKET);
    close(fd);
}

static void metadata_follows_a_link_or_describes_it(void **state)
{
    blz_metadata about;

    (void)state;
    enter();
    make_file("file", "abc");
    assert_int_equal(blz__path_symlink("file", in_place("link")), 0);
    assert_int_equal(blz__path_metadata(HERE, in_place("link"), true, &about), 0);
    assert_true(about.type == BLZ_FILE_REGULAR && about.size == 3);
    assert_int_equal(blz__path_metadata(HERE, in_place("link"), false, &about), 0);
    assert_true(about.type == BLZ_FILE_SYMLINK && about.size == 4);
}

static void metadata_by_path_and_by_descriptor_are_the_same(void **state)
{
    blz_metadata by_path, by_fd;
    blz_sysfd fd;

    (void)state;
    enter();
    fd = opened(make_file("file", "abc"), OPEN_READ);
    by_path = metadata_of(in_place("file"));
    assert_int_equal(blz__file_metadata(fd, &by_fd), 0);
    assert_true(memcmp(&by_path, &by_fd, sizeof by_fd) == 0);
    close_file(fd);
}

static void exists_tells_nothing_from_something(void **state)
{
    (void)state;
    enter();
    make_file("file", "abc");
    assert_int_equal(blz__path_symlink("none", in_place("link")), 0);
    assert_int_equal(blz__path_exists(HERE, in_place("file")), 1);
    assert_int_equal(blz__path_exists(HERE, in_place("none")), 0);
    assert_int_equal(blz__path_exists(HERE, in_place("link")), 0);
    assert_int_equal(blz__path_exists(HERE, in_place("file/none")), 0);
}

static void exists_is_an_error_if_it_cannot_be_known(void **state)
{
    (void)state;
    enter();
    assert_int_equal(blz__path_symlink("loop", in_place("loop")), 0);
    assert_int_equal(blz__path_exists(HERE, in_place("loop")), -ELOOP);
}

static void permissions_of_a_path_are_those_of_what_a_link_leads_to(void **state)
{
    int rc;

    (void)state;
    enter();
    make_file("file", "abc");
    assert_int_equal(blz__path_symlink("file", in_place("link")), 0);
    rc = blz__path_set_mode(in_place("link"), 0604);
    skip_if_not_supported(rc);
    assert_int_equal(rc, 0);
    assert_int_equal(metadata_of(in_place("file")).mode, 0604);
}

static void times_of_a_path_are_those_of_what_a_link_leads_to(void **state)
{
    const int64_t past = INT64_C(1000000000) * 12345;
    blz_metadata about;

    (void)state;
    enter();
    make_file("file", "abc");
    assert_int_equal(blz__path_symlink("file", in_place("link")), 0);
    assert_int_equal(blz__path_set_times(in_place("link"), past, past + BLZ_SEC), 0);
    about = metadata_of(in_place("file"));
    assert_true(about.accessed_ns == past && about.modified_ns == past + BLZ_SEC);
    assert_int_equal(blz__path_set_times(in_place("none"), past, past), -ENOENT);
}

/* ---- temporary files ---- */

static void the_directory_for_temporary_files_is_one(void **state)
{
    char text[PATH_SIZE];
    blz_metadata about;

    (void)state;
    assert_int_equal(blz__path_temp_dir(text), 0);
    assert_int_equal(blz__path_metadata(HERE, text, true, &about), 0);
    assert_int_equal(about.type, BLZ_FILE_DIRECTORY);
}

static void a_temporary_file_is_read_and_written_and_leaves_no_name(void **state)
{
    int64_t fd;

    (void)state;
    enter();
    fd = blz__path_temp_file(place);
    assert_true(fd >= 0);
    assert_int_equal(write_text((blz_sysfd)fd, "abc", 0), 3);
    assert_true(has_text((blz_sysfd)fd, "abc", 0));
    close_file((blz_sysfd)fd);
    assert_int_equal(blz__path_remove_dir(HERE, place), 0);
    assert_int_equal(blz__path_temp_file(place), -ENOENT);
}

static void a_temporary_file_is_for_this_user_alone(void **state)
{
    mode_t mask = umask(0);
    blz_metadata about;
    int64_t fd;

    (void)state;
    enter();
    fd = blz__path_temp_file(place);
    umask(mask);
    assert_true(fd >= 0);
    assert_int_equal(blz__file_metadata((blz_sysfd)fd, &about), 0);
    assert_int_equal(about.mode & 077, 0);
    close_file((blz_sysfd)fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_removed_file_is_gone_and_stays_readable_where_it_is_open),
        TEST(a_link_is_removed_and_not_followed),
        TEST(removing_a_directory_as_a_file_is_eisdir),
        TEST(a_directory_is_removed_once_it_is_empty),
        TEST(names_begin_at_the_directory),
        TEST(a_rename_replaces_a_file_which_stays_readable_where_it_is_open),
        TEST(a_rename_of_nothing_is_enoent),
        TEST(another_name_is_the_same_file),
        TEST(a_symbolic_link_has_its_text),
        TEST(a_text_that_does_not_fit_is_enametoolong),
        TEST(reading_a_link_that_is_none_is_einval),
        TEST(a_canonical_path_has_neither_links_nor_dots),
        TEST(a_directory_has_the_mode_that_the_umask_leaves),
        TEST(each_kind_of_file_has_its_type),
        TEST(metadata_follows_a_link_or_describes_it),
        TEST(metadata_by_path_and_by_descriptor_are_the_same),
        TEST(exists_tells_nothing_from_something),
        TEST(exists_is_an_error_if_it_cannot_be_known),
        TEST(permissions_of_a_path_are_those_of_what_a_link_leads_to),
        TEST(times_of_a_path_are_those_of_what_a_link_leads_to),
        TEST(the_directory_for_temporary_files_is_one),
        TEST(a_temporary_file_is_read_and_written_and_leaves_no_name),
        TEST(a_temporary_file_is_for_this_user_alone),
    };

    return RUN_IN_PLACE(tests);
}
