/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model explorer: runs a small concurrent test of the library's real code again and again,
 * each time along another interleaving and with other (legal) results of its loads, until there is
 * none left. The code under test is compiled with BLZ_MODEL, which turns base/atomic.h and
 * src/system into calls to this header.
 *
 *     static uint32_t flag, data;
 *
 *     static void writer(void *arg)
 *     {
 *         (void)arg;
 *         blz__store(&data, 42, RELAXED);
 *         blz__store(&flag, 1, RELEASE);
 *     }
 *
 *     static void message_passing(void)
 *     {
 *         flag = data = 0;
 *         model_thread thread = model_start(writer, NULL);
 *         if (blz__load(&flag, ACQUIRE) == 1)
 *             model_assert(blz__load(&data, RELAXED) == 42);
 *         model_join(thread);
 *     }
 *
 *     static const struct model models[] = {{"message_passing", message_passing}};
 *     MODEL_MAIN(models)
 *
 * A test must be deterministic apart from the scheduling: it sets up all its state itself, since
 * it is run many times in one process. README.md says what is modelled and how to replay.
 */
#ifndef BLZ_MODEL_H
#define BLZ_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The main thread of a test and those that it has started and not yet joined. */
#define MODEL_MAX_THREADS 8

/* For the options below, where 0 means the default. */
#define MODEL_NONE      (-1)
#define MODEL_UNLIMITED 1000000000

struct model_options {
    int preemptions;        /* switches away from a thread that could go on: default 2 */
    int stale_reads;        /* loads that read an old value, in one execution: default 3 */
    int stale_rereads;      /* times that a thread reads the same old store: default 2 */
    int spurious_cas;       /* failures of a weak CAS for no reason, per execution: default 1 */
    int spurious_wakes;     /* futex waits that return for no reason: default none */
    int timeouts;           /* timed waits that end while others could run: default 1 */
    int spins;              /* spin hints that a thread may pass while nothing changes: default 1 */
    int history;            /* stores remembered for a location: default 4, at most 8 */
    int max_steps;          /* operations in one execution; more are a livelock: default 4000 */
    int64_t max_executions; /* default 20 million */
    int seconds;            /* default: no limit */
    bool reduce;            /* see README: no state twice. Not with plain shared variables */
    bool fresh_cas;         /* a failing CAS reads the newest store only */
    bool allow_leaks;       /* model_alloc'ed memory may outlive the test */
    const char *expect;     /* the test must fail, with a message that contains this */
};

struct model {
    const char *name;
    void (*test)(void);
    struct model_options options;
};

/* What became of a model_check: no execution failed, in all or up to a limit; or one did. */
enum model_verdict { MODEL_HOLDS, MODEL_STOPPED, MODEL_FAILED };

/* Explores `test` and prints one line, or the trace of the execution that failed. */
enum model_verdict model_check(const char *name, void (*test)(void),
                               const struct model_options *options);

/*
 * `prog [name...]` runs the models named, or all. The result is the exit status: 0 all hold, 1 a
 * model failed, 2 there is no such model or a malformed variable in the environment, 3 no operation
 * was reached that MODEL_MUTATE names.
 */
int model_main(int argc, char **argv, const struct model *models, size_t count);

#define MODEL_MAIN(models)                                                             \
    int main(int argc, char **argv)                                                    \
    {                                                                                  \
        return model_main(argc, argv, (models), sizeof(models) / sizeof((models)[0])); \
    }

/* ---- Inside a test ---- */

typedef struct model_thread {
    unsigned id;
} model_thread;

model_thread model_start(void (*fn)(void *), void *arg);
model_thread model_start_named(void (*fn)(void *), void *arg, const char *name);
void model_join(model_thread thread);

/* The number of the calling thread: 0 is the one that runs the test function. */
unsigned model_thread_id(void);

/* True inside an execution; outside of one all operations act on memory directly. */
bool model_running(void);

#define model_assert(condition)                                                 \
    ((condition) ? (void)0                                                      \
                 : model_fail("assertion %s failed at %s:%d in %s", #condition, \
                              model_basename(__FILE__), __LINE__, __func__))

/* Ends the execution, the model, and with it the calling function. */
_Noreturn void model_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *model_basename(const char *path);

/* A choice of the test itself: explored for every result in 0 .. count-1. */
unsigned model_choose(unsigned count);

/* The clock of blz__clock_ns: stands still unless moved. Timed waits whose time comes wake up. */
void model_clock_advance(int64_t ns);
int64_t model_clock_now(void);

/* The system refuses to start the library's next threads, as many as that, with -EAGAIN. */
void model_refuse_starts(unsigned count);

/*
 * Memory that is only reused in the next execution: an atomic or annotated access after
 * model_free fails the test, and so does memory never freed. Not zeroed.
 */
void *model_alloc(size_t size, size_t alignment);
void model_free(void *memory);

/* The memory begins a new life: what is known of the atomics in it is dropped. */
void model_forget(const volatile void *memory, size_t size);

/*
 * All threads are fibres of one system thread: a _Thread_local of the code under test must be
 * named here, once, before model_main, to be kept apart. It starts as zeros in each thread.
 */
void model_thread_local(void *variable, size_t size);

/* ---- What base/atomic.h is made of in a model build ---- */

enum model_op {
    MODEL_OP_LOAD,
    MODEL_OP_STORE,
    MODEL_OP_RMW,
    MODEL_OP_CAS,
    MODEL_OP_FENCE,
    MODEL_OP_SPIN,
    MODEL_OP_PLAIN_READ,
    MODEL_OP_PLAIN_WRITE,
};

/* A place in the source that does an operation. They are laid out as an array by the linker. */
struct model_site {
    const char *file;
    const char *unit; /* the file being compiled: differs from `file` in headers */
    const char *function;
    const char *what; /* the address, as written */
    uint32_t line;
    uint32_t counter; /* tells apart those on the same line */
    uint8_t op;
    int8_t order;      /* as written */
    int8_t fail_order; /* of a CAS */
    int8_t effective;  /* as executed: may be weakened by MODEL_MUTATE */
    int8_t effective_fail;
    uint8_t dropped; /* a fence that MODEL_MUTATE removes */
    uint8_t mutated;
    uint8_t reserved;
    uint32_t rank; /* K: the K-th such operation of its function */
    uint32_t executed;
} __attribute__((aligned(64)));

#define MODEL_SITE(op_, order_, fail_order_, what_)                                          \
    (__extension__({                                                                         \
        static struct model_site model_site_here                                             \
            __attribute__((section("model_sites"), used)) = {.file = __FILE__,               \
                                                             .unit = __BASE_FILE__,          \
                                                             .function = __func__,           \
                                                             .what = what_,                  \
                                                             .line = __LINE__,               \
                                                             .counter = __COUNTER__,         \
                                                             .op = op_,                      \
                                                             .order = order_,                \
                                                             .fail_order = fail_order_,      \
                                                             .effective = order_,            \
                                                             .effective_fail = fail_order_}; \
        &model_site_here;                                                                    \
    }))

enum model_rmw_op { MODEL_SWAP, MODEL_ADD, MODEL_SUB, MODEL_OR, MODEL_AND };

uint64_t model_load(const volatile void *location, size_t size, struct model_site *site);
void model_store(volatile void *location, size_t size, uint64_t value, struct model_site *site);
uint64_t model_rmw(volatile void *location, size_t size, enum model_rmw_op op, uint64_t operand,
                   struct model_site *site);
bool model_cas(volatile void *location, size_t size, void *expected, uint64_t desired, bool weak,
               struct model_site *site);
void model_fence(struct model_site *site);
void model_spin_hint(struct model_site *site);

/* Accesses to plain memory that must be ordered by something else: a race fails the test. */
void model_plain_read(const volatile void *memory, struct model_site *site);
void model_plain_write(const volatile void *memory, struct model_site *site);

#endif
