"""The decoder's two modules: what one device of infinite size would run, and what each device of the mesh does.

JAX lowers a `shard_map` to a region of a module of whole arrays. `own_module` makes a module of that region alone, as a
partitioner would have written it: its arguments and results are shards, placed as the region's are.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from hlo_verify import jaxlib_api
from hlo_verify.jaxlib_api import ir, sdy, stablehlo
from tools.scale import decoder
from tools.scale.decoder import DATA, Size


def pair(size: Size, dropped: int | None = None, order: Sequence[int] = ()) -> tuple[bytes, bytes]:
    """The plain step and that of a device, as bytecode; layer `dropped` lacks an all_reduce.

    `order` has the device at each place of the mesh, where that is not the place itself.
    """
    places = decoder.places(size)
    params, tokens = decoder.shapes(size), jax.ShapeDtypeStruct((size.batch, size.sequence), jnp.int32)
    arguments = ((params, params, params), tokens, tokens)
    given = ((places,) * 3, P(DATA, None), P(DATA, None))
    wanted = ((places,) * 3, P())

    def on_mesh(specs: Any) -> Any:
        return jax.tree.map(lambda spec: NamedSharding(size.mesh, spec), specs, is_leaf=lambda s: isinstance(s, P))

    mapped = jax.shard_map(
        partial(decoder.device_step, size, dropped),
        mesh=size.mesh,
        in_specs=given,
        out_specs=wanted,
        check_vma=dropped is None,
    )
    shardings = {"in_shardings": on_mesh(given), "out_shardings": on_mesh(wanted)}
    whole = jax.jit(partial(decoder.step, size), **shardings)
    plain, local = (_parsed(function.trace(*arguments)) for function in (whole, jax.jit(mapped)))
    own = own_module(local, size.devices)
    if order:
        for module in (plain, own):
            reorder(module, order)
    return _bytecode(plain), _bytecode(own)


def _parsed(traced: Any) -> Any:
    text = traced.lower(lowering_platforms=("cpu",)).as_text(debug_info=True)
    return jaxlib_api.parse_module(text, jaxlib_api.make_context())


def _bytecode(module: Any) -> bytes:
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def own_module(module: Any, devices: int) -> Any:
    """The module, its one manual region in the place of its main function."""
    main = next(op for op in module.body.operations if op.attributes["sym_name"].value == "main")
    region = next(op for op in main.regions[0].blocks[0].operations if op.operation.name == "sdy.manual_computation")
    body = region.regions[0].blocks[0]
    with module.context, ir.Location.unknown():
        types = [argument.type for argument in body.arguments]
        last = body.operations[len(body.operations) - 1]
        returned = list(last.operands)
        made = ir.Operation.create(
            "func.func",
            regions=1,
            attributes={
                "sym_name": ir.StringAttr.get("main"),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [value.type for value in returned])),
                "arg_attrs": _placed(region.attributes["in_shardings"]),
                "res_attrs": _placed(region.attributes["out_shardings"]),
            },
        )
        block = made.regions[0].blocks.append(*types)
        for old, new in zip(body.arguments, block.arguments, strict=True):
            old.replace_all_uses_with(new)
        end = ir.Operation.create("func.return", operands=returned, ip=ir.InsertionPoint(block))
        for op in list(body.operations)[:-1]:
            op.operation.move_before(end)
        main.erase()
        module.body.append(made)
        module.operation.attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(
            ir.IntegerType.get_signless(32), devices
        )
    return module


def reorder(module: Any, order: Sequence[int]) -> None:
    """Put other devices at the places of a module's mesh: in its own text, in groups, and where a device asks for its
    number, as XLA's partitioner does it, a table of places by device."""
    ids = np.asarray(order, np.int64)
    with module.context, ir.Location.unknown():
        for op in module.body.operations:
            if op.operation.name == "sdy.mesh":
                mesh = sdy.MeshAttr(op.attributes["mesh"])
                axes = ", ".join(f'"{axis.name}"={axis.size}' for axis in map(sdy.MeshAxisAttr, mesh.axes))
                op.attributes["mesh"] = ir.Attribute.parse(f"#sdy.mesh<[{axes}], device_ids={ids.tolist()}>")
        for op in list(_operations(module.operation)):
            if "replica_groups" in op.attributes:
                groups = op.attributes["replica_groups"]
                if isinstance(groups, ir.DenseElementsAttr):  # others name axes of the mesh
                    op.attributes["replica_groups"] = ir.DenseElementsAttr.get(ids[np.asarray(groups)])
            elif op.name == "stablehlo.partition_id":
                _through_a_table(op, np.argsort(ids).astype(np.uint32))


def _operations(operation: Any) -> Iterator[Any]:
    for region in operation.regions:
        for block in region.blocks:
            for op in block.operations:
                yield op.operation
                yield from _operations(op.operation)


def _through_a_table(op: Any, places: Any) -> None:
    result = op.results[0]
    users = [(use.owner, use.operand_number) for use in result.uses]
    place = ir.InsertionPoint.after(op)
    table = stablehlo.constant(ir.DenseElementsAttr.get(places, type=result.type.element_type), ip=place)
    size = ir.DenseI64ArrayAttr.get([1])
    entry = ir.Operation.create(
        "stablehlo.dynamic_slice",
        results=[ir.RankedTensorType.get([1], result.type.element_type)],
        operands=[table, result],
        attributes={"slice_sizes": size},
        ip=place,
    )
    scalar = ir.Operation.create("stablehlo.reshape", results=[result.type], operands=[entry.result], ip=place)
    for owner, number in users:
        owner.operands[number] = scalar.result


def _placed(per_value: Any) -> Any:
    shardings = sdy.TensorShardingPerValueAttr(per_value).shardings
    return ir.ArrayAttr.get([ir.DictAttr.get({"sdy.sharding": sharding}) for sharding in shardings])
