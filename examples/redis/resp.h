/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests in RESP, the protocol of Redis, as a pure function over a buffer. Nothing here reads,
 * waits or allocates; whoever has the bytes calls again when there are more.
 *
 *     struct resp_span args[8];
 *     struct resp_request request = {.args = args, .room = 8};
 *
 *     while ((rc = resp_parse(&request, buf, len)) == RESP_MORE)
 *         len += read_some_more(buf + len);
 *     if (rc < 0)
 *         return reply_with_error(resp_error(rc));
 *     // request.nr_args words, each at buf + args[i].at; the next request begins at request.at
 *
 * A request is an array of strings, the same in RESP2 and RESP3:
 *
 *     *2\r\n$3\r\nGET\r\n$5\r\nfruit\r\n
 *
 * or a line as one would type it (GET "fruit"), which is split into words. There is nothing in a
 * request that could be nested, so there is no depth to limit.
 *
 * No length that a client sends is believed beyond the limits below, and none is a reason to set
 * memory aside: the words are there when their bytes are.
 */
#ifndef REDIS_RESP_H
#define REDIS_RESP_H

#include <stddef.h>
#include <stdint.h>

enum {
    RESP_WORD_MAX = 16 << 20,    /* bytes of one string */
    RESP_REQUEST_MAX = 64 << 20, /* of all of it */
    RESP_ARGS_MAX = 64 << 10,    /* strings of a request */
    RESP_LINE_MAX = 64 << 10,    /* bytes of a request that is a line */
    RESP_LENGTH_MAX = 32,        /* of a line that tells a length */
};

enum {
    RESP_MORE = 0,  /* incomplete: call again with more behind it */
    RESP_READY = 1, /* a request; without words it is none, and has no reply */
    RESP_FULL = 2,  /* no room for the next word: call again with a larger array */

    /* Not a request. There is no telling where the next one begins. */
    RESP_BAD_COUNT = -1,
    RESP_BAD_LENGTH = -2,
    RESP_BAD_TYPE = -3, /* a word that is no string */
    RESP_BAD_END = -4,  /* a string that does not end where it should */
    RESP_BAD_QUOTES = -5,
    RESP_LONG_LINE = -6,
    RESP_LONG_REQUEST = -7,
};

/* A word: an offset into the buffer, which may move while a request is incomplete. */
struct resp_span {
    uint32_t at, len;
};

/* Set `args` and `room`, and all else to zero, before the first call for a request. */
struct resp_request {
    struct resp_span *args; /* the caller's */
    uint32_t room;          /* how many fit there */
    uint32_t nr_args;       /* words so far */
    uint32_t at;            /* all before this has been understood */

    /* How far it has come. */
    uint32_t missing; /* words of the array that are not there yet */
    uint32_t scanned; /* no end of line before this */
    int32_t word;     /* length of the word that begins at `at`, if it is `begun` */
    uint8_t begun, in_array;
};

/*
 * Looks at what has come of a request: RESP_*. The bytes are from its first one on, and those that
 * earlier calls have seen are unchanged. (A line may be changed in place, where it has quotes.)
 */
int resp_parse(struct resp_request *request, char *buf, size_t len);

/* How many bytes it takes at least until there can be anything new to say. At least 1. */
size_t resp_missing(const struct resp_request *request, size_t len);

/* What to tell the client about a negative result. */
const char *resp_error(int rc);

#endif
