"""What ranks do together: a program taken apart at its collectives, and these written out for all ranks.

The semantics are those of `jax.lax` under `jax.shard_map(..., check_vma=False)`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core, source_info_util

from hlo_verify.plans.kinds import wrong

INDEX = "axis_index"
INSIDE = (
    "jit",
    "pjit",
    "closed_call",
    "core_call",
    "checkpoint",
    "remat",
    "remat2",
    "custom_jvp_call",
    "custom_vjp_call",
)
"""Calls that run what is inside of them once."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """The axes by which ranks are numbered, the last one fastest, and their sizes."""

    axes: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def environment(self) -> list[tuple[str, int]]:
        return list(zip(self.axes, self.sizes, strict=True))

    def place(self, rank: int) -> dict[str, int]:
        """Where a rank is along each axis."""
        found = {}
        for axis, size in reversed(self.environment):
            rank, found[axis] = divmod(rank, size)
        return found

    def index(self, rank: int, axes: Sequence[str]) -> int:
        """The number of a rank among those that it meets along some axes."""
        place, number = self.place(rank), 0
        for axis in axes:
            number = number * dict(self.environment)[axis] + place[axis]
        return number

    def group(self, rank: int, axes: Sequence[str]) -> list[int]:
        """The ranks that it meets along some axes, itself too, in the order of their numbers along these."""
        sizes, place = dict(self.environment), self.place(rank)
        found = []
        for coordinates in product(*(range(sizes[axis]) for axis in axes)):
            there = {**place, **dict(zip(axes, coordinates, strict=True))}
            number = 0
            for axis in self.axes:
                number = number * sizes[axis] + there[axis]
            found.append(number)
        return found


@dataclass(frozen=True, slots=True)
class Meeting:
    """A collective at which a rank waits for others, with what it brings; `number` is its own along the axes."""

    equation: core.JaxprEqn
    axes: tuple[str, ...]
    values: tuple[Any, ...]
    program: str

    def __str__(self) -> str:
        line = source_info_util.summarize(self.equation.source_info)
        return f"{self.equation.primitive.name} over {', '.join(self.axes)} in {self.program}, {line}"

    @property
    def question(self) -> tuple[str, str, list[str]]:
        """What has to be the same on all ranks that meet."""
        types = [f"{jnp.result_type(value)}{jnp.shape(value)}" for value in self.values]
        parameters = {key: value for key, value in self.equation.params.items() if key != "perm"}
        return self.equation.primitive.name, str(sorted(parameters.items(), key=str)), types


def meets(jaxpr: Any, axes: Sequence[str]) -> bool:
    """Whether a program says anything of the axes."""
    return any(
        _axes(equation, axes) or any(meets(inner, axes) for inner in _inner(equation)) for equation in jaxpr.eqns
    )


def _axes(equation: core.JaxprEqn, known: Sequence[str]) -> tuple[str, ...]:
    found: list[str] = []
    for key in ("axes", "axis_name"):
        given = equation.params.get(key, ())
        found += [axis for axis in (given if isinstance(given, tuple | list) else (given,)) if axis in known]
    return tuple(found)


def _inner(equation: core.JaxprEqn) -> Iterator[Any]:
    for given in equation.params.values():
        for each in given if isinstance(given, tuple | list) else (given,):
            inner = getattr(each, "jaxpr", each)
            if hasattr(inner, "eqns"):
                yield inner


def programs(
    traced: Any, inputs: Sequence[Any], rank: int, mesh: Ranks, program: str
) -> Generator[Meeting, Any, list[Any]]:
    """What a traced program returns on a rank, by way of its meetings."""
    environment: dict[Any, Any] = {}

    def value(atom: Any) -> Any:
        return atom.val if isinstance(atom, core.Literal) else environment[atom]

    jaxpr, constants = (traced.jaxpr, traced.consts) if isinstance(traced, core.ClosedJaxpr) else (traced, [])
    environment.update(zip(jaxpr.constvars, constants, strict=True))
    environment.update(zip(jaxpr.invars, inputs, strict=True))
    for equation in jaxpr.eqns:
        axes = _axes(equation, mesh.axes)
        name, given = equation.primitive.name, [value(atom) for atom in equation.invars]
        inner = list(_inner(equation))
        if name == INDEX and axes:
            found: Any = [jnp.int32(mesh.index(rank, axes))]
        elif axes:
            found = yield _meeting(equation, axes, given, program)
        elif any(meets(each, mesh.axes) for each in inner):
            if name not in INSIDE or len(inner) > 1 + (name == "custom_vjp_call"):
                raise wrong(
                    f"{program}: ranks meet inside of {name} ({_line(equation)}): write the loop or the choice "
                    "out, or compare the program under jax.shard_map"
                )
            called = equation.params.get("jaxpr", equation.params.get("call_jaxpr", equation.params.get("fun_jaxpr")))
            found = yield from programs(called, given, rank, mesh, program)
        else:
            with _at(equation, rank, program), equation.ctx.manager:
                found = equation.primitive.bind(*given, **equation.primitive.get_bind_params(equation.params))
            found = found if equation.primitive.multiple_results else [found]
        environment.update(zip(equation.outvars, found, strict=True))
    return [value(atom) for atom in jaxpr.outvars]


def _meeting(equation: core.JaxprEqn, axes: tuple[str, ...], given: Sequence[Any], program: str) -> Meeting:
    named = equation.params.get("axes", equation.params.get("axis_name", ()))
    count = len(named) if isinstance(named, tuple | list) else 1
    if equation.primitive.name not in MEANINGS or len(axes) != count:
        raise wrong(
            f"{program}: {equation.primitive.name} ({_line(equation)}) is not known among the ranks of a plan; "
            f"these are: {', '.join(sorted(MEANINGS))}"
        )
    if equation.params.get("axis_index_groups") is not None:
        raise wrong(
            f"{program}: {equation.primitive.name} ({_line(equation)}) has groups by number; use axes of a mesh"
        )
    return Meeting(equation, axes, tuple(given), program)


def _line(equation: core.JaxprEqn) -> str:
    return str(source_info_util.summarize(equation.source_info))


def _at(equation: core.JaxprEqn, rank: int, program: str) -> Any:
    stack = (
        source_info_util.current_name_stack().extend(f"rank{rank}").extend(program) + equation.source_info.name_stack
    )
    return source_info_util.user_context(equation.source_info.traceback, name_stack=stack)


def met(meetings: Sequence[Meeting]) -> list[list[Any]]:
    """What each rank gets from a collective at which all are. Raises `InputError` where they are at several."""
    first = meetings[0]
    for other in meetings[1:]:
        if other.question != first.question or _permutation(other) != _permutation(first):
            raise wrong(
                f"ranks meet in different collectives: one is at {first} with {', '.join(first.question[2])}, "
                f"another at {other} with {', '.join(other.question[2])}"
            )
    meaning = MEANINGS[first.equation.primitive.name]
    with source_info_util.user_context(first.equation.source_info.traceback):
        columns = [
            meaning(list(column), first.equation.params)
            for column in zip(*(meeting.values for meeting in meetings), strict=True)
        ]
    found = [list(row) for row in zip(*columns, strict=True)]
    for meeting, row in zip(meetings, found, strict=True):
        for value, variable in zip(row, meeting.equation.outvars, strict=True):
            if jnp.shape(value) != getattr(variable.aval, "shape", None):
                raise wrong(f"{meeting}: this version of JAX means something else by it than is known")
    return found


def _permutation(meeting: Meeting) -> Any:
    return meeting.equation.params.get("perm")


def _reduced(join: Callable[[Any, Any], Any]) -> Callable[[list[Any], Mapping[str, Any]], list[Any]]:
    def meaning(values: list[Any], parameters: Mapping[str, Any]) -> list[Any]:
        total = values[0]
        for value in values[1:]:
            total = join(total, value)
        return [total] * len(values)

    return meaning


def _gathered(values: list[Any], parameters: Mapping[str, Any]) -> list[Any]:
    put = jnp.concatenate if parameters["tiled"] else jnp.stack
    return [put(values, axis=parameters["all_gather_dimension"])] * len(values)


def _scattered(values: list[Any], parameters: Mapping[str, Any]) -> list[Any]:
    total = _reduced(jnp.add)(values, {})[0]
    return _parts(total, len(values), parameters["scatter_dimension"], tiled=parameters["tiled"])


def _parts(value: Any, count: int, axis: int, *, tiled: bool) -> list[Any]:
    """Equal parts along a dimension, which is left out where there is one element in each."""
    size = value.shape[axis] // count
    parts = [jax.lax.slice_in_dim(value, n * size, (n + 1) * size, axis=axis) for n in range(count)]
    return parts if tiled else [jax.lax.squeeze(part, (axis,)) for part in parts]


def _permuted(values: list[Any], parameters: Mapping[str, Any]) -> list[Any]:
    sources, targets = zip(*parameters["perm"], strict=True) if parameters["perm"] else ((), ())
    if len(set(sources)) < len(sources) or len(set(targets)) < len(targets):
        raise wrong(f"ppermute {parameters['perm']} sends twice to one rank, or from one")
    found = [jnp.zeros_like(value) for value in values]
    for source, target in parameters["perm"]:
        found[target] = values[source]
    return found


def _exchanged(values: list[Any], parameters: Mapping[str, Any]) -> list[Any]:
    """Parts for each; where `jax.lax` is not asked to tile, it makes the dimensions that it takes away itself."""
    parts = [_parts(value, len(values), parameters["split_axis"], tiled=True) for value in values]
    return [jnp.concatenate([mine[n] for mine in parts], axis=parameters["concat_axis"]) for n in range(len(values))]


MEANINGS: Mapping[str, Callable[[list[Any], Mapping[str, Any]], list[Any]]] = {
    "psum": _reduced(jnp.add),
    "pmax": _reduced(jnp.maximum),
    "pmin": _reduced(jnp.minimum),
    "all_gather": _gathered,
    "reduce_scatter": _scattered,
    "ppermute": _permuted,
    "all_to_all": _exchanged,
}
"""By primitive, what each rank gets of what all bring, in the order of their numbers."""
