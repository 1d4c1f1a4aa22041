/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: the part of system/socket.h that is about Unix sockets at paths. */
#include "sockets.h"

#include "system/address.h"

#include <sys/stat.h>
#include <unistd.h>

/* A folder, and the address of a socket in it. */
struct place {
    char folder[32];
    char path[48];
    blz_addr addr;
};

static struct place place_make(void)
{
    struct place place = {.folder = "/tmp/blitz-socket-XXXXXX"};

    assert_non_null(mkdtemp(place.folder));
    snprintf(place.path, sizeof place.path, "%s/s", place.folder);
    assert_int_equal(blz__address_from_path(&place.addr, place.path, strlen(place.path)), 0);
    return place;
}

/* Nothing but the socket is left in the folder. */
static void place_remove(const struct place *place)
{
    unlink(place->path);
    assert_int_equal(rmdir(place->folder), 0);
}

static bool exists(const struct place *place)
{
    return access(place->path, F_OK) == 0;
}

static int listen_private(blz_sysfd *fd, const struct place *place, struct blz__socket_file *file)
{
    int rc;

    *fd = open_socket(BLZ_ADDR_UNIX, BLZ__SOCKET_STREAM);
    rc = blz__socket_listen_private(*fd, &place->addr, 4, file);
    if (rc < 0)
        blz__handle_close(*fd);
    return rc;
}

static void a_path_that_does_not_exist_is_refused(void **state)
{
    struct place place = place_make();
    blz_sysfd fd = open_socket(BLZ_ADDR_UNIX, BLZ__SOCKET_STREAM);
    blz_addr addr;

    (void)state;
    assert_int_equal(blz__address_from_path(&addr, "/no/such/folder/s", 17), 0);
    assert_int_equal(blz__socket_bind(fd, &addr), -ENOENT);
    assert_int_equal(blz__socket_connect(fd, &place.addr), -ENOENT);
    blz__handle_close(fd);
    place_remove(&place);
}

static void a_client_finds_the_listener_at_its_path(void **state)
{
    struct place place = place_make();
    struct blz__socket_file file;
    blz_sysfd listener, client = open_socket(BLZ_ADDR_UNIX, BLZ__SOCKET_STREAM), conn;
    blz_addr addr;
    int rc = listen_private(&listener, &place, &file);

    (void)state;
    skip_if_not_supported(rc);
    assert_int_equal(rc, 0);
    connect_to(client, &place.addr);
    conn = accept_one(listener);
    assert_int_equal(blz__socket_peer_addr(client, &addr), 0);
    assert_true(blz_addr_equal(&addr, &place.addr));
    blz__handle_close(conn);
    blz__handle_close(client);
    blz__handle_close(listener);
    blz__socket_remove_file(&place.addr, &file);
    place_remove(&place);
}

static void a_private_socket_is_for_its_owner_alone(void **state)
{
    struct place place = place_make();
    struct blz__socket_file file;
    struct stat st;
    blz_sysfd listener;

    (void)state;
    assert_int_equal(listen_private(&listener, &place, &file), 0);
    assert_int_equal(stat(place.path, &st), 0);
    assert_true(S_ISSOCK(st.st_mode));
    assert_int_equal(st.st_mode & 0777, 0600);
    blz__handle_close(listener);
    place_remove(&place);
}

static void where_another_listens_the_address_is_in_use(void **state)
{
    struct place place = place_make();
    struct blz__socket_file file;
    blz_sysfd first, second;

    (void)state;
    assert_int_equal(listen_private(&first, &place, &file), 0);
    assert_int_equal(listen_private(&second, &place, &file), -EADDRINUSE);
    assert_true(exists(&place));
    blz__handle_close(first);
    place_remove(&place);
}

static void a_full_queue_still_means_that_another_listens(void **state)
{
    struct place place = place_make();
    struct blz__socket_file file;
    blz_sysfd first, second, clients[16];
    int n = 0;

    (void)state;
    assert_int_equal(listen_private(&first, &place, &file), 0);
    while (n < 16) {
        clients[n] = open_socket(BLZ_ADDR_UNIX, BLZ__SOCKET_STREAM);
        if (blz__socket_connect(clients[n++], &place.addr) == -ECONNREFUSED)
            break; /* there is no more room */
    }
    assert_int_equal(listen_private(&second, &place, &file), -EADDRINUSE);
    while (n > 0)
        blz__handle_close(clients[--n]);
    blz__handle_close(first);
    place_remove(&place);
}

static void the_file_of_a_program_that_has_ended_is_replaced(void **state)
{
    struct place place = place_make();
    struct blz__socket_file old, new;
    blz_sysfd first, second;

    (void)state;
    assert_int_equal(listen_private(&first, &place, &old), 0);
    blz__handle_close(first);
    assert_true(exists(&place));
    assert_int_equal(listen_private(&second, &place, &new), 0);
    blz__handle_close(second);
    blz__socket_remove_file(&place.addr, &new);
    assert_false(exists(&place));
    place_remove(&place);
}

static void a_file_that_is_no_socket_is_left_alone(void **state)
{
    struct place place = place_make();
    struct blz__socket_file file;
    blz_sysfd fd;
    FILE *other = fopen(place.path, "w");

    (void)state;
    assert_non_null(other);
    fclose(other);
    assert_int_equal(listen_private(&fd, &place, &file), -EADDRINUSE);
    assert_true(exists(&place));
    place_remove(&place);
}

static void only_the_own_file_is_removed(void **state)
{
    struct place place = place_make();
    struct blz__socket_file file;
    blz_sysfd fd;

    (void)state;
    assert_int_equal(listen_private(&fd, &place, &file), 0);
    file.inode++;
    blz__socket_remove_file(&place.addr, &file);
    assert_true(exists(&place));
    file.inode--;
    blz__socket_remove_file(&place.addr, &file);
    assert_false(exists(&place));
    blz__handle_close(fd);
    place_remove(&place);
}

static void a_private_socket_needs_a_path(void **state)
{
    blz_addr addr = blz__address_unnamed();
    blz_sysfd fd = open_socket(BLZ_ADDR_UNIX, BLZ__SOCKET_STREAM);
    struct blz__socket_file file;
    int rc = blz__socket_listen_private(fd, &addr, 4, &file);

    (void)state;
    blz__handle_close(fd);
    skip_if_not_supported(rc);
    assert_int_equal(rc, -EINVAL);
}

static void a_full_queue_of_a_unix_listener_refuses(void **state)
{
    struct place place = place_make();
    blz_sysfd listener = open_socket(BLZ_ADDR_UNIX, BLZ__SOCKET_STREAM), clients[32];
    int n = 0, rc = 0;

    (void)state;
    assert_int_equal(blz__socket_bind(listener, &place.addr), 0);
    assert_int_equal(blz__socket_listen(listener, 1), 0);
    while (n < 32 && rc == 0) {
        clients[n] = open_socket(BLZ_ADDR_UNIX, BLZ__SOCKET_STREAM);
        rc = blz__socket_connect(clients[n++], &place.addr);
    }
    assert_int_equal(rc, -ECONNREFUSED);
    while (n > 0)
        blz__handle_close(clients[--n]);
    blz__handle_close(listener);
    place_remove(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_path_that_does_not_exist_is_refused),
        TEST(a_client_finds_the_listener_at_its_path),
        TEST(a_private_socket_is_for_its_owner_alone),
        TEST(where_another_listens_the_address_is_in_use),
        TEST(a_full_queue_still_means_that_another_listens),
        TEST(the_file_of_a_program_that_has_ended_is_replaced),
        TEST(a_file_that_is_no_socket_is_left_alone),
        TEST(only_the_own_file_is_removed),
        TEST(a_private_socket_needs_a_path),
        TEST(a_full_queue_of_a_unix_listener_refuses),
    };

    return RUN_TESTS(tests);
}
