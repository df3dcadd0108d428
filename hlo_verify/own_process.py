"""Settings of a process that does nothing but verify: the command line's own.

They change no answer. Who calls `hlo_verify.verify` in a process with other work has his own settings.
"""

from __future__ import annotations

import ctypes
import os
import sys

THREADS = "OPENBLAS_NUM_THREADS"

MMAP_THRESHOLD, TRIM_THRESHOLD, TOP_PAD = -3, -1, -2
"""Parameters of glibc's `mallopt`: from what size on a block of memory is the system's own, how much free memory is
given back, and how much more than is needed is asked for."""

LARGEST = 1 << 30
"""Bytes of the largest block that is kept for the next one when it is freed."""

MORE = 1 << 26
"""Bytes that are asked for at a time."""


def settle() -> None:
    """Have products of matrices computed by one thread, unless the user says otherwise, and freed memory kept.

    Must be called before numpy is imported. The products that verification takes are cut into pieces that fit into a
    processor's cache: more threads mostly wait for each other, and how many there are would decide how sums are
    rounded. An evaluation makes an array for every operation, and what is given back to the system between two of
    them costs more to get again, page by page, than the operation.
    """
    os.environ.setdefault(THREADS, "1")
    if not sys.platform.startswith("linux"):
        return
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return
    for option, size in ((MMAP_THRESHOLD, LARGEST), (TRIM_THRESHOLD, LARGEST), (TOP_PAD, MORE)):
        set_option(ctypes.c_int(option), ctypes.c_int(size))
