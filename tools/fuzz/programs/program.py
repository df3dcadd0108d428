"""Small programs as data: easier to make up, to rewrite and to evaluate than text. Their text is made by `text`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("ui8", "ui16", "ui32", "ui64")
INTEGERS = SIGNED + UNSIGNED
COMPLEX = "complex<f32>"


@dataclass(frozen=True, slots=True)
class Kind:
    """A tensor's type."""

    shape: tuple[int, ...]
    dtype: str

    def of(self, dtype: str) -> Kind:
        return Kind(self.shape, dtype)

    def shaped(self, *shape: int) -> Kind:
        return Kind(shape, self.dtype)

    @property
    def is_integer(self) -> bool:
        return self.dtype in INTEGERS

    @property
    def is_float(self) -> bool:
        return self.dtype.startswith(("f", "bf"))

    @property
    def bits(self) -> int:
        return int(self.dtype.lstrip("uibf"))


@dataclass(slots=True)
class Node:
    """An operation. Attributes are plain; reducers are named (`combine="add"`)."""

    op: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    regions: tuple[Block, ...] = ()

    def copy(self) -> Node:
        return replace(self, attributes=dict(self.attributes), regions=tuple(each.copy() for each in self.regions))


@dataclass(slots=True)
class Block:
    """Operations in order. A region's block sees the values around it."""

    arguments: tuple[int, ...]
    nodes: list[Node] = field(default_factory=list)
    results: tuple[int, ...] = ()

    def copy(self) -> Block:
        return Block(self.arguments, [node.copy() for node in self.nodes], self.results)

    def blocks(self) -> Iterator[Block]:
        """This one, and all of those inside it."""
        yield self
        for node in self.nodes:
            for region in node.regions:
                yield from region.blocks()


@dataclass(slots=True)
class Function:
    """A block, with the types of all values by their numbers."""

    kinds: dict[int, Kind] = field(default_factory=dict)
    body: Block = field(default_factory=lambda: Block(()))

    def copy(self) -> Function:
        return Function(dict(self.kinds), self.body.copy())

    def fresh(self, kind: Kind) -> int:
        value = len(self.kinds)
        self.kinds[value] = kind
        return value

    @property
    def size(self) -> int:
        """How many operations there are."""
        return sum(len(block.nodes) for block in self.body.blocks())


@dataclass(slots=True)
class Builder:
    """Appends operations to a block of a function."""

    function: Function
    block: Block

    def kind(self, value: int) -> Kind:
        return self.function.kinds[value]

    def argument(self, kind: Kind) -> int:
        value = self.function.fresh(kind)
        self.block.arguments = (*self.block.arguments, value)
        return value

    def many(
        self, op: str, inputs: Sequence[int], kinds: Sequence[Kind], regions: Sequence[Block] = (), **attributes: Any
    ) -> tuple[int, ...]:
        outputs = tuple(map(self.function.fresh, kinds))
        self.block.nodes.append(Node(op, tuple(inputs), outputs, attributes, tuple(regions)))
        return outputs

    def op(self, op: str, inputs: Sequence[int], kind: Kind, **attributes: Any) -> int:
        return self.many(op, inputs, [kind], **attributes)[0]

    def region(self, kinds: Sequence[Kind] = ()) -> Builder:
        """A builder of a new block with such arguments."""
        return Builder(self.function, Block(tuple(map(self.function.fresh, kinds))))

    def same(self, op: str, *inputs: int, **attributes: Any) -> int:
        """An operation whose result is of the last operand's type."""
        return self.op(op, inputs, self.kind(inputs[-1]), **attributes)

    def constant(self, value: Any, kind: Kind) -> int:
        """A scalar for all elements, or nested lists of them."""
        return self.op("constant", (), kind, value=value)

    def like(self, value: Any, other: int) -> int:
        """A constant of another value's type."""
        return self.constant(value, self.kind(other))

    def compare(self, direction: str, a: int, b: int) -> int:
        return self.op("compare", (a, b), self.kind(a).of("i1"), direction=direction)

    def convert(self, a: int, dtype: str) -> int:
        return self.op("convert", (a,), self.kind(a).of(dtype))

    def reshape(self, a: int, *shape: int) -> int:
        return self.op("reshape", (a,), self.kind(a).shaped(*shape))

    def broadcast(self, a: int, shape: Sequence[int], dims: Sequence[int] = ()) -> int:
        return self.op("broadcast_in_dim", (a,), self.kind(a).shaped(*shape), dims=tuple(dims))

    def transpose(self, a: int, order: Sequence[int]) -> int:
        shape = self.kind(a).shape
        return self.op("transpose", (a,), self.kind(a).shaped(*(shape[k] for k in order)), order=tuple(order))

    def slice(self, a: int, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None = None) -> int:
        strides = strides or [1] * len(starts)
        shape = [-(-(high - low) // by) for low, high, by in zip(starts, limits, strides, strict=True)]
        found = {"starts": tuple(starts), "limits": tuple(limits), "strides": tuple(strides)}
        return self.op("slice", (a,), self.kind(a).shaped(*shape), **found)

    def pad(
        self, a: int, value: int, low: Sequence[int], high: Sequence[int], inner: Sequence[int] | None = None
    ) -> int:
        old, inner = self.kind(a).shape, inner or [0] * len(low)
        shape = [n + max(n - 1, 0) * gap + x + y for n, x, y, gap in zip(old, low, high, inner, strict=True)]
        ends = {"low": tuple(low), "high": tuple(high), "inner": tuple(inner)}
        return self.op("pad", (a, value), self.kind(a).shaped(*shape), **ends)

    def windows(
        self, a: int, dim: int, size: int, combine: str, edges: Sequence[int], stride: int = 1, dilation: int = 1
    ) -> int:
        """Reductions of windows along a dimension, with such edges of what a reducer leaves as it is."""
        shape = list(self.kind(a).shape)
        shape[dim] = max(0, (shape[dim] + sum(edges) - (size - 1) * dilation - 1) // stride + 1)
        found = {"dim": dim, "size": size, "edges": tuple(edges), "stride": stride, "dilation": dilation}
        return self.op("reduce_window", (a,), self.kind(a).shaped(*shape), combine=combine, **found)

    def concatenate(self, values: Sequence[int], dim: int) -> int:
        shape = list(self.kind(values[0]).shape)
        shape[dim] = sum(self.kind(value).shape[dim] for value in values)
        return self.op("concatenate", values, self.kind(values[0]).shaped(*shape), dim=dim)

    def reduce(self, a: int, dims: Sequence[int], combine: str, start: Any = None) -> int:
        """A reduction, which starts with what the reducer leaves as it is if nothing else is said."""
        kind = self.kind(a)
        shape = [n for k, n in enumerate(kind.shape) if k not in dims]
        found = {"dims": tuple(sorted(dims)), "combine": combine} | ({} if start is None else {"start": start})
        return self.op("reduce", (a,), kind.shaped(*shape), **found)

    def dynamic_slice(self, a: int, starts: Sequence[int], sizes: Sequence[int]) -> int:
        return self.op("dynamic_slice", (a, *starts), self.kind(a).shaped(*sizes))

    def update(self, a: int, b: int, starts: Sequence[int]) -> int:
        return self.op("dynamic_update_slice", (a, b, *starts), self.kind(a))


IDENTITIES = {"add": 0, "multiply": 1, "or": 0, "xor": 0}


def identity(combine: str, dtype: str) -> Any:
    """What a reducer leaves as it is."""
    if dtype == "i1":
        return combine in ("and", "minimum", "multiply")
    if combine in IDENTITIES:
        return IDENTITIES[combine]
    kind = Kind((), dtype)
    if kind.is_float:
        return float("inf") if combine == "minimum" else float("-inf")
    signed = dtype in SIGNED
    low, high = (-(2 ** (kind.bits - 1)), 2 ** (kind.bits - 1) - 1) if signed else (0, 2**kind.bits - 1)
    if combine == "and":
        return -1 if signed else high
    return high if combine == "minimum" else low


def inlined(function: Function, block: Block, values: dict[int, int]) -> list[Node]:
    """The operations of a block once more, with such values for those from outside; `values` gets the new ones."""
    found = []
    for node in block.nodes:
        regions = []
        for region in node.regions:
            for argument in region.arguments:
                values[argument] = function.fresh(function.kinds[argument])
            nodes = inlined(function, region, values)
            arguments = tuple(values[argument] for argument in region.arguments)
            regions.append(Block(arguments, nodes, tuple(values.get(v, v) for v in region.results)))
        for output in node.outputs:
            values[output] = function.fresh(function.kinds[output])
        inputs = tuple(values.get(value, value) for value in node.inputs)
        outputs = tuple(values[value] for value in node.outputs)
        found.append(Node(node.op, inputs, outputs, dict(node.attributes), tuple(regions)))
    return found


def prune(function: Function) -> None:
    """Leave out what nothing depends on (effects and communication stay)."""
    blocks = list(function.body.blocks())
    while True:
        used = {v for b in blocks for v in b.results} | {v for b in blocks for n in b.nodes for v in n.inputs}
        gone = 0
        for block in blocks:
            kept = [n for n in block.nodes if used & set(n.outputs)]
            gone += len(block.nodes) - len(kept)
            block.nodes = kept
        if not gone:
            return
        blocks = list(function.body.blocks())
