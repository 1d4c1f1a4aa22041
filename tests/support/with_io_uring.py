#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a test that asks for io_uring; where the system has none, or forbids it, it is skipped.

    with_io_uring.py COMMAND...
"""

import ctypes
import os
import sys

IO_URING_SETUP = 425
SKIPPED = 77


def main():
    libc = ctypes.CDLL(None, use_errno=True)
    ring = libc.syscall(IO_URING_SETUP, 1, ctypes.create_string_buffer(120))
    if ring < 0:
        print("skipped: no io_uring here:", os.strerror(ctypes.get_errno()))
        return SKIPPED
    os.close(ring)
    os.execv(sys.argv[1], sys.argv[1:])


sys.exit(main())
