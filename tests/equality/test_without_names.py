"""Names taken apart in definitions: what is computed in other groups becomes the same, and keeps its value."""

from __future__ import annotations

import numpy as np
import pytest

from hlo_verify.equality.without_names import without_names
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import named
from hlo_verify.terms.functions import real
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE, Poly
from tests.support.structural_laws import Case, at, bound


def gradient(case: Case, *, grouped: bool, wrong: bool = False) -> Poly:
    """`sum v. w[i, v] (1 - h**2) (h - y[v, j])` for h = tanh(x[v]), multiplied out at once or in parts with names."""
    (w, _), (y, _), (x, _) = case.tensors
    v = bound(4)
    h, wanted = apply(real("tanh"), (at(x, v),)), at(y, v, case.j)
    ahead = algebra.add(h, algebra.scale(wanted, -1))
    if grouped:
        less = named(algebra.scale(algebra.expanded(h, ahead), -1))
        slope = named(algebra.add(ahead, less))
        whole = algebra.add(slope, algebra.expanded(h, named(ahead if wrong else algebra.add(ahead, less))))
    else:
        whole = algebra.expanded(algebra.add(ONE, algebra.scale(algebra.power(h, 2), -1)), ahead)
    return reduce_sum([v], algebra.expanded(at(w, case.i, v), named(whole)))


class Made(Case):
    """Random tensors, the same whenever they are asked for."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.tensors = self.make(6, 4), self.make(4, 3), self.make(4)


@pytest.mark.parametrize("seed", range(4))
def test_groups_make_no_difference(seed: int) -> None:
    with Session().on():
        case = Made(seed)
        one, other = gradient(case, grouped=False), gradient(case, grouped=True)
        assert one is not other
        assert without_names(one) is without_names(other)
        wrong = gradient(case, grouped=True, wrong=True)
        assert without_names(one) is not without_names(wrong)
        for p in (one, other, wrong):
            values, apart = (case.value(each).astype(float) for each in (p, without_names(p)))
            assert np.allclose(values, apart)
