/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options in BLZ_TRACE=FILE,limit=64M,sample=16. They are taken from the end, one after the
 * other, as long as what follows the last comma looks like one ("word="): so the name of the file
 * may contain commas.
 */
#include "observe/trace.h"

#include <blitz/trace.h>
#include <blitz/error.h>
#include <limits.h>
#include <string.h>

/* The option at the end of the text, with its comma; or NULL. */
static char *last_option(char *text)
{
    char *comma = strrchr(text, ',');
    size_t len = comma ? strspn(comma + 1, "abcdefghijklmnopqrstuvwxyz_") : 0;

    return len > 0 && comma[1 + len] == '=' ? comma : NULL;
}

/* "64M", up to `max`; 0: it is no number, or too large. */
static uint64_t number_of(const char *text, uint64_t max)
{
    static const char units[] = "kMG";
    const char *unit;
    uint64_t number = 0;

    for (; *text >= '0' && *text <= '9'; text++)
        if (__builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number))
            return 0;
    unit = *text ? strchr(units, *text) : NULL;
    if (unit) {
        text++;
        if (__builtin_mul_overflow(number, (uint64_t)1024 << 10 * (unit - units), &number))
            return 0;
    }
    return *text || number > max ? 0 : number;
}

/* The value of an option of that name; or NULL. */
static const char *value_of(const char *option, const char *name)
{
    size_t len = strlen(name);

    return strncmp(option, name, len) == 0 ? option + len : NULL;
}

int blz__trace_parse(blz_trace_options *options, char *text)
{
    char *option;

    while ((option = last_option(text))) {
        const char *limit = value_of(option, ",limit="), *sample = value_of(option, ",sample=");

        if (limit)
            options->limit = number_of(limit, UINT64_MAX);
        if (sample)
            options->sample = (unsigned)number_of(sample, UINT_MAX);
        if ((!limit || !options->limit) && (!sample || !options->sample))
            return -EINVAL;
        *option = '\0';
    }
    return *text ? 0 : -EINVAL;
}
