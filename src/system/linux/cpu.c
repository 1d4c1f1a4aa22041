/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs: affinity masks, and the quota of control groups. */
#include "system/cpu.h"

#include "system/linux/cgroup.h"
#include "system/thread.h"

#include <sched.h>
#include <string.h>

unsigned blz__cpu_count(void)
{
    unsigned cpus = 1, quota = blz__cgroup_cpus("/proc/self/cgroup", "/sys/fs/cgroup");
    cpu_set_t *set;

    for (int max = 1024; max <= 1 << 20; max *= 2) { /* more CPUs than the set has: EINVAL */
        set = CPU_ALLOC((size_t)max);
        if (!set)
            break;
        size_t size = CPU_ALLOC_SIZE((size_t)max);
        int rc = sched_getaffinity(0, size, set);
        if (rc == 0)
            cpus = (unsigned)CPU_COUNT_S(size, set);
        CPU_FREE(set);
        if (rc == 0)
            break;
    }
    if (quota && quota < cpus)
        cpus = quota;
    return cpus ? cpus : 1;
}

static int cpu_of(const cpu_set_t *set, unsigned number)
{
    int cpu = 0;

    for (unsigned left = number % (unsigned)CPU_COUNT(set);; cpu++)
        if (CPU_ISSET(cpu, set) && left-- == 0)
            return cpu;
}

/*
 * A mask that has been written stays for ever: the thread would not get CPUs that its container is
 * given later. So what is left behind is a mask of all CPUs there could be, of which the kernel
 * takes those that the container has. Only where the program had narrowed its own mask, so that
 * this would be more than before, the old mask is written.
 */
static void restore_affinity(const cpu_set_t *before)
{
    cpu_set_t set, after;

    memset(&set, 0xff, sizeof set);
    if (sched_setaffinity(0, sizeof set, &set) != 0 ||
        sched_getaffinity(0, sizeof after, &after) != 0 || !CPU_EQUAL(&after, before))
        sched_setaffinity(0, sizeof *before, before);
}

void blz__thread_spread(unsigned number)
{
    cpu_set_t all, one;

    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2)
        return; /* more CPUs than the set has, or only one */
    CPU_ZERO(&one);
    CPU_SET(cpu_of(&all, number), &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0)
        restore_affinity(&all);
}
