"""Whether two modules are one program: the same operations on the same operands, whatever their names, their order, and
how they are split into functions and fusions."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from hlo_verify.ops import SHAREABLE
from hlo_verify.passes.prove.layers import Keys
from hlo_verify.program.ir import Function, Module, Name, Op, operations
from hlo_verify.program.op_families import REPEATABLE, has_effect

_REPEATABLE = SHAREABLE | REPEATABLE
"""Operations that do the same each time, if what is inside of them does."""

_ABOUT_COMPILING = frozenset({"frontend_attributes", "backend_config"})
"""Attributes that mean nothing on repeatable operations."""


class Programs:
    """Numbers for programs: equal numbers, one program."""

    def __init__(self) -> None:
        self._keys = Keys()
        self._numbers: dict[Any, int] = {}

    def of(self, module: Module) -> int:
        results, effects = self._walked(module)
        types = module.main.argument_types, module.result_types
        facts = module.partitions, module.replicas, _meshes(module)
        return self._number((*types, results, effects, *facts))

    def effects_of(self, module: Module) -> tuple[Any, ...]:
        """What a program does beside giving results, in order."""
        return module.main.argument_types, self._walked(module)[1], _meshes(module)

    def _walked(self, module: Module) -> tuple[Any, tuple[int, ...]]:
        main = module.main
        names: dict[Name, Any] = {v: ("argument", n) for n, v in enumerate(main.arguments)}
        effects: list[int] = []
        results = self._function(main, names, Counter(), effects, ())
        return results, tuple(effects)

    def _number(self, key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _function(
        self,
        function: Function,
        names: dict[Name, Any],
        times: Counter[Any],
        effects: list[int],
        place: tuple[Any, ...],
    ) -> Any:
        """The names of the results of a function at a place, and note what it does beside."""
        for op in function.ops:
            regions: list[Any] = []
            before = len(effects)
            for region in op.regions:
                inside = (*place, (op.name, len(regions)))
                names.update((v, (len(place), len(regions), n)) for n, v in enumerate(region.arguments))
                regions.append((region.argument_types, self._function(region, names, times, effects, inside)))
            operands = tuple(names[v] for v in op.operands)
            key: tuple[Any, ...] = (op.name, op.types, self._attributes(op), operands, tuple(regions))
            if op.name not in _REPEATABLE:
                key = (*key, place)
                times[key] += 1
                key = (*key, times[key])
            number = self._number(key)
            if has_effect(op) or len(effects) > before:
                effects.append(number)  # of a loop too: how often it does what is inside
            names.update((v, (number, n)) for n, v in enumerate(op.results))
        return tuple(names[v] for v in function.results)

    def _attributes(self, op: Op) -> Any:
        given = op.attributes
        if op.name in _REPEATABLE:
            left_out = {name for name in _ABOUT_COMPILING if name in given}
            if "manual" not in str(given.get("sharding", "")):
                left_out.add("sharding")
            given = {name: value for name, value in given.items() if name not in left_out}
        return tuple(sorted(self._keys.attributes(replace(op, attributes=given))))


def _meshes(module: Module) -> str:
    """The meshes that calls of Shardy in a module's HLO name: what they mean is said by the module."""
    calls = (str(op.attributes.get("call_target_name")) for op in operations(module.main) if op.name == "custom_call")
    if not any(target.startswith("xla.sdy.") for target in calls):
        return ""
    attributes = module.mlir.operation.attributes
    return str(attributes["mhlo.frontend_attributes"]) if "mhlo.frontend_attributes" in attributes else ""
