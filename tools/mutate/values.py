"""Mutations of computed values: operands, functions, constants, scales, loops."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from hlo_verify.jaxlib_api import ir, stablehlo
from tools.mutate import mlir
from tools.mutate.mlir import NotHereError, Operation
from tools.mutate.site import Site

SWAPPED = {
    "add": "subtract",
    "subtract": "add",
    "multiply": "add",
    "divide": "multiply",
    "maximum": "minimum",
    "minimum": "maximum",
    "and": "or",
    "or": "and",
    "exponential": "tanh",
    "tanh": "logistic",
    "logistic": "tanh",
    "sqrt": "rsqrt",
    "rsqrt": "sqrt",
    "sine": "cosine",
    "cosine": "sine",
    "log": "log_plus_one",
    "floor": "ceil",
}
"""What `change_function` makes of each function; those of one operand that are not here are left out."""
REDUCERS = {
    "add": ["maximum", "minimum", "multiply"],
    "maximum": ["minimum", "add"],
    "minimum": ["maximum", "add"],
    "multiply": ["add"],
    "or": ["and"],
    "and": ["or"],
}
DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")
UNARY = ("negate", "abs", "square", "erf", *(f for f in SWAPPED if f in ("exponential", "tanh", "logistic", "log")))


def swap_operands(op: Operation, site: Site) -> str:
    """Two operands of one type change places."""
    operands = list(op.operands)
    pairs = [
        (i, j)
        for i, j in itertools.combinations(range(len(operands)), 2)
        if operands[i].type == operands[j].type and operands[i] != operands[j]
    ]
    i, j = site.choose(pairs)
    op.operands[i], op.operands[j] = operands[j], operands[i]
    return f"{mlir.name(op)}: operands {i} and {j} exchanged"


def change_function(op: Operation, site: Site) -> str:
    """A similar function instead, or none at all."""
    what = mlir.name(op)
    if what in SWAPPED:
        mlir.replaced(op, SWAPPED[what], list(op.operands))
        return f"{what} became {SWAPPED[what]}"
    mlir.replace(op.results[0], op.operands[0])
    op.erase()
    return f"{what} left out"


def drop_term(op: Operation, site: Site) -> str:
    """One operand instead of the sum, product, minimum or maximum of two."""
    what, n = mlir.name(op), int(site.rng.integers(2))
    if op.operands[0] == op.operands[1]:
        n = 0
    mlir.replace(op.results[0], op.operands[n])
    op.erase()
    return f"{what}: only its operand {n} is left"


def drop_scale(op: Operation, site: Site) -> str:
    """What is multiplied with, or divided by, a constant goes on without it."""
    n = site.choose([n for n in (0, 1) if is_scale(op, n)])
    number = mlir.splat_of(op.operands[n])
    what = mlir.name(op)
    mlir.replace(op.results[0], op.operands[1 - n])
    op.erase()
    return f"{what} by {number:g} left out"


def is_scale(op: Operation, n: int) -> bool:
    """Whether operand n is a constant that the other one is scaled with."""
    return mlir.splat_of(op.operands[n]) not in (None, 0.0) and (n == 1 or mlir.name(op) == "multiply")


def insert_scale(op: Operation, site: Site) -> str:
    """A result is multiplied with, or divided by, the size of a mesh axis."""
    result, size = op.results[0], site.choose([size for size in site.mesh if size > 1])
    how = site.choose(["multiply", "divide"])
    factor = mlir.create(op, "constant", [], [result.type], {"value": mlir.splat(result.type, size)}, after=True)
    scaled = mlir.create(factor, how, [result, factor.results[0]], [result.type], after=True)
    mlir.replace(result, scaled.results[0], [scaled])
    return f"{mlir.name(op)}: result {how} {size}"


def one_device(op: Operation, site: Site) -> str:
    """On one device the result is doubled."""
    result = op.results[0]
    sizes = mlir.shape(result)
    number = int(site.rng.integers(np.prod(site.mesh)))
    ids = ir.RankedTensorType.get([], ir.IntegerType.get_unsigned(32))
    flag = ir.RankedTensorType.get([], ir.IntegerType.get_signless(1))
    flags = ir.RankedTensorType.get(list(sizes), ir.IntegerType.get_signless(1))
    double = mlir.create(op, "add", [result, result], [result.type], after=True)
    device = mlir.create(double, "partition_id", [], [ids], after=True)
    wanted = mlir.create(device, "constant", [], [ids], {"value": mlir.splat(ids, number)}, after=True)
    direction = {"comparison_direction": stablehlo.ComparisonDirectionAttr.get("EQ")}
    operands = [device.results[0], wanted.results[0]]
    equal = mlir.create(wanted, "compare", operands, [flag], direction, after=True)
    here = mlir.create(
        equal, "broadcast_in_dim", [equal.results[0]], [flags], {"broadcast_dimensions": mlir.longs([])}, after=True
    )
    chosen = mlir.create(here, "select", [here.results[0], double.results[0], result], [result.type], after=True)
    mlir.replace(result, chosen.results[0], [double, chosen])
    return f"{mlir.name(op)}: result doubled on device {number}"


def change_direction(op: Operation, site: Site) -> str:
    """A comparison in another direction."""
    before = stablehlo.ComparisonDirectionAttr(op.attributes["comparison_direction"]).value
    after = site.choose([direction for direction in DIRECTIONS if direction != before])
    op.attributes["comparison_direction"] = stablehlo.ComparisonDirectionAttr.get(after)
    return f"compare {before} became {after}"


def change_constant(op: Operation, site: Site) -> str:
    """A constant is another number: a factor, a summand or the sign differs; of an array, that of one element."""
    kind = ir.RankedTensorType(op.results[0].type)
    attribute = op.attributes["value"]
    name = str(kind.element_type)
    is_start = any(use.operand_number in mlir.initial(use.owner.operation) for use in op.results[0].uses)
    if is_start or not isinstance(attribute, ir.DenseElementsAttr) or 0 in kind.shape or name.startswith("complex"):
        raise NotHereError
    if attribute.is_splat:
        before = attribute.get_splat_value().value
        after = _another(before, name, site)
        op.attributes["value"] = mlir.splat(kind, after)
        return f"constant {before} became {after}"
    if name not in ("f32", "i32", "i64", "f64"):
        raise NotHereError
    elements = np.array(attribute)
    at = int(site.rng.integers(elements.size))
    before = elements.reshape(-1)[at].item()
    elements.reshape(-1)[at] = after = _another(before, name, site)
    op.attributes["value"] = ir.DenseElementsAttr.get(elements)
    return f"constant: element {at}, {before}, became {after}"


def _another(before: Any, name: str, site: Site) -> Any:
    if name == "i1":
        return not before
    if name.startswith(("i", "ui")):
        return site.choose([before + 1, before - 1] if before > 0 or not name.startswith("u") else [before + 1])
    if not np.isfinite(before):
        return site.choose([0.0, 1.0])
    changes = [before * 1.5, before + 1.0, -before, before * 0.1, 0.0]
    return site.choose([new for new in changes if new != before])


def stale(op: Operation, site: Site) -> str:
    """An operand is an earlier value of its type."""
    kept = mlir.initial(op)
    n = site.choose([n for n, operand in enumerate(op.operands) if mlir.is_tensor(operand) and n not in kept])
    operand = op.operands[n]
    values = [value for value in visible(op, site) if value.type == operand.type and value != operand]
    nontrivial = [value for value in values if mlir.splat_of(value) is None]
    value = site.choose(nontrivial or values)
    op.operands[n] = value
    return f"{mlir.name(op)}: operand {n} became {_describe(value)}"


def _describe(value: Any) -> str:
    if isinstance(value.owner, ir.Block):
        return f"argument {ir.BlockArgument(value).arg_number} of the function or region"
    return f"an earlier {mlir.name(value.owner)}"


def visible(op: Operation, site: Site) -> list[Any]:
    """The values that an operation may use: of its own block before it, and the block's arguments."""
    found = list(op.block.arguments)
    for other in op.block.operations:
        if other.operation == op:
            break
        found += list(other.operation.results)
    return found


def swap_branches(op: Operation, site: Site) -> str:
    """A select gives what it should not, and not what it should."""
    if op.operands[1] == op.operands[2]:
        raise NotHereError
    op.operands[1], op.operands[2] = op.operands[2], op.operands[1]
    return "select: branches exchanged"


def drop_mask(op: Operation, site: Site) -> str:
    """A select gives the same branch whatever its condition."""
    n = 1 + int(site.rng.integers(2))
    mlir.replace(op.results[0], op.operands[n])
    op.erase()
    return f"select: only its operand {n} is left"


def change_reducer(op: Operation, site: Site) -> str:
    """The elements are combined by another function."""
    inner = site.choose([i for i in mlir.children(op) if mlir.name(i) in REDUCERS])
    before = mlir.name(inner)
    after = site.choose(REDUCERS[before])
    if mlir.dtype(inner.results[0]) == "i1" and after not in ("or", "and"):
        raise NotHereError
    mlir.replaced(inner, after, list(inner.operands))
    for n in mlir.initial(op):
        op.operands[n] = mlir.constant(op, op.operands[n].type, _identity(after, mlir.dtype(op.operands[n])))
    return f"{mlir.name(op)} by {before} became one by {after}"


def _identity(reducer: str, name: str) -> float:
    """What a reducer starts with: with anything else the result of a reduce depends on how it is carried out."""
    if reducer in ("maximum", "minimum"):
        down = reducer == "maximum"
        if name.startswith("ui"):
            return 0 if down else 2 ** int(name[2:]) - 1
        if name.startswith("i"):
            return -(2 ** (int(name[1:]) - 1)) if down else 2 ** (int(name[1:]) - 1) - 1
        return -np.inf if down else np.inf
    return {"add": 0, "or": 0, "multiply": 1, "and": 1}[reducer]


def skip_last(op: Operation, site: Site) -> str:
    """The last iteration of a loop is skipped: its bound is one less."""
    compares = [inner for inner in op.regions[0].blocks[0].operations if mlir.name(inner.operation) == "compare"]
    compare = site.choose([c.operation for c in compares if mlir.dtype(c.operation.operands[1]).startswith(("i", "u"))])
    bound = compare.operands[1]
    one = mlir.constant(compare, bound.type, 1)
    compare.operands[1] = mlir.create(compare, "subtract", [bound, one], [bound.type]).results[0]
    return "while: one iteration less"


def swap_carried(op: Operation, site: Site) -> str:
    """A loop hands on two of the values that it carries in each other's place."""
    last = list(op.regions[1].blocks[0].operations)[-1].operation
    swap_operands(last, site)
    return "while: two carried values exchanged"


def keep_carried(op: Operation, site: Site) -> str:
    """A loop hands on one of its values as it got it."""
    block = op.regions[1].blocks[0]
    last, arguments = list(block.operations)[-1].operation, list(block.arguments)
    changed = [n for n, operand in enumerate(last.operands) if operand != arguments[n] and mlir.shape(operand)]
    n = site.choose(changed)
    last.operands[n] = arguments[n]
    return f"while: carried value {n} is never changed"
