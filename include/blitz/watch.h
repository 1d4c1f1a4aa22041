/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watch: one value that changes, and receivers that are told. Each receiver sees the latest value;
 * it may miss values in between. For configuration, states, progress.
 *
 *     BLZ_WATCH(config, struct config)                  // once, in a file or a header
 *
 *     config_sender tx;
 *     config_receiver rx;
 *     rc = config_new(&tx, &rx, initial);
 *     ...
 *     config_send(&tx, changed);                        // never waits for readers
 *     BLZ_AWAIT(self->rc, config_changed(&self->op, &self->rx));        // another task
 *     if (self->rc == 0)
 *         config_get(&self->rx, &self->config);         // a copy, whole
 *
 * BLZ_WATCH makes functions for one type; they are listed at the end. The functions before are the
 * same for values of any size, by pointer. The value is copied by its bytes: it must not own
 * anything that has to be given back.
 *
 * Reading takes no lock: a reader that is stopped in the middle holds up no sender, and a sender
 * that is stopped in the middle holds up no reader. No reader ever sees a mixture of two values.
 *
 * Versions. Each value that is sent has a number. A receiver has *seen* a value after
 * blz_watch_changed, blz_watch_get_and_update or blz_watch_until; the value that is there when
 * it is made counts as seen. blz_watch_get does not change what it has seen.
 *
 * Closing. A watch is closed when its last sender is dropped, or by blz_watch_close. The last value
 * stays and can be read for ever. blz_watch_changed reports it first, if it has not been seen, and
 * then fails with -EPIPE.
 *
 * Handles. A watch lives as long as there are handles to it. A sender may be used by several tasks
 * at once; a receiver knows what it has seen, and is used by one at a time. A handle must stay
 * until the futures made from it are ready.
 */
#ifndef BLITZ_WATCH_H
#define BLITZ_WATCH_H

#include <blitz/future.h>
#include <blitz/waiter.h>

BLZ_BEGIN_DECLS

/* A value that changes, as its senders and receivers share it. */
typedef struct blz_watch blz_watch;

/* A handle that sets the value. The watch is closed when the last one is dropped. */
typedef struct blz_watch_sender {
    blz_watch *watch;
} blz_watch_sender;

/* A handle that sees the value. Used by one task or thread at a time. */
typedef struct blz_watch_receiver {
    blz_watch *watch;
    uint64_t seen; /* number of the value; 0: none */
} blz_watch_receiver;

/* Whether a value is the one that is waited for; must not wait. */
typedef bool (*blz_watch_predicate)(const void *value, void *arg);

/* Changes a value in place; false: it has changed nothing after all. */
typedef bool (*blz_watch_modifier)(void *value, void *arg);

/*
 * An operation that waits, in the frame of the function that awaits it. All fields are the
 * library's.
 */
typedef struct blz_watch_op {
    blz_future future;
    blz_waiter waiter;
    blz_watch *watch;
    blz_watch_receiver *receiver;
    void *value;
    blz_watch_predicate predicate;
    void *arg;
    uint64_t reserved;
} blz_watch_op;

/* ---- Making one, and handles ---- */

/*
 * Creates a watch with a value of `size` bytes, one sender, and one receiver if rx is not NULL: 0;
 * -ENOMEM. The allocator is copied; NULL: malloc. [any thread]
 */
BLZ_API BLZ_NODISCARD int blz_watch_new(blz_watch_sender *tx, blz_watch_receiver *rx,
                                        const void *initial, size_t size,
                                        const blz_allocator *allocator);

/* Makes another sender. [any thread] */
BLZ_API blz_watch_sender blz_watch_sender_clone(const blz_watch_sender *tx);

/* Makes a receiver, which has seen the value of this moment. [any thread] */
BLZ_API blz_watch_receiver blz_watch_subscribe(const blz_watch_sender *tx);

/* Makes another receiver, which has seen what this one has. [any thread] */
BLZ_API blz_watch_receiver blz_watch_receiver_clone(const blz_watch_receiver *rx);

/* Drops a handle, which is empty afterwards. Dropping an empty handle does nothing. [any thread] */
BLZ_API void blz_watch_sender_drop(blz_watch_sender *tx);
BLZ_API void blz_watch_receiver_drop(blz_watch_receiver *rx);

/* Closes the watch, although it has senders. May be called any number of times. [any thread] */
BLZ_API void blz_watch_close(blz_watch *watch);

/* Whether the watch has been closed. [any thread] */
BLZ_API bool blz_watch_is_closed(const blz_watch *watch);

/* How many handles of each kind the watch has, at some moment during the call. [any thread] */
BLZ_API size_t blz_watch_senders(blz_watch *watch);
BLZ_API size_t blz_watch_receivers(blz_watch *watch);

/* ---- Sending ---- */

/*
 * Makes *value the latest, also if there are no receivers: 0; -EPIPE: the watch is closed. Never
 * waits for readers. [any thread]
 */
BLZ_API int blz_watch_send(const blz_watch_sender *tx, const void *value);

/*
 * Makes *value the latest and copies the value before it to *old: 0; -EPIPE: the watch is closed.
 * [any thread]
 */
BLZ_API int blz_watch_replace(const blz_watch_sender *tx, void *old, const void *value);

/*
 * Changes the latest value: `modify` is called with a copy of it, in *scratch, which has room for
 * one value, and the changed copy is sent, unless `modify` returned false. No lock is held
 * meanwhile: if another sender was faster, `modify` is called again with a copy of that sender's
 * value. 1: sent; 0: `modify` returned false; -EPIPE: the watch is closed. [any thread]
 */
BLZ_API int blz_watch_send_if_modified(const blz_watch_sender *tx, void *scratch,
                                       blz_watch_modifier modify, void *arg);

/* Copies the latest value, for a sender. [any thread] */
BLZ_API void blz_watch_sender_get(const blz_watch_sender *tx, void *value);

/* Awaits the moment when there are no receivers: 0. Interruptible: -ECANCELED. [task] */
BLZ_API BLZ_NODISCARD blz_future *blz_watch_closed(blz_watch_op *op, const blz_watch_sender *tx);

/*
 * Blocks this thread until there are no receivers: 0; -EDEADLK on a worker. [any thread but a
 * worker]
 */
static inline int blz_watch_closed_wait(const blz_watch_sender *tx)
{
    blz_watch_op op;
    return (int)blz_wait(blz_watch_closed(BLZ_FRESH_(&op), tx));
}

/* ---- Receiving ---- */

/*
 * Copies the latest value: 1 if the receiver has not seen it, 0 if it has. It cannot fail. [any
 * thread]
 */
BLZ_API int blz_watch_get(const blz_watch_receiver *rx, void *value);

/*
 * Copies the latest value, which counts as seen then: 1 if the receiver had not seen it, 0 if it
 * had. It cannot fail. [any thread; one at a time]
 */
BLZ_API int blz_watch_get_and_update(blz_watch_receiver *rx, void *value);

/*
 * Whether there is a value that has not been seen: 1; 0: no; -EPIPE: no, and the watch is closed.
 * [any thread]
 */
BLZ_API int blz_watch_has_changed(const blz_watch_receiver *rx);

/* Makes the latest value count as not seen, or as seen. [any thread; one at a time] */
BLZ_API void blz_watch_mark_changed(blz_watch_receiver *rx);
BLZ_API void blz_watch_mark_unchanged(blz_watch_receiver *rx);

/*
 * Makes a value that has not been seen count as seen, without waiting: 0; -EAGAIN: there is none;
 * -EPIPE: there is none, and the watch is closed. [any thread; one at a time]
 */
BLZ_API int blz_watch_try_changed(blz_watch_receiver *rx);

/*
 * Awaits a value that has not been seen, which counts as seen then: 0; -EPIPE: the watch is closed,
 * and its last value has been seen. Interruptible: with -ECANCELED nothing has been seen. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_watch_changed(blz_watch_op *op, blz_watch_receiver *rx);

/*
 * Awaits that predicate(&value, arg) is true of the latest value, seen or not, and copies it to
 * *value: 0; -EPIPE: the watch is closed, and the predicate is not true of its last value. The
 * predicate is called in polls, with no lock held, for each value that the receiver comes to see;
 * those count as seen. Interruptible: -ECANCELED. [task]
 */
BLZ_API BLZ_NODISCARD blz_future *blz_watch_until(blz_watch_op *op, blz_watch_receiver *rx,
                                                  void *value, blz_watch_predicate predicate,
                                                  void *arg);

/*
 * Blocks this thread until there is a value that has not been seen, which counts as seen then: 0;
 * -EPIPE: the watch is closed, and its last value has been seen; -EDEADLK on a worker. [any thread
 * but a worker]
 */
static inline int blz_watch_changed_wait(blz_watch_receiver *rx)
{
    blz_watch_op op;
    return (int)blz_wait(blz_watch_changed(BLZ_FRESH_(&op), rx));
}

/*
 * Blocks this thread until predicate(&value, arg) is true of the latest value, which is copied to
 * *value: 0; -EPIPE: the watch is closed, and the predicate is not true of its last value; -EDEADLK
 * on a worker. [any thread but a worker]
 */
static inline int blz_watch_until_wait(blz_watch_receiver *rx, void *value,
                                       blz_watch_predicate predicate, void *arg)
{
    blz_watch_op op;
    return (int)blz_wait(blz_watch_until(BLZ_FRESH_(&op), rx, value, predicate, arg));
}

/*
 * BLZ_WATCH(name, type) defines, for values of `type`:
 *
 *     name_sender, name_receiver      handles; .raw is that of the functions above
 *     name_op                         an operation
 *     rc = name_new(&tx, &rx, initial)
 *     tx = name_sender_clone(&tx)     name_sender_drop(&tx)
 *     rx = name_subscribe(&tx)        rx = name_receiver_clone(&rx)     name_receiver_drop(&rx)
 *     name_sender_close(&tx)          name_receiver_close(&rx)          as blz_watch_close
 *     rc = name_send(&tx, value)      rc = name_replace(&tx, &old, value)
 *     rc = name_send_modify(&tx, fn, arg)               void fn(type *value, void *arg)
 *     rc = name_send_if_modified(&tx, fn, arg)          bool fn(type *value, void *arg)
 *     rc = name_get(&rx, &value)      rc = name_get_and_update(&rx, &value)
 *     BLZ_AWAIT(rc, name_changed(&op, &rx))             name_changed_wait(&rx)
 *     BLZ_AWAIT(rc, name_until(&op, &rx, &value, fn, arg))
 *                                                       bool fn(const type *value, void *arg)
 */
#define BLZ_WATCH(name, type)             \
    typedef struct name##_sender {        \
        blz_watch_sender raw;             \
    } name##_sender;                      \
    typedef struct name##_receiver {      \
        blz_watch_receiver raw;           \
    } name##_receiver;                    \
    typedef struct name##_op {            \
        blz_watch_op op;                  \
        bool (*fn)(const type *, void *); \
        void *arg;                        \
    } name##_op;                          \
    BLZ_WATCH_HANDLES_(name, type)        \
    BLZ_WATCH_SEND_(name, type)           \
    BLZ_WATCH_RECV_(name, type)

#define BLZ_WATCH_INLINE_ static inline __attribute__((unused))

#define BLZ_WATCH_HANDLES_(name, type)                                                      \
    BLZ_WATCH_INLINE_ BLZ_NODISCARD int name##_new(name##_sender *tx, name##_receiver *rx,  \
                                                   type initial)                            \
    {                                                                                       \
        return blz_watch_new(&tx->raw, rx ? &rx->raw : NULL, &initial, sizeof(type), NULL); \
    }                                                                                       \
    BLZ_WATCH_INLINE_ name##_sender name##_sender_clone(const name##_sender *tx)            \
    {                                                                                       \
        name##_sender other = {blz_watch_sender_clone(&tx->raw)};                           \
        return other;                                                                       \
    }                                                                                       \
    BLZ_WATCH_INLINE_ name##_receiver name##_subscribe(const name##_sender *tx)             \
    {                                                                                       \
        name##_receiver rx = {blz_watch_subscribe(&tx->raw)};                               \
        return rx;                                                                          \
    }                                                                                       \
    BLZ_WATCH_INLINE_ name##_receiver name##_receiver_clone(const name##_receiver *rx)      \
    {                                                                                       \
        name##_receiver other = {blz_watch_receiver_clone(&rx->raw)};                       \
        return other;                                                                       \
    }                                                                                       \
    BLZ_WATCH_INLINE_ void name##_sender_drop(name##_sender *tx)                            \
    {                                                                                       \
        blz_watch_sender_drop(&tx->raw);                                                    \
    }                                                                                       \
    BLZ_WATCH_INLINE_ void name##_sender_close(const name##_sender *tx)                     \
    {                                                                                       \
        blz_watch_close(tx->raw.watch);                                                     \
    }                                                                                       \
    BLZ_WATCH_INLINE_ void name##_receiver_close(const name##_receiver *rx)                 \
    {                                                                                       \
        blz_watch_close(rx->raw.watch);                                                     \
    }                                                                                       \
    BLZ_WATCH_INLINE_ void name##_receiver_drop(name##_receiver *rx)                        \
    {                                                                                       \
        blz_watch_receiver_drop(&rx->raw);                                                  \
    }

#define BLZ_WATCH_SEND_(name, type)                                                               \
    BLZ_WATCH_INLINE_ int name##_send(const name##_sender *tx, type value)                        \
    {                                                                                             \
        return blz_watch_send(&tx->raw, &value);                                                  \
    }                                                                                             \
    BLZ_WATCH_INLINE_ int name##_replace(const name##_sender *tx, type *old, type value)          \
    {                                                                                             \
        return blz_watch_replace(&tx->raw, old, &value);                                          \
    }                                                                                             \
    struct name##_modify_ {                                                                       \
        void (*always)(type *, void *);                                                           \
        bool (*perhaps)(type *, void *);                                                          \
        void *arg;                                                                                \
    };                                                                                            \
    BLZ_WATCH_INLINE_ bool name##_call_modify_(void *value, void *arg)                            \
    {                                                                                             \
        struct name##_modify_ *m = (struct name##_modify_ *)arg;                                  \
        if (m->perhaps)                                                                           \
            return m->perhaps((type *)value, m->arg);                                             \
        m->always((type *)value, m->arg);                                                         \
        return true;                                                                              \
    }                                                                                             \
    BLZ_WATCH_INLINE_ int name##_send_modify(const name##_sender *tx, void (*fn)(type *, void *), \
                                             void *arg)                                           \
    {                                                                                             \
        struct name##_modify_ m = {fn, NULL, arg};                                                \
        type scratch;                                                                             \
        int rc = blz_watch_send_if_modified(&tx->raw, &scratch, name##_call_modify_, &m);         \
        return rc < 0 ? rc : 0;                                                                   \
    }                                                                                             \
    BLZ_WATCH_INLINE_ int name##_send_if_modified(const name##_sender *tx,                        \
                                                  bool (*fn)(type *, void *), void *arg)          \
    {                                                                                             \
        struct name##_modify_ m = {NULL, fn, arg};                                                \
        type scratch;                                                                             \
        return blz_watch_send_if_modified(&tx->raw, &scratch, name##_call_modify_, &m);           \
    }

#define BLZ_WATCH_RECV_(name, type)                                                                \
    BLZ_WATCH_INLINE_ int name##_get(const name##_receiver *rx, type *value)                       \
    {                                                                                              \
        return blz_watch_get(&rx->raw, value);                                                     \
    }                                                                                              \
    BLZ_WATCH_INLINE_ int name##_get_and_update(name##_receiver *rx, type *value)                  \
    {                                                                                              \
        return blz_watch_get_and_update(&rx->raw, value);                                          \
    }                                                                                              \
    BLZ_WATCH_INLINE_ BLZ_NODISCARD blz_future *name##_changed(name##_op *op, name##_receiver *rx) \
    {                                                                                              \
        return blz_watch_changed(&op->op, &rx->raw);                                               \
    }                                                                                              \
    BLZ_WATCH_INLINE_ int name##_changed_wait(name##_receiver *rx)                                 \
    {                                                                                              \
        return blz_watch_changed_wait(&rx->raw);                                                   \
    }                                                                                              \
    BLZ_WATCH_INLINE_ bool name##_call_predicate_(const void *value, void *arg)                    \
    {                                                                                              \
        name##_op *op = (name##_op *)arg;                                                          \
        return op->fn((const type *)value, op->arg);                                               \
    }                                                                                              \
    BLZ_WATCH_INLINE_ BLZ_NODISCARD blz_future *name##_until(name##_op *op, name##_receiver *rx,   \
                                                             type *value,                          \
                                                             bool (*fn)(const type *, void *),     \
                                                             void *arg)                            \
    {                                                                                              \
        op->fn = fn;                                                                               \
        op->arg = arg;                                                                             \
        return blz_watch_until(&op->op, &rx->raw, value, name##_call_predicate_, op);              \
    }

BLZ_END_DECLS
#endif
