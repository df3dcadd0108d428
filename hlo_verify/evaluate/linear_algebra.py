"""Factorizations and triangular systems, of each matrix of a batch: StableHLO's own, and calls to LAPACK.

Nothing is known where some matrix has no such factorization, or a choice on the way hangs on how numbers are rounded.
What LAPACK leaves in a triangle that it does not use is not known. The sign of an eigenvector and of a pair of singular
vectors is anybody's choice: enclosures have the one that a run says (`signs`), and note how many there are, so that
a witness hangs on none. Floats, which only search, have some.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from flint import arb

from hlo_verify.evaluate import factorizations
from hlo_verify.evaluate.balls import BALLS, UNKNOWN, identities
from hlo_verify.evaluate.blocks import Blocks, refine, spread, taken
from hlo_verify.evaluate.intervals import INTERVALS
from hlo_verify.evaluate.maps import Array
from hlo_verify.evaluate.numbers import is_float, storage
from hlo_verify.evaluate.state import Place, Rule, Run
from hlo_verify.evaluate.unknown import ArgumentsError, UnknownError
from hlo_verify.program.ir import Op
from hlo_verify.program.library_calls import EVALUATED, LIBRARY_CALLS

One = Callable[..., Sequence[Any]]
"""What is made of one matrix of each operand: a value for each result."""

LOWER, RIGHT, NOT_TRANSPOSED, UNIT, VALUES_ALONE = (ord(letter) for letter in "LRNUN")


def _each(op: Op, args: list[Blocks], batch: int, one: One, run: Run) -> list[Blocks]:
    """The function of the matrices of a batch, each once."""
    if run.real == INTERVALS or not all(is_float(run.types[name].dtype) for name in op.operands):
        raise UnknownError("is not known of such elements")
    shape = args[0].shape[:batch]
    if any(0 in a.shape or a.shape[:batch] != shape for a in args) or any(t.shape[:batch] != shape for t in op.types):
        raise UnknownError("has matrices of no elements, or other batches")
    maps, values = _matrices(args, batch + 1, run)
    lead = np.broadcast_shapes(*(v.shape[: batch + 1] for v in values))
    for type_ in op.types:
        run.spend(math.prod(lead) * math.prod(type_.shape[batch:]))
    run.toil(math.prod(lead) * max(args[0].shape[batch:], default=1) ** 3)
    values = [np.broadcast_to(v, (*lead, *v.shape[batch + 1 :])) for v in values]
    results = [np.empty((*lead, *t.shape[batch:]), storage(t.dtype, run.real)) for t in op.types]
    known: dict[bytes, Sequence[Any]] = {}
    for index in np.ndindex(*lead):
        matrices = [np.ascontiguousarray(v[index]) for v in values]
        key = b"".join((identities(m) if m.dtype == object else m).tobytes() for m in matrices)
        if key not in known:
            _expect_numbers(matrices)
            known[key] = one(*matrices)
        for result, found in zip(results, known[key], strict=True):
            result[index] = found
    made = []
    for result, type_ in zip(results, op.types, strict=True):
        own = [run.maps.distinct(n) if n > 1 else run.maps.constant(n) for n in type_.shape[batch:]]
        made.append(Blocks((*maps, *own), result))
    return made


def _matrices(args: Sequence[Blocks], lead: int, run: Run) -> tuple[list[Array], list[Array]]:
    """The maps of the first dimensions, devices among them, and values with a class for each index of the others."""
    for a in args:
        run.fits(math.prod(a.values.shape[:lead]) * math.prod(len(c) for c in a.classes[lead:]))
    wide = list(args)
    for n, a in enumerate(args):
        for axis in range(lead, len(a.classes)):
            a = spread(a, axis, run.maps)
        wide[n] = a
    maps: list[Array] = []
    indices: list[list[Array | None]] = [[None] * a.values.ndim for a in wide]
    for axis in range(lead):
        now, found = refine([(a.classes[axis], a.values.shape[axis]) for a in wide], run.maps)
        maps.append(now)
        for index, own in zip(indices, found, strict=True):
            index[axis] = own
    return maps, taken([a.values for a in wide], indices, run.fits)


def _expect_numbers(matrices: Sequence[Array]) -> None:
    for m in matrices:
        each = m.reshape(-1)
        if not (all(isinstance(x, arb) and x.is_finite() for x in each) if m.dtype == object else np.isfinite(m).all()):
            raise ArgumentsError("is not known of what is no number")


def _unknown(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Elements of which nothing is known; floats have zeros there."""
    return np.full(shape, UNKNOWN if dtype == BALLS else 0, dtype)


def _lower_alone(a: Array) -> Array:
    """A lower triangle, with nothing known above it."""
    return np.where(np.tri(len(a), dtype=np.bool_), a, _unknown(a.shape, a.dtype))


def _triangular(a: Array, b: Array, *, left: bool, lower: bool, transposed: bool, unit: bool) -> Array:
    """`x` with `op(a) @ x = b`, or `x @ op(a) = b`."""
    if transposed == left:  # the other triangle of the transposed, by rows or by columns
        a, lower = a.T, not lower
    if left:
        return factorizations.solved(a, b, is_lower=lower, has_unit_diagonal=unit)
    return factorizations.solved(a, b.T, is_lower=lower, has_unit_diagonal=unit).T


# StableHLO


def _cholesky(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    is_lower = bool(op.attributes.get("lower", False))

    def one(a: Array) -> Sequence[Array]:
        factor = _lower_alone(factorizations.cholesky(a if is_lower else a.T))
        return [factor if is_lower else factor.T]

    return _each(op, args, len(args[0].shape) - 2, one, run)


def _triangular_solve(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    said = op.attributes
    kind = str(said["transpose_a"]).rstrip(">").split()[-1].split(".")[-1]
    if kind not in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"):
        raise UnknownError(f"transposes as {kind}")

    def one(a: Array, b: Array) -> Sequence[Array]:
        settings = {"left": said["left_side"], "lower": said["lower"], "unit": said["unit_diagonal"]}
        return [_triangular(a, b, transposed=kind != "NO_TRANSPOSE", **settings)]

    return _each(op, args, len(args[0].shape) - 2, one, run)


RULES: dict[str, Rule] = {"cholesky": _cholesky, "triangular_solve": _triangular_solve}


# LAPACK


def _potrf(op: Op, config: dict[str, Any], run: Run) -> One:
    is_lower = config["uplo"] == LOWER

    def one(a: Array) -> Sequence[Any]:
        factor = _lower_alone(factorizations.cholesky(a if is_lower else a.T))
        return factor if is_lower else factor.T, 0

    return one


def _trsm(op: Op, config: dict[str, Any], run: Run) -> One:
    left, lower = config["side"] != RIGHT, config["uplo"] == LOWER
    transposed, unit = config["trans_x"] != NOT_TRANSPOSED, config["diag"] == UNIT
    return lambda a, b: [_triangular(a, b, left=left, lower=lower, transposed=transposed, unit=unit)]


def _getrf(op: Op, config: dict[str, Any], run: Run) -> One:
    return lambda a: [*factorizations.lu(a), 0]


def _geqrf(op: Op, config: dict[str, Any], run: Run) -> One:
    return factorizations.householder


def _orgqr(op: Op, config: dict[str, Any], run: Run) -> One:
    return lambda a, taus: [factorizations.product_of_reflections(a, taus)]


def _syevd(op: Op, config: dict[str, Any], run: Run) -> One:
    is_lower = config["uplo"] == LOWER

    def one(a: Array) -> Sequence[Any]:
        a = a if is_lower else a.T
        if a.dtype != object:
            return np.linalg.eigh(a)[1], factorizations.eigenvalues(a), 0
        if config["mode"] == VALUES_ALONE:
            return _unknown(a.shape, a.dtype), factorizations.eigenvalues(a), 0
        values, vectors = factorizations.eigenvectors(a, run.signs_of_next(len(a)))
        return vectors, values, 0

    return one


def _gesdd(op: Op, config: dict[str, Any], run: Run) -> One:
    shapes = [type_.shape[-2:] for type_ in (op.types[0], op.types[2], op.types[3])]

    def one(a: Array) -> Sequence[Any]:
        rest, left, right = (_unknown(shape, a.dtype) for shape in shapes)
        if left.shape[0] != a.shape[0]:
            return rest, factorizations.singular_values(a), left, right, 0
        if a.dtype != object:
            left, _, right = np.linalg.svd(a, full_matrices=left.shape[1] == a.shape[0])
            return rest, factorizations.singular_values(a), left, right, 0
        u, values, vt = factorizations.singular_vectors(a, run.signs_of_next(min(a.shape)))
        left[:, : u.shape[1]], right[: len(vt)] = u, vt
        return rest, values, left, right, 0

    return one


ROUTINES = {
    "potrf": _potrf,
    "trsm": _trsm,
    "getrf": _getrf,
    "geqrf": _geqrf,
    "orgqr": _orgqr,
    "syevd": _syevd,
    "gesdd": _gesdd,
}


def _library_call(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    target = str(op.attributes["call_target_name"])
    batch = len(args[0].shape) - LIBRARY_CALLS[target]
    config = op.attributes.get("backend_config") or {}
    if op.attributes.get("has_side_effect") or op.regions or batch < 0 or not isinstance(config, dict):
        raise UnknownError("has an effect, or other settings")
    for name, shapes in (("operand_layouts", [a.shape for a in args]), ("result_layouts", [t.shape for t in op.types])):
        _expect_by_columns(op.attributes.get(name), shapes, batch)
    routine = ROUTINES[target.removeprefix("lapack_")[1:].removesuffix("_ffi")]
    return _each(op, args, batch, routine(op, config, run), run)


def _expect_by_columns(layouts: Any, shapes: Sequence[tuple[int, ...]], batch: int) -> None:
    """Raise `UnknownError` where matrices do not lie column by column in memory, as LAPACK takes them."""
    wanted = [(*range(batch, len(shape)), *reversed(range(batch))) for shape in shapes]
    if layouts is None or [tuple(int(k) for k in layout) for layout in layouts] != wanted:
        raise UnknownError("has matrices that lie otherwise in memory")


CUSTOM_CALLS: dict[str, Rule] = dict.fromkeys(sorted(EVALUATED), _library_call)
"""By target."""
