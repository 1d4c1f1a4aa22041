/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file: sections of "name = value" lines, one a service. Comments begin with '#', at the
 * beginning of a line. Commands are split into words as a shell does it, with quotes and
 * backslashes, and that is all that is done to them.
 */
#include "supervisor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Without the blanks on both sides; changes the text. */
static char *trim(char *text)
{
    size_t len;

    while (is_blank(*text))
        text++;
    len = strlen(text);
    while (len > 0 && is_blank(text[len - 1]))
        text[--len] = 0;
    return text;
}

/* ---- values ---- */

/* "200ms", "5s", "2m", "5": seconds. Moves *text behind it. */
static bool take_duration(const char **text, int64_t *ns)
{
    char *end;
    unsigned long long n = strtoull(*text, &end, 10);
    int64_t unit = BLZ_SEC;

    if (**text < '0' || **text > '9' || n > 1000000)
        return false;
    if (strncmp(end, "ms", 2) == 0) {
        unit = BLZ_MSEC;
        end += 2;
    } else if (*end == 's' || *end == 'm') {
        unit = *end == 'm' ? 60 * BLZ_SEC : BLZ_SEC;
        end++;
    }
    *ns = (int64_t)n * unit;
    *text = end;
    return *end == 0 || is_blank(*end);
}

static bool parse_duration(const char *text, int64_t *ns)
{
    return take_duration(&text, ns) && *text == 0;
}

/* "100ms 5s" */
static bool parse_backoff(struct definition *d, const char *text)
{
    if (!take_duration(&text, &d->first_ns))
        return false;
    d->max_ns = d->max_ns > d->first_ns ? d->max_ns : d->first_ns;
    if (*text == 0)
        return true;
    while (is_blank(*text))
        text++;
    return parse_duration(text, &d->max_ns) && d->max_ns >= d->first_ns;
}

static bool parse_restart(struct definition *d, const char *text)
{
    static const char *const names[] = {"on-failure", "always", "never"};

    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            d->restart = (enum restart)i;
            return true;
        }
    return false;
}

/* Takes one word out of `from`, in place; `to` is where it goes. False: a quote has no end. */
static bool take_word(char **from, char **to)
{
    char quote = 0, *in = *from, *out = *to;

    for (; *in && (quote || !is_blank(*in)); in++) {
        if (quote ? *in == quote : *in == '\'' || *in == '"')
            quote = quote ? 0 : *in;
        else if (*in == '\\' && quote != '\'' && in[1])
            *out++ = *++in;
        else
            *out++ = *in;
    }
    *from = *in ? in + 1 : in;
    *out++ = 0;
    *to = out;
    return !quote;
}

static bool parse_command(struct definition *d, const char *text)
{
    size_t n = 0;
    char *in, *out;

    free(d->words);
    d->words = strdup(text);
    if (!d->words)
        return false;
    for (in = out = d->words; *in;) {
        if (is_blank(*in)) {
            in++;
            continue;
        }
        if (n == MAX_ARGS)
            return false;
        d->args[n++] = out;
        if (!take_word(&in, &out))
            return false;
    }
    d->args[n] = NULL;
    return n > 0;
}

static bool parse_directory(struct definition *d, const char *text)
{
    free(d->directory);
    d->directory = *text ? strdup(text) : NULL;
    return d->directory;
}

static bool parse_setting(struct definition *d, const char *name, const char *value)
{
    if (strcmp(name, "command") == 0)
        return parse_command(d, value);
    if (strcmp(name, "directory") == 0)
        return parse_directory(d, value);
    if (strcmp(name, "restart") == 0)
        return parse_restart(d, value);
    if (strcmp(name, "backoff") == 0)
        return parse_backoff(d, value);
    return strcmp(name, "grace") == 0 && parse_duration(value, &d->grace_ns);
}

/* ---- sections ---- */

static bool is_name(const char *name)
{
    if (!*name || strlen(name) >= NAME)
        return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
           strlen(name);
}

/* NULL: that is no name, or one that there is already; or no memory. */
static struct definition *begin_section(struct config *config, const char *name)
{
    struct definition *d;

    for (size_t i = 0; i < config->count; i++)
        if (strcmp(config->services[i]->name, name) == 0)
            return NULL;
    if (!is_name(name) || config->count == MAX_SERVICES)
        return NULL;
    d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    config->services[config->count++] = d;
    d->name = strdup(name);
    d->first_ns = 100 * BLZ_MSEC;
    d->max_ns = 10 * BLZ_SEC;
    d->grace_ns = 5 * BLZ_SEC;
    return d->name ? d : NULL;
}

/* Adds a line to the text of a section. */
static bool remember(struct definition *d, const char *line)
{
    size_t len = d->text ? strlen(d->text) : 0, size = len + strlen(line) + 2;
    char *text = realloc(d->text, size);

    if (!text)
        return false;
    snprintf(text + len, size - len, "%s\n", line);
    d->text = text;
    return true;
}

/* One line, which is changed. False: it makes no sense. */
static bool parse_line(struct config *config, struct definition **d, char *line)
{
    size_t len = strlen(line);
    char *equals;

    if (len == 0 || line[0] == '#')
        return true;
    if (line[0] == '[' && line[len - 1] == ']') {
        line[len - 1] = 0;
        *d = begin_section(config, trim(line + 1));
        return *d;
    }
    if (!*d || !remember(*d, line))
        return false;
    equals = strchr(line, '=');
    if (!equals)
        return false;
    *equals = 0;
    return parse_setting(*d, trim(line), trim(equals + 1));
}

static int check(const struct config *config, char *why, size_t size)
{
    for (size_t i = 0; i < config->count; i++)
        if (!config->services[i]->args[0]) {
            snprintf(why, size, "[%s] has no command", config->services[i]->name);
            return -EINVAL;
        }
    if (config->count == 0)
        snprintf(why, size, "there are no services");
    return config->count == 0 ? -EINVAL : 0;
}

int config_parse(struct config *config, const char *text, char *why, size_t size)
{
    char *copy = strdup(text), *line = copy, *next;
    struct definition *d = NULL;
    int number = 1, rc = 0;

    *config = (struct config){.count = 0};
    if (!copy)
        return -ENOMEM;
    for (; line && rc == 0; line = next, number++) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        if (!parse_line(config, &d, trim(line))) {
            snprintf(why, size, "line %d makes no sense", number);
            rc = -EINVAL;
        }
    }
    free(copy);
    if (rc == 0)
        rc = check(config, why, size);
    if (rc < 0)
        config_free(config);
    return rc;
}

void definition_free(struct definition *d)
{
    if (!d)
        return;
    free(d->name);
    free(d->text);
    free(d->words);
    free(d->directory);
    free(d);
}

void config_free(struct config *config)
{
    for (size_t i = 0; i < config->count; i++)
        definition_free(config->services[i]);
    config->count = 0;
}
