"""The arguments that a function is traced for: which of their leaves are arrays, and that none is distributed."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import iscoroutine, isgenerator
from typing import Any

import jax

Given = tuple[tuple[Any, ...], dict[str, Any]]
"""Arguments by position and by name."""

NUMBERS = (bool, int, float, complex)


def is_array(leaf: object) -> bool:
    """Whether a leaf is an array, or a shape and type in the place of one."""
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def has_arrays(tree: object) -> bool:
    """Whether a tree has arrays in it, or numbers that JAX takes for arrays wherever it traces them."""
    return any(is_array(leaf) or isinstance(leaf, float | complex) for leaf in jax.tree.leaves(tree))


def shapes(tree: Any, *, distributed: bool) -> Any:
    """The arguments with shape and type in the place of arrays: of all for a reference, and of those that lie on one
    device for a function that is distributed, which may be meant for others."""

    def shape(leaf: Any) -> Any:
        sharding = getattr(leaf, "sharding", None)
        if not is_array(leaf) or sharding is None or (distributed and sharding.num_devices > 1):
            return leaf
        of: Any = jax.ShapeDtypeStruct
        return of(leaf.shape, leaf.dtype, weak_type=getattr(leaf, "weak_type", False))

    return jax.tree.map(shape, tree)


def odd_arguments(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> str:
    """What is odd about arguments for which a function was not traced, as a hint; empty if nothing is."""
    named = {f"argument {n}": value for n, value in enumerate(arguments)}
    named |= {f"argument {name}": value for name, value in keywords.items()}
    if not named:
        return "; arguments come after the functions: check(f, g, x, y)"
    for what, value in named.items():
        if isinstance(value, tuple | list) and value and all(type(each) is int for each in value):
            shape = f"jax.ShapeDtypeStruct({tuple(value)}, jnp.float32)"
            return f"; {what} is a {type(value).__name__} of numbers, and an array of that shape is {shape}"
        leaves = jax.tree.leaves(value, is_leaf=_is_none)
        other = next((leaf for leaf in leaves if not is_array(leaf) and not isinstance(leaf, NUMBERS)), what)
        if other is not what:
            kind = "None" if other is None else f"a {type(other).__name__}"
            return (
                f"; {what} is {kind if other is value else f'or holds {kind}'}, which is no array, nor the shape of one"
            )
    return ""


def jitted(
    function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any], static_numbers: bool
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """A plain function under `jax.jit`, with what it is to be traced for.

    Leaves that are no arrays (functions, strings, and numbers too if they are static) stay as they are, and are left
    out of what it returns, as `equinox.filter_jit` does.
    """

    def is_dynamic(leaf: object) -> bool:
        return is_array(leaf) or (isinstance(leaf, NUMBERS) and not static_numbers)

    given = arguments, keywords
    dynamic = jax.tree.map(lambda leaf: leaf if is_dynamic(leaf) else None, given)
    static = jax.tree.map(lambda leaf: None if is_dynamic(leaf) else leaf, given)

    @wraps(function, updated=())
    def called(*some: Any, **others: Any) -> Any:
        merged, named = jax.tree.map(_merged, (some, others), static, is_leaf=_is_none)
        returned = function(*merged, **named)
        if isgenerator(returned) or iscoroutine(returned):
            raise TypeError(f"it is a {type(returned).__name__} function, which returns no arrays: no yield, no async")
        return jax.tree.map(lambda leaf: leaf if is_array(leaf) or isinstance(leaf, NUMBERS) else None, returned)

    return jax.jit(called, keep_unused=True), *dynamic


def _is_none(leaf: object) -> bool:
    return leaf is None


def _merged(dynamic: Any, static: Any) -> Any:
    return static if dynamic is None else dynamic
