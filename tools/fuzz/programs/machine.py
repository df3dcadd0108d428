"""What a program computes, on all devices and for many inputs at once, by numpy alone.

A value is an array (inputs, devices, *shape). Devices go through loops and branches together; what comes of it is kept
for those that take part. Written apart from hlo_verify, which it judges.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tools.fuzz.programs import meanings
from tools.fuzz.programs.elementwise import DTYPES, NAMES, REAL_NUMBERS, Array, Meaningless, apply, combine, near
from tools.fuzz.programs.exchanges import COLLECTIVES
from tools.fuzz.programs.program import Block, Function, Kind, Node, identity

TURNS = 40
"""Of a loop, the most turns that are taken; one that goes on is taken for endless."""
ENDLESS = "a loop goes on"
ADD_UP = ("dot_general", "reduce", "reduce_window")
"""Operations that compute numbers, beside those that are elementwise and what devices exchange."""


@dataclass(slots=True)
class Machine:
    """`defined` says for which inputs everything that was done is defined; `greatest` is the largest number met, and
    `poles` says for which inputs finite numbers made one that is none."""

    function: Function
    inputs: int
    devices: int
    generator: np.random.Generator
    defined: Array = field(init=False)
    greatest: Array = field(init=False)
    poles: Array = field(init=False)

    def __post_init__(self) -> None:
        self.defined = np.ones(self.inputs, bool)
        self.greatest = np.ones(self.inputs)
        self.poles = np.zeros(self.inputs, bool)

    def run(self, arguments: list[Array]) -> list[Array]:
        """The results. Raises `Meaningless`."""
        values: dict[int, Array] = {}
        with np.errstate(all="ignore"):
            return self.block(self.function.body, arguments, values, np.ones((self.inputs, self.devices), bool))

    def block(self, block: Block, arguments: list[Array], values: dict[int, Array], active: Array) -> list[Array]:
        values.update(zip(block.arguments, arguments, strict=True))
        for node in block.nodes:
            args = [values[value] for value in node.inputs]
            if node.op in CONTROL:
                found = CONTROL[node.op](self, node, args, values, active)
            else:
                found = self.operation(node, args, active)
            values.update(zip(node.outputs, found, strict=True))
        return [values[value] for value in block.results]

    def operation(self, node: Node, args: list[Array], active: Array) -> list[Array]:
        kinds = [self.function.kinds[value] for value in node.inputs]
        results = [self.function.kinds[value] for value in node.outputs]
        if node.op in NAMES:
            found, bad = apply(node, kinds, results[0], args)
            if bad is not None:
                self.defined &= ~(_any(bad) & active).any(1)
            if results[0].is_float:
                odd = ~np.isfinite(found)
                if odd.any():
                    for a in args:
                        odd = odd & (np.isfinite(a).reshape(a.shape + (1,) * (found.ndim - a.ndim)))
                    self.poles |= (_any(odd) & active).any(1)
            return self._met([found])
        if node.op in COLLECTIVES:
            groups = node.attributes.get("groups") or [list(range(self.devices))]
            for group in groups:
                together = active[:, group]
                if (together != together[:, :1]).any():
                    raise Meaningless("devices of a group go different ways")
            return self._met([COLLECTIVES[node.op](node, args[0])])
        found = OTHERS[node.op](self, node, args, results)
        return self._met(found) if node.op in ADD_UP else found

    def _met(self, found: list[Array]) -> list[Array]:
        """What is computed, once its size is known, which roundings go by."""
        for a in found:
            if a.dtype.kind in "fc":
                sizes = np.where(np.isfinite(a), np.abs(a), 0).reshape(self.inputs, -1)
                self.greatest = np.maximum(self.greatest, sizes.max(1, initial=0))
        return found

    def tell_apart(self, a: Array, axis: int) -> None:
        """Inputs at which numbers are almost equal say nothing of their order."""
        if a.dtype.kind == "f":
            together = np.moveaxis(np.sort(a, axis), axis, -1)
            self.defined &= ~near(together[..., 1:], together[..., :-1]).reshape(self.inputs, -1).any(1)

    def random(self, kind: Kind) -> Array:
        """Numbers that nobody can know."""
        shape = (self.inputs, self.devices, *kind.shape)
        if kind.dtype == "i1":
            return self.generator.integers(0, 2, shape).astype(bool)
        if kind.is_integer:
            limits = np.iinfo(DTYPES[kind.dtype])
            return self.generator.integers(limits.min, limits.max, shape, dtype=DTYPES[kind.dtype], endpoint=True)
        return self.generator.uniform(-4, 4, shape).astype(REAL_NUMBERS)


def _any(bad: Array) -> Array:
    return bad.reshape(*bad.shape[:2], -1).any(-1)


def _mask(active: Array, a: Array) -> Array:
    return active.reshape(active.shape + (1,) * (a.ndim - 2))


# Control flow


def _while(machine: Machine, node: Node, args: list[Array], values: dict[int, Array], active: Array) -> list[Array]:
    condition, body = node.regions
    for _ in range(TURNS):
        (goes_on,) = machine.block(condition, args, values, active)
        active = active & goes_on
        if not active.any():
            return args
        found = machine.block(body, args, values, active)
        args = [np.where(_mask(active, new), new, old) for new, old in zip(found, args, strict=True)]
    raise Meaningless(ENDLESS)


def _case(machine: Machine, node: Node, args: list[Array], values: dict[int, Array], active: Array) -> list[Array]:
    (index,) = args
    count = len(node.regions)
    out_of_range = (index < 0) | (index >= count)
    chosen = np.where(index, 0, 1) if node.op == "if" else np.where(out_of_range, count - 1, index)
    results: list[Array] = []
    for number, block in enumerate(node.regions):
        here = active & (chosen == number)
        found = machine.block(block, [], values, here)
        results = [np.where(_mask(here, a), a, b) for a, b in zip(found, results or found, strict=True)]
    return results


def _call(machine: Machine, node: Node, args: list[Array], values: dict[int, Array], active: Array) -> list[Array]:
    return machine.block(node.regions[0], args, values, active)


CONTROL: dict[str, Callable[..., list[Array]]] = {"while": _while, "if": _case, "case": _case, "call": _call}


# Everything else: a function of the machine, the operation, its operands and its results' types


def _constant(machine: Machine, node: Node, args: list[Array], results: list[Kind]) -> list[Array]:
    value = np.asarray(node.attributes["value"]).astype(DTYPES[results[0].dtype])
    return [np.broadcast_to(value, (machine.inputs, machine.devices, *results[0].shape))]


def _iota(machine: Machine, node: Node, args: list[Array], results: list[Kind]) -> list[Array]:
    (kind,), dim = results, node.attributes["dim"]
    numbers = np.arange(kind.shape[dim]).astype(DTYPES[kind.dtype])
    numbers = numbers.reshape([-1 if k == dim else 1 for k in range(len(kind.shape))])
    return [np.broadcast_to(numbers, (machine.inputs, machine.devices, *kind.shape))]


def _partition(machine: Machine, node: Node, args: list[Array], results: list[Kind]) -> list[Array]:
    return [np.broadcast_to(np.arange(machine.devices, dtype=np.uint32), (machine.inputs, machine.devices))]


def _reshape(machine: Machine, node: Node, args: list[Array], results: list[Kind]) -> list[Array]:
    return [args[0].reshape(args[0].shape[:2] + results[0].shape)]


def _broadcast_in_dim(machine: Machine, node: Node, args: list[Array], results: list[Kind]) -> list[Array]:
    (a,), shape, dims = args, results[0].shape, node.attributes["dims"]
    order = np.argsort(dims, kind="stable")
    a = a.transpose(0, 1, *(2 + int(k) for k in order))
    sizes = [1] * len(shape)
    for k, n in zip(sorted(dims), a.shape[2:], strict=True):
        sizes[k] = n
    return [np.broadcast_to(a.reshape(a.shape[:2] + tuple(sizes)), a.shape[:2] + shape)]


def _transpose(machine: Machine, node: Node, args: list[Array], results: list[Kind]) -> list[Array]:
    return [args[0].transpose(0, 1, *(2 + k for k in node.attributes["order"]))]


def _reverse(machine: Machine, node: Node, args: list[Array], results: list[Kind]) -> list[Array]:
    return [np.flip(args[0], [2 + k for k in node.attributes["dims"]])]


def _slice(machine: Machine, node: Node, args: list[Array], results: list[Kind]) -> list[Array]:
    bounds = zip(*(node.attributes[name] for name in ("starts", "limits", "strides")), strict=True)
    return [args[0][(slice(None), slice(None), *(slice(*each) for each in bounds))]]


def _pad(machine: Machine, node: Node, args: list[Array], results: list[Kind]) -> list[Array]:
    low, high = node.attributes["low"], node.attributes["high"]
    return [meanings.padded(*args, low, high, node.attributes.get("inner", (0,) * len(low)))]


def _windows(machine: Machine, node: Node, args: list[Array], results: list[Kind]) -> list[Array]:
    return [meanings.windows(args[0], node, results[0].dtype)]


def _bits(machine: Machine, node: Node, args: list[Array], results: list[Kind]) -> list[Array]:
    return meanings.bits(args[0], results)


def _concatenate(machine: Machine, node: Node, args: list[Array], results: list[Kind]) -> list[Array]:
    return [np.concatenate(args, axis=2 + node.attributes["dim"])]


def _reduce(machine: Machine, node: Node, args: list[Array], results: list[Kind]) -> list[Array]:
    (a,), name = args, node.attributes["combine"]
    dtype = "i1" if a.dtype == bool else next(k for k, v in DTYPES.items() if v == a.dtype)
    start = np.full((*a.shape[:2], 1), node.attributes.get("start", identity(name, dtype))).astype(a.dtype)
    dims = node.attributes["dims"]
    rest = [2 + k for k in range(a.ndim - 2) if k not in dims]
    flat = a.transpose(0, 1, *(2 + k for k in dims), *rest)
    count = math.prod(a.shape[2 + k] for k in dims)
    flat = flat.reshape(*a.shape[:2], count, *(a.shape[k] for k in rest))
    start = np.broadcast_to(start.reshape(*start.shape, *(1,) * len(rest)), (*a.shape[:2], 1, *flat.shape[3:]))
    return [combine(name, np.concatenate([flat, start], axis=2), 2)]


def _argmax(machine: Machine, node: Node, args: list[Array], results: list[Kind]) -> list[Array]:
    a, index = args
    axis = 2 + node.attributes["dim"]
    machine.tell_apart(a, axis)
    best = a.max(axis, keepdims=True)
    if node.attributes["ties"] == "LT":
        numbers = np.where(a == best, index, np.iinfo(index.dtype).max).min(axis)
    else:
        numbers = np.where(a == best, index, np.iinfo(index.dtype).min).max(axis)
    # What a reduction starts from is one of the operands: the least value there is, at 0.
    from_start = best.squeeze(axis) == identity("maximum", results[0].dtype)
    numbers = np.where(from_start, (np.minimum if node.attributes["ties"] == "LT" else np.maximum)(numbers, 0), numbers)
    return [best.squeeze(axis), numbers.astype(index.dtype)]


def _dot(machine: Machine, node: Node, args: list[Array], results: list[Kind]) -> list[Array]:
    a, b = args
    (batch_a, batch_b), (over_a, over_b) = node.attributes["batch"], node.attributes["contract"]
    letters = iter("cdefghijklmnop")
    names_a, names_b = [next(letters) for _ in a.shape[2:]], [next(letters) for _ in b.shape[2:]]
    for x, y in (*zip(batch_a, batch_b, strict=True), *zip(over_a, over_b, strict=True)):
        names_b[y] = names_a[x]
    free = [n for k, n in enumerate(names_a) if k not in (*batch_a, *over_a)]
    free += [n for k, n in enumerate(names_b) if k not in (*batch_b, *over_b)]
    result = [names_a[k] for k in batch_a] + free
    text = f"ab{''.join(names_a)},ab{''.join(names_b)}->ab{''.join(result)}"
    return [np.einsum(text, a, b).astype(a.dtype)]


def _starts(operand: Array, starts: list[Array], sizes: tuple[int, ...]) -> list[Array]:
    """Where slices start: clamped, so that they lie inside."""
    limits = [n - size for n, size in zip(operand.shape[2:], sizes, strict=True)]
    return [np.clip(start.astype(object), 0, limit).astype(int) for start, limit in zip(starts, limits, strict=True)]


def _at(operand: Array, starts: list[Array], sizes: tuple[int, ...]) -> tuple[Array, ...]:
    rank = len(sizes)
    found: list[Array] = [k.reshape(k.shape + (1,) * rank) for k in np.ix_(*map(np.arange, operand.shape[:2]))]
    for k, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        steps = np.arange(size).reshape([-1 if j == k else 1 for j in range(rank)])
        found.append(start.reshape(start.shape + (1,) * rank) + steps)
    return tuple(found)


def _dynamic_slice(machine: Machine, node: Node, args: list[Array], results: list[Kind]) -> list[Array]:
    operand, *starts = args
    sizes = results[0].shape
    return [operand[_at(operand, _starts(operand, starts, sizes), sizes)]]


def _dynamic_update_slice(machine: Machine, node: Node, args: list[Array], results: list[Kind]) -> list[Array]:
    operand, update, *starts = args
    found = operand.copy()
    sizes = update.shape[2:]
    found[_at(operand, _starts(operand, starts, sizes), sizes)] = update
    return [found]


def _gather(machine: Machine, node: Node, args: list[Array], results: list[Kind]) -> list[Array]:
    """Rows by their numbers, which are clamped."""
    operand, index = args[0], args[1][..., 0]
    rows = np.clip(index.astype(object), 0, operand.shape[2] - 1).astype(int)
    first, second = np.ix_(*map(np.arange, operand.shape[:2]))
    return [operand[first[..., None], second[..., None], rows]]


def _scatter(machine: Machine, node: Node, args: list[Array], results: list[Kind]) -> list[Array]:
    """Updates to rows; those of rows that there are not are left out. Several to one row, where the last one counts,
    come in any order."""
    operand, index, update = args[0], args[1][..., 0], args[2]
    found, name = operand.copy(), node.attributes["combine"]
    inputs, devices = np.indices(operand.shape[:2])
    written = np.zeros(operand.shape[:3], bool)
    for k in range(index.shape[2]):
        row = index[:, :, k].astype(object)
        inside = ((row >= 0) & (row < operand.shape[2])).astype(bool)
        row = np.where(inside, row, 0).astype(int)
        old = found[inputs, devices, row]
        new = update[:, :, k] if name == "second" else combine(name, np.stack([old, update[:, :, k]]), 0)
        again = written[inputs, devices, row] & inside
        if name == "second" or node.attributes.get("unique"):
            machine.defined &= ~again.any(1)
        written[inputs, devices, row] |= inside
        found[inputs, devices, row] = np.where(_mask(inside, new), new, old)
    return [found]


def _sort(machine: Machine, node: Node, args: list[Array], results: list[Kind]) -> list[Array]:
    axis = 2 + node.attributes["dim"]
    machine.tell_apart(args[0], axis)
    if node.attributes["direction"] == "LT":
        order = np.argsort(args[0], axis=axis, kind="stable")
    else:  # stable and descending: the last one of the reversed in ascending order is the first
        flipped = np.flip(args[0], axis)
        order = args[0].shape[axis] - 1 - np.flip(np.argsort(flipped, axis=axis, kind="stable"), axis)
    return [np.take_along_axis(a, order, axis) for a in args]


def _unknown(machine: Machine, node: Node, args: list[Array], results: list[Kind]) -> list[Array]:
    return [machine.random(kind) for kind in results]


OTHERS: dict[str, Callable[[Machine, Node, list[Array], list[Kind]], list[Array]]] = {
    "constant": _constant,
    "iota": _iota,
    "partition_id": _partition,
    "reshape": _reshape,
    "broadcast_in_dim": _broadcast_in_dim,
    "transpose": _transpose,
    "reverse": _reverse,
    "slice": _slice,
    "pad": _pad,
    "reduce_window": _windows,
    "rng_bit_generator": _bits,
    "concatenate": _concatenate,
    "reduce": _reduce,
    "argmax": _argmax,
    "dot_general": _dot,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "scatter": _scatter,
    "sort": _sort,
    "rng": _unknown,
    "custom_call": _unknown,
}
