/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The explorer's half of the comparison in axioms.py: reads litmus programs, one a line, explores
 * each, and prints all its outcomes and a line "end".
 *
 * Threads are separated by ';', operations by ' ':
 *
 *     L<location><order>                       load
 *     S<location><value><order>                store
 *     U<location><value><order>                swap
 *     C<location><16 * expected + new><order><order of failure>
 *     F<order>                                 fence
 *
 * with the orders r(elaxed) a(cquire) l(release) b(oth) s(eq_cst). An outcome is the values read
 * (a CAS that succeeds: plus 100), the final values, and for each pair of threads how many
 * operations of the second happen before the end of the first.
 */
#include "../explorer.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PROGRAM_THREADS 4
#define MAX_OPERATIONS      8
#define LOCATIONS           2

struct operation {
    char kind;
    int location;
    uint32_t value;
    struct model_site site;
};

static struct {
    struct operation operations[MAX_OPERATIONS];
    int count;
    uint32_t results[MAX_OPERATIONS];
    int known[MAX_PROGRAM_THREADS];
} threads[MAX_PROGRAM_THREADS];

static int nr_threads;
static uint32_t memory[LOCATIONS];
static char **outcomes;
static size_t nr_outcomes, room;

/* ---- Running a program ---- */

static uint32_t compare_and_swap(struct operation *op)
{
    uint32_t expected = op->value / 16;
    bool swapped = model_cas(&memory[op->location], sizeof memory[0], &expected, op->value % 16,
                             false, &op->site);
    return expected + (swapped ? 100 : 0);
}

static uint32_t execute(struct operation *op)
{
    switch (op->kind) {
    case 'L':
        return (uint32_t)model_load(&memory[op->location], sizeof memory[0], &op->site);
    case 'S':
        model_store(&memory[op->location], sizeof memory[0], op->value, &op->site);
        return 0;
    case 'U':
        return (uint32_t)model_rmw(&memory[op->location], sizeof memory[0], MODEL_SWAP, op->value,
                                   &op->site);
    case 'C':
        return compare_and_swap(op);
    default:
        model_fence(&op->site);
        return 0;
    }
}

/* Each operation is one tick of its thread's clock; the program's threads have the lanes from 1. */
static void run_thread(void *arg)
{
    int me = *(int *)arg;

    for (int i = 0; i < threads[me].count; i++)
        threads[me].results[i] = execute(&threads[me].operations[i]);
    for (int other = 0; other < nr_threads; other++)
        threads[me].known[other] = model__run.self->view.happened[other + 1];
}

static void note_outcome(const char *outcome)
{
    for (size_t i = 0; i < nr_outcomes; i++)
        if (strcmp(outcomes[i], outcome) == 0)
            return;
    if (nr_outcomes == room) {
        room = room > 0 ? 2 * room : 64;
        outcomes = realloc(outcomes, room * sizeof *outcomes);
    }
    outcomes[nr_outcomes++] = strdup(outcome);
}

static void describe_outcome(FILE *out)
{
    for (int t = 0; t < nr_threads; t++)
        for (int i = 0; i < threads[t].count; i++)
            if (strchr("LUC", threads[t].operations[i].kind) != NULL)
                fprintf(out, "%u,", threads[t].results[i]);
    fputc('|', out);
    for (int location = 0; location < LOCATIONS; location++)
        fprintf(out, "%u,", memory[location]);
    fputc('|', out);
    for (int t = 0; t < nr_threads; t++)
        for (int other = 0; other < nr_threads; other++)
            if (other != t)
                fprintf(out, "%d,", threads[t].known[other]);
}

static void run_program(void)
{
    static int numbers[MAX_PROGRAM_THREADS] = {0, 1, 2, 3};
    model_thread started[MAX_PROGRAM_THREADS];
    char outcome[400] = "";

    memset(memory, 0, sizeof memory);
    for (int t = 0; t < nr_threads; t++)
        started[t] = model_start(run_thread, &numbers[t]);
    for (int t = 0; t < nr_threads; t++)
        model_join(started[t]);
    FILE *out = fmemopen(outcome, sizeof outcome, "w");
    describe_outcome(out);
    fclose(out);
    note_outcome(outcome);
}

/* ---- Reading a program ---- */

static int8_t order_of(char letter)
{
    switch (letter) {
    case 'r':
        return __ATOMIC_RELAXED;
    case 'a':
        return __ATOMIC_ACQUIRE;
    case 'l':
        return __ATOMIC_RELEASE;
    case 'b':
        return __ATOMIC_ACQ_REL;
    default:
        return __ATOMIC_SEQ_CST;
    }
}

static uint8_t op_of(char kind)
{
    switch (kind) {
    case 'L':
        return MODEL_OP_LOAD;
    case 'S':
        return MODEL_OP_STORE;
    case 'U':
        return MODEL_OP_RMW;
    case 'C':
        return MODEL_OP_CAS;
    default:
        return MODEL_OP_FENCE;
    }
}

static struct operation parse_operation(const char *text)
{
    struct operation op = {.kind = *text++};
    char *end;

    if (op.kind != 'F')
        op.location = *text++ - '0';
    if (strchr("SUC", op.kind) != NULL) {
        op.value = (uint32_t)strtoul(text, &end, 10);
        text = end;
    }
    op.site = (struct model_site){.file = "", .function = "", .what = "", .op = op_of(op.kind)};
    op.site.order = op.site.effective = order_of(text[0]);
    op.site.fail_order = op.site.effective_fail = order_of(text[text[1] != '\0']);
    return op;
}

static void parse_program(char *line)
{
    char *rest_of_line, *rest_of_thread;

    nr_threads = 0;
    for (char *thread = strtok_r(line, ";\n", &rest_of_line); thread != NULL;
         thread = strtok_r(NULL, ";\n", &rest_of_line)) {
        int count = 0;
        for (char *op = strtok_r(thread, " ", &rest_of_thread); op != NULL;
             op = strtok_r(NULL, " ", &rest_of_thread))
            threads[nr_threads].operations[count++] = parse_operation(op);
        threads[nr_threads++].count = count;
    }
}

int main(void)
{
    static const struct model_options everything = {
        .preemptions = MODEL_UNLIMITED,
        .stale_reads = MODEL_UNLIMITED,
        .stale_rereads = MODEL_UNLIMITED,
        .history = MAX_HISTORY,
    };
    char line[1000];

    while (fgets(line, sizeof line, stdin) != NULL) {
        parse_program(line);
        model_check("program", run_program, &everything);
        for (size_t i = 0; i < nr_outcomes; i++) {
            puts(outcomes[i]);
            free(outcomes[i]);
        }
        nr_outcomes = 0;
        puts("end");
        fflush(stdout);
    }
    return 0;
}
