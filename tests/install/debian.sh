#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages of what is committed, looks into them, and compiles a program against
# them. Not one of ctest's: .ci/run calls it. Needs tools/bootstrap package.
#
#   tests/install/debian.sh [FOLDER]    leaves the packages in FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "FAIL: $*" >&2; exit 1; }

version=$(dpkg-parsechangelog -l "$top/debian/changelog" -S Version)
[ "$version" = "$(sed -n 's/^project(blitz VERSION \([0-9.]*\).*/\1/p' "$top/CMakeLists.txt")" ] ||
    fail "debian/changelog says $version, CMakeLists.txt something else"

git -C "$top" archive --prefix="blitz-$version/" HEAD | tar x -C "$work"
(cd "$work/blitz-$version" &&
    DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" dpkg-buildpackage -us -uc >"$work/log" 2>&1) ||
    { tail -n 30 "$work/log"; fail "dpkg-buildpackage"; }

contents() { dpkg-deb -c "$work/${1}_${version}_"*.deb | awk '{ print $6 }' | grep -v '/$'; }
must_have() { # package, pattern...
    local list pattern
    list=$(contents "$1")
    for pattern in "${@:2}"; do
        grep -qE "$pattern" <<<"$list" || fail "$1 has nothing like $pattern"
    done
}
must_have libblitz0.1 '/libblitz\.so\.0\.1$'
must_have libblitz-dev '/include/blitz\.h$' '/blitz\.pc$' '/blitz-config\.cmake$' '/libblitz\.a$' \
    '/man3/blz_tcp' '/man7/blitz\.7'
must_have blitz-tools '/bin/blitz-check-frames$'
odd=$(contents libblitz0.1 | grep -vE '/libblitz\.so\.[0-9.]+$|/share/doc/|/share/lintian/' || true)
[ -z "$odd" ] || fail "in libblitz0.1, which is installed beside other versions of itself: $odd"

root=$work/root
for package in libblitz0.1 libblitz-dev blitz-tools; do
    dpkg-deb -x "$work/${package}_${version}_"*.deb "$root"
done
lib=$(dirname "$(find "$root" -name libblitz.a)")
export PKG_CONFIG_PATH=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root LD_LIBRARY_PATH=$lib
# shellcheck disable=SC2046
cc -std=gnu11 $(pkg-config --cflags blitz) "$here/consumer.c" -o "$work/consumer" $(pkg-config --libs blitz)
[ "$("$work/consumer")" = "blitz $version" ] || fail "a program that uses them"

if [ $# -gt 0 ]; then
    mkdir -p "$1"
    cp "$work"/*.deb "$work"/*.dsc "$work"/*.tar.* "$1"
fi
echo "debian packages: ok"
