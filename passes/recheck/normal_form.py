"""The exact normal form of formulas: one that is multiplied out is the other, monomial by monomial."""

from __future__ import annotations

from hlo_verify.equality.backend import Answer, Equal, Limits, Unknown
from hlo_verify.passes.recheck.products import Products
from hlo_verify.passes.recheck.question import Formulas


class NormalForm:
    """Decides formulas by multiplying them out. It knows no model: what is not one polynomial may still be equal.

    What would have too many monomials is given up (`recheck_compared_products`), which keeps time and memory small.
    """

    def decide(self, question: Formulas, limits: Limits) -> Answer:
        """As `Backend.decide`; needs no further limits."""
        products = Products(question.graph)
        if all(products.same(a, b) for a, b in question.pairs):
            return Equal()
        return Unknown("not one polynomial when multiplied out")
