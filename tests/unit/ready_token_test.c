/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of edges: the entry comes back as it was, whatever its address looks like. */
#include "harness.h"

#include "io/ready.h"

/* Addresses as there may be: of the heap, with tags (ARM), of five levels of pages, of 32 bits. */
static const uint64_t addresses[] = {
    0x00005555555592c0, 0x00007ffff7ffe000, 0xb400007a1c2d3e40, 0x0f00ffffffffffc0,
    0xff00000000001000, 0x01fffffffffff040, 0x00000000f7ffe040, 0xffffffffffffffc0,
};

static void a_token_has_all_of_an_address_and_of_a_tag(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
        for (uint32_t generation = 0; generation < 200; generation++) {
            blz__fd *entry = (blz__fd *)(uintptr_t)addresses[i];
            uint64_t token = ready_token(entry, generation);
            assert_ptr_equal(ready_token_entry(token), entry);
            assert_true(ready_token_is_of(token, generation));
        }
}

static void a_token_is_not_of_the_next_generations(void **state)
{
    blz__fd entry;

    (void)state;
    for (uint32_t generation = UINT32_MAX - 100; generation != 100; generation++) {
        uint64_t token = ready_token(&entry, generation);
        for (uint32_t next = 1; next <= READY_GENERATIONS; next++)
            assert_false(ready_token_is_of(token, generation + next));
    }
}

static void a_token_is_never_zero(void **state)
{
    blz__fd entry;

    (void)state; /* which stands for the wake-up */
    for (uint32_t generation = 0; generation < 200; generation++)
        assert_true(ready_token(&entry, generation) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_token_has_all_of_an_address_and_of_a_tag),
        TEST(a_token_is_not_of_the_next_generations),
        TEST(a_token_is_never_zero),
    };

    return RUN_TESTS(tests);
}
