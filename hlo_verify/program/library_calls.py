"""Custom calls to libraries of linear algebra: LAPACK, and what stands for it on GPUs and TPUs.

The names are those that JAX lowers to. Every operand and result has the same batch dimensions first, and each matrix
of a batch is worked on by itself: XLA's own partitioner splits such a call along them too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

REAL_AND_COMPLEX = "geev gees gehrd gesdd gesvd geqrf geqp3 getrf gtsv potrf trsm".split()
REAL = "orgqr ormqr syevd sytrd".split()
COMPLEX = "ungqr unmqr heevd hetrd".split()
"""Routines of LAPACK; the names of calls have a letter for the element type before them."""

OF_GPUS = (
    "solver_geev solver_geqrf solver_gesdd solver_gesvd solver_gesvdj solver_gesvdp solver_getrf solver_orgqr "
    "solver_ormqr solver_potrf solver_syevd solver_sytrd sparse_gtsv2"
).split()
"""The names of calls have `cu` or `hip` before them."""


def _names() -> Iterator[tuple[str, int]]:
    for letters, routines in (("sdcz", REAL_AND_COMPLEX), ("sd", REAL), ("cz", COMPLEX)):
        for routine in routines:
            rank = 1 if routine == "gtsv" else 2
            yield from ((f"lapack_{letter}{routine}_ffi", rank) for letter in letters)
    for vendor in ("cu", "hip"):
        yield from ((f"{vendor}{routine}_ffi", 1 if "gtsv" in routine else 2) for routine in OF_GPUS)
        yield f"{vendor}_lu_pivots_to_permutation", 1
    yield from ((name, 2) for name in ("Qr", "ProductOfElementaryHouseholderReflectors", "Eigh", "LuDecomposition"))


LIBRARY_CALLS: Mapping[str, int] = MappingProxyType(dict(_names()))
"""By target: how many dimensions the first operand has behind those of the batch."""

EVALUATED = frozenset(
    f"lapack_{letter}{routine}_ffi"
    for letter in "sd"
    for routine in ("potrf", "trsm", "getrf", "geqrf", "orgqr", "syevd", "gesdd")
)
"""Those of which numbers are found."""
