"""What `jax.jit` promises of calls, arguments and mistakes: `hlo_verify.jit` answers alike."""

from __future__ import annotations

import collections
import functools
import inspect
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.promises import Jit, Promises, X, check_alike, into, said

PROMISES: Promises = {}
promise = into(PROMISES)
pytestmark = pytest.mark.usefixtures("all_is_proved")


# What is traced, and how often


@promise
def positions_and_names_are_other_signatures(jit: Jit) -> Any:
    traced = []

    def f(x: Any, y: Any, z: Any = 1) -> Any:
        traced.append((type(y).__name__, type(z).__name__))
        return 100 * x + 10 * y + z

    g = jit(f)
    calls = [g(1, 2, 3), g(4, 5, 6), g(1, 2, z=3), g(1, 2, z=4), g(1, y=2), g(x=1, y=2), g(1, 2)]
    return calls, len(traced)


@promise
def static_arguments_are_values(jit: Jit) -> Any:
    traced = []

    def f(x: Any, n: int, flag: bool = False) -> Any:
        traced.append((n, flag))
        return x * n if flag else x

    g = jit(f, static_argnums=(1, 2))
    return [g(X, 2, True), g(X, 2, True), g(X, 3, True), g(X, 3, False), g(X, 3)], traced


@promise
def static_arguments_by_name(jit: Jit) -> Any:
    g = jit(lambda x, *, mode: x + 1 if mode == "up" else x - 1, static_argnames="mode")
    return g(X, mode="up"), g(X, mode="down"), said(lambda: g(X))


@promise
def names_follow_from_positions(jit: Jit) -> Any:
    g = jit(lambda x, n: x * n if n > 1 else x, static_argnums=1)
    return g(X, 2), g(X, n=3)


@promise
def positions_follow_from_names(jit: Jit) -> Any:
    g = jit(lambda x, n: x * n if n > 1 else x, static_argnames=("n",))
    return g(X, 2), g(X, n=3)


@promise
def negative_positions(jit: Jit) -> Any:
    return jit(lambda x, n: x * n if n > 1 else x, static_argnums=-1)(X, 2)


@promise
def static_arguments_of_equal_value(jit: Jit) -> Any:
    class Size:
        def __init__(self, n: int) -> None:
            self.n = n

        def __hash__(self) -> int:
            return hash(self.n)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Size) and self.n == other.n

    traced = []

    def f(x: Any, size: Size) -> Any:
        traced.append(size.n)
        return x * size.n

    g = jit(f, static_argnums=1)
    return g(X, Size(2)), g(X, Size(2)), g(X, Size(3)), traced


@promise
def static_arguments_have_to_be_hashable(jit: Jit) -> Any:
    return said(lambda: jit(lambda x, n: x, static_argnums=1)(X, [1])), said(
        lambda: jit(lambda x, n: x, static_argnames="n")(X, n={"a": 1})
    )


@promise
def static_positions_that_there_are_not(jit: Jit) -> Any:
    return said(lambda: jit(lambda x: x, static_argnums=3)), said(lambda: jit(lambda x: x, static_argnums=-4))


@promise
def static_names_that_there_are_not(jit: Jit) -> Any:
    return said(lambda: jit(lambda x: x, static_argnames="other"))


@promise
def static_and_donated_at_once(jit: Jit) -> Any:
    both = said(lambda: jit(lambda x, y: x, static_argnums=0, donate_argnums=0))
    return both, said(lambda: jit(lambda x, y: x, static_argnames="x", donate_argnames="x"))


@promise
def a_settled_type_of_numbers(jit: Jit) -> Any:
    g = jit(lambda x, y: x + y)
    return g(1, 2), g(1.0, 2), g(True, False), g(np.int8(3), 1), g(np.float32(3), 1), g(1j, 2), jit(lambda x: x * 1)(3)


@promise
def weak_types_are_signatures(jit: Jit) -> Any:
    traced = []

    def f(x: Any) -> Any:
        traced.append(x.weak_type)
        return x + np.float32(1)

    g = jit(f)
    return g(1), g(jnp.int32(1)), g(1.0), traced


@promise
def the_cache_is_one_of_the_function(jit: Jit) -> Any:
    traced = []

    def f(x: Any) -> Any:
        traced.append(x.shape)
        return x

    g = jit(f)
    g(X), g(X), g(X[0]), g(X)
    sizes = [g._cache_size()]
    g.clear_cache()
    sizes.append(g._cache_size())
    g(X)
    return traced, sizes, g._cache_size()


@promise
def all_caches_at_once(jit: Jit) -> Any:
    traced = []
    g = jit(lambda x: (traced.append(x.shape), x * 2)[1])
    first = g(X)
    jax.clear_caches()
    return first, g(X), len(traced)


# Trees


class Point(NamedTuple):
    x: Any
    y: Any


@promise
def named_tuples(jit: Jit) -> Any:
    out = jit(lambda p: Point(p.y, p.x + 1))(Point(1.0, X))
    return type(out).__name__, out


@promise
def trees_of_all_kinds(jit: Jit) -> Any:
    given = {"b": [1.0, (X, None)], "a": collections.OrderedDict(z=2, y=3), "e": ()}
    return jit(lambda t: jax.tree.map(lambda v: v * 2, t))(given)


@promise
def a_tree_of_a_users_own(jit: Jit) -> Any:
    @jax.tree_util.register_dataclass
    @functools.partial(__import__("dataclasses").dataclass)
    class State:
        w: Any
        step: Any

    out = jit(lambda s: State(s.w * 2, s.step + 1))(State(X, 3))
    return type(out).__name__, out.w, out.step


@promise
def nothing_is_a_tree_too(jit: Jit) -> Any:
    nothing = jit(lambda x, y: {"x": x, "y": y})(None, X), jit(lambda x, *a: (a, {}, x))(X)
    return nothing, jit(lambda x, y: [y, None, x])({}, X)


@promise
def many_arguments(jit: Jit) -> Any:
    return jit(lambda *xs: sum(xs))(*range(300)), jit(lambda xs: sum(xs))(list(range(300)))


@promise
def dictionaries_in_another_order(jit: Jit) -> Any:
    traced = []
    g = jit(lambda d: (traced.append(list(d)), d["a"] - d["b"])[1])
    return g({"a": 1, "b": 2}), g({"b": 2, "a": 1}), len(traced)


@promise
def keys_of_random_numbers(jit: Jit) -> Any:
    key = jax.random.key(0)
    return jit(lambda k: jax.random.uniform(k, (2,)))(key), jax.random.key_data(jit(lambda k: jax.random.split(k))(key))


@promise
def types_of_few_bits(jit: Jit) -> Any:
    out = jit(lambda x: x.astype(jnp.bfloat16) * 2)(X)
    return str(out.dtype), out.astype(jnp.float32)


# What is said of mistakes


@promise
def no_function(jit: Jit) -> Any:
    return said(lambda: jit(3)), said(lambda: jit("f"))


@promise
def a_generator(jit: Jit) -> Any:
    def gen(x: Any) -> Any:
        yield x

    return said(lambda: jit(gen)(X)), inspect.isgeneratorfunction(gen)


@promise
def no_arrays(jit: Jit) -> Any:
    return said(lambda: jit(lambda x: x)("foo")), said(lambda: jit(lambda x: x)({"a": object}))


@promise
def no_array_returned(jit: Jit) -> Any:
    return said(lambda: jit(lambda x: "foo")(X)), said(lambda: jit(lambda x: (x, {1}))(X))


@promise
def too_few_or_too_many(jit: Jit) -> Any:
    g = jit(lambda x, y: x)
    return said(lambda: g(X)), said(lambda: g(X, X, X)), said(lambda: g(X, z=X)), said(lambda: g(X, X, y=X))


@promise
def a_tracer_is_no_number(jit: Jit) -> Any:
    return [
        type_.split(":")[0]
        for type_ in (
            said(lambda: jit(lambda x: x if x else -x)(1)),
            said(lambda: jit(lambda x: float(x))(1.0)),
            said(lambda: jit(lambda x: np.exp(x))(X)),
            said(lambda: jit(lambda n: sum(range(n)))(3)),
            said(lambda: jit(lambda x: x[x > 0])(X)),
        )
    ]


@promise
def the_users_own_error(jit: Jit) -> Any:
    class OwnError(Exception):
        pass

    def f(x: Any) -> Any:
        raise OwnError("own")

    g = jit(f)
    return said(lambda: g(X)), said(lambda: g(X)), said(lambda: g.lower(X))


@promise
def an_error_at_first_is_no_error_later(jit: Jit) -> Any:
    once = [1]

    def f(x: Any) -> Any:
        if once:
            raise ValueError(once.pop())
        return x

    g = jit(f)
    return said(lambda: g(X)), g(X)


@promise
def shapes_that_do_not_fit(jit: Jit) -> Any:
    return said(lambda: jit(lambda x, y: x @ y)(X, X)).split("\n")[0]


@promise
def a_leaked_tracer(jit: Jit) -> Any:
    kept: list[Any] = []
    jit(lambda x: kept.append(x) or x)(X)  # what returns nothing is not verified
    return said(lambda: kept[0] + 1).split("\n")[0][:60]


@promise
def numbers_that_are_none(jit: Jit) -> Any:
    with jax.debug_nans(True):
        return said(lambda: jit(lambda x: jnp.log(x))(-X)).split(".")[0]


@promise
def options_that_there_are_not(jit: Jit) -> Any:
    return said(lambda: jit(lambda x: x, such_an_option=1)).replace("_jit", "jit")


@pytest.mark.drawn(14)
@pytest.mark.parametrize("name", PROMISES)
def test_both_answer_alike(name: str) -> None:
    check_alike(PROMISES[name])
