/* SPDX-License-Identifier: Apache-2.0 */
/* What happens around each test: see harness.h. */
#include "harness.h"

#include "watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    DEFAULT_SECONDS = 60,
    SOAK_SECONDS = 3600,
    LINGER_SECONDS = 50,
    SHUTDOWN_SECONDS = 50,
    NR_FATAL = 5,
    THREAD_SANITIZER = 10,
    ADDRESS_SANITIZER = 3,
    SOAK_FACTOR = 100,
    PF_IO_WORKER = 0x10, /* of the kernel, which has no header for it */
};

static struct {
    const char *name;
    void (*fn)(void **state);
    bool returned; /* not so if an assertion has failed */
    int threads, fds;
    int64_t blocks, bytes; /* other than 0 only if an earlier test has failed */
} current;

/* ---- the process ---- */

static int count_entries(const char *path, bool (*counts)(const char *name))
{
    DIR *dir = opendir(path);
    int count = 0;

    check(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.' && counts(entry->d_name);
    closedir(dir);
    return count;
}

/* The kernel starts threads for a ring (iou-wrk, iou-sqp), and ends them when it likes: some time
 * after the ring is closed. Such a thread has its flag from the beginning, its name only when it
 * first runs. False also for a thread that has gone meanwhile. */
static bool is_own_thread(const char *tid)
{
    char path[64], line[512] = "";
    unsigned flags = PF_IO_WORKER;
    const char *behind_name;
    FILE *file;

    snprintf(path, sizeof path, "/proc/self/task/%.16s/stat", tid);
    file = fopen(path, "re");
    if (file) {
        behind_name = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
        if (behind_name)
            sscanf(behind_name, ") %*c %*d %*d %*d %*d %*d %u", &flags);
        fclose(file);
    }
    return !(flags & PF_IO_WORKER);
}

int nr_threads(void)
{
    return count_entries("/proc/self/task", is_own_thread);
}

static bool is_any(const char *name)
{
    return name != NULL;
}

int nr_fds(void)
{
    return count_entries("/proc/self/fd", is_any) - 1; /* that of the folder */
}

int64_t read_fully(int fd, void *buf, size_t len)
{
    size_t done = 0;
    ssize_t n = 1;

    while (done < len && n > 0) {
        n = read(fd, (char *)buf + done, len - done);
        check(n >= 0);
        done += (size_t)n;
    }
    return (int64_t)done;
}

int thread_id(void)
{
    return (int)gettid();
}

bool wait_for_threads(int count)
{
    time_t deadline = time(NULL) + LINGER_SECONDS;

    while (nr_threads() != count) {
        if (time(NULL) > deadline)
            return false;
        sched_yield();
    }
    return true;
}

bool is_soak(void)
{
    const char *soak = getenv("SOAK");
    return soak && soak[0] && soak[0] != '0';
}

/* By about how much a sanitizer slows things down. */
static int slowdown(void)
{
#if defined(__SANITIZE_THREAD__)
    return THREAD_SANITIZER;
#elif defined(__SANITIZE_ADDRESS__)
    return ADDRESS_SANITIZER;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
    return THREAD_SANITIZER;
#elif __has_feature(address_sanitizer)
    return ADDRESS_SANITIZER;
#endif
#endif
    return 1;
}

bool is_sanitized(void)
{
    return slowdown() != 1;
}

int64_t scaled(int64_t count)
{
    count = (count + slowdown() - 1) / slowdown();
    return is_soak() ? SOAK_FACTOR * count : count;
}

uint32_t random_below(uint64_t *seed, uint32_t n)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*seed >> 33) * n >> 31);
}

void use_one_cpu(bool one)
{
    static cpu_set_t all;
    cpu_set_t first;
    int cpu = 0;

    if (!one) {
        check(sched_setaffinity(0, sizeof all, &all) == 0);
        return;
    }
    check(sched_getaffinity(0, sizeof all, &all) == 0);
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&first);
    CPU_SET(cpu, &first);
    check(sched_setaffinity(0, sizeof first, &first) == 0);
}

void check_failed(const char *condition, const char *file, int line, const char *fn)
{
    fprintf(stderr, "%s:%d: in %s: not true: %s (test %s)\n", file, line, fn, condition,
            current.name ? current.name : "?");
    abort();
}

/* ---- around tests ---- */

/*
 * cmocka catches these to go on with the next test. With threads and broken memory that only hides
 * what happened, so the handlers from before (a sanitizer's, or none) are put back.
 */
static const int fatal[NR_FATAL] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS};
static struct sigaction handlers[NR_FATAL];

void test_program_begin(void)
{
    const char *filter = getenv("TEST");

    if (filter)
        cmocka_set_test_filter(filter);
    for (int i = 0; i < NR_FATAL; i++)
        sigaction(fatal[i], NULL, &handlers[i]);
    setvbuf(stdout, NULL, _IOLBF, 0);
}

void test_run(void **state)
{
    for (int i = 0; i < NR_FATAL; i++)
        sigaction(fatal[i], &handlers[i], NULL);
    current.fn(state);
    current.returned = true;
}

int test_group_begin(void **state)
{
    (void)state;
    watch_begin();
    return 0;
}

int test_group_end(void **state)
{
    (void)state;
    return 0;
}

void allow_seconds(int seconds)
{
    const char *patience = getenv("TEST_PATIENCE");
    int limit = is_sanitized() ? 2 * seconds : seconds;

    if (patience && atoi(patience) > 1)
        limit *= atoi(patience);
    watch_test(current.name, is_soak() ? SOAK_SECONDS : limit);
}

int test_begin(void **state)
{
    const struct test_case *test = *state;

    current.name = test->name;
    current.fn = test->fn;
    current.returned = false;
    *state = NULL;
    memory_fail_at(the_memory(), 0, false);
    current.threads = nr_threads();
    current.fds = nr_fds();
    current.blocks = memory_blocks(the_memory());
    current.bytes = memory_bytes(the_memory());
    allow_seconds(DEFAULT_SECONDS);
    return 0;
}

static bool is_balanced(const char *what, int64_t before, int64_t after)
{
    if (before == after)
        return true;
    fprintf(stderr, "%s: %lld %s at the beginning, %lld at the end\n", current.name,
            (long long)before, what, (long long)after);
    return false;
}

/*
 * A thread that was there before, such as one of the default pool, may have the last reference to a
 * task of a runtime that is gone for the test: then it frees it.
 */
static void wait_for_memory(void)
{
    time_t deadline = time(NULL) + LINGER_SECONDS;

    while (time(NULL) <= deadline && (memory_blocks(the_memory()) > current.blocks ||
                                      memory_bytes(the_memory()) > current.bytes))
        sched_yield();
}

int test_end(void **state)
{
    bool good = true;

    (void)state;
    if (!current.returned) { /* its runtimes are still there, and will be */
        watch_test(NULL, 0);
        return 0;
    }
    wait_for_threads(current.threads);
    wait_for_memory();
    good &= is_balanced("threads", current.threads, nr_threads());
    good &= is_balanced("descriptors", current.fds, nr_fds());
    good &= is_balanced("blocks", current.blocks, memory_blocks(the_memory()));
    good &= is_balanced("bytes", current.bytes, memory_bytes(the_memory()));
    watch_test(NULL, 0);
    return good ? 0 : -1;
}

/* ---- runtimes ---- */

/* Some containers forbid it. Asked before calls of the system can be made to fail (faulty.h). */
static bool has_uring;

bool uring_works(void)
{
    return has_uring;
}

__attribute__((constructor)) static void look_for_uring(void)
{
#ifdef BLZ_HAVE_URING
    char params[120] = {0};
    long ring = syscall(SYS_io_uring_setup, 1, params);

    has_uring = ring >= 0;
    if (has_uring)
        close((int)ring);
#endif
}

/* Without io_uring a test of every backend goes through the others. */
static const char *backend_or_next(const char *backend)
{
    return !has_uring && backend && strcmp(backend, "io_uring") == 0 ? "epoll" : backend;
}

blz_rt *new_rt(const blz_options *options)
{
    blz_options with_memory = options ? *options : (blz_options){0};
    blz_rt *rt = NULL;

    if (!with_memory.allocator)
        with_memory.allocator = test_memory();
    with_memory.backend = backend_or_next(with_memory.backend);
    check(blz_rt_new(&rt, &with_memory) == 0);
    watch_rt(rt);
    return rt;
}

void free_rt(blz_rt *rt)
{
    /* While it is watched, so that a shutdown that hangs shows its tasks. */
    if (blz_rt_shutdown(rt, SHUTDOWN_SECONDS * BLZ_SEC) != 0) {
        blz_task_dump_fd(rt, STDERR_FILENO);
        check(!"the runtime shuts down in time");
    }
    unwatch_rt(rt);
    check(blz_rt_free(rt) == 0);
}

blz_rt *new_embedded_rt(void)
{
    return new_rt(&(blz_options){.embedded = true, .watchdog_ns = BLZ_NEVER});
}

int64_t turn_all(blz_rt *rt)
{
    int64_t all = 0, polls;

    while ((polls = blz_rt_turn(rt)) > 0)
        all += polls;
    check(polls == 0);
    return all;
}

int run_self(const char *name, char *errors, size_t size)
{
    char self[4096] = {0};
    char *emulator = getenv("EMULATOR"); /* of a foreign processor; the shell knows where it is */
    char *argv[] = {emulator, self, (char *)(uintptr_t)name, NULL};
    char **command = emulator ? argv : argv + 1;
    int status = -1, pipes[2];
    posix_spawn_file_actions_t actions;
    pid_t pid;

    assert_in_range(readlink("/proc/self/exe", self, sizeof self - 1), 1, sizeof self - 1);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&actions);
    if (errors)
        posix_spawn_file_actions_adddup2(&actions, pipes[1], STDERR_FILENO);
    assert_int_equal(posix_spawnp(&pid, command[0], &actions, NULL, command, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(pipes[1]);
    if (errors)
        errors[read_fully(pipes[0], errors, size - 1)] = '\0';
    close(pipes[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

void in_own_process(const char *name)
{
    int status = run_self(name, NULL, 0);

    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}
