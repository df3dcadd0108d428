"""What differs between two terms is said in words."""

from __future__ import annotations

import pytest

from hlo_verify.ops.comparison import _compare_reals
from hlo_verify.passes.diagnose.differences import difference
from hlo_verify.passes.prove.notation import Notation
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import INVERSE, LOG
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Poly, number, tensor

X = algebra.read(tensor("argument", "x", "f32", ()), ())
MAY_BE_NONE, MAY_BE_INFINITE = apply(LOG, (X,)), apply(INVERSE, (algebra.scale(X, 0),))


@pytest.mark.parametrize("value", [X, MAY_BE_NONE, MAY_BE_INFINITE], ids=["number", "none", "infinite"])
@pytest.mark.parametrize("directions", [("LE", "GT"), ("GT", "LE"), ("EQ", "NE")])
def test_the_opposite_of_a_comparison(value: Poly, directions: tuple[str, str]) -> None:
    """Of what may be no number too, where a comparison and its opposite are both false."""
    found, expected = (_compare_reals(each, value, number(10), "f32") for each in directions)
    assert difference(found, expected, Notation(())).text == "the opposite (1 minus it) is expected"
    other = _compare_reals(directions[1], value, number(11), "f32")
    assert difference(found, other, Notation(())).text != "the opposite (1 minus it) is expected"
