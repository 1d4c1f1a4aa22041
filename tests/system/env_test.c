/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: system/env.h. That a raised program reads nothing is in unit/privilege_test.c. */
#include "conform.h"

#include "system/env.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_variable_is_read(void **state)
{
    (void)state;
    setenv("BLITZ_TEST", "a value", 1);
    assert_string_equal(blz__env_get("BLITZ_TEST"), "a value");
    setenv("BLITZ_TEST", "", 1);
    assert_string_equal(blz__env_get("BLITZ_TEST"), "");
    unsetenv("BLITZ_TEST");
}

static void a_variable_that_is_not_set_is_none(void **state)
{
    (void)state;
    unsetenv("BLITZ_TEST");
    assert_null(blz__env_get("BLITZ_TEST"));
}

static size_t find_in_list(const char *text)
{
    const char *const *list = blz__env_list();
    size_t found = 0;

    for (; *list; list++)
        found += strcmp(*list, text) == 0;
    return found;
}

static void the_list_has_each_variable_once(void **state)
{
    (void)state;
    setenv("BLITZ_TEST", "one=two", 1);
    assert_int_equal(find_in_list("BLITZ_TEST=one=two"), 1);
    unsetenv("BLITZ_TEST");
    assert_int_equal(find_in_list("BLITZ_TEST=one=two"), 0);
}

/* Runs fn in a forked process: the code of its end. */
static int code_of_fork(int (*fn)(void))
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(fn());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int list_of_nothing(void)
{
    clearenv();
    return blz__env_list() && !*blz__env_list() ? 0 : 1;
}

static void the_list_of_an_empty_environment_is_a_list(void **state)
{
    (void)state;
    assert_int_equal(code_of_fork(list_of_nothing), 0);
}

static void the_number_is_that_of_this_process(void **state)
{
    (void)state;
    assert_int_equal(blz__env_pid(), getpid());
    assert_int_equal(blz__env_pid(), getpid());
}

static int number_in_child(void)
{
    return blz__env_pid() == getpid() && blz__env_pid() != getppid() ? 0 : 1;
}

static void a_forked_child_has_its_own_number(void **state)
{
    (void)state;
    assert_true(blz__env_pid() > 0);
    assert_int_equal(code_of_fork(number_in_child), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_variable_is_read),
        TEST(a_variable_that_is_not_set_is_none),
        TEST(the_list_has_each_variable_once),
        TEST(the_list_of_an_empty_environment_is_a_list),
        TEST(the_number_is_that_of_this_process),
        TEST(a_forked_child_has_its_own_number),
    };
    return RUN_TESTS(tests);
}
