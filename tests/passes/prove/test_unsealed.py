"""Definitions are made when all of their leaves have come up, and not for one that all layers have."""

from __future__ import annotations

from itertools import pairwise

from hlo_verify.passes.prove.unsealed import Unsealed
from hlo_verify.session import Session
from hlo_verify.terms.term import Tensor, tensor


def _leaves(*names: str) -> tuple[Tensor, ...]:
    return tuple(tensor("argument", name, "f32", (4,)) for name in names)


def test_a_definition_is_made_once_all_of_its_leaves_come_up() -> None:
    with Session().on():
        x, w, mask, y, z = _leaves("x", "w", "mask", "y", "z")
        waiting = Unsealed()
        waiting.add(y, (x, w, mask))
        waiting.add(z, (x, mask))
        assert list(waiting.made_of((mask,))) == []
        assert list(waiting.made_of((w, mask))) == []
        assert list(waiting.made_of((x, mask))) == [z]
        assert list(waiting.made_of((mask, x, w))) == [y]
        assert list(waiting.made_of((mask, x, w))) == []


def test_what_is_made_of_a_definition_as_well_is_made_with_it_but_no_further() -> None:
    with Session().on():
        x, mask, first, second, third = _leaves("x", "mask", "first", "second", "third")
        waiting = Unsealed()
        waiting.add(first, (x, mask))
        waiting.add(second, (first, mask))
        waiting.add(third, (second, mask))
        assert list(waiting.made_of((x, mask))) == [first, second]
        assert list(waiting.made_of((second, mask))) == [third]


def test_a_leaf_of_all_layers_makes_the_definitions_of_none() -> None:
    with Session().on():
        (mask,) = _leaves("mask")
        layers = _leaves(*(f"x{n}" for n in range(50)))
        waiting = Unsealed()
        for before, after in pairwise(layers):
            waiting.add(after, (before, mask))
        assert list(waiting.made_of((mask,))) == []
        assert list(waiting.made_of((mask, layers[30]))) == [layers[31], layers[32]]
