/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the explorer share. There is one execution at a time, in one system thread, so
 * its state is one struct, `model__run`; everything in it is cleared, or outdated by a generation
 * number, when the next execution begins.
 */
#ifndef BLZ_MODEL_EXPLORER_H
#define BLZ_MODEL_EXPLORER_H

#include "model.h"

#include <stdio.h>

#define MAX_HISTORY   8
#define MAX_STEPS     30000 /* the clocks are 16 bits wide */
#define MAX_CHOICES   (4 * MAX_STEPS)
#define MAX_LOCATIONS 8192
#define NEVER         INT16_MAX

#if defined(__SANITIZE_ADDRESS__)
#define MODEL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MODEL_ASAN 1
#endif
#endif

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* One lane a thread. Signed, because SSE2 compares only signed 16-bit lanes. */
typedef int16_t clock_vector __attribute__((vector_size(2 * MODEL_MAX_THREADS)));

/*
 * What a thread knows, or what a store hands to those who acquire it.
 *
 * `happened`: the events that happen before. `visible`: those and the ones that seq_cst fences
 * put before; a load may not miss them, but they do not make plain accesses race-free. `fence`: the
 * step of the last seq_cst fence that happened before.
 */
struct view {
    clock_vector happened;
    clock_vector visible;
    int32_t fence;
};

static inline clock_vector clock_max(clock_vector a, clock_vector b)
{
    clock_vector a_is_larger = a > b;
    return (a & a_is_larger) | (b & ~a_is_larger);
}

static inline void view_join(struct view *into, const struct view *from)
{
    into->happened = clock_max(into->happened, from->happened);
    into->visible = clock_max(into->visible, from->visible);
    if (from->fence > into->fence)
        into->fence = from->fence;
}

/* ---- fibre.c: stacks and the switch between them ---- */

struct fibre {
    void *stack_pointer;
    char *stack;
    size_t stack_size;
    void *fake_stack; /* the address sanitizer's */
    bool mapped;      /* not the system thread's own stack */
    bool used;        /* holds frames of an earlier life */
};

void model__fibre_prepare(struct fibre *fibre, void (*entry)(void));
void model__fibre_switch(struct fibre *from, struct fibre *to, bool from_is_done);
void model__fibre_entered(void);
bool model__fibre_owns(const struct fibre *fibre, uintptr_t address);

/* ---- sched.c: who runs ---- */

enum thread_state {
    THREAD_UNUSED,
    THREAD_READY,
    THREAD_SPINNING,
    THREAD_IN_FUTEX,
    THREAD_IN_JOIN,
    THREAD_FINISHED
};

struct thread {
    struct fibre fibre;
    struct view view;
    struct view release_fence; /* what a relaxed store publishes */
    struct view acquire_fence; /* what an acquire fence would add */
    enum thread_state state;
    unsigned id;
    uint64_t trail; /* hash of what it has read, for the reduction */
    int16_t clock;
    bool just_switched; /* has done nothing visible since it was chosen to run */
    bool joined;
    bool wants_newest;   /* runs only because nobody else could: its loads read the newest */
    bool spun_on_newest; /* ... and that did not help */
    bool timed;
    bool timed_out;
    int last_step; /* of its last operation */
    int spin_step; /* of its last spin hint, and of the one before */
    int previous_spin_step;
    int idle_spins;
    uint32_t own_changes;
    uint32_t spin_changes; /* of the others, when it last spun */
    const volatile void *futex;
    int64_t deadline_ns;
    unsigned joining;
    void (*fn)(void *);
    void *arg;
    const char *name;
    const struct model_site *last_site; /* for the trace */
    char *locals;                       /* its copy of the thread-local variables */
};

struct thread *model__thread_new(void (*fn)(void *), void *arg, const char *name);
/* The n-th thread of a bit set. */
struct thread *model__nth_thread(unsigned set, unsigned n);
void model__make_ready(struct thread *thread);
void model__schedule_point(struct thread *self);
void model__block(struct thread *self, enum thread_state state);
void model__execute(void (*test)(void));
_Noreturn void model__abandon(void);

/* ---- locals.c: thread-local variables ---- */

void model__locals_clear(struct thread *thread);
void model__locals_switch(struct thread *from, const struct thread *to);

/* ---- explore.c: the choices of an execution ---- */

unsigned model__choose(unsigned count);
/* As above; in random mode 0 is taken `weight` times as often as each other. */
unsigned model__choose_weighted(unsigned count, unsigned weight);
/* Which thread goes on; ends the execution here if the reduction knows the state. */
unsigned model__choose_thread(unsigned count, unsigned weight);

/* ---- location.c: addresses ---- */

struct store {
    uint64_t value;
    clock_vector seen; /* each thread's clock when it first read or wrote it, or NEVER */
    struct view message;
    int32_t seq_cst_step; /* of the first seq_cst access to it; 0: none */
    uint32_t event;       /* who wrote it, and at what time of its own clock */
    uint8_t stale_reads[MODEL_MAX_THREADS];
};

struct location {
    uintptr_t address;
    uint32_t number;  /* in order of first touch */
    const char *what; /* the address, as last written in the source */
    uint8_t size;
    bool live;
    int32_t block;   /* of model_alloc; -1: other memory */
    uint32_t newest; /* index; the store is at newest % MAX_HISTORY */
    uint32_t oldest;
    uint64_t trail; /* hash of who has written it, for the reduction */
    struct store stores[MAX_HISTORY];
};

struct plain {
    uintptr_t address;
    int32_t block;
    bool live;
    int8_t writer;
    int16_t write_clock;
    clock_vector reads;
    const struct model_site *write_site;
    const struct model_site *read_site;
};

void model__locations_reset(void);
const char *model__location_name(uint32_t number);
struct location *model__location(const volatile void *address, size_t size);
struct plain *model__plain(const volatile void *address);

static inline struct store *newest_store(struct location *location)
{
    return &location->stores[location->newest % MAX_HISTORY];
}

uint64_t model__memory_read(const volatile void *address, size_t size);
void model__memory_write(volatile void *address, size_t size, uint64_t value);

/* ---- reduce.c: states seen before ---- */

void model__reduce_begin(void);
bool model__visited_before(void);

static inline uint64_t model__mix(uint64_t hash, uint64_t value)
{
    hash = ((hash + UINT64_C(0x9E3779B97F4A7C15)) ^ value) * UINT64_C(0xBF58476D1CE4E5B9);
    return hash ^ hash >> 29;
}

/* ---- heap.c: model_alloc ---- */

void model__heap_reset(void);
/* The block that holds the address, or -1. */
int32_t model__heap_block(uintptr_t address);
void model__heap_check(int32_t block, uintptr_t address);
void model__heap_check_leaks(void);

/* ---- memory.c: what a load may read ---- */

struct location *model__read_newest(struct thread *self, const volatile void *address, size_t size,
                                    uint64_t *value);
void model__seq_cst_fence(struct thread *self);

/* ---- trace.c: what happened ---- */

enum trace_kind {
    TRACE_SITE,
    TRACE_START,
    TRACE_JOIN,
    TRACE_FINISH,
    TRACE_WAIT,
    TRACE_WOKEN,
    TRACE_WAIT_REFUSED,
    TRACE_WAIT_TIMED_OUT,
    TRACE_WAIT_SPURIOUS,
    TRACE_WAKE,
    TRACE_ALLOC,
    TRACE_FREE,

    TRACE_YIELD,
    TRACE_CHOICE
};

struct trace_event {
    const struct model_site *site;
    uint64_t value;  /* read, or written by a store */
    uint64_t second; /* written by an RMW or CAS, or the newest where a load was stale */
    uint32_t location;
    uint8_t kind;
    uint8_t thread;
    bool stale;
    bool succeeded;
    bool spurious;
};

struct trace_event *model__trace(struct thread *self, enum trace_kind kind);
void model__trace_print(void);
void model__trace_reset(void);

/* ---- site.c: places in the source, and mutants ---- */

bool model__sites_prepare(void); /* false: MODEL_MUTATE is malformed */
bool model__mutant_missed(void);
void model__sites_print(void);
const char *model__order_name(int order);

/* ---- The execution ---- */

struct run {
    bool active;
    struct model_options options;
    struct thread threads[MODEL_MAX_THREADS];
    struct thread *self;
    struct fibre explorer;
    unsigned ready; /* bit sets of threads */
    unsigned spinning;
    unsigned timed;
    int step;
    int preemptions_left, stale_reads_left, spurious_cas_left, spurious_wakes_left, timeouts_left;
    int preemptions_used;
    bool stale_reads_ran_out; /* in any execution of this check */
    uint32_t changes;         /* stores that changed a value */
    uint64_t locations_hash;  /* the sum of what the trails of all locations hash to */
    uint64_t seq_cst_trail;   /* hash of the order of seq_cst operations */
    clock_vector fenced;      /* what all seq_cst fences so far have seen */
    int64_t now_ns;
    unsigned refused_starts; /* threads that the system will not start */
    uint64_t seed;
    bool failed;
    bool pruned; /* ended, because it came to a state that is known */
    char message[600];
};

extern struct run model__run;

static inline bool takes_acquire(int order)
{
    return order == __ATOMIC_ACQUIRE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST ||
           order == __ATOMIC_CONSUME;
}

static inline bool takes_release(int order)
{
    return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

/* Begins an operation: counts the step and moves the thread's own clock. */
static inline void model__step(struct thread *self)
{
    struct run *run = &model__run;

    if (unlikely(++run->step > run->options.max_steps))
        model_fail("livelock: more than %d operations in one execution", run->options.max_steps);
    self->last_step = run->step;
    self->clock++;
    self->view.happened[self->id] = self->clock;
    self->view.visible[self->id] = self->clock;
}

#endif
