/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees are removed while another thread swaps their directories for links that lead out of them,
 * and back. Nothing outside is ever touched.
 */
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIRECTORIES = 16, FILES = 4 };

static char dir[64];

struct removes {
    BLZ_FRAME;
    int64_t rc;
    const char *path;
    blz_fs_op op;
};

BLZ_ASYNC(removes)
{
    BLZ_BEGIN;
    BLZ_AWAIT(self->rc, blz_fs_remove_dir_all(&self->op, self->path));
    BLZ_END(self->rc);
}

/* DIR/NAME, then i, then /j; a negative number is left out. */
static const char *path_of(char path[128], const char *name, int i, int j)
{
    int len = snprintf(path, 128, "%s/%s", dir, name);

    if (i >= 0)
        len += snprintf(path + len, 128 - (size_t)len, "%d", i);
    if (j >= 0)
        snprintf(path + len, 128 - (size_t)len, "/%d", j);
    return path;
}

static void make_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    close(fd);
}

/* Names in the tree and outside are the same, so that one taken for the other would be removed. */
static void make_tree(void)
{
    char path[128];

    assert_int_equal(mkdir(path_of(path, "tree", -1, -1), 0700), 0);
    for (int i = 0; i < DIRECTORIES; i++) {
        assert_int_equal(mkdir(path_of(path, "tree/", i, -1), 0700), 0);
        for (int j = 0; j < FILES; j++)
            make_file(path_of(path, "tree/", i, j));
        assert_int_equal(symlink("../outside", path_of(path, "link", i, -1)), 0);
    }
}

static void make_outside(void)
{
    char path[128];

    assert_int_equal(mkdir(path_of(path, "outside", -1, -1), 0700), 0);
    for (int j = 0; j < FILES; j++)
        make_file(path_of(path, "outside/", j, -1));
}

static void expect_outside(void)
{
    char path[128];

    for (int j = 0; j < FILES; j++)
        assert_int_equal(access(path_of(path, "outside/", j, -1), F_OK), 0);
}

/* What is left, on either side of the swaps. */
static void remove_rest(blz_rt *rt)
{
    char path[128];
    int64_t rc = BLZ_BLOCK_ON(rt, removes, .path = path_of(path, "tree", -1, -1));

    assert_true(rc == 0 || rc == -ENOENT);
    for (int i = 0; i < DIRECTORIES; i++)
        if (unlink(path_of(path, "link", i, -1)) < 0 && errno == EISDIR)
            assert_int_equal(BLZ_BLOCK_ON(rt, removes, .path = path), 0);
}

static void *swap_all(void *stop)
{
    char inside[128], link[128];

    for (int i = 0; !__atomic_load_n((int *)stop, __ATOMIC_ACQUIRE); i = (i + 1) % DIRECTORIES)
        (void)renameat2(AT_FDCWD, path_of(inside, "tree/", i, -1), AT_FDCWD,
                        path_of(link, "link", i, -1), RENAME_EXCHANGE);
    return NULL;
}

static void removal_never_leaves_its_tree(void **state)
{
    blz_rt *rt = new_rt(&(blz_options){.workers = 1});
    int64_t rounds = scaled(300);
    char path[128];
    pthread_t thread;

    (void)state;
    allow_seconds(300);
    strcpy(dir, access("/dev/shm", W_OK) == 0 ? "/dev/shm/blitz-tree-XXXXXX" /* faster */
                                              : "/tmp/blitz-tree-XXXXXX");
    assert_non_null(mkdtemp(dir));
    make_outside();
    for (int64_t i = 0; i < rounds; i++) {
        int stop = 0;
        make_tree();
        assert_int_equal(pthread_create(&thread, NULL, swap_all, &stop), 0);
        (void)BLZ_BLOCK_ON(rt, removes, .path = path_of(path, "tree", -1, -1)); /* or an error */
        __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
        pthread_join(thread, NULL);
        expect_outside();
        remove_rest(rt);
    }
    expect_outside();
    assert_int_equal(BLZ_BLOCK_ON(rt, removes, .path = dir), 0);
    free_rt(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(removal_never_leaves_its_tree)};
    return RUN_TESTS(tests);
}
