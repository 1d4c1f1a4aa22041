/* SPDX-License-Identifier: Apache-2.0 */
/* What a lookup gives: the meaning of errors, lists of addresses and their order. */
#include "addr_numbers.h"

#include "net/net.h"
#include "system/posix/addrinfo.h"

#include <netdb.h>
#include <netinet/in.h>

/* ---- what the resolver says ---- */

static void every_error_of_the_resolver_has_a_meaning(void **state)
{
    static const struct {
        int eai, error;
    } table[] = {
        {0, 0},
        {EAI_NONAME, -ENONET},
        {EAI_NODATA, -ENODATA},
        {EAI_ADDRFAMILY, -EAFNOSUPPORT},
        {EAI_FAMILY, -EAFNOSUPPORT},
        {EAI_AGAIN, -EAGAIN},
        {EAI_FAIL, -EREMOTEIO},
        {EAI_SERVICE, -EPROTONOSUPPORT},
        {EAI_SOCKTYPE, -ESOCKTNOSUPPORT},
        {EAI_MEMORY, -ENOMEM},
        {EAI_OVERFLOW, -EOVERFLOW},
        {EAI_IDN_ENCODE, -EILSEQ},
        {EAI_INTR, -EINTR},
        {EAI_BADFLAGS, -EPROTO},
        {EAI_INPROGRESS, -EIO},
        {EAI_CANCELED, -EIO},
        {EAI_NOTCANCELED, -EIO},
        {EAI_ALLDONE, -EIO},
        {INT32_MIN, -EIO},
        {INT32_MAX, -EIO},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        assert_int_equal(blz__name_error(table[i].eai, ENOTTY), table[i].error);
    for (int eai = -300; eai <= 300; eai++) {
        int error = blz__name_error(eai, 0);
        assert_true(eai == 0 ? error == 0 : error < 0);
        assert_int_not_equal(error, -ECANCELED);
    }
    assert_int_equal(blz__name_error(EAI_SYSTEM, EMFILE), -EMFILE);
    assert_int_equal(blz__name_error(EAI_SYSTEM, 0), -EIO);
    assert_int_equal(blz__name_error(EAI_SYSTEM, ECANCELED), -EIO);
}

static int push(const blz_addr *addr, void *arg)
{
    return blz_addrs_push(arg, addr);
}

static void families_that_nobody_knows_are_left_out(void **state)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(5)};
    struct sockaddr strange = {.sa_family = 250};
    struct addrinfo third = {.ai_addr = (struct sockaddr *)&sin, .ai_addrlen = sizeof sin};
    struct addrinfo second = {.ai_addr = NULL, .ai_next = &third};
    struct addrinfo first = {.ai_addr = &strange, .ai_addrlen = sizeof strange, .ai_next = &second};
    blz_addrs addrs = {.count = 0};

    (void)state;
    assert_int_equal(blz__name_collect(&first, push, &addrs), 0);
    assert_int_equal(addrs.count, 1);
    assert_true(blz_addr_is_unspecified(&addrs.items[0]));
    assert_int_equal(blz_addr_port(&addrs.items[0]), 5);
    blz_addrs_free(&addrs);
    assert_int_equal(blz__name_collect(NULL, push, &addrs), 0);
    assert_int_equal(addrs.count, 0);
}

/* ---- lists ---- */

static void a_list_may_be_given_one_of_its_own(void **state)
{
    blz_addr addr = numbered(BLZ_ADDR_V4, 1);
    blz_addrs addrs;

    (void)state;
    blz_addrs_init(&addrs, test_memory());
    assert_int_equal(blz_addrs_push(&addrs, &addr), 0);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(blz_addrs_push(&addrs, &addrs.items[i]), 0); /* also when it grows */
    for (int i = 0; i <= 1000; i++)
        assert_true(blz_addr_equal(&addrs.items[i], &addr));
    memory_fail_at(the_memory(), 1, true);
    while (addrs.count < addrs.capacity)
        assert_int_equal(blz_addrs_push(&addrs, &addr), 0);
    assert_int_equal(blz_addrs_push(&addrs, &addr), -ENOMEM);
    assert_int_equal(addrs.count, addrs.capacity);
    memory_fail_at(the_memory(), 0, false);
    blz_addrs_free(&addrs);
}

/* `pattern` is a list of families. */
static blz_addrs list_of(const char *pattern)
{
    blz_addrs addrs;
    int next[3] = {0, 0, 0};

    blz_addrs_init(&addrs, test_memory());
    for (; *pattern; pattern++) {
        int family = *pattern == '4' ? BLZ_ADDR_V4 : BLZ_ADDR_V6;
        blz_addr addr = numbered(family, next[family]++);
        assert_int_equal(blz_addrs_push(&addrs, &addr), 0);
    }
    return addrs;
}

static void assert_interleaved(const char *pattern, int first, const char *expected)
{
    blz_addrs addrs = list_of(pattern), wanted = list_of(expected);

    assert_int_equal(blz_addrs_interleave(&addrs, first), 0);
    assert_int_equal(addrs.count, wanted.count);
    for (size_t i = 0; i < addrs.count; i++) /* numbered: so each family is in its old order */
        assert_true(blz_addr_equal(&addrs.items[i], &wanted.items[i]));
    blz_addrs_free(&addrs);
    blz_addrs_free(&wanted);
}

static void families_take_turns(void **state)
{
    (void)state;
    assert_interleaved("", BLZ_ADDR_V6, "");
    assert_interleaved("4", BLZ_ADDR_V6, "4");
    assert_interleaved("6", BLZ_ADDR_V6, "6");
    assert_interleaved("46", BLZ_ADDR_V6, "64");
    assert_interleaved("46", BLZ_ADDR_V4, "46");
    assert_interleaved("46", BLZ_ADDR_NONE, "46");
    assert_interleaved("666444", BLZ_ADDR_NONE, "646464");
    assert_interleaved("444666", BLZ_ADDR_NONE, "464646");
    assert_interleaved("444666", BLZ_ADDR_V6, "646464");
    assert_interleaved("66664", BLZ_ADDR_NONE, "64666");
    assert_interleaved("46666", BLZ_ADDR_V6, "64666");
    assert_interleaved("644444", BLZ_ADDR_NONE, "644444");
    assert_interleaved("4444", BLZ_ADDR_V6, "4444");
    assert_interleaved("6446446", BLZ_ADDR_NONE, "6464644");
}

static void without_memory_the_order_stays(void **state)
{
    blz_addrs addrs = list_of("6644"), before = list_of("6644");

    (void)state;
    memory_fail_at(the_memory(), 1, true);
    assert_int_equal(blz_addrs_interleave(&addrs, BLZ_ADDR_V6), -ENOMEM);
    memory_fail_at(the_memory(), 0, false);
    for (size_t i = 0; i < addrs.count; i++)
        assert_true(blz_addr_equal(&addrs.items[i], &before.items[i]));
    blz_addrs_free(&addrs);
    blz_addrs_free(&before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_error_of_the_resolver_has_a_meaning),
        TEST(families_that_nobody_knows_are_left_out),
        TEST(a_list_may_be_given_one_of_its_own),
        TEST(families_take_turns),
        TEST(without_memory_the_order_stays),
    };
    return RUN_TESTS(tests);
}
