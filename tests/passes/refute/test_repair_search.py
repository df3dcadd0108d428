"""What looking for a repair may take: that of a wrong module is given up soon."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from hlo_verify.evaluate import Difference
from hlo_verify.limits import Limits
from hlo_verify.passes.diagnose.finding import Lead
from hlo_verify.passes.diagnose.proved import are_proved
from hlo_verify.passes.load.load import load
from hlo_verify.passes.refute import trial as trials
from hlo_verify.passes.refute.draws import Draw, Drawing
from hlo_verify.passes.refute.repair_search import Allowance, suggest
from hlo_verify.passes.refute.repairs import repairs, simplest
from hlo_verify.passes.refute.trial import Counterexample
from hlo_verify.program.pair import pair_of
from hlo_verify.session import Session

FIXTURE = Path(__file__).parents[3] / "testdata" / "mlp_tp"


def test_a_repair_that_is_none_is_given_up_sooner_than_a_module() -> None:
    """A right module has its match among the first that a value is compared with; what is run into is not said."""
    logical = load(FIXTURE / "logical.hlo.gz")
    results = range(len(logical.main.results))
    for name, is_right in (("partitioned", True), ("broken_dropped_psum", False)):
        partitioned, session = load(FIXTURE / f"{name}.hlo.gz"), Session()
        one = Allowance.of(session).of_one_proof()
        assert are_proved(logical, partitioned, results, one) is is_right
        assert not session.spent().limits
        if not is_right:
            assert not are_proved(logical, partitioned, results, session)
            assert one.candidates < session.candidates / 2


def test_a_factor_is_a_plain_number_or_none() -> None:
    """What two rounded values are apart is not a repair by itself."""
    assert simplest(3.0000002) == 3 and simplest(1.3333333) * 3 == 4
    assert simplest(math.pi) is None and simplest(math.e) is None
    session = Session(Limits(repair_denominator=2))
    with session.on():
        assert simplest(1.5) == 1.5 and not session.spent().limits
        assert simplest(1.3333333) is None and session.spent().limits == ("repair_denominator",)


@pytest.mark.parametrize("elements", [None, 2])
def test_a_repair_that_is_right_for_alike_shards_alone_is_not_put_to_the_proof(elements: int | None) -> None:
    """Where all is 0, what devices send is the same wherever they send it. Where other inputs take too much, the proof
    has to tell."""
    mesh = AbstractMesh((4,), ("d",), axis_types=(AxisType.Auto,))
    sent = jax.shard_map(
        lambda x: jax.lax.ppermute(x, "d", [(i, (i + 2) % 4) for i in range(4)]),
        mesh=mesh,
        in_specs=P("d"),
        out_specs=P("d"),
    )
    x = jax.ShapeDtypeStruct((8,), jnp.float32)
    texts = (jax.jit(f).lower(x).as_text() for f in (lambda x: jnp.roll(x, 2), sent))
    pair, session = pair_of(*map(load, texts)), Session()
    mends = repairs(pair)
    (name,) = (n for n, op in mends.partitioned.ops.items() if op.name == "collective_permute")
    zeros = Drawing(pair).draw(Draw(1.0, 2, 8), 0, zero={0})
    trial = trials.run(pair, zeros)
    found = Counterexample(trial if elements is None else replace(trial, elements=elements), {})
    apart = Difference(0, (0,), (0,), np.float64(1), np.float64(2), 1.0, 1.0)
    allowance = Allowance.of(session)
    repair = suggest(found, mends, Lead(name), [0], apart, allowance)
    assert repair is not None and repair.text.startswith("sending to the next device of")
    assert session.limits.repair_proofs - allowance.proofs == (1 if elements is None else 2)
