/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distribution of many elements in place, for sorts that need not be stable: no second array, whose
 * pages the system would have to clear first, and each element is read and written twice in all.
 *
 * 1. The array is cut into stripes, which are gone through in parallel. The elements of a stripe go
 *    to buffers, one for each bucket. When a buffer holds a block it is written to the front of the
 *    stripe: what was there has been read. In the end the front of each stripe consists of whole
 *    blocks, each of one bucket, and the rest is in the buffers.
 * 2. Now the sizes of the buckets are known, and so are their places. The array is a row of slots
 *    for blocks. Each block gets a slot that is within its bucket; if it has one too many for that,
 *    that one is put aside.
 * 3. The blocks are moved. A slot is free once its block has moved away, so the moves are chains
 *    that each begin at a free slot (or circles). Chains are cut into pieces, for several threads:
 *    the block that is read at a cut is put aside before, since the next piece writes to its slot.
 * 4. What is left of each bucket (buffers, blocks put aside) goes to where its blocks are not.
 *
 * A bucket is what the kernels have written down once; comparisons that lie change nothing here.
 */
#include "par/sort.h"

#include <string.h>

enum {
    BLOCK_BYTES = 1024,
    CHUNK = 2048,   /* elements that are classified at a time */
    LEAST = 4096,   /* elements */
    BUCKETS = 1024, /* at most */
    PIECE = 256,    /* moves that one thread does in a row */
    STRIPES_PER_THREAD = 2,
    NONE = -1,
};

/* Where the block of a move is by then. */
enum whereabouts {
    IN_SLOT,
    IN_HAND,   /* the piece has picked it up where the circle begins */
    IN_CIRCLE, /* aside: another piece has begun the circle */
    AT_CUT,    /* aside: the next piece writes to its slot */
};

typedef struct move {
    int32_t from, to; /* slots */
    uint8_t where;
    bool picks_up; /* what is at `to`, before */
} move;

/* A part of the array with buffers of its own. */
typedef struct stripe {
    size_t begin, end; /* elements; it begins with a slot */
    size_t nr_blocks;  /* in its first slots */
    size_t *counts;    /* elements of each bucket */
    char **fill;       /* where the buffer of each bucket has got to */
    char *buffers;     /* of two blocks each */
} stripe;

typedef struct blocks {
    const sorter *s;
    struct blz_sort_split_ by;
    char *v;
    size_t n;
    size_t block, bytes; /* elements and bytes of a block */
    size_t nr_buckets, nr_slots, nr_stripes, nr_moves;
    stripe *stripes;
    uint16_t *bucket_of;     /* of the block in each slot */
    int32_t *source;         /* of each slot: the slot of the block that goes there, or NONE */
    bool *is_full;           /* of each slot: its block has to move */
    size_t *starts;          /* of each bucket, and the end of all */
    size_t *first_slot, *nr; /* of each bucket: the slots that blocks go to */
    bool *has_excess;        /* of each bucket... */
    char *excess;            /* ...a block too many */
    move *moves;
    char *aside;  /* two blocks for each piece */
    char *sample; /* elements that the splitters are chosen from, and the splitters */
} blocks;

static char *slot_at(const blocks *b, size_t slot)
{
    return b->v + slot * b->bytes;
}

static char *buffer_of(const blocks *b, const stripe *st, size_t bucket)
{
    return st->buffers + bucket * 2 * b->bytes;
}

/* ---- 1: stripes ---- */

static void flush(blocks *b, stripe *st, size_t bucket)
{
    char *buffer = buffer_of(b, st, bucket);
    size_t slot = st->begin / b->block + st->nr_blocks++;
    size_t rest = (size_t)(st->fill[bucket] - buffer) - b->bytes;

    memcpy(slot_at(b, slot), buffer, b->bytes);
    memcpy(buffer, buffer + b->bytes, rest);
    b->bucket_of[slot] = (uint16_t)bucket;
    st->fill[bucket] = buffer + rest;
}

static bool is_ripe(const blocks *b, const stripe *st, size_t bucket)
{
    return st->fill[bucket] >= buffer_of(b, st, bucket) + b->bytes;
}

/* Too many for one buffer, perhaps: a block's worth at a time always fits. */
static void move_carefully(blocks *b, stripe *st, const char *v, const uint16_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i += b->block) {
        b->s->k->scatter(&b->by, sort_at(b->s, v, i), ids + i, min_size(n - i, b->block), st->fill);
        for (size_t bucket = 0; bucket < b->nr_buckets; bucket++)
            if (is_ripe(b, st, bucket))
                flush(b, st, bucket);
    }
}

/* Adds the counts of a chunk; tells which buffers it will fill. False: it overfills one. */
static bool add_counts(const blocks *b, stripe *st, size_t *counts, uint16_t *ripe, size_t *nr_ripe)
{
    size_t size = b->s->k->size, most = 0, nr = 0;

    for (size_t bucket = 0; bucket < b->nr_buckets; bucket++) {
        size_t held = (size_t)(st->fill[bucket] - buffer_of(b, st, bucket)) + counts[bucket] * size;

        most = max_size(most, held);
        ripe[nr] = (uint16_t)bucket;
        nr += held >= b->bytes;
        st->counts[bucket] += counts[bucket];
        counts[bucket] = 0;
    }
    *nr_ripe = nr;
    return most <= 2 * b->bytes;
}

static BLZ_NOINLINE void go_through(blocks *b, stripe *st)
{
    size_t counts[BUCKETS] = {0}, nr_ripe;
    uint16_t ripe[BUCKETS], ids[CHUNK];

    for (size_t bucket = 0; bucket < b->nr_buckets; bucket++)
        st->fill[bucket] = buffer_of(b, st, bucket);
    memset(st->counts, 0, b->nr_buckets * sizeof *st->counts);
    for (size_t i = st->begin; i < st->end; i += CHUNK) {
        const char *v = sort_at(b->s, b->v, i);
        size_t n = min_size(st->end - i, CHUNK);

        b->s->k->classify(&b->by, v, n, ids, counts, b->s->arg);
        if (!add_counts(b, st, counts, ripe, &nr_ripe)) {
            move_carefully(b, st, v, ids, n);
            continue;
        }
        b->s->k->scatter(&b->by, v, ids, n, st->fill);
        for (size_t r = 0; r < nr_ripe; r++)
            flush(b, st, ripe[r]);
    }
}

static int go_through_stripes(blz_par *par, size_t begin, size_t end, void *arg)
{
    blocks *b = arg;

    (void)par;
    for (size_t i = begin; i < end; i++)
        go_through(b, &b->stripes[i]);
    return 0;
}

/* ---- 2: where blocks go ---- */

static void place_buckets(blocks *b)
{
    size_t start = 0;

    for (size_t bucket = 0; bucket < b->nr_buckets; bucket++) {
        b->starts[bucket] = start;
        b->first_slot[bucket] = nr_blocks(start, b->block);
        b->nr[bucket] = 0;
        b->has_excess[bucket] = false;
        for (size_t i = 0; i < b->nr_stripes; i++)
            start += b->stripes[i].counts[bucket];
    }
    b->starts[b->nr_buckets] = start;
}

static void place_block(blocks *b, size_t slot)
{
    size_t bucket = b->bucket_of[slot], to = b->first_slot[bucket] + b->nr[bucket];

    if ((to + 1) * b->block <= b->starts[bucket + 1]) {
        b->source[to] = (int32_t)slot;
        b->is_full[slot] = true;
        b->nr[bucket]++;
    } else {
        memcpy(b->excess + bucket * b->bytes, slot_at(b, slot), b->bytes);
        b->has_excess[bucket] = true;
    }
}

static void place_blocks(blocks *b)
{
    for (size_t slot = 0; slot < b->nr_slots; slot++) {
        b->source[slot] = NONE;
        b->is_full[slot] = false;
    }
    for (size_t i = 0; i < b->nr_stripes; i++)
        for (size_t k = 0; k < b->stripes[i].nr_blocks; k++)
            place_block(b, b->stripes[i].begin / b->block + k);
}

/* Writes down the moves of a chain that begins at a slot. The last block may come from there. */
static void plan_chain(blocks *b, int32_t slot)
{
    size_t first = b->nr_moves, last;
    int32_t from;

    for (int32_t to = slot; (from = b->source[to]) != NONE; to = from) {
        bool is_cut = b->nr_moves % PIECE == PIECE - 1 && b->source[from] != NONE;

        b->moves[b->nr_moves++] = (move){from, to, is_cut ? AT_CUT : IN_SLOT, false};
        b->source[to] = NONE;
    }
    last = b->nr_moves - 1;
    if (b->moves[last].from == slot) {
        bool at_once = first / PIECE == last / PIECE;
        b->moves[last].where = at_once ? IN_HAND : IN_CIRCLE;
        b->moves[first].picks_up = at_once;
    }
}

static void plan_moves(blocks *b)
{
    b->nr_moves = 0;
    for (size_t slot = 0; slot < b->nr_slots; slot++)
        if (b->source[slot] != NONE && !b->is_full[slot])
            plan_chain(b, (int32_t)slot);
    for (size_t slot = 0; slot < b->nr_slots; slot++)
        if (b->source[slot] == (int32_t)slot)
            b->source[slot] = NONE;
        else if (b->source[slot] != NONE)
            plan_chain(b, (int32_t)slot);
}

/* ---- 3: moving ---- */

static char *aside_of(const blocks *b, size_t at, enum whereabouts where)
{
    return b->aside + (at / PIECE * 2 + (where == AT_CUT)) * b->bytes;
}

static int put_aside(blz_par *par, size_t begin, size_t end, void *arg)
{
    const blocks *b = arg;

    (void)par;
    for (size_t i = begin * PIECE; i < min_size(end * PIECE, b->nr_moves); i++) {
        const move *m = &b->moves[i];
        if (m->where >= IN_CIRCLE)
            memcpy(aside_of(b, i, m->where), slot_at(b, (size_t)m->from), b->bytes);
    }
    return 0;
}

static BLZ_NOINLINE int do_moves(blz_par *par, size_t begin, size_t end, void *arg)
{
    const blocks *b = arg;
    char hand[BLOCK_BYTES];

    (void)par;
    for (size_t i = begin * PIECE; i < min_size(end * PIECE, b->nr_moves); i++) {
        const move *m = &b->moves[i];
        const char *from = slot_at(b, (size_t)m->from);

        if (m->picks_up)
            memcpy(hand, slot_at(b, (size_t)m->to), b->bytes);
        if (m->where == IN_HAND)
            from = hand;
        else if (m->where != IN_SLOT)
            from = aside_of(b, i, m->where);
        memcpy(slot_at(b, (size_t)m->to), from, b->bytes);
    }
    return 0;
}

/* ---- 4: the rest ---- */

/* Where elements are poured in: a gap, then another one. */
typedef struct gaps {
    char *at, *next;
    size_t room; /* bytes of the first one */
} gaps;

static void pour(gaps *g, const char *from, size_t bytes)
{
    size_t first = min_size(bytes, g->room);

    memcpy(g->at, from, first);
    g->at += first;
    g->room -= first;
    if (bytes == first)
        return;
    memcpy(g->next, from + first, bytes - first);
    g->at = g->next + (bytes - first);
    g->room = SIZE_MAX; /* all that is left fits */
}

static void fill_bucket(const blocks *b, size_t bucket)
{
    gaps g = {.at = sort_at(b->s, b->v, b->starts[bucket]), .room = SIZE_MAX};

    if (b->nr[bucket] > 0) {
        g.room = (size_t)(slot_at(b, b->first_slot[bucket]) - g.at);
        g.next = slot_at(b, b->first_slot[bucket] + b->nr[bucket]);
    }
    for (size_t i = 0; i < b->nr_stripes; i++) {
        const char *buffer = buffer_of(b, &b->stripes[i], bucket);
        pour(&g, buffer, (size_t)(b->stripes[i].fill[bucket] - buffer));
    }
    if (b->has_excess[bucket])
        pour(&g, b->excess + bucket * b->bytes, b->bytes);
}

static int fill_buckets(blz_par *par, size_t begin, size_t end, void *arg)
{
    (void)par;
    for (size_t bucket = begin; bucket < end; bucket++)
        fill_bucket(arg, bucket);
    return 0;
}

/* ---- all of it ---- */

static void each(blz_par *par, size_t n, blz_par_range_fn body, blocks *b)
{
    blz_par_options o = sort_loop_options(b->s, 1);
    int rc = blz_par_for(par, n, body, b, &o);

    (void)rc; /* bodies that do not fail */
}

static void distribute(blz_par *par, blocks *b)
{
    each(par, b->nr_stripes, go_through_stripes, b);
    place_buckets(b);
    place_blocks(b);
    plan_moves(b);
    each(par, nr_blocks(b->nr_moves, PIECE), put_aside, b);
    each(par, nr_blocks(b->nr_moves, PIECE), do_moves, b);
    each(par, b->nr_buckets, fill_buckets, b);
}

/* ---- memory ---- */

typedef struct carver {
    char *room; /* NULL: to see how much it takes */
    size_t used;
} carver;

static void *carve(carver *c, size_t nr, size_t size)
{
    void *piece = c->room ? c->room + c->used : NULL;

    c->used += nr_blocks(nr * size, BLZ_CACHE_LINE) * BLZ_CACHE_LINE;
    return piece;
}

/* The arrays of all slots, of all buckets, of all stripes. The bytes that they take. */
static size_t lay_out(blocks *b, char *room)
{
    carver c = {room, 0};

    b->bucket_of = carve(&c, b->nr_slots, sizeof *b->bucket_of);
    b->source = carve(&c, b->nr_slots, sizeof *b->source);
    b->is_full = carve(&c, b->nr_slots, sizeof *b->is_full);
    b->moves = carve(&c, b->nr_slots, sizeof *b->moves);
    b->aside = carve(&c, nr_blocks(b->nr_slots, PIECE), 2 * b->bytes);
    b->starts = carve(&c, BUCKETS + 1, sizeof *b->starts);
    b->first_slot = carve(&c, BUCKETS, sizeof *b->first_slot);
    b->nr = carve(&c, BUCKETS, sizeof *b->nr);
    b->has_excess = carve(&c, BUCKETS, sizeof *b->has_excess);
    b->excess = carve(&c, BUCKETS, b->bytes);
    b->sample = carve(&c, SORT_SAMPLE_ROOM, b->s->k->size);
    b->stripes = carve(&c, b->nr_stripes, sizeof *b->stripes);
    for (size_t i = 0; i < b->nr_stripes; i++) {
        stripe st = {.counts = carve(&c, BUCKETS, sizeof *st.counts)};
        st.fill = carve(&c, BUCKETS, sizeof *st.fill);
        st.buffers = carve(&c, BUCKETS, 2 * b->bytes);
        if (room)
            b->stripes[i] = st;
    }
    return c.used;
}

static void cut_into_stripes(blocks *b)
{
    for (size_t i = 0; i < b->nr_stripes; i++) {
        b->stripes[i].begin = b->nr_slots * i / b->nr_stripes * b->block;
        b->stripes[i].end = b->nr_slots * (i + 1) / b->nr_stripes * b->block;
    }
    b->stripes[b->nr_stripes - 1].end = b->n;
}

/* ---- sorting the buckets ---- */

typedef struct parts {
    const blocks *b;
    size_t begin, end; /* buckets */
    unsigned levels;
} parts;

typedef struct forked {
    blz_par_job job;
    parts what;
} forked;

static void sort_part(blz_par *par, const parts *p, size_t bucket, span *room, size_t most)
{
    const blocks *b = p->b;
    span sp = *room;

    sp.v = sort_at(b->s, b->v, b->starts[bucket]);
    sp.n = b->starts[bucket + 1] - b->starts[bucket];
    sp.bits = b->by.shift;
    if (sp.n < 2 || sort_are_equal(&b->by, bucket))
        return;
    if (sp.n <= most)
        blz__sort_span(par, b->s, &sp);
    else
        blz__sort_without_room(par, b->s, sp.v, sp.n, p->levels - 1);
}

/* With room for the largest of them, if that is not too much. */
static void sort_some(blz_par *par, const parts *p)
{
    const blocks *b = p->b;
    size_t most = 2;
    span sp;
    void *room;

    for (size_t i = p->begin; i < p->end; i++) {
        size_t n = b->starts[i + 1] - b->starts[i];
        if (n < SORT_BLOCKS && !sort_are_equal(&b->by, i))
            most = max_size(most, n);
    }
    room = blz__sort_get_room(par, b->s, NULL, most, &sp);
    for (size_t i = p->begin; i < p->end && !sort_is_cancelled(b->s); i++)
        sort_part(par, p, i, &sp, room ? most : 0);
    if (room)
        blz__sort_free_room(par, b->s, room, most);
}

static void run_parts(blz_par *par, blz_par_job *job);

static void sort_parts(blz_par *par, const parts *p)
{
    size_t n = p->b->starts[p->end] - p->b->starts[p->begin];
    forked right = {.what = *p};
    parts left = *p;

    if (p->end - p->begin == 1 || n <= sort_grain(p->b->s, SORT_BLOCKS)) {
        sort_some(par, p);
        return;
    }
    left.end = right.what.begin = p->begin + (p->end - p->begin) / 2;
    blz_par_fork(par, &right.job, run_parts);
    sort_parts(par, &left);
    if (sort_unfork(par, p->b->s, &right.job))
        sort_parts(par, &right.what);
}

static void run_parts(blz_par *par, blz_par_job *job)
{
    sort_parts(par, &blz_container_of(job, forked, job)->what);
}

/* ---- the whole ---- */

static bool fits(const sorter *s, size_t n)
{
    return n >= LEAST && n / (BLOCK_BYTES / SORT_BLOCKS_SIZE) < INT32_MAX &&
           s->k->size <= SORT_BLOCKS_SIZE && s->k->align <= BLZ_CACHE_LINE;
}

static void sort_with(blz_par *par, blocks *b, unsigned levels)
{
    span sp = {.v = b->v, .spare = b->sample, .n = b->n};

    cut_into_stripes(b);
    if (!blz__sort_choose(par, b->s, &sp, &b->by))
        return; /* all are equal */
    b->nr_buckets = sort_nr_buckets(&b->by);
    if (b->nr_buckets > BUCKETS) {
        blz__sort_in_place(par, b->s, b->v, b->n); /* they are few: there was no room for them */
        return;
    }
    distribute(par, b);
    sort_parts(par, &(parts){b, 0, b->nr_buckets, levels});
}

void blz__sort_without_room(blz_par *par, const sorter *s, char *v, size_t n, unsigned levels)
{
    unsigned threads = nr_threads_of(par);
    blocks b = {.s = s, .v = v, .n = n, .block = BLOCK_BYTES / s->k->size};
    char *room = NULL;
    size_t size = 0;

    if (levels > 0 && fits(s, n)) {
        b.bytes = b.block * s->k->size;
        b.nr_slots = n / b.block;
        b.nr_stripes = threads > 1 && n > s->options->grain ? threads * STRIPES_PER_THREAD : 1;
        size = lay_out(&b, NULL);
        room = blz__par_alloc(par, size);
    }
    if (!room) {
        blz__sort_in_place(par, s, v, n);
        return;
    }
    lay_out(&b, room);
    sort_with(par, &b, levels);
    blz__par_free(par, room, size);
}
