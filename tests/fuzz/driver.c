/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds a fuzz target with files: `NAME FILE_OR_DIRECTORY...`. An input that once broke something
 * is kept in the corpus, and any compiler and any sanitizer can then say whether it still does.
 */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

static int nr_inputs;

static void complain(const char *path)
{
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    exit(2);
}

static void feed_file(const char *path, size_t size)
{
    uint8_t *data = malloc(size + (size == 0));
    FILE *file = fopen(path, "rb");

    if (!file || !data || fread(data, 1, size, file) != size)
        complain(path);
    fclose(file);
    fprintf(stderr, "%s\n", path); /* the last one is the culprit */
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    nr_inputs++;
}

static void feed(const char *path)
{
    char inner[4096];
    struct stat st;

    if (stat(path, &st) < 0)
        complain(path);
    if (!S_ISDIR(st.st_mode)) {
        feed_file(path, (size_t)st.st_size);
        return;
    }
    DIR *dir = opendir(path);
    if (!dir)
        complain(path);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        if (snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) < (int)sizeof inner)
            feed(inner);
    }
    closedir(dir);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        feed(argv[i]);
    printf("%d inputs\n", nr_inputs);
    return nr_inputs > 0 ? 0 : 2; /* a test without inputs tests nothing */
}
