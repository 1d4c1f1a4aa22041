/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fork-join parallelism: a pool of threads that share the branches of a recursive computation.
 *
 *     BLZ_PAR_TASK(uint64_t, fib, int)      // uint64_t fib(blz_par *, int) may be run elsewhere
 *
 *     static uint64_t fib(blz_par *par, int n)
 *     {
 *         uint64_t left, right;
 *
 *         if (n < 2)
 *             return (uint64_t)n;
 *         BLZ_PAR_BOTH(par, fib, (left, n - 1), (right, n - 2));
 *         return left + right;
 *     }
 *
 * Such a branch costs a few tenths of a nanosecond over a plain call, so there is no need for a
 * size below which a computation goes on serially: as long as enough branches of a thread wait for
 * others to take them, it calls the rest itself. A fork that others may take costs two or three
 * nanoseconds: it is only noted by its own thread, and shown to others when it is the first one,
 * or when one of them has nothing to do. A computation of a few microseconds hardly ever disturbs
 * another thread.
 *
 * A computation enters the pool by blz_pool_run, from any thread; a thread that has many of them
 * becomes a guest (blz_pool_enter). Within it every function gets a context, the blz_par of the
 * thread that runs it, and passes it on to those that it calls.
 *
 * A process that is forked, by fork(2), in the middle of a computation may use other pools, but not
 * go on with the computation: parts of it may be with threads that the child does not have. If it
 * comes to wait for one of them it is ended by a panic.
 *
 * Leaving a function between a fork and its unfork in any other way (longjmp, a C++ exception) is
 * not allowed: another thread may be at work on the job in its frame.
 */
#ifndef BLITZ_PAR_H
#define BLITZ_PAR_H

#include <blitz/base.h>

BLZ_BEGIN_DECLS

/* A pool of threads. */
typedef struct blz_pool blz_pool;

/* The thread that runs a computation, as the computation sees it. For that thread only. */
typedef struct blz_par blz_par;

/* A branch that was forked: in the caller's frame, beginning a struct of its own. */
typedef struct blz_par_job blz_par_job;

/* What a thief calls for a job that it took. */
typedef void (*blz_par_job_fn)(blz_par *par, blz_par_job *job);

/* The body of blz_pool_run, and the branches of blz_par_join. */
typedef void (*blz_par_fn)(blz_par *par, void *arg);

/* What a job begins with. All fields but `run` are the library's. */
struct blz_par_job {
    blz_par_job_fn run;
    int64_t index;  /* of its place among the jobs of its thread */
    uint32_t latch; /* from here on only written once the job is shown to others */
    uint32_t owner;
    uint64_t claim; /* the thread that has taken it */
    uint32_t isolated;
};

/* What the inline functions below need of a context; the library's business. */
struct blz_par {
    blz_par_job **slots;
    uint64_t mask;
    int64_t tail;   /* jobs of this thread: up to here */
    int64_t enough; /* from this tail on there is enough for others to take */
    int32_t fuel;   /* forks until it looks whether others need work */
    uint32_t reserved0;
    uint64_t reserved1[11];
    int64_t guard;  /* a job from here on is this thread's alone; changes seldom: another line */
    int64_t bottom; /* jobs below this are shown to others */
    uint64_t reserved2[14];
};

/* How a thread waits for a job that another one has taken. */
typedef enum blz_par_wait_mode {
    BLZ_PAR_WAIT_DEFAULT,  /* what the pool was made with; of a pool: leapfrog */
    BLZ_PAR_WAIT_LEAPFROG, /* helps the thread that took it, with parts of that job only */
    BLZ_PAR_WAIT_STEAL,    /* takes any job of the pool meanwhile */
    BLZ_PAR_WAIT_BLOCK,    /* takes none */
} blz_par_wait_mode;

/* How long a thread without work looks for some before it sleeps. */
typedef enum blz_pool_spin {
    BLZ_POOL_SPIN_SHORT, /* a few microseconds; not at all if it was last woken in vain */
    BLZ_POOL_SPIN_NEVER, /* sleeps at once: the least CPU time */
    BLZ_POOL_SPIN_LONG,  /* some hundred microseconds: work that comes meanwhile wakes no thread */
} blz_pool_spin;

/* All zero: the defaults. */
typedef struct blz_pool_options {
    unsigned threads;   /* 0: BLZ_POOL_THREADS, or the CPUs we may use (affinity, cgroup quota) */
    unsigned ring_size; /* jobs of a thread that others can take, a power of two; 0: 4096 */
    size_t stack_size;  /* of each thread; 0: the system's default */
    blz_par_wait_mode waiting;      /* at an unfork */
    unsigned guests;                /* threads that can be in the pool by blz_pool_enter; 0: 8 */
    const blz_allocator *allocator; /* NULL: malloc */
    const char *name;               /* of the threads; NULL: "blz-par" */
    blz_pool_spin spin;
    /* Called in each thread of the pool, before its first job and after its last. NULL: nothing. */
    void (*on_thread_start)(unsigned index, void *arg);
    void (*on_thread_stop)(unsigned index, void *arg);
    void *hook_arg;
    uint64_t reserved[8];
} blz_pool_options;

/* More threads and guests together than this are refused. */
#define BLZ_POOL_MAX_THREADS 0x7fff

/*
 * Makes a pool; all its threads run, and have called on_thread_start, when this returns. options
 * may be NULL. 0; -EINVAL, also for BLZ_POOL_THREADS; -ENOMEM, or what the system says when it has
 * no more threads. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_pool_new(blz_pool **pool, const blz_pool_options *options);

/*
 * Ends the threads and frees the pool. Nothing may run in it. 0; -EDEADLK: called from within it;
 * -EBUSY: a guest has not left; -EOWNERDEAD: it is the pool of the parent process. [any thread]
 */
BLZ_API int blz_pool_free(blz_pool *pool);

/* How many threads it has. [any thread] */
BLZ_API unsigned blz_pool_threads(const blz_pool *pool);

/*
 * The pool with the default options, made at the first call and never freed; a forked child that
 * asks gets one of its own. NULL: it cannot be made. [any thread]
 */
BLZ_API blz_pool *blz_pool_default(void);

/* What a pool has done since it was made; what it is doing now, as far as one can say. */
typedef struct blz_par_stats {
    uint64_t injected;  /* computations that came from outside and were begun */
    uint64_t published; /* jobs that were shown to other threads, or that one took unasked */
    uint64_t stolen;    /* jobs that another thread has taken */
    uint64_t sleeps;    /* times that a thread has slept, and was woken */
    uint64_t vain;      /* of these: found nothing to do */
    uint64_t queued;    /* now: computations that are not begun */
    uint32_t threads;
    uint32_t guests;   /* now */
    uint32_t sleeping; /* now */
    uint32_t looking;  /* now: awake, without work */
    uint64_t reserved[8];
} blz_par_stats;

/* Reads the counters of a pool. [any thread] */
BLZ_API void blz_pool_stats(const blz_pool *pool, blz_par_stats *out);

/* ---- computations ---- */

/* Where a pool is named below, NULL is the default pool. */

/*
 * Calls fn(par, arg) in a thread of the pool and returns when that has returned; what it wrote is
 * seen by the caller. A thread of the pool itself and a guest call it right away. Calls by several
 * threads are begun in the order of their coming. 0; and fn is not called: -EOWNERDEAD, it is the
 * pool of the parent process; -EAGAIN, there is no default pool, and it cannot be made.
 * [any thread]
 *
 * A thread of another pool takes jobs of its own one meanwhile, also if it is a guest of some more.
 * So computations may go from pool to pool and back as they like: each pool has its threads for
 * what comes. Only one that waits by blocking, that is in an isolated region, or that has less than
 * a quarter of its stack left takes nothing: then what it waits for must not need its pool, unless
 * that has other threads.
 */
BLZ_API int blz_pool_run(blz_pool *pool, blz_par_fn fn, void *arg);

/*
 * The calling thread takes part in the pool as a guest: it computes by itself, others take its
 * jobs, and it may take theirs while it waits for one of its own. A computation costs a call then,
 * where a thread that is no guest hands it over and sleeps until it is done:
 *
 *     blz_par *par = blz_pool_enter(pool);
 *     blz_pool_run(pool, fn, arg);        // or whatever wants a blz_par, with this one
 *     blz_pool_leave(par);
 *
 * Entering and leaving are cheap, but for a loop of computations it is better to stay. Computations
 * begin by blz_pool_run, or by a scope: then long ones are shared at once, and tiny ones wake
 * nobody. A thread that is in the pool already gets the context that it has, and leaves as often as
 * it entered. NULL: all places for guests are taken, or one of the errors of blz_pool_run.
 *
 * A thread of another pool that waits here for a job or a scope, and not by stealing, does nothing
 * for its own pool: what it waits for must not need that pool, or the pool has other threads. One
 * that waits by stealing may take a computation of its own pool on top of a job of this one. So
 * either all threads of this pool wait by stealing, too, or what is computed in the other pool must
 * not need this one. [any thread]
 */
BLZ_API BLZ_NODISCARD blz_par *blz_pool_enter(blz_pool *pool);

/*
 * Leaves the pool. Every fork must have been unforked first. NULL: does nothing. [the thread that
 * entered]
 */
BLZ_API void blz_pool_leave(blz_par *par);

/* The number of the thread, below blz_pool_indices. [in a computation] */
BLZ_API unsigned blz_par_index(const blz_par *par);

/*
 * How many numbers there are: one for each thread, and one for each guest that there can be. [any
 * thread]
 */
BLZ_API unsigned blz_pool_indices(const blz_pool *pool);

/* The pool in which the computation runs. [in a computation] */
BLZ_API blz_pool *blz_par_pool(const blz_par *par);

/*
 * Calls fn(par, arg) as a region of its own: a thread that waits within it, for a job or for the
 * end of a scope, takes parts of that only, however it waits, and so do the threads that took parts
 * of the region, also in another pool. So a lock may be held across all of them: no foreign
 * function that wants the same lock is begun on top of it. Tasks that are spawned into a scope
 * outside of the region are not part of it, and not run on top of a wait in it. [in a computation]
 *
 * Threads that leapfrog (the default) or block take nothing else outside of such a region either,
 * at an unfork and at the end of a scope; but those that steal do, and any that waits for another
 * pool or for a broadcast, or that yields. In a region a wait for another pool takes nothing,
 * blz_par_yield takes nothing, and blz_pool_broadcast gives -EDEADLK.
 */
BLZ_API void blz_par_isolated(blz_par *par, blz_par_fn fn, void *arg);

/* ---- the inline part ---- */

#ifndef blz_par_load_
#define blz_par_load_(p)       __atomic_load_n((p), __ATOMIC_RELAXED)
#define blz_par_store_(p, v)   __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define blz_par_release_(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
/*
 * The library's own light fence is internal; the inline code of programs needs one in this header.
 */
#define blz_par_light_fence_() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#endif

#define BLZ_PAR_INLINE_ static inline __attribute__((always_inline))

/* The library's: fuel is used up, or the ring is full; and: the job is not this thread's alone. */
BLZ_API BLZ_COLD void blz_par_refuel_(blz_par *par, blz_par_job *job);
BLZ_API BLZ_COLD bool blz_par_reclaim_(blz_par *par, blz_par_job *job, blz_par_wait_mode waiting);

/*
 * Lets another thread run the job, by a call of `run`, from now on. Each fork needs its unfork, by
 * the same function call, the last one first; the job must live until then. [in a computation]
 */
BLZ_PAR_INLINE_ void blz_par_fork(blz_par *par, blz_par_job *job, blz_par_job_fn run)
{
    int64_t tail = par->tail;
    int32_t fuel = blz_par_load_(&par->fuel);

    job->run = run;
    job->index = tail;
    if (blz_likely(fuel > 0)) {
        /* A thief that is hungry writes here too. If that is lost, it asks again. */
        blz_par_store_(&par->fuel, fuel - 1);
        blz_par_store_(&par->slots[(uint64_t)tail & par->mask], job);
        blz_par_release_(&par->tail, tail + 1); /* for thieves that cannot wait: see deque.h */
    } else {
        blz_par_refuel_(par, job);
    }
}

/*
 * Takes the job of the last fork back, and waits in the given way if another thread has taken it.
 * True: no thread has taken it, and none will; the caller does what is to be done. False: it has
 * been run by another thread, to its end, and what that wrote is seen by the caller. [in a
 * computation]
 */
BLZ_PAR_INLINE_ BLZ_NODISCARD bool blz_par_unfork_with(blz_par *par, blz_par_job *job,
                                                       blz_par_wait_mode waiting)
{
    /* Not from par->tail, which has just been written, in each call that returned: reading it
     * would make a chain of all of them. */
    int64_t index = job->index;

    /* A thief that takes private jobs raises the guard, and then looks at tail. Of it and us one
     * sees the other; what that takes beyond the compiler's order is done by the thief. */
    blz_par_release_(&par->tail, index);
    blz_par_light_fence_();
    if (blz_likely(index >= blz_par_load_(&par->guard)))
        return true;
    return blz_par_reclaim_(par, job, waiting);
}

/*
 * Takes the job of the last fork back. True: no thread has taken it, and none will; the caller does
 * what is to be done. False: it has been run by another thread, to its end, and what that wrote is
 * seen by the caller. [in a computation]
 */
BLZ_PAR_INLINE_ BLZ_NODISCARD bool blz_par_unfork(blz_par *par, blz_par_job *job)
{
    return blz_par_unfork_with(par, job, BLZ_PAR_WAIT_DEFAULT);
}

/*
 * Whether enough forks of this thread wait for others to take them. Then a branch that is like
 * them, or smaller, need not be forked: a plain call does as well. [in a computation]
 */
BLZ_PAR_INLINE_ bool blz_par_has_enough(const blz_par *par)
{
    return blz_likely(par->tail >= blz_par_load_(&par->enough));
}

/* The second branch of blz_par_join. */
struct blz_par_branch_ {
    blz_par_job job;
    blz_par_fn fn;
    void *arg;
};

static inline void blz_par_run_branch_(blz_par *par, blz_par_job *job)
{
    struct blz_par_branch_ *branch = (struct blz_par_branch_ *)(void *)job;

    branch->fn(par, branch->arg);
}

/*
 * Calls a(par, a_arg) and b(par, b_arg), b possibly in another thread at the same time, and returns
 * when both have returned. Functions that are known at compile time are inlined here.
 * [in a computation]
 */
BLZ_PAR_INLINE_ void blz_par_join(blz_par *par, blz_par_fn a, void *a_arg, blz_par_fn b,
                                  void *b_arg)
{
    struct blz_par_branch_ branch;

    branch.fn = b;
    branch.arg = b_arg;
    blz_par_fork(par, &branch.job, blz_par_run_branch_);
    a(par, a_arg);
    if (blz_par_unfork(par, &branch.job))
        b(par, b_arg);
}

/* ---- typed tasks ---- */

/*
 * BLZ_PAR_TASK(result, name, types of one to four arguments): declares
 *
 *     static result name(blz_par *par, type, ...);
 *
 * as a function that BLZ_PAR_BOTH can call. At file scope, before the definition of the function.
 */
#define BLZ_PAR_TASK(result_type, name, ...)                                                     \
    BLZ_PAR_PICK_(__VA_ARGS__, BLZ_PAR_TASK4_, BLZ_PAR_TASK3_, BLZ_PAR_TASK2_, BLZ_PAR_TASK1_, ) \
    (result_type, name, __VA_ARGS__)

/*
 * BLZ_PAR_BOTH(par, task, (result, arguments...), (result, arguments...)): calls the task with the
 * one and with the other arguments, the second time possibly in another thread at the same time,
 * and goes on when both have returned. All arguments are evaluated first. [in a computation]
 */
#define BLZ_PAR_BOTH(par, name, one, other) BLZ_PAR_BOTH_(par, name, other, BLZ_PAR_UNPACK_ one)

#define BLZ_PAR_UNPACK_(...)                       __VA_ARGS__
#define BLZ_PAR_PICK_(_1, _2, _3, _4, chosen, ...) chosen
#define BLZ_PAR_INTO_(into, ...)                   into
#define BLZ_PAR_ARGS_(into, ...)                   __VA_ARGS__
#define BLZ_PAR_BOTH_(...)                         BLZ_PAR_BOTH_UNPACKED_(__VA_ARGS__)
#define BLZ_PAR_BOTH_UNPACKED_(par, name, other, into, ...)                      \
    do {                                                                         \
        blz_par *const blz_par_here_ = (par);                                    \
        const struct name##_args_ blz_par_one_ = {__VA_ARGS__};                  \
        const struct name##_args_ blz_par_other_ = {BLZ_PAR_ARGS_ other};        \
        if (blz_par_has_enough(blz_par_here_)) {                                 \
            (into) = name##_call_(blz_par_here_, blz_par_one_);                  \
            (BLZ_PAR_INTO_ other) = name##_call_(blz_par_here_, blz_par_other_); \
        } else {                                                                 \
            const struct name##_pair_ blz_par_pair_ =                            \
                name##_share_(blz_par_here_, blz_par_one_, blz_par_other_);      \
            (into) = blz_par_pair_.first;                                        \
            (BLZ_PAR_INTO_ other) = blz_par_pair_.second;                        \
        }                                                                        \
    } while (0)

#define BLZ_PAR_TASK1_(result_type, name, A)  \
    static result_type name(blz_par *par, A); \
    struct name##_args_ {                     \
        A a;                                  \
    };                                        \
    BLZ_PAR_TASK_(result_type, name, args.a)
#define BLZ_PAR_TASK2_(result_type, name, A, B)  \
    static result_type name(blz_par *par, A, B); \
    struct name##_args_ {                        \
        A a;                                     \
        B b;                                     \
    };                                           \
    BLZ_PAR_TASK_(result_type, name, args.a, args.b)
#define BLZ_PAR_TASK3_(result_type, name, A, B, C)  \
    static result_type name(blz_par *par, A, B, C); \
    struct name##_args_ {                           \
        A a;                                        \
        B b;                                        \
        C c;                                        \
    };                                              \
    BLZ_PAR_TASK_(result_type, name, args.a, args.b, args.c)
#define BLZ_PAR_TASK4_(result_type, name, A, B, C, D)  \
    static result_type name(blz_par *par, A, B, C, D); \
    struct name##_args_ {                              \
        A a;                                           \
        B b;                                           \
        C c;                                           \
        D d;                                           \
    };                                                 \
    BLZ_PAR_TASK_(result_type, name, args.a, args.b, args.c, args.d)
#define BLZ_PAR_TASK_(result_type, name, ...)                                                 \
    struct name##_job_ {                                                                      \
        blz_par_job job;                                                                      \
        struct name##_args_ args;                                                             \
        result_type result;                                                                   \
    };                                                                                        \
    struct name##_pair_ {                                                                     \
        result_type first, second;                                                            \
    };                                                                                        \
    BLZ_PAR_INLINE_ result_type name##_call_(blz_par *par, struct name##_args_ args)          \
    {                                                                                         \
        return name(par, __VA_ARGS__);                                                        \
    }                                                                                         \
    static inline void name##_run_(blz_par *par, blz_par_job *job)                            \
    {                                                                                         \
        struct name##_job_ *self = (struct name##_job_ *)(void *)job;                         \
        self->result = name##_call_(par, self->args);                                         \
    }                                                                                         \
    static __attribute__((unused))                                                            \
    BLZ_COLD struct name##_pair_ name##_share_(blz_par *par, struct name##_args_ first,       \
                                               struct name##_args_ second)                    \
    {                                                                                         \
        struct name##_job_ job;                                                               \
        struct name##_pair_ pair;                                                             \
        job.args = second;                                                                    \
        blz_par_fork(par, &job.job, name##_run_);                                             \
        pair.first = name##_call_(par, first);                                                \
        pair.second = blz_par_unfork(par, &job.job) ? name##_call_(par, second) : job.result; \
        return pair;                                                                          \
    }

BLZ_END_DECLS
#endif
