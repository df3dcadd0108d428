"""A plan: which programs each rank runs, in which order, what they hand each other, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any

from hlo_verify.plans import names, parameters
from hlo_verify.plans.kinds import wrong
from hlo_verify.plans.steps import Names, Run, Step, said, transfers

if TYPE_CHECKING:
    from hlo_verify.schedules.schedule import Schedule


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True, eq=False)
class Plan:
    """Several programs that together compute one function: `check(reference, plan, *args)` proves that they do.

    It is a function of its arguments, whose names are `takes`, and can be called as one. `ranks` has the steps of each
    rank, in their order; arguments are there on all ranks, all else where it was made or received. Values have one name
    a rank, are made before they are taken, and are all taken by somebody. `returns` is a tree of names: `y` is on one
    rank alone, `y@2` is that of rank 2, and `y@*` stands for that of each rank, all of which have to be right.

    Functions of several ranks may meet in collectives (`lax.psum(x, "model")`, as under `jax.shard_map` with
    `check_vma=False`) along the axes of `mesh`, which number the ranks, the last one fastest.

    A send waits for its receive, unless `buffered_sends`. `schedule` is what a plan of `Plan.pipeline` was made of.

    Raises `InputError` for a plan that cannot be carried out.
    """

    takes: Sequence[str]
    ranks: Sequence[Sequence[Step]]
    returns: Names
    mesh: Mapping[str, int] = field(default_factory=dict)
    buffered_sends: bool = False
    schedule: Schedule | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "takes", parameters.arguments(self.takes))
        object.__setattr__(self, "ranks", parameters.ranks(self.ranks))
        object.__setattr__(self, "mesh", parameters.mesh(self.mesh))
        parameters.check_returns(self.returns)
        parameters.check_flag(parameters.PLAN, "buffered_sends", self.buffered_sends)
        parameters.check_schedule(self.schedule)
        names.check(self.takes, self.ranks, self.returns)
        count = 1
        for size in self.mesh.values():
            count *= size
        if self.mesh and count != len(self.ranks):
            raise wrong(f"the mesh {dict(self.mesh)} is of {count} ranks, and the plan has {len(self.ranks)}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the plan computes; under `jax.jit` or on arrays. Raises `InputError` where ranks wait for each other."""
        from hlo_verify.plans.course import carried_out

        return carried_out(self, self.bound(args, kwargs))

    def bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by name."""
        values = {**dict(zip(self.takes, args, strict=False)), **kwargs}
        if len(args) + len(kwargs) != len(self.takes) or values.keys() != set(self.takes):
            given = [f"{len(args)} by position"] * bool(args) + [", ".join(kwargs)] * bool(kwargs)
            raise wrong(f"the plan takes {', '.join(self.takes)}, and was given {' and '.join(given) or 'nothing'}")
        return values

    def __str__(self) -> str:
        """A line a step."""
        lines = []
        for rank, steps in enumerate(self.ranks):
            lines += [f"rank {rank}"] + [f"  {place + 1:<3} {said(step)}" for place, step in enumerate(steps)]
        return "\n".join([*lines, f"returns {', '.join(names_of(self.returns))}"])

    @property
    def summary(self) -> str:
        """What the plan is, in a line of a report."""
        programs = sum(isinstance(step, Run) for steps in self.ranks for step in steps)
        sent = sum(len(transfers(step)) for steps in self.ranks for step in steps) // 2
        counted = [
            f"{count} {word}{'' if count == 1 else 's'}"
            for count, word in ((len(self.ranks), "rank"), (programs, "program"), (sent, "transfer"))
        ]
        return f"the reference with a plan of {', '.join(counted)}"

    def like(self, reference: Any) -> Any:
        """The reference, returning as many copies of a result as the plan returns of a value that is on each rank."""
        if not any(names.place_of(name)[1] == names.EVERY for name in names_of(self.returns)):
            return reference
        if not callable(reference):
            raise wrong("the plan returns the values of all ranks (@*): pass the reference as a function")
        from hlo_verify.plans.course import copies

        inner: Callable[..., Any] = reference

        @wraps(inner, updated=())
        def copied(*args: Any, **kwargs: Any) -> Any:
            return copies(self, inner(*args, **kwargs))

        return copied

    @staticmethod
    def pipeline(stages: Sequence[Callable[..., Any]], **options: Any) -> Plan:
        """See `hlo_verify.plans.pipelines.pipeline`."""
        from hlo_verify.plans.pipelines import pipeline

        return pipeline(stages, **options)


def names_of(returns: Names) -> list[str]:
    """The names of what a plan returns."""
    from hlo_verify.plans.steps import names as all_of

    return list(all_of(returns))
