// SPDX-License-Identifier: Apache-2.0
//
// As consumer.c, in C++17: calls and callbacks, no async macros.
#include <blitz/version.h>
#include <cstdio>

static int use_library()
{
    return 0;
}

int main()
{
    std::printf("blitz %s\n", blz_version());
    return use_library();
}
