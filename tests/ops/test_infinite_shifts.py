"""A softmax whose scores are shifted by something that is no number is no softmax: nothing cancels."""

from __future__ import annotations

import pytest

from hlo_verify.passes.chain.pair_programs import pair_of_wholes
from hlo_verify.passes.diagnose.examine import prove
from hlo_verify.passes.load.load import load
from hlo_verify.report import Verdict


def softmax(shift: str) -> str:
    return f"""HloModule m

sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}}

largest {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b)
}}

ENTRY main {{
  x = f32[4,8] parameter(0)
  y = f32[4] parameter(1)
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  high = f32[] constant(inf)
  lows = f32[4] broadcast(low), dimensions={{}}
  highs = f32[4] broadcast(high), dimensions={{}}
  wide = f32[4,8] broadcast(high), dimensions={{}}
  {shift}
  ms = f32[4,8] broadcast(m), dimensions={{0}}
  d = f32[4,8] subtract(x, ms)
  e = f32[4,8] exponential(d)
  s = f32[4] reduce(e, zero), dimensions={{1}}, to_apply=sum
  ss = f32[4,8] broadcast(s), dimensions={{0}}
  ROOT o = f32[4,8] divide(e, ss)
}}
"""


PLAIN = softmax("m = f32[4] reduce(x, low), dimensions={1}, to_apply=largest")
MASKED = """i = s32[4,8] iota(), iota_dimension=0
  j = s32[4,8] iota(), iota_dimension=1
  c = pred[4,8] compare(i, j), direction=GE
  n = f32[4,8] broadcast(low), dimensions={}
  w = f32[4,8] select(c, x, n)
  m = f32[4] reduce(w, low), dimensions={1}, to_apply=largest"""


@pytest.mark.parametrize(
    "shift",
    [
        "m = f32[4] copy(y)",
        "m = f32[4] maximum(y, lows)",
        "m = f32[4] minimum(y, highs)",
        MASKED,
    ],
)
def test_any_number_may_be_subtracted(shift: str) -> None:
    assert prove(*pair_of_wholes(load(PLAIN), load(softmax(shift)))).verdict is Verdict.PROVED


@pytest.mark.parametrize(
    "shift",
    [
        "m = f32[4] reduce(x, low), dimensions={1}, to_apply=sum",
        "m = f32[4] reduce(x, high), dimensions={1}, to_apply=largest",
        "m = f32[4] copy(lows)",
        "m = f32[4] add(y, highs)",
        "w = f32[4,8] add(x, wide)\n  m = f32[4] reduce(w, low), dimensions={1}, to_apply=largest",
        "w = f32[4,8] multiply(x, wide)\n  m = f32[4] reduce(w, low), dimensions={1}, to_apply=largest",
        "k = f32[4] add(y, highs)\n  m = f32[4] abs(k)",
        "k = f32[4] add(y, highs)\n  m = f32[4] sine(k)",
        "k = f32[4] add(y, highs)\n  m = f32[4] clamp(y, k, highs)",
        "l = f32[4] exponential(highs)\n  k = f32[4] multiply(y, l)\n  m = f32[4] abs(k)",
        "q = f32[] constant(nan)\n  m = f32[4] broadcast(q), dimensions={}",
        "q = f32[] constant(nan)\n  r = f32[4] broadcast(q), dimensions={}\n  k = f32[4] add(y, r)\n  m = f32[4] abs(k)",  # noqa: E501
        MASKED.replace("direction=GE", "direction=GT"),  # nothing is left of the first row
    ],
)
def test_nothing_else(shift: str) -> None:
    assert prove(*pair_of_wholes(load(PLAIN), load(softmax(shift)))).verdict is Verdict.UNKNOWN
