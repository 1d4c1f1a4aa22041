/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses, millions of random ones: to text and back, next to what inet_pton and inet_ntop say;
 * text that is nearly an address.
 */
#include "addr_text.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

enum { MANY = 300000, NAME_MAX_LEN = 107 };

static uint64_t seed;

static void random_bytes(void *out, size_t len)
{
    for (size_t i = 0; i < len; i++)
        ((uint8_t *)out)[i] = (uint8_t)random_below(&seed, 256);
}

/* Mostly zeros, so that runs of them occur. */
static void random_ip6(uint8_t ip[16])
{
    memset(ip, 0, 16);
    for (int i = 0; i < 8; i++)
        if (random_below(&seed, 3) == 0)
            random_bytes(ip + (size_t)2 * i + random_below(&seed, 2), 1);
    if (random_below(&seed, 8) == 0)
        memcpy(ip, (uint8_t[12]){[10] = 0xff, [11] = 0xff}, 12);
}

static blz_addr random_addr(void)
{
    uint8_t bytes[NAME_MAX_LEN];
    uint16_t port = (uint16_t)random_below(&seed, 65536);
    size_t len = random_below(&seed, NAME_MAX_LEN + 1);
    blz_addr addr;

    random_bytes(bytes, sizeof bytes);
    switch (random_below(&seed, 4)) {
    case 0:
        return blz_addr_v4(bytes, port);
    case 1:
        random_ip6(bytes);
        return blz_addr_v6(bytes, port, random_below(&seed, 2) ? random_below(&seed, 1 << 30) : 0);
    case 2:
        assert_int_equal(blz_addr_unix_abstract(&addr, bytes, len), 0);
        return addr;
    default:
        for (size_t i = 0; i < len; i++)
            bytes[i] |= bytes[i] == 0;
        if (len == 0)
            return blz_addr_unix_unnamed();
        if (len == NAME_MAX_LEN)
            len--;
        bytes[len] = '\0';
        assert_int_equal(blz_addr_unix(&addr, (char *)bytes), 0);
        return addr;
    }
}

static void random_addresses_survive_the_round_trip(void **state)
{
    (void)state;
    allow_seconds(120);
    seed = 1;
    for (int64_t i = scaled(MANY); i > 0; i--) {
        blz_addr addr = random_addr(), again;
        char text[BLZ_ADDR_TEXT];
        int len = blz_addr_format(&addr, text, sizeof text);
        assert_true(len > 0);
        assert_int_equal(parse_exactly(&again, text, (size_t)len), 0);
        assert_true(blz_addr_equal(&addr, &again));
        assert_int_equal(blz_addr_compare(&addr, &again), 0);
        assert_true(blz_addr_hash(&addr, 5) == blz_addr_hash(&again, 5));
        const struct sockaddr *sa = blz_addr_sockaddr(&addr, &(uint32_t){0});
        assert_int_equal(blz_addr_from_sockaddr(&again, sa, addr.len), 0);
        assert_memory_equal(&addr, &again, sizeof addr);
    }
}

static void text_is_what_inet_ntop_writes(void **state)
{
    (void)state;
    seed = 2;
    for (int64_t i = scaled(MANY); i > 0; i--) {
        char mine[INET6_ADDRSTRLEN], theirs[INET6_ADDRSTRLEN];
        uint8_t ip[16], back[16];
        blz_addr addr;
        random_ip6(ip);
        addr = blz_addr_v6(ip, 1, 0);
        assert_true(blz_addr_format_ip(&addr, mine, sizeof mine) > 0);
        assert_int_equal(inet_pton(AF_INET6, mine, back), 1);
        assert_memory_equal(ip, back, 16);
        inet_ntop(AF_INET6, ip, theirs, sizeof theirs);
        /* It writes ::1.2.3.4 for addresses that merely begin with six zero groups. */
        if (!strchr(theirs, '.') || blz_addr_is_v4_mapped(&addr))
            assert_string_equal(mine, theirs);
        addr = blz_addr_v4(ip, 1);
        assert_true(blz_addr_format_ip(&addr, mine, sizeof mine) > 0);
        assert_string_equal(mine, inet_ntop(AF_INET, ip, theirs, sizeof theirs));
    }
}

/* A text of IP-like pieces: often nearly an address, now and then one. */
static size_t random_text(char *text, size_t max)
{
    static const char *const pieces[] = {":",  ":",   ":",   "::",      ".",       ".",    "0",
                                         "1",  "255", "256", "25",      "ff",      "fFfF", "12345",
                                         "00", "01",  "g",   "1.2.3.4", "1:2:3:4", "0:0",  " ",
                                         "-1", "0x1", "+",   "4",       "::ffff:"};
    size_t len = 0;

    for (uint32_t left = 1 + random_below(&seed, 9); left > 0; left--) {
        const char *piece = pieces[random_below(&seed, sizeof pieces / sizeof pieces[0])];
        if (len + strlen(piece) >= max)
            break;
        memcpy(text + len, piece, strlen(piece));
        len += strlen(piece);
    }
    text[len] = '\0';
    return len;
}

static void what_inet_pton_takes_is_taken_and_nothing_else(void **state)
{
    int64_t taken = 0;

    (void)state;
    seed = 3;
    for (int64_t i = scaled(10 * MANY); i > 0; i--) {
        char text[128];
        uint8_t theirs[16], mine[16];
        size_t len = random_text(text, sizeof text);
        int family = strchr(text, ':') ? AF_INET6 : AF_INET;
        bool ok = inet_pton(family, text, theirs) == 1;
        blz_addr addr;
        if ((blz_addr_parse_ip(&addr, text, len, 0) == 0) != ok)
            fail_msg("%s: inet_pton says %s", text, ok ? "yes" : "no");
        if (ok) {
            assert_memory_equal(mine, theirs, (size_t)blz_addr_ip(&addr, mine));
            taken++;
        }
    }
    assert_true(taken > scaled(10 * MANY) / 1000); /* the comparison meant something */
}

/* Good texts with a few bytes changed: whatever is still taken must have a round trip. */
static void mutated_text_never_does_harm(void **state)
{
    int64_t taken = 0;

    (void)state;
    allow_seconds(120);
    seed = 4;
    for (int64_t i = scaled(MANY); i > 0; i--) {
        blz_addr addr = random_addr(), again;
        char text[BLZ_ADDR_TEXT];
        size_t len = (size_t)blz_addr_format(&addr, text, sizeof text);
        for (uint32_t left = 1 + random_below(&seed, 3); left > 0; left--)
            random_bytes(&text[random_below(&seed, (uint32_t)len)], 1);
        len -= random_below(&seed, 2);
        if (memchr(text, '%', len))
            continue; /* a name would be looked for among the interfaces */
        if (parse_exactly(&addr, text, len) < 0)
            continue;
        taken++;
        again = parsed(text_of(&addr));
        assert_true(blz_addr_equal(&addr, &again));
    }
    assert_true(taken > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(random_addresses_survive_the_round_trip),
        TEST(text_is_what_inet_ntop_writes),
        TEST(what_inet_pton_takes_is_taken_and_nothing_else),
        TEST(mutated_text_never_does_harm),
    };
    return RUN_TESTS(tests);
}
