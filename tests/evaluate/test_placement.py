"""Shards of arguments, and differences of results."""

from __future__ import annotations

import numpy as np
import pytest

from hlo_verify.evaluate import Blocks, dense, difference, of_dense, random_argument, shards
from hlo_verify.evaluate.balls import BALLS
from hlo_verify.evaluate.blocks import of_devices
from hlo_verify.evaluate.intervals import INTERVALS
from hlo_verify.evaluate.numbers import exact
from hlo_verify.program.sharding import Sharding, maximal, parse_hlo_sharding

SHARDINGS = [
    ("{devices=[2,2]<=[4]}", (8, 6)),
    ("{devices=[2,2]<=[2,2]T(1,0)}", (5, 7)),
    ("{devices=[4,1]<=[4]}", (6, 3)),
    ("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", (5, 3)),
    ("{devices=[1,2,2]<=[4] last_tile_dims={unreduced}}", (3, 5)),
    ("{replicated}", (2, 3)),
]


def parse(text: str, rank: int) -> Sharding:
    found = parse_hlo_sharding(text, rank, 4)
    assert isinstance(found, Sharding)
    return found.spread(4)


def sharding_of(text: str) -> Sharding:
    return parse(text, 2)


def expected(whole: np.ndarray, sharding: Sharding, device: int) -> tuple[np.ndarray, tuple[slice, ...]]:
    """A device's shard of an array, and where it lies within the local tensor."""
    local = [-(-n // t) for n, t in zip(whole.shape, sharding.tiles, strict=True)]
    start = [int(c) * n for c, n in zip(sharding.coordinates[device], local, strict=True)]
    part = whole[tuple(slice(a, a + n) for a, n in zip(start, local, strict=True))]
    return part, tuple(slice(0, n) for n in part.shape)


@pytest.mark.parametrize(("text", "shape"), SHARDINGS)
@pytest.mark.parametrize("seed", range(3))
def test_shards_hold_the_whole(text: str, shape: tuple[int, ...], seed: int) -> None:
    generator, sharding = np.random.default_rng(seed), sharding_of(text)
    argument = random_argument(shape, "f32", generator, tiles=sharding.tiles, detail=3)
    whole, placed = dense(argument, 0), shards(argument, sharding, 4, generator)
    held = [dense(placed, d) for d in range(4)]
    for group in sharding.addend_groups():
        total = sum(held[d] for d in group)
        part, where = expected(whole, sharding, int(group[0]))
        np.testing.assert_allclose(total[where], part, rtol=1e-12)
    found = difference(argument, placed, sharding)
    assert found is None or found.relative < 1e-12


@pytest.mark.parametrize(("text", "shape"), SHARDINGS)
@pytest.mark.parametrize("seed", range(3))
def test_the_largest_difference_is_found(text: str, shape: tuple[int, ...], seed: int) -> None:
    generator, sharding = np.random.default_rng(seed), sharding_of(text)
    array = generator.normal(size=shape)
    placed = shards(of_dense(array), sharding, 4, generator)
    held = np.stack([dense(placed, d) for d in range(4)])
    device = int(generator.integers(4))
    part, _ = expected(array, sharding, device)
    if not part.size:
        return
    at = tuple(int(generator.integers(n)) for n in part.shape)
    held[(device, *at)] += 100
    found = difference(of_dense(array), of_devices(held), sharding)
    assert found is not None
    assert found.size == pytest.approx(100) and found.local_element == at
    assert array[found.element] == found.expected == part[at]
    same = np.all(sharding.coordinates[found.device] == sharding.coordinates[device])
    assert found.device == device or (sharding.addends is not None and same)


def test_differences_past_the_end_do_not_count() -> None:
    sharding = sharding_of("{devices=[4,1]<=[4]}")
    array = np.arange(18.0).reshape(6, 3)
    held = np.zeros((4, 2, 3))
    held[:3] = array.reshape(3, 2, 3)
    held[3] = 7
    assert difference(of_dense(array), of_devices(held), sharding) is None


def test_one_device_has_a_maximal_tensor() -> None:
    array = np.arange(6.0).reshape(2, 3)
    placed = shards(of_dense(array), maximal(2, 2, 4), 4, np.random.default_rng(0))
    np.testing.assert_array_equal(dense(placed, 2), array)
    assert difference(of_dense(array), placed, maximal(2, 2, 4)) is None
    assert difference(of_dense(array + 1), placed, maximal(2, 2, 4)) is not None


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint8])
def test_what_is_past_the_end_is_like_the_rest(dtype: type) -> None:
    whole = np.full((3, 1), -7 if np.issubdtype(dtype, np.signedinteger) else 7, dtype)
    held = shards(of_dense(whole), sharding_of("{devices=[4,1]<=[4]}"), 4, np.random.default_rng(0))
    assert dense(held, 2) == whole[0] and abs(int(dense(held, 3)[0, 0])) <= 8


def test_nan_on_a_device_alone_is_told_apart() -> None:
    sharding = sharding_of("{devices=[4,1]<=[4]}")
    array = np.ones((4, 2))
    held = array.reshape(4, 1, 2).copy()
    held[1, 0, 1] = np.nan
    found = difference(of_dense(array), of_devices(held), sharding)
    assert found is not None and found.nan and found.element == (1, 1)
    array[1, 1] = np.nan
    assert difference(of_dense(array), of_devices(held), sharding) is None


def test_a_global_result_is_cut_first() -> None:
    sharding = sharding_of("{devices=[2,2]<=[4]}")
    whole = of_dense(np.arange(48.0).reshape(8, 6))
    assert difference(whole, whole, sharding) is None


@pytest.mark.parametrize("shape", [(512, 4096), (2048, 32000), (3, 7)])
@pytest.mark.parametrize("detail", [1, 2, 4, 8])
def test_arguments_stay_within_their_detail(shape: tuple[int, int], detail: int) -> None:
    generator = np.random.default_rng(detail)
    argument = random_argument(shape, "f32", generator, tiles=(8, 4), detail=detail, scale=2.0)
    assert all(count <= detail for count in argument.values.shape[1:])
    assert all(0.2 <= abs(x) <= 2 for x in argument.values.flat)
    numbers = random_argument(shape, "i32", generator, integers=10, detail=detail)
    assert all(0 <= x < 10 for x in numbers.values.flat)


@pytest.mark.parametrize(("dtype", "least"), [("i32", -10), ("ui64", 0), ("i8", -10)])
def test_integers_outside_of_their_range(dtype: str, least: int) -> None:
    numbers = random_argument((64, 64), dtype, np.random.default_rng(1), integers=10, detail=64, outside=1)
    found = {int(x) for x in numbers.values.flat}
    assert min(found) == least and max(found) == 19 and found > set(range(10))


def test_a_dimension_of_heads_stays_compact() -> None:
    from hlo_verify.evaluate.maps import rectangle

    for seed in range(10):
        argument: Blocks = random_argument((64, 4096), "f32", np.random.default_rng(seed), tiles=(1, 8), detail=4)
        _, _, table = rectangle(argument.classes[2].reshape(32, 128))
        assert table.size <= 4


@pytest.mark.parametrize("nan", [False, True])
def test_the_first_of_the_largest_differences_is_found_in_large_results(nan: bool) -> None:
    whole = np.zeros((300, 200))
    whole[2, 3] = -7.0
    local = whole.copy()
    local[100, 3] = local[250, 150] = 2.0
    local[299, 0] = np.nan if nan else 1.0
    sharding = parse_hlo_sharding("{replicated}", 2, 1)
    assert isinstance(sharding, Sharding)
    found = difference(of_dense(whole), of_dense(local), sharding)
    assert found is not None
    assert found.element == ((299, 0) if nan else (100, 3))
    assert found.nan == nan
    assert found.scale == 7.0


@pytest.mark.parametrize("side", [1, -1])
def test_an_integer_that_is_alone_lies_outside_if_asked(side: int) -> None:
    """Half of the few draws that ask for it must not be spent inside: an offset at which a cache is written."""
    for seed in range(20):
        [number] = random_argument((), "i32", np.random.default_rng(seed), integers=10, outside=side).values.reshape(-1)
        assert 10 <= number < 20 if side > 0 else -10 <= number < 0


@pytest.mark.parametrize("numbers", ["float", "integer", "truth value", "ball", "interval"])
@pytest.mark.parametrize(("apart", "beside"), [((0, 1, 0, 1), (1, 0)), ((0, 0, 2, 0), (2, 0)), ((3, 3, 3, 3), None)])
def test_devices_are_compared_with_one_another_where_the_logical_result_differs_by_device(
    numbers: str, apart: tuple[int, ...], beside: tuple[int, int] | None
) -> None:
    """As it is of a manual region that gives what its devices disagree on."""
    held = np.array([[1.5, 1.0 + (each > 0)] for each in apart])
    made = {
        "float": held,
        "integer": (2 * held).astype(np.int32),
        "truth value": held > 1.5,
        "ball": exact(held, BALLS),
        "interval": exact(held, INTERVALS),
    }[numbers]
    found = difference(of_devices(made), of_devices(made), parse("{replicated}", 1))
    assert (found and (found.device, found.beside)) == beside
    assert found is None or (found.element, float(found.found) - float(found.expected) > 0) == ((1,), True)


@pytest.mark.parametrize("whole", [np.nan, np.inf])
def test_what_is_no_number_may_be_another_on_each_device(whole: float) -> None:
    found = of_devices(np.array([[1.0], [2.0], [1.0], [1.0]]))
    said = of_devices(np.array([[1.0], [whole], [1.0], [1.0]]))
    apart = difference(said, found, parse("{replicated}", 1))
    assert (apart and apart.beside) is None


def test_devices_that_hold_other_elements_may_differ() -> None:
    """Two devices hold each half: they are compared with the first of the two."""
    sharding = parse("{devices=[2,2]<=[4] last_tile_dim_replicate}", 1)
    held = np.array([[1.0], [1.0], [5.0], [6.0]])
    assert difference(of_devices(held[[0, 1, 2, 2]]), of_devices(held[[0, 1, 2, 2]]), sharding) is None
    whole = of_devices(np.array([[1.0, 5.0], [1.0, 5.0], [1.0, 5.0], [1.0, 6.0]]))
    found = difference(whole, of_devices(held), sharding)
    assert found is not None and (found.device, found.beside, found.element) == (3, 2, (1,))
