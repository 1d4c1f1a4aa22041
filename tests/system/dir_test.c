/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: system/dir.h. */
#include "place.h"

#include <stdlib.h>

enum { MANY = 10000 };

/* How often each of the files 0, 1, ... came, and how many other names. */
struct census {
    unsigned char seen[MANY];
    int nr_numbers, nr_others;
};

/* A step for each entry, or NULL. */
typedef void visit_entry(blz_sysfd dir, const blz_dir_entry *entry);

static void count_entry(struct census *census, const char *name)
{
    char *end;
    long number = strtol(name, &end, 10);

    if (*end != '\0' || end == name || number < 0 || number >= MANY) {
        census->nr_others++;
        return;
    }
    census->seen[number]++;
    census->nr_numbers++;
}

static void read_all(blz_sysfd dir, struct census *census, visit_entry *visit)
{
    _Alignas(DIR_BATCH_ALIGN) char batch[DIR_BATCH];
    blz_dir_entry entry;
    int64_t len;

    while ((len = blz__dir_fetch(dir, batch, sizeof batch)) > 0) {
        for (size_t used = 0; blz__dir_take(batch, (size_t)len, &used, &entry);) {
            count_entry(census, entry.name);
            if (visit)
                visit(dir, &entry);
        }
    }
    assert_int_equal(len, 0);
}

static blz_sysfd dir_of_numbers(int count)
{
    blz_sysfd dir;

    enter();
    dir = opened(place, OPEN_READ | OPEN_DIRECTORY);
    for (int i = 0; i < count; i++) {
        char name[16];
        int64_t fd;
        snprintf(name, sizeof name, "%d", i);
        fd = blz__file_open(dir, name, OPEN_WRITE | OPEN_CREATE_NEW, 0600);
        assert_true(fd >= 0);
        close_file((blz_sysfd)fd);
    }
    return dir;
}

static void expect_each_once(const struct census *census, int count)
{
    assert_true(census->nr_numbers == count && census->nr_others == 0);
    for (int i = 0; i < count; i++)
        assert_int_equal(census->seen[i], 1);
}

static void an_empty_directory_has_no_entries(void **state)
{
    blz_sysfd dir = dir_of_numbers(0);
    struct census census = {.nr_numbers = 0};

    (void)state;
    read_all(dir, &census, NULL);
    assert_true(census.nr_numbers == 0 && census.nr_others == 0);
    close_file(dir);
}

static void each_of_many_entries_comes_once(void **state)
{
    blz_sysfd dir = dir_of_numbers(MANY);
    static struct census census;

    (void)state;
    read_all(dir, &census, NULL);
    expect_each_once(&census, MANY);
    close_file(dir);
}

static void after_the_end_comes_the_end(void **state)
{
    _Alignas(DIR_BATCH_ALIGN) char batch[DIR_BATCH];
    blz_sysfd dir = dir_of_numbers(3);
    struct census census = {.nr_numbers = 0};

    (void)state;
    read_all(dir, &census, NULL);
    assert_int_equal(blz__dir_fetch(dir, batch, sizeof batch), 0);
    close_file(dir);
}

static void a_rewound_directory_begins_again(void **state)
{
    blz_sysfd dir = dir_of_numbers(5);
    struct census first = {.nr_numbers = 0}, second = {.nr_numbers = 0};

    (void)state;
    read_all(dir, &first, NULL);
    assert_int_equal(blz__dir_rewind(dir), 0);
    read_all(dir, &second, NULL);
    expect_each_once(&second, 5);
    close_file(dir);
}

static void a_rewound_directory_shows_what_was_made_meanwhile(void **state)
{
    blz_sysfd dir = dir_of_numbers(1);
    struct census first = {.nr_numbers = 0}, second = {.nr_numbers = 0};

    (void)state;
    read_all(dir, &first, NULL);
    make_file("1", "");
    assert_int_equal(blz__dir_rewind(dir), 0);
    read_all(dir, &second, NULL);
    expect_each_once(&second, 2);
    close_file(dir);
}

static void remove_entry(blz_sysfd dir, const blz_dir_entry *entry)
{
    assert_int_equal(blz__path_remove(dir, entry->name), 0);
}

/* Some file systems pass over entries then, which the next round finds. */
static void removing_what_was_read_makes_nothing_come_twice(void **state)
{
    blz_sysfd dir = dir_of_numbers(MANY);
    static struct census census;
    int before;

    (void)state;
    do {
        before = census.nr_numbers;
        read_all(dir, &census, remove_entry);
        assert_int_equal(blz__dir_rewind(dir), 0);
    } while (census.nr_numbers > before);
    expect_each_once(&census, MANY);
    close_file(dir);
}

static int nr_typed;

static void check_type(blz_sysfd dir, const blz_dir_entry *entry)
{
    blz_metadata about;

    assert_int_equal(blz__path_metadata(dir, entry->name, false, &about), 0);
    assert_true(entry->type == BLZ_FILE_UNKNOWN || entry->type == about.type);
    assert_true(entry->inode == 0 || entry->inode == about.inode);
    nr_typed++;
}

static void an_entry_has_the_type_and_number_of_its_file(void **state)
{
    struct census census = {.nr_numbers = 0};
    blz_sysfd dir;

    (void)state;
    enter();
    make_file("file", "abc");
    assert_int_equal(blz__path_create_dir(in_place("dir"), 0700), 0);
    assert_int_equal(blz__path_symlink("file", in_place("link")), 0);
    dir = opened(place, OPEN_READ | OPEN_DIRECTORY);
    read_all(dir, &census, check_type);
    assert_int_equal(nr_typed, 3);
    close_file(dir);
}

static void the_longest_name_comes_whole(void **state)
{
    char name[256];
    struct census census = {.nr_numbers = 0};
    blz_sysfd dir = dir_of_numbers(0);
    int64_t fd;

    (void)state;
    memset(name, '0', sizeof name - 1); /* is the number 7 */
    name[254] = '7';
    name[255] = '\0';
    fd = blz__file_open(dir, name, OPEN_WRITE | OPEN_CREATE_NEW, 0600);
    assert_true(fd >= 0);
    close_file((blz_sysfd)fd);
    read_all(dir, &census, NULL);
    assert_true(census.nr_numbers == 1 && census.seen[7] == 1);
    close_file(dir);
}

static void names_stay_valid_as_long_as_the_batch(void **state)
{
    _Alignas(DIR_BATCH_ALIGN) char batch[DIR_BATCH];
    blz_sysfd dir = dir_of_numbers(3);
    blz_dir_entry entries[3], more;
    size_t used = 0;
    struct census census = {.nr_numbers = 0};
    int64_t len = blz__dir_fetch(dir, batch, sizeof batch);

    (void)state;
    assert_true(len > 0);
    for (int i = 0; i < 3; i++)
        assert_true(blz__dir_take(batch, (size_t)len, &used, &entries[i]));
    assert_false(blz__dir_take(batch, (size_t)len, &used, &more));
    for (int i = 0; i < 3; i++)
        count_entry(&census, entries[i].name);
    expect_each_once(&census, 3);
    close_file(dir);
}

static void reading_a_file_as_a_directory_is_enotdir(void **state)
{
    _Alignas(DIR_BATCH_ALIGN) char batch[DIR_BATCH];
    blz_sysfd fd;

    (void)state;
    enter();
    fd = opened(make_file("file", "abc"), OPEN_READ);
    assert_int_equal(blz__dir_fetch(fd, batch, sizeof batch), -ENOTDIR);
    close_file(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_empty_directory_has_no_entries),
        TEST(each_of_many_entries_comes_once),
        TEST(after_the_end_comes_the_end),
        TEST(a_rewound_directory_begins_again),
        TEST(a_rewound_directory_shows_what_was_made_meanwhile),
        TEST(removing_what_was_read_makes_nothing_come_twice),
        TEST(an_entry_has_the_type_and_number_of_its_file),
        TEST(the_longest_name_comes_whole),
        TEST(names_stay_valid_as_long_as_the_batch),
        TEST(reading_a_file_as_a_directory_is_enotdir),
    };

    return RUN_IN_PLACE(tests);
}
