"""What a module uses its arguments for, as far as that says which values to draw for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hlo_verify.evaluate.numbers import is_float, is_integer
from hlo_verify.program.ir import Function, Module, Name, Op, operations, used
from hlo_verify.program.library_calls import EVALUATED
from hlo_verify.program.op_families import CONTROL, KEEPS_INDICES, KEEPS_SIGNS, OF_POSITIVES, is_new

FACTORS = ("cholesky", "triangular_solve")


def index_limits(module: Module, *, with_updates: bool = True) -> tuple[int | None, ...]:
    """For each argument of integers that a logical module uses as indices, the size of the least dimension it indexes.

    It is found by following the argument to gathers, scatters, dynamic slices and comparisons with an iota; None where
    there are none. A guess for `integers`: tokens are below the size of the vocabulary, labels below that of classes.
    Where an update starts is asked for with `with_updates` alone: past the end it is moved back, as caches rely on.
    """
    return _least_sizes(module, lambda use: use.size, with_updates=with_updates)


def index_places(module: Module) -> tuple[int | None, ...]:
    """The same of the places at which what they index, a window of some size, lies inside: `[0, places)`."""
    return _least_sizes(module, lambda use: use.size - use.window + 1)


@dataclass(frozen=True, slots=True)
class _Use:
    """That an argument indexes a dimension of that size, at which a window of it starts."""

    source: int
    size: int
    window: int = 1
    starts_update: bool = False


def _least_sizes(
    module: Module, size_of: Callable[[_Use], int], *, with_updates: bool = True
) -> tuple[int | None, ...]:
    main = module.main
    followed = _Followed(dict(zip(main.arguments, (t.shape for t in main.argument_types), strict=True)))
    for n, (value, type_) in enumerate(zip(main.arguments, main.argument_types, strict=True)):
        followed.sources[value] = frozenset({n}) if is_integer(type_.dtype) else frozenset()
    followed.through(main)
    limits: dict[int, int] = {}
    for use in followed.uses:
        if use.starts_update and not with_updates:
            continue
        limits[use.source] = min(size_of(use), limits.get(use.source, size_of(use)))
    return tuple(limits.get(n) for n in range(len(main.arguments)))


@dataclass(slots=True)
class _Followed:
    """Where integers of arguments get to, in the bodies of loops too, and what they are used for there."""

    shapes: dict[Name, tuple[int, ...]]
    sources: dict[Name, frozenset[int]] = field(default_factory=dict)
    counted: dict[Name, int] = field(default_factory=dict)
    """The size of the iota that a value is made of."""
    uses: list[_Use] = field(default_factory=list)

    def through(self, function: Function) -> None:
        for op in function.ops:
            self.uses += _indexed(op, self.shapes, self.sources, self.counted)
            self._follow(op)
            for region in op.regions:
                self.shapes.update(zip(region.arguments, (t.shape for t in region.argument_types), strict=True))
                if op.name == "while":
                    passed = zip(region.arguments, op.operands, strict=True)
                    self.sources.update((inner, self.sources.get(v, frozenset())) for inner, v in passed)
                if op.name in CONTROL:
                    self.through(region)

    def _follow(self, op: Op) -> None:
        keeps = op.name in KEEPS_INDICES
        operands = op.operands[:1] if op.name == "dynamic_slice" else op.operands if keeps else ()
        reached = frozenset().union(*(self.sources.get(v, frozenset()) for v in operands))
        counts = [self.counted[v] for v in op.operands if v in self.counted] if keeps else []
        for value, type_ in zip(op.results, op.types, strict=True):
            self.shapes[value], self.sources[value] = type_.shape, reached
            if op.name == "iota":
                self.counted[value] = type_.shape[op.attributes["iota_dimension"]]
            elif counts:
                self.counted[value] = max(counts)


def _indexed(
    op: Op, shapes: dict[Name, tuple[int, ...]], sources: dict[Name, frozenset[int]], counted: dict[Name, int]
) -> list[_Use]:
    """Arguments that an operation takes for indices, of which dimension, and of what size the windows are."""
    none: frozenset[int] = frozenset()
    if op.name == "gather":
        windows = op.attributes["slice_sizes"]
        sizes = [(shapes[op.operands[0]][k], windows[k]) for k in op.attributes["dimension_numbers"]["start_index_map"]]
        return [_Use(source, *size) for source in sources.get(op.operands[1], none) for size in sizes]
    if op.name == "scatter":
        numbers, shape, count = op.attributes["scatter_dimension_numbers"], shapes[op.operands[0]], len(op.types)
        apart = {*numbers["inserted_window_dims"], *numbers["input_batching_dims"]}
        inside = [k for k in range(len(shape)) if k not in apart]
        updates = shapes.get(op.operands[count + 1], ())
        spans = dict(zip(inside, (updates[d] for d in numbers["update_window_dims"]), strict=False))
        found = [(shape[k], spans.get(k, 1)) for k in numbers["scatter_dims_to_operand_dims"]]
        return [_Use(source, *size) for source in sources.get(op.operands[count], none) for size in found]
    if op.name in ("dynamic_slice", "dynamic_update_slice"):
        updated = op.name == "dynamic_update_slice"
        windows = shapes[op.operands[1]] if updated else op.types[0].shape
        each = zip(op.operands[1 + updated :], shapes[op.operands[0]], windows, strict=True)
        return [_Use(source, size, window, updated) for v, size, window in each for source in sources.get(v, none)]
    if op.name == "compare":
        sides = (op.operands, op.operands[::-1])
        return [_Use(source, counted[b]) for a, b in sides if b in counted for source in sources.get(a, none)]
    return []


def fixed(function: Function) -> frozenset[Name]:
    """The values that a function, and each region in it for itself, computes from constants alone."""
    found: set[Name] = set()
    for op in operations(function):
        if op.name == "constant" or (op.name in KEEPS_INDICES and op.operands and found.issuperset(op.operands)):
            found.update(op.results)
    return frozenset(found)


def independent(function: Function) -> frozenset[Name]:
    """The values of a function, outside of regions, that depend on none of its arguments."""
    found: set[Name] = set()
    for op in function.ops:
        if found.issuperset(used(op)) and not is_new(op):
            found.update(op.results)
    return frozenset(found)


def positive_arguments(module: Module) -> frozenset[int]:
    """The arguments of a logical module that a function takes whose domain is the positive numbers, as Adam takes the
    square root of its second moments. A guess for `positive`; products of a value with itself are not followed.
    """
    main = module.main
    sources: dict[Name, frozenset[int]] = {
        value: frozenset({n})
        for n, (value, type_) in enumerate(zip(main.arguments, main.argument_types, strict=True))
        if is_float(type_.dtype)
    }
    found: frozenset[int] = frozenset()
    for op in main.ops:
        reached = [sources[v] for v in op.operands if v in sources]
        if not reached or (op.name == "multiply" and len(set(op.operands)) == 1):
            continue
        if op.name in OF_POSITIVES:
            found |= reached[0] if op.operands[0] in sources else frozenset()
        elif op.name in KEEPS_INDICES | KEEPS_SIGNS:
            sources.update(dict.fromkeys(op.results, frozenset().union(*reached)))
    return found


def reaches(module: Module) -> tuple[int, ...]:
    """For each argument of a module, how many of its results depend on it."""
    main = module.main
    sources = {value: 1 << n for n, value in enumerate(main.arguments)}
    for op in main.ops:
        reached = 0
        for value in used(op):
            reached |= sources.get(value, 0)
        sources.update(dict.fromkeys(op.results, reached))
    found = [sources.get(value, 0) for value in main.results]
    return tuple(sum(reached >> n & 1 for reached in found) for n in range(len(main.arguments)))


def ordered_sizes(module: Module) -> frozenset[int]:
    """The sizes of dimensions along which a module orders floats that it computes: of which it takes the largest, or
    their places; and of those of matrices that it takes apart, which are singular where rows are alike."""
    found: set[int] = set()
    shapes = {value: type_ for op in operations(module.main) for value, type_ in zip(op.results, op.types, strict=True)}
    shapes.update(zip(module.main.arguments, module.main.argument_types, strict=True))
    for op in operations(module.main):
        type_ = shapes.get(op.operands[0]) if op.operands else None
        if type_ is None or not is_float(type_.dtype):
            continue
        if op.name in ("chlo.top_k", "mhlo.topk"):
            found.add(type_.shape[-1])
        elif op.name == "sort":
            found.add(type_.shape[op.attributes["dimension"]])
        elif op.name in FACTORS or op.attributes.get("call_target_name") in EVALUATED:
            found.update(type_.shape[-2:])
    return frozenset(found)
