/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups: how much of the machine a container may use. */
#ifndef BLZ_SYSTEM_LINUX_CGROUP_H
#define BLZ_SYSTEM_LINUX_CGROUP_H

/*
 * The CPUs that control groups allow, rounded up; 0: all. `groups` is the file that lists the
 * groups of this process, `root` the folder where their trees are.
 */
unsigned blz__cgroup_cpus(const char *groups, const char *root);

#endif
