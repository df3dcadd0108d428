"""The arguments that a function is traced for: which of their leaves are arrays, and that none is distributed."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import jax

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
        return jax.tree.map(lambda leaf: leaf if is_array(leaf) or isinstance(leaf, NUMBERS) else None, returned)

    return jax.jit(called, keep_unused=True), *dynamic


def _is_none(leaf: object) -> bool:
    return leaf is None


def _merged(dynamic: Any, static: Any) -> Any:
    return static if dynamic is None else dynamic
