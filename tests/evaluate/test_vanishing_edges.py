"""Evaluation that leaves out what vanishes gives what plain evaluation does, at the borders of real numbers too.

What is left out is never looked at again: a rule that says "a number" of what may be none makes a false refutation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from flint import arb

from hlo_verify.evaluate import Blocks, Evaluation, Limits, evaluate, interpret
from hlo_verify.evaluate.balls import BALLS, UNDEFINED, Special, is_unknown, precision
from hlo_verify.evaluate.blocks import of_devices
from hlo_verify.evaluate.intervals import INTERVALS
from hlo_verify.evaluate.maps import Array
from hlo_verify.evaluate.numbers import exact
from hlo_verify.evaluate.state import as_written
from hlo_verify.evaluate.vanishing import Known, known_of, without_vanishing
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import VANISHED, Module, Name, operations, value_types
from tests.support.edge_programs import DEVICES, ON_DEVICES, edge_program

LIMITS = Limits(1 << 16, 1e9, 64)
REALS = (np.dtype(np.float64), INTERVALS, BALLS)
PROGRAMS = {1: 24, DEVICES: 16}


def drawn(generator: np.random.Generator, devices: int) -> list[Array]:
    """Three arguments of floats, most of them 0, and one of integers."""
    shape = (devices, 4)
    choices: list[list[float]] = [[0.0], [0.0], [0.5, 1.0, 2.0, 3.0], [0.0, 0.0, 1.0, -1.0, 0.5, 2.0, -3.0]]
    floats = [generator.choice(choices[generator.integers(4)], shape) for _ in range(3)]
    integers = generator.integers(-1, 6, shape) * (generator.random() < 0.7)
    return [*floats, integers.astype(np.int32)]


def given_as(array: Array, real: Any) -> Blocks:
    blocks = of_devices(array)
    is_enclosed = array.dtype.kind == "f" and real != np.float64
    return Blocks(blocks.classes, exact(blocks.values, real)) if is_enclosed else blocks


def plainly(module: Module, given: list[Blocks], devices: int, real: Any, **how: Any) -> Evaluation:
    """Evaluated without leaving out anything."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpret, "without_vanishing", lambda main, *_: (main, {}))
        return evaluate(module, given, devices, real=real, limits=LIMITS, **how)


def elements(blocks: Blocks, devices: int) -> Array:
    whole = blocks.values[np.ix_(*blocks.classes)]
    return np.broadcast_to(whole, (devices, *whole.shape[1:]))


def agrees(found: Any, wanted: Any) -> bool:
    """Whether an element may be what plain evaluation makes it, as far as that can tell."""
    if wanted is UNDEFINED or is_unknown(wanted):
        return True
    if found is UNDEFINED or is_unknown(found) or isinstance(wanted, Special) or isinstance(found, Special):
        return found is wanted
    if isinstance(wanted, arb):
        return bool(wanted.overlaps(found)) if wanted.is_finite() else bool(wanted == found)
    return bool(wanted == found)


def numbers(exact_ones: Blocks | None, devices: int) -> Array:
    """Which elements are finite numbers, or integers; False where that is not known."""
    if exact_ones is None:
        return np.array(False)
    is_number = np.frompyfunc(
        lambda x: not isinstance(x, Special | type(UNDEFINED)) and (not isinstance(x, arb) or x.is_finite()), 1, 1
    )
    return np.asarray(is_number(elements(exact_ones, devices).astype(object))).astype(bool)


def assert_alike(found: Array, wanted: Array, are_numbers: Array) -> None:
    if found.dtype == object or wanted.dtype == object:
        pairs = zip(found.astype(object).flat, wanted.astype(object).flat, strict=True)
        assert all(agrees(*pair) for pair in pairs)
    elif found.dtype == INTERVALS:  # of which nothing is known where a bound is too large
        is_known = ~np.isnan(wanted["low"])
        assert ((found["low"] <= wanted["high"]) & (wanted["low"] <= found["high"]))[is_known].all()
    elif found.dtype.kind == "f":  # 0 has a sign there, infinities have another by it, and `exp` of them is 0 or not
        known = np.broadcast_to(are_numbers, found.shape)
        np.testing.assert_allclose(found[known], wanted[known], rtol=1e-9, atol=1e-9)
    else:
        np.testing.assert_array_equal(found, wanted)


def fits(element: Any, known: Known, is_decided: bool) -> bool:
    """Whether that is true of an element, as far as plain evaluation can tell; where it did not decide a comparison,
    integers may be unknown for that alone."""
    if is_unknown(element) or not known or (element is UNDEFINED and not is_decided):
        return True
    if element is UNDEFINED or isinstance(element, Special):
        return False
    element = element if isinstance(element, arb) else arb(int(element))
    if not element.is_finite():
        return known == Known.BELOW and bool(element < 0)
    is_zero = known & Known.ZERO == Known.ZERO
    is_positive = known & Known.POSITIVE == Known.POSITIVE
    is_not_negative = known & Known.NOT_NEGATIVE == Known.NOT_NEGATIVE
    return not (
        (is_zero and not element.contains(0)) or (is_positive and element <= 0) or (is_not_negative and element < 0)
    )


def said_of(module: Module, given: list[Blocks]) -> Mapping[Name, Known]:
    return without_vanishing(module.main, list(map(known_of, given)), as_written)[1]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("devices", PROGRAMS)
def test_results_are_those_of_plain_evaluation(devices: int, seed: int) -> None:
    left_out = 0
    for number in range(PROGRAMS[devices]):
        module = load(edge_program(f"{seed} {number}", devices)[0])
        arrays = drawn(np.random.default_rng((seed, number)), devices)
        with precision(128):
            exact_ones = plainly(module, [given_as(array, BALLS) for array in arrays], devices, BALLS).results
        for real in REALS:
            given = [given_as(array, real) for array in arrays]
            with precision(128):
                found = evaluate(module, given, devices, real=real, limits=LIMITS)
                wanted = plainly(module, given, devices, real)
            for one, other, known in zip(found.results, wanted.results, exact_ones, strict=True):
                if other is None:
                    continue
                assert one is not None, (number, found.unknown)
                assert_alike(elements(one, devices), elements(other, devices), numbers(known, devices))
        marked = without_vanishing(module.main, [known_of(each) for each in given], as_written)[0]
        left_out += sum(VANISHED in op.attributes for op in operations(marked))
    assert left_out


@pytest.mark.drawn(2)
@pytest.mark.parametrize("devices", PROGRAMS)
def test_what_is_said_of_every_value_is_true(devices: int, seed: int) -> None:
    """Also of those that do not vanish."""
    said = 0
    for number in range(PROGRAMS[devices]):
        module = load(edge_program(f"{seed} said {number}", devices)[0])
        given = [given_as(array, BALLS) for array in drawn(np.random.default_rng((seed, number)), devices)]
        known = said_of(module, given)
        with precision(128):
            watched = plainly(module, given, devices, BALLS, watch=list(known)).watched
        truths = [value for value, type_ in value_types(module.main).items() if type_.dtype == "i1"]
        seen = (blocks for blocks in map(watched.get, truths) if blocks is not None)
        is_decided = not any(x is UNDEFINED for blocks in seen for x in blocks.values.flat)
        for value, each in known.items():
            blocks = watched.get(value)
            if blocks is not None:
                said += bool(each)
                assert all(fits(x, each, is_decided) for x in blocks.values.astype(object).flat), (number, value, each)
    assert said


def test_every_family_of_operations_is_drawn() -> None:
    drawn_ones = {piece.partition(" ")[0] for n in range(100) for piece in edge_program(f"all {n}", DEVICES)[1]}
    assert drawn_ones == {piece.partition(" ")[0] for piece in ON_DEVICES}


UNEVEN = """module @uneven attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func @main(%n: tensor<i32>, %w: tensor<4xf32>) -> tensor<4xf32> {{
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %c = stablehlo.constant dense<1.0> : tensor<4xf32>
    %r:2 = stablehlo.while(%i = %zero, %s = %c) : tensor<i32>, tensor<4xf32>
    cond {{
      %t = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    }} do {{
      %j = stablehlo.add %i, %one : tensor<i32>
      %e = {step}
      %u = stablehlo.add %s, %e : tensor<4xf32>
      stablehlo.return %j, %u : tensor<i32>, tensor<4xf32>
    }}
    return %r#1 : tensor<4xf32>
  }}
}}"""
STEP = "stablehlo.multiply %w, %w : tensor<4xf32>"
EXCHANGE = (
    '"stablehlo.collective_permute"(%w) {source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>} : '
    "(tensor<4xf32>) -> tensor<4xf32>"
)


@pytest.mark.parametrize(("step", "is_known"), [(STEP, True), (EXCHANGE, False)])
def test_loops_that_end_at_different_times(step: str, is_known: bool) -> None:
    """What vanishes inside of one does not communicate; what does is not hidden because it gives zeros."""
    module = load(UNEVEN.format(step=step))
    given = [of_devices(np.arange(4, dtype=np.int32)), of_devices(np.zeros((4, 4)))]
    assert (evaluate(module, given, 4).results[0] is not None) is is_known
    assert (plainly(module, given, 4, REALS[0]).results[0] is not None) is is_known


def test_zeros_with_a_sign_are_no_other_zeros() -> None:
    """Of an argument that is only moved, the bits are there."""
    module = load("""func.func @main(%x: tensor<4xf32>) -> tensor<4xi32> {
  %y = stablehlo.reverse %x, dims = [0] : tensor<4xf32>
  %b = stablehlo.bitcast_convert %y : (tensor<4xf32>) -> tensor<4xi32>
  return %b : tensor<4xi32>
}""")
    for real in REALS[:2]:
        for sign in (0.0, -0.0):
            given = [given_as(np.full((1, 4), sign), real)]
            (found,) = evaluate(module, given, 1, real=real).results
            assert found is not None and (elements(found, 1) == np.float32(sign).view(np.int32)).all()


@pytest.mark.parametrize(
    "body",
    [
        "%u = stablehlo.divide %n, %z : tensor<4xi32>",
        "%c = stablehlo.constant dense<40> : tensor<4xi32>\n%u = stablehlo.shift_left %n, %c : tensor<4xi32>",
        "%u = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xi32>",
    ],
)
def test_0_times_what_has_no_defined_value_has_none(body: str) -> None:
    module = load(f"""func.func @main(%n: tensor<4xi32>, %x: tensor<4xf32>, %z: tensor<4xi32>) -> tensor<4xi32> {{
  {body}
  %r = stablehlo.multiply %u, %z : tensor<4xi32>
  return %r : tensor<4xi32>
}}""")
    arrays = [np.ones((1, 4), np.int32), np.full((1, 4), 1e30), np.zeros((1, 4), np.int32)]
    for real in REALS[1:]:
        found = evaluate(module, [given_as(array, real) for array in arrays], 1, real=real)
        assert found.undefined and found.results[0] is not None
        assert all(x is UNDEFINED for x in found.results[0].values.flat)
