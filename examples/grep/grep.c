/* SPDX-License-Identifier: Apache-2.0 */
/* The program: options, and what is searched. Ends with 0: found, 1: not found, 2: trouble. */
#include "grep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the main task ---- */

struct grep_all {
    BLZ_FRAME;
    struct grep *grep;
    char **paths; /* up to a NULL */
    char *path;
    int64_t rc;
    blz_metadata meta;
    union {
        blz_fs_op op;
        struct walk walk;
        struct submit submit;
        blz_semaphore_op wait;
    };
};

static bool is_input(const char *path)
{
    return strcmp(path, "-") == 0;
}

/* A copy, to be given away; NULL for standard input. 0 or -ENOMEM. */
static int copy_path(struct grep_all *self)
{
    self->path = is_input(*self->paths) ? NULL : strdup(*self->paths);
    return self->path || is_input(*self->paths) ? 0 : -ENOMEM;
}

BLZ_ASYNC(grep_all)
{
    BLZ_BEGIN;
    self->rc = blz_stdout(&self->grep->output);
    if (self->rc < 0) {
        complain(self->grep, "(standard output)", self->rc);
        goto out;
    }
    blz_oneshot_init(&self->grep->slots[0].turn);
    blz_oneshot_send(&self->grep->slots[0].turn, 0); /* the first need not wait */
    for (; *self->paths && !atomic_load(&self->grep->stopped); self->paths++) {
        self->meta.type = BLZ_FILE_REGULAR;
        if (self->grep->settings.recursive && !is_input(*self->paths)) /* "": all from here on */
            BLZ_AWAIT(self->rc,
                      blz_fs_metadata(&self->op, **self->paths ? *self->paths : ".", &self->meta));
        self->rc = copy_path(self);
        if (self->rc == 0 && self->meta.type == BLZ_FILE_DIRECTORY)
            BLZ_CALL(self->rc, self->walk, walk, .grep = self->grep, .path = self->path);
        else if (self->rc == 0)
            BLZ_CALL(self->rc, self->submit, submit, .grep = self->grep, .path = self->path);
        if (self->rc < 0)
            complain(self->grep, *self->paths, self->rc);
    }
    BLZ_AWAIT(self->rc, blz_semaphore_acquire(&self->wait, &self->grep->free_slots, SLOTS));
    blz_stream_close(&self->grep->output);
out:
    BLZ_END(self->rc);
}

/* ---- the program ---- */

static const char usage[] = "grep [-EFchilnrvH] PATTERN [FILE]...\n"
                            "\n"
                            "  -E  PATTERN is an extended regular expression; this is the default\n"
                            "  -F  PATTERN is what is looked for itself\n"
                            "  -c  how many lines of each file\n"
                            "  -h  without the names of files\n"
                            "  -H  with them; the default if there are several\n"
                            "  -i  small and capital letters are the same\n"
                            "  -l  the names of files only\n"
                            "  -n  with the numbers of lines\n"
                            "  -r  all files below directories; default: below this one\n"
                            "  -v  lines that do not match\n"
                            "\n"
                            "A FILE of - is standard input, which is also the default.\n";

static bool parse_options(struct settings *s, int argc, char **argv)
{
    int option, names = 0;

    while ((option = getopt(argc, argv, "EFcHhilnrv")) != -1) {
        switch (option) {
        case 'E':
        case 'F':
            s->fixed = option == 'F';
            break;
        case 'c':
            s->count = true;
            break;
        case 'h':
        case 'H':
            names = option;
            break;
        case 'i':
            s->ignore_case = true;
            break;
        case 'l':
            s->list = true;
            break;
        case 'n':
            s->number = true;
            break;
        case 'r':
            s->recursive = true;
            break;
        case 'v':
            s->invert = true;
            break;
        default:
            return false;
        }
    }
    if (optind == argc)
        return false;
    s->pattern = argv[optind++];
    s->names = names == 'H' || (names == 0 && (s->recursive || argc - optind > 1));
    return true;
}

/* Whether it can be looked for at all. */
static bool check_pattern(const struct settings *s)
{
    struct matcher matcher;
    char why[256] = "no memory";

    if (strchr(s->pattern, '\n'))
        snprintf(why, sizeof why, "a pattern is one line");
    else if (matcher_init(&matcher, s, why, sizeof why) == 0) {
        matcher_free(&matcher);
        return true;
    }
    fprintf(stderr, "grep: %s\n", why);
    return false;
}

int main(int argc, char **argv)
{
    static struct grep grep;
    char here[] = "", input[] = "-", *nothing[] = {NULL, NULL}, **paths;
    int64_t rc;

    if (!parse_options(&grep.settings, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    if (!check_pattern(&grep.settings))
        return 2;
    nothing[0] = grep.settings.recursive ? here : input;
    paths = optind < argc ? argv + optind : nothing;
    blz_semaphore_init(&grep.free_slots, SLOTS);
    rc = BLZ_RUN(grep_all, .grep = &grep, .paths = paths);
    for (int i = 0; i < TURNS; i++)
        find_free(&grep.slots[i].finder);
    if (rc < 0 || atomic_load(&grep.failed))
        return 2;
    return !atomic_load(&grep.found);
}
