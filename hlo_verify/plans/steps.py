"""What a rank of a plan does, step by step: it runs programs, sends and receives values, adds up and puts together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import jax

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.plans.kinds import call, check_like, check_name, check_rank, check_values, is_number, shown, wrong

NOTHING = "_"
"""The name of what a program gives and nobody needs."""

How = Literal["sum", "mean"]
Names: TypeAlias = "str | list[Names] | tuple[Names, ...] | dict[str, Names]"
"""A name, or a tree of names."""


@dataclass(frozen=True, slots=True)
class Run:
    """A program: a function of JAX, what it takes, and how what it returns is called: `Run(stage, ["w", "x"], "h")`.

    Of `takes`, text is the name of a value that the rank has, or of an argument of the plan: `params/0` is a part of
    one, `x[2/4]` the third of four equal parts of its first dimension, `x[6:8]` some of its rows. All else is a value
    itself. `gives` is a name for what is returned, or a tuple, list or table of names for its parts; `_` leaves a part.
    """

    function: Callable[..., Any]
    takes: str | list[Any] | tuple[Any, ...]
    gives: Names

    def __post_init__(self) -> None:
        said = call("Run", self.function, self.takes, self.gives)
        if not callable(self.function):
            raise wrong(f"{said}: a program is a function, and not what it returned")
        if not isinstance(self.takes, str | tuple | list):
            raise wrong(f"{said}: it takes a name or a list of names and values")
        try:
            list(names(self.gives))
        except InputError as error:
            raise error.within(said) from None

    def __str__(self) -> str:
        return f"{name_of(self.function)}({', '.join(map(_shown, self.inputs))}) -> {', '.join(names(self.gives))}"

    @property
    def inputs(self) -> tuple[Any, ...]:
        """What the function is called with."""
        return (self.takes,) if isinstance(self.takes, str) else tuple(self.takes)


@dataclass(frozen=True, slots=True)
class Send:
    """A value goes to another rank: `Send("h", to=1)`."""

    value: str
    to: int

    def __post_init__(self) -> None:
        said = call("Send", self.value, self.to)
        check_name(self.value, said)
        check_rank(self.to, said)

    def __str__(self) -> str:
        return f"sends {self.value} to rank {self.to}"


@dataclass(frozen=True, slots=True)
class Receive:
    """The next value that another rank sends, and how it is called here: `Receive("h", source=0)`.

    `like` says of which shapes and types it has to be: an array, a `jax.ShapeDtypeStruct`, or a tree of them.
    """

    gives: str
    source: int
    like: object = None

    def __post_init__(self) -> None:
        said = call("Receive", self.gives, self.source)
        check_name(self.gives, said)
        check_rank(self.source, said)
        check_like(self.like, jax.tree.leaves, call("Receive", self.gives, self.source, like=self.like))

    def __str__(self) -> str:
        return f"receives {self.gives} from rank {self.source}"


@dataclass(frozen=True, slots=True)
class Accumulate:
    """The sum or the mean of values of one shape, such as the gradients of all microbatches."""

    how: How
    values: tuple[str, ...] | list[str]
    gives: str

    def __post_init__(self) -> None:
        said = call("Accumulate", self.how, self.values, self.gives)
        if not isinstance(self.how, str) or self.how not in get_args(How):
            raise wrong(f"{said}: values are accumulated by 'sum' or by 'mean'")
        check_values(self.values, said)
        check_name(self.gives, said)

    def __str__(self) -> str:
        return f"{self.how} of {', '.join(self.values)} -> {self.gives}"


@dataclass(frozen=True, slots=True)
class Join:
    """Values side by side along a dimension, such as the results of all microbatches."""

    values: tuple[str, ...] | list[str]
    gives: str
    axis: int = 0

    def __post_init__(self) -> None:
        said = call("Join", self.values, self.gives, axis=self.axis)
        check_values(self.values, said)
        check_name(self.gives, said)
        if not is_number(self.axis):
            raise wrong(f"{said}: the axis is a number, that of the dimension along which they are joined")

    def __str__(self) -> str:
        return f"{', '.join(self.values)} side by side -> {self.gives}"


Transfer: TypeAlias = Send | Receive
Step: TypeAlias = "Run | Transfer | Accumulate | Join | tuple[Transfer, ...] | list[Transfer]"
"""One of these, or transfers that are posted at once."""


def transfers(step: Step) -> tuple[Transfer, ...]:
    """The transfers of a step; none of one that computes."""
    if isinstance(step, tuple | list):
        return tuple(step)
    return (step,) if isinstance(step, Send | Receive) else ()


def taken(step: Step) -> Iterator[str]:
    """The names of the values that a step needs."""
    if isinstance(step, Run):
        yield from (value for value in step.inputs if isinstance(value, str))
    elif isinstance(step, Accumulate | Join):
        yield from step.values
    else:
        yield from (each.value for each in transfers(step) if isinstance(each, Send))


def given(step: Step) -> Iterator[str]:
    """The names of the values that a step makes."""
    if isinstance(step, Run):
        yield from (name for name in names(step.gives) if name != NOTHING)
    elif isinstance(step, Accumulate | Join):
        yield step.gives
    else:
        yield from (each.gives for each in transfers(step) if isinstance(each, Receive))


def names(tree: Names) -> Iterator[str]:
    """The names in a tree of names."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict):
        for part in tree.values():
            yield from names(part)
    elif isinstance(tree, tuple | list):
        for part in tree:
            yield from names(part)
    else:
        raise wrong(f"{shown(tree)} is no name; a plan names values by text")


def name_of(function: Any) -> str:
    """How a program is called."""
    while hasattr(function, "func"):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def said(step: Step) -> str:
    """A step in words."""
    return " and ".join(map(str, step)) if isinstance(step, tuple | list) else str(step)


def _shown(value: object) -> str:
    return value if isinstance(value, str) else f"a {type(value).__name__}"
