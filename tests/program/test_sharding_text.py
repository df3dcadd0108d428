"""Texts of shardings, good and bad: jaxlib never meets one that ends its process."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys

import pytest

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.load.load import load
from hlo_verify.program import sharding_text

SEEDS = [
    "{devices=[2,2]3,1,2,0}",
    "{devices=[2,4]<=[8]}",
    "{devices=[4,2]<=[2,4]T(1,0)}",
    "{devices=[1,2,2,2]<=[2,2,2]T(2,0,1) last_tile_dims={replicated, unreduced}}",
    "{mesh['a'=2,'b'=2,'c'=2], device_ids=([2,4]T(1,0)), [{'c','a'}, {}]}",
    "{mesh['a'=2,'b'=2], device_ids=(1,0,3,2), [{'a', ?}, {?}]}",
    "{mesh['a'=4,'b'=2], [{'a':(2)2}, {'b'}], unreduced={'a':(1)2}}",
    "{mesh['a'=4], replicated}",
    "{mesh['a'=4], unreduced}",
    "{replicated}",
    "{maximal device=2}",
    "{maximal_mesh[device_id=2]}",
    "{unknown}",
    '{{devices=[2,1]<=[2]}, /*index=1*/{replicated metadata={op_name="a}{"}}}',
    "{}",
    '#sdy.sharding<mesh<["a"=4], device_ids=[3,1,2,0]>, [{"a":(2)2}, {}], unreduced={"a":(1)2}>',
    "#sdy.sharding<mesh<[], device_ids=[3]>, [{}]>",
    '#sdy.sharding_per_value<[<mesh<["a"=2]>, [{"a"}]>, <mesh<["a"=2]>, []>]>',
]
NUMBERS = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "8",
    "-1",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "18446744073709551616",
]
PIECES = [
    *"{}[](),=?<> ",
    "'a'",
    "'b'",
    "''",
    "<=",
    "T(1,0)",
    "last_tile_dims={manual}",
    "manual",
    "unreduced={'b'}",
    "/*",
]

CHILD = """
import json, sys
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.program.sharding import device_counts, parse_sharding
for line in sys.stdin:
    text, ranks, devices = json.loads(line)
    print(line, end="", flush=True)
    for read in (lambda: parse_sharding(text, ranks, devices), lambda: device_counts(text)):
        try:
            read()
        except InputError as error:
            assert str(error)
"""


def _mutate(generator: random.Random, text: str) -> str:
    parts = re.findall(r"\d+|\w+|\W", text)
    for _ in range(generator.choice([1, 1, 1, 2, 3])):
        numbers = [k for k, part in enumerate(parts) if part.isdigit()]
        k = generator.randrange(len(parts)) if parts else 0
        match generator.randrange(6):
            case 0 | 1 | 2 if numbers:
                parts[generator.choice(numbers)] = generator.choice(NUMBERS)
            case 3:
                del parts[k : k + 1]
            case 4:
                parts.insert(k, generator.choice(PIECES))
            case _:
                j = generator.randrange(len(parts) + 1)
                parts[k:k] = parts[min(k, j) : max(k, j)]
    return "".join(parts)


def test_no_text_ends_the_process() -> None:
    generator = random.Random(0)
    texts = [*SEEDS, *(_mutate(generator, generator.choice(SEEDS)) for _ in range(3000))]
    tasks = [(t, [generator.randrange(4)] * generator.choice([1, 2]), generator.choice([None, 2, 4, 8])) for t in texts]
    lines = "".join(json.dumps(task) + "\n" for task in tasks)
    child = subprocess.run([sys.executable, "-c", CHILD], input=lines, capture_output=True, text=True, timeout=300)
    last = child.stdout.splitlines()[-1:]
    assert child.returncode == 0, (last, child.stderr[-1000:])


@pytest.mark.parametrize("text", [seed for seed in SEEDS if seed.startswith("{")])
def test_good_texts_pass(text: str) -> None:
    assert len(sharding_text.leaves(text)) == (0 if text == "{}" else 2 if text.startswith("{{") else 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{devices=[1,4]<=[1]}", "for 4 devices and names 1"),
        ("{devices=[2,2]<=[4]T(1,0)}", "no permutation of 1 dimensions"),
        ("{devices=[0,2]<=[2]}", "a size of 0"),
        ("{devices=[4194304]<=[4194304]}", "1048576 at most"),
        ("{maximal device=4294967296}", "1048576 at most"),
        ("{maximal device=-1}", "cannot be read"),
        ("{mesh['a'=2], [{'b'}]}", "names the axis 'b'"),
        ("{mesh['a'=2], [{'a'}, {'a'}]}", "uses the axis 'a'"),
        ("{mesh['a'=2], [{'a'}], unreduced={'a'}}", "uses the axis 'a'"),
        ("{mesh['a'=4], [{'a':(2)4}]}", "no part of its mesh"),
        ("{mesh['a'=2,'a'=2], [{'a'}]}", "names of their own"),
        ("{mesh['a'=2], device_ids=(0,0), [{'a'}]}", "each of its 2 devices once"),
        ("{mesh['a'=2], [{'a'} 'b'{}]}", "cannot be read"),
        ("{{replicated},}", "an element is missing"),
        ("{{replicated}", "cannot be read"),
    ],
)
def test_bad_texts_are_refused_in_words(text: str, said: str) -> None:
    with pytest.raises(InputError, match="not a sharding: ") as refused:
        sharding_text.leaves(text)
    assert said in str(refused.value)


HLO = """HloModule m, entry_computation_layout={(f32[4]{0})->f32[4]{0}}, num_partitions=4

ENTRY main {
  ROOT p = f32[4]{0} parameter(0), sharding=%s, metadata={op_name="x sharding={no}"}
}
"""


def test_hlo_text_is_checked_before_it_is_parsed() -> None:
    assert load(HLO % "{devices=[4]<=[4]}").argument_shardings[0] is not None
    with pytest.raises(InputError, match="for 4 devices and names 1"):
        load(HLO % "{devices=[4]<=[1]}")
