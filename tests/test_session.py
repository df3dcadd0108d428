"""Verifications in one process have nothing to do with one another, be it one after another or in several threads."""

from __future__ import annotations

import ast
import gc
import json
import random
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import hlo_verify
from hlo_verify import collector, memory
from hlo_verify.diagnostics import Solver
from hlo_verify.index import expr
from hlo_verify.ops import RULES
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.prove import walk
from hlo_verify.render.json import report_object
from hlo_verify.session import Session, TimeUpError
from hlo_verify.terms import algebra
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import tensor
from tools.compare import fields, pairs, verified, without_seconds

ROOT = Path(__file__).resolve().parents[1]
TESTDATA = ROOT / "testdata"

PAIRS = [
    "mlp_2d/partitioned",
    "mlp_tp/broken_dropped_psum",
    "shardmap_vocab_xent/partitioned",
]
"""Proofs, and a refutation with a repair."""


def found(pair: str) -> dict[str, Any]:
    """What is said of a pair of a fixture, times aside."""
    fixture, _, name = pair.partition("/")
    (logical,), (partitioned,) = ((TESTDATA / fixture).glob(f"{each}.*") for each in ("logical", name))
    said: dict[str, Any] = without_seconds(report_object(hlo_verify.verify(logical, partitioned)))
    return said


def as_json(said: Any) -> str:
    return json.dumps(said, default=str)


@pytest.fixture(scope="module")
def alone() -> dict[str, str]:
    """What is said of each pair where it is the only one of its process."""
    command = (
        "import sys, json; from tests.test_session import found; print(json.dumps(found(sys.argv[1]), default=str))"
    )
    reports = {}
    for pair in PAIRS:
        done = subprocess.run([sys.executable, "-c", command, pair], capture_output=True, text=True, check=True)
        reports[pair] = done.stdout.strip()
    assert {json.loads(report)["verdict"] for report in reports.values()} == {"PROVED", "REFUTED"}
    return reports


def test_threads_find_what_each_finds_alone(alone: dict[str, str]) -> None:
    with ThreadPoolExecutor(len(PAIRS)) as threads:
        reports = dict(zip(PAIRS, map(as_json, threads.map(found, PAIRS)), strict=True))
    assert reports == alone


@pytest.mark.drawn(1)
@pytest.mark.parametrize("order", [PAIRS, PAIRS[::-1]])
def test_findings_are_the_same_in_any_order(order: list[str], alone: dict[str, str]) -> None:
    for pair in order:
        assert as_json(found(pair)) == alone[pair]


QUICK = re.compile(r"(?<!encoder_uneven)(?<!conv_spatial)(?<!_512)/partitioned|embedding_.*/broken")
"""Fixtures that take a second of a processor or less; `python -m tools.compare` asks the same of all."""


SAMPLE = 2
"""Of them, drawn by the seed of the run, for every run."""


@pytest.mark.parametrize("count", [SAMPLE, pytest.param(None, marks=pytest.mark.slow)], ids=["some", "all"])
def test_findings_of_many_are_the_same_in_two_orders(count: int | None, seed: int) -> None:
    """Whole reports but the seconds, with what was spent: what was remembered of others would save some of it."""
    proofs, refutations = (
        [pair for pair in pairs(ROOT, "fixtures") if QUICK.search(pair.name) and ("/broken" in pair.name) == is_broken]
        for is_broken in (False, True)
    )
    drawn = random.Random(seed)
    chosen = [*proofs, *refutations] if count is None else [*drawn.sample(proofs, count), drawn.choice(refutations)]
    given, turned = ({pair.name: verified(pair) for pair in order} for order in (chosen, chosen[::-1]))
    assert {said["verdict"] for said in given.values()} == {"PROVED", "REFUTED"}
    for name, said in given.items():
        assert said == turned[name], list(fields(said, turned[name]))


_LEAVES_NOTHING = """
import ast
import gc
from hlo_verify import memory
from hlo_verify.index.interned import Index
from hlo_verify.terms.term import Poly, Tensor
from tests.test_session import PAIRS, found
for pair in PAIRS:
    found(pair)
left = [each for each in gc.get_objects() if isinstance(each, Index | Poly | Tensor)]
assert [str(each) for each in left] == ["0", "1"], left[:10]
print(memory.outside())
"""


def test_no_terms_are_left_behind() -> None:
    done = subprocess.run([sys.executable, "-c", _LEAVES_NOTHING], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    assert done.stdout == "{'terms': 2}\n", "made without a session"


def test_what_is_made_without_a_session_has_numbers_of_its_own_in_each() -> None:
    """A variable and a sum of tensors' elements are told apart by these numbers alone."""
    outside = [expr.var("o", "made outside", 4), tensor("argument", "a", "f32", ())]
    with Session().on():
        inside = [expr.var("i", n, 4) for n in range(3)] + [tensor("argument", "b", "f32", ()) for _ in range(3)]
    numbers = [each.uid for each in outside + inside]
    assert len(set(numbers)) == len(numbers) and min(numbers[:2]) > 1000 > max(numbers[2:])
    keys = [each.skey for each in (outside[1], *inside[3:])]
    assert len(set(keys)) == len(keys)


_GROWS_BY_NOTHING = """
from benchmarks.growth import growth
print(growth(40, 10, threads=2))
"""


@pytest.mark.slow
def test_a_process_does_not_grow() -> None:
    """Each of 30 more pairs of modules leaves fewer than seven objects; `benchmarks.growth` verifies a thousand."""
    done = subprocess.run([sys.executable, "-c", _GROWS_BY_NOTHING], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    assert done.stdout == "{}\n"


@pytest.mark.parametrize("fixture", [pytest.param("encoder_uneven", marks=pytest.mark.slow), "moe_top2"])
def test_terms_are_made_in_one_order_wherever_they_lie_in_memory(fixture: str) -> None:
    """A set of terms is gone through in the order of addresses, which what ran before decides."""
    (logical,), (partitioned,) = ((TESTDATA / fixture).glob(f"{each}.*") for each in ("logical", "partitioned"))
    modules = load(logical), load(partitioned)

    def made(before: int) -> list[tuple[int, int]]:
        drawn = random.Random(before)
        kept = [bytearray(drawn.randrange(400)) for _ in range(before)]
        del kept[::3]
        with Session().on() as session:
            walk(*modules, True, None, session=session)
            return [(each.uid, each.skey) for each in session.memory.values["definitions"].values()]

    first = made(0)
    assert first
    assert all(made(before) == first for before in (997, 5003))


def test_terms_of_sessions_are_apart() -> None:
    with Session().on() as outer:
        mine = tensor("argument", "x", "f32", ())
        size = len(outer.memory.values["terms"])
        with Session().on() as inner:
            assert tensor("argument", "x", "f32", ()).uid == mine.uid  # numbers are those of a session of its own
            assert inner.memory.values["terms"] is not outer.memory.values["terms"]
        assert not inner.memory.values
        assert len(outer.memory.values["terms"]) == size
    assert not outer.memory.values


def test_a_session_ends_where_it_fails() -> None:
    session = Session()
    with pytest.raises(ZeroDivisionError), session.on():
        raise ZeroDivisionError
    assert not session.memory.values


def test_a_name_of_what_sessions_keep_is_given_once() -> None:
    """Two that shared one table would read each other's answers."""
    taken = memory.names()
    with pytest.raises(ValueError, match='called "terms"; rename'):
        memory.per_session("terms", dict)
    assert memory.names() == taken
    assert "hlo_verify.equality.settling" in {name.rpartition(".")[0] for name in taken}  # a function, by its module


def test_everything_that_is_kept_is_known_when_a_session_starts() -> None:
    """What is imported later would be kept without a session, and by all threads together."""
    command = """
import pkgutil, importlib
import hlo_verify.passes.prove.start
from hlo_verify import memory
before = list(memory.names())
for module in pkgutil.walk_packages(hlo_verify.__path__, "hlo_verify."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
assert memory.names() == before, set(memory.names()) - set(before)
"""
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr


def test_the_collector_stays_on_for_other_threads() -> None:
    before, inside = gc.get_threshold(), threading.Barrier(2)

    def verify() -> None:
        with collector.seldom_collecting():
            inside.wait()
            assert gc.isenabled()
            assert gc.get_threshold()[0] == collector.SELDOM
            inside.wait()

    with ThreadPoolExecutor(1) as threads:
        other = threads.submit(verify)
        inside.wait()
        with collector.seldom_collecting():
            assert gc.get_threshold()[0] == collector.SELDOM
        assert gc.get_threshold()[0] == collector.SELDOM  # the other one is inside
        inside.wait()
        other.result()
    assert gc.get_threshold() == before


@pytest.mark.parametrize("own", [0, 10**6])
def test_the_collector_is_left_as_somebody_set_it(own: int) -> None:
    before = gc.get_threshold()
    try:
        gc.set_threshold(own)
        with collector.seldom_collecting():
            assert gc.get_threshold()[0] == own
        assert gc.get_threshold()[0] == own
    finally:
        gc.set_threshold(*before)


PROCESS = {
    "hlo_verify.memory": {"_kept", "_of_no_session"},
    "hlo_verify.cache.keys": {"this_tool"},
    "hlo_verify.cluster": {"_process"},
    "hlo_verify.collector": {"_inside", "_before", "_lock"},
    "hlo_verify.evaluate.arguments": {"one_class", "classes_of"},
    "hlo_verify.evaluate.balls": {"_one_thread"},
    "hlo_verify.registered_calls": {"DEFAULT"},
    "hlo_verify.passes.load.conversion": {"_ONE_AT_A_TIME", "_pool"},
    "hlo_verify.jaxlib_api": {"_read", "_context", "_shared_by_contexts"},
    "hlo_verify.program.depth": {"_inside", "_before", "_lock"},
    "hlo_verify.program.sharding": {"automatic"},
    "hlo_verify.hlo.shapes": {"parse_shape"},
    "hlo_verify.program.sharding_text": {"leaves"},
    "hlo_verify.evaluate.blocks": {"_drawn"},
    "hlo_verify.render.html.__init__": {"_templates"},
    "hlo_verify.render.pictures.sheet": {"colours"},
    "hlo_verify.render.pictures.timeline": {"COLOURS"},
    "hlo_verify.terms.term": {"_checksum"},
    "hlo_verify.terms.doubts": {"_domain"},
    "hlo_verify.xla.execute_child": {"find_lapack"},
}
"""What belongs to the process, by module: locks, settings of the process, what was registered, and answers about names,
sizes, colours and templates that are the same for ever."""

MAKERS = {"dict", "list", "set", "count", "defaultdict", "Counter", "deque", "Lock", "RLock", "WeakValueDictionary"}


def _of_the_process(source: str) -> Iterator[str]:
    """What a module may change while it is used: tables that are empty when it is imported, globals, caches, locks."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from node.names
        elif isinstance(node, ast.FunctionDef):
            used = {ast.unparse(each).partition("(")[0].rpartition(".")[2] for each in node.decorator_list}
            if used & {"cache", "lru_cache"}:
                yield node.name
    for node in tree.body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        made = ast.unparse(value.func).rpartition(".")[2] if isinstance(value, ast.Call) else ""
        is_empty = isinstance(value, ast.Dict | ast.List | ast.Set) and not list(ast.iter_child_nodes(value))
        if is_empty or made in MAKERS or ast.unparse(value or node) in ("{}", "[]"):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from map(ast.unparse, targets)


def test_no_module_keeps_what_belongs_to_a_session() -> None:
    found: dict[str, set[str]] = {}
    for folder in ("hlo_verify", "passes"):
        for path in (ROOT / folder).rglob("*.py"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            kept = set(_of_the_process(path.read_text()))
            if kept and not name.startswith("hlo_verify.passes"):
                found[name if folder == "hlo_verify" else f"hlo_verify.{name}"] = kept
    assert found == PROCESS


def test_time_may_be_up_within_an_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    """While its sum is made, in the walk that shows what is equal by construction; elsewhere, terms are made whole."""
    multiply, returned = RULES["dot_general"], []

    def slow(op: Any, operands: Any, context: Any) -> Any:
        context.session.deadline = 0.0
        returned.append(multiply(op, operands, context))
        return returned[-1]

    monkeypatch.setitem(RULES, "dot_general", slow)
    report = hlo_verify.verify(*(TESTDATA / "mlp_tp" / f"{half}.hlo.gz" for half in ("logical", "partitioned")))
    assert {result.code for result in report.results} == {Solver.TIME_UP} and not returned
    assert all("compared by construction" in result.reason for result in report.results)
    session = Session(deadline=0.0)
    with session.on():
        v = expr.fresh("v", 2)
        x = algebra.read(tensor("argument", "x", "f32", (2,)), [expr.of_var(v)])
        with session.interruptible(), pytest.raises(TimeUpError):
            reduce_sum((v,), x)
        assert reduce_sum((v,), x).free == frozenset()
