"""Windows whose elements' exponentials are added up, as `jax.lax.cumlogsumexp` has them joined two by two.

    max(a, b) + log1p(exp(-abs(a - b)))  =  log(exp(a) + exp(b))

Where a difference of equal infinities is no number, the region gives the sum of both, which is the same infinity: so it
is that logarithm of all extended real numbers, and from minus infinity on, whose exponential is 0, any number of
elements are joined to the logarithm of the sum of their exponentials.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlo_verify.index.expr import Var
from hlo_verify.program.ir import Function, Op
from hlo_verify.terms import algebra, sums
from hlo_verify.terms.functions import EXPONENTIAL, LOG
from hlo_verify.terms.laws import apply
from hlo_verify.terms.no_number import infinity
from hlo_verify.terms.term import Poly

_JOINED = (
    ("maximum", 0, 1),
    ("subtract", 0, 1),
    ("compare", 3, 3),
    ("add", 0, 1),
    ("abs", 3),
    ("negate", 6),
    ("exponential", 7),
    ("log_plus_one", 8),
    ("add", 2, 9),
    ("select", 4, 5, 10),
)
"""The operations of `jax.numpy.logaddexp` of real numbers: what each is of, the two arguments first."""


def is_log_of_sum(region: Function) -> bool:
    """Whether a region of two numbers gives the logarithm of the sum of their exponentials."""
    places = {name: n for n, name in enumerate(region.arguments)}
    found = []
    for op in region.ops:
        found.append((op.name, *(places.get(v, -1) for v in op.operands)))
        places.update((v, len(places)) for v in op.results)
    if len(region.arguments) != 2 or tuple(found) != _JOINED or region.results != region.ops[-1].results:
        return False
    compared = next(op.attributes for op in region.ops if op.name == "compare")
    if compared["comparison_direction"] != "NE" or compared.get("compare_type") == "TOTALORDER":
        return False  # what is no number is equal to itself in the total order
    return len({type_ for op in region.ops for type_ in op.types if type_.dtype != "i1"}) == 1


def has_elements(op: Op, source: Sequence[int]) -> bool:
    """Whether each window of a tensor of that shape has an element of it, and not padding alone."""
    attributes, rank = op.attributes, len(source)
    if any(n != 1 for name in ("base_dilations", "window_dilations") for n in attributes.get(name) or ()):
        return False
    strides, padding = attributes.get("window_strides") or (1,) * rank, attributes.get("padding")
    for k, size in enumerate(attributes["window_dimensions"]):
        low = int(padding[k][0]) if padding is not None else 0
        if low >= size or (op.types[0].shape[k] - 1) * strides[k] - low >= source[k]:
            return False
    return True


def log_of_sum(bound: Sequence[Var], inside: Poly, term: Poly, first: Poly) -> Poly | None:
    """The logarithm of the sum of the exponentials of what is inside, of numbers, from minus infinity on."""
    if term.doubt or first is not infinity(-1):
        return None
    return apply(LOG, (sums.reduce_sum(bound, algebra.multiply(inside, apply(EXPONENTIAL, (term,)))),))
