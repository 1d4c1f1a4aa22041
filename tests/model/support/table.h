/* SPDX-License-Identifier: Apache-2.0 */
/* A line of a table of models: MODEL(the_name_is_a_sentence, .preemptions = 3). */
#ifndef BLZ_MODEL_TABLE_H
#define BLZ_MODEL_TABLE_H

/* clang-format off */
#define MODEL(fn, ...) {.name = #fn, .test = fn, .options = {__VA_ARGS__}}
/* clang-format on */

#endif
