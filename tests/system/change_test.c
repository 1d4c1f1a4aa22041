/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: system/change.h. Each event is tested that the system says it can tell. */
#include "place.h"

#include "system/change.h"
#include "system/handle.h"
#include "system/thread.h"

enum { HERE = FILE_CURRENT_DIR };

struct watcher {
    blz_sysfd fd;
    size_t used, len;
    _Alignas(CHANGE_BATCH_ALIGN) char batch[CHANGE_BATCH];
};

static struct watcher watcher_new(void)
{
    struct watcher w = {.fd = BLZ_NO_SYSFD};
    int64_t fd;

    enter();
    fd = blz__change_open();
    assert_true(fd >= 0);
    w.fd = (blz_sysfd)fd;
    return w;
}

static int watch_path(const struct watcher *w, const char *path, uint32_t events)
{
    int64_t id = blz__change_add(w->fd, path, events);

    assert_true(id >= 0);
    return (int)id;
}

/* The next change. Changes may come after a while, so it asks again. */
static blz_fs_change next_change(struct watcher *w)
{
    blz_fs_change change;

    while (!blz__change_take(w->batch, w->len, &w->used, &change)) {
        int64_t n = blz__change_fetch(w->fd, w->batch, sizeof w->batch);
        assert_true(n > 0 || n == -EAGAIN);
        w->used = 0;
        w->len = n > 0 ? (size_t)n : 0;
        if (n < 0)
            blz__thread_yield();
    }
    return change;
}

/* Takes changes until one has these events. */
static blz_fs_change expect_change(struct watcher *w, uint32_t events)
{
    blz_fs_change change;

    do
        change = next_change(w);
    while (!(change.events & events));
    return change;
}

/* Leaves the case, by its name, if the system cannot tell an event. */
#define skip_unless_told(event)                                                \
    do {                                                                       \
        if (!(blz__change_events() & (event))) {                               \
            print_message("skipped: %s: not told by this system\n", __func__); \
            skip();                                                            \
        }                                                                      \
    } while (0)

static void what_can_be_told_is_of_the_public_events(void **state)
{
    (void)state;
    assert_int_equal(blz__change_events() & ~(uint32_t)BLZ_FS_ALL, 0);
    assert_int_not_equal(blz__change_events(), 0);
}

static void a_watch_is_not_inherited_and_has_no_changes_at_first(void **state)
{
    struct watcher w = watcher_new();

    (void)state;
    assert_int_equal(blz__handle_is_inherited(w.fd), 0);
    assert_int_equal(blz__change_fetch(w.fd, w.batch, sizeof w.batch), -EAGAIN);
    close_file(w.fd);
}

static void a_new_file_in_a_directory_is_told_by_its_name(void **state)
{
    struct watcher w;
    blz_fs_change change;
    int id;

    (void)state;
    skip_unless_told(BLZ_FS_CREATED);
    w = watcher_new();
    id = watch_path(&w, place, BLZ_FS_CREATED);
    make_file("file", "");
    change = expect_change(&w, BLZ_FS_CREATED);
    assert_int_equal(change.id, id);
    assert_true(strcmp(change.name, "file") == 0 || change.name[0] == '\0');
    assert_false(change.events & BLZ_FS_OF_DIRECTORY);
    close_file(w.fd);
}

static void a_new_directory_is_told_as_one(void **state)
{
    struct watcher w;

    (void)state;
    skip_unless_told(BLZ_FS_CREATED);
    w = watcher_new();
    watch_path(&w, place, BLZ_FS_CREATED);
    assert_int_equal(blz__path_create_dir(in_place("dir"), 0700), 0);
    assert_true(expect_change(&w, BLZ_FS_CREATED).events & BLZ_FS_OF_DIRECTORY);
    close_file(w.fd);
}

static void a_write_is_told(void **state)
{
    struct watcher w;
    blz_sysfd fd;

    (void)state;
    skip_unless_told(BLZ_FS_MODIFIED);
    w = watcher_new();
    make_file("file", "");
    watch_path(&w, place, BLZ_FS_MODIFIED);
    fd = opened(in_place("file"), OPEN_WRITE);
    assert_int_equal(write_text(fd, "x", 0), 1);
    assert_string_equal(expect_change(&w, BLZ_FS_MODIFIED).name, "file");
    close_file(fd);
    close_file(w.fd);
}

static void the_close_of_a_writer_is_told_and_that_of_a_reader_is_not(void **state)
{
    struct watcher w;

    (void)state;
    skip_unless_told(BLZ_FS_WRITTEN);
    w = watcher_new();
    make_file("read", "");
    make_file("written", "");
    watch_path(&w, place, BLZ_FS_WRITTEN);
    close_file(opened(in_place("read"), OPEN_READ));
    close_file(opened(in_place("written"), OPEN_WRITE));
    assert_string_equal(next_change(&w).name, "written");
    close_file(w.fd);
}

static void new_permissions_are_told(void **state)
{
    struct watcher w;

    (void)state;
    skip_unless_told(BLZ_FS_ATTRIBUTES);
    w = watcher_new();
    make_file("file", "");
    watch_path(&w, place, BLZ_FS_ATTRIBUTES);
    assert_int_equal(blz__path_set_mode(in_place("file"), 0600), 0);
    assert_string_equal(expect_change(&w, BLZ_FS_ATTRIBUTES).name, "file");
    close_file(w.fd);
}

static void a_removal_is_told(void **state)
{
    struct watcher w;

    (void)state;
    skip_unless_told(BLZ_FS_REMOVED);
    w = watcher_new();
    make_file("file", "");
    watch_path(&w, place, BLZ_FS_REMOVED);
    assert_int_equal(blz__path_remove(HERE, in_place("file")), 0);
    assert_string_equal(expect_change(&w, BLZ_FS_REMOVED).name, "file");
    close_file(w.fd);
}

static void both_halves_of_a_move_have_one_cookie(void **state)
{
    struct watcher w;
    blz_fs_change change;
    uint32_t cookie;

    (void)state;
    skip_unless_told(BLZ_FS_MOVED_FROM);
    skip_unless_told(BLZ_FS_MOVED_TO);
    w = watcher_new();
    make_file("a", "");
    watch_path(&w, place, BLZ_FS_MOVED_FROM | BLZ_FS_MOVED_TO);
    assert_int_equal(blz__path_rename(HERE, in_place("a"), HERE, in_place("b")), 0);
    change = expect_change(&w, BLZ_FS_MOVED_FROM);
    assert_string_equal(change.name, "a");
    cookie = change.cookie;
    change = expect_change(&w, BLZ_FS_MOVED_TO);
    assert_string_equal(change.name, "b");
    assert_true(cookie != 0 && change.cookie == cookie);
    close_file(w.fd);
}

static void an_event_that_was_not_asked_for_is_not_told(void **state)
{
    struct watcher w;

    (void)state;
    skip_unless_told(BLZ_FS_CREATED);
    skip_unless_told(BLZ_FS_REMOVED);
    w = watcher_new();
    watch_path(&w, place, BLZ_FS_REMOVED);
    make_file("file", "x");
    assert_int_equal(blz__path_remove(HERE, in_place("file")), 0);
    assert_true(next_change(&w).events & BLZ_FS_REMOVED);
    close_file(w.fd);
}

static void a_file_that_is_added_again_keeps_its_id_and_has_new_events(void **state)
{
    struct watcher w;
    int id;

    (void)state;
    skip_unless_told(BLZ_FS_CREATED);
    skip_unless_told(BLZ_FS_REMOVED);
    w = watcher_new();
    id = watch_path(&w, place, BLZ_FS_CREATED);
    assert_int_equal(watch_path(&w, place, BLZ_FS_REMOVED), id);
    make_file("file", "");
    assert_int_equal(blz__path_remove(HERE, in_place("file")), 0);
    assert_true(next_change(&w).events & BLZ_FS_REMOVED);
    close_file(w.fd);
}

static void watches_have_ids_of_their_own(void **state)
{
    struct watcher w;
    int a, b;

    (void)state;
    skip_unless_told(BLZ_FS_CREATED);
    w = watcher_new();
    assert_int_equal(blz__path_create_dir(in_place("a"), 0700), 0);
    assert_int_equal(blz__path_create_dir(in_place("b"), 0700), 0);
    a = watch_path(&w, in_place("a"), BLZ_FS_CREATED);
    b = watch_path(&w, in_place("b"), BLZ_FS_CREATED);
    assert_int_not_equal(a, b);
    make_file("b/file", "");
    assert_int_equal(expect_change(&w, BLZ_FS_CREATED).id, b);
    make_file("a/file", "");
    assert_int_equal(expect_change(&w, BLZ_FS_CREATED).id, a);
    close_file(w.fd);
}

static void gone_is_the_last_that_is_told_of_a_removed_watch(void **state)
{
    struct watcher w = watcher_new();
    int id = watch_path(&w, place, BLZ_FS_ALL);
    blz_fs_change change;

    (void)state;
    assert_int_equal(blz__change_remove(w.fd, id), 0);
    change = expect_change(&w, BLZ_FS_GONE);
    assert_int_equal(change.id, id);
    make_file("file", "");
    assert_int_equal(blz__change_fetch(w.fd, w.batch, sizeof w.batch), -EAGAIN);
    assert_int_equal(blz__change_remove(w.fd, id), -ENOENT);
    close_file(w.fd);
}

static void gone_is_told_when_what_is_watched_is_removed(void **state)
{
    struct watcher w = watcher_new();
    int id;

    (void)state;
    assert_int_equal(blz__path_create_dir(in_place("dir"), 0700), 0);
    id = watch_path(&w, in_place("dir"), BLZ_FS_ALL);
    assert_int_equal(blz__path_remove_dir(HERE, in_place("dir")), 0);
    assert_int_equal(expect_change(&w, BLZ_FS_GONE).id, id);
    close_file(w.fd);
}

static void what_is_not_there_cannot_be_watched(void **state)
{
    struct watcher w = watcher_new();

    (void)state;
    assert_int_equal(blz__change_add(w.fd, in_place("none"), BLZ_FS_ALL), -ENOENT);
    close_file(w.fd);
}

static void no_event_that_can_be_told_is_einval(void **state)
{
    struct watcher w = watcher_new();

    (void)state;
    assert_int_equal(blz__change_add(w.fd, place, 0), -EINVAL);
    assert_int_equal(blz__change_add(w.fd, place, BLZ_FS_ALL & ~blz__change_events()), -EINVAL);
    assert_int_equal(blz__change_add(w.fd, place, BLZ_FS_OVERFLOW), -EINVAL);
    close_file(w.fd);
}

/* Systems keep some ten thousand changes. */
static void lost_changes_are_told_as_an_overflow_without_an_id(void **state)
{
    struct watcher w;
    blz_fs_change change;

    (void)state;
    skip_unless_told(BLZ_FS_CREATED);
    w = watcher_new();
    watch_path(&w, place, BLZ_FS_CREATED | BLZ_FS_REMOVED);
    for (int i = 0; i < 1 << 15; i++) {
        const char *name = i % 2 ? "odd" : "even"; /* equal changes in a row may be one */
        make_file(name, "");
        assert_int_equal(blz__path_remove(HERE, in_place(name)), 0);
    }
    change = expect_change(&w, BLZ_FS_OVERFLOW);
    assert_int_equal(change.id, -1);
    close_file(w.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_can_be_told_is_of_the_public_events),
        TEST(a_watch_is_not_inherited_and_has_no_changes_at_first),
        TEST(a_new_file_in_a_directory_is_told_by_its_name),
        TEST(a_new_directory_is_told_as_one),
        TEST(a_write_is_told),
        TEST(the_close_of_a_writer_is_told_and_that_of_a_reader_is_not),
        TEST(new_permissions_are_told),
        TEST(a_removal_is_told),
        TEST(both_halves_of_a_move_have_one_cookie),
        TEST(an_event_that_was_not_asked_for_is_not_told),
        TEST(a_file_that_is_added_again_keeps_its_id_and_has_new_events),
        TEST(watches_have_ids_of_their_own),
        TEST(gone_is_the_last_that_is_told_of_a_removed_watch),
        TEST(gone_is_told_when_what_is_watched_is_removed),
        TEST(what_is_not_there_cannot_be_watched),
        TEST(no_event_that_can_be_told_is_einval),
        TEST(lost_changes_are_told_as_an_overflow_without_an_id),
    };

    return RUN_IN_PLACE(tests);
}
