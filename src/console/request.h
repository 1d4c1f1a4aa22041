/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request to the console: as much of HTTP/1.1 as a page that only asks needs, and no more. What
 * comes from a browser on behalf of another site is refused.
 */
#ifndef BLZ_CONSOLE_REQUEST_H
#define BLZ_CONSOLE_REQUEST_H

#include <blitz/base.h>

enum { REQUEST_MAX = 8192 }; /* bytes of a head */

struct request {
    const char *path;  /* "/api/tasks" */
    const char *query; /* "sort=busy&limit=10", or "" */
    bool keep_alive;
};

/*
 * The length of the head, with the empty line at its end; 0: that has not come yet. Looks only at
 * what is behind `seen`.
 */
size_t blz__request_head_len(const char *text, size_t len, size_t seen);

/* Understands a head, which is changed, and must be valid as long as *out is. 0, or a status. */
int blz__request_parse(struct request *out, char *head, size_t len);

/*
 * The decoded value of a parameter of the query, with a final NUL, cut at `size`: false if there is
 * none.
 */
bool blz__query_text(const char *query, const char *name, char *out, size_t size);

/* The same as a number of at most `max`; `otherwise` if there is none, or it is not a number. */
uint64_t blz__query_number(const char *query, const char *name, uint64_t max, uint64_t otherwise);

/* What a status is called: "Not Found". */
const char *blz__status_text(int status);

#endif
