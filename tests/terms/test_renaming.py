"""A term about other tensors is the same function of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.index import expr
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import define, named
from hlo_verify.terms.renaming import Leaves, Renaming
from hlo_verify.terms.term import Read, Tensor, tensor
from tests.support.evaluate import Evaluator
from tests.support.expressions import Array, Space, assert_equal, data, evaluated, many, poly, space


def renamed(source: Tensor) -> Tensor:
    return tensor(source.kind, f"{source.name}'", source.dtype, source.shape)


@many
@given(draws=st.data())
def test_a_renamed_term_is_the_same_function_of_other_tensors(draws: st.DataObject) -> None:
    """Through definitions, conditions and tables too; some tensors stay what they are."""
    free, known = space(draws.draw, 2), data(draws.draw)
    bound = expr.var("y", 0, draws.draw(st.sampled_from((2, 3))))
    inner, outer = poly(draws.draw, Space((*free.variables, bound)), known), poly(draws.draw, free, known, 1)
    term = algebra.add(named(define("sum", [bound], (inner.it,))), outer.it)
    mapping = {source: renamed(source) for source in known.tensors if draws.draw(st.booleans())}
    leaves = Leaves()
    found = Renaming(mapping, leaves).poly(term)
    assert leaves.of(found) == {mapping.get(source, source) for source in leaves.of(term)}
    elements: dict[Tensor, Array] = {mapping.get(source, source): held for source, held in known.tensors.items()}
    wanted = evaluated(term, free, known.evaluator)
    assert_equal(evaluated(found, free, Evaluator(elements)), wanted, term)


def test_a_definition_of_other_tensors_is_the_one_that_they_would_have_made() -> None:
    x, y = (tensor("argument", name, "f32", (8, 4)) for name in "xy")
    rows, columns = expr.var("p", 0, 8), expr.var("b", 0, 4)

    def total(source: Tensor) -> Read:
        at = (expr.of_var(rows), expr.of_var(columns))
        atom = define("sum", [columns], (algebra.read(source, at),)).atom
        assert isinstance(atom, Read)
        return atom

    leaves = Leaves()
    assert leaves.tensor(total(x).tensor) == {x}
    assert Renaming({x: y}, leaves).tensor(total(x).tensor) is total(y).tensor
