"""What is 0 for some arguments is not computed, and nothing else changes."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from hlo_verify.evaluate import Blocks, dense, evaluate, interpret, of_dense, random_argument
from hlo_verify.evaluate.intervals import INTERVALS
from hlo_verify.evaluate.numbers import exact
from hlo_verify.evaluate.state import as_written
from hlo_verify.evaluate.vanishing import SURE, Known, _between, known_of, without_vanishing
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import VANISHED, Op, TensorType

N, Z, P = Known.NUMBER, Known.ZERO, Known.POSITIVE

TEXT = """
func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {{
  {body}
  %y = stablehlo.multiply %f, %w : tensor<4xf32>
  return %y : tensor<4xf32>
}}
"""

ONE, MINUS = (
    "%c = stablehlo.constant dense<1.0> : tensor<4xf32>",
    "%m = stablehlo.constant dense<0xFF800000> : tensor<4xf32>",
)


def results_of(body: str, x: float, w: float, **how: object) -> tuple[Blocks | None, list[str]]:
    """The result, and the operations that were evaluated for it."""
    module = load(TEXT.format(body=body))
    seen: list[str] = []
    run = interpret._apply

    def watching(op, *rest):  # type: ignore[no-untyped-def]
        seen.append(VANISHED if VANISHED in op.attributes else op.name)
        return run(op, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpret, "_apply", watching)
        given = [of_dense(np.full(4, value)) for value in (x, w)]
        found = evaluate(module, given, 1, only=[0], **how)  # type: ignore[arg-type]
    return found.results[0], seen


@pytest.mark.parametrize(
    "body",
    [
        "%f = stablehlo.tanh %x : tensor<4xf32>",
        "%f = stablehlo.exponential %x : tensor<4xf32>",
        f"{ONE}\n %s = stablehlo.multiply %x, %x : tensor<4xf32>\n %a = stablehlo.add %s, %c : tensor<4xf32>\n"
        "%f = stablehlo.rsqrt %a : tensor<4xf32>",
        f"{MINUS}\n %a = stablehlo.maximum %x, %m : tensor<4xf32>\n %f = stablehlo.logistic %a : tensor<4xf32>",
    ],
)
def test_what_is_multiplied_by_zero_and_surely_a_number_is_not_computed(body: str) -> None:
    found, seen = results_of(body, 3.0, 0.0)
    assert found is not None and not dense(found, 0).any()
    assert seen == ["vanished"]
    assert len(results_of(body, 3.0, 0.5)[1]) > 1


@pytest.mark.parametrize(
    ("body", "x"),
    [
        ("%f = stablehlo.log %x : tensor<4xf32>", 0.0),
        ("%f = stablehlo.rsqrt %x : tensor<4xf32>", 0.0),
        ("%f = stablehlo.sqrt %x : tensor<4xf32>", -1.0),
        (f"{ONE}\n %a = stablehlo.subtract %x, %c : tensor<4xf32>\n %f = stablehlo.divide %c, %a : tensor<4xf32>", 1.0),
        (f"{MINUS}\n %f = stablehlo.add %x, %m : tensor<4xf32>", 1.0),
    ],
)
def test_what_may_be_no_number_is(body: str, x: float) -> None:
    found, seen = results_of(body, x, 0.0)
    assert "vanished" not in seen
    assert found is not None and np.isnan(dense(found, 0)).all()


SAMPLES = [-np.inf, -2.0, -1.0, 0.0, 0.5, 1.0, 3.0]

FUNCTIONS = {
    **{name: getattr(np, name) for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum", "power")},
    "remainder": np.fmod,
    **{"negate": np.negative, "abs": np.abs, "exponential": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh},
    **{"rsqrt": lambda a: 1 / np.sqrt(a), "logistic": lambda a: 1 / (1 + np.exp(-a)), "cosine": np.cos, "sine": np.sin},
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_said_of_a_function_is_true_of_numbers(name: str) -> None:
    """For every two values: what the rules make of what is known of these is known of the function's."""
    function, one = FUNCTIONS[name], TensorType((1,), "f32")
    count = 2 if isinstance(function, np.ufunc) and function.nin == 2 else 1
    kinds = [Known.NOTHING, Known.BELOW, N, Known.NOT_NEGATIVE, P, Z]
    for given in itertools.product(kinds, repeat=count):
        op = Op(name, tuple(range(count)), (9,), (one,))
        said = SURE[name](op, list(given), dict.fromkeys(range(count), one))
        fits = [
            [v for v in [*SAMPLES, np.nan, np.inf] if _between(*[np.array([v])] * 2) & each == each] for each in given
        ]
        for values in itertools.product(*fits):
            with np.errstate(all="ignore"):
                found = np.array([function(*values)])
            assert _between(found, found) & said == said, (given, values, found)


NUMBERED = """
func.func @main(%n: tensor<ui32>, %x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {{
  %c = stablehlo.constant dense<{by}> : tensor<ui32>
  %q = stablehlo.{name} %n, %c : tensor<ui32>
  %i = stablehlo.convert %q : (tensor<ui32>) -> tensor<f32>
  %b = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %e = stablehlo.exponential %b : tensor<4xf32>
  %f = stablehlo.add %e, %x : tensor<4xf32>
  %y = stablehlo.multiply %f, %w : tensor<4xf32>
  return %y : tensor<4xf32>
}}
"""


@pytest.mark.parametrize("name", ["divide", "remainder"])
@pytest.mark.parametrize("by", [0, 8])
def test_a_device_number_divided_by_a_constant_is_a_number(name: str, by: int) -> None:
    """As offsets of a mesh's axes are computed; by 0, nobody knows."""
    module = load(NUMBERED.format(name=name, by=by))
    given = [of_dense(np.uint32(13)), of_dense(np.full(4, 3.0)), of_dense(np.zeros(4))]
    main, known = without_vanishing(module.main, list(map(known_of, given)), as_written)
    assert (VANISHED in main.ops[-1].attributes) == (by == 8)
    quotient = known[module.main.ops[1].results[0]]
    assert (quotient & N == N) == (by == 8)


def test_what_is_known_of_arguments() -> None:
    for value, known in ((0.0, Z), (2.0, P), (-1.0, N), (-np.inf, Known.BELOW), (np.nan, Known.NOTHING)):
        blocks = of_dense(np.full(3, value))
        assert known_of(blocks) == known
        enclosed = Blocks(blocks.classes, exact(blocks.values, INTERVALS))
        assert known_of(enclosed) == known or not np.isfinite(value)
    assert known_of(None) == Known.NOTHING
    assert known_of(of_dense(np.array([1, -1]))) == N


@pytest.mark.parametrize("name", ["mlp_2d", "mlp_accumulate", "conv_batch", "embedding_gather_scatter"])
def test_results_are_the_same_with_and_without(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each argument 0 in turn, in the logical module of a fixture."""
    module = load(Path(__file__).parents[2] / "testdata" / name / "logical.hlo.gz")
    types = module.main.argument_types
    generator = np.random.default_rng(3)
    drawn = [random_argument(each.shape, each.dtype, generator, integers=4, detail=2) for each in types]
    for n, each in enumerate(drawn):
        given = [*drawn[:n], Blocks(each.classes, np.zeros_like(each.values)), *drawn[n + 1 :]]
        found = evaluate(module, given, 1)
        with monkeypatch.context() as patch:
            patch.setattr(interpret, "without_vanishing", lambda main, *_: (main, {}))
            wanted = evaluate(module, given, 1)
        assert found.work <= wanted.work
        for a, b in zip(found.results, wanted.results, strict=True):
            assert a is not None and b is not None
            index = np.ix_(*[np.unique(c, return_index=True)[1] for c in b.classes])
            np.testing.assert_allclose(
                a.values[np.ix_(*[c[i.reshape(-1)] for c, i in zip(a.classes, index, strict=True)])],
                b.values,
                rtol=1e-9,
            )
