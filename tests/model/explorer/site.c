/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places in the source that do atomic operations, and mutants of them.
 *
 * Each use of a macro of base/atomic.h has a static struct model_site in a section of its own, so
 * the linker makes an array of them, those that are never reached included. A site is named as
 * file:function:kind#K, where K counts the operations of that kind in the function, from 1, in
 * the order of the source: that survives edits elsewhere better than a line number does.
 *
 * MODEL_MUTATE="file.c:function:kind#K=order" replaces the order at one site (several, separated
 * by commas): kind is load, store, rmw, cas (its order on success), casfail (its order on failure)
 * or fence; order is relaxed, acquire, release, acq_rel, seq_cst, or drop for a fence. A static
 * inline function in a header has one site in each file that includes it: they are mutated
 * together.
 */
#include "explorer.h"
#include "settings.h"

#include <stdlib.h>
#include <string.h>

/* Made by the linker; weak, for a program without sites. */
extern struct model_site __start_model_sites[] __attribute__((weak));
extern struct model_site __stop_model_sites[] __attribute__((weak));

static const char *const kind_names[] = {"load", "store", "rmw", "cas", "fence"};

static bool same_group(const struct model_site *a, const struct model_site *b)
{
    return a->op == b->op && strcmp(a->function, b->function) == 0 &&
           strcmp(a->file, b->file) == 0 && strcmp(a->unit, b->unit) == 0;
}

static bool comes_before(const struct model_site *a, const struct model_site *b)
{
    return a->line != b->line ? a->line < b->line : a->counter < b->counter;
}

static void rank_sites(void)
{
    for (struct model_site *site = __start_model_sites; site < __stop_model_sites; site++) {
        site->rank = 1;
        for (struct model_site *other = __start_model_sites; other < __stop_model_sites; other++)
            if (other != site && same_group(site, other) && comes_before(other, site))
                site->rank++;
    }
}

/* ---- Mutants ---- */

struct mutant {
    char file[128];
    char function[128];
    char kind[16];
    unsigned rank;
    char order[16];
};

static bool parse_mutant(const char *text, size_t length, struct mutant *mutant)
{
    char copy[320];
    int consumed = 0;

    if (length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return sscanf(copy, "%127[^:]:%127[^:]:%15[a-z]#%u=%15[a-z_]%n", mutant->file, mutant->function,
                  mutant->kind, &mutant->rank, mutant->order, &consumed) == 5 &&
           copy[consumed] == '\0';
}

/* -2: no such order; -1: drop. */
static int order_named(const char *name)
{
    static const int orders[] = {__ATOMIC_RELAXED, __ATOMIC_ACQUIRE, __ATOMIC_RELEASE,
                                 __ATOMIC_ACQ_REL, __ATOMIC_SEQ_CST};

    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
        if (strcmp(name, model__order_name(orders[i])) == 0)
            return orders[i];
    return strcmp(name, "drop") == 0 ? -1 : -2;
}

static bool kind_exists(const char *kind)
{
    for (size_t i = 0; i < sizeof kind_names / sizeof kind_names[0]; i++)
        if (strcmp(kind, kind_names[i]) == 0)
            return true;
    return strcmp(kind, "casfail") == 0;
}

static bool path_ends_with(const char *path, const char *end)
{
    size_t length = strlen(path), end_length = strlen(end);

    return length >= end_length && strcmp(path + length - end_length, end) == 0 &&
           (length == end_length || path[length - end_length - 1] == '/');
}

static bool matches(const struct model_site *site, const struct mutant *mutant)
{
    const char *kind = strcmp(mutant->kind, "casfail") == 0 ? "cas" : mutant->kind;

    return site->op <= MODEL_OP_FENCE && site->rank == mutant->rank &&
           strcmp(kind_names[site->op], kind) == 0 &&
           strcmp(site->function, mutant->function) == 0 &&
           path_ends_with(site->file, mutant->file);
}

static void apply_mutant(struct model_site *site, const struct mutant *mutant, int order)
{
    site->mutated = true;
    if (order == -1)
        site->dropped = true;
    else if (strcmp(mutant->kind, "casfail") == 0)
        site->effective_fail = (int8_t)order;
    else
        site->effective = (int8_t)order;
}

static bool mutate(const char *text, size_t length)
{
    struct mutant mutant;

    if (!parse_mutant(text, length, &mutant) || !kind_exists(mutant.kind))
        return false;
    int order = order_named(mutant.order);
    if (order == -2 || (order == -1 && strcmp(mutant.kind, "fence") != 0))
        return false;
    for (struct model_site *site = __start_model_sites; site < __stop_model_sites; site++)
        if (matches(site, &mutant))
            apply_mutant(site, &mutant, order);
    return true;
}

bool model__sites_prepare(void)
{
    rank_sites();
    const char *text = model__settings()->mutate;
    while (text != NULL && *text != '\0') {
        size_t length = strcspn(text, ",");
        if (!mutate(text, length)) {
            fprintf(stderr, "model: MODEL_MUTATE is malformed: %s\n", text);
            return false;
        }
        text += length;
        text += *text == ',';
    }
    return true;
}

/* True if there should be a mutant, but no operation of it was executed. */
bool model__mutant_missed(void)
{
    if (model__settings()->mutate == NULL)
        return false;
    for (struct model_site *site = __start_model_sites; site < __stop_model_sites; site++)
        if (site->mutated && site->executed > 0)
            return false;
    return true;
}

/* ---- The list ---- */

static int in_source_order(const void *left, const void *right)
{
    const struct model_site *a = *(struct model_site *const *)left;
    const struct model_site *b = *(struct model_site *const *)right;
    int files = strcmp(a->file, b->file);

    if (files != 0)
        return files;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static void print_site(const struct model_site *site)
{
    printf("site %s:%s:%s#%u %s", model_basename(site->file), site->function, kind_names[site->op],
           site->rank, model__order_name(site->order));
    if (site->op == MODEL_OP_CAS)
        printf("/%s", model__order_name(site->fail_order));
    printf(" line %u %s\n", site->line, site->what);
}

/* Those executed, once each, even where a header brought them into several files. */
void model__sites_print(void)
{
    size_t count = 0;
    struct model_site **sites =
        malloc((size_t)(__stop_model_sites - __start_model_sites + 1) * sizeof *sites);

    if (sites == NULL)
        return;
    for (struct model_site *site = __start_model_sites; site < __stop_model_sites; site++)
        if (site->executed > 0 && site->op <= MODEL_OP_FENCE)
            sites[count++] = site;
    qsort(sites, count, sizeof *sites, in_source_order);
    for (size_t i = 0; i < count; i++) {
        const struct model_site *last = i > 0 ? sites[i - 1] : NULL;
        if (last == NULL || last->op != sites[i]->op || in_source_order(&last, &sites[i]) != 0)
            print_site(sites[i]);
    }
    free(sites);
}
