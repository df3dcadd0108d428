"""What an operation computes with: a tensor as a scalar term over its positional index variables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hlo_verify.diagnostics import Diagnostic, Severity, Unsupported
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.limits import limit_of
from hlo_verify.program.element_types import ARITHMETIC, INTEGER_RANGES, is_float, is_integer
from hlo_verify.program.ir import Function, Location, Op, TensorType, captured
from hlo_verify.program.op_families import may_part
from hlo_verify.session import Session
from hlo_verify.terms import algebra, padding, rotations
from hlo_verify.terms.bounds import within
from hlo_verify.terms.definitions import Asked, define, define_all, named
from hlo_verify.terms.functions import wrap
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import (
    ZERO,
    Apply,
    Poly,
    Tensor,
    make_poly,
    number,
    tensor,
)

ARBITRARY = "before"
"""How variables are called that stand for whatever a loop may have carried: names of what depends on that have them."""


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor: `term` is its element at the variables `p0, p1, ...`: `x[p1, p0]` for `transpose(x)`."""

    type: TensorType
    term: Poly

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    def at(self, indices: Sequence[Index]) -> Poly:
        """The element at those indices."""
        return remap(self.term, self.type.shape, indices)


def remap(term: Poly, shape: tuple[int, ...], indices: Sequence[Index]) -> Poly:
    """The term with positional variables replaced."""
    mapping: dict[Var, Index] = {}
    for k, (size, e) in enumerate(zip(shape, indices, strict=True)):
        old = position_var(k, size)
        if size > 1 and e is not position(k, size):
            mapping[old] = e
    return algebra.substitute(term, mapping) if mapping else term


def position_var(k: int, size: int) -> Var:
    """The positional variable of dimension k."""
    return expr.var("p", k, size)


def position(k: int, size: int) -> Index:
    """The index along dimension k of a tensor of that size."""
    return expr.of_var(position_var(k, size))


def positions(shape: Sequence[int]) -> tuple[Index, ...]:
    """The index of every dimension."""
    return tuple(position(k, size) for k, size in enumerate(shape))


class UnsupportedError(Exception):
    """An operation, or a use of it, whose meaning is not known exactly: its results become opaque.

    `code` says which kind of thing is not understood.
    """

    def __init__(self, message: str, code: Unsupported = Unsupported.USE) -> None:
        super().__init__(message, code)
        self.code = code

    def __str__(self) -> str:
        return str(self.args[0])


class Loops(Protocol):
    """The logical module's loops that were interpreted so far; `induction.LoopBook` knows more of them."""

    def __len__(self) -> int: ...

    def by_name(self, values: list[Value]) -> list[Value]:
        """Values of a device, those by name that the loops have names for."""
        ...

    def forget(self, known: int) -> None:
        """Let go of all but the first `known`."""


class Remembers(Protocol):
    """What was worked out before in a walk; `worked_out.WorkedOut` is it."""

    def results(self, op: Op, operands: list[Value], context: Context, rule: Rule) -> list[Value]:
        """What the operation's rule gives."""
        ...


@dataclass(slots=True)
class Context:
    """What surrounds an operation: the devices of the module, and what was not understood so far.

    `device` is None in the logical module, which no device runs by itself. `run` interprets a region. Devices are
    numbered replica by replica: `replica * partitions + partition`.
    """

    device: Var | None
    partitions: int
    replicas: int
    run: Callable[[Function, Sequence[Value], Context], list[Value]]
    environment: dict[int, Value] = field(default_factory=dict)
    unsupported: dict[str, Diagnostic] = field(default_factory=dict)
    """What was not understood, each operation of a source line once."""
    side: str = "logical"
    loops: Loops | None = None
    mesh: Var | None = None
    """The devices, in a module that is global but for regions that each device runs for itself (`manual`)."""
    manual: frozenset[str] = frozenset()
    """The mesh axes over which the regions around are manual."""
    automatic: npt.NDArray[np.int64] | None = None
    """A number for each device, equal for those that differ along manual axes alone; None where all axes are manual.

    With a manual axis of 2 before another one of 2, it is `0, 1, 0, 1`."""
    observe: Callable[[Op, list[Value]], list[Value]] | None = None
    """Sees every operation's results, and may give equal ones back."""
    instead: Callable[[Op, list[Value]], list[Value]] | None = None
    """What stands in the place of every operation's results, where an iteration is looked at on some devices alone."""
    iterations: tuple[Index, ...] = ()
    """Of each loop around the operation its counter, or the number of a turn where the loop is unrolled."""
    kept: Kept | None = None
    """What was computed in runs of a loop's body under other guesses of what it carries."""
    worked_out: Remembers | None = None
    session: Session = field(default_factory=Session)
    claims: frozenset[tuple[str, str, str, Location | None]] | None = None
    """What the logical module claims of indices (`indexing.claims_of`). None in that module itself, and where there is
    no other."""
    numbered: dict[Hashable, dict[int, Op]] = field(default_factory=dict)
    """The operations of each family that `number` was asked of so far, in order, by their ids."""

    @property
    def compilers_device(self) -> Var | None:
        """The device, where a compiler wrote what it does: a person's regions (`manual`) are not a compiler's."""
        return None if self.manual else self.device

    @property
    def execution(self) -> tuple[Index, ...]:
        """Which execution this is of an operation: on which device, in which iterations of the loops around."""
        device = self.device or self.mesh
        return (*((expr.of_var(device),) if device is not None else ()), *self.iterations)

    def number(self, op: Op, family: Hashable) -> int:
        """How many other operations of that family come before this one in the module."""
        members = self.numbered.setdefault(family, {})
        members.setdefault(id(op), op)  # with the operation, so that its id stays taken
        return list(members).index(id(op))

    def opaque(self, op: Op, reason: str, code: Unsupported) -> list[Value]:
        """Fresh tensors that equal nothing else, one a result; on every device another, and in every iteration."""
        if may_part(op):
            reason, code = f"{reason}, around branches or loops in which devices may communicate", Unsupported.BRANCH
        key = f"{op.name} at {op.location}: {code.value}, {reason}"
        said = Diagnostic(code, Severity.WARNING, reason, str(op.location), op.name)
        self.unsupported.setdefault(key, said)
        values = []
        for type_ in op.types:
            if 0 in type_.shape:
                values.append(Value(type_, ZERO))
                continue
            unknown: Tensor = tensor("opaque", f"{self.side}.{op.name}", type_.dtype, type_.shape, location=op.location)
            values.append(Value(type_, algebra.read(unknown, (*self.execution, *positions(type_.shape)))))
        return values


@dataclass(slots=True)
class Kept:
    """Results of operations in a loop's body, to be had again where it is run again on other values.

    They hold for one context, and within it for one execution of an operation (the iterations of the loops around say
    which) on the same terms.
    """

    context: Context
    _results: dict[tuple[object, ...], tuple[Op, list[Value]]] = field(default_factory=dict)

    def holds_in(self, context: Context) -> bool:
        """Whether operations mean the same in that context, and are seen and reported by the same."""
        mine = self.context
        return (
            mine.device is context.device
            and mine.manual is context.manual
            and mine.automatic is context.automatic
            and mine.environment is context.environment
            and mine.unsupported is context.unsupported
            and mine.observe is context.observe
            and mine.instead is context.instead
        )

    def once(self, op: Op, operands: list[Value], context: Context, interpret: Rule) -> list[Value]:
        """The operation's results, interpreted unless they are kept."""
        around = [context.environment[v] for v in captured(op)] if op.regions else ()
        key = id(op), context.iterations, *(value.term.uid for value in (*operands, *around))
        found = self._results.get(key)
        if found is None:
            values = interpret(op, operands, context)
            found = self._results[key] = op, values  # with the operation, so that its id stays taken
        return found[1]


Rule = Callable[[Op, list[Value], Context], list[Value]]
"""An operation's meaning: operands in, results out."""


def lighten(term: Poly, dtype: str, limit: int | None = None) -> Poly:
    """The term, by name if it is heavy; a part of a sum round a ring stays open, so that it closes with the rest."""
    if term.weight <= (limit_of("named_weight") if limit is None else limit) or rotations.is_part_of_turns(term):
        return term
    pieces = padding.parts(term)
    if pieces:
        return algebra.add(*(algebra.multiply(on, lighten(piece, dtype, limit)) for on, piece in pieces))
    return _named(term, dtype)


def factor(term: Poly, dtype: str) -> Poly:
    """The term as one light monomial (one for each of its parts, where it has padding): products of it stay small."""
    if len(term.items) <= 1 and term.weight <= 16:
        return term
    pieces = padding.parts(term)
    if pieces:
        return algebra.add(*(algebra.multiply(on, factor(piece, dtype)) for on, piece in pieces))
    return _named(term, dtype)


def _named(term: Poly, dtype: str) -> Poly:
    """The term by name; a real one as a multiple of a name, so that terms that differ in scale have one name.

    The name of an integer has no type: types of any width share the polynomial, and it wraps in each.
    """
    if not is_float(dtype) or not term.items:
        return _by_name(term, dtype if dtype == "i1" else "")
    return algebra.up_to_scale(term, lambda p: _by_name(p, ""))


def _by_name(term: Poly, dtype: str) -> Poly:
    atom = term.atom
    # one function of a term gets no name, so that laws see it, but where there is a long chain of them
    if isinstance(atom, Apply) and len(atom.args) == 1 and term.weight > 4 * limit_of("named_weight"):
        return define("term", (), (term,), dtype=dtype)
    return named(term, dtype)


def result(op: Op, term: Poly) -> list[Value]:
    """The one result of an operation."""
    term = unwrapped(term, op.types[0].dtype)
    return [Value(op.types[0], lighten(term, op.types[0].dtype))]


def unwrapped(p: Poly, dtype: str) -> Poly:
    """A term of an integer type without wrapping by a type that is no narrower, which changes nothing of a sum."""
    if dtype not in INTEGER_RANGES:
        return p
    inner = {
        atom: atom.args[0]
        for mono, _ in p.items
        for atom, n in mono
        if len(mono) == n == 1 and isinstance(atom, Apply) and _is_wrapped(atom, dtype)
    }
    return (
        algebra.add(
            *(
                algebra.scale(inner[mono[0][0]], c)
                if mono and mono[0][0] in inner and len(mono) == mono[0][1] == 1
                else make_poly(((mono, c),))
                for mono, c in p.items
            )
        )
        if inner
        else p
    )


def _is_wrapped(atom: Apply, dtype: str) -> bool:
    (lo, hi), wide = INTEGER_RANGES[dtype], INTEGER_RANGES.get(atom.function.gives or "", (0, 0))
    return atom.function == wrap(atom.function.gives or "") and wide[1] - wide[0] >= hi - lo


def integer_range(dtype: str) -> tuple[int, int]:
    """Least and greatest value of an integer type."""
    if dtype not in INTEGER_RANGES:
        raise UnsupportedError(f"{dtype} where an integer type is expected", Unsupported.ELEMENT_TYPE)
    return INTEGER_RANGES[dtype]


def as_index(value: Value) -> Index:
    """An integer tensor's element as an index expression."""
    return algebra.as_index(value.term, *integer_range(value.type.dtype))


def whole(kind: str, attributes: Any, operands: Sequence[Value], result: TensorType) -> Poly:
    """A function of whole tensors, known only by its name and attributes, at the result's position."""
    every = [(value, range(len(value.shape))) for value in operands]
    return function_of(kind, attributes, every, result, range(len(result.shape)))


def function_of(
    kind: str,
    attributes: Any,
    operands: Sequence[tuple[Value, Sequence[int]]],
    result: TensorType,
    own: Sequence[int],
) -> Poly:
    """A function of some dimensions of its operands, known by its name and attributes, at its result's position."""
    return functions_of(kind, operands, [(attributes, result, own)])[0]


def functions_of(
    kind: str,
    operands: Sequence[tuple[Value, Sequence[int]]],
    results: Sequence[tuple[Any, TensorType, Sequence[int]]],
) -> list[Poly]:
    """Such functions of the same operands, each with its attributes, and the type and own dimensions of its result.

    Each operand comes with the dimensions that the function is of; its others are, in order, dimensions of the result
    that are not the function's `own`. Element types and sizes take part in telling functions apart.
    """
    types = tuple((v.type.dtype, tuple(v.shape[k] for k in dims)) for v, dims in operands)
    together: dict[tuple[Index, ...], dict[int, Asked]] = {}
    for n, (attributes, result, own) in enumerate(results):
        where = positions(result.shape)
        key = (attributes, types, (result.dtype, tuple(result.shape[k] for k in own)))
        batch = tuple(where[k] for k in range(result.rank) if k not in own)
        together.setdefault(batch, {})[n] = key, tuple(where[k] for k in own), result.dtype
    found: dict[int, Poly] = {}
    for batch, asked in together.items():
        bound: list[Var] = []
        bodies = []
        for value, dims in operands:
            others = iter(batch)
            at: list[Index] = []
            for k, size in enumerate(value.shape):
                if k in dims:
                    bound.append(expr.fresh("f", size))
                    at.append(expr.of_var(bound[-1]))
                else:
                    at.append(next(others))
            bodies.append(value.at(at) if 0 not in value.shape else ZERO)
        terms = define_all(kind, bound, tuple(bodies), list(asked.values()), ordered=True)
        found.update(zip(asked, terms, strict=True))
    return [found[n] for n in range(len(results))]


def operand_of_type(value: Value, dtype: str) -> Poly:
    """The value's term for arithmetic in an element type, its own or a wider one that it is promoted to first."""
    return value.term if value.type.dtype == dtype or not is_integer(value.type.dtype) else exact_integer(value)


def known_integer(value: Value) -> int | None:
    """The integer that a machine holds, where that is known: a term equals it modulo 2^n, whatever it is itself."""
    constant = value.term.constant
    if not isinstance(constant, int):
        return None
    lo, hi = integer_range(value.type.dtype)
    return (constant - lo) % (hi - lo + 1) + lo


def exact_integer(value: Value) -> Poly:
    """A polynomial whose value is the machine value itself, not merely equal to it modulo 2^n."""
    dtype = value.type.dtype
    lo, hi = integer_range(dtype)
    if within(value.term, lo, hi, sums=True):
        return value.term
    known = known_integer(value)
    if known is not None:
        return number(known)
    return apply(wrap(dtype), (value.term,))


def require_arithmetic(*dtypes: str) -> None:
    """Refuse element types whose arithmetic is not that of numbers."""
    for dtype in dtypes:
        if not ARITHMETIC.fullmatch(dtype):
            raise UnsupportedError(f"arithmetic of {dtype}", Unsupported.ELEMENT_TYPE)
