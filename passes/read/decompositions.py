"""Functions that HLO has no operation for, written out as what StableHLO's own pass makes of them.

JAX's inverse error function (`chlo.erf_inv`, of which normal numbers are made) is a polynomial in HLO, of degree 8 in
single precision. Against a module that has it so, the other one is read likewise, and the report says so: that the
polynomial is the function, within a rounding, is what the compiler takes for granted, and no proof of ours.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from hlo_verify.jaxlib_api import ir
from hlo_verify.passes.read.expand import operations
from hlo_verify.program import ir as program

WRITTEN_OUT = frozenset(
    "chlo." + name
    for name in (
        "acos acosh asin asinh atan atanh bessel_i1e cosh digamma erf_inv erfc lgamma next_after polygamma sinh zeta"
    ).split()
)

_PASSES = "builtin.module(func.func(chlo-legalize-to-stablehlo),strip-debuginfo)"
"""What is without a location has that of the call."""


def lacking(module: program.Module, other: program.Module) -> frozenset[str]:
    """The functions that a module has as operations, and another module not."""
    mine, others = ({op.name for op in program.operations(each.main)} for each in (module, other))
    return (WRITTEN_OUT & mine) - others


def write_out(module: Any, names: Collection[str]) -> tuple[str, ...]:
    """Replace the operations of those names in an MLIR module by calls of functions. What was said of them."""
    functions: dict[tuple[str, ...], str] = {}
    said: dict[str, None] = {}
    for operation in list(operations(module.operation)):
        if operation.name in names and len(operation.results) == 1:
            key = operation.name, *map(str, (each.type for each in (*operation.operands, *operation.results)))
            if key not in functions:
                functions[key] = _define(module, f"{operation.name}.{len(functions)}", operation)
            with module.context, operation.location, ir.InsertionPoint(operation):
                callee = {"callee": ir.FlatSymbolRefAttr.get(functions[key])}
                call = ir.Operation.create("func.call", [operation.result.type], list(operation.operands), callee)
            operation.result.replace_all_uses_with(call.result)
            said[f"{operation.name} is what StableHLO writes it out as, and so does XLA"] = None
            operation.erase()
    return tuple(said)


def _define(module: Any, name: str, operation: Any) -> str:
    """Add a private function that computes an operation, written out."""
    from jaxlib.mlir import passmanager
    from jaxlib.mlir.dialects import stablehlo

    types = [str(each.type) for each in operation.operands]
    result = str(operation.result.type)
    arguments = ", ".join(f"%{n}: {each}" for n, each in enumerate(types))
    given = ", ".join(f"%{n}" for n in range(len(types)))
    text = (
        f'func.func private @"{name}"({arguments}) -> {result} {{\n'
        f'  %r = "{operation.name}"({given}) : ({", ".join(types)}) -> {result}\n  return %r : {result}\n}}'
    )
    stablehlo.register_stablehlo_passes()
    with module.context:
        defined = ir.Module.parse(text)
        passmanager.PassManager.parse(_PASSES).run(defined.operation)
        (function,) = defined.body.operations
        function.operation.detach_from_parent()  # the parsed module owns it until then
        module.body.append(function)
    return name
