/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program around a table of models: picks them by name, runs them, and turns the outcome into
 * an exit status that a mutation driver can tell apart: held, failed, mutant never reached.
 *
 * Code under test that calls abort or follows a wild pointer fails its model like an assertion
 * does, with a trace: the signal handler leaves through model_fail.
 */
#include "explorer.h"
#include "settings.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef MODEL_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

/* ---- Crashes ---- */

static void on_crash(int number)
{
    if (model__run.active)
        model_fail("the code under test died of signal %d (%s)", number,
                   number == SIGABRT ? "abort" : "a wild access");
    signal(number, SIG_DFL);
    raise(number);
}

/* SA_NODEFER, because the handler does not return. */
static void catch_signal(int number, int flags)
{
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_NODEFER | flags};

    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

#ifdef MODEL_ASAN

static void print_trace_of_death(void)
{
    if (model__run.active)
        model__trace_print();
}

static void catch_crashes(void)
{
    catch_signal(SIGABRT, 0);
    __sanitizer_set_death_callback(print_trace_of_death);
}

#else

/* On a stack of its own, since the fibre's may be used up. */
static void catch_crashes(void)
{
    static char signal_stack[64 * 1024];
    stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};

    sigaltstack(&stack, NULL);
    catch_signal(SIGABRT, 0);
    catch_signal(SIGSEGV, SA_ONSTACK);
    catch_signal(SIGBUS, SA_ONSTACK);
}

#endif

/* ---- Running ---- */

static const struct model *find_model(const char *name, const struct model *models, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(models[i].name, name) == 0)
            return &models[i];
    return NULL;
}

static bool all_names_exist(int argc, char **argv, const struct model *models, size_t count)
{
    bool exist = true;

    for (int i = 1; i < argc; i++)
        if (find_model(argv[i], models, count) == NULL) {
            fprintf(stderr, "model: there is no %s\n", argv[i]);
            exist = false;
        }
    return exist;
}

static bool was_asked_for(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc <= 1;
}

int model_main(int argc, char **argv, const struct model *models, size_t count)
{
    unsigned verdicts[3] = {0};

    if (!all_names_exist(argc, argv, models, count) || !model__sites_prepare())
        return 2;
    catch_crashes();
    for (size_t i = 0; i < count; i++)
        if (was_asked_for(argc, argv, models[i].name)) {
            verdicts[model_check(models[i].name, models[i].test, &models[i].options)]++;
            fflush(stdout);
        }
    if (model__settings()->list_sites)
        model__sites_print();
    printf("%u passed, %u failed", verdicts[MODEL_HOLDS] + verdicts[MODEL_STOPPED],
           verdicts[MODEL_FAILED]);
    if (verdicts[MODEL_STOPPED] > 0)
        printf(", %u STOPPED at a limit", verdicts[MODEL_STOPPED]);
    printf("\n");
    if (verdicts[MODEL_FAILED] > 0)
        return 1;
    if (model__mutant_missed()) {
        printf("the mutant was never reached: %s\n", model__settings()->mutate);
        return 3;
    }
    return 0;
}
