"""Operations that stand for others, written out in StableHLO before anything else reads a module.

Each is replaced by a call of a function that JAX lowers its meaning to, so that the prover, the evaluator and XLA all
see the same operations: the custom calls of AWS's Neuron compiler (`neuron_calls`), batch normalization
(`batch_norm`), and products in groups (`ragged_dots`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo_verify.jaxlib_api import ir
from hlo_verify.passes.read import batch_norm, neuron_calls, ragged_dots
from hlo_verify.program.element_types import JAX_NAMES
from hlo_verify.registered_calls import registered

NAMES = (b"Neuron", b"batch_norm", b"batch-norm", b"ragged_dot", b"ragged-dot")
"""A file without any of these has none of the operations."""

Compute = Callable[..., Any]
"""The results for some operands, which are JAX arrays."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What an operation computes, how the function is called, and what is taken for granted; and of how many ranks the
    first operands are joined before."""

    compute: Compute
    name: str
    said: str = ""
    ranks: int = 1


def expand(module: Any) -> tuple[str, ...]:
    """Replace the operations in an MLIR module. What was said of the custom calls that were there, as assumptions.

    An operation whose operands or results are not of the kinds that its meaning takes and gives stays as it is.
    """
    taken = registered()
    functions: dict[Any, str | None] = {}
    said: set[str] = set()
    for operation in list(operations(module.operation)):
        found = _meaning(operation, taken)
        if found is not None and _replaced(module, operation, found, functions):
            said.add(found.said)
    return tuple(sorted(said - {""}))


def _meaning(operation: Any, taken: Collection[str]) -> _Found | None:
    """The meaning of an operation that stands for others; `taken` are targets to which users have given one."""
    name = operation.name.removeprefix("stablehlo.")
    if name in batch_norm.MEANINGS:
        epsilon, feature = operation.attributes["epsilon"].value, operation.attributes["feature_index"].value
        compute = batch_norm.MEANINGS[name]
        return _Found(lambda *arrays: compute(epsilon, feature, *arrays), f"{name}.{epsilon}.{feature}")
    if name in ragged_dots.NAMES:
        element_type = str(operation.results[0].type.element_type)
        product = ragged_dots.meaning(operation, JAX_NAMES.get(element_type))
        key = f"{name}.{ragged_dots.numbers_of(operation)}"
        return None if product is None else _Found(product, key, ragged_dots.SAID)
    if name != "custom_call":
        return None
    target = operation.attributes["call_target_name"].value
    meaning = neuron_calls.MEANINGS.get(target)
    if meaning is None or target in taken:
        return None
    given = operation.attributes
    if _does_more(given) and not meaning.is_mark:
        return None
    config = given["backend_config"].value if "backend_config" in given else ""
    config = config.strip('"') if isinstance(config, str) else ""
    said = f"custom_call to {target} is {meaning.said}"
    try:
        ranks = meaning.gathered(config)
    except (ValueError, KeyError):
        return None
    return _Found(lambda *arrays: meaning.compute(config, *arrays), f"{target}.{config}", said, ranks)


def _does_more(given: Any) -> bool:
    """Whether a call says that it has an effect beside its results, or runs computations."""
    effect, computations = "has_side_effect", "called_computations"
    return (effect in given and bool(given[effect].value)) or (computations in given and len(given[computations]) > 0)


def operations(operation: Any) -> Iterator[Any]:
    """All operations inside of one."""
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from operations(inner.operation)


def _replaced(module: Any, operation: Any, found: _Found, functions: dict[Any, str | None]) -> bool:
    """Whether an operation could be replaced: by a call of a function, one for all operations of the same types."""
    results = [result.type for result in operation.results]
    whole = results[0] if len(results) == 1 and isinstance(results[0], ir.TupleType) else None
    if whole is not None:
        results = [whole.get_type(k) for k in range(whole.num_types)]
    operands = [operand.type for operand in operation.operands]
    if found.ranks > 1:
        operands[0] = _joined(operands[0], found.ranks)
    key = found.name, tuple(map(str, operands)), tuple(map(str, results))
    if key not in functions:
        functions[key] = _define(module, f"{found.name}.{len(functions)}", found.compute, operands, results)
    name = functions[key]
    if name is None:
        return False
    with module.context, operation.location, ir.InsertionPoint(operation):
        callee = {"callee": ir.FlatSymbolRefAttr.get(name)}
        values = list(operation.operands)
        if found.ranks > 1:
            groups = np.arange(found.ranks, dtype=np.int64)[None]
            attributes = {
                "all_gather_dim": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0),
                "replica_groups": ir.DenseIntElementsAttr.get(groups),
            }
            values[0] = ir.Operation.create("stablehlo.all_gather", [operands[0]], values[:1], attributes).result
        new = ir.Operation.create("func.call", results, values, callee)
        if whole is not None:
            new = ir.Operation.create("stablehlo.tuple", [whole], list(new.results))
    for old, value in zip(operation.results, new.results, strict=True):
        old.replace_all_uses_with(value)
    operation.erase()
    return True


def _joined(type_: Any, ranks: int) -> Any:
    """The type of so many tensors along dimension 0; the tensor's own where it has none."""
    if not type_.shape:
        return type_
    with type_.context, ir.Location.unknown():
        return ir.RankedTensorType.get([ranks * type_.shape[0], *type_.shape[1:]], type_.element_type)


def _define(module: Any, name: str, meaning: Compute, operands: list[Any], results: list[Any]) -> str | None:
    """Add a private function that computes the meaning for such operands. None where it is of other types."""
    import jax

    try:
        given, wanted = [_array(type_) for type_ in operands], [_array(type_) for type_ in results]

        def compute(*arrays: Any) -> Any:
            found = meaning(*arrays)
            found = found if isinstance(found, (tuple, list)) else (found,)
            if [each.shape for each in found] != [each.shape for each in wanted]:
                raise TypeError(f"{name} gives other shapes")
            return [each.astype(type_.dtype) for each, type_ in zip(found, wanted, strict=True)]

        with jax.enable_x64(True):
            lowered = jax.jit(compute, keep_unused=True).trace(*given).lower(lowering_platforms=("cpu",))
            text = _without_locations(lowered.compiler_ir())
    except (TypeError, ValueError, KeyError):
        return None
    with module.context:
        defined = ir.Module.parse(text)  # it owns the functions until they are detached
        functions = list(defined.body.operations)
        own = [function.attributes["sym_name"].value for function in functions]
        names = {each: name if each == "main" else f"{name}.{each}" for each in own}
        for function in functions:
            for call in operations(function.operation):
                if call.name == "func.call":
                    call.attributes["callee"] = ir.FlatSymbolRefAttr.get(names[call.attributes["callee"].value])
            function.attributes["sym_name"] = ir.StringAttr.get(names[function.attributes["sym_name"].value])
            function.attributes["sym_visibility"] = ir.StringAttr.get("private")
            function.operation.detach_from_parent()
            module.body.append(function)
    return name


def _array(type_: Any) -> Any:
    import jax

    return jax.ShapeDtypeStruct(tuple(type_.shape), JAX_NAMES[str(type_.element_type)])  # type: ignore[no-untyped-call]


def _without_locations(module: Any) -> str:
    """A module's text that says of no operation where it comes from: then it has the location of the call."""
    from jaxlib.mlir import passmanager

    with module.context:
        passmanager.PassManager.parse("builtin.module(strip-debuginfo)").run(module.operation)
    return str(module.operation.get_asm(enable_debug_info=True))
