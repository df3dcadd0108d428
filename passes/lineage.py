"""Pass 3, lineage: which element of a logical tensor each device holds where.

A sharding is a table of shard coordinates over devices; fitted to the digits of the device number it is
an index expression: `x_d[i, k] = x[128*d[1:4] + i, k]`.
"""

from __future__ import annotations

from dataclasses import dataclass

from hlo_verify.errors import InputError
from hlo_verify.index import expr, tables
from hlo_verify.index.expr import Index, Var
from hlo_verify.ir import Op, TensorType
from hlo_verify.ops.control import Place, Placement
from hlo_verify.ops.values import Value, is_float, position, positions
from hlo_verify.sharding import Sharding, parse_sharding
from hlo_verify.terms import algebra, guards
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


def is_sharded(sharding: Sharding) -> bool:
    """Whether every device holds a shard of the tensor's values: not an addend, and not only one device."""
    return sharding.addends is None and sharding.only is None


def same_elements(logical: str, partitioned: str) -> bool:
    """Whether element types agree; between floating-point types a conversion is the identity, by assumption."""
    return logical == partitioned or (is_float(logical) and is_float(partitioned))


def lineage(shape: tuple[int, ...], sharding: Sharding, device: Var) -> Lineage:
    """The lineage of a tensor of that logical shape under a sharding that gives every device a shard of it."""
    if not is_sharded(sharding):
        raise ValueError("an unreduced or single-device tensor has no lineage")
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
    return Lineage(tuple(indices), inside, local)


def local_argument(argument: Tensor, sharding: Sharding, kind: TensorType, device: Var, name: str) -> Value:
    """A device's shard of an argument; elements past the end of the logical tensor are arbitrary."""
    if not same_elements(argument.dtype, kind.dtype):
        raise InputError(
            f"argument {name} has elements of type {argument.dtype} in the logical module and {kind.dtype} in the "
            "partitioned one: they are not a pair"
        )
    if not is_sharded(sharding):
        unknown = tensor("opaque", f"{name}, which is not sharded", kind.dtype, kind.shape)
        return Value(kind, algebra.read(unknown, (expr.of_var(device), *positions(kind.shape))))
    where = lineage(argument.shape, sharding, device)
    if where.shape != kind.shape:
        raise InputError(
            f"argument {name}: the partitioned module takes {kind}, but its sharding into {sharding.tiles} tiles "
            f"makes {list(where.shape)} of the logical {list(argument.shape)}; check that the two modules are a pair"
        )
    term = algebra.multiply(where.inside, algebra.read(argument, where.indices))
    if where.inside is not ONE:
        past = tensor("opaque", f"padding of {name}", kind.dtype, kind.shape)
        arbitrary = algebra.read(past, (expr.of_var(device), *positions(kind.shape)))
        term = algebra.add(term, algebra.multiply(algebra.logical_not(where.inside), arbitrary))
    return Value(kind, term)


def placements(device: Var) -> Place:
    """Candidate placements of what a loop carries: the loop's own annotation, then replication."""
    parsed: dict[int, tuple[Sharding | None, ...]] = {}

    def place(logical: Op, partitioned: Op, k: int, whole: TensorType, shard: TensorType) -> list[Placement]:
        text = logical.attributes.get("sharding")
        if isinstance(text, str) and id(logical) not in parsed:
            parsed[id(logical)] = parse_sharding(text, [kind.rank for kind in logical.types], device.size)
        candidates = []
        annotated = parsed.get(id(logical), ())
        sharding = annotated[k] if k < len(annotated) else None
        if sharding is not None and is_sharded(sharding):
            where = lineage(whole.shape, sharding, device)
            if where.shape == shard.shape:
                candidates.append(Placement(where.indices, where.inside))
        if whole.shape == shard.shape:
            candidates.append(Placement(positions(whole.shape), ONE))
        return candidates

    return place
