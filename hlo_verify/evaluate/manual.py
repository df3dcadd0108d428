"""Regions that run on each device, inside of a global module: `sdy.manual_computation` and XLA's custom calls for it.

Inside of a region that is manual over some axes of the mesh, a value is a tensor on each device, which differs along
those axes alone. Where blocks do not divide a dimension, what lies past its end is zero on the way in and dropped on
the way out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.evaluate import linear_algebra
from hlo_verify.evaluate.blocks import Blocks, compact, scalar
from hlo_verify.evaluate.border import Tiling, joined, shard, tiling_of
from hlo_verify.evaluate.collectives import reduced_over
from hlo_verify.evaluate.groups import grouped
from hlo_verify.evaluate.numbers import is_integer
from hlo_verify.evaluate.ordering import top_k
from hlo_verify.evaluate.state import PartialRule, Place, Rule, Run
from hlo_verify.evaluate.unknown import UnknownError
from hlo_verify.program.ir import Op
from hlo_verify.program.mesh import AxisReference
from hlo_verify.program.op_families import BORDERS, IDENTITIES
from hlo_verify.program.sharding import Sharding, automatic, device_counts, parse_local


def entered(a: Blocks, shape: tuple[int, ...], tiling: Tiling, run: Run) -> Blocks:
    """A device's block, of that shape; zero past the end of the tensor."""
    if any(n != -(-size // count) for n, size, count in zip(shape, a.shape, tiling.counts, strict=True)):
        raise UnknownError(f"a manual region that takes {shape} of {a.shape} in {tiling.counts} blocks")
    zero = scalar(0, (), a.values.dtype, tiling.devices, run.maps)
    return compact(shard(a, tiling, [zero] * len(shape), run), run.maps)


def left(a: Blocks, shape: tuple[int, ...], sharding: Sharding, dtype: str, run: Run) -> Blocks:
    """The whole tensor, of that shape, made of every device's block; the sum of its addends."""
    if any(n != -(-size // count) for n, size, count in zip(a.shape, shape, sharding.tiles, strict=True)):
        raise UnknownError(f"a manual region that gives {a.shape} of {shape} in {sharding.tiles} blocks")
    if sharding.addend_count > 1:
        if dtype == "i1":
            raise UnknownError("a manual region that gives addends of truth values")
        groups = grouped(sharding.addend_groups(), sharding.devices)
        a = reduced_over(a, groups, None, dtype, run)
    return compact(joined(a, shape, tiling_of(sharding), run), run.maps)


def computation(op: Op, args: list[Blocks | None], run: Run, place: Place) -> list[Blocks | None]:
    """sdy.manual_computation."""
    mesh = op.attributes["mesh"]
    if place.partitions is not None and not place.manual:
        raise UnknownError("a manual region in a device's own program")
    if mesh is None or mesh.size != run.mesh_devices:
        raise UnknownError("a manual region over other devices than the module's")
    manual = place.manual | set(op.attributes["manual_axes"])
    numbers = mesh.digits([AxisReference(axis) for axis, _ in mesh.axes if axis not in manual])[1]
    inner = Place(mesh.size, mesh.size, 1, manual, numbers)
    (body,) = op.regions
    given: list[Blocks | None] = []
    for a, sharding, type_ in zip(args, op.attributes["in_shardings"], body.argument_types, strict=True):
        placed = _placed(sharding, mesh.size)
        if placed.addend_count > 1:
            raise UnknownError("a manual region that is handed addends of a tensor")
        given.append(None if a is None else entered(a, type_.shape, tiling_of(placed), run))
    results = run.run(run, body, given, inner)
    return [
        None if a is None else left(a, type_.shape, _placed(sharding, mesh.size), type_.dtype, run)
        for a, sharding, type_ in zip(results, op.attributes["out_shardings"], op.types, strict=True)
    ]


def _placed(sharding: Sharding | None, devices: int) -> Sharding:
    if sharding is None or sharding.devices not in (1, devices) or sharding.only is not None:
        raise UnknownError("a manual region over other devices than the module's")
    return sharding.spread(devices)


# XLA's form: values between the two custom calls are each device's own, as the operations' shardings say.


def annotated_devices(op: Op) -> int | None:
    """The number of devices in the shardings of one of the custom calls."""
    for key in ("sharding", "operand_sharding"):
        text = op.attributes.get(key)
        if isinstance(text, str):
            counts = device_counts(text)
            if counts:
                return max(counts)
    return None


def place_of(op: Op, run: Run, place: Place) -> Place:
    """Where an operation runs that may be annotated as a device's own."""
    text = op.attributes.get("sharding")
    if place.partitions is not None or not isinstance(text, str) or "manual" not in text or text.startswith("#sdy."):
        return place
    if run.mesh_devices == 1:  # of no mesh that is known: what asks for the device is unknown then
        return place
    numbers = automatic(text, run.mesh_devices)
    if numbers is None:
        return place
    return replace(place, partitions=run.mesh_devices, replicas=1, automatic=numbers)


def _subgroups(text: object, rank: int, devices: int) -> Sharding:
    try:
        found = parse_local(text, [rank], devices)[0] if isinstance(text, str) else None
    except InputError as error:
        raise UnknownError(str(error)) from error
    if found is None or not found.is_plain:
        raise UnknownError("the border of a manual region without the shardings of both sides")
    return found.spread(devices)


def _tiling(outer: Sharding, inner: Sharding, whole: tuple[int, ...], local: tuple[int, ...]) -> Tiling:
    """A dimension's tiles outside are its blocks, each in as many tiles as the dimension has inside."""
    counts, columns, within = [], [], outer.others
    radix = int(outer.others.max()) + 1
    for k, (size, part) in enumerate(zip(whole, local, strict=True)):
        tiles, tile = outer.tiles[k], outer.coordinates[:, k]
        count = tiles // inner.tiles[k] if tiles % inner.tiles[k] == 0 else 0
        if not count or -(-size // count) != part:
            count = max(1, size // max(part, 1))
        if tiles % count or -(-size // count) != part:
            raise UnknownError(f"the border of a manual region between {tiles} tiles and {count} blocks")
        rest = tiles // count
        counts.append(count)
        columns.append(tile // rest)
        within, radix = within + radix * (tile % rest), radix * rest
    blocks = np.stack(columns, axis=1) if columns else np.zeros((outer.devices, 0), np.int64)
    if inner.manual is None:
        raise UnknownError("the border of a manual region without manual axes")
    _, first, which = np.unique(inner.manual, return_index=True, return_inverse=True)
    if not np.array_equal(blocks[first[which.reshape(-1)]], blocks):
        raise UnknownError("a manual region whose blocks are split over axes that are not manual")
    return Tiling(tuple(counts), blocks, within)


def _crossing(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    (a,), (type_,) = args, op.types
    if run.mesh_devices != place.devices:
        raise UnknownError("a manual region in a device's own program")
    inwards = op.attributes["call_target_name"] == "SPMDFullToShardShape"
    texts = [op.attributes.get("operand_sharding"), op.attributes.get("sharding")]
    shapes = [a.shape, type_.shape]
    outer, inner = (_subgroups(t, a.values.ndim - 1, place.devices) for t in (texts if inwards else texts[::-1]))
    whole, local = shapes if inwards else shapes[::-1]
    tiling = _tiling(outer, inner, whole, local)
    if inwards:
        return [entered(a, local, tiling, run)]
    return [compact(joined(a, whole, tiling, run), run.maps)]


def _custom_call(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    target = str(op.attributes.get("call_target_name"))
    rule = CUSTOM_CALLS.get(target) or linear_algebra.CUSTOM_CALLS.get(target)
    if rule is None:
        raise UnknownError("has no meaning here")
    return rule(op, args, run, place)


def _identity(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    return args


def _top_k(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    return top_k(op, args[0], _largest(op), run)


def _own_order(dtype: str) -> str:
    """What a comparison says that is the order of the numbers of a type."""
    return "FLOAT" if not is_integer(dtype) else "UNSIGNED" if dtype.startswith("ui") else "SIGNED"


def _largest(op: Op) -> bool:
    """Whether TopK takes the largest elements: as JAX exports it, or by its comparator as XLA has it."""
    attributes = op.attributes.get("attributes")
    stated = attributes.get("largest") if isinstance(attributes, dict) else None
    if not op.regions:
        return stated if isinstance(stated, bool) else True
    (region,) = op.regions
    compare = region.ops[0] if len(region.ops) == 1 else None
    if compare is None or compare.name != "compare" or region.results != compare.results:
        raise UnknownError("a comparator that is not one comparison")
    direction = compare.attributes["comparison_direction"]
    said = compare.attributes.get("compare_type", "NOTYPE")
    is_order = compare.operands == region.arguments[:2] and direction in ("GT", "LT")
    if not is_order or said not in ("NOTYPE", _own_order(region.argument_types[0].dtype)):
        raise UnknownError("a comparator that is no order of the values")
    if stated not in (None, direction == "GT"):
        raise UnknownError("a comparator that orders the values otherwise than is said")
    return bool(direction == "GT")


CUSTOM_CALLS: dict[str, Rule] = {
    **dict.fromkeys(BORDERS, _crossing),
    **dict.fromkeys(IDENTITIES, _identity),
    **dict.fromkeys(("TopK", "mhlo.topk"), _top_k),
}
"""By target."""

RULES: dict[str, Rule] = {"custom_call": _custom_call}

REGIONS: dict[str, PartialRule] = {"sdy.manual_computation": computation}
