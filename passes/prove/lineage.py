"""Lineage: which element of a logical tensor each device holds where.

A sharding is a table: for each device, the coordinates of its shard. Digits of the device number that give the same
coordinates make an index expression of it: `x_d[i, k] = x[128*(d mod 4) + i, k]` says that device d holds 128 rows from
row `128*(d mod 4)` on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, product

from hlo_verify.diagnostics import Annotation, Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.index import expr, tables
from hlo_verify.index.expr import Index, Var
from hlo_verify.limits import limit_of
from hlo_verify.memory import once_a_session
from hlo_verify.ops.collectives import sum_over_group
from hlo_verify.ops.induction import Place, Placement
from hlo_verify.ops.regions import reduce_terms
from hlo_verify.ops.values import Value, position, positions
from hlo_verify.program.allowed_values import Values
from hlo_verify.program.element_types import ARITHMETIC, is_float
from hlo_verify.program.ir import Op, TensorType
from hlo_verify.program.sharding import Sharding, parse_local, parse_sharding
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.padding import padding
from hlo_verify.terms.term import ONE, Poly, Tensor, tensor


@dataclass(frozen=True, slots=True)
class Lineage:
    """`indices[k]` is the logical index of a device's element; `inside` is 1 where it exists."""

    indices: tuple[Index, ...]
    inside: Poly
    shape: tuple[int, ...]
    """The shape of a shard."""

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.indices))}]"


def shard_shape(shape: tuple[int, ...], sharding: Sharding) -> tuple[int, ...]:
    """The shape of a shard: every dimension rounded up."""
    return tuple(-(-size // tiles) for size, tiles in zip(shape, sharding.tiles, strict=True))


def same_elements(logical: str, partitioned: str) -> bool:
    """Whether element types agree; between floating-point types a conversion is the identity, by assumption."""
    return logical == partitioned or (is_float(logical) and is_float(partitioned))


shardings_of, local_shardings_of = map(once_a_session, (parse_sharding, parse_local))
"""What operations' annotations say of their results. A module has a handful, each a table of all devices."""


@once_a_session
def lineage(shape: tuple[int, ...], sharding: Sharding, device: Var) -> Lineage:
    """The lineage of a tensor of that logical shape; of an unreduced one, that of every addend.

    On all devices but one, no element of a single-device tensor exists.
    """
    sharding = sharding.spread(device.size)
    local = shard_shape(shape, sharding)
    indices = []
    inside = ONE
    for k, size in enumerate(shape):
        start = expr.scale(tables.fit(sharding.coordinates[:, k], device), local[k])
        e = expr.add(start, position(k, local[k]))
        if local[k] * sharding.tiles[k] > size:
            inside = algebra.multiply(inside, guards.interval(e, 0, size - 1))
        indices.append(e)
    if sharding.only is not None:
        inside = algebra.multiply(inside, guards.interval(expr.shift(expr.of_var(device), -sharding.only), 0, 0))
    return Lineage(tuple(indices), inside, local)


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of both modules. Of one that a sharding leaves unreduced, `source` holds every addend, along a
    dimension in front of the others: the logical module sees their sum."""

    name: str
    type: TensorType
    source: Tensor
    addends: int | None = None
    is_complement: bool = False
    """Whether `source` holds what the argument leaves of 1."""

    def at(self, indices: Sequence[Index]) -> Poly:
        """An element, or an addend of one."""
        element = algebra.read(self.source, indices)
        return algebra.subtract(ONE, element) if self.is_complement else element

    @property
    def whole(self) -> Value:
        """The argument as the logical module sees it."""
        where = positions(self.type.shape)
        if self.addends is None:
            return Value(self.type, self.at(where))
        u = expr.fresh("u", self.addends)
        return Value(self.type, reduce_terms("sum", [u], algebra.read(self.source, (expr.of_var(u), *where))))


def argument(
    name: str,
    type_: TensorType,
    sharding: Sharding | None,
    devices: int,
    assumed: Values | None = None,
    is_complement: bool = False,
) -> Argument:
    """An argument with that sharding, of such values. Raises `InputError` for addends that are no numbers.

    What is assumed of a sum says nothing of its addends. One that is read as what it leaves of 1 (`complements`) is so
    where it is no sum.
    """
    if sharding is None or sharding.addends is None:
        if is_complement:
            return Argument(name, type_, tensor("argument", f"1 - {name}", type_.dtype, type_.shape), None, True)
        return Argument(name, type_, tensor("argument", name, type_.dtype, type_.shape, assumed=assumed))
    _check_summable(f"argument {name}", type_)
    count = sharding.spread(devices).addend_count
    return Argument(name, type_, tensor("argument", name, type_.dtype, (count, *type_.shape)), count)


def _check_summable(what: str, type_: TensorType) -> None:
    if type_.dtype == "i1" or not ARITHMETIC.fullmatch(type_.dtype):
        raise InputError(f"{what} is unreduced, and elements of type {type_.dtype} have no sum", Annotation.NO_SUM)


def local_argument(argument: Argument, sharding: Sharding, type_: TensorType, device: Var) -> Value:
    """A device's part of an argument; elements that do not exist in the logical one are arbitrary."""
    name, whole = argument.name, argument.type
    if not same_elements(whole.dtype, type_.dtype):
        raise InputError(
            f"argument {name} has elements of type {whole.dtype} in the logical module and {type_.dtype} in the "
            "partitioned one: they are not a pair",
            Input.NOT_A_PAIR,
        )
    where = lineage(whole.shape, sharding, device)
    if where.shape != type_.shape:
        raise InputError(
            f"argument {name}: the partitioned module takes {type_}, but its sharding into {sharding.tiles} tiles "
            f"makes {list(where.shape)} of the logical {list(whole.shape)}; {_pair(whole.shape, type_.shape)}",
            Annotation.WRONG_SHARD,
        )
    indices = where.indices
    if argument.addends is not None:
        indices = (tables.fit(sharding.spread(device.size).numbers, device), *indices)
    term = algebra.multiply(where.inside, argument.at(indices))
    if where.inside is not ONE:
        past = padding(name, type_.dtype, type_.shape)
        arbitrary = algebra.read(past, (expr.of_var(device), *positions(type_.shape)))
        term = algebra.add(term, algebra.multiply(algebra.logical_not(where.inside), arbitrary))
    return Value(type_, term)


def _pair(whole: tuple[int, ...], local: tuple[int, ...]) -> str:
    """What to look at where a shard has another shape than it should have."""
    if whole == local:
        return "it takes all of it: is it the partitioned module, or the logical one a second time?"
    if len(whole) == len(local) and all(a <= b for a, b in zip(whole, local, strict=True)):
        return "it takes more than all of it: is the logical module the first of the two?"
    return "check that the two modules are a pair"


def obligations(
    name: str, wanted: Value, found: Value, sharding: Sharding, device: Var
) -> list[tuple[Poly, Poly, Poly]]:
    """What is to be shown of a result: pairs of terms, and where it is that each two must be equal.

    Addends must sum up to the logical value, and devices with addends of the same number must hold the same. A logical
    module with manual regions has a result only where every device sees the same one. Raises `InputError` where
    elements' types, shapes, or addends and their elements' type, do not go together.
    """
    if not same_elements(wanted.type.dtype, found.type.dtype):
        raise InputError(
            f"result {name} has elements of type {wanted.type.dtype} in the logical module and {found.type.dtype} in "
            "the partitioned one: they are not a pair",
            Input.NOT_A_PAIR,
        )
    return [*_agreement(wanted, device), *_parts(name, wanted, found, sharding, device)]


def _agreement(wanted: Value, device: Var) -> list[tuple[Poly, Poly, Poly]]:
    if device not in wanted.term.free:
        return []
    return [(wanted.term, algebra.substitute(wanted.term, {device: expr.constant(0)}), ONE)]


def _parts(name: str, wanted: Value, found: Value, sharding: Sharding, device: Var) -> list[tuple[Poly, Poly, Poly]]:
    where = lineage(wanted.shape, sharding, device)
    if where.shape != found.shape:
        raise InputError(
            f"result {name}: the partitioned module returns {list(found.shape)}, but its sharding into "
            f"{sharding.tiles} tiles makes {list(where.shape)} of the logical {list(wanted.shape)}; "
            "check that the two modules are a pair",
            Annotation.WRONG_SHARD,
        )
    expected = wanted.at(where.indices)
    sharding = sharding.spread(device.size)
    if sharding.only is not None:
        here: dict[Var, Index] = {device: expr.constant(sharding.only)}
        inside = algebra.substitute(where.inside, here)
        return [(algebra.substitute(found.term, here), algebra.substitute(expected, here), inside)]
    if sharding.addends is None:
        return [(found.term, expected, where.inside)]
    _check_summable(f"result {name}", wanted.type)
    groups = sharding.addend_groups()
    first = tables.fit(sharding.first_holders(), device)
    return [
        (sum_over_group(found, wanted.type.dtype, groups, device), expected, where.inside),
        (found.term, algebra.substitute(found.term, {device: first}), where.inside),
    ]


def placements(device: Var, known: Sequence[Sharding] = ()) -> Place:
    """Candidate placements of what a loop carries: the loop's own annotation, then replication, then dimensions split
    as some dimension of a known sharding is. None for other elements: equal integers wrap differently in other types.
    """
    columns: dict[int, list[Index]] = {}
    for sharding in dict.fromkeys(known):
        if sharding.only is None and sharding.devices in (1, device.size):
            spread = sharding.spread(device.size)
            for k, tiles in enumerate(spread.tiles):
                columns.setdefault(tiles, []).append(tables.fit(spread.coordinates[:, k], device))

    def place(logical: Op, partitioned: Op, k: int, whole: TensorType, shard: TensorType) -> list[Placement]:
        if not same_elements(whole.dtype, shard.dtype):
            return []
        text = logical.attributes.get("sharding")
        annotated: tuple[Sharding | None, ...] = ()
        if isinstance(text, str):
            annotated = local_shardings_of(text, tuple([type_.rank for type_ in logical.types]), device.size)
        candidates = []
        sharding = annotated[k] if k < len(annotated) else None
        if sharding is not None and sharding.addends is None:
            where = lineage(whole.shape, sharding, device)
            if where.shape == shard.shape:
                candidates.append(Placement(where.indices, where.inside))
        if whole.shape == shard.shape:
            candidates.append(Placement(positions(whole.shape), ONE))
        elif whole.rank == shard.rank:
            split = _splits(whole.shape, shard.shape, columns)
            candidates.extend(Placement(indices, ONE) for indices in split)
        return candidates

    return place


def _splits(whole: tuple[int, ...], shard: tuple[int, ...], columns: dict[int, list[Index]]) -> list[tuple[Index, ...]]:
    """Ways in which devices may hold even shards of that shape; `columns` has shard numbers, by how many there are."""
    choices: list[list[Index]] = []
    for k, (size, local) in enumerate(zip(whole, shard, strict=True)):
        if local == 0 or size % local:
            return []
        starts = [expr.constant(0)] if size == local else dict.fromkeys(columns.get(size // local, ()))
        choices.append([expr.add(expr.scale(start, local), position(k, local)) for start in starts])
    return list(islice(product(*choices), limit_of("loop_splits")))
