/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System call filters that make calls fail: a container, an administrator, an old kernel. A filter
 * cannot be taken back, so it belongs into a process of its own.
 */
#ifndef BLZ_TESTS_FILTER_H
#define BLZ_TESTS_FILTER_H

enum { FILTER_ANY = -1, FILTER_MAX_RULES = 8 };

/* The call gives this errno, 0: it does nothing and succeeds; `second`: only if its second argument
 * is that. */
struct filter_rule {
    int call, error, second;
};

/* For all threads that this process has, or will have. */
void refuse_calls(const struct filter_rule *rules, int count);
void refuse_call(int call, int error);

#endif
