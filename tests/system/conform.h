/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conformance suite of the system contract: the headers of src/system, nothing else of Blitz.
 * Each case is one sentence of a contract. The same programs run on every system. Where a header
 * allows -ENOTSUP, a case that gets it is skipped, and the output names it.
 */
#ifndef BLZ_TESTS_SYSTEM_CONFORM_H
#define BLZ_TESTS_SYSTEM_CONFORM_H

#include "harness.h"

#include <blitz/error.h>

/* Leaves the case, by its name, if a function says -ENOTSUP and its header allows that. */
#define skip_if_not_supported(rc)                                              \
    do {                                                                       \
        if ((rc) == -ENOTSUP) {                                                \
            print_message("skipped: %s: -ENOTSUP on this system\n", __func__); \
            skip();                                                            \
        }                                                                      \
    } while (0)

#endif
