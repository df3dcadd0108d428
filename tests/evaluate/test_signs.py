"""Signs that are chosen for vectors, as many as there may be."""

from __future__ import annotations

from itertools import combinations

import pytest

from hlo_verify.evaluate.signs import is_opposite, other_choices


@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_products_of_few_vectors_have_another_sign_in_some_choice(count: int) -> None:
    opposites = [[is_opposite(n, choice) for choice in other_choices(count)] for n in range(count)]
    for size in (1, 2):
        for chosen in combinations(opposites, size):
            assert any(sum(each) % 2 for each in zip(*chosen, strict=True))


def test_most_products_of_four_vectors_do() -> None:
    opposites = [[is_opposite(n, choice) for choice in other_choices(12)] for n in range(12)]
    seen = [any(sum(each) % 2 for each in zip(*chosen, strict=True)) for chosen in combinations(opposites, 4)]
    assert sum(seen) > 0.9 * len(seen)


def test_the_first_choice_leaves_all_as_they_are() -> None:
    assert not any(is_opposite(n, 0) for n in range(40))
    assert all(is_opposite(n, 1) for n in range(40))
