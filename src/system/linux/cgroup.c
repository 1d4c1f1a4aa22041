/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much CPU time the control groups of this process leave it. A group may be allowed fewer CPUs
 * than the machine has, as so many microseconds in each period; so may each of its ancestors, and
 * the tightest limit counts.
 *
 *   version 2   one tree; cpu.max has "max 100000" or "150000 100000"
 *   version 1   a tree for the controller "cpu"; cpu.cfs_quota_us (-1: no limit) and
 *               cpu.cfs_period_us
 *
 * In a container the groups' names may be those of the host, and their files not to be seen: then
 * the root of the tree has the container's own limit, so it is looked at too.
 */
#include "system/linux/cgroup.h"

#include <stdbool.h>

#include <stdio.h>
#include <string.h>

static bool read_number(const char *folder, const char *name, long long *number)
{
    char path[768];
    FILE *file;
    bool found;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "re");
    if (!file)
        return false;
    found = fscanf(file, "%lld", number) == 1;
    fclose(file);
    return found;
}

static unsigned cpus_of(long long quota, long long period)
{
    if (quota <= 0 || period <= 0)
        return 0;
    return (unsigned)((quota + period - 1) / period);
}

static unsigned limit_v2(const char *folder)
{
    char path[768];
    long long quota, period;
    unsigned cpus = 0;
    FILE *file;

    snprintf(path, sizeof path, "%s/cpu.max", folder);
    file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%lld %lld", &quota, &period) == 2)
        cpus = cpus_of(quota, period);
    fclose(file);
    return cpus;
}

static unsigned limit_v1(const char *folder)
{
    long long quota, period;

    if (!read_number(folder, "cpu.cfs_quota_us", &quota) ||
        !read_number(folder, "cpu.cfs_period_us", &period))
        return 0;
    return cpus_of(quota, period);
}

static unsigned tighter(unsigned a, unsigned b)
{
    return a && (!b || a < b) ? a : b;
}

/* The group, its ancestors, and the root of the tree. */
static unsigned tightest(const char *tree, char *group, unsigned (*limit)(const char *folder))
{
    char folder[704];
    unsigned cpus = limit(tree);

    for (char *slash = group; slash && *group; *slash = '\0') {
        snprintf(folder, sizeof folder, "%s%s", tree, group);
        cpus = tighter(limit(folder), cpus);
        slash = strrchr(group, '/');
        if (!slash)
            break;
    }
    return cpus;
}

/* Whether "cpu" is one of the names between the colons. */
static bool has_cpu(const char *names, size_t len)
{
    while (len > 0) {
        const char *comma = memchr(names, ',', len);
        size_t one = comma ? (size_t)(comma - names) : len;
        if (one == 3 && memcmp(names, "cpu", 3) == 0)
            return true;
        if (!comma)
            break;
        names += one + 1;
        len -= one + 1;
    }
    return false;
}

/* "0::/group" or "4:cpu,cpuacct:/group" */
static unsigned limit_of_line(char *line, const char *root)
{
    char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
    char tree[512];

    line[strcspn(line, "\n")] = '\0';
    if (!group)
        return 0;
    names++;
    if (names == group)
        return tightest(root, group + 1, limit_v2);
    if (!has_cpu(names, (size_t)(group - names)))
        return 0;
    snprintf(tree, sizeof tree, "%s/cpu", root);
    return tightest(tree, group + 1, limit_v1);
}

unsigned blz__cgroup_cpus(const char *groups, const char *root)
{
    char line[512];
    unsigned cpus = 0;
    FILE *file = fopen(groups, "re");

    if (!file)
        return 0;
    while (fgets(line, sizeof line, file))
        cpus = tighter(limit_of_line(line, root), cpus);
    fclose(file);
    return cpus;
}
