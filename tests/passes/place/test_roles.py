"""Which arguments have one role: those of equal layers, and only those."""

from __future__ import annotations

from hlo_verify.passes.load.load import load
from hlo_verify.passes.place.roles import added_up, roles
from tests.passes.place.test_infer import all_reduce, matrix, module, product

X, BIAS = matrix(4, 4), "tensor<4xf32>"


def _network(late: int, replicas: int) -> str:
    """Two layers `x @ w + b`, summed over devices; the bias of layer `late` is added after that."""
    body, x = "", "%a0"
    for n in (0, 1):
        body += product(f"%y{n}", x, f"%a{2 * n + 1}", (4, 4, 4))
        body += f"%b{n} = stablehlo.broadcast_in_dim %a{2 * n + 2}, dims = [1] : ({BIAS}) -> {X}\n"
        first, last = (f"%y{n}", f"%r{n}") if n == late else (f"%s{n}", f"%y{n}")
        reduced = all_reduce(f"%r{n}", first, X) if replicas > 1 else f"%r{n} = stablehlo.negate {first} : {X}\n"
        added = f"%s{n} = stablehlo.add {last}, %b{n} : {X}\n"
        body += reduced + added if n == late else added + reduced
        x = f"%s{n}" if n == late else f"%r{n}"
    return module([X, X, BIAS, X, BIAS], [(x, X)], body, replicas)


def test_equal_layers_have_arguments_of_equal_roles() -> None:
    pair = [load(_network(2, n)) for n in (1, 2)]
    assert roles(*pair, range(5)) == [(0,), (1, 3), (2, 4)]


def test_an_argument_that_is_used_in_another_way_has_another_role() -> None:
    pair = [load(_network(1, n)) for n in (1, 2)]
    assert roles(*pair, range(5)) == [(0,), (1,), (2,), (3,), (4,)]


def test_what_is_added_up_before_a_sum_over_devices() -> None:
    assert added_up(load(_network(2, 2))) == [2, 4]
    assert added_up(load(_network(1, 2))) == [2]
