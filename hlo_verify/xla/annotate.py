"""Write the shardings of a shardings file onto a module, for XLA to partition it by them."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlo_verify.diagnostics import Annotation, Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.jaxlib_api import ir, sdy
from hlo_verify.program.ir import Module
from hlo_verify.program.mesh import Mesh, read_mesh
from hlo_verify.program.sharding import Sharding
from hlo_verify.sources.shardings_file import Shardings, Spec


def annotate(mlir: Any, module: Module, given: Shardings, shardy: bool) -> None:
    """Put shardings on the entry function of `mlir`, in Shardy's language or as HloShardings.

    `module` is what `given.apply` made of it. Raises `InputError` where the language cannot say it.
    """
    functions = [op for op in mlir.body.operations if op.operation.name == "func.func"]
    public = [f for f in functions if "sym_visibility" not in f.attributes]
    main: Any = next((f for f in functions if f.attributes["sym_name"].value == "main"), public[0] if public else None)
    arguments, results = len(module.argument_names), len(module.result_names)
    signature = main.attributes["function_type"].value if main is not None else None
    if signature is None or (len(signature.inputs), len(signature.results)) != (arguments, results):
        raise InputError(
            f"{given.path}: shardings cannot be put on a module whose arguments or results are tuples",
            Input.UNSUPPORTED_MODULE,
        )
    with mlir.context, ir.Location.unknown(mlir.context):
        symbol = _symbol(mlir, given) if shardy else ""
        for which, count in (("argument", arguments), ("result", results)):
            key = "arg_attrs" if which == "argument" else "res_attrs"
            placements = module.argument_shardings if which == "argument" else module.result_shardings
            texts = {}
            for position, entry in given.entries(which, module).items():
                rank = len((signature.inputs if which == "argument" else signature.results)[position].shape)
                sharding = placements[position]
                assert sharding is not None
                texts[position] = _shardy(given, entry, rank, symbol) if shardy else f'"{hlo_text(sharding)}"'
            name = "sdy.sharding" if shardy else "mhlo.sharding"
            main.attributes[key] = _with(main, key, count, name, texts)
        mlir.operation.attributes["mhlo.num_partitions"] = ir.Attribute.parse(f"{module.partitions} : i32")


def _with(function: Any, key: str, count: int, name: str, texts: dict[int, str]) -> Any:
    """A function's attributes of its arguments or results, with shardings of some."""
    present = list(function.attributes[key]) if key in function.attributes else [None] * count
    dictionaries = []
    for position, attributes in enumerate(present):
        entries = (
            {} if attributes is None else {a.name: a.attr for a in (attributes[k] for k in range(len(attributes)))}
        )
        if position in texts:
            entries[name] = ir.Attribute.parse(texts[position])
        dictionaries.append(ir.DictAttr.get(entries))
    return ir.ArrayAttr.get(dictionaries)


def _shardy(given: Shardings, entry: Spec | str, rank: int, symbol: str) -> str:
    if isinstance(entry, str):
        raise InputError(
            f"{given.path}: {entry!r} is an HloSharding, and the module is lowered for Shardy: "
            "write it as axes of a [mesh]",
            Input.SHARDINGS_FILE,
        )
    dimensions = [*entry.dimensions, *[()] * (rank - len(entry.dimensions))]
    text = ", ".join("{" + ", ".join(f'"{axis}"' for axis in axes) + "}" for axes in dimensions)
    unreduced = ", ".join(f'"{axis}"' for axis in entry.unreduced)
    return f"#sdy.sharding<@{symbol}, [{text}]{f', unreduced={{{unreduced}}}' if unreduced else ''}>"


def _symbol(mlir: Any, given: Shardings) -> str:
    """The name of the module's mesh that is the file's; a new one where the module has none."""
    found: dict[str, Mesh] = {}
    for op in mlir.body.operations:
        if op.operation.name == "sdy.mesh":
            found[op.attributes["sym_name"].value] = read_mesh(sdy.MeshAttr(op.attributes["mesh"]))
    mesh = given.mesh
    if mesh is None:
        return next(iter(found), "mesh")
    same = [name for name, other in found.items() if _is(mesh, other)]
    if same:
        return same[0]
    if found:
        other = next(iter(found.values()))
        raise InputError(
            f"{given.path}: the mesh {mesh} is not the module's own, {other}; use that one's axes",
            Annotation.WRONG_MESH,
        )
    axes = ", ".join(f'"{name}"={size}' for name, size in mesh.axes)
    ids = "" if _is_in_order(mesh) else f", device_ids={list(mesh.device_ids)}"
    source = ir.Module.parse(f"sdy.mesh @mesh = <[{axes}]{ids}>")
    source.body.operations[0].operation.clone(ir.InsertionPoint.at_block_begin(mlir.body))
    return "mesh"


def _is_in_order(mesh: Mesh) -> bool:
    return mesh.device_ids in ((), tuple(range(mesh.size)))


def _is(one: Mesh, other: Mesh) -> bool:
    same_order = one.device_ids == other.device_ids or (_is_in_order(one) and _is_in_order(other))
    return one.axes == other.axes and same_order


def hlo_text(sharding: Sharding) -> str:
    """The text of an HloSharding."""
    if sharding.only is not None:
        return f"{{maximal device={sharding.only}}}"
    copies = int(sharding.others.max()) + 1
    if copies == sharding.devices:
        return "{replicated}"
    order = np.lexsort((sharding.others, sharding.numbers, *sharding.coordinates.T[::-1]))
    sizes, subgroups = list(sharding.tiles), []
    for size, subgroup in ((sharding.addend_count, "unreduced"), (copies, "replicated")):
        if size > 1:
            sizes.append(size)
            subgroups.append(subgroup)
    last = f" last_tile_dims={{{', '.join(subgroups)}}}" if subgroups else ""
    return f"{{devices=[{','.join(map(str, sizes))}]{','.join(map(str, order))}{last}}}"
