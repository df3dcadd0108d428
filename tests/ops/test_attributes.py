"""Every attribute of an operation counts: with another value it is another operation, or it is known why it is not.

Which attributes there are, jaxlib's own classes of operations say; one that a new version brings fails here.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import pytest

from hlo_verify import verify
from hlo_verify.ops.indexing import CLAIMS
from hlo_verify.passes.chain.pair_programs import pair_of_programs
from hlo_verify.passes.diagnose.examine import prove
from hlo_verify.passes.load.load import load
from hlo_verify.report import Verdict
from tests.support.attribute_examples import EXAMPLES, NEVER_EQUAL, SAME, UNDERSTOOD, is_known


def test_every_attribute_is_tried() -> None:
    known = {name: set(example.attributes) for name, example in EXAMPLES.items()}
    missing = {name: attributes - known.get(name, set()) for name, attributes in UNDERSTOOD.items()}
    assert not {name: left for name, left in missing.items() if left and name not in NEVER_EQUAL}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_operation_equals_itself(name: str) -> None:
    """Else nothing is tried by changing its attributes."""
    text = EXAMPLES[name].text(name)
    assert _verdict(text, text) is Verdict.PROVED


CHANGES = [
    (name, each)
    for name, example in EXAMPLES.items()
    for each, values in example.attributes.items()
    if len(values) > 1 and is_known(name, each)
]


@pytest.mark.drawn(40)
@pytest.mark.parametrize(("name", "attribute"), CHANGES)
def test_another_value_is_another_operation(name: str, attribute: str) -> None:
    example = EXAMPLES[name]
    is_same = _verdict(example.text(name), example.text(name, attribute)) is Verdict.PROVED
    assert is_same == (attribute in SAME or f"{name.rpartition('.')[2]} {attribute}" in SAME)


def _verdict(first: str, second: str) -> Verdict:
    return prove(*pair_of_programs(load(first), load(second), 4)).verdict


CLAIMING = [(name, each) for name in ("gather", "scatter") for each in CLAIMS if each in EXAMPLES[name].attributes]


@pytest.mark.parametrize(("name", "claim"), CLAIMING)
def test_what_is_taken_for_granted_of_indices(name: str, claim: str) -> None:
    """Devices may take for granted what the logical module does, and need not; that indices are in order, and no two of
    them equal, may be seen too."""
    plain, claiming = EXAMPLES[name].text(name), EXAMPLES[name].text(name, claim)
    assert _verdict(claiming, claiming) is Verdict.PROVED
    assert _verdict(claiming, plain) is Verdict.PROVED
    assert _verdict(plain, claiming) is Verdict.UNKNOWN
    assert _verdict(_numbered(plain), _numbered(claiming)) is Verdict.PROVED


def _numbered(text: str) -> str:
    """The module in which the indices are 0, 1, 2 and so on."""
    return text.replace("%a1: tensor<4x1xi32>", "%unused: tensor<4x1xi32>").replace("%r:1", f"{NUMBERS}%r:1")


NUMBERS = '%a1 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<4x1xi32>\n'


def _put(x: Any, i: Any, j: Any, u: Any, *, claimed: tuple[bool, bool] = (True, False), scalar: bool = False) -> Any:
    """Two scatters, or one of which the first is to a single place."""
    first = x.at[0].set(2.0) if scalar else x.at[i].add(u, unique_indices=claimed[0])
    return first, x.at[j].add(u, unique_indices=claimed[1]) * 2


def _got(x: Any, i: Any, j: Any, u: Any, *, claimed: tuple[bool, bool] = (True, False)) -> Any:
    first = x.at[i].get(indices_are_sorted=claimed[0])
    return first, x.at[j].get(indices_are_sorted=claimed[1]) + u


OF_OTHERS: dict[str, tuple[Any, Any]] = {
    "of other indices": (_put, partial(_put, claimed=(True, True))),
    "of a single index": (partial(_put, scalar=True), partial(_put, scalar=True, claimed=(True, True))),
    "of the first alone": (_put, partial(_put, claimed=(False, True))),
    "sorted, of other indices": (_got, partial(_got, claimed=(True, True))),
}


@pytest.mark.parametrize("name", OF_OTHERS)
def test_what_is_said_of_some_indices_is_not_said_of_others(name: str) -> None:
    places = jax.ShapeDtypeStruct((4,), "int32")
    types = jax.ShapeDtypeStruct((8,), "float32"), places, places, jax.ShapeDtypeStruct((4,), "float32")
    first, second = (jax.jit(each, keep_unused=True).trace(*types) for each in OF_OTHERS[name])
    assert verify(first, second, devices=1, refute=False).verdict is Verdict.UNKNOWN
    less = Verdict.UNKNOWN if "alone" in name else Verdict.PROVED
    assert verify(second, first, devices=1, refute=False).verdict is less
    assert verify(first, first, devices=1, refute=False).verdict is Verdict.PROVED
