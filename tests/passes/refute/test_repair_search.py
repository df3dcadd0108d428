"""What looking for a repair may take: that of a wrong module is given up soon."""

from __future__ import annotations

import math
from pathlib import Path

from hlo_verify.limits import Limits
from hlo_verify.passes.diagnose.proved import are_proved
from hlo_verify.passes.load.load import load
from hlo_verify.passes.refute.repair_search import Allowance
from hlo_verify.passes.refute.repairs import simplest
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
