"""The decoder's two modules: what one device of infinite size would run, and what each device of the mesh does.

JAX lowers a `shard_map` to a region of a module of whole arrays. `own_module` makes a module of that region alone, as a
partitioner would have written it: its arguments and results are shards, placed as the region's are.
"""

from __future__ import annotations

import io
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from hlo_verify import jaxlib_api
from hlo_verify.jaxlib_api import ir, sdy
from tools.scale import decoder
from tools.scale.decoder import DATA, Size


def pair(size: Size, dropped: int | None = None) -> tuple[bytes, bytes]:
    """The plain step and that of a device, as bytecode; layer `dropped` lacks an all_reduce."""
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
    return _bytecode(plain), _bytecode(own_module(local, size.devices))


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


def _placed(per_value: Any) -> Any:
    shardings = sdy.TensorShardingPerValueAttr(per_value).shardings
    return ir.ArrayAttr.get([ir.DictAttr.get({"sdy.sharding": sharding}) for sharding in shardings])
