"""Mutations of collectives: who communicates with whom, and what becomes of what is sent."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from hlo_verify.jaxlib_api import ir
from tools.mutate import mlir
from tools.mutate.mlir import NotHereError, Operation
from tools.mutate.site import Site

Groups = Any


def drop(op: Operation, site: Site) -> str:
    """Every device goes on with what it has itself, as often as the shape asks for."""
    what, (result, *others) = mlir.name(op), op.results
    if what == "all_gather":
        operand = op.operands[0]
        dimension = op.attributes["all_gather_dim"].value
        count = mlir.shape(result)[dimension] // mlir.shape(operand)[dimension]
        mlir.replaced(op, "concatenate", [operand] * count, {"dimension": mlir.long(dimension)})
    elif what == "reduce_scatter":
        _first_shard(op, op.operands[0])
    elif all(r.type == o.type for r, o in zip(op.results, op.operands, strict=True)):
        for each, operand in zip((result, *others), op.operands, strict=True):
            mlir.replace(each, operand)
        op.erase()
    else:
        mlir.replace(result, mlir.reshaped(op, op.operands[0], result.type))
        op.erase()
    return f"{what} left out"


def _first_shard(op: Operation, whole: Any) -> None:
    """The slice at 0, of the shape of the result, in the place of a reduce_scatter."""
    limits = mlir.shape(op.results[0])
    slices = {"start_indices": mlir.longs([0] * len(limits)), "limit_indices": mlir.longs(limits)}
    mlir.replaced(op, "slice", [whole], slices | {"strides": mlir.longs([1] * len(limits))})


def repeat(op: Operation, site: Site) -> str:
    """The collective is applied to its own result."""
    if len(op.results) != 1 or op.results[0].type != op.operands[0].type:
        raise NotHereError
    again = op.clone(ir.InsertionPoint.after(op))
    again.operation.operands[0] = op.results[0]
    mlir.replace(op.results[0], again.operation.results[0], [again.operation])
    return f"{mlir.name(op)} applied twice"


def _set_groups(op: Operation, rows: Groups) -> None:
    op.attributes["replica_groups"] = mlir.matrix(rows)


def regroup(op: Operation, site: Site) -> str:
    """Other groups of the same sizes, at random."""
    rows = mlir.read_matrix(op, "replica_groups")
    if len(rows) < 2 or rows.shape[1] < 2:
        raise NotHereError
    before = {frozenset(row) for row in rows.tolist()}
    for _ in range(20):
        new = site.rng.permutation(rows.reshape(-1)).reshape(rows.shape)
        new.sort(axis=1)
        if {frozenset(row) for row in new.tolist()} != before:
            _set_groups(op, new)
            return f"replica groups {rows.tolist()} became {new.tolist()}"
    raise NotHereError


def _mesh_groups(sizes: tuple[int, ...]) -> list[Groups]:
    """The groups over each non-empty choice of a mesh's axes."""
    ids = np.arange(np.prod(sizes)).reshape(sizes)
    found = []
    for count in range(1, len(sizes) + 1):
        for over in itertools.combinations(range(len(sizes)), count):
            kept = [axis for axis in range(len(sizes)) if axis not in over]
            found.append(ids.transpose(*kept, *over).reshape(-1, int(np.prod([sizes[axis] for axis in over]))))
    return found


def _other_groups(op: Operation, candidates: list[Groups], site: Site) -> str:
    rows = mlir.read_matrix(op, "replica_groups")
    before = {frozenset(row) for row in rows.tolist()}
    fitting = [
        new
        for new in candidates
        if (new.shape == rows.shape or mlir.name(op) == "all_reduce")
        and {frozenset(row) for row in new.tolist()} != before
    ]
    if not fitting:
        raise NotHereError
    new = site.choose(fitting)
    _set_groups(op, new)
    return f"replica groups {rows.tolist()} became {new.tolist()}"


def change_axis(op: Operation, site: Site) -> str:
    """The groups of other mesh axes."""
    return _other_groups(op, _mesh_groups(site.mesh), site)


def split_groups(op: Operation, site: Site) -> str:
    """Each group communicates in halves, or each device with itself alone."""
    rows = mlir.read_matrix(op, "replica_groups")
    halves = [rows.reshape(-1, size) for size in (1, rows.shape[1] // 2) if size and rows.shape[1] % size == 0]
    return _other_groups(op, halves, site)


def permute_groups(op: Operation, site: Site) -> str:
    """The devices of each group in another order."""
    rows = mlir.read_matrix(op, "replica_groups")
    if rows.shape[1] < 2:
        raise NotHereError
    new = rows[:, site.permutation(rows.shape[1])]
    _set_groups(op, new)
    return f"replica groups {rows.tolist()} became {new.tolist()}"


def permute_pairs(op: Operation, site: Site) -> str:
    """Source-target pairs reversed, with one left out, or with their targets exchanged or rotated."""
    pairs = mlir.read_matrix(op, "source_target_pairs")
    if len(pairs) < 2:
        raise NotHereError
    targets = pairs[:, 1]
    candidates = [
        pairs[:, ::-1],
        np.delete(pairs, site.rng.integers(len(pairs)), axis=0),
        np.stack([pairs[:, 0], targets[site.permutation(len(pairs))]], axis=1),
        np.stack([pairs[:, 0], np.roll(targets, site.choose([-1, 1]))], axis=1),
    ]
    new = site.choose([c for c in candidates if {*map(tuple, c.tolist())} != {*map(tuple, pairs.tolist())}])
    op.attributes["source_target_pairs"] = mlir.matrix(new)
    return f"source-target pairs {pairs.tolist()} became {new.tolist()}"


def change_kind(op: Operation, site: Site) -> str:
    """psum as all_gather sliced to shape, all_gather as a tiled psum, reduce_scatter as the first shard of a psum."""
    return {"all_reduce": _gather_and_slice, "all_gather": _sum_and_tile, "reduce_scatter": _sum_and_slice}[
        mlir.name(op)
    ](op)


def _gather_and_slice(op: Operation) -> str:
    if len(op.results) != 1 or not mlir.shape(op.results[0]):
        raise NotHereError
    sizes = mlir.shape(op.results[0])
    count = mlir.read_matrix(op, "replica_groups").shape[1]
    gathered = mlir.create(
        op,
        "all_gather",
        [op.operands[0]],
        [mlir.tensor([sizes[0] * count, *sizes[1:]], op.operands[0])],
        mlir.rest_of(op) | {"all_gather_dim": mlir.long(0)},
    ).results[0]
    _first_shard(op, gathered)
    return "all_reduce became an all_gather, sliced back to shape"


def _summed(op: Operation) -> Any:
    """An all_reduce with addition of the operand of another collective."""
    operand = op.operands[0]
    if mlir.dtype(operand) == "i1":
        raise NotHereError
    attributes = mlir.rest_of(op, "all_gather_dim", "scatter_dimension")
    reduced = ir.Operation.create(
        "stablehlo.all_reduce",
        results=[operand.type],
        operands=[operand],
        attributes=attributes,
        regions=1,
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    scalar = mlir.tensor([], operand)
    block = reduced.regions[0].blocks.append(scalar, scalar, arg_locs=[op.location, op.location])
    with ir.InsertionPoint(block), op.location:
        total = ir.Operation.create("stablehlo.add", results=[scalar], operands=list(block.arguments))
        ir.Operation.create("stablehlo.return", operands=[total.results[0]])
    return reduced.results[0]


def _sum_and_tile(op: Operation) -> str:
    dimension = op.attributes["all_gather_dim"].value
    count = mlir.shape(op.results[0])[dimension] // mlir.shape(op.operands[0])[dimension]
    mlir.replaced(op, "concatenate", [_summed(op)] * count, {"dimension": mlir.long(dimension)})
    return "all_gather became an all_reduce, tiled back to shape"


def _sum_and_slice(op: Operation) -> str:
    _first_shard(op, _summed(op))
    return "reduce_scatter became an all_reduce, of which all devices take the first shard"


def change_dimension(op: Operation, site: Site) -> str:
    """Gather, scatter or exchange along other dimensions; elements keep their row-major order to fit the shape."""
    what = mlir.name(op)
    keys = {
        "all_gather": ["all_gather_dim"],
        "reduce_scatter": ["scatter_dimension"],
        "all_to_all": ["split_dimension", "concat_dimension"],
    }[what]
    if len(op.results) != 1:
        raise NotHereError
    sizes = list(mlir.shape(op.operands[0]))
    count = mlir.read_matrix(op, "replica_groups").shape[1]
    before = tuple(op.attributes[key].value for key in keys)
    others = [new for new in itertools.product(range(len(sizes)), repeat=len(keys)) if new != before]
    splits = [new for new in others if what == "all_gather" or sizes[new[0]] % count == 0]
    if not splits:
        raise NotHereError
    new = site.choose(splits)
    if what != "all_gather":
        sizes[new[0]] //= count
    if what != "reduce_scatter":
        sizes[new[-1]] *= count
    changed = op.clone(ir.InsertionPoint(op))
    for key, dimension in zip(keys, new, strict=True):
        changed.operation.attributes[key] = mlir.long(dimension)
    changed.operation.results[0].set_type(mlir.tensor(sizes, op.operands[0]))
    mlir.replace(op.results[0], mlir.reshaped(op, changed.operation.results[0], op.results[0].type))
    op.erase()
    return f"{what}: {', '.join(keys)} {before} became {new}"
