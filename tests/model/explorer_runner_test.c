/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the explorer itself: the program around the models. Run without arguments, it starts
 * itself with names of models and settings in the environment, and looks at what that prints and
 * how it exits.
 */
#include "base/atomic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* ---- The models ---- */

static uint32_t data, flag, lock, result;

static void send(void *unused)
{
    (void)unused;
    blz__store(&data, 1, RELAXED);
    blz__store(&flag, 1, RELEASE);
}

static void receive(void *unused)
{
    (void)unused;
    if (blz__load(&flag, ACQUIRE) == 1)
        model_assert(blz__load(&data, RELAXED) == 1);
}

static void message_passing(void)
{
    data = flag = 0;
    model_thread a = model_start(send, NULL), b = model_start(receive, NULL);
    model_join(a);
    model_join(b);
}

static void left(void *unused)
{
    (void)unused;
    blz__store(&data, 1, RELAXED);
    blz__fence_seq_cst();
    result += blz__load(&flag, RELAXED);
}

static void right(void *unused)
{
    (void)unused;
    blz__store(&flag, 1, RELAXED);
    blz__fence_seq_cst();
    result += blz__load(&data, RELAXED);
}

static void store_buffering(void)
{
    data = flag = result = 0;
    model_thread a = model_start(left, NULL), b = model_start(right, NULL);
    model_join(a);
    model_join(b);
    model_assert(result > 0);
}

static void take_lock(void *unused)
{
    uint32_t unlocked = 0;

    (void)unused;
    if (blz__cas(&lock, &unlocked, 1, ACQUIRE, RELAXED)) {
        blz__plain_write(&data);
        data++;
        blz__store(&lock, 0, RELEASE);
    }
}

static void try_lock(void)
{
    data = lock = 0;
    model_thread a = model_start(take_lock, NULL), b = model_start(take_lock, NULL);
    model_join(a);
    model_join(b);
}

/* Needs three preemptions: two threads that alternate. */
static void count_to(uint32_t first)
{
    for (uint32_t next = first; next < 5; next += 2)
        if (blz__fetch_add(&data, 0, RELAXED) == next)
            blz__fetch_add(&data, 1, RELAXED);
}

static void count_evens(void *unused)
{
    (void)unused;
    count_to(0);
}

static void count_odds(void *unused)
{
    (void)unused;
    count_to(1);
}

static void alternation(void)
{
    data = 0;
    model_thread a = model_start(count_evens, NULL), b = model_start(count_odds, NULL);
    model_join(a);
    model_join(b);
    model_assert(data < 5);
}

static const struct model models[] = {
    {"message_passing", message_passing, {0}},
    {"store_buffering", store_buffering, {0}},
    {"try_lock", try_lock, {0}},
    {"alternation", alternation, {0}},
};

/* ---- The program, seen from outside ---- */

static const char *program;
static unsigned failures;
static char output[64 * 1024];

/* Runs the program and returns its exit status, its output in `output`. */
static int run(const char *environment, const char *names)
{
    char command[4096];

    snprintf(command, sizeof command, "%s '%s' %s 2>&1", environment, program, names);
    FILE *pipe = popen(command, "r");
    if (pipe == NULL)
        return -1;
    size_t length = fread(output, 1, sizeof output - 1, pipe);
    output[length] = '\0';
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check(const char *what, const char *environment, const char *names, int status,
                  const char *words)
{
    int found = run(environment, names);

    if (found == status && strstr(output, words) != NULL)
        return;
    failures++;
    printf("FAILED: %s: %s %s: exit %d, expected %d and the words \"%s\"; output:\n%s\n", what,
           environment, names, found, status, words, output);
}

static void check_outcomes(void)
{
    check("a model that holds", "", "message_passing", 0, "1 passed, 0 failed");
    check("the extent is stated", "", "message_passing", 0, "exhaustive up to 2 preemptions");
    check("all models of the table", "", "message_passing store_buffering try_lock alternation", 0,
          "4 passed, 0 failed");
    check("an unknown name", "", "nonsense", 2, "there is no nonsense");
}

static void check_limits(void)
{
    check("the bound hides a failure", "MODEL_PREEMPTIONS=1", "alternation", 0,
          "exhaustive up to 1 preemptions");
    check("a higher bound shows it", "MODEL_PREEMPTIONS=3", "alternation", 1, "data < 5");
    check("a limit is loud", "MODEL_MAX_EXECUTIONS=3", "message_passing", 0,
          "3 executions, STOPPED at the limit of 3 executions");
    check("a malformed number", "MODEL_SECONDS=soon", "message_passing", 2, "not a number");
    check("random search finds it", "MODEL_RANDOM=1 MODEL_MAX_EXECUTIONS=100000", "alternation", 1,
          "data < 5");
    check("random search says so", "MODEL_RANDOM=7 MODEL_MAX_EXECUTIONS=50", "try_lock", 0,
          "random from seed 7");
}

static void check_mutants(void)
{
#define MUTANT(site) "MODEL_MUTATE=explorer_runner_test.c:" site
    check("a weak store", MUTANT("send:store#2=relaxed"), "message_passing", 1,
          "(stale: newest is 1)");
    check("a weak load", MUTANT("receive:load#1=relaxed"), "message_passing", 1, "the mutant");
    check("an equivalent mutant", MUTANT("send:store#1=relaxed"), "message_passing", 0, "1 passed");
    check("a weak fence", MUTANT("left:fence#1=acquire"), "store_buffering", 1, "result > 0");
    check("no fence", MUTANT("right:fence#1=drop"), "store_buffering", 1, "dropped");
    check("a weak cas", MUTANT("take_lock:cas#1=relaxed"), "try_lock", 1, "data race");
    check("a weak unlock", MUTANT("take_lock:store#1=relaxed"), "try_lock", 1, "data race");
    check("two at once", MUTANT("send:store#1=relaxed,x.c:f:load#1=relaxed"), "message_passing", 0,
          "1 passed");
    check("a failing cas", MUTANT("take_lock:casfail#1=relaxed"), "try_lock", 0, "1 passed");
    check("a site not executed", MUTANT("left:fence#1=drop"), "try_lock", 3, "never reached");
    check("a site that is not there", MUTANT("left:fence#2=drop"), "store_buffering", 3,
          "never reached");
    check("no mutant", "MODEL_MUTATE=nonsense", "try_lock", 2, "malformed");
    check("a load cannot be dropped", MUTANT("receive:load#1=drop"), "try_lock", 2, "malformed");
}

static void check_site_list(void)
{
    check("a load", "MODEL_LIST_SITES=1", "message_passing", 0,
          "site explorer_runner_test.c:receive:load#2 relaxed line ");
    check("a cas", "MODEL_LIST_SITES=1", "try_lock", 0,
          "site explorer_runner_test.c:take_lock:cas#1 acquire/relaxed line ");
    if (strstr(output, "receive:load") != NULL) {
        failures++;
        printf("FAILED: a site is listed that was not executed\n");
    }
}

/* What the report says must bring the same failure back, in one execution. */
static void check_replay(const char *environment, const char *name)
{
    static char replay[4096];

    run(environment, name);
    const char *found = strstr(output, "MODEL_REPLAY=");
    size_t length = found != NULL ? strcspn(found, " \n") : 0;
    snprintf(replay, sizeof replay, "%.*s %s", (int)length, found != NULL ? found : "",
             environment);
    check("the replay fails too", replay, name, 1, "FAILED after 1 executions");
}

static void check_replays(void)
{
    check_replay("MODEL_PREEMPTIONS=3", "alternation");
    check_replay("MODEL_RANDOM=3", "alternation");
    check_replay(MUTANT("send:store#2=relaxed"), "message_passing");
    check("a replay that holds", "MODEL_REPLAY=2.3:1", "message_passing", 0,
          "1 executions, replayed, and holds");
    check("a malformed replay", "MODEL_REPLAY=gibberish", "message_passing", 2, "malformed");
}

/* Limits that are meant for the models must not reach this test of the defaults. */
static void forget_limits(void)
{
    unsetenv("MODEL_PREEMPTIONS");
    unsetenv("MODEL_SECONDS");
    unsetenv("MODEL_STALE_READS");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return model_main(argc, argv, models, sizeof models / sizeof models[0]);
    program = argv[0];
    forget_limits();
    check_outcomes();
    check_limits();
    check_mutants();
    check_site_list();
    check_replays();
    printf("%u failed\n", failures);
    return failures > 0;
}
