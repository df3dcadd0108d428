"""Pairs that differ, however little, are never proved.

Found by trying to break the prover: each is a module, and another that computes something else.
"""

from __future__ import annotations

from functools import partial

import pytest

import hlo_verify
from hlo_verify.diagnostics.errors import InputError
from tests.support.pairs import REPLICATED, module, on

VECTOR = "tensor<4xf32>"

_module = partial(module, devices=2)


def _proved(logical: str, partitioned: str) -> bool:
    try:
        return hlo_verify.verify(logical, partitioned, refute=False).verdict is hlo_verify.Verdict.PROVED
    except InputError:
        return False


def _replicated(types: list[str], result: str, logical: str, partitioned: str) -> tuple[str, str]:
    """Two bodies over the same arguments `%a0, %a1, ...`, everything replicated."""
    names = [f"%a{n}: {kind}" for n, kind in enumerate(types)]
    placed = ", ".join(f"{name} {on(REPLICATED)}" for name in names)
    return (
        _module(placed, f"{result} {on(REPLICATED)}", logical),
        _module(", ".join(names), result, partitioned),
    )


def _loop(bound: int, *, test: str = "", tested: str = "%i", start: int = 0, step: int = 1) -> str:
    """`x = x * (x + x)` while `tested < bound`."""
    return f"""
    %start = stablehlo.constant dense<{start}> : tensor<i32>
    %step = stablehlo.constant dense<{step}> : tensor<i32>
    %r:2 = stablehlo.while(%i = %start, %x = %a0) : tensor<i32>, {VECTOR}
    cond {{
      {test}
      %k = stablehlo.constant dense<{bound}> : tensor<i32>
      %p = stablehlo.compare LT, {tested}, %k : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %w = stablehlo.add %x, %x : {VECTOR}
      %y = stablehlo.multiply %x, %w : {VECTOR}
      %j = stablehlo.add %i, %step : tensor<i32>
      stablehlo.return %j, %y : tensor<i32>, {VECTOR}
    }}
    return %r#1 : {VECTOR}"""


def _number(name: str, value: int) -> str:
    return f"%{name} = stablehlo.constant dense<{value}> : tensor<i32>\n"


TESTS = {
    "square": "%q = stablehlo.multiply %i, %i : tensor<i32>",
    "quotient": _number("n", 2) + "%q = stablehlo.divide %i, %n : tensor<i32>",
    "remainder of a shifted counter": _number("n", 8)
    + _number("by", 3)
    + "%m = stablehlo.add %i, %by : tensor<i32>\n%q = stablehlo.remainder %m, %n : tensor<i32>",
    "shift": _number("n", 1) + "%q = stablehlo.shift_left %i, %n : tensor<i32>",
    "bits": "%q = stablehlo.popcnt %i : tensor<i32>",
    "table": "%t = stablehlo.constant dense<[0, 9, 1, 2, 3, 4, 5, 6]> : tensor<8xi32>\n"
    "%m = stablehlo.dynamic_slice %t, %i, sizes = [1] : (tensor<8xi32>, tensor<i32>) -> tensor<1xi32>\n"
    "%q = stablehlo.reshape %m : (tensor<1xi32>) -> tensor<i32>",
}


@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS.keys())
def test_the_number_of_iterations_is_that_of_the_condition(test: str) -> None:
    """A condition on a function of the counter does not hold for as many iterations as its bound says."""
    assert not _proved(*_replicated([VECTOR], VECTOR, _loop(5), _loop(5, test=test, tested="%q")))


def test_the_number_of_iterations_counts_from_the_start_by_the_step() -> None:
    assert not _proved(*_replicated([VECTOR], VECTOR, _loop(10), _loop(10, start=3)))
    assert not _proved(*_replicated([VECTOR], VECTOR, _loop(6), _loop(6, step=2)))
    assert _proved(*_replicated([VECTOR], VECTOR, _loop(7), _loop(10, start=3)))
    assert _proved(*_replicated([VECTOR], VECTOR, _loop(5), _loop(9, step=2)))


@pytest.mark.parametrize(("whole", "shard"), [("i32", "i8"), ("f32", "i32"), ("i8", "ui8")])
def test_element_types_of_arguments_and_results_agree(whole: str, shard: str) -> None:
    def body(kind: str) -> str:
        return f"%q = stablehlo.add %a0, %a0 : tensor<4x{kind}>\nreturn %q : tensor<4x{kind}>"

    at = on(REPLICATED)
    logical = _module(f"%a0: tensor<4x{whole}> {at}", f"tensor<4x{whole}> {at}", body(whole))
    assert not _proved(logical, _module(f"%a0: tensor<4x{shard}>", f"tensor<4x{shard}>", body(shard)))


def test_the_element_type_of_a_result_agrees() -> None:
    at = on(REPLICATED)
    narrow = "%q = stablehlo.convert %a0 : (tensor<4xi32>) -> tensor<4xi8>\nreturn %q : tensor<4xi8>"
    logical = _module(f"%a0: tensor<4xi32> {at}", f"tensor<4xi32> {at}", "return %a0 : tensor<4xi32>")
    assert not _proved(logical, _module("%a0: tensor<4xi32>", "tensor<4xi8>", narrow))


UNREDUCED = "{devices=[1,2]<=[2] last_tile_dims={unreduced}}"


@pytest.mark.parametrize(
    ("argument", "result"),
    [("{maximal device=0}", REPLICATED), (UNREDUCED, REPLICATED), (REPLICATED, UNREDUCED)],
)
def test_addends_and_single_devices_are_not_replicas(argument: str, result: str) -> None:
    body = f"return %a0 : {VECTOR}"
    logical = _module(f"%a0: {VECTOR} {on(argument)}", f"{VECTOR} {on(result)}", body)
    assert not _proved(logical, _module(f"%a0: {VECTOR}", VECTOR, body))


def test_both_modules_are_for_one_number_of_devices() -> None:
    placed = on("{devices=[2,2]<=[4] last_tile_dim_replicate}")
    logical = _module(f"%a0: {VECTOR} {placed}", f"{VECTOR} {placed}", f"return %a0 : {VECTOR}", devices=4)
    assert not _proved(logical, _module("%a0: tensor<2xf32>", "tensor<2xf32>", "return %a0 : tensor<2xf32>"))


def _scatter(index: str) -> str:
    return f"""
    %i = stablehlo.convert %a1 : (tensor<3x1xi32>) -> tensor<3x1x{index}>
    %r = "stablehlo.scatter"(%a0, %i, %a2) <{{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %m = stablehlo.maximum %x, %y : tensor<f32>
      stablehlo.return %m : tensor<f32>
    }}) : (tensor<8xf32>, tensor<3x1x{index}>, tensor<3xf32>) -> tensor<8xf32>
    return %r : tensor<8xf32>"""


@pytest.mark.parametrize(("one", "other"), [("i32", "i8"), ("ui8", "i8")])
def test_indices_that_wrap_scatter_elsewhere(one: str, other: str) -> None:
    types = ["tensor<8xf32>", "tensor<3x1xi32>", "tensor<3xf32>"]
    assert not _proved(*_replicated(types, "tensor<8xf32>", _scatter(one), _scatter(other)))


LAWS = {
    "division": ("%r = stablehlo.divide %a0, %a1", "%r = stablehlo.divide %a1, %a0"),
    "negated maximum": (
        "%m = stablehlo.maximum %a0, %a1 : {0}\n%r = stablehlo.negate %m",
        "%p = stablehlo.negate %a0 : {0}\n%q = stablehlo.negate %a1 : {0}\n%r = stablehlo.maximum %p, %q",
    ),
    "logarithm of negative numbers": (
        "%m = stablehlo.multiply %a0, %a0 : {0}\n%r = stablehlo.log %m",
        "%p = stablehlo.log %a0 : {0}\n%r = stablehlo.add %p, %p",
    ),
}


@pytest.mark.parametrize(("one", "other"), LAWS.values(), ids=LAWS.keys())
def test_laws_hold_only_where_they_do(one: str, other: str) -> None:
    bodies = [f"{body.format(VECTOR)} : {VECTOR}\nreturn %r : {VECTOR}" for body in (one, other)]
    assert not _proved(*_replicated([VECTOR, VECTOR], VECTOR, *bodies))


def _reduced(body: str, size: int, reducer: str) -> str:
    return f"""
    %z = stablehlo.constant dense<1.0> : tensor<f32>
    {body}
    %r = stablehlo.reduce(%x init: %z) applies stablehlo.{reducer} across dimensions = [0]
      : (tensor<{size}xf32>, tensor<f32>) -> tensor<f32>
    return %r : tensor<f32>"""


@pytest.mark.parametrize("reducer", ["add", "multiply"])
@pytest.mark.parametrize("dims", ["1", "0"])
def test_repeated_elements_are_reduced_as_often_as_they_occur(reducer: str, dims: str) -> None:
    """A digit of the reduced dimension on which nothing depends repeats what the others give."""
    twice = f"""
    %b = stablehlo.broadcast_in_dim %a0, dims = [{dims}] : (tensor<2xf32>) -> tensor<2x2xf32>
    %x = stablehlo.reshape %b : (tensor<2x2xf32>) -> tensor<4xf32>"""
    once = "%x = stablehlo.reshape %a0 : (tensor<2xf32>) -> tensor<2xf32>"
    bodies = _reduced(twice, 4, reducer), _reduced(once, 2, reducer)
    assert not _proved(*_replicated(["tensor<2xf32>"], "tensor<f32>", *bodies))


def _carried(kind: str) -> str:
    """A sort that carries 0, 100, 200, 300 along, which wrap in `i8`."""
    return f"""
    %i = stablehlo.iota dim = 0 : tensor<4x{kind}>
    %h = stablehlo.constant dense<100> : tensor<4x{kind}>
    %w = stablehlo.multiply %i, %h : tensor<4x{kind}>
    %s:2 = "stablehlo.sort"(%a0, %w) <{{dimension = 0 : i64, is_stable = true}}> ({{
    ^bb0(%x: tensor<f32>, %y: tensor<f32>, %p: tensor<{kind}>, %q: tensor<{kind}>):
      %c = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }}) : ({VECTOR}, tensor<4x{kind}>) -> ({VECTOR}, tensor<4x{kind}>)
    %r = stablehlo.convert %s#1 : (tensor<4x{kind}>) -> {VECTOR}
    return %r : {VECTOR}"""


@pytest.mark.parametrize(("one", "other"), [("i8", "i32"), ("i32", "i8"), ("ui8", "i8")])
def test_integers_are_sorted_in_their_own_type(one: str, other: str) -> None:
    assert not _proved(*_replicated([VECTOR], VECTOR, _carried(one), _carried(other)))


def test_remainders_that_have_nothing_in_common() -> None:
    """2 is even, and 2 more than a multiple of 3."""
    masked = f"""
    %i = stablehlo.iota dim = 0 : tensor<4xi32>
    %two = stablehlo.constant dense<2> : tensor<4xi32>
    %three = stablehlo.constant dense<3> : tensor<4xi32>
    %none = stablehlo.constant dense<0> : tensor<4xi32>
    %half = stablehlo.remainder %i, %two : tensor<4xi32>
    %third = stablehlo.remainder %i, %three : tensor<4xi32>
    %p = stablehlo.compare EQ, %half, %none : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %q = stablehlo.compare EQ, %third, %two : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %both = stablehlo.and %p, %q : tensor<4xi1>
    %z = stablehlo.constant dense<0.0> : {VECTOR}
    %r = stablehlo.select %both, %a0, %z : tensor<4xi1>, {VECTOR}
    return %r : {VECTOR}"""
    nothing = f"%r = stablehlo.constant dense<0.0> : {VECTOR}\nreturn %r : {VECTOR}"
    assert not _proved(*_replicated([VECTOR], VECTOR, masked, nothing))


def _nested_loops(made: str, inside: str, carried: str, added: str) -> str:
    """`x + sum over i<3, j<2 of added`, with operations in both loops, the inner of which carries a value."""
    return f"""
    %none = stablehlo.constant dense<0> : tensor<i32>
    %r:2 = stablehlo.while(%i = %none, %total = %none) : tensor<i32>, tensor<i32>
    cond {{
      {_number("three", 3)}
      %p = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      {_number("zero", 0)}
      {_number("one", 1)}
      {_number("five", 5)}
      {made}
      %q:3 = stablehlo.while(%j = %zero, %sum = %zero, %outer = {carried}) : tensor<i32>, tensor<i32>, tensor<i32>
      cond {{
        {_number("two", 2)}
        %p = stablehlo.compare LT, %j, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }} do {{
        {inside}
        %more = stablehlo.add %sum, {added} : tensor<i32>
        %next = stablehlo.add %j, %one : tensor<i32>
        stablehlo.return %next, %more, %outer : tensor<i32>, tensor<i32>, tensor<i32>
      }}
      %sum_total = stablehlo.add %total, %q#1 : tensor<i32>
      %next_i = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next_i, %sum_total : tensor<i32>, tensor<i32>
    }}
    %all = stablehlo.broadcast_in_dim %r#1, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %y = stablehlo.add %a0, %all : tensor<4xi32>
    return %y : tensor<4xi32>"""


TIMES_FIVE = "%s = stablehlo.multiply {}, %five : tensor<i32>"


@pytest.mark.parametrize(
    ("made", "inside", "carried", "added"),
    [
        ("", TIMES_FIVE.format("%outer"), "%i", "%s"),
        (TIMES_FIVE.format("%i"), "", "%i", "%s"),
        (TIMES_FIVE.format("%i"), "", "%s", "%outer"),
    ],
)
def test_what_an_iteration_adds_is_not_what_the_one_before_did(
    made: str, inside: str, carried: str, added: str
) -> None:
    kind = "tensor<4xi32>"
    loops = _nested_loops(made, inside, carried, added)
    for total in (0, 10, 25, 30):
        plain = f"%c = stablehlo.constant dense<{total}> : {kind}\n%y = stablehlo.add %a0, %c : {kind}"
        logical = f"{plain}\nreturn %y : {kind}"
        assert _proved(*_replicated([kind], kind, logical, loops)) == (total == 30)


def _softmax(shift: str) -> str:
    """The softmax of a vector less `%m`, which `shift` makes of `%low`, minus infinity."""
    pair = f"({VECTOR}, tensor<f32>) -> tensor<f32>"
    return f"""
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    {shift.replace("REDUCED", pair)}
    %b = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<f32>) -> {VECTOR}
    %d = stablehlo.subtract %a0, %b : {VECTOR}
    %e = stablehlo.exponential %d : {VECTOR}
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0] : {pair}
    %t = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> {VECTOR}
    %r = stablehlo.divide %e, %t : {VECTOR}
    return %r : {VECTOR}"""


GREATEST = "%m = stablehlo.reduce(%a0 init: %low) applies stablehlo.maximum across dimensions = [0] : REDUCED"


@pytest.mark.parametrize(
    "shift", [GREATEST.replace("maximum", "minimum"), "%m = stablehlo.maximum %low, %low : tensor<f32>"]
)
def test_a_softmax_may_be_shifted_by_numbers_alone(shift: str) -> None:
    """Any number may be subtracted, but infinity makes it inf / inf."""
    logical = _softmax(GREATEST)
    assert not _proved(*_replicated([VECTOR], VECTOR, logical, _softmax(shift)))
    one = "%m = stablehlo.constant dense<1.0> : tensor<f32>"
    assert _proved(*_replicated([VECTOR], VECTOR, logical, _softmax(one)))


def _shifted_scatter(places: str) -> str:
    return f"""
    %c = stablehlo.constant dense<{places}> : tensor<4xi32>
    %low = stablehlo.constant dense<0> : tensor<i32>
    %high = stablehlo.constant dense<2> : tensor<i32>
    %by = stablehlo.clamp %low, %a1, %high : tensor<i32>
    %b = stablehlo.broadcast_in_dim %by, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %s = stablehlo.add %c, %b : tensor<4xi32>
    %i = stablehlo.reshape %s : (tensor<4xi32>) -> tensor<4x1xi32>
    %r = "stablehlo.scatter"(%a0, %i, %a2) <{{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      stablehlo.return %y : tensor<f32>
    }}) : (tensor<8xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<8xf32>
    return %r : tensor<8xf32>"""


def test_places_that_an_argument_shifts() -> None:
    types = ["tensor<8xf32>", "tensor<i32>", "tensor<4xf32>"]
    bodies = [_shifted_scatter(places) for places in ("[0, 3, 2, 5]", "[0, 2, 3, 5]", "[0, 2, 2, 4]")]
    for n, logical in enumerate(bodies):
        for k, partitioned in enumerate(bodies):
            assert _proved(*_replicated(types, "tensor<8xf32>", logical, partitioned)) == (n == k)
