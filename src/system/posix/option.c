/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options by number: option_table.c says which of the system's options each one is, for IPv4 and
 * for IPv6, how a value is converted, and what its range is.
 */
#include "system/option.h"

#include "system/posix/option_table.h"
#include "system/posix/result.h"
#include "system/socket.h"

#include <sys/socket.h>

/* 0; -EINVAL: there is no such number; -ENOTSUP: this system does not have the option. */
static int find_option(int number, const struct sys_option **option)
{
    if (number <= 0 || number >= BLZ_OPT_NR_)
        return -EINVAL;
    *option = &blz__option_table[number];
    return (*option)->name ? 0 : -ENOTSUP;
}

static bool is_v6(blz_sysfd fd)
{
    struct blz__socket_kind kind;

    return blz__socket_kind(fd, &kind) == 0 && kind.family == BLZ_ADDR_V6;
}

/* The level and the name that the option has for this socket. */
static void locate(const struct sys_option *option, blz_sysfd fd, int *level, int *name)
{
    bool v6 = option->name_v6 && is_v6(fd);

    *level = v6 ? option->level_v6 : option->level;
    *name = v6 ? option->name_v6 : option->name;
}

/* ---- setting ---- */

/* In the system's units, rounded up; false: out of range. */
static bool convert(const struct sys_option *option, int64_t value, int *out)
{
    int64_t unit = option->unit ? option->unit : 1;

    if (value > 0)
        value = value / unit + (value % unit != 0);
    if (value < option->min || value > option->max)
        return false;
    *out = (int)value;
    return true;
}

static int set_linger(blz_sysfd fd, int value)
{
    struct linger linger = {.l_onoff = value == 0, .l_linger = 0};

    return sys_result(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
}

int blz__option_set(blz_sysfd fd, int number, int64_t value)
{
    const struct sys_option *option;
    int level, name, converted, rc = find_option(number, &option);

    if (rc < 0)
        return rc;
    if (option->read_only || !convert(option, value, &converted))
        return -EINVAL;
    if (number == BLZ_OPT_LINGER)
        return set_linger(fd, converted);
    locate(option, fd, &level, &name);
    return sys_result(setsockopt(fd, level, name, &converted, sizeof converted));
}

/* ---- getting ---- */

static int get_linger(blz_sysfd fd, int *seconds)
{
    struct linger linger;
    socklen_t len = sizeof linger;

    if (getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len) < 0)
        return sys_error();
    *seconds = linger.l_onoff ? linger.l_linger : -1;
    return 0;
}

/* Some options are a byte. */
static int get_number(blz_sysfd fd, int level, int name, int *value)
{
    socklen_t len = sizeof *value;

    *value = 0;
    return sys_result(getsockopt(fd, level, name, value, &len));
}

int blz__option_get(blz_sysfd fd, int number, int64_t *value)
{
    const struct sys_option *option;
    int level, name, found, rc = find_option(number, &option);

    if (rc < 0)
        return rc;
    locate(option, fd, &level, &name);
    rc = number == BLZ_OPT_LINGER ? get_linger(fd, &found) : get_number(fd, level, name, &found);
    if (rc == 0)
        *value = found > 0 && option->unit ? found * option->unit : found;
    return rc;
}
