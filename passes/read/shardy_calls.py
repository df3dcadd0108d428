"""Regions that run device by device, as Shardy writes them into HLO before its propagation has run.

HLO has no regions, so that Shardy exports an `sdy.manual_computation` as a call of a function between two custom calls:
`xla.sdy.GlobalToLocalShape` takes the operands and gives the function its shards, with their shardings among its
frontend attributes; `xla.sdy.LocalToGlobalShape` takes what it returns. Meshes stand at the module. All this is undone
here.
"""

from __future__ import annotations

from typing import Any

from hlo_verify.jaxlib_api import ir
from hlo_verify.passes.read.expand import operations

NAME = b"xla.sdy.LocalToGlobalShape"

_BEGIN, _END = "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"
_BODY = "manual_computation_body"


def write_out(module: Any) -> None:
    """Put regions in the place of the calls in an MLIR module that was HLO. What has another form stays."""
    ends = [op for op in operations(module.operation) if _target(op) == _END]
    if ends:
        _define_meshes(module)
    for end in ends:
        _write_out(end)


def _target(operation: Any) -> str:
    is_call = operation.name == "stablehlo.custom_call"
    return str(operation.attributes["call_target_name"].value) if is_call else ""


def _define_meshes(module: Any) -> None:
    """The meshes that the module's frontend attributes hold, as operations."""
    with module.context, ir.Location.unknown(), ir.InsertionPoint.at_block_begin(module.body):
        meshes = _parsed(module.operation, "xla.sdy.meshes")
        for named in meshes if meshes is not None else ():
            attributes = {"sym_name": ir.StringAttr.get(named.name), "mesh": named.attr}
            ir.Operation.create("sdy.mesh", attributes=attributes)


def _parsed(operation: Any, name: str) -> Any:
    """A frontend attribute that is written in MLIR; None where there is none."""
    if "mhlo.frontend_attributes" not in operation.attributes:
        return None
    given = operation.attributes["mhlo.frontend_attributes"]
    text = given[name].value if name in given else ""
    return ir.Attribute.parse(text) if text else None


def _write_out(end: Any) -> None:
    call = end.operands[0].owner if len(end.operands) else None
    if call is None or call.name != "func.call" or list(end.operands) != list(call.results):
        return
    callee = call.attributes["callee"].value
    begin = _begin(call)
    if _BODY not in callee or (begin is None and len(call.operands)):
        return
    with end.context, end.location, ir.InsertionPoint(end):
        nothing = ir.Attribute.parse("#sdy.sharding_per_value<[]>")
        attributes = {
            "in_shardings": nothing if begin is None else _parsed(begin, "xla.sdy.in_shardings"),
            "out_shardings": _parsed(end, "xla.sdy.out_shardings"),
            "manual_axes": _parsed(end, "xla.sdy.manual_axes"),
        }
        if any(each is None for each in attributes.values()):
            return
        if begin is not None and _parsed(begin, "xla.sdy.manual_axes") != attributes["manual_axes"]:
            return  # the two ends are of different regions
        whole = end.results[0].type if isinstance(end.results[0].type, ir.TupleType) else None
        types = [each.type for each in end.results]
        if whole is not None:
            types = [whole.get_type(k) for k in range(whole.num_types)]
        operands = [] if begin is None else list(begin.operands)
        region = ir.Operation.create("sdy.manual_computation", types, operands, attributes, regions=1)
        block = region.regions[0].blocks.append(*(operand.type for operand in call.operands))
        with ir.InsertionPoint(block):
            inner = ir.Operation.create(
                "func.call",
                [each.type for each in call.results],
                list(block.arguments),
                {"callee": ir.FlatSymbolRefAttr.get(callee)},
            )
            ir.Operation.create("sdy.return", [], list(inner.results))
        new = region if whole is None else ir.Operation.create("stablehlo.tuple", [whole], list(region.results))
    for old, value in zip(end.results, new.results, strict=True):
        old.replace_all_uses_with(value)
    _erase(end, call, begin)


def _begin(call: Any) -> Any:
    """The custom call whose results, in order, are the operands of a call; None where that is not so."""
    found: list[Any] = []
    for n, operand in enumerate(call.operands):
        maker = operand.owner
        if isinstance(maker, ir.Block):
            return None
        if maker.name == "stablehlo.get_tuple_element" and maker.attributes["index"].value == n:
            maker = maker.operands[0].owner
        if isinstance(maker, ir.Block) or _target(maker) != _BEGIN or maker not in (found or [maker]):
            return None
        found.append(maker)
    return found[0] if found else None


def _erase(end: Any, call: Any, begin: Any) -> None:
    makers = [operand.owner for operand in call.operands]
    end.erase()
    call.erase()
    for maker in makers:
        if maker.name == "stablehlo.get_tuple_element":
            maker.erase()
    if begin is not None:
        begin.erase()
