"""Rules of the partitioner for shifts along a split dimension, and for products of matrices in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.fuzz.programs.placing import Layout
from tools.fuzz.programs.program import Node

if TYPE_CHECKING:
    from tools.fuzz.programs.partition import Partitioner, Placed


def shifted(parts: Partitioner, node: Node) -> list[Placed] | None:
    """Each device sends what leaves its shard to the next one; the last one's is lost, and the first one gets the
    constant: or, where it is forgotten, zeros. None where it is no shift, or not along a dimension split evenly."""
    low, high = node.attributes["low"], node.attributes["high"]
    dims = [k for k, ends in enumerate(zip(low, high, strict=True)) if any(ends)]
    if len(dims) != 1 or low[dims[0]] != -high[dims[0]] or any(node.attributes.get("inner", ())):
        return None
    (dim,), kind, builder, mesh = dims, parts.kind(node.inputs[0]), parts.builder, parts.mesh
    layout = parts.even(parts.layout(node.inputs[0]), kind)
    axes, local = layout.dims[dim], layout.local(mesh, kind)
    by, n = low[dim], local.shape[dim]
    if not axes or abs(by) > n:
        return None
    value = parts.at(node.inputs[0], layout)
    step, first = (1, 0) if by > 0 else (-1, mesh.size(axes) - 1)
    leaving, staying = ((n - by, n), (0, n - by)) if by > 0 else ((0, -by), (-by, n))
    edge, rest = (
        builder.slice(
            value,
            [start if k == dim else 0 for k in range(len(local.shape))],
            [limit if k == dim else m for k, m in enumerate(local.shape)],
        )
        for start, limit in (leaving, staying)
    )
    rows = mesh.groups(axes)
    pairs = [[row[k], row[k + step]] for row in rows for k in range(len(row)) if 0 <= k + step < len(row)]
    edge = builder.same("collective_permute", edge, pairs=pairs)
    if parts.random.random() < 0.8:
        number = parts.wires.coordinate(axes)
        is_first = builder.broadcast(
            builder.compare("EQ", number, builder.like(first, number)), builder.kind(edge).shape
        )
        outside = builder.broadcast(parts.whole(node.inputs[1]), builder.kind(edge).shape)
        edge = builder.op("select", (is_first, outside, edge), builder.kind(edge))
    return [(builder.concatenate([edge, rest] if by > 0 else [rest, edge], dim), layout)]


def batched(parts: Partitioner, node: Node) -> list[Placed]:
    """The batch, the rows of the first operand and what is summed over stay split."""
    a, b = node.inputs
    first = parts.even(parts.layout(a), parts.kind(a))
    second = Layout((first.dims[0], (), first.dims[2]))
    layout = Layout((first.dims[0], first.dims[1], ()), first.dims[2])
    inputs = parts.at(a, first), parts.at(b, second)
    result = layout.local(parts.mesh, parts.kind(node.outputs[0]))
    return [(parts.builder.op("dot_general", inputs, result, **node.attributes), layout)]
