/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a fork-join pool, the default pool, statistics. */
#include "par.h"

#include "base/sanitize.h"
#include "system/cpu.h"
#include "system/linux/cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void count_one(blz_par *par, void *arg)
{
    (void)par;
    ++*(int *)arg;
}

/* ---- how many threads ---- */

static void the_environment_says_how_many_threads(void **state)
{
    static const char *const bad[] = {"x", "2x", "-1", "99999", "9999999999999999999999"};
    blz_pool *pool;

    (void)state;
    setenv("BLZ_POOL_THREADS", "3", 1);
    pool = new_pool_with(&(blz_pool_options){0});
    assert_int_equal(blz_pool_threads(pool), 3);
    free_pool(pool);
    pool = new_pool_with(&(blz_pool_options){.threads = 2}); /* the program knows better */
    assert_int_equal(blz_pool_threads(pool), 2);
    free_pool(pool);
    for (int i = 0; i < 5; i++) {
        setenv("BLZ_POOL_THREADS", bad[i], 1);
        assert_int_equal(blz_pool_new(&pool, NULL), -EINVAL);
    }
    for (int i = 0; i < 2; i++) {
        setenv("BLZ_POOL_THREADS", i ? "0" : "", 1);
        pool = new_pool_with(&(blz_pool_options){0});
        assert_int_equal(blz_pool_threads(pool), blz__cpu_count());
        free_pool(pool);
    }
    unsetenv("BLZ_POOL_THREADS");
}

static void affinity_says_how_many_threads(void **state)
{
    blz_pool *pool;

    (void)state;
    use_one_cpu(true);
    pool = new_pool_with(&(blz_pool_options){0});
    assert_int_equal(blz_pool_threads(pool), 1);
    free_pool(pool);
    use_one_cpu(false);
}

/* ---- control groups ---- */

struct groups {
    char root[64], list[96];
};

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void make_folder(const struct groups *g, const char *path, char *out, size_t size)
{
    snprintf(out, size, "%s%s", g->root, path);
    assert_int_equal(mkdir(out, 0700), 0);
}

static void make_groups(struct groups *g, const char *list)
{
    snprintf(g->root, sizeof g->root, "%s/blz-cgroup-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    assert_non_null(mkdtemp(g->root));
    snprintf(g->list, sizeof g->list, "%s/list", g->root);
    write_file(g->root, "list", list);
}

static void remove_groups(const struct groups *g)
{
    char command[128];

    snprintf(command, sizeof command, "rm -r '%s'", g->root);
    assert_int_equal(system(command), 0);
}

static void the_tightest_group_of_version_2_counts(void **state)
{
    struct groups g;
    char outer[128], inner[128];

    (void)state;
    make_groups(&g, "0::/outer/inner\n");
    make_folder(&g, "/outer", outer, sizeof outer);
    make_folder(&g, "/outer/inner", inner, sizeof inner);
    assert_int_equal(blz__cgroup_cpus(g.list, g.root), 0);
    write_file(inner, "cpu.max", "max 100000\n");
    assert_int_equal(blz__cgroup_cpus(g.list, g.root), 0);
    write_file(outer, "cpu.max", "250000 100000\n");
    assert_int_equal(blz__cgroup_cpus(g.list, g.root), 3);
    write_file(inner, "cpu.max", "150000 100000\n");
    assert_int_equal(blz__cgroup_cpus(g.list, g.root), 2);
    write_file(g.root, "cpu.max", "10000 100000\n"); /* of the container */
    assert_int_equal(blz__cgroup_cpus(g.list, g.root), 1);
    remove_groups(&g);
}

static void the_tightest_group_of_version_1_counts(void **state)
{
    struct groups g;
    char tree[128], group[128];

    (void)state;
    make_groups(&g, "9:cpuset:/elsewhere\n4:cpuacct,cpu:/group\n1:name=systemd:/x\n");
    make_folder(&g, "/cpu", tree, sizeof tree);
    make_folder(&g, "/cpu/group", group, sizeof group);
    write_file(tree, "cpu.cfs_quota_us", "-1\n");
    write_file(tree, "cpu.cfs_period_us", "100000\n");
    assert_int_equal(blz__cgroup_cpus(g.list, g.root), 0);
    write_file(group, "cpu.cfs_quota_us", "350000\n");
    assert_int_equal(blz__cgroup_cpus(g.list, g.root), 0); /* no period */
    write_file(group, "cpu.cfs_period_us", "100000\n");
    assert_int_equal(blz__cgroup_cpus(g.list, g.root), 4);
    remove_groups(&g);
}

static void lists_that_are_none_say_nothing(void **state)
{
    struct groups g;

    (void)state;
    make_groups(&g, "\n:\n::\n0:\n3:cpu\ngarbage\n0::\n");
    assert_int_equal(blz__cgroup_cpus(g.list, g.root), 0);
    assert_int_equal(blz__cgroup_cpus("/no/such/file", g.root), 0);
    remove_groups(&g);
}

/* ---- hooks ---- */

enum { THREADS = 3 };

struct hooks {
    int started[THREADS], stopped[THREADS];
    size_t stack_size;
};

static void on_start(unsigned index, void *arg)
{
    struct hooks *hooks = arg;
    pthread_attr_t attr;

    check(index < THREADS);
    hooks->started[index]++;
    check(pthread_getattr_np(pthread_self(), &attr) == 0);
    if (index == 0)
        check(pthread_attr_getstacksize(&attr, &hooks->stack_size) == 0);
    pthread_attr_destroy(&attr);
}

static void on_stop(unsigned index, void *arg)
{
    ((struct hooks *)arg)->stopped[index]++;
}

static void each_thread_calls_its_hooks_once(void **state)
{
    struct hooks hooks = {.stack_size = 0};
    blz_pool *pool = new_pool_with(&(blz_pool_options){.threads = THREADS,
                                                       .stack_size = 16 << 20,
                                                       .on_thread_start = on_start,
                                                       .on_thread_stop = on_stop,
                                                       .hook_arg = &hooks});

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(hooks.started[i], 1);
    assert_in_range(hooks.stack_size, 16 << 20, 17 << 20);
    free_pool(pool);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(hooks.stopped[i], 1);
}

/* ---- spinning ---- */

static void every_spin_policy_computes(void **state)
{
    blz_pool *pool;

    (void)state;
    for (int spin = BLZ_POOL_SPIN_SHORT; spin <= BLZ_POOL_SPIN_LONG; spin++) {
        int count = 0;
        pool = new_pool_with(&(blz_pool_options){.threads = 2, .spin = (blz_pool_spin)spin});
        for (int i = 0; i < 50; i++)
            assert_int_equal(blz_pool_run(pool, count_one, &count), 0);
        assert_int_equal(count, 50);
        free_pool(pool);
    }
    assert_int_equal(blz_pool_new(&pool, &(blz_pool_options){.spin = 3}), -EINVAL);
}

/* ---- statistics ---- */

static void computations_are_counted(void **state)
{
    blz_pool *pool = new_pool_with(&(blz_pool_options){.threads = 2});
    blz_par_stats stats;
    blz_par *par;
    int count = 0;

    (void)state;
    for (int i = 0; i < 10; i++)
        assert_int_equal(blz_pool_run(pool, count_one, &count), 0);
    par = blz_pool_enter(pool);
    assert_non_null(par);
    assert_int_equal(blz_pool_run(pool, count_one, &count), 0); /* nobody else sees this */
    blz_pool_stats(pool, &stats);
    assert_int_equal(stats.injected, 10);
    assert_int_equal(stats.stolen, 0);
    assert_int_equal(stats.queued, 0);
    assert_int_equal(stats.threads, 2);
    assert_int_equal(stats.guests, 1);
    assert_in_range(stats.sleeping + stats.looking, 0, 2);
    blz_pool_leave(par);
    blz_pool_stats(pool, &stats);
    assert_int_equal(stats.guests, 0);
    free_pool(pool);
}

struct meeting {
    struct event left, right;
};

static void do_nothing(blz_par *par, blz_par_job *job)
{
    (void)par, (void)job;
}

/* Forks until another one has come for the other branch, which waits for this one. */
static void come_from_the_left(blz_par *par, void *arg)
{
    struct meeting *m = arg;
    blz_par_job job;

    while (event_count(&m->right) == 0) {
        blz_par_fork(par, &job, do_nothing);
        (void)!blz_par_unfork(par, &job);
    }
    event_post(&m->left);
}

static void come_from_the_right(blz_par *par, void *arg)
{
    struct meeting *m = arg;

    (void)par;
    event_post(&m->right);
    event_wait(&m->left, 1);
}

static void join_meeting(blz_par *par, void *arg)
{
    blz_par_join(par, come_from_the_left, arg, come_from_the_right, arg);
}

static void steals_are_counted(void **state)
{
    blz_pool *pool = new_pool_with(&(blz_pool_options){.threads = 2});
    blz_par_stats stats;

    (void)state;
    for (unsigned i = 1; i <= 5; i++) {
        struct meeting m = {.left = EVENT_INIT, .right = EVENT_INIT};
        assert_int_equal(blz_pool_run(pool, join_meeting, &m), 0);
        blz_pool_stats(pool, &stats);
        assert_true(stats.stolen >= i); /* perhaps also what only fills the time */
        assert_true(stats.published >= stats.stolen);
    }
    free_pool(pool);
}

/* ---- the default pool: in a child, because it is never freed ---- */

static void in_child(int (*fn)(void))
{
    pid_t pid;
    int status = -1;

#ifdef BLZ_TSAN
    skip(); /* it allows no threads in a child */
#endif
    pid = fork();
    if (pid == 0) {
        alarm(CHILD_SECONDS);
        _exit(fn());
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void note_pool(blz_par *par, void *arg)
{
    *(blz_pool **)arg = blz_par_pool(par);
}

static void *ask_for_the_default(void *arg)
{
    (void)arg;
    return blz_pool_default();
}

static int ask_at_once(void)
{
    pthread_t threads[4];
    blz_pool *pool;
    void *got;

    for (int i = 0; i < 4; i++)
        threads[i] = start_thread(ask_for_the_default, NULL);
    pool = blz_pool_default();
    for (int i = 0; i < 4; i++)
        if (pthread_join(threads[i], &got) != 0 || got != pool)
            return 1;
    return pool ? 0 : 2;
}

static void there_is_one_default_pool(void **state)
{
    (void)state;
    in_child(ask_at_once);
}

static int use_the_default(void)
{
    blz_pool *pool = NULL;
    blz_par *par;

    setenv("BLZ_POOL_THREADS", "2", 1);
    if (blz_pool_run(NULL, note_pool, &pool) != 0 || pool != blz_pool_default())
        return 1;
    if (blz_pool_threads(pool) != 2)
        return 2;
    par = blz_pool_enter(NULL);
    if (!par || blz_par_pool(par) != pool)
        return 3;
    blz_pool_leave(par);
    return 0;
}

static void where_no_pool_is_named_it_is_the_default(void **state)
{
    (void)state;
    in_child(use_the_default);
}

static int do_without_a_default(void)
{
    blz_pool *pool = NULL;

    setenv("BLZ_POOL_THREADS", "many", 1);
    if (blz_pool_default() || blz_pool_enter(NULL))
        return 1;
    if (blz_pool_run(NULL, note_pool, &pool) != -EAGAIN || pool)
        return 2;
    unsetenv("BLZ_POOL_THREADS"); /* and it is not for ever */
    return blz_pool_default() ? 0 : 3;
}

static void a_default_pool_that_cannot_be_made_is_none(void **state)
{
    (void)state;
    in_child(do_without_a_default);
}

static int use_the_parents(void)
{
    blz_pool *parents = blz_pool_default(), *mine;
    pid_t pid;
    int status = -1;

    pid = fork();
    if (pid == 0) {
        alarm(CHILD_SECONDS);
        mine = blz_pool_default();
        if (!mine || mine == parents || blz_pool_run(NULL, note_pool, &parents) != 0)
            _exit(1);
        _exit(parents == mine ? 0 : 2);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 1;
    return status == 0 ? 0 : 2;
}

static void a_child_has_a_default_pool_of_its_own(void **state)
{
    (void)state;
    in_child(use_the_parents);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_environment_says_how_many_threads),
        TEST(affinity_says_how_many_threads),
        TEST(the_tightest_group_of_version_2_counts),
        TEST(the_tightest_group_of_version_1_counts),
        TEST(lists_that_are_none_say_nothing),
        TEST(each_thread_calls_its_hooks_once),
        TEST(every_spin_policy_computes),
        TEST(computations_are_counted),
        TEST(steals_are_counted),
        TEST(there_is_one_default_pool),
        TEST(where_no_pool_is_named_it_is_the_default),
        TEST(a_default_pool_that_cannot_be_made_is_none),
        TEST(a_child_has_a_default_pool_of_its_own),
    };
    return RUN_TESTS(tests);
}
