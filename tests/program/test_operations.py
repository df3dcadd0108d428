"""A row of the table of operations is true, nothing that has a meaning is without one, and no other set repeats it."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

import pytest

from hlo_verify import evaluate, ops
from hlo_verify.evaluate import control, manual
from hlo_verify.ops import kernels
from hlo_verify.passes.canonicalize import defaults, inline
from hlo_verify.passes.read import batch_norm, neuron_calls, shardy_calls
from hlo_verify.passes.recheck import claims, meanings
from hlo_verify.program import op_families
from hlo_verify.program.operations import ROWS, TARGETS

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "hlo_verify/program/operations.py"

NOT_KNOWN = frozenset(
    """
    cross-replica-sum collective_reduce einsum set_dimension_size torch_index_select unary_einsum uniform_dequantize
    uniform_quantize

    chlo._asin_acos_kernel chlo.broadcast_add chlo.broadcast_and chlo.broadcast_atan2 chlo.broadcast_compare
    chlo.broadcast_complex chlo.broadcast_divide chlo.broadcast_maximum chlo.broadcast_minimum chlo.broadcast_multiply
    chlo.broadcast_next_after chlo.broadcast_or chlo.broadcast_polygamma chlo.broadcast_power chlo.broadcast_remainder
    chlo.broadcast_select chlo.broadcast_shift_left chlo.broadcast_shift_right_arithmetic
    chlo.broadcast_shift_right_logical chlo.broadcast_subtract chlo.broadcast_xor chlo.broadcast_zeta chlo.conj
    chlo.constant chlo.constant_like chlo.is_inf chlo.is_neg_inf chlo.is_pos_inf chlo.ragged_dot chlo.scan

    mhlo.add_dependency mhlo.bitcast mhlo.exp2 mhlo.log2 mhlo.minimum_broadcast_shapes mhlo.mulhi mhlo.ragged_dot
    mhlo.stochastic_convert mhlo.trace

    sdy.all_gather sdy.all_reduce sdy.all_slice sdy.all_to_all sdy.collective_permute sdy.constant sdy.reduce_scatter
    sdy.replicated_to_unreduced sdy.sharded_to_unreduced
    """.split()
)
"""Operations that no row knows: their results equal nothing else. What `stablehlo` has too is not known as `mhlo`'s."""


def _files(package: ModuleType, table: str, joining: str = "interpret") -> dict[str, str]:
    """The names in the tables of a package's files, and the file of each; but for the one that joins the others."""
    found: dict[str, str] = {}
    for each in pkgutil.iter_modules(package.__path__):
        for name in getattr(importlib.import_module(f"{package.__name__}.{each.name}"), table, ()):
            if each.name != joining:
                assert name not in found, f"{name} has a meaning in {found[name]} and in {each.name}"
                found[name] = each.name
    return found


NOTATION = _files(ops, "RULES")
NUMBERS = _files(evaluate, "RULES") | dict.fromkeys(control.RULES, "control") | dict.fromkeys(manual.REGIONS, "manual")
RECHECK = _files(meanings, "MEANINGS") | dict.fromkeys(claims.WALKED, "claims")


def _rowed(table: Mapping[str, str], name: str) -> str | None:
    """The file with an operation's numbers, which some dialects' names are taken off for."""
    return table.get(name) or table.get(op_families.plain_name(name))


@pytest.mark.parametrize("name", ROWS)
def test_a_row_says_where_the_meanings_are(name: str) -> None:
    assert ROWS[name].notation == NOTATION.get(name)
    assert ROWS[name].numbers == _rowed(NUMBERS, name)
    assert ROWS[name].recheck == RECHECK.get(name)


def test_what_has_a_meaning_has_a_row() -> None:
    assert set(NOTATION) <= set(ROWS)
    assert set(RECHECK) <= set(ROWS)
    assert set(NUMBERS) <= set(ROWS) | {op_families.plain_name(name) for name in ROWS}


def test_the_engines_use_the_tables_of_all_files() -> None:
    assert set(ops.RULES) == set(NOTATION)
    assert set(meanings.MEANINGS) == {name for name, file in RECHECK.items() if file != "claims"}


NOTATION_OF_CALLS = _files(ops, "CUSTOM_CALLS", joining="kernels") | dict.fromkeys(kernels.PRESUMED, "kernels")
NUMBERS_OF_CALLS = _files(evaluate, "CUSTOM_CALLS")
RECHECK_OF_CALLS = _files(meanings, "CUSTOM_CALLS")
READ_AWAY_CALLS = {*neuron_calls.MEANINGS, shardy_calls._BEGIN, shardy_calls._END}
"""Targets that reading a module puts operations in the place of."""


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_says_where_its_meanings_are(target: str) -> None:
    assert TARGETS[target].notation == NOTATION_OF_CALLS.get(target)
    assert TARGETS[target].numbers == NUMBERS_OF_CALLS.get(target)
    assert TARGETS[target].recheck == RECHECK_OF_CALLS.get(target)


def test_what_custom_calls_have_a_meaning_have_a_row() -> None:
    assert set(NOTATION_OF_CALLS) | set(NUMBERS_OF_CALLS) | set(RECHECK_OF_CALLS) == set(TARGETS)
    assert READ_AWAY_CALLS.isdisjoint(TARGETS)
    assert kernels.CUSTOM_CALLS.keys() | kernels.PRESUMED.keys() == set(NOTATION_OF_CALLS)


def _registered() -> set[str]:
    """The names of all operations of the dialects that this jaxlib has, without `stablehlo.`."""
    found = set[str]()
    for dialect in ("stablehlo", "chlo", "mhlo", "sdy"):
        module = importlib.import_module(f"jaxlib.mlir.dialects.{dialect}")
        generated = [each for each in vars(module).values() if inspect.ismodule(each)]
        for each in (item for part in (module, *generated) for item in vars(part).values()):
            name = getattr(each, "OPERATION_NAME", "") if inspect.isclass(each) else ""
            if name.startswith(f"{dialect}."):
                found.add(name.removeprefix("stablehlo."))
    return found


READ_AWAY = (
    {name.removeprefix("stablehlo.") for name in (*inline.STRUCTURAL, *inline.TERMINATORS)}
    | set(batch_norm.MEANINGS)
    | {name for name in defaults.RULES if name not in ROWS}
    | {"sdy.mesh"}
)
"""Operations that reading a module puts others in the place of, so that no later part meets them."""


def test_every_operation_of_the_dialects_has_a_row_or_is_listed() -> None:
    registered = _registered()
    assert len(registered) > len(ROWS)
    known = ROWS.keys() | READ_AWAY
    alike = {name for name in registered if name.startswith("mhlo.") and name.removeprefix("mhlo.") in registered}
    assert registered - alike - known - NOT_KNOWN == set()
    assert known & NOT_KNOWN == set()
    newer = {name for name in ROWS if name not in registered}
    assert newer == set(), "a row is of no operation that jaxlib has"


REDUCERS = "a name in it is a reducer's or a function's, of terms or of numbers"
APART = {
    "evaluate.groups.CROSS_PARTITION": "a meaning, which the evaluator has for itself",
    "evaluate.interpret.KEEPS_CLASSES": "what saves time there alone",
    "evaluate.interpret.ARITHMETIC": "what saves time there alone",
    "evaluate.vanishing": "what is sure of results, which is said there alone",
    "evaluate.zeros": "a guess of what to try, which is made there alone",
    "passes.prove.stages.ENDS": "what saves time there alone",
    "ops.elementwise.UNINTERPRETED": "a table of rules",
    "passes.recheck.meanings.elementwise.FUNCTIONS": "a table of meanings",
    "passes.recheck.meanings.ordering": "a meaning, of comparators",
    "passes.refute.mean_repairs": "what lies between a mean and a result, and changes no value",
    "linter.precision": "how what HLO computes grows with a scalar, and what keeps its scale",
    "linter.placement": "rules of where values lie, in the opcodes of HLO",
    "passes.load.as_floats": "how well it is known what floats round, which is said there alone",
    "passes.load.made_by": "what floats round, which is said there alone",
    "passes.chain.amplified": REDUCERS,
    "passes.chain.steep": REDUCERS,
    "passes.chain.masking_numbers": "what starts from a number, or shifts one, which is said there alone",
    "passes.chain.near_zero": "what hands on how far off a number near 0 is, which is said there alone",
    "passes.chain.masked_scores": "what is sure of numbers far below all others, which is said there alone",
    "terms": REDUCERS,
    "evaluate.reductions": REDUCERS,
}
"""Sets of names of operations elsewhere, and why."""

FEW = 2
"""An operation or two may be named where they are asked for."""


def _words(node: ast.expr) -> list[str] | None:
    """The strings that a set, list, tuple or split text is written with."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
        text = node.func.value
        return text.value.split() if isinstance(text, ast.Constant) and isinstance(text.value, str) else None
    if isinstance(node, (ast.Set, ast.Tuple, ast.List)):
        parts = [each.value for each in node.elts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        return parts if len(parts) == len(node.elts) else None
    return None


def _sets(path: Path, module: str) -> Iterator[tuple[str, int, list[str]]]:
    """The collections of operations' names in a file, by the name that they are given there."""
    for statement in ast.parse(path.read_text()).body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        name = f"{module}.{target.id}" if isinstance(target, ast.Name) else module
        for node in ast.walk(statement):
            words = _words(node) if isinstance(node, ast.expr) else None
            named = [word for word in words or () if word.removeprefix("stablehlo.") in ROWS]
            if words and len(named) > FEW and 2 * len(named) > len(words):
                yield name, node.lineno, named


def test_no_set_of_operations_stands_elsewhere() -> None:
    unused = set(APART)
    for folder, prefix in ((ROOT / "hlo_verify", ""), (ROOT / "passes", "passes.")):
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            if path == TABLE or (folder.name != "passes" and parts[0] == "passes"):
                continue
            for name, line, words in _sets(path, prefix + ".".join(parts)):
                reasons = {each for each in APART if name == each or name.startswith(f"{each}.")}
                assert reasons, f"{path}:{line} lists operations ({' '.join(words)}): make a family of them in {TABLE}"
                unused -= reasons
    assert not unused, f"nothing there lists operations any more: {unused}"


def test_what_the_engines_say_for_themselves_agrees_with_the_rows() -> None:
    from hlo_verify.evaluate.groups import CROSS_PARTITION

    by_groups = {name for name in op_families.BY_PARTITION if name != "collective_permute"}  # which has pairs
    assert by_groups == CROSS_PARTITION


def test_a_set_that_stands_elsewhere_is_found(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text('A = "tan tanh sine".split()\ndef f(op):\n    return op.name in ("add", "subtract", "negate")\n')
    assert [(name, words) for name, _, words in _sets(path, "file")] == [
        ("file.A", ["tan", "tanh", "sine"]),
        ("file", ["add", "subtract", "negate"]),
    ]
