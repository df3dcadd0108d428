"""Questions by name: what is the same up to names is one question, and nothing else is."""

from __future__ import annotations

import numpy as np

from hlo_verify.index import expr
from hlo_verify.passes.recheck.fingerprint import Names
from hlo_verify.passes.recheck.plain import Element, Entry, Expr, OfIndex, Symbol, table, whole

V, W = expr.var("p", 0, 2), expr.var("p", 1, 2)


def text(*terms: Expr) -> str:
    return Names().text(terms)


def test_names_of_variables_and_tensors_do_not_count() -> None:
    a, b = (Element(Symbol(name, "argument", "f32"), (whole(v),)) for name, v in (("a", V), ("b", W)))
    assert text(a) == text(b)
    assert text(a, b) != text(a, a)


def test_tables_count_by_their_values() -> None:
    first, second, again = (OfIndex(table(values, whole(V))) for values in ((-1, 0), (-2, 0), (-1, 0)))
    assert text(first) != text(second)  # though Python's hash of them is the same
    assert text(first) == text(again)


def test_constants_count_by_their_values_and_type() -> None:
    values = np.array([1, 2], np.int32)
    assert text(Entry(values, whole(V))) != text(Entry(values.view(np.float32), whole(V)))
    assert text(Entry(values, whole(V))) != text(Entry(values[::-1], whole(V)))
    assert text(Entry(values, whole(V))) == text(Entry(values.copy(), whole(W)))
