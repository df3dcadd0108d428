"""Replay a counterexample with XLA: both modules, compiled and run on virtual CPU devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from hlo_verify.evaluate import Difference, dense
from hlo_verify.jaxlib_api import jaxlib_version
from hlo_verify.limits import allows
from hlo_verify.passes.refute.trial import Counterexample, exceeds_rounding, is_clear, local_arguments, number
from hlo_verify.program.element_types import DTYPES
from hlo_verify.program.ir import Function, TensorType
from hlo_verify.program.pair import Pair
from hlo_verify.xla.execute import ExecutionError, Executor, Failure, Shards

BY_XLA = "by XLA (jaxlib {}), which ran {} on {} virtual CPU device{}"
BY_EVALUATION = "by evaluating every operation of both modules in real arithmetic"

CONFIRMING = 0.5
"""Of what was predicted, XLA's difference has to be more than this."""


@dataclass(frozen=True, slots=True)
class Replay:
    """How each result of a counterexample was replayed, and those that were not confirmed, with what XLA has there."""

    how: Mapping[int, str]
    denied: Mapping[int, tuple[Any, Any]]

    def shown(self) -> set[int]:
        """The results that differ as predicted where XLA ran both modules."""
        return {n for n, how in self.how.items() if n not in self.denied and not how.startswith(BY_EVALUATION)}


def is_small(pair: Pair) -> bool:
    """Whether XLA can be asked to run the modules: they are small, and MLIR has all of their arguments."""
    return (
        not (pair.logical.declared or pair.partitioned.declared)
        and allows("replayed_devices", pair.devices)
        and allows("replayed_elements", _elements(pair.partitioned.main) * pair.devices)
        and allows("replayed_elements", _elements(pair.logical.main))
    )


def replay(found: Counterexample, executor: Executor | None) -> Replay:
    """Run both modules on an executor's devices, and compare the elements that are said to differ.

    What floating point makes of a value may hide a difference: one that single precision would, and in types of fewer
    than 32 bits any that is not clear. Then evaluation alone counts, as it does without an executor, or where XLA
    cannot run a module.
    """
    if executor is None:
        return Replay(dict.fromkeys(found.differences, BY_EVALUATION), {})
    try:
        expected, got = _run(found, executor)
    except ExecutionError as error:
        return Replay(dict.fromkeys(found.differences, f"{BY_EVALUATION} (XLA did not run them: {error})"), {})
    pair = found.trial.pair
    narrow = _is_imprecise(pair.logical.main)
    ran = "both modules" if expected else "the partitioned module"
    by_xla = BY_XLA.format(jaxlib_version(), ran, pair.devices, "" if pair.devices == 1 else "s")
    how = dict.fromkeys(found.differences, by_xla)
    shown = exceeds_rounding(found.trial, found.differences)
    denied = {}
    for n, apart in found.differences.items():
        if apart.beside is not None:
            value, *there = (number(_of(device, apart, got[n])) for device in (apart.beside, apart.device))
        else:
            value = number(expected[n][(0, *apart.element)])
            there = [number(each) for each in _at(apart, got[n])]
        if any(_confirms(apart, value, each) for each in there):
            continue
        is_hidden = narrow and not (is_clear(apart) and all(map(np.isfinite, (value, *there))))
        if is_hidden or n not in shown:
            how[n] = BY_EVALUATION
        else:
            denied[n] = value, there[0] if there else float("nan")
    return Replay(how, denied)


def _run(found: Counterexample, executor: Executor) -> tuple[list[Any], Sequence[Any]]:
    """The logical results, (1, *shape), unless none counts, as devices disagree; and what the devices have: of a module
    that is global, shards that XLA placed, of any other (devices, *shape of a shard)."""
    pair = found.trial.pair
    whole = [
        dense(blocks, 0)[None].astype(DTYPES[type_.dtype])
        for blocks, type_ in zip(found.trial.inputs, pair.logical.main.argument_types, strict=True)
    ]
    is_global = pair.arguments is None
    held = local_arguments(pair, found.trial.inputs)
    known = [blocks for blocks in held if blocks is not None]
    if len(known) < len(held):
        raise ExecutionError("the devices' arguments take too much to say", Failure.REJECTED)
    local = [
        np.stack([dense(blocks, d) for d in range(1 if is_global else pair.devices)]).astype(DTYPES[type_.dtype])
        for blocks, type_ in zip(known, pair.partitioned.main.argument_types, strict=True)
    ]
    counts = any(apart.beside is None for apart in found.differences.values())
    expected = executor.run(pair.logical, whole, logical=True) if counts else []
    if is_global:
        return expected, executor.run_shards(pair.partitioned, local)
    return expected, executor.run(pair.partitioned, local)


def _of(device: int, apart: Difference, got: Any) -> Any:
    """What that device has there."""
    return (got.values if isinstance(got, Shards) else got)[(device, *apart.local_element)]


def _at(apart: Difference, got: Any) -> Iterator[Any]:
    """What the devices that hold the element have there; of a module that is not global, one device."""
    if not isinstance(got, Shards):
        yield _of(apart.device, apart, got)
        return
    shape = got.values.shape[1:]
    for device, start in enumerate(got.starts):
        index = np.array(apart.element, np.int64) - start
        if np.all((index >= 0) & (index < shape)):
            yield got.values[(device, *index)]


def _confirms(apart: Difference, expected: Any, found: Any) -> bool:
    """Whether the two values differ by more than half of what was predicted, in the same direction; or are no numbers
    where that was predicted, or the infinities that were."""
    values = number(apart.expected), number(apart.found)
    if not all(map(np.isfinite, values)):
        is_as_predicted = np.array_equal((expected, found), values, equal_nan=True)  # two infinities, say
        return bool(np.isfinite(expected) != np.isfinite(found)) or is_as_predicted
    predicted, actual = number(apart.found) - number(apart.expected), found - expected
    return predicted != 0 and bool((actual / predicted).real > CONFIRMING)


def _elements(function: Function) -> int:
    count = 0
    for op in function.ops:
        count += sum(prod(type_.shape) for type_ in op.types)
        count += sum(map(_elements, op.regions))
    return count + sum(prod(type_.shape) for type_ in function.argument_types)


def _is_imprecise(function: Function) -> bool:
    return any(_narrow(type_) for op in function.ops for type_ in op.types)


def _narrow(type_: TensorType) -> bool:
    return type_.dtype in ("bf16", "f16") or type_.dtype.startswith("f8")
