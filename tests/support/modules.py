"""Tiny StableHLO modules: built, and read by our rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.ops.induction import LoopBook
from hlo_verify.ops.values import Context, Value, positions
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.interpret import run
from hlo_verify.program.element_types import DTYPES
from hlo_verify.terms import algebra
from hlo_verify.terms.term import tensor
from tests.support.evaluate import Evaluator, OpaqueError

Array = npt.NDArray[Any]

NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
"""StableHLO's spelling of a numpy type."""


def type_of(array: Array) -> str:
    """`tensor<2x3xf32>`"""
    return tensor_type(array.shape, NAMES[array.dtype])


def tensor_type(shape: Sequence[int], dtype: str) -> str:
    return dtype if dtype.startswith("!") else f"tensor<{''.join(f'{n}x' for n in shape)}{dtype}>"


def _number(x: Any) -> str:
    if isinstance(x, bool | np.bool_):
        return "true" if x else "false"
    if isinstance(x, complex | np.complexfloating):
        return f"({_number(x.real)}, {_number(x.imag)})"
    if isinstance(x, np.integer | ml_dtypes.int4 | ml_dtypes.uint4 | ml_dtypes.int2 | ml_dtypes.uint2):
        return str(int(x))
    if not math.isfinite(float(x)):
        width = np.asarray(x).dtype.itemsize
        return f"0x{int(np.asarray(x).view(f'u{width}')):0{2 * width}X}"
    return f"{float(x)!r}" if "e" not in repr(float(x)) else f"{float(x):.17e}"


def literal(array: Array) -> str:
    """`dense<[[1, 2]]> : tensor<1x2xi32>`"""

    def nested(part: Array) -> str:
        return "[" + ", ".join(map(nested, part)) + "]" if part.ndim else _number(part[()])

    return f"dense<{nested(array) if array.size else ''}> : {type_of(array)}"


@dataclass(frozen=True, slots=True)
class Ref:
    """A value of a program under construction."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def type(self) -> str:
        return tensor_type(self.shape, self.dtype)


@dataclass(slots=True)
class Program:
    """One function, an operation a line, with the arrays for its arguments."""

    inputs: list[Array] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    results: list[Ref] = field(default_factory=list)
    count: int = 0
    devices: bool = False
    """Whether inputs have a first dimension for devices."""

    def _name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def argument(self, array: Array) -> Ref:
        self.inputs.append(array)
        return Ref(f"%a{len(self.inputs) - 1}", array.shape, NAMES[array.dtype])

    def constant(self, array: Array) -> Ref:
        ref = Ref(self._name(), array.shape, NAMES[array.dtype])
        self.lines.append(f"{ref.name} = stablehlo.constant {literal(array)}")
        return ref

    def op(
        self,
        name: str,
        operands: Sequence[Ref],
        results: Sequence[tuple[Sequence[int], str]],
        attributes: str = "",
        regions: str = "",
    ) -> list[Ref]:
        """An operation in generic form; `results` are shapes and element types."""
        if "." not in name:
            name = f"stablehlo.{name}"
        base = self._name()
        kinds = [tensor_type(*result) for result in results]
        refs = [
            Ref(base if len(results) == 1 else f"{base}#{n}", tuple(shape), dtype)
            for n, (shape, dtype) in enumerate(results)
        ]
        left = f"{base}{'' if len(results) == 1 else f':{len(results)}'} = " if results else ""
        self.lines.append(
            f'{left}"{name}"({", ".join(r.name for r in operands)}) {f"({regions})" if regions else ""} '
            f"{{{attributes}}} : ({', '.join(r.type for r in operands)}) -> ({', '.join(kinds)})"
        )
        return refs

    def returns(self, refs: Sequence[Ref]) -> Program:
        self.results = list(refs)
        return self

    def function(self, name: str = "main") -> str:
        skipped = 1 if self.devices else 0
        signature = ", ".join(
            f"%a{k}: {tensor_type(x.shape[skipped:], NAMES[x.dtype])}" for k, x in enumerate(self.inputs)
        )
        return _function(name, signature, self.lines, self.results)

    @property
    def text(self) -> str:
        return f"module @m {{\n{self.function()}}}\n"

    def split(self) -> tuple[str, list[Array]]:
        """The text and inputs with every complex argument and result as two real ones: the binding has no complex."""
        inputs: list[Array] = []
        signature, before, after = [], [], []
        results: list[Ref] = []
        for k, x in enumerate(self.inputs):
            if x.dtype.kind == "c":
                parts = [np.asarray(x.real), np.asarray(x.imag)]
                signature += [f"%a{k}_{n}: {type_of(part)}" for n, part in enumerate(parts)]
                kinds = ", ".join(map(type_of, parts))
                before.append(f'%a{k} = "stablehlo.complex"(%a{k}_0, %a{k}_1) : ({kinds}) -> {type_of(x)}')
                inputs += parts
            else:
                signature.append(f"%a{k}: {type_of(x)}")
                inputs.append(x)
        for k, r in enumerate(self.results):
            if r.dtype.startswith("complex"):
                for name in ("real", "imag"):
                    part = Ref(f"%r{k}_{name}", r.shape, r.dtype[8:-1])
                    after.append(f'{part.name} = "stablehlo.{name}"({r.name}) : ({r.type}) -> {part.type}')
                    results.append(part)
            else:
                results.append(r)
        text = _function("main", ", ".join(signature), [*before, *self.lines, *after], results)
        return f"module @m {{\n{text}}}\n", inputs

    def join(self, answers: Sequence[Array]) -> list[Array]:
        """The results from those of the split program."""
        remaining = iter(answers)
        joined = []
        for r in self.results:
            first = next(remaining)
            if r.dtype.startswith("complex"):
                second = next(remaining)
                first = np.asarray(first + 1j * second).astype(DTYPES[r.dtype])
            joined.append(first)
        return joined


def _function(name: str, signature: str, lines: Sequence[str], results: Sequence[Ref]) -> str:
    kinds = ", ".join(r.type for r in results)
    body = "\n    ".join(lines)
    names = ", ".join(r.name for r in results)
    return (
        f"  func.func public @{name}({signature}) -> ({kinds}) {{\n    {body}\n"
        f"    func.return {names} : {kinds}\n  }}\n"
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """What our rules say: an array of Python numbers a result (a leading dimension for devices), or why they do not."""

    results: list[Array]
    unsupported: dict[str, str]


def ours(text: str, inputs: Sequence[Array], *, partitions: int = 0, replicas: int = 1) -> Answer:
    """The results of `main` by our rules, evaluated.

    With `partitions`, inputs and results have a leading dimension for devices.
    """
    devices = partitions * replicas
    module = load(text, devices=max(devices, 1))
    device = expr.var("d", "", devices) if devices else None
    outer: dict[Var, int] = {} if device is None else {device: devices}
    leading = () if device is None else (expr.of_var(device),)
    # On the partitioned side loops without a counterpart are unrolled.
    loops = LoopBook(lambda *_: [])
    context = Context(device, max(partitions, 1), replicas, run, side="partitioned", loops=loops)
    arguments, tensors = [], {}
    for n, (kind, data) in enumerate(zip(module.main.argument_types, inputs, strict=True)):
        symbol = tensor("argument", f"x{n}", kind.dtype, kind.shape)
        tensors[symbol] = data
        arguments.append(Value(kind, algebra.read(symbol, (*leading, *positions(kind.shape)))))
    values = run(module.main, arguments, context)
    if context.unsupported:
        return Answer([], {where: said.message for where, said in context.unsupported.items()})
    evaluator = Evaluator(tensors)
    try:
        return Answer([evaluator.value(value, outer) for value in values], {})
    except OpaqueError as error:
        return Answer([], {"": f"{error} is opaque"})
