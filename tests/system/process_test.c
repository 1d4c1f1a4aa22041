/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: system/process.h, ends, signals and sets. Launches are in process_launch_test.c. */
#include "launched.h"

char this_program[PATH_MAX];

/* A child that runs until its input is closed. */
static void launch_waiting(struct launched *it)
{
    PLAN(it, "wait");
    assert_int_equal(launch(it), 0);
}

static void end_waiting(struct launched *it)
{
    close_input(it);
    await_and_forget(it, 0);
}

static bool is_readable(const blz__process *process)
{
    struct pollfd it = {.fd = blz__process_ends_handle(process), .events = POLLIN};

    return poll(&it, 1, 0) == 1;
}

/* ---- the end ---- */

static void a_child_that_runs_has_no_status(void **state)
{
    struct launched it;

    (void)state;
    launch_waiting(&it);
    assert_false(blz__process_has_ended(&it.child));
    assert_int_equal(blz__process_status(&it.child), -EAGAIN);
    assert_int_equal(blz__process_reap(&it.child), -EAGAIN);
    end_waiting(&it);
}

static void a_signal_that_kills_is_in_the_status(void **state)
{
    struct launched it;
    int64_t status;

    (void)state;
    launch_waiting(&it);
    assert_int_equal(blz__process_signal(&it.child, SIGTERM), 0);
    status = blz__process_await(&it.child);
    assert_int_equal(blz_exit_signal(status), SIGTERM);
    assert_int_equal(blz_exit_code(status), -1);
    forget(&it);
}

static void the_status_is_there_until_the_child_is_reaped(void **state)
{
    struct launched it;

    (void)state;
    PLAN(&it, "exit", "7");
    assert_int_equal(launch(&it), 0);
    until_ended(&it.child);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(blz__process_status(&it.child), 7);
        assert_true(blz__process_has_ended(&it.child));
    }
    assert_int_equal(blz__process_reap(&it.child), 7);
    forget(&it);
}

static void a_child_is_reaped_once(void **state)
{
    struct launched it;

    (void)state;
    PLAN(&it, "exit", "0");
    assert_int_equal(launch(&it), 0);
    assert_int_equal(blz__process_await(&it.child), 0);
    assert_int_equal(blz__process_status(&it.child), -ECHILD);
    assert_int_equal(blz__process_reap(&it.child), -ECHILD);
    assert_int_equal(blz__process_await(&it.child), -ECHILD);
    assert_true(blz__process_has_ended(&it.child));
    forget(&it);
}

static void a_child_that_a_stranger_has_reaped_has_no_status(void **state)
{
    struct launched it;

    (void)state;
    PLAN(&it, "exit", "0");
    assert_int_equal(launch(&it), 0);
    assert_int_equal(waitpid(-1, NULL, 0), it.child.id);
    assert_int_equal(blz__process_status(&it.child), -ECHILD);
    assert_int_equal(blz__process_await(&it.child), -ECHILD);
    forget(&it);
}

static void other_children_are_not_reaped(void **state)
{
    struct launched it;
    pid_t other = fork();

    (void)state;
    if (other == 0)
        _exit(9);
    PLAN(&it, "exit", "0");
    assert_int_equal(launch(&it), 0);
    await_and_forget(&it, 0);
    assert_int_equal(waitpid(other, NULL, 0), other);
}

static void the_handle_is_readable_from_the_end_on(void **state)
{
    struct launched it;

    (void)state;
    launch_waiting(&it);
    assert_false(is_readable(&it.child));
    close_input(&it);
    until_ended(&it.child);
    assert_true(is_readable(&it.child));
    assert_true(is_readable(&it.child));
    assert_int_equal(blz__process_reap(&it.child), 0);
    assert_true(is_readable(&it.child));
    forget(&it);
}

static void the_handle_is_not_inherited(void **state)
{
    struct launched it;

    (void)state;
    launch_waiting(&it);
    assert_int_equal(blz__handle_is_inherited(blz__process_ends_handle(&it.child)), 0);
    end_waiting(&it);
}

static void a_child_that_is_closed_runs_on(void **state)
{
    struct launched it;
    int64_t id;
    int status;

    (void)state;
    launch_waiting(&it);
    id = it.child.id;
    blz__process_close(&it.child);
    blz__process_close(&it.child); /* it is closed already */
    assert_int_equal(waitpid((pid_t)id, NULL, WNOHANG), 0);
    close_input(&it);
    assert_int_equal(waitpid((pid_t)id, &status, 0), id); /* a zombie until then */
    assert_int_equal(status, 0);
    forget(&it);
}

/* ---- processes that are not ours ---- */

static void any_process_can_be_watched(void **state)
{
    struct launched it;
    blz__process other;
    int rc;

    (void)state;
    launch_waiting(&it);
    rc = blz__process_open(&other, it.child.id);
    assert_int_equal(rc, 0);
    assert_int_equal(other.id, it.child.id);
    assert_false(blz__process_has_ended(&other));
    close_input(&it);
    until_ended(&other);
    assert_true(blz__process_has_ended(&other));
    assert_int_equal(blz__process_status(&it.child), 0); /* nothing was taken from its parent */
    blz__process_close(&other);
    await_and_forget(&it, 0);
}

static void a_process_that_is_no_child_has_no_status(void **state)
{
    blz__process parent;

    (void)state;
    assert_int_equal(blz__process_open(&parent, getppid()), 0);
    assert_false(blz__process_has_ended(&parent));
    assert_int_equal(blz__process_status(&parent), -ECHILD);
    assert_int_equal(blz__process_reap(&parent), -ECHILD);
    blz__process_close(&parent);
}

static void a_number_that_no_process_has_is_found_nowhere(void **state)
{
    struct launched it;
    blz__process none;

    (void)state;
    PLAN(&it, "exit", "0");
    assert_int_equal(launch(&it), 0);
    assert_int_equal(blz__process_await(&it.child), 0);
    assert_int_equal(blz__process_open(&none, it.child.id), -ESRCH);
    forget(&it);
}

static void a_number_that_cannot_be_is_invalid(void **state)
{
    blz__process none;

    (void)state;
    assert_int_equal(blz__process_open(&none, 0), -EINVAL);
    assert_int_equal(blz__process_open(&none, -1), -EINVAL);
    assert_int_equal(blz__process_open(&none, INT64_MAX), -EINVAL);
    assert_int_equal(blz__process_open(&none, (INT64_C(1) << 32) + getpid()), -EINVAL);
}

/* ---- signals ---- */

static void signal_zero_only_checks(void **state)
{
    struct launched it;

    (void)state;
    launch_waiting(&it);
    assert_int_equal(blz__process_signal(&it.child, 0), 0);
    assert_int_equal(blz__process_status(&it.child), -EAGAIN);
    end_waiting(&it);
}

static void a_signal_that_there_is_not_is_invalid(void **state)
{
    struct launched it;

    (void)state;
    launch_waiting(&it);
    assert_int_equal(blz__process_signal(&it.child, 1000), -EINVAL);
    assert_int_equal(blz__process_signal(&it.child, -1), -EINVAL);
    end_waiting(&it);
}

static void to_kill_a_child_that_has_ended_is_harmless(void **state)
{
    struct launched it;

    (void)state;
    PLAN(&it, "exit", "5");
    assert_int_equal(launch(&it), 0);
    until_ended(&it.child);
    assert_int_equal(blz__process_signal(&it.child, SIGKILL), 0);
    await_and_forget(&it, 5);
}

static void a_child_that_a_stranger_has_reaped_gets_no_signal(void **state)
{
    struct launched it;

    (void)state;
    PLAN(&it, "exit", "0");
    it.plan.flags = BLZ__PROCESS_GROUP;
    assert_int_equal(launch(&it), 0);
    assert_int_equal(waitpid((pid_t)it.child.id, NULL, 0), it.child.id);
    assert_int_equal(blz__process_signal(&it.child, SIGKILL), -ESRCH);
    assert_int_equal(blz__process_signal_group(&it.child, SIGKILL), -ESRCH);
    forget(&it);
}

/* A child that leads a group, with one of its own in it; both have begun. */
static void launch_family(struct launched *it, const char *what)
{
    char begun[6];

    PLAN(it, what);
    it->plan.flags = BLZ__PROCESS_GROUP;
    assert_int_equal(launch(it), 0);
    assert_int_equal(read(it->output, begun, 6), 6);
}

static void a_signal_to_a_group_reaches_all_of_it(void **state)
{
    struct launched it;
    int rc;

    (void)state;
    launch_family(&it, "parent");
    rc = blz__process_signal_group(&it.child, SIGKILL);
    assert_int_equal(rc, 0);
    assert_string_equal(output_of(&it), ""); /* both have closed it */
    assert_int_equal(blz_exit_signal(blz__process_await(&it.child)), SIGKILL);
    forget(&it);
}

static void a_signal_to_a_group_reaches_what_its_leader_has_left(void **state)
{
    struct launched it;

    (void)state;
    launch_family(&it, "leave");
    until_ended(&it.child);
    assert_int_equal(blz__process_signal_group(&it.child, 0), 0);
    assert_int_equal(blz__process_signal_group(&it.child, SIGKILL), 0);
    assert_string_equal(output_of(&it), "");
    await_and_forget(&it, 0);
}

static void a_group_of_a_zombie_alone_takes_signals(void **state)
{
    struct launched it;

    (void)state;
    PLAN(&it, "exit", "0");
    it.plan.flags = BLZ__PROCESS_GROUP;
    assert_int_equal(launch(&it), 0);
    until_ended(&it.child);
    assert_int_equal(blz__process_signal_group(&it.child, SIGKILL), 0);
    await_and_forget(&it, 0);
}

static void a_signal_to_the_leader_leaves_its_group(void **state)
{
    struct launched it;
    struct pollfd output;

    (void)state;
    launch_family(&it, "parent");
    assert_int_equal(blz__process_signal(&it.child, SIGKILL), 0);
    until_ended(&it.child);
    output = (struct pollfd){.fd = it.output, .events = POLLIN};
    assert_int_equal(poll(&output, 1, 0), 0); /* the other has it still */
    assert_int_equal(blz__process_signal_group(&it.child, SIGKILL), 0);
    assert_string_equal(output_of(&it), "");
    assert_int_equal(blz_exit_signal(blz__process_await(&it.child)), SIGKILL);
    forget(&it);
}

/* ---- sets ---- */

static void a_set_tells_which_have_ended(void **state)
{
    struct launched its[3];
    blz_sysfd set;
    void *tags[8];

    (void)state;
    assert_int_equal(blz__process_set_open(&set), 0);
    for (int i = 0; i < 3; i++) {
        launch_waiting(&its[i]);
        assert_int_equal(blz__process_set_add(set, &its[i].child, &its[i]), 0);
    }
    for (int i = 2; i >= 0; i--) {
        int n;
        close_input(&its[i]);
        do {
            n = blz__process_set_wait(set, tags, 8);
        } while (n == 0);
        assert_int_equal(n, 1);
        assert_ptr_equal(tags[0], &its[i]);
        blz__process_set_remove(set, &its[i].child);
        await_and_forget(&its[i], 0);
    }
    blz__process_set_close(set);
}

static void one_that_has_ended_before_it_is_added_is_told_of(void **state)
{
    struct launched it;
    blz_sysfd set;
    void *tags[1];

    (void)state;
    assert_int_equal(blz__process_set_open(&set), 0);
    PLAN(&it, "exit", "0");
    assert_int_equal(launch(&it), 0);
    until_ended(&it.child);
    assert_int_equal(blz__process_set_add(set, &it.child, &it), 0);
    for (int i = 0; i < 2; i++) /* again, since it is not taken out */
        while (blz__process_set_wait(set, tags, 1) != 1)
            continue;
    assert_ptr_equal(tags[0], &it);
    blz__process_set_remove(set, &it.child);
    await_and_forget(&it, 0);
    blz__process_set_close(set);
}

static void a_process_is_in_a_set_once(void **state)
{
    struct launched it;
    blz_sysfd set;

    (void)state;
    assert_int_equal(blz__process_set_open(&set), 0);
    launch_waiting(&it);
    assert_int_equal(blz__process_set_add(set, &it.child, &it), 0);
    assert_int_equal(blz__process_set_add(set, &it.child, &it), -EEXIST);
    blz__process_set_remove(set, &it.child);
    assert_int_equal(blz__process_set_add(set, &it.child, &it), 0);
    blz__process_set_close(set); /* it forgets its processes */
    end_waiting(&it);
}

static void one_that_was_taken_out_is_not_told_of(void **state)
{
    struct launched out, in;
    blz_sysfd set;
    void *tags[8];
    int n;

    (void)state;
    assert_int_equal(blz__process_set_open(&set), 0);
    launch_waiting(&out);
    launch_waiting(&in);
    assert_int_equal(blz__process_set_add(set, &out.child, &out), 0);
    assert_int_equal(blz__process_set_add(set, &in.child, &in), 0);
    blz__process_set_remove(set, &out.child);
    close_input(&out);
    close_input(&in);
    until_ended(&out.child);
    until_ended(&in.child);
    do {
        n = blz__process_set_wait(set, tags, 8);
    } while (n == 0);
    assert_int_equal(n, 1);
    assert_ptr_equal(tags[0], &in);
    blz__process_set_close(set);
    await_and_forget(&out, 0);
    await_and_forget(&in, 0);
}

static void a_set_is_not_inherited(void **state)
{
    blz_sysfd set;

    (void)state;
    assert_int_equal(blz__process_set_open(&set), 0);
    assert_int_equal(blz__handle_is_inherited(set), 0);
    blz__process_set_close(set);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_child_that_runs_has_no_status),
        TEST(a_signal_that_kills_is_in_the_status),
        TEST(the_status_is_there_until_the_child_is_reaped),
        TEST(a_child_is_reaped_once),
        TEST(a_child_that_a_stranger_has_reaped_has_no_status),
        TEST(other_children_are_not_reaped),
        TEST(the_handle_is_readable_from_the_end_on),
        TEST(the_handle_is_not_inherited),
        TEST(a_child_that_is_closed_runs_on),
        TEST(any_process_can_be_watched),
        TEST(a_process_that_is_no_child_has_no_status),
        TEST(a_number_that_no_process_has_is_found_nowhere),
        TEST(a_number_that_cannot_be_is_invalid),
        TEST(signal_zero_only_checks),
        TEST(a_signal_that_there_is_not_is_invalid),
        TEST(to_kill_a_child_that_has_ended_is_harmless),
        TEST(a_child_that_a_stranger_has_reaped_gets_no_signal),
        TEST(a_signal_to_a_group_reaches_all_of_it),
        TEST(a_signal_to_a_group_reaches_what_its_leader_has_left),
        TEST(a_group_of_a_zombie_alone_takes_signals),
        TEST(a_signal_to_the_leader_leaves_its_group),
        TEST(a_set_tells_which_have_ended),
        TEST(one_that_has_ended_before_it_is_added_is_told_of),
        TEST(a_process_is_in_a_set_once),
        TEST(one_that_was_taken_out_is_not_told_of),
        TEST(a_set_is_not_inherited),
    };

    if (argc > 1)
        return be_child(argc, argv);
    if (blz__process_supported() < 0) {
        fprintf(stderr, "skipped: all of system/process.h: -ENOTSUP on this system\n");
        return 0;
    }
    return begin_launches() ? RUN_TESTS(tests) : 1;
}
