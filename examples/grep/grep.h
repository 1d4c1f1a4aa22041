/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small grep: finds lines in files, and in all files below directories.
 *
 *     build/examples/grep -rn 'blz_[a-z]+_open' include src
 *     build/examples/grep -F -c malloc *.c
 *     ls | build/examples/grep -i readme
 *
 * It shows how to do many things at once and have their results in order all the same. A file is
 * searched by a task of its own, up to 32 at a time; what it finds is kept until all files before
 * it have been printed. A task that has found much waits for its turn before it goes on, so memory
 * and open files are bounded, whatever is searched.
 *
 *   grep.c    the program: options, and what is searched
 *   walk.c    directories
 *   search.c  one file, by a task, in its turn
 *   find.c    from bytes to what is printed  } plain functions
 *   match.c   lines that match               }
 *
 * Like grep -E -I: files with zeros in them are not searched. Text is bytes, whatever the locale.
 */
#ifndef GREP_GREP_H
#define GREP_GREP_H

#include <blitz.h>
#include <regex.h>
#include <stdatomic.h>

struct settings {
    const char *pattern;
    bool fixed;       /* -F */
    bool ignore_case; /* -i */
    bool number;      /* -n */
    bool list;        /* -l */
    bool count;       /* -c */
    bool invert;      /* -v */
    bool recursive;   /* -r */
    bool names;       /* each line begins with the file's name */
};

/* ---- match.c ---- */

/* The system's regular expressions hold a lock while they match: one for each who searches. */
struct matcher {
    const char *text; /* NULL: is a regular expression */
    size_t len;
    regex_t regex;
};

/* 0, or what regcomp(3) says, in words. */
int matcher_init(struct matcher *matcher, const struct settings *settings, char *why, size_t size);
void matcher_free(struct matcher *matcher);

/*
 * The first line of `text` that matches, or false. A line is up to and with its '\n', which may be
 * missing at the end of the text. The text has a byte more than its length, and is as it was
 * afterwards.
 */
bool match_next(const struct matcher *matcher, char *text, size_t len, size_t *at,
                size_t *line_len);

/* ---- find.c ---- */

/* What searching a file takes, besides the file. One file after the other uses it. */
struct finder {
    const struct settings *settings;
    const char *name;
    struct matcher matcher;
    bool has_matcher;
    bool binary;          /* there are zeros in it */
    bool ended;           /* need not be read further */
    uint64_t line;        /* numbers; not counted unless they are wanted */
    uint64_t nr_selected; /* lines */
    char *in, *out;       /* not searched yet; not printed yet */
    size_t in_size, in_len, out_size, out_len;
};

/* Begins a file: 0 or a negative errno. */
int find_begin(struct finder *finder, const struct settings *settings, const char *name);

/* Room to read into: its size, or -ENOMEM. -EOVERFLOW: a line without an end. */
int64_t find_room(struct finder *finder, char **room);

/* So many bytes have come; 0: the end. Adds what is to be printed to `out`. 0 or -ENOMEM. */
int find_more(struct finder *finder, size_t len);

/* Adds what is known at the end of a file. 0 or -ENOMEM. */
int find_end(struct finder *finder);

void find_free(struct finder *finder);

/* ---- search.c ---- */

enum { SLOTS = 32, TURNS = SLOTS + 1 };

struct slot {
    blz_oneshot turn; /* told when all files before have been printed */
    struct finder finder;
};

struct grep {
    struct settings settings;
    blz_stream output;
    blz_semaphore free_slots;
    uint64_t nr_files; /* so far; the next one has slots[nr_files % TURNS] */
    struct slot slots[TURNS];
    atomic_bool found, failed;
    atomic_bool stopped; /* nobody reads our output */
};

/* Has a file searched, in its turn: 0. `path` is taken, and freed; NULL: standard input. */
struct submit {
    BLZ_FRAME;
    struct grep *grep;
    char *path;
    int64_t rc;
    blz_semaphore_op slot;
};
BLZ_DECLARE_EXTERN(submit);

/* Says what is wrong with a file; the program will end with 2. [any thread] */
void complain(struct grep *grep, const char *path, int64_t error);

/* ---- walk.c ---- */

/* All files below a directory, in the order of their names: 0. `path` is taken, and freed. */
struct walk {
    BLZ_FRAME;
    struct grep *grep;
    char *path;
    char **names; /* of directories with a slash; each is freed when its turn comes */
    size_t nr_names, room, i;
    char *child;
    int64_t rc;
    blz_dir dir;
    blz_dir_entry entry;
    blz_metadata meta;
    union {
        blz_fs_op op;
        struct submit submit;
        blz_box box;
    };
};
BLZ_DECLARE_EXTERN(walk);

#endif
