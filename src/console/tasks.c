/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window of the tasks of a snapshot, as JSON:
 *
 *   /api/tasks?rt=0&q=TEXT&state=waiting&sort=busy&order=desc&offset=0&limit=100
 *
 * q        is in the name, the function and place of the spawn, the backtrace, or is the number;
 *          upper and lower case are the same
 * state    waiting, queued, running, cancelled; or several, with commas
 * sort     id, name, state, since, polls, busy
 *
 * All rows that match are sorted; a page that scrolls through 100,000 of them asks for what it
 * shows. Texts are looked at once each, not once for each row.
 */
#include "console/console.h"

#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_LIMIT = 1000, DEFAULT_LIMIT = 100, MAX_TEXT = 128 };

/* ---- filtering ---- */

struct filter {
    char text[MAX_TEXT];
    unsigned states; /* bits; cancelled is bit 3 */
    uint8_t *names;  /* whether it matches, for each of the bag's */
    uint8_t *stacks;
};

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static bool contains(const char *text, size_t len, const char *wanted)
{
    size_t n = strlen(wanted);

    for (size_t i = 0; i + n <= len; i++) {
        size_t k = 0;
        while (k < n && lower(text[i + k]) == wanted[k])
            k++;
        if (k == n)
            return true;
    }
    return false;
}

static unsigned states_of(const char *query)
{
    static const char *const names[] = {"waiting", "queued", "running", "cancelled"};
    char text[64];
    unsigned states = 0;

    if (!blz__query_text(query, "state", text, sizeof text) || !*text)
        return 0;
    for (unsigned i = 0; i < 4; i++)
        if (contains(text, strlen(text), names[i]))
            states |= 1u << i;
    return states;
}

static uint8_t *new_marks(const blz_allocator *allocator, uint32_t count)
{
    uint8_t *marks = blz__alloc(allocator, count + 1u, 1);

    if (marks)
        memset(marks, 0, count + 1u);
    return marks;
}

static void filter_free(struct filter *f, const struct snapshot *s)
{
    if (f->names)
        blz__free(s->allocator, f->names, s->names.count + 1u, 1);
    if (f->stacks)
        blz__free(s->allocator, f->stacks, s->stacks.count + 1u, 1);
}

static bool filter_init(struct filter *f, const struct snapshot *s, const char *query)
{
    *f = (struct filter){.states = states_of(query)};
    if (!blz__query_text(query, "q", f->text, sizeof f->text) || !*f->text)
        return true;
    for (char *c = f->text; *c; c++)
        *c = lower(*c);
    f->names = new_marks(s->allocator, s->names.count);
    f->stacks = new_marks(s->allocator, s->stacks.count);
    if (!f->names || !f->stacks)
        return false;
    for (uint32_t i = 0; i < s->names.count; i++) {
        size_t len;
        const char *name = bag_get(&s->names, i, &len);
        f->names[i] = contains(name, len, f->text);
    }
    for (uint32_t i = 0; i < s->stacks.count; i++)
        f->stacks[i] = contains(s->stack_json.data + s->stack_texts[i].json_at,
                                s->stack_texts[i].json_len, f->text);
    return true;
}

static bool matches(const struct filter *f, const struct row *row)
{
    char id[24];

    if (f->states && !(f->states >> row->state & 1) && !(row->cancelled && (f->states & 8)))
        return false;
    if (!*f->text || f->names[row->name] || f->names[row->origin] || f->stacks[row->stack])
        return true;
    snprintf(id, sizeof id, "%llu", (unsigned long long)row->id);
    return strcmp(id, f->text) == 0;
}

/* ---- sorting ---- */

struct order {
    int (*compare)(const struct snapshot *s, const struct row *a, const struct row *b);
    bool descending;
    const struct snapshot *snapshot;
};

static int by_number(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_id(const struct snapshot *s, const struct row *a, const struct row *b)
{
    (void)s;
    return by_number(a->id, b->id);
}

static int by_name(const struct snapshot *s, const struct row *a, const struct row *b)
{
    size_t len_a, len_b;
    const char *name_a, *name_b;
    int order;

    if (a->name == b->name)
        return 0;
    name_a = bag_get(&s->names, a->name, &len_a);
    name_b = bag_get(&s->names, b->name, &len_b);
    order = memcmp(name_a, name_b, len_a < len_b ? len_a : len_b);
    return order ? order : by_number(len_a, len_b);
}

static int by_state(const struct snapshot *s, const struct row *a, const struct row *b)
{
    (void)s;
    return by_number(a->state, b->state);
}

static int by_since(const struct snapshot *s, const struct row *a, const struct row *b)
{
    (void)s;
    return by_number((uint64_t)a->since_ns, (uint64_t)b->since_ns);
}

static int by_polls(const struct snapshot *s, const struct row *a, const struct row *b)
{
    (void)s;
    return by_number(a->polls, b->polls);
}

static int by_busy(const struct snapshot *s, const struct row *a, const struct row *b)
{
    (void)s;
    return by_number(a->busy_ns, b->busy_ns);
}

static struct order order_of(const struct snapshot *s, const char *query)
{
    static const struct {
        const char *name;
        int (*compare)(const struct snapshot *s, const struct row *a, const struct row *b);
    } keys[] = {{"id", by_id},       {"name", by_name},   {"state", by_state},
                {"since", by_since}, {"polls", by_polls}, {"busy", by_busy}};
    struct order order = {.compare = by_id, .snapshot = s};
    char text[16] = "";

    if (blz__query_text(query, "sort", text, sizeof text))
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
            if (strcmp(text, keys[i].name) == 0)
                order.compare = keys[i].compare;
    order.descending =
        blz__query_text(query, "order", text, sizeof text) && strcmp(text, "desc") == 0;
    return order;
}

/* Rows that are equal stay in the order of their numbers, whichever way it goes. */
static int compare(const void *a, const void *b, void *arg)
{
    const struct order *order = arg;
    const struct row *row_a = *(const struct row *const *)a, *row_b = *(const struct row *const *)b;
    int result = order->compare(order->snapshot, row_a, row_b);

    if (result == 0)
        return by_number(row_a->id, row_b->id);
    return order->descending ? -result : result;
}

/* ---- writing ---- */

static void write_name(const struct snapshot *s, struct text *out, const char *key, uint32_t name)
{
    size_t len;
    const char *text = bag_get(&s->names, name, &len);

    blz__text_print(out, ",\"%s\":", key);
    blz__text_json(out, text, len);
}

static void write_wait(const struct snapshot *s, struct text *out, const struct wait *wait)
{
    size_t len;
    const char *kind = bag_get(&s->names, wait->kind, &len);
    const struct row *holder = blz__snapshot_find(s, wait->holder, wait->holder32);

    blz__text_print(out, "{\"kind\":");
    blz__text_json(out, kind, len);
    blz__text_print(out, ",\"object\":\"0x%llx\"", (unsigned long long)wait->object);
    if (wait->fd >= 0)
        blz__text_print(out, ",\"fd\":%d", wait->fd);
    if (holder)
        blz__text_print(out, ",\"holder\":%llu", (unsigned long long)holder->id);
    if (wait->due_ns)
        blz__text_print(out, ",\"due_in_ns\":%lld", (long long)(wait->due_ns - s->taken_ns));
    blz__text_print(out, "}");
}

static void write_row(const struct snapshot *s, struct text *out, const struct row *row)
{
    static const char *const states[] = {"waiting", "queued", "running"};
    const struct stack_text *stack = &s->stack_texts[row->stack];

    blz__text_print(out, "{\"id\":%llu,\"state\":\"%s\",\"cancelled\":%s",
                    (unsigned long long)row->id, states[row->state],
                    row->cancelled ? "true" : "false");
    write_name(s, out, "name", row->name);
    write_name(s, out, "spawned", row->origin);
    blz__text_print(out, ",\"since_ns\":%lld,\"polls\":%u,\"busy_ns\":%llu",
                    (long long)row->since_ns, row->polls, (unsigned long long)row->busy_ns);
    if (row->worker >= 0)
        blz__text_print(out, ",\"worker\":%d", row->worker);
    blz__text_print(out, ",\"stack\":");
    blz__text_add(out, s->stack_json.data + stack->json_at, stack->json_len);
    blz__text_print(out, ",\"waits\":[");
    for (uint32_t i = 0; i < row->nr_waits; i++) {
        if (i)
            blz__text_add(out, ",", 1);
        write_wait(s, out, &s->waits[row->first_wait + i]);
    }
    blz__text_print(out, "]}");
}

static void write_window(const struct snapshot *s, struct text *out, const struct row **rows,
                         size_t count, const char *query)
{
    uint64_t offset = blz__query_number(query, "offset", count, 0);
    uint64_t limit = blz__query_number(query, "limit", MAX_LIMIT, DEFAULT_LIMIT);

    blz__text_print(out,
                    "{\"snapshot\":%llu,\"taken_ns\":%lld,\"took_ns\":%lld,\"total\":%zu,"
                    "\"waiting\":%zu,\"queued\":%zu,\"running\":%zu,\"cancelled\":%zu,"
                    "\"matched\":%zu,\"offset\":%llu,\"tasks\":[",
                    (unsigned long long)s->number, (long long)s->taken_ns, (long long)s->took_ns,
                    s->nr_rows, s->nr_state[OBSERVE_WAITING], s->nr_state[OBSERVE_QUEUED],
                    s->nr_state[OBSERVE_RUNNING], s->nr_cancelled, count,
                    (unsigned long long)offset);
    for (uint64_t i = offset; i < count && i - offset < limit; i++) {
        if (i > offset)
            blz__text_add(out, ",", 1);
        write_row(s, out, rows[i]);
    }
    blz__text_print(out, "]}\n");
}

static size_t select_rows(const struct snapshot *s, const struct filter *f, const struct row **rows)
{
    size_t count = 0;

    for (size_t i = 0; i < s->nr_rows; i++)
        if (matches(f, &s->rows[i]))
            rows[count++] = &s->rows[i];
    return count;
}

void blz__console_tasks(const struct snapshot *s, const char *query, struct text *out)
{
    struct order order = order_of(s, query);
    struct filter filter;
    size_t size = (s->nr_rows + 1) * sizeof(struct row *), count;
    const struct row **rows = blz__alloc(s->allocator, size, _Alignof(struct row *));

    if (!rows || !filter_init(&filter, s, query)) {
        out->failed = true;
    } else {
        count = select_rows(s, &filter, rows);
        qsort_r(rows, count, sizeof *rows, compare, &order);
        write_window(s, out, rows, count, query);
    }
    if (rows) {
        filter_free(&filter, s);
        blz__free(s->allocator, (void *)rows, size, _Alignof(struct row *));
    }
}
