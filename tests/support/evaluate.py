"""Terms evaluated with numbers: brute force, and nothing of the prover's algebra.

An expression is evaluated for every combination of its variables at once: every variable stands for an
array of integers, and the arrays broadcast. Elements are Python numbers, held in object arrays: exact integers
and fractions, and floats where a function that is not rational was applied. Infinity is a number too, larger than all
others: terms treat it as a symbol, which may be added and subtracted again.

Guards come first: where a guard or a boolean of a product is 0, the product is 0, whatever the other
factors are (an infinity, a NaN). What is read outside of a tensor is an arbitrary number, the same
whenever the same place is read, so that a read which no guard covers shows as a wrong result.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hlo_verify.index.expr import UNBOUNDED, Digit, Index, Opaque, Var
from hlo_verify.ops.values import Value, position_var
from hlo_verify.terms.term import Apply, Atom, Guard, Ix, Monomial, Poly, Read, Tensor
from tests.support.functions import call
from tests.support.wholes import REDUCTIONS, WHOLES

Array = npt.NDArray[Any]

MACHINE_SIZES = frozenset(1 << n for n in (2, 4, 8, 16, 32, 64))


def objects(values: Any) -> Array:
    """An object array of Python numbers."""
    array = np.asarray(values)
    if array.dtype == object:
        return array
    if array.dtype.kind == "b" or array.dtype.name.startswith(("int", "uint")):
        return array.astype(np.int64 if array.dtype.name != "uint64" else np.uint64).astype(object)
    if array.dtype.kind == "c":
        return array.astype(np.complex128).astype(object)
    exact = np.frompyfunc(lambda x: Fraction(x) if math.isfinite(x) else x, 1, 1)
    return np.asarray(exact(array.astype(np.float64)), dtype=object)


class OpaqueError(Exception):
    """A function of whole tensors that only its name is known of."""


@dataclass(frozen=True, slots=True)
class _Box:
    """An array as one element of another."""

    array: Any


class Evaluator:
    """The numbers behind the tensors that terms read."""

    def __init__(self, tensors: Mapping[Tensor, Any]) -> None:
        self.tensors = {tensor: objects(values) for tensor, values in tensors.items()}

    def poly(self, p: Poly, env: Mapping[Var, Any]) -> Array:
        """p where every variable has the values that `env` gives (arrays that broadcast)."""
        return _Scope(self, {v: np.asarray(x).astype(object) for v, x in env.items()}).poly(p)

    def index(self, e: Index, env: Mapping[Var, Any]) -> Array:
        """An index expression, likewise."""
        return _Scope(self, {v: np.asarray(x).astype(object) for v, x in env.items()}).index(e)

    def value(self, value: Value, outer: Mapping[Var, int] | None = None) -> Array:
        """Every element of a tensor; variables of `outer` range over all their values, in leading dimensions."""
        sizes = [*(outer or {}).values(), *value.shape]
        variables = [*(outer or {}), *(position_var(k, size) for k, size in enumerate(value.shape))]
        env = dict(zip(variables, np.ogrid[tuple(slice(n) for n in sizes)], strict=True)) if sizes else {}
        return np.broadcast_to(self.poly(value.term, env), sizes)


class _Scope:
    """One choice of values for the variables; every subterm is evaluated once."""

    def __init__(self, evaluator: Evaluator, env: Mapping[Var, Array]) -> None:
        self.evaluator = evaluator
        self.env = env
        self.memo: dict[int, Array] = {}

    def index(self, e: Index) -> Array:
        found = self.memo.get(e.uid)
        if found is None:
            found = np.asarray(e.const, dtype=object)
            for atom, c in e.items:
                found = np.asarray(found + c * self._atom_index(atom), dtype=object)
            assert all(e.lo <= x <= e.hi for x in found.flat), f"{e} outside of {e.lo}..{e.hi}"
            self.memo[e.uid] = found
        return found

    def _atom_index(self, atom: Digit | Opaque) -> Array:
        if isinstance(atom, Digit):
            v = self.env[atom.var]
            assert atom.var.size == UNBOUNDED or all(0 <= x < atom.var.size for x in v.flat), f"{atom.var} out of range"
            quotient: Array = np.asarray(v // atom.low, dtype=object)
            return quotient if atom.top else np.asarray(quotient % atom.radix, dtype=object)
        if atom.operator == "value":
            return _machine(self.poly(atom.term), atom.lo, atom.hi)
        inner = self.index(atom.exprs[0])
        if atom.operator == "mod":
            return np.asarray(inner % atom.args[0], dtype=object)
        if atom.operator == "div":
            return np.asarray(inner // atom.args[0], dtype=object)
        if atom.operator == "clamp":
            lo, hi = atom.args
            return _each(lambda x: max(lo, min(x, hi)), inner)
        assert atom.operator == "table", atom.operator
        values = atom.args[0]
        return _each(lambda x: values[x] if 0 <= x < len(values) else values[hash(x) % len(values)], inner)

    def poly(self, p: Poly) -> Array:
        found = self.memo.get(p.uid)
        if found is None:
            found = np.asarray(0, dtype=object)
            for mono, c in p.items:
                found = np.asarray(found + self._scaled(mono, c), dtype=object)
            self.memo[p.uid] = found = _each(_plain, found)
        return found

    def _scaled(self, mono: Monomial, c: int | Fraction) -> Array:
        gates = [self.atom(a) for a, _ in mono if a.boolean]
        rest = [_each(partial(_power, n=n), self.atom(a)) for a, n in mono if not a.boolean]
        parts = [*gates, *rest]

        def product(*factors: Any) -> Any:
            if any(x == 0 for x in factors[: len(gates)]):
                return 0  # beside a guard that does not hold, a table may be any number
            assert all(x == 1 for x in factors[: len(gates)]), f"no truth value among the conditions of {mono}"
            result: Any = c
            for factor in factors:
                result = result * factor
            return result

        return _each(product, *parts) if parts else np.asarray(c, dtype=object)

    def atom(self, a: Atom) -> Array:
        found = self.memo.get(a.uid)
        if found is None:
            if isinstance(a, Read):
                found = self._read(a)
            elif isinstance(a, Apply):
                found = _each(lambda *args: call(str(a.function), args), *(self.poly(p) for p in a.args))
            elif isinstance(a, Ix):
                found = self.index(a.index)
            else:
                found = self._guard(a)
            self.memo[a.uid] = found
        return found

    def _guard(self, g: Guard) -> Array:
        def holds(x: int) -> int:
            return int((g.lo is None or g.lo <= x) and (g.hi is None or x <= g.hi))

        return _each(holds, self.index(g.form))

    def _read(self, a: Read) -> Array:
        indices = [self.index(e) for e in a.indices]
        if a.tensor.bodies:
            return self._definition(a.tensor, indices)
        data = self.evaluator.tensors.get(a.tensor)
        if data is None:
            assert a.tensor.values is not None, f"nothing is known of {a.tensor}"
            data = objects(a.tensor.values)
        return _look_up(data, indices, a.tensor)

    def _definition(self, source: Tensor, indices: list[Array]) -> Array:
        params, at = indices[: len(source.params)], indices[len(source.params) :]
        shape = np.broadcast_shapes(*(x.shape for x in params)) if params else ()
        sizes = tuple(v.size for v in source.bound)
        env = {
            v: x.reshape((1,) * (len(shape) - x.ndim) + x.shape + (1,) * len(sizes))
            for v, x in zip(source.params, params, strict=True)
        }
        env |= {
            v: np.arange(n).astype(object).reshape((n,) + (1,) * (len(sizes) - k - 1))
            for k, (v, n) in enumerate(zip(source.bound, sizes, strict=True))
        }
        scope = _Scope(self.evaluator, env)
        bodies = [np.broadcast_to(scope.poly(b), shape + sizes) for b in source.bodies]
        axes = tuple(range(len(shape), len(shape) + len(sizes)))
        if source.kind in REDUCTIONS:
            return np.asarray(REDUCTIONS[source.kind](bodies[0], axes), dtype=object)
        rule = WHOLES.get(source.kind)
        if rule is None:
            raise OpaqueError(source.kind)
        at_shape = np.broadcast_shapes(shape, *(x.shape for x in at))
        results = np.empty(shape, dtype=object)
        for where in np.ndindex(*shape):
            results[where] = _Box(rule(source, [np.asarray(b[where], dtype=object) for b in bodies], self.evaluator))
        chosen = np.broadcast_to(results, at_shape)
        picked = np.empty(at_shape, dtype=object)
        spread = [np.broadcast_to(x, at_shape) for x in at]
        for where in np.ndindex(*at_shape):
            picked[where] = _look_up(objects(chosen[where].array), [np.asarray(x[where]) for x in spread], source)[()]
        return picked


def _power(x: Any, n: int | Fraction) -> Any:
    """Infinite where Python's floats say that they overflow."""
    try:
        return x**n if n != 1 else x
    except OverflowError:
        return math.inf if x > 0 or n % 2 == 0 else -math.inf


def _each(function: Any, *arrays: Array) -> Array:
    with np.errstate(all="ignore"):
        result = np.frompyfunc(function, len(arrays), 1)(*arrays)
    return np.asarray(result, dtype=object)


def _plain(x: Any) -> Any:
    return x.numerator if isinstance(x, Fraction) and x.denominator == 1 else x


def _machine(values: Array, lo: int, hi: int) -> Array:
    """Values as the machine holds them; a narrower interval than a machine type's is a claim."""
    size = hi - lo + 1

    def wrap(x: Any) -> Any:
        assert x == int(x), f"{x!r} where an integer is expected"
        x = int(x)
        if size not in MACHINE_SIZES:
            assert lo <= x <= hi, f"{x} outside of {lo}..{hi}"
        return (x - lo) % size + lo

    return _each(wrap, values)


def _look_up(data: Array, indices: Sequence[Array], source: Tensor) -> Array:
    def element(*where: int) -> Any:
        if all(0 <= i < n for i, n in zip(where, data.shape, strict=True)):
            return data[where]
        arbitrary = random.Random(f"{source.uid} {where}")
        if source.dtype == "i1":
            return arbitrary.randrange(2)
        integral = source.dtype.startswith(("i", "ui"))
        return arbitrary.randrange(4) if integral else arbitrary.uniform(-5.0, 5.0)

    return _each(element, *indices) if indices else np.asarray(data[()], dtype=object)
