/* SPDX-License-Identifier: Apache-2.0 */
/* Files: opening, reading, writing, asking, locking, on every backend. */
#include "net_probe.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <termios.h>

/* ---- a directory for each test ---- */

static char dir[64];

static const char *in_dir(const char *name)
{
    static char path[2][128];
    static int turn;

    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

static blz_rt *begin(const char *backend)
{
    strcpy(dir, "/tmp/blitz-file-XXXXXX");
    assert_non_null(mkdtemp(dir));
    return turning_rt(backend);
}

static void end(blz_rt *rt)
{
    char command[128];

    free_rt(rt);
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

static void make_file(const char *name, const char *text)
{
    int fd = open(in_dir(name), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

    check(fd >= 0);
    put(fd, text, strlen(text));
    close(fd);
}

static blz_file open_file(blz_rt *rt, const char *name, const blz_open_options *options)
{
    blz_io io = {0};
    blz_file file;

    assert_int_equal(AWAIT(rt, blz_file_open(&io, &file, in_dir(name), options)), 0);
    return file;
}

static const blz_open_options to_read_and_write = {.read = true, .write = true, .create = true};

/* ---- opening ---- */

ON_EACH_BACKEND(options_decide_what_open_does)
{
    blz_rt *rt = begin(backend);
    blz_io io = {0};
    blz_file f, g;
    char buf[8];

    assert_int_equal(AWAIT(rt, blz_file_open(&io, &f, in_dir("a"), NULL)), -ENOENT);
    assert_int_equal(blz_file_close(&f), -EBADF);
    f = open_file(rt, "a", &(blz_open_options){.write = true, .create_new = true, .mode = 0600});
    assert_int_equal(AWAIT(rt, blz_file_write_all(&io, &f, "hello", 5)), 5);
    assert_int_equal(AWAIT(rt, blz_file_read(&io, &f, buf, 5)), -EBADF);
    assert_int_equal(AWAIT(rt,
                           blz_file_open(&io, &g, in_dir("a"),
                                         &(blz_open_options){.write = true, .create_new = true})),
                     -EEXIST);
    assert_int_equal(blz_file_close(&f), 0);
    assert_int_equal(blz_file_close(&f), -EBADF);
    f = open_file(rt, "a", &(blz_open_options){.append = true, .read = true});
    assert_int_equal(AWAIT(rt, blz_file_write_all(&io, &f, "!!", 2)), 2);
    assert_int_equal(AWAIT(rt, blz_file_read_at(&io, &f, buf, 8, 0)), 7);
    assert_memory_equal(buf, "hello!!", 7);
    blz_file_close(&f);
    assert_int_equal(AWAIT(rt, blz_file_create(&io, &f, in_dir("a"))), 0);
    assert_int_equal(blz_file_seek(&f, 0, SEEK_END), 0);
    blz_file_close(&f);
    end(rt);
}

ON_EACH_BACKEND(options_that_make_no_sense_are_refused)
{
    static const blz_open_options bad[] = {
        {.truncate = true},
        {.create = true},
        {.create_new = true},
        {.append = true, .truncate = true},
        {.write = true, .create = true, .mode = 010000},
    };
    blz_rt *rt = begin(backend);
    blz_io io = {0};
    blz_file f;

    make_file("a", "kept");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(AWAIT(rt, blz_file_open(&io, &f, in_dir("a"), &bad[i])), -EINVAL);
    f = open_file(rt, "a", NULL);
    assert_int_equal(blz_file_seek(&f, 0, SEEK_END), 4);
    blz_file_close(&f);
    end(rt);
}

ON_EACH_BACKEND(a_path_begins_at_a_directory)
{
    blz_rt *rt = begin(backend);
    blz_file d = open_file(rt, "", &(blz_open_options){.directory = true}), f, stale = {NULL, 0};
    blz_open_options at = {.at = &d};
    blz_io io = {0};

    make_file("inside", "x");
    assert_int_equal(AWAIT(rt, blz_file_open(&io, &f, "inside", &at)), 0);
    blz_file_close(&f);
    at.directory = true;
    assert_int_equal(AWAIT(rt, blz_file_open(&io, &f, "inside", &at)), -ENOTDIR);
    at.at = &stale;
    assert_int_equal(AWAIT(rt, blz_file_open(&io, &f, "/", &at)), -EBADF);
    check(symlink("inside", in_dir("link")) == 0);
    at = (blz_open_options){.at = &d, .no_follow = true};
    assert_int_equal(AWAIT(rt, blz_file_open(&io, &f, "link", &at)), -ELOOP);
    blz_file_close(&d);
    assert_int_equal(AWAIT(rt, blz_file_open(&io, &f, "inside", &at)), -EBADF);
    end(rt);
}

ON_EACH_BACKEND(a_path_stays_beneath_its_directory)
{
    static const char *const outside[] = {"../out", "in/../../out", "up/out", "/tmp", "etc"};
    blz_rt *rt = begin(backend);
    blz_open_options beneath = {.beneath = true};
    blz_io io = {0};
    blz_file d, f;

    make_file("out", "x");
    check(mkdir(in_dir("root"), 0700) == 0 && mkdir(in_dir("root/in"), 0700) == 0);
    make_file("root/in/file", "x");
    check(symlink("in/file", in_dir("root/link")) == 0);
    check(symlink("..", in_dir("root/up")) == 0);
    check(symlink("/etc", in_dir("root/etc")) == 0);
    d = open_file(rt, "root", &(blz_open_options){.directory = true});
    beneath.at = &d;
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        assert_int_equal(AWAIT(rt, blz_file_open(&io, &f, outside[i], &beneath)), -EXDEV);
        assert_int_equal(blz_file_close(&f), -EBADF);
    }
    assert_int_equal(AWAIT(rt, blz_file_open(&io, &f, "in/none", &beneath)), -ENOENT);
    assert_int_equal(AWAIT(rt, blz_file_open(&io, &f, "in/../link", &beneath)), 0);
    assert_int_equal(blz_file_close(&f), 0);
    beneath.flags = BLZ_OPEN_PATH;
    assert_int_equal(AWAIT(rt, blz_file_open(&io, &f, "in/file", &beneath)), 0);
    assert_int_equal(blz_file_close(&f), 0);
    assert_int_equal(AWAIT(rt, blz_file_open(&io, &f, "up", &beneath)), -EXDEV);
    beneath = (blz_open_options){.at = &d, .beneath = true, .write = true, .create_new = true};
    assert_int_equal(AWAIT(rt, blz_file_open(&io, &f, "up/new", &beneath)), -EXDEV);
    assert_int_equal(AWAIT(rt, blz_file_open(&io, &f, "in/new", &beneath)), 0);
    assert_int_equal(AWAIT(rt, blz_file_write_all(&io, &f, "hello", 5)), 5);
    assert_int_equal(blz_file_close(&f), 0);
    assert_int_equal(access(in_dir("new"), F_OK), -1);
    blz_file_close(&d);
    end(rt);
}

ON_EACH_BACKEND(what_is_not_a_file_is_refused_without_waiting)
{
    blz_rt *rt = begin(backend);
    blz_io io = {0};
    blz_file f;
    int fds[2];

    check(mkfifo(in_dir("fifo"), 0600) == 0);
    assert_int_equal(AWAIT(rt, blz_file_open(&io, &f, in_dir("fifo"), NULL)), -EINVAL);
    assert_int_equal(AWAIT(rt, blz_file_open(&io, &f, in_dir("fifo"),
                                             &(blz_open_options){.write = true})),
                     -EINVAL);
    check(pipe2(fds, O_CLOEXEC) == 0);
    assert_int_equal(blz_file_from_fd(&f, fds[0], rt), -EINVAL);
    assert_int_equal(blz_file_from_fd(&f, 12345, rt), -EBADF);
    close(fds[0]);
    close(fds[1]);
    fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(blz_file_from_fd(&f, fds[0], NULL), -ENXIO);
    close(fds[0]);
    end(rt);
}

ON_EACH_BACKEND(descriptors_are_close_on_exec_and_in_blocking_mode)
{
    blz_rt *rt = begin(backend);
    blz_file f = open_file(rt, "a", &to_read_and_write);
    int fd = (int)blz_file_into_fd(&f);

    for (int i = 0; i < 2; i++) { /* the second time it is found in the cache */
        assert_true(fd >= 0);
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        assert_false(fcntl(fd, F_GETFL) & O_NONBLOCK);
        close(fd);
        f = open_file(rt, "a", NULL);
        fd = (int)blz_file_into_fd(&f);
        assert_int_equal(blz_file_into_fd(&f), -EBADF);
    }
    assert_int_equal(blz_file_from_fd(&f, fd, rt), 0);
    assert_int_equal(blz_file_close(&f), 0);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    end(rt);
}

/* Whoever has a lease is asked to give it up, and is waited for, by a thread. */
ON_EACH_BACKEND(opening_waits_until_a_lease_is_given_up)
{
    blz_rt *rt = begin(backend);
    blz_io io = {0};
    blz_handle opening;
    blz_file f;
    int fd;

    make_file("a", "x");
    fd = open(in_dir("a"), O_RDWR | O_CLOEXEC);
    check(fd >= 0 && fcntl(fd, F_SETSIG, SIGURG) == 0); /* which is ignored */
    check(fcntl(fd, F_SETLEASE, F_WRLCK) == 0);
    START(rt, &opening, blz_file_open(&io, &f, in_dir("a"), NULL));
    assert_false(blz_handle_done(&opening));
    check(fcntl(fd, F_SETLEASE, F_UNLCK) == 0);
    assert_int_equal(FINISH(rt, &opening), 0);
    blz_file_close(&f);
    close(fd);
    end(rt);
}

/* ---- reading and writing ---- */

ON_EACH_BACKEND(the_position_moves_and_offsets_do_not_move_it)
{
    blz_rt *rt = begin(backend);
    blz_file f = open_file(rt, "a", &to_read_and_write);
    blz_io io = {0};
    char buf[16] = {0};

    assert_int_equal(AWAIT(rt, blz_file_write_all(&io, &f, "0123456789", 10)), 10);
    assert_int_equal(io.done, 10);
    assert_int_equal(blz_file_seek(&f, 0, SEEK_CUR), 10);
    assert_int_equal(AWAIT(rt, blz_file_write_at(&io, &f, "ab", 2, 3)), 2);
    assert_int_equal(AWAIT(rt, blz_file_write_all_at(&io, &f, "yz", 2, 12)), 2);
    assert_int_equal(blz_file_seek(&f, 0, SEEK_CUR), 10);
    assert_int_equal(blz_file_seek(&f, 2, SEEK_SET), 2);
    assert_int_equal(AWAIT(rt, blz_file_read(&io, &f, buf, 4)), 4);
    assert_memory_equal(buf, "2ab5", 4);
    assert_int_equal(blz_file_seek(&f, -1, SEEK_CUR), 5);
    assert_int_equal(AWAIT(rt, blz_file_read_exact(&io, &f, buf, 9)), 9);
    assert_memory_equal(buf, "56789\0\0yz", 9);
    assert_int_equal(AWAIT(rt, blz_file_read(&io, &f, buf, 1)), 0);
    assert_int_equal(AWAIT(rt, blz_file_read_exact_at(&io, &f, buf, 5, 10)), -ENODATA);
    assert_int_equal(io.done, 4);
    assert_int_equal(AWAIT(rt, blz_file_read_at(&io, &f, buf, 5, -1)), -EINVAL);
    assert_int_equal(AWAIT(rt, blz_file_write_at(&io, &f, buf, 5, -7)), -EINVAL);
    assert_int_equal(AWAIT(rt, blz_file_read(&io, &f, buf, 0)), 0);
    assert_int_equal(blz_file_seek(&f, -1, SEEK_SET), -EINVAL);
    assert_int_equal(blz_file_seek(&f, 0, 77), -EINVAL);
    blz_file_close(&f);
    assert_int_equal(blz_file_seek(&f, 0, SEEK_SET), -EBADF);
    assert_int_equal(AWAIT(rt, blz_file_read(&io, &f, buf, 1)), -EBADF);
    end(rt);
}

ON_EACH_BACKEND(pieces_of_memory_are_read_and_written_together)
{
    blz_rt *rt = begin(backend);
    blz_file f = open_file(rt, "a", &to_read_and_write);
    blz_io io = {0};
    char a[3], b[4], text[] = "abcdefg";
    blz_iovec out[] = {{text, 3}, {text + 3, 4}}, in[] = {{a, 3}, {b, 4}};

    assert_int_equal(AWAIT(rt, blz_file_writev(&io, &f, out, 2)), 7);
    assert_int_equal(AWAIT(rt, blz_file_writev_at(&io, &f, out, 2, 7)), 7);
    assert_int_equal(AWAIT(rt, blz_file_readv_at(&io, &f, in, 2, 0)), 7);
    assert_memory_equal(a, "abc", 3);
    assert_int_equal(AWAIT(rt, blz_file_readv(&io, &f, in, 2)), 7);
    assert_memory_equal(b, "defg", 4);
    assert_int_equal(AWAIT(rt, blz_file_readv(&io, &f, in, 2)), 0);
    blz_file_close(&f);
    end(rt);
}

/* What is not in memory takes the way through the ring or the pool. */
ON_EACH_BACKEND(what_is_not_in_memory_is_read_all_the_same)
{
    enum { SIZE = 512 << 10 };
    blz_rt *rt = begin(backend);
    blz_file f = open_file(rt, "a", &to_read_and_write);
    char *data = malloc(SIZE), *back = malloc(SIZE);
    blz_io io = {0};
    int fd = open(in_dir("a"), O_RDONLY | O_CLOEXEC);

    for (int i = 0; i < SIZE; i++)
        data[i] = (char)(i * 31 >> 3);
    assert_int_equal(AWAIT(rt, blz_file_write_all(&io, &f, data, SIZE)), SIZE);
    assert_int_equal(AWAIT(rt, blz_file_sync(&io, &f)), 0);
    for (int i = 0; i < 3; i++) {
        memset(back, 0, SIZE);
        assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
        assert_int_equal(AWAIT(rt, blz_file_read_exact_at(&io, &f, back, SIZE, 0)), SIZE);
        assert_memory_equal(data, back, SIZE);
    }
    close(fd);
    free(data);
    free(back);
    blz_file_close(&f);
    end(rt);
}

ON_EACH_BACKEND(a_file_system_that_is_all_memory_needs_no_thread)
{
    char name[] = "/dev/shm/blitz-file-XXXXXX", buf[4];
    int fd = mkostemp(name, O_CLOEXEC);
    blz_rt *rt = begin(backend);
    blz_io io = {0};
    blz_stats stats;
    blz_file f;

    if (fd >= 0) {
        unlink(name);
        assert_int_equal(blz_file_from_fd(&f, fd, rt), 0);
        assert_int_equal(AWAIT(rt, blz_file_write_all(&io, &f, "shm", 3)), 3);
        assert_int_equal(AWAIT(rt, blz_file_read_at(&io, &f, buf, 4, 0)), 3);
        assert_memory_equal(buf, "shm", 3);
        blz_rt_stats(rt, &stats);
        assert_int_equal(stats.blocking_threads, 0);
        blz_file_close(&f);
    }
    end(rt);
}

/* ---- size, safety, metadata ---- */

ON_EACH_BACKEND(length_and_room_can_be_set)
{
    blz_rt *rt = begin(backend);
    blz_file f = open_file(rt, "a", &to_read_and_write);
    blz_metadata m;
    blz_io io = {0};
    int64_t rc;

    assert_int_equal(AWAIT(rt, blz_file_set_len(&io, &f, 5000)), 0);
    assert_int_equal(blz_file_seek(&f, 0, SEEK_END), 5000);
    assert_int_equal(AWAIT(rt, blz_file_set_len(&io, &f, -1)), -EINVAL);
    rc = AWAIT(rt, blz_file_allocate(&io, &f, 0, 65536, true));
    assert_true(rc == 0 || rc == -ENOTSUP);
    assert_int_equal(AWAIT(rt, blz_file_metadata(&io, &f, &m)), 0);
    assert_int_equal(m.size, 5000);
    if (rc == 0) {
        assert_true(m.blocks * 512 >= 65536);
        assert_int_equal(AWAIT(rt, blz_file_allocate(&io, &f, 4096, 4096, false)), 0);
        assert_int_equal(blz_file_seek(&f, 0, SEEK_END), 8192);
    }
    assert_int_equal(AWAIT(rt, blz_file_sync(&io, &f)), 0);
    assert_int_equal(AWAIT(rt, blz_file_sync_data(&io, &f)), 0);
    blz_file_close(&f);
    end(rt);
}

ON_EACH_BACKEND(metadata_tells_what_was_set)
{
    blz_rt *rt = begin(backend);
    blz_file f = open_file(rt, "a", &to_read_and_write), d;
    blz_metadata m, again;
    blz_io io = {0};
    struct stat st;

    assert_int_equal(AWAIT(rt, blz_file_set_mode(&io, &f, 0640)), 0);
    assert_int_equal(AWAIT(rt, blz_file_set_times(&io, &f, -1, 1234567890123456789)), 0);
    assert_int_equal(AWAIT(rt, blz_file_metadata(&io, &f, &m)), 0);
    check(stat(in_dir("a"), &st) == 0);
    assert_int_equal(m.type, BLZ_FILE_REGULAR);
    assert_int_equal(m.mode, 0640);
    assert_int_equal(m.accessed_ns, -1);
    assert_int_equal(m.modified_ns, 1234567890123456789);
    assert_true(m.inode == st.st_ino && m.device == st.st_dev && m.links == 1);
    assert_true(m.uid == st.st_uid && m.gid == st.st_gid && m.size == 0);
    assert_int_equal(AWAIT(rt, blz_file_set_times(&io, &f, BLZ_TIME_NOW, BLZ_TIME_KEEP)), 0);
    assert_int_equal(AWAIT(rt, blz_file_metadata(&io, &f, &again)), 0);
    assert_true(again.accessed_ns > m.modified_ns);
    assert_int_equal(again.modified_ns, m.modified_ns);
    d = open_file(rt, "", NULL);
    assert_int_equal(AWAIT(rt, blz_file_metadata(&io, &d, &m)), 0);
    assert_int_equal(m.type, BLZ_FILE_DIRECTORY);
    blz_file_close(&d);
    blz_file_close(&f);
    assert_int_equal(AWAIT(rt, blz_file_metadata(&io, &f, &m)), -EBADF);
    end(rt);
}

/* ---- locks ---- */

ON_EACH_BACKEND(a_lock_keeps_others_out_until_it_is_released)
{
    blz_rt *rt = begin(backend);
    blz_file a = open_file(rt, "a", &to_read_and_write), b = open_file(rt, "a", NULL);
    blz_io io = {0};
    blz_file_lock_op op = {0};
    blz_handle waiting;

    assert_int_equal(AWAIT(rt, blz_file_lock(&op, &a)), 0);
    assert_int_equal(AWAIT(rt, blz_file_try_lock_shared(&io, &b)), -EAGAIN);
    START(rt, &waiting, blz_file_lock(&op, &b));
    assert_int_equal(AWAIT(rt, blz_file_unlock(&io, &a)), 0);
    assert_int_equal(FINISH(rt, &waiting), 0);
    assert_int_equal(AWAIT(rt, blz_file_try_lock(&io, &a)), -EAGAIN);
    assert_int_equal(AWAIT(rt, blz_file_lock_shared(&op, &b)), 0);
    assert_int_equal(AWAIT(rt, blz_file_try_lock_shared(&io, &a)), 0);
    START(rt, &waiting, blz_file_lock(&op, &a));
    assert_int_equal(CANCEL(rt, &waiting), -ECANCELED);
    blz_file_close(&b); /* ends its lock */
    b = open_file(rt, "a", NULL);
    assert_int_equal(AWAIT(rt, blz_file_unlock(&io, &a)), 0);
    assert_int_equal(AWAIT(rt, blz_file_try_lock(&io, &b)), 0);
    blz_file_close(&a);
    blz_file_close(&b);
    end(rt);
}

/* ---- cancelling ---- */

/* A terminal is a device that makes its reader wait as long as we want. */
static int open_terminal(int *slave)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    struct termios raw;
    char name[64];

    check(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    check(ptsname_r(master, name, sizeof name) == 0);
    *slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    check(*slave >= 0 && tcgetattr(*slave, &raw) == 0);
    cfmakeraw(&raw);
    check(tcsetattr(*slave, TCSANOW, &raw) == 0);
    return master;
}

ON_EACH_BACKEND(closing_takes_effect_after_the_last_operation)
{
    blz_rt *rt = begin(backend);
    blz_io io = {0};
    blz_handle reading;
    blz_file f, copy;
    char buf[4] = {0};
    int slave, master = open_terminal(&slave);

    assert_int_equal(blz_file_from_fd(&f, slave, rt), 0);
    copy = f;
    START(rt, &reading, blz_file_read(&io, &f, buf, 4));
    assert_int_equal(blz_file_into_fd(&f), -EBUSY);
    assert_int_equal(blz_file_close(&f), 0);
    assert_int_equal(blz_file_close(&copy), -EBADF);
    assert_true(fcntl(slave, F_GETFD) >= 0);
    put(master, "hi", 2);
    assert_int_equal(FINISH(rt, &reading), 2);
    assert_memory_equal(buf, "hi", 2);
    assert_int_equal(fcntl(slave, F_GETFD), -1);
    close(master);
    end(rt);
}

/* The ring lets go of a wait; a thread does not, and then the result is the real one. */
ON_EACH_BACKEND(a_cancelled_read_gives_its_memory_back_when_it_is_done)
{
    blz_rt *rt = begin(backend);
    bool ring = strcmp(backend, "io_uring") == 0;
    blz_io io = {0};
    blz_handle reading;
    blz_file f;
    char buf[4] = {0};
    int slave, master = open_terminal(&slave);

    assert_int_equal(blz_file_from_fd(&f, slave, rt), 0);
    START(rt, &reading, blz_file_read(&io, &f, buf, 4));
    if (!ring) { /* the thread has taken it out of the queue */
        blz_stats stats;
        do
            blz_rt_stats(rt, &stats);
        while (stats.blocking_queued > 0);
    }
    blz_handle_cancel(&reading);
    turn_all(rt);
    if (!ring) {
        assert_false(blz_handle_done(&reading));
        put(master, "hi", 2);
    }
    assert_int_equal(FINISH(rt, &reading), ring ? -ECANCELED : 2);
    assert_int_equal(io.done, ring ? 0 : 2);
    blz_file_close(&f);
    close(master);
    end(rt);
}

ON_EACH_BACKEND(what_is_cancelled_in_the_queue_never_happens)
{
    blz_rt *rt;
    blz_io one = {0}, two = {0};
    blz_handle reading, opening;
    blz_file f, g;
    char buf[4] = {0};
    int slave, master = open_terminal(&slave);

    free_rt(begin(backend));
    if (strcmp(backend, "io_uring") == 0) { /* there the terminal keeps no thread busy */
        close(slave);
        close(master);
        rmdir(dir);
        return;
    }
    rt = new_rt(&(blz_options){
        .backend = backend, .embedded = true, .watchdog_ns = BLZ_NEVER, .max_blocking_threads = 1});
    assert_int_equal(blz_file_from_fd(&f, slave, rt), 0);
    START(rt, &reading, blz_file_read(&one, &f, buf, 4));
    START(rt, &opening, blz_file_create(&two, &g, in_dir("never")));
    assert_int_equal(CANCEL(rt, &opening), -ECANCELED);
    put(master, "x", 1);
    assert_int_equal(FINISH(rt, &reading), 1);
    assert_int_equal(access(in_dir("never"), F_OK), -1);
    blz_file_close(&f);
    close(master);
    end(rt);
}

/* Told to end at its first poll, or right behind it: there is no handle, and no descriptor. */
ON_EACH_BACKEND(a_cancelled_open_leaves_no_descriptor)
{
    blz_rt *rt = begin(backend);
    blz_io io = {0};
    blz_handle opening;
    blz_file f;
    int fds;

    make_file("a", "x");
    f = open_file(rt, "b", &to_read_and_write); /* all threads and rings are there */
    blz_file_close(&f);
    fds = nr_fds();
    for (int i = 0; i < 50; i++) {
        char name[16];
        snprintf(name, sizeof name, "new%d", i);
        START(rt, &opening, blz_file_create(&io, &f, in_dir(name)));
        blz_handle_cancel(&opening);
        if (FINISH(rt, &opening) == 0)
            assert_int_equal(blz_file_close(&f), 0); /* it was faster */
        else
            assert_int_equal(blz_file_close(&f), -EBADF);
        assert_int_equal(nr_fds(), fds);
    }
    end(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(options_decide_what_open_does),
        TEST(options_that_make_no_sense_are_refused),
        TEST(a_path_begins_at_a_directory),
        TEST(a_path_stays_beneath_its_directory),
        TEST(what_is_not_a_file_is_refused_without_waiting),
        TEST(descriptors_are_close_on_exec_and_in_blocking_mode),
        TEST(opening_waits_until_a_lease_is_given_up),
        TEST(the_position_moves_and_offsets_do_not_move_it),
        TEST(pieces_of_memory_are_read_and_written_together),
        TEST(what_is_not_in_memory_is_read_all_the_same),
        TEST(a_file_system_that_is_all_memory_needs_no_thread),
        TEST(length_and_room_can_be_set),
        TEST(metadata_tells_what_was_set),
        TEST(a_lock_keeps_others_out_until_it_is_released),
        TEST(closing_takes_effect_after_the_last_operation),
        TEST(a_cancelled_read_gives_its_memory_back_when_it_is_done),
        TEST(what_is_cancelled_in_the_queue_never_happens),
        TEST(a_cancelled_open_leaves_no_descriptor),
    };
    return RUN_TESTS(tests);
}
