#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each public header compiles alone, without a word from the compiler, as C11 and as C++17.
set -euo pipefail
cd "$(dirname "$0")/../../include"

warnings=(-Wall -Wextra -Wpedantic -Wshadow -Werror)
failed=0
while read -r header; do
    "${CC:-cc}" -std=c11 "${warnings[@]}" -I. -fsyntax-only -x c - <<<"#include <$header>" ||
        { echo "$header: not valid alone as C11"; failed=1; }
    "${CXX:-c++}" -std=c++17 "${warnings[@]}" -I. -fsyntax-only -x c++ - <<<"#include <$header>" ||
        { echo "$header: not valid alone as C++17"; failed=1; }
done < <(find . -name '*.h' -printf '%P\n' | sort)
exit $failed
