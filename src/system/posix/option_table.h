/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the system's options each option of the library is: a table a system. */
#ifndef BLZ_SYSTEM_POSIX_OPTION_TABLE_H
#define BLZ_SYSTEM_POSIX_OPTION_TABLE_H

#include <blitz/socket.h>

struct sys_option {
    int level, name;       /* name 0: there is no such option on this system */
    int level_v6, name_v6; /* of IPv6 sockets; 0: the same */
    int64_t unit;          /* ns of a time; 0: a plain number */
    int min, max;          /* in units of the system */
    bool read_only;
};

extern const struct sys_option blz__option_table[BLZ_OPT_NR_];

#endif
