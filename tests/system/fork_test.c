/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: system/fork.h and system/env.h. */
#include "conform.h"

#include "system/env.h"
#include "system/fork.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* The exit status of a child that runs `fn`. */
static int in_child(int (*fn)(uint32_t *word), uint32_t *word)
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(fn(word));
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int value_of(uint32_t *word)
{
    return (int)*word;
}

static int value_in_grandchild(uint32_t *word)
{
    return in_child(value_of, word);
}

static int free_it(uint32_t *word)
{
    blz__fork_word_free(word);
    return 0;
}

static int make_another(uint32_t *word)
{
    uint32_t *mine = blz__fork_word_new();
    int value;

    (void)word;
    if (!mine)
        return 9;
    value = (int)*mine * 2 + in_child(value_of, mine);
    blz__fork_word_free(mine);
    return value;
}

static void a_word_reads_1_where_it_was_made(void **state)
{
    uint32_t *word = blz__fork_word_new();

    (void)state;
    assert_non_null(word);
    assert_int_equal(*word, 1);
    in_child(value_of, word);
    assert_int_equal(*word, 1);
    blz__fork_word_free(word);
}

static void a_word_reads_0_in_a_forked_child(void **state)
{
    uint32_t *word = blz__fork_word_new();

    (void)state;
    assert_non_null(word);
    assert_int_equal(in_child(value_of, word), 0);
    assert_int_equal(in_child(value_in_grandchild, word), 0);
    blz__fork_word_free(word);
}

static void every_word_of_a_process_is_cleared_in_its_child(void **state)
{
    uint32_t *words[20];

    (void)state;
    for (int i = 0; i < 20; i++)
        assert_non_null(words[i] = blz__fork_word_new());
    for (int i = 0; i < 20; i++)
        assert_int_equal(in_child(value_of, words[i]), 0);
    for (int i = 0; i < 20; i++)
        blz__fork_word_free(words[(i * 7) % 20]);
}

static void a_child_may_free_the_word_of_its_parent(void **state)
{
    uint32_t *word = blz__fork_word_new();

    (void)state;
    assert_non_null(word);
    assert_int_equal(in_child(free_it, word), 0);
    assert_int_equal(*word, 1);
    blz__fork_word_free(word);
}

static void a_child_has_words_of_its_own(void **state)
{
    (void)state;
    assert_int_equal(in_child(make_another, NULL), 2);
}

static void freeing_no_word_is_allowed(void **state)
{
    (void)state;
    blz__fork_word_free(NULL);
}

static void a_variable_of_the_environment_is_found(void **state)
{
    (void)state;
    assert_int_equal(setenv("BLZ_CONFORM", "yes", 1), 0);
    assert_string_equal(blz__env_get("BLZ_CONFORM"), "yes");
    assert_int_equal(unsetenv("BLZ_CONFORM"), 0);
    assert_null(blz__env_get("BLZ_CONFORM"));
}

static void an_empty_variable_is_not_a_missing_one(void **state)
{
    (void)state;
    assert_int_equal(setenv("BLZ_CONFORM", "", 1), 0);
    assert_string_equal(blz__env_get("BLZ_CONFORM"), "");
    assert_int_equal(unsetenv("BLZ_CONFORM"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_word_reads_1_where_it_was_made),
        TEST(a_word_reads_0_in_a_forked_child),
        TEST(every_word_of_a_process_is_cleared_in_its_child),
        TEST(a_child_may_free_the_word_of_its_parent),
        TEST(a_child_has_words_of_its_own),
        TEST(freeing_no_word_is_allowed),
        TEST(a_variable_of_the_environment_is_found),
        TEST(an_empty_variable_is_not_a_missing_one),
    };

    return RUN_TESTS(tests);
}
