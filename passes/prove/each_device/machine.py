"""Every device by itself: an interpreter that holds a value on each device, for each name.

The walk with a variable device number `d` is one for all devices, and gives up where a rotation, a table or a branch
mixes `d` with something that digits cannot say. Here `d` is a number on each device. Offsets are numbers then, and a
selection of device 3 is decided on device 3. An operation that communicates takes what the members of a group hold.
Loops are run turn by turn.

    x_d = x[2*d : 2*d + 2]              x_0 = x[0:2]      x_1 = x[2:4]      …
    y_d = x_((d + 1) mod 4)             y_0 = x[2:4]      y_1 = x[4:6]      …

The rules of operations are those of the walk for all devices: a rule says what the result is on device `d` where its
operands are what device k holds, and then `d` is k. It is asked once for all devices that hold the same. Rules that
look at what other devices hold have a counterpart in `communication` and `manual`; there is none for an operation of
which nothing is known, or that may communicate otherwise: its results equal nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hlo_verify.diagnostics import Unsupported
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.limits import allows
from hlo_verify.ops.values import Context, UnsupportedError, Value
from hlo_verify.passes.prove.interpret import interpret
from hlo_verify.program.element_types import is_float
from hlo_verify.program.ir import Function, Name, Op, captured
from hlo_verify.program.op_families import BORDERS, communicates_itself
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import define
from hlo_verify.terms.neighbours import joined
from hlo_verify.terms.nesting import nesting
from hlo_verify.terms.term import Poly

Values = tuple[Value, ...]
"""What each device holds of a tensor."""

Handler = Callable[["Machine", Op, list[Values], Context], list[Values]]
"""The meaning of an operation that is about several devices, or that runs its regions."""


class TooMuchError(Exception):
    """The walk takes more operations than it may."""


@dataclass(slots=True)
class Machine:
    """The values of a module on every device."""

    device: Var
    handlers: Mapping[str, Handler]
    left: int
    """How many operations may still be worked out, each device's by itself."""
    environment: dict[Name, Values] = field(default_factory=dict)
    observe: Callable[[Name, Values], Values] | None = None
    """Sees every value that is made, and may give an equal one back."""

    @property
    def devices(self) -> int:
        return self.device.size

    def run(self, function: Function, arguments: Sequence[Values], context: Context) -> list[Values]:
        """The results of a function or region, which all devices run together."""
        environment = self.environment
        environment.update(zip(function.arguments, arguments, strict=True))
        for op in function.ops:
            operands = [environment[v] for v in op.operands]
            results = self.results(op, operands, context)
            if self.observe is not None:
                results = [self.observe(*each) for each in zip(op.results, results, strict=True)]
            environment.update(zip(op.results, results, strict=True))
        return [environment[v] for v in function.results]

    def results(self, op: Op, operands: list[Values], context: Context) -> list[Values]:
        """The results of an operation; equal to nothing else where its meaning is not known exactly."""
        context.session.check()
        handler = self.handlers.get(op.name)
        try:
            if handler is not None:
                return handler(self, op, operands, context)
            if communicates_itself(op):
                raise UnsupportedError(f"{op.name}, which may communicate otherwise", Unsupported.GROUPS)
            if op.attributes.get("call_target_name") in BORDERS:
                raise UnsupportedError("the border of a manual region that XLA has flattened", Unsupported.MANUAL)
        except UnsupportedError as error:
            return self.unknown(op, context, str(error), error.code)
        return self._on_each(op, operands, context)

    def unknown(self, op: Op, context: Context, reason: str, code: Unsupported) -> list[Values]:
        """Results that equal nothing else, others on every device."""
        return [self.everywhere(value) for value in context.opaque(op, reason, code)]

    def everywhere(self, value: Value) -> Values:
        """A value that depends on the device's number, on each device."""
        if self.device not in value.term.free:
            return (value,) * self.devices
        return tuple(self.on(k, value) for k in range(self.devices))

    def on(self, k: int, value: Value) -> Value:
        """A value that depends on the device's number, on device k."""
        return Value(value.type, algebra.substitute(value.term, self.number(k)))

    def number(self, k: int) -> dict[Var, Index]:
        """The device's number, where it is device k."""
        return {self.device: expr.constant(k)}

    def _on_each(self, op: Op, operands: list[Values], context: Context) -> list[Values]:
        """The results of an operation that looks at nothing but what its own device holds."""
        around = captured(op) if op.regions else ()
        known: dict[tuple[int, ...], list[Values]] = {}
        columns: list[list[Value]] = []
        for k in range(self.devices):
            here = [values[k] for values in operands]
            taken = {v: self.environment[v][k] for v in around}
            key = tuple(value.term.uid for value in (*here, *taken.values()))
            if key not in known:
                self.spend(1)
                inner = replace(context, environment=dict(taken)) if op.regions else context
                made = [_tidy(value) for value in interpret(op, here, inner)]
                self.spend(sum(_words(value.term) for value in made))
                known[key] = [self.everywhere(value) for value in made]
            columns.append([values[k] for values in known[key]])
        return [tuple(column[n] for column in columns) for n in range(len(op.results))]

    def spend(self, operations: int) -> None:
        """Count operations that were worked out. Raises `TooMuchError` where there are too many."""
        self.left -= operations
        if self.left < 0:
            raise TooMuchError


def _tidy(value: Value) -> Value:
    """The value with what was added up piece by piece as one sum, and by name where it is nested too deeply."""
    term = joined(value.term) if is_float(value.type.dtype) else value.term
    if not allows("nested_apart", nesting(term)):
        term = define("term", (), (term,), dtype=value.type.dtype if value.type.dtype == "i1" else "")
    return Value(value.type, term)


def _words(p: Poly) -> int:
    """How many words the longest number in a term fills: those of `x = x * (x + x)` double each turn."""
    longest = max((max(map(abs, c.as_integer_ratio())) for _, c in p.items), default=0)
    return longest.bit_length() // sys.int_info.bits_per_digit


def same(values: Sequence[Any]) -> bool:
    """Whether all devices hold one object."""
    return all(value is values[0] for value in values)
