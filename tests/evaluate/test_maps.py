"""What is made of arrays is made once of the same ones."""

from __future__ import annotations

import numpy as np

from hlo_verify.evaluate.maps import Array, Maps


def test_it_is_made_once_of_the_same_objects() -> None:
    maps, asked = Maps(), []

    def shifted(numbers: Array, by: int) -> Array:
        asked.append(by)
        return numbers + by

    some = np.arange(3)
    assert maps.once(shifted, some, 1000) is maps.once(shifted, some, 1000)
    assert maps.once(shifted, some, 2000).tolist() == [2000, 2001, 2002]
    assert maps.once(shifted, np.arange(1, 4), 1000).tolist() == [1001, 1002, 1003]
    assert asked == [1000, 2000, 1000]


def test_an_array_that_comes_where_another_was_is_none_of_it() -> None:
    """Ids are given again once an object is gone."""
    maps = Maps()
    for n in range(1000):
        assert maps.once(np.sum, np.full(64, n)) == 64 * n
