/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash with a secret (SipHash-1-3). Keys come from clients: whoever could foresee where a key
 * goes could put all of them in one place, and make every lookup slow.
 */
#ifndef REDIS_HASH_H
#define REDIS_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash_secret {
    uint64_t word[2];
};

/* A secret of the system's making. 0 or a negative errno. */
int hash_secret_init(struct hash_secret *secret);

uint64_t hash_bytes(const struct hash_secret *secret, const void *data, size_t len);

#endif
