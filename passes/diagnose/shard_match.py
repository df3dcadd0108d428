"""Which values of the partitioned module are shards of logical values, and which offsets a shard may start at.

A value is a shard if it is some logical value at indices of the form `start(d) + position`, where `start` is
the start of a shard under a placement that the pair of modules uses somewhere. That is decided by building
every such term and comparing it, so it never guesses: the finding about a wrong module rests on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, islice, pairwise, product
from math import prod

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.index import expr, tables
from hlo_verify.index.expr import Digit, Index, Opaque
from hlo_verify.ops.values import Value, lighten, positions
from hlo_verify.passes.diagnose.term_contents import digits_of, form, indices, is_computed, named_anew, ratio
from hlo_verify.passes.prove.stages import Stages, Step
from hlo_verify.program.ir import TensorType
from hlo_verify.program.sharding import Sharding, parse_sharding
from hlo_verify.terms import algebra
from hlo_verify.terms.extrema import reduce_extremum
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Apply, Number, Poly, Read

PLACEMENTS = 64
"""The most placements of one logical value that are tried, and the most logical values that one is compared with."""


@dataclass(frozen=True, slots=True)
class Match:
    """A value that is `factor` times a shard of a logical value, of which `summed` (device digits) is still open."""

    step: Step | None
    whole: Value
    term: Poly
    factor: Number = 1
    summed: tuple[Digit, ...] = ()
    reducer: str = "sum"


@dataclass(slots=True)
class Shards:
    """What is known of the values of a pair of modules after both were walked."""

    stages: Stages
    _starts: dict[int, list[Index]] = field(default_factory=dict)
    _sizes: set[int] = field(default_factory=set)
    _tables: set[Opaque] = field(default_factory=set)
    _wholes: dict[int, list[tuple[Step | None, Value]]] = field(default_factory=dict)
    _memo: dict[tuple[int, tuple[int, ...]], Match | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        seen: set[tuple[int, tuple[int, ...]]] = set()
        shapes = {value.shape for step in self.stages.logical for value in step.values}
        self._sizes.update(size for shape in shapes for size in _runs(shape))
        for step in self.stages.logical:
            for value in step.values:
                if (value.term.uid, value.shape) not in seen:
                    seen.add((value.term.uid, value.shape))
                    self._wholes.setdefault(form(value.term), []).append((step, value))
        for carried in self._carried():
            self._wholes.setdefault(form(carried.term), []).append((None, carried))
        for argument in self.stages.arguments:
            self._sizes.update(_runs(argument.shape))
            self._wholes.setdefault(form(argument.term), []).append((None, argument))
        for sharding in self._shardings():
            self._learn(sharding)

    def _carried(self) -> Iterator[Value]:
        """What the logical module's loops carry, at the start of an iteration."""
        seen = set()
        for step in self.stages.logical:
            for value in step.values:
                for mono, _ in value.term.items:
                    for atom, _ in mono:
                        if isinstance(atom, Read) and atom.tensor.kind == "loop" and atom.tensor not in seen:
                            seen.add(atom.tensor)
                            shape = atom.tensor.shape
                            around = atom.indices[: len(atom.indices) - len(shape)]
                            term = algebra.read(atom.tensor, (*around, *positions(shape)))
                            yield Value(TensorType(shape, atom.tensor.dtype), term)

    def _shardings(self) -> Iterator[Sharding]:
        """Every placement that the modules mention, each text once."""
        yield from self.stages.placements
        texts: dict[str, int] = {}
        for step in self.stages.logical:
            text = step.op.attributes.get("sharding")
            if isinstance(text, str) and len(step.values) == 1:
                texts.setdefault(text, step.values[0].type.rank)
        for text, rank in texts.items():
            try:
                (sharding,) = parse_sharding(text, [rank], self.stages.device.size)
            except InputError:
                continue
            if sharding is not None:
                yield sharding
        for step in self.stages.partitioned:
            for key in ("in_shardings", "out_shardings"):
                yield from (s for s in step.op.attributes.get(key, ()) if isinstance(s, Sharding))

    def _learn(self, sharding: Sharding) -> None:
        device = self.stages.device
        if sharding.devices not in (1, device.size):
            return
        sharding = sharding.spread(device.size)
        for k, tiles in enumerate(sharding.tiles):
            if tiles == 1:
                continue
            start = tables.fit(sharding.coordinates[:, k], device)
            starts = self._starts.setdefault(tiles, [])
            if start not in starts:
                starts.append(start)
            self._tables.update(atom for atom, _ in start.items if isinstance(atom, Opaque))

    # Recognising

    def match(self, value: Value) -> Match | None:
        """The logical value that this one is a shard of, up to a constant factor."""
        key = (value.term.uid, value.shape)
        if key not in self._memo:
            self._memo[key] = self._match(value)
        return self._memo[key]

    def is_shard(self, value: Value) -> bool:
        """Whether this is a shard of a logical value, with no factor."""
        found = self.match(value)
        return found is not None and found.factor == 1

    def _match(self, value: Value) -> Match | None:
        close: tuple[Fraction, Match] | None = None
        anew = named_anew(value.term)
        for step, whole in islice(self._wholes.get(form(value.term), ()), PLACEMENTS):
            for expected in self.shards(whole, value.shape):
                if expected is value.term or named_anew(expected) is anew:
                    return Match(step, whole, expected)
                factor = ratio(value.term, expected)
                if factor is not None:
                    size = max(Fraction(factor), -Fraction(factor))
                    apart = max(size, 1 / size) + (factor < 0)
                    if close is None or apart < close[0]:
                        close = apart, Match(step, whole, expected, factor)
        return close[1] if close is not None else None

    def alike(self, value: Value) -> Iterator[tuple[Step | None, Value]]:
        """Logical values whose terms have the same form; with no operation, those that are arguments."""
        yield from self._wholes.get(form(value.term), ())

    def is_elsewhere(self, value: Value) -> bool:
        """Whether this holds elements of a logical value in a shape that no shard of it has: a piece, or a stack."""
        if not all(any(isinstance(atom, Read | Apply) for atom, _ in mono) for mono, _ in value.term.items):
            return False
        same = [whole for _, whole in self.alike(value) if whole.term.skey == value.term.skey]
        return bool(same) and all(next(self.shards(whole, value.shape), None) is None for whole in same[:PLACEMENTS])

    def shards(self, whole: Value, shape: tuple[int, ...]) -> Iterator[Poly]:
        """The shards of that shape that a device may hold of a logical value."""
        for _, term in self.placed(whole, shape):
            yield term

    def placed(self, whole: Value, shape: tuple[int, ...]) -> Iterator[tuple[tuple[Index, ...], Poly]]:
        """The same, each with where the shard starts along every dimension, as index expressions of the device."""
        if len(whole.shape) != len(shape):
            return
        choices: list[list[Index]] = []
        for size, local in zip(whole.shape, shape, strict=True):
            tiled = [s for tiles, found in self._starts.items() if -(-size // tiles) == local for s in found]
            choices.append([expr.constant(0)] if size == local else [expr.scale(start, local) for start in tiled])
        for starts in islice(product(*choices), PLACEMENTS):
            yield starts, whole.at([expr.add(start, at) for start, at in zip(starts, positions(shape), strict=True)])

    def open_sum(self, value: Value) -> Match | None:
        """What a partial value is a part of: the logical value that it becomes when summed over some device digits."""
        if not is_computed(value.term):
            return None  # numbers that devices choose among
        digits = self._digits(value.term)
        atom = value.term.atom
        reducer = atom.tensor.kind if isinstance(atom, Read) and atom.tensor.kind in ("max", "min") else "sum"
        close: Match | None = None
        for count in range(1, min(len(digits), 3) + 1):
            for chosen in combinations(digits, count):
                found = self.match(Value(value.type, self._summed(reducer, value.term, value.type.dtype, chosen)))
                if found is None or found.term.constant is not None:
                    continue  # a number is no value that its addends could be told from
                if found.factor == 1 or close is None:
                    close = Match(found.step, found.whole, found.term, found.factor, chosen, reducer)
                    if found.factor == 1:
                        return close
        return close

    def _summed(self, reducer: str, term: Poly, dtype: str, digits: Iterable[Digit]) -> Poly:
        device = self.stages.device
        where = expr.of_var(device)
        bound = []
        for digit in digits:
            bound.append(expr.fresh("f", digit.radix))
            change = expr.subtract(expr.of_var(bound[-1]), expr.of_atom(digit))
            where = expr.add(where, expr.scale(change, digit.low))
        moved = algebra.substitute(term, {device: where})
        return lighten(reduce_sum(bound, moved) if reducer == "sum" else reduce_extremum(reducer, bound, moved), dtype)

    def _digits(self, term: Poly) -> list[Digit]:
        """The digits of the device that a term depends on, split where placements split them."""
        device = self.stages.device
        inside = [a for e in indices(term) for a in digits_of(e, device)]
        breakpoints = {1, device.size}
        for a in inside:
            breakpoints.update((a.low, min(a.low * a.radix, device.size)))
        for found in self._starts.values():
            for start in found:
                breakpoints.update(
                    c for a in digits_of(start, device) for c in (a.low, min(a.low * a.radix, device.size))
                )
        ordered = sorted(breakpoints)
        pieces = []
        for low, high in pairwise(ordered):
            if high % low == 0 and any(a.low < high and low < a.low * a.radix for a in inside):
                atom = expr.digit_of(expr.of_var(device), low, high // low).items[0][0]
                if isinstance(atom, Digit):
                    pieces.append(atom)
        return pieces

    # Offsets

    def odd_offset(self, term: Poly) -> Index | None:
        """An index whose dependence on the device is no start of a shard: `4095*d` where shards have 4096 elements."""
        for e in indices(term):
            for atom, c in e.items:
                if self.stages.device in atom.free and not self._is_start(atom, abs(c)):
                    return expr.scale(expr.of_atom(atom), c)
        return None

    def is_start(self, index: Index) -> bool:
        """Whether the shards of some dimension start at such indices; shards of more elements than one."""
        for tiles, starts in self._starts.items():
            locals_ = {-(-size // tiles) for size in self._sizes if size > tiles}
            if any(expr.scale(start, local) is index for start in starts for local in locals_):
                return True
        return False

    def are_axes(self, digits: Iterable[Digit]) -> bool:
        """Whether digits of the device begin and end where those do that placements are made of: whole mesh axes."""
        bounds = {1, self.stages.device.size}
        for found in self._starts.values():
            for start in found:
                bounds.update(b for a in digits_of(start, self.stages.device) for b in (a.low, a.low * a.radix))
        return all(digit.low in bounds and digit.low * digit.radix in bounds for digit in digits)

    def start_like(self, offset: Index) -> Index | None:
        """The start of a shard that an odd offset was probably meant to be: over as many parts, of about their size."""
        atom, c = offset.items[0]
        if isinstance(atom, Digit):
            sizes = [size // atom.radix for size in self._sizes if size % atom.radix == 0]
            near = min(sizes, key=lambda size: abs(size - abs(c)), default=0)
            return expr.scale(expr.of_atom(atom), near if c > 0 else -near) if near else None
        if atom.operator != "table":
            return None
        values = sorted(set(atom.args[0]))
        starts, step = self._starts.get(len(values), []), values[1] if len(values) > 1 else 0
        even = len(values) > 1 and all(value == n * step for n, value in enumerate(values))
        return expr.scale(starts[0], c * step) if even and len(starts) == 1 else None

    def _is_start(self, atom: expr.Atom, c: int) -> bool:
        if isinstance(atom, Digit):
            whole = c * atom.radix
            return c == 1 or any(size % whole == 0 or -(-size // atom.radix) == c for size in self._sizes)
        if atom.operator == "table":
            return atom in self._tables
        if atom.operator == "mod":
            return atom.exprs[0].const == 0 or len(atom.free) > 1
        return True


def _runs(shape: tuple[int, ...]) -> Iterator[int]:
    """The sizes of dimensions, and of neighbours taken together."""
    for start in range(len(shape)):
        for stop in range(start + 1, len(shape) + 1):
            yield prod(shape[start:stop])
