/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shutdowns: making them, letting go of them, asking for them, and their reports. What goes through
 * the phases is in run.c, what is counted in guard.c and gate.h.
 */
#include "shutdown/shutdown.h"

#include "base/alloc.h"
#include "system/signal.h"

_Static_assert(sizeof(blz_shutdown_step) == 32, "part of the ABI");
_Static_assert(sizeof(blz_shutdown_report) == 224, "part of the ABI");
_Static_assert(sizeof(blz_shutdown_options) == 136, "part of the ABI");

/* ---- making ---- */

static int64_t or_default(int64_t ns, int64_t seconds)
{
    return ns != 0 ? ns : seconds * BLZ_SEC;
}

static void resolve(blz_shutdown_options *options)
{
    if (options->signals[0] == 0) {
        options->signals[0] = SIGINT;
        options->signals[1] = SIGTERM;
    }
    options->stop_ns = or_default(options->stop_ns, 5);
    options->drain_ns = or_default(options->drain_ns, 30);
    options->cancel_ns = or_default(options->cancel_ns, 10);
    options->force_ns = or_default(options->force_ns, 5);
}

static int make_tokens(blz_shutdown *s)
{
    int rc = 0;

    for (int i = BLZ_SHUTDOWN_STOPPING; i < NR_PHASES && rc == 0; i++)
        rc = blz_token_new_with(&s->tokens[i], &s->allocator);
    return rc;
}

static int open_signals(blz_shutdown *s)
{
    int rc = 0;

    for (int i = 0; i < MAX_SIGNALS && s->options.signals[i] != 0 && !s->options.no_signals; i++) {
        rc = blz_signal_open(&s->signals[i], s->options.signals[i]);
        if (rc < 0)
            break;
        s->nr_signals++;
    }
    return rc;
}

/* Those that came after it had begun are answered; others go to the handlers from before. */
static void close_signals(blz_shutdown *s)
{
    for (int i = 0; i < s->nr_signals; i++) {
        if (blz_shutdown_phase(s) != BLZ_SHUTDOWN_RUNNING)
            (void)blz_signal_try_recv(&s->signals[i], NULL);
        blz_signal_close(&s->signals[i]);
    }
}

void blz__shutdown_destroy(blz_shutdown *s)
{
    const blz_allocator allocator = s->allocator;

    for (int i = 0; i < NR_PHASES; i++)
        blz_token_unref(s->tokens[i]);
    blz__free(&allocator, s, sizeof *s, _Alignof(blz_shutdown));
}

int blz_shutdown_new(blz_shutdown **shutdown, const blz_shutdown_options *options)
{
    const blz_allocator *allocator =
        options && options->allocator ? options->allocator : &blz__system_allocator;
    blz_shutdown *s = blz__alloc(allocator, sizeof *s, _Alignof(blz_shutdown));
    int rc;

    *shutdown = NULL;
    if (!s)
        return -ENOMEM;
    *s = (blz_shutdown){.allocator = *allocator};
    if (options)
        s->options = *options;
    resolve(&s->options);
    blz__gate_init(&s->gate);
    rc = make_tokens(s);
    if (rc == 0)
        rc = open_signals(s);
    if (rc < 0) {
        close_signals(s);
        blz__shutdown_destroy(s);
        return rc;
    }
    *shutdown = s;
    return 0;
}

void blz_shutdown_free(blz_shutdown *s)
{
    if (!s)
        return;
    close_signals(s);
    if (blz__gate_disown(&s->gate))
        blz__shutdown_destroy(s);
}

/* ---- asking ---- */

static void count_request(blz_shutdown *s)
{
    blz__lock_acquire(&s->lock);
    s->report.requests++;
    blz__lock_release(&s->lock);
}

void blz_shutdown_begin(blz_shutdown *s)
{
    count_request(s);
    blz__gate_ask(&s->gate, false);
}

void blz_shutdown_hurry(blz_shutdown *s)
{
    count_request(s);
    blz__gate_ask(&s->gate, true);
}

int blz_shutdown_phase(const blz_shutdown *s)
{
    /* acquire: pairs with the release in blz__gate_advance */
    return gate_phase(blz__load(&s->gate.word, ACQUIRE));
}

blz_token *blz_shutdown_token(const blz_shutdown *s, int phase)
{
    return phase > BLZ_SHUTDOWN_RUNNING && phase < NR_PHASES ? s->tokens[phase] : NULL;
}

void blz_shutdown_get_report(blz_shutdown *s, blz_shutdown_report *report)
{
    uint64_t word = blz__gate_look(&s->gate).word;

    blz__lock_acquire(&s->lock);
    *report = s->report;
    blz__lock_release(&s->lock);
    report->phase = gate_phase(word);
    report->accepting = gate_accepting(word);
    report->working = gate_working(word);
}
