# SPDX-License-Identifier: Apache-2.0
#
# 64-bit ARM Linux on a machine of another kind: Debian's cross compiler, libraries of that
# architecture (tools/bootstrap cross), and qemu-user, which runs the tests. It has no io_uring.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
# The compiler warns of its own headers of the kernel otherwise.
set(CMAKE_C_FLAGS_INIT -Wno-variadic-macros)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig)
