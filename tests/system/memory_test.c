/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: system/memory.h. */
#include "conform.h"

#include "base/sanitize.h"
#include "system/memory.h"

#include <string.h>

static bool is_zero(const void *memory, size_t size)
{
    const char *bytes = memory;

    for (size_t i = 0; i < size; i++)
        if (bytes[i])
            return false;
    return true;
}

static void a_block_is_aligned_as_asked(void **state)
{
    (void)state;
    for (size_t align = 1; align <= 4096; align *= 2)
        for (size_t size = 1; size < 3000; size = size * 3 + 1) {
            void *block = blz__memory_alloc(size, align);
            assert_non_null(block);
            assert_int_equal((uintptr_t)block % align, 0);
            memset(block, 0xaa, size);
            blz__memory_free(block, align);
        }
}

static void a_zeroed_block_reads_as_zeros(void **state)
{
    (void)state;
    for (size_t align = 8; align <= 4096; align *= 8)
        for (int round = 0; round < 3; round++) {
            char *block = blz__memory_alloc_zeroed(5000, align);
            assert_non_null(block);
            assert_true(is_zero(block, 5000));
            memset(block, 0xaa, 5000);
            blz__memory_free(block, align);
        }
}

static void freeing_nothing_is_allowed(void **state)
{
    (void)state;
    blz__memory_free(NULL, 8);
    blz__memory_free(NULL, 4096);
}

static void a_block_that_is_too_large_is_null(void **state)
{
    (void)state;
#if !defined(BLZ_ASAN) && !defined(BLZ_TSAN) /* which end the program instead */
    assert_null(blz__memory_alloc(SIZE_MAX / 2, 8));
    assert_null(blz__memory_alloc(SIZE_MAX / 2, 4096));
#endif
}

static void pages_are_aligned_to_their_own_size(void **state)
{
    (void)state;
    for (size_t size = 1 << 16; size <= 1 << 22; size *= 2) {
        void *pages = blz__pages_map(size);
        assert_non_null(pages);
        assert_int_equal((uintptr_t)pages % size, 0);
        blz__pages_unmap(pages, size);
    }
}

static void pages_read_as_zeros_and_can_be_written(void **state)
{
    size_t size = 1 << 18;
    char *pages = blz__pages_map(size);

    (void)state;
    assert_non_null(pages);
    assert_true(is_zero(pages, size));
    memset(pages, 0xaa, size);
    blz__pages_unmap(pages, size);
}

static void addresses_of_pages_are_below_two_to_the_power_of_47(void **state)
{
    void *pages = blz__pages_map(1 << 20);

    (void)state;
    assert_non_null(pages);
    assert_int_equal((uint64_t)(uintptr_t)pages >> 47, 0);
    blz__pages_unmap(pages, 1 << 20);
}

static void wishes_leave_what_is_in_memory(void **state)
{
    size_t size = 1 << 21;
    char *pages = blz__pages_map(size);

    (void)state;
    assert_non_null(pages);
    pages[100] = 7;
    blz__pages_want_huge(pages + 3, size - 5);
    blz__pages_prefault(pages, size);
    assert_int_equal(pages[100], 7);
    assert_true(is_zero(pages + 101, size - 101));
    blz__pages_unmap(pages, size);
}

static void more_pages_than_there_are_addresses_are_null(void **state)
{
    (void)state;
    assert_null(blz__pages_map((size_t)1 << 62));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_block_is_aligned_as_asked),
        TEST(a_zeroed_block_reads_as_zeros),
        TEST(freeing_nothing_is_allowed),
        TEST(a_block_that_is_too_large_is_null),
        TEST(pages_are_aligned_to_their_own_size),
        TEST(pages_read_as_zeros_and_can_be_written),
        TEST(addresses_of_pages_are_below_two_to_the_power_of_47),
        TEST(wishes_leave_what_is_in_memory),
        TEST(more_pages_than_there_are_addresses_are_null),
    };

    return RUN_TESTS(tests);
}
