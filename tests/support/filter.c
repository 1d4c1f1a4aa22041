/* SPDX-License-Identifier: Apache-2.0 */
/* See filter.h. */
#include "filter.h"

#include "harness.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field) \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
#define FAIL(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)(error))

void refuse_calls(const struct filter_rule *rules, int count)
{
    struct sock_filter code[5 * FILTER_MAX_RULES + 1];
    unsigned short len = 0;

    for (int i = 0; i < count; i++) {
        code[len++] = (struct sock_filter)LOAD(nr);
        code[len++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)rules[i].call, 0, 3);
        code[len++] = (struct sock_filter)LOAD(args[1]);
        code[len++] = rules[i].second == FILTER_ANY
                          ? (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0, 0, 1)
                          : (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                         (uint32_t)rules[i].second, 0, 1);
        code[len++] = (struct sock_filter)FAIL(rules[i].error);
    }
    code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    check(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
                  &(struct sock_fprog){len, code}) == 0);
}

void refuse_call(int call, int error)
{
    refuse_calls(&(struct filter_rule){call, error, FILTER_ANY}, 1);
}
