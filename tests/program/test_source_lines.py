"""Whose line is told of a stack of calls, and which module of a network."""

from __future__ import annotations

import pytest

from hlo_verify.program.ir import Location
from hlo_verify.program.source_lines import module_path, own_line
from tests.support.pairs import REPLICATED, module, on

LINEN = ("/venv/lib/python3.11/site-packages/flax/linen/linear.py", 287)
OWN, OUTER = ("/home/me/train.py", 57), ("/home/me/main.py", 3)


@pytest.mark.parametrize(
    "file",
    [
        LINEN[0],
        "/usr/lib/python3/dist-packages/optax/_src/alias.py",
        "/home/me/src/flax/flax/linen/linear.py",
        "/home/me/equinox/equinox/nn/_mlp.py",
        "/src/jax/jax/_src/nn/functions.py",
        "/usr/lib/python3.12/contextlib.py",
        "<frozen runpy>",
    ],
)
def test_a_library_is_not_the_users(file: str) -> None:
    assert own_line(((file, 1), OWN, OUTER)) == OWN


@pytest.mark.parametrize("file", ["/home/me/jax/train.py", "/home/flax/train.py", "train.py", "/opt/optax_runs/a.py"])
def test_a_folder_that_is_called_like_a_library_is_none(file: str) -> None:
    assert own_line(((file, 1), OWN)) == (file, 1)


def test_a_library_that_is_verified_itself_has_its_own_lines() -> None:
    assert own_line((LINEN,)) == LINEN
    assert own_line(()) is None


def test_who_asks_is_no_part_of_the_program() -> None:
    """What XLA leaves without a line has the stack of the call around it, in which nothing may be of the program."""
    ours = [(f"/src/hlo_verify/{file}.py", 1) for file in ("traced/stages", "traced/functions", "checking")]
    assert own_line((*ours, OWN, OUTER)) is None
    assert own_line((LINEN, *ours, OWN)) == LINEN
    assert own_line((LINEN, OWN, *ours, OUTER)) == OWN
    assert own_line((("/src/hlo_verify/plans/course.py", 1), *ours, OWN)) == OWN, "a plan has no other line"


def test_what_a_location_says() -> None:
    location = Location("jit(f)/jvp(Block)/Dense_1/dot_general", (LINEN, OWN, OUTER))
    assert (str(location), location.module) == ("/home/me/train.py:57", "Block/Dense_1")
    assert location.stack == (f"{LINEN[0]}:287", "/home/me/train.py:57", "/home/me/main.py:3")
    assert str(Location("jit(f)/add")) == "jit(f)/add"
    assert str(Location()) == "unknown location"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("jit(loss)/transpose(jvp(Block))/Dense_1/dot_general", "Block/Dense_1"),
        ("jit(step)/jit(loss)/Block_0/attention/DenseGeneral_3/add", "Block_0/attention/DenseGeneral_3"),
        ("jit(f)/shard_map/while/body/closed_call/checkpoint/psum", ""),
        ("jit(f)/jvp(jit(log_softmax))/reduce_max", ""),
        ("jit(f)/vmap(transpose(jvp(scope/inner)))/mul", "scope/inner"),
        ("jit(f)/cond/branch_1_fun/mul", ""),
        ("jit(f)/add", ""),
        ("add.7", ""),
        ("", ""),
    ],
)
def test_modules_of_a_network(name: str, path: str) -> None:
    assert module_path(name) == path


def test_a_report_names_the_users_line_and_its_module() -> None:
    """A halved tanh, in a library that the user's line calls."""
    import hlo_verify
    from hlo_verify.render import text

    stack = f'callsite("{LINEN[0]}":287:0 at "{OWN[0]}":57:0)'
    body = f"""
        %t = stablehlo.tanh %x : tensor<8xf32> loc("jit(f)/Block/Dense_1/tanh"({stack}))
        %r = stablehlo.add %t, %t : tensor<8xf32> loc("jit(f)/Block/Dense_1/add"({stack}))
        return %r : tensor<8xf32>"""
    logical = module(f"%x: tensor<8xf32> {on(REPLICATED)}", f"tensor<8xf32> {on(REPLICATED)}", body)
    report = hlo_verify.verify(logical, logical.replace("stablehlo.add", "stablehlo.multiply"), refute=False)
    finding = report.results[0].finding
    assert finding is not None
    assert (finding.location, finding.module) == ("/home/me/train.py:57", "Block/Dense_1")
    shown = {all_: text.render([report], text.Style(frames=all_), several=False) for all_ in (False, True)}
    assert "linear.py" not in shown[False] and "module     Block/Dense_1" in shown[False]
    assert f"frames     {LINEN[0]}:287\n             /home/me/train.py:57" in shown[True]
