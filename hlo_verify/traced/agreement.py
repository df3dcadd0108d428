"""Whether two functions take and return the same: asked before anything is proved, since they are no pair otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.traced.arguments import Given, is_array, shapes
from hlo_verify.traced.functions import Function
from hlo_verify.traced.stages import Stage, arguments, stage_of

Leaf = tuple[str, str]
"""Where an array is in what a function returns, and its type."""


def check_agreement(first: tuple[Function, Stage], second: tuple[Function, Stage]) -> None:
    """Raise `InputError` where two functions take or return other arrays."""
    names, stages = [str(function) for function, _ in (first, second)], (first[1], second[1])
    counts = [arguments(stage) for stage in stages]
    if counts[0] != counts[1]:
        raise _differ(
            f"{names[0]} takes {_arrays(counts[0])} and {names[1]} {_arrays(counts[1])}; bind what one of them alone "
            "takes: functools.partial, or a lambda"
        )
    taken = [leaves_of_arguments(stage.args_info) for stage in stages]
    for (where, one), (there, other) in zip(*taken, strict=True):
        if first[0].is_of_nnx and second[0].is_of_nnx and where != there:
            raise _differ(f"the modules of flax are grouped otherwise: {where} of {names[0]}, {there} of {names[1]}")
        if one != other:
            raise _differ(f"{where} is {one} of {names[0]} and {other} of {names[1]}")
    _check_results(names, *(_leaves(stage.out_info, "result") for stage in stages))
    check_returns(*first)


def check_returns(function: Function, stage: Stage) -> None:
    """Raise `InputError` where a function returns no arrays."""
    if not jax.tree.leaves(stage.out_info):
        raise InputError(
            f"{function} returns no arrays, so that there is nothing to verify: let it return what is to be right",
            Input.UNSUPPORTED_MODULE,
        )


def check_fits(function: Function, stage: Stage, given: Given) -> None:
    """Raise `InputError` where a function was lowered for other arrays than are given: JAX is not asked about these.

    Nothing need be given. Of what JAX takes for no array it is not known whether it is one for the function.
    """
    if stage_of(function.given) is None or not jax.tree.leaves(given):
        return
    try:
        mine = leaves_of_arguments(jax.eval_shape(lambda given: given, shapes(given, distributed=False)))
    except TypeError:
        return
    theirs = leaves_of_arguments(stage.args_info)
    made = f"{function} was traced, lowered or compiled for"
    advice = "leave the arguments out, or pass the function that it was made of"
    if len(mine) != len(theirs):
        if all(map(is_array, jax.tree.leaves(given))):
            raise _differ(f"{made} {_arrays(len(theirs))}, and is given {_arrays(len(mine))}: {advice}")
        return
    for (where, one), (_, other) in zip(theirs, mine, strict=True):
        if one != other:
            raise _differ(f"{made} {where} of {one}, and is given {other}: {advice}")


def _check_results(names: Sequence[str], ones: Sequence[Leaf], others: Sequence[Leaf]) -> None:
    paths, other_paths = ([where for where, _ in leaves] for leaves in (ones, others))
    for one, other, has, more in ((*names, paths, other_paths), (*names[::-1], other_paths, paths)):
        alone = [path for path in has if path not in more]
        if alone:
            count = f"they return {len(has)} and {len(more)} results"
            count = count if len(has) != len(more) else f"it returns {', '.join(more[:4])}"
            raise _differ(f"{one} returns {', '.join(alone[:4])}, which {other} does not: {count}")
    for (where, one_type), (_, other_type) in zip(ones, others, strict=True):
        if one_type != other_type:
            raise _differ(
                f"{where} is {one_type} of {names[0]} and {other_type} of {names[1]}{_hint(one_type, other_type)}"
            )


def _hint(one: str, other: str) -> str:
    """What makes two types differ as a rule."""
    if one.partition("[")[2] == other.partition("[")[2]:
        return "; convert one of them"
    return (
        "; a shard_map puts side by side what devices return along the axes that out_specs names, and P() takes it for "
        "the same on all"
    )


def leaves_of_arguments(tree: Any) -> list[Leaf]:
    """The arrays that a function takes, each as messages call it: `argument 0['w']`, `argument scale`."""
    positional, named = tree
    found = [each for n, part in enumerate(positional) for each in _leaves(part, f"argument {n}")]
    return found + [each for name, part in sorted(named.items()) for each in _leaves(part, f"argument {name}")]


def _leaves(tree: Any, root: str) -> list[Leaf]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(root + jax.tree_util.keystr(path).removesuffix(".value"), _type(leaf)) for path, leaf in leaves]


def _type(leaf: Any) -> str:
    return f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"


def _arrays(count: int) -> str:
    return "1 array" if count == 1 else f"{count} arrays"


def _differ(message: str) -> InputError:
    return InputError(message, Input.NOT_ALIKE)
