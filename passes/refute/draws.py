"""How inputs are drawn: at which scales, and what a module's operations say of the values to draw."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum, auto

import numpy as np

from hlo_verify.evaluate import (
    Blocks,
    Dimension,
    Zeros,
    allows,
    default_scale,
    index_limits,
    ordered_sizes,
    positive_arguments,
    random_argument,
    reaches,
)
from hlo_verify.evaluate.in_types import is_unsigned
from hlo_verify.evaluate.numbers import is_complex
from hlo_verify.evaluate.sparing import Sparing
from hlo_verify.passes.refute.plainer import filled
from hlo_verify.passes.refute.trial import Inputs
from hlo_verify.program.allowed_values import Values
from hlo_verify.program.attributes import elements_once, is_splat
from hlo_verify.program.element_types import is_float, is_integer
from hlo_verify.program.ir import Module, Name, operations, value_types
from hlo_verify.program.op_families import COLLECTIVES
from hlo_verify.program.pair import Pair
from hlo_verify.program.preconditions import assumed


class Zeroed(Enum):
    """Which numbers are 0: half of the elements of each argument, all of half of the arguments, or of the others, or
    all of them, as what is divided by the root of a sum of squares asks for."""

    ELEMENTS = auto()
    SOME = auto()
    OTHERS = auto()
    ALL = auto()


@dataclass(frozen=True, slots=True)
class Draw:
    """How inputs are drawn: floats are up to `scale` times what keeps sums near 1, integers below what they index, or
    `integers`; dimensions are split in up to `detail` classes. What a square root or a logarithm takes is positive in
    any case, and integers are in their range, unless anything goes: some are `beyond` it then, and one that is alone is
    above (1) or below (-1)."""

    scale: float
    detail: int
    integers: int
    positive: bool = False
    negative: bool = False
    """Whether floats are opposites of what they else were, but for what has to be positive."""
    beyond: int = 0
    uneven: bool = False
    """Whether arguments are of different scales, up to 64 times more or less."""
    faint: bool = False
    """Whether those that few results depend on are smaller by 2^-12 to 2^-28: a state hides what it is updated by."""
    edges: bool = False
    """Whether numbers are such as wrap, or are halves, but for integers that index something."""
    zeros: Zeroed | None = None
    """Which floats are 0, where the user allows it."""
    flags: bool | None = None
    """What every truth value is, where they are all alike."""
    rarely: bool | None = None
    """What one truth value in eight is, where the others are not."""


EVEN = (
    Draw(1.0, 2, 8, faint=True),
    Draw(1.0, 2, 40, positive=True),
    Draw(16.0, 2, 1000, uneven=True, faint=True),
    Draw(1e-2, 4, 8),
    Draw(4.0, 4, 3, beyond=1),
    Draw(1.0, 8, 8, positive=True, negative=True),
    Draw(1e-3, 4, 40, positive=True),
    Draw(16.0, 3, 2, positive=True),
    Draw(1.0, 4, 1000, uneven=True, faint=True),
    Draw(1e-4, 8, 8, beyond=-1),
    Draw(1.0, 8, 1000),
    Draw(1.0, 32, 8),
    Draw(8.0, 32, 40),
    Draw(1.0, 128, 8),
    Draw(1.0, 8, 8, edges=True),
)
"""Small values tell the constants apart that are added to a variance, large ones what saturates, negative ones alone a
maximum that starts from 0, those at the edges of a type what wraps or is rounded."""

AT_ZERO = tuple(Draw(1.0, 8, 8, zeros=zeros) for zeros in Zeroed)
"""Where a slope jumps, programs may differ at that place alone: `maximum(x, 0)` and `abs(x)` have others at 0."""

ALIKE = (
    *(Draw(1.0, 8, 8, flags=flag) for flag in (False, True)),
    *(Draw(1.0, 32, 8, rarely=flag) for flag in (True, False)),
)
"""Where nothing is left of what a mask keeps, or nothing is masked, programs may differ there alone: of sixteen flags
that are drawn one by one, all are false once in 65,536 draws. One or two are true as rarely as once in 500."""

LATER = (*(replace(draw, uneven=True, faint=True) for draw in EVEN), *AT_ZERO)

COMMON = (1e-3, 64.0)
"""What is of a size in between, draws of any kind meet."""

LARGE = 1e4
"""What is as large is meant to be larger than anything, as what masks scores is."""

LEAST, MOST = 1e-17, 1e6
"""A square of what is smaller is none in single precision, and products of larger ones are soon infinite."""

SIZES = 4
"""How many sizes of constants are drawn at: the smallest and the largest ones."""

HALF = 0.5

TABLE = 16
"""In so many classes a table is split finely."""

WITHOUT_ZEROS = 3
"""The number of the choice of inputs with few different elements in which no arguments are 0: the last."""

SEEDS = (0, 0, 1, 3)
"""The seeds of those choices."""

STRONG = Draw(4.0, 2, 8)
"""The last choice: of few different elements, those should tell as much as they can."""

FAINT = 4
"""Arguments are taken for a state where so many times fewer results depend on them than on another."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a module's operations say of the values to draw for its arguments."""

    below: tuple[int | None, ...]
    """What each argument of integers is below, where that is known."""
    positive: frozenset[int]
    faint: tuple[bool, ...]
    """Whether few results depend on an argument."""
    ordered: frozenset[int]
    """The sizes of dimensions along which elements are put in order, or matrices taken apart: those that are alike
    would be in no order, and make them singular."""

    def reach(self, n: int, draw: Draw, said: Values | None) -> int:
        """What the integers of an argument are below: of what it indexes, unless the user says more, as of a position
        that goes round a ring of slots."""
        below = self.below[n]
        if below is None:
            return draw.integers
        return below if said is None else max(below, said.integers[1] + 1)

    def factors(self, draw: Draw, generator: np.random.Generator) -> list[float]:
        """What the scale of every argument is times that of others."""
        rough, tiny = generator.integers(-6, 7, len(self.faint)), generator.integers(-28, -11, len(self.faint))
        exponents = np.where(self.faint, tiny if draw.faint else 0, rough if draw.uneven else 0)
        return [float(2.0**n) for n in exponents]


def known_of(logical: Module) -> Known:
    """What a module says of its arguments."""
    counts = reaches(logical)
    faint = tuple(FAINT * count <= max(counts) for count in counts)
    below = index_limits(logical, with_updates=False)
    return Known(below, positive_arguments(logical), faint, ordered_sizes(logical))


def shards_inside(partitioned: Module) -> dict[int, int]:
    """For the size of a dimension, into how many shards devices split such ones where they exchange them: a program may
    split a sequence that comes whole."""
    types = value_types(partitioned.main)
    found: dict[int, int] = {}
    for op in operations(partitioned.main):
        if op.name not in COLLECTIVES:
            continue
        for value, result in zip(op.operands, op.results, strict=False):
            for one, other in zip(types[value].shape, types[result].shape, strict=False):
                part, size = sorted((one, other))
                if 0 < part < size and size % part == 0:
                    found[size] = max(found.get(size, 1), size // part)
    return found


def sizes_of_constants(pair: Pair) -> tuple[float, ...]:
    """Sizes of inputs that tell how constants are used, of such as one module alone has, or where there are none of
    those, of both: a norm that is divided by is at least 1e-8 in one and 1e-6 in the other, a value is cut off at 100
    or not at all. What is compared with a constant is below a small one then, or above a large one, and so may its root
    be, as of a number that is added to a mean of squares, or its square."""
    logical, partitioned = (frozenset(_repeated_numbers(module)) for module in (pair.logical, pair.partitioned))
    return _rare_sizes(logical ^ partitioned) or _rare_sizes(logical & partitioned)


def _rare_sizes(numbers: Collection[float]) -> tuple[float, ...]:
    """The sizes of numbers, their roots and squares that few draws meet."""
    asked = {abs(number) ** power for number in numbers for power in (0.5, 1.0, 2.0) if abs(number) < LARGE}
    sizes = sorted(size / 4 if size < 1 else size * 16 for size in asked if LEAST < size < MOST)
    rare = [size for size in sizes if not COMMON[0] < size < COMMON[1]]
    return tuple(rare) if len(rare) <= SIZES else (*rare[: SIZES // 2], *rare[-SIZES // 2 :])


def _repeated_numbers(module: Module) -> Iterator[float]:
    """The numbers that a module's floating-point constants are, where all elements of one are the same."""
    for op in operations(module.main):
        if op.name == "constant" and is_float(op.types[0].dtype) and is_splat(op.attributes["value"]):
            yield float(elements_once(op.attributes["value"])[0])


@dataclass(slots=True)
class Drawing:
    """Draws inputs of one pair."""

    pair: Pair
    dimensions: list[tuple[Dimension, ...]] = field(init=False)
    """The dimensions of every argument."""
    _inside: dict[int, int] = field(init=False)
    _draws: tuple[Draw, ...] | None = None
    _known: Known | None = None
    _zeros: Zeros | None = None

    def __post_init__(self) -> None:
        logical = self.pair.logical
        shardings = self.pair.arguments or logical.argument_shardings
        self.dimensions = [
            tuple(zip(type_.shape, (1,) * type_.rank if sharding is None else sharding.tiles, strict=True))
            for type_, sharding in zip(logical.main.argument_types, shardings, strict=True)
        ]
        self._inside = shards_inside(self.pair.partitioned)

    @property
    def draws(self) -> tuple[Draw, ...]:
        """Tried in turn, with inputs that are cheap to evaluate (`granularity`). When nothing was found, every draw is
        tried once more with as many values as an evaluation may have (`Limits`)."""
        if self._draws is None:
            sizes = sizes_of_constants(self.pair)
            has_flags = any(type_.dtype == "i1" for type_ in self.pair.logical.main.argument_types)
            self._draws = (*EVEN, *(Draw(size, 8, 8) for size in sizes), *(ALIKE if has_flags else ()), *LATER)
        return self._draws

    def zeros_for(
        self, refused: frozenset[Name], results: Collection[int], choice: int
    ) -> tuple[frozenset[int], float]:
        """Arguments to be 0 where those values of the logical module were too large, and the work of finding them.

        By the first choice, nothing hangs on such values then (`Sparing`); by the others, they have few different
        elements, and as little else is 0 as can be (`Zeros`).
        """
        if choice == 0:
            sparing = Sparing(self.pair.logical, results)
            return sparing.removing(refused), sparing.work
        self._zeros = self._zeros or Zeros(self.pair.logical)
        return self._zeros.sparing(refused, choice - 1), 0.0

    def draw(
        self,
        draw: Draw,
        seed: int,
        plain: Collection[Dimension] = (),
        *,
        zero: Collection[int] = frozenset(),
        is_table_fine: bool = False,
    ) -> Inputs:
        """Inputs; dimensions of the `plain` ones are not split, those arguments are 0, and dimensions that others index
        are split finely if asked: few indices hardly ever meet two of few classes."""
        generator = np.random.default_rng(seed)
        logical = self.pair.logical
        self._known = known = self._known or known_of(logical)
        factors = known.factors(draw, np.random.default_rng((seed, 1)))
        # every other draw is one that shards which devices exchange, of values in between, are not alike in
        inside = self._inside if seed % 2 == 0 else {}
        tiles_of = [[max(tiles, inside.get(size, 1)) for size, tiles in each] for each in self.dimensions]
        plain = [(size, max(tiles, inside.get(size, 1))) for size, tiles in plain]
        allowed = assumed(logical)
        fine = {below for below in known.below if below is not None and is_table_fine} | known.ordered
        drawn = (
            random_argument(
                type_.shape,
                type_.dtype,
                generator,
                tiles=tiles,
                scale=draw.scale * default_scale(type_.shape) * factors[n],
                integers=known.reach(n, draw, allowed[n] if seed % 2 and is_integer(type_.dtype) else None),
                detail=[max(draw.detail, TABLE) if size in fine else draw.detail for size in type_.shape],
                positive=draw.positive or (n in known.positive and not draw.beyond),
                outside=draw.beyond,
                edges=draw.edges and known.below[n] is None,
                plain=[each for each in plain if each[0] not in known.ordered],
                assumed=allowed[n],
            )
            for n, (type_, tiles) in enumerate(zip(logical.main.argument_types, tiles_of, strict=True))
        )
        types = logical.main.argument_types
        alike = dict.fromkeys(zero, 0)
        if draw.flags is not None:
            alike |= {n: int(draw.flags) for n, type_ in enumerate(types) if type_.dtype == "i1"}
        inputs = tuple(filled(b, alike[n], types[n], allowed[n]) if n in alike else b for n, b in enumerate(drawn))
        if draw.rarely is not None:
            inputs = self._rarely(draw.rarely, inputs, known, np.random.default_rng((seed, 2)))
        if draw.negative:
            inputs = self._opposites(inputs, known)
        return inputs if draw.zeros is None else self._zeroed(draw.zeros, inputs, known)

    def _opposites(self, inputs: Inputs, known: Known) -> Inputs:
        """Inputs of which floats that have a sign are negated, where the user allows it, but for what a logarithm or
        the like takes."""

        def opposite(blocks: Blocks, dtype: str) -> Blocks:
            has_sign = is_float(dtype) and not is_unsigned(dtype)
            return replace(blocks, values=-blocks.values) if has_sign else blocks

        return self._changed(inputs, known, opposite)

    def _rarely(self, flag: bool, inputs: Inputs, known: Known, generator: np.random.Generator) -> Inputs:
        """Inputs of which few truth values are that, and at least one where there is any, where the user allows it."""

        def other(blocks: Blocks, dtype: str) -> Blocks:
            if dtype != "i1" or not blocks.values.size:
                return blocks
            is_it = generator.random(blocks.values.shape) < HALF / 4
            is_it.reshape(-1)[generator.integers(is_it.size)] = True
            return replace(blocks, values=is_it == flag)

        return self._changed(inputs, known, other)

    def _changed(self, inputs: Inputs, known: Known, other: Callable[[Blocks, str], Blocks]) -> Inputs:
        """Inputs with other elements, which hang on those they have and on their type, where the user allows them."""
        types = self.pair.logical.main.argument_types
        return tuple(
            self._if_allowed(n, other(blocks, type_.dtype), blocks, known)
            for n, (blocks, type_) in enumerate(zip(inputs, types, strict=True))
        )

    def _zeroed(self, zeros: Zeroed, inputs: Inputs, known: Known) -> Inputs:
        """Inputs of which some floats are 0, but for what a logarithm or the like takes."""
        generator = np.random.default_rng(len(inputs))
        is_first = generator.permutation(len(inputs)) % 2 == 0
        types = self.pair.logical.main.argument_types
        changed: list[Blocks] = []
        for n, blocks in enumerate(inputs):
            none = blocks
            if zeros is Zeroed.ELEMENTS:
                keep = generator.random(blocks.values.shape) < HALF
                none = replace(blocks, values=np.where(keep, blocks.values, np.zeros_like(blocks.values)))
            elif zeros is Zeroed.ALL or is_first[n] == (zeros is Zeroed.SOME):
                none = filled(blocks, 0, types[n], None)
            is_number = is_float(types[n].dtype) or is_complex(types[n].dtype)
            changed.append(self._if_allowed(n, none, blocks, known) if is_number else blocks)
        return tuple(changed)

    def _if_allowed(self, n: int, other: Blocks, blocks: Blocks, known: Known) -> Blocks:
        """Other elements of an argument, where the user allows them and it may be anything; else those it has."""
        return blocks if n in known.positive or not allows(assumed(self.pair.logical)[n], other) else other
