"""Placements that stand among frontend attributes, as Shardy writes them into HLO, which has no room for its shardings.

XLA with Shardy takes these and drops `mhlo.sharding`; without Shardy it is the other way round. Shardy's import removes
them, so that a module holds both only before it has run, and then both say one thing:

| of | where | name |
|---|---|---|
| a mesh | the module | `xla.sdy.meshes`, a dictionary |
| an argument or result | the signature | `xla.sdy.sharding` |
| a result | the custom call `xla.sdy.FuncResultSharding` that gives it | `xla.sdy.sharding`, a list of one |
| all arguments or results | the module | `xla.sdy.tuple_args_shardings`, `xla.sdy.tuple_results_shardings`, lists |
"""

from __future__ import annotations

from typing import Any

from hlo_verify.diagnostics import Annotation
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.jaxlib_api import ir, sdy

SHARDING, _MESHES = "xla.sdy.sharding", "xla.sdy.meshes"
ARGUMENTS, RESULTS = "xla.sdy.tuple_args_shardings", "xla.sdy.tuple_results_shardings"
_RESULT_CALL = "xla.sdy.FuncResultSharding"


def meshes(module: Any) -> dict[str, Any]:
    """The meshes that an MLIR module's frontend attributes hold, by name; none where this jaxlib cannot read them."""
    found = _written(module.operation.attributes, _MESHES)
    try:
        parsed = None if found is None else _parse(module.context, found)
    except InputError:
        return {}
    if not isinstance(parsed, ir.DictAttr):
        return {}
    return {parsed[k].name: parsed[k].attr for k in range(len(parsed)) if sdy.MeshAttr.isinstance(parsed[k].attr)}


def of_signature(dictionary: Any, context: Any, count: int) -> list[Any] | None:
    """What the attributes of an argument or result say of each of its flat values, if they do. Raises `InputError`."""
    written = _written(dictionary, SHARDING)
    if written is None:
        return None
    parsed = _parse(context, written)
    said = _values(parsed, written) if sdy.TensorShardingPerValueAttr.isinstance(parsed) else [parsed] * count
    if len(said) != count:
        raise InputError(f"{written} has {len(said)} shardings for {count} tensors", Annotation.WRONG_RANK)
    return said


def of_all(module: Any, name: str, count: int) -> list[Any]:
    """What the module says of each of its flat arguments (`ARGUMENTS`) or `RESULTS`. Raises `InputError`."""
    written = _written(module.operation.attributes, name)
    if written is None:
        return [None] * count
    said = _values(_parse(module.context, written), written)
    if len(said) != count:
        raise InputError(f"{name} has {len(said)} shardings for {count} tensors", Annotation.WRONG_RANK)
    return said


def of_returned(value: Any, count: int) -> list[Any]:
    """What is said of each of the `count` flat values in one that is returned. Raises `InputError`."""
    nothing = [None] * count
    maker = value.owner
    if isinstance(maker, ir.Block):
        return nothing
    if maker.name == "stablehlo.tuple":
        return [said for operand in maker.operands for said in of_returned(operand, _leaves(operand.type))]
    if maker.name == "stablehlo.reshape" and maker.operands[0].type == value.type:
        return of_returned(maker.operands[0], count)
    if maker.name != "stablehlo.custom_call" or maker.attributes["call_target_name"].value != _RESULT_CALL:
        return nothing
    written = _written(maker.attributes, SHARDING)
    return nothing if written is None else (_values(_parse(maker.context, written), written) * count)[:count]


def _leaves(type_: Any) -> int:
    if not isinstance(type_, ir.TupleType):
        return 1
    return sum(_leaves(type_.get_type(k)) for k in range(type_.num_types))


def _written(attributes: Any, name: str) -> str | None:
    """The text of one frontend attribute."""
    if "mhlo.frontend_attributes" not in attributes:
        return None
    given = attributes["mhlo.frontend_attributes"]
    if not isinstance(given, ir.DictAttr) or name not in given:
        return None
    return str(given[name].value) if isinstance(given[name], ir.StringAttr) else str(given[name])


def _values(parsed: Any, written: str) -> list[Any]:
    if not sdy.TensorShardingPerValueAttr.isinstance(parsed):
        raise InputError(f"not a list of shardings: {written!r}", Annotation.NOT_A_SHARDING)
    return list(sdy.TensorShardingPerValueAttr(parsed).shardings)


def _parse(context: Any, text: str) -> Any:
    if not text:  # which jaxlib ends the process for
        raise InputError("an empty text in the place of a sharding", Annotation.NOT_A_SHARDING)
    try:
        return ir.Attribute.parse(text, context)
    except Exception as error:
        raise InputError(
            f"not a sharding: {text!r} ({str(error).splitlines()[0]})", Annotation.NOT_A_SHARDING
        ) from error
