"""Pairs that are equal for such inputs alone as the user means: proved under a precondition, refuted without it.

Each place where a range enters a proof has an example that is proved for the least range that makes it so, and for
none that has one value more.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, PartitionSpec

from hlo_verify import Verdict, cli, replay, verify
from hlo_verify.diagnostics.errors import InputError
from tests.support.lowering import Placed

P = PartitionSpec
DEVICES = 4


def _placed(given: tuple[P, ...], wanted: P, *arguments: tuple[tuple[int, ...], Any], devices: int = DEVICES) -> Placed:
    shapes = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in arguments]
    return Placed(AbstractMesh((devices,), ("i",)), given, wanted, shapes)


def _looked_up(rows: int, dtype: Any = jnp.int32, devices: int = DEVICES) -> tuple[str, str]:
    """Rows of a table that is split over its vocabulary, one for each token."""

    def local(table: Any, tokens: Any) -> Any:
        mine = table.shape[0]
        at = tokens.astype(jnp.int32) - lax.axis_index("i") * mine
        inside = (at >= 0) & (at < mine)
        return lax.psum(jnp.where(inside[:, None], table[jnp.clip(at, 0, mine - 1)], 0), "i")

    placed = _placed((P("i"), P()), P(), ((rows, 3), jnp.float32), ((5,), dtype), devices=devices)
    return placed.pair(lambda table, tokens: table[tokens], local)


def _gathered() -> tuple[str, str]:
    """A guard: a row that is looked up without a clamp."""
    whole = lambda x, tokens: x.at[tokens].get(mode="fill", fill_value=0.0)  # noqa: E731
    local = lambda x, tokens: x.at[tokens].get(mode="promise_in_bounds")  # noqa: E731
    return _placed((P(), P()), P(), ((32, 3), jnp.float32), ((4,), jnp.int32)).pair(whole, local)


def _clamped() -> tuple[str, str]:
    whole = lambda x, n: x * n  # noqa: E731
    local = lambda x, n: x * jnp.clip(n, 0, 31)  # noqa: E731
    return _placed((P(), P()), P(), ((8,), jnp.int32), ((), jnp.int32)).pair(whole, local)


def _scattered() -> tuple[str, str]:
    """A scatter into shards: of an index beyond the end, the whole one drops the update."""

    def local(x: Any, tokens: Any, updates: Any) -> Any:
        mine = x.shape[0]
        at = tokens - lax.axis_index("i") * mine
        inside = (at >= 0) & (at < mine)
        return x.at[jnp.clip(at, 0, mine - 1)].add(jnp.where(inside[:, None], updates, 0))

    arguments = ((32, 3), jnp.float32), ((4,), jnp.int32), ((4, 3), jnp.float32)
    whole = lambda x, tokens, updates: x.at[tokens].add(updates)  # noqa: E731
    return _placed((P("i"), P(), P()), P("i"), *arguments).pair(whole, local)


def _wrapped() -> tuple[str, str]:
    """A conversion to a type in which larger numbers wrap."""
    whole = lambda x, n: x * n.astype(jnp.float32)  # noqa: E731
    local = lambda x, n: x * n.astype(jnp.uint8).astype(jnp.float32)  # noqa: E731
    return _placed((P(), P()), P(), ((8,), jnp.float32), ((8,), jnp.int32)).pair(whole, local)


def _sliced() -> tuple[str, str]:
    """The start of a dynamic slice of a cache that is split along it."""

    def local(cache: Any, update: Any, at: Any) -> Any:
        mine = cache.shape[0]
        here = at - lax.axis_index("i") * mine
        inside = (here >= 0) & (here < mine)
        return jnp.where(inside, lax.dynamic_update_slice(cache, update, (here, 0)), cache)

    arguments = ((32, 3), jnp.float32), ((1, 3), jnp.float32), ((), jnp.int32)
    whole = lambda cache, update, at: lax.dynamic_update_slice(cache, update, (at, 0))  # noqa: E731
    return _placed((P("i"), P(), P()), P("i"), *arguments).pair(whole, local)


def _divided(whole: Callable[[Any], Any], local: Callable[[Any], Any]) -> tuple[str, str]:
    placed = _placed((P(), P()), P(), ((8,), jnp.int32), ((8,), jnp.int32))
    return placed.pair(lambda x, n: x * whole(n), lambda x, n: x * local(n))


def _quotient() -> tuple[str, str]:
    return _divided(lambda n: n // 8, lambda n: lax.div(n, jnp.int32(8)))


def _remainder() -> tuple[str, str]:
    return _divided(lambda n: n % 8, lambda n: lax.rem(n, jnp.int32(8)))


def _shifted() -> tuple[str, str]:
    return _divided(lambda n: lax.shift_right_logical(n, jnp.int32(3)), lambda n: lax.div(n, jnp.int32(8)))


def _compared() -> tuple[str, str]:
    return _divided(lambda n: jnp.where(n < 32, n, 7), lambda n: n)


def _sign() -> tuple[str, str]:
    return _divided(jnp.sign, lambda n: (n > 0).astype(jnp.int32))


ENDS = -(1 << 31), 1 << 31
PLACES: dict[str, tuple[Callable[[], tuple[str, str]], str, tuple[int, int], tuple[int, int]]] = {
    "lookup": (lambda: _looked_up(32), "tokens", (0, 32), (-1, 33)),
    "gather": (_gathered, "tokens", (-32, 32), (-33, 33)),
    "clamp": (_clamped, "n", (0, 32), (-1, 33)),
    "scatter": (_scattered, "tokens", (0, ENDS[1]), (-32, ENDS[1])),
    "wrap": (_wrapped, "n", (0, 256), (-1, 257)),
    "dynamic_slice": (_sliced, "at", (0, 32), (-33, 33)),
    "quotient": (_quotient, "n", (0, ENDS[1]), (-1, ENDS[1])),
    "remainder": (_remainder, "n", (0, ENDS[1]), (-1, ENDS[1])),
    "shift": (_shifted, "n", (0, ENDS[1]), (-1, ENDS[1])),
    "comparison": (_compared, "n", (ENDS[0], 32), (ENDS[0], 33)),
    "sign": (_sign, "n", (0, ENDS[1]), (-1, ENDS[1])),
}
"""By the place at which a range enters: a pair, the argument that it is about, the widest range under which the pair is
proved, and one that is wider at each end where there is more."""


@pytest.mark.drawn(5)
@pytest.mark.parametrize("place", PLACES)
def test_a_range_enters(place: str) -> None:
    pair, name, (low, high), (lower, higher) = PLACES[place]
    modules = pair()
    found = verify(*modules, assume={name: (low, high)}, refute=False)
    assert found.verdict is Verdict.PROVED, found.results[0].reason
    assert found.preconditions[0].startswith(f"{name} in [{low}, " if high < ENDS[1] else name)
    for wider in {(lower, high), (low, higher)} - {(low, high)}:
        assert verify(*modules, assume={name: wider}, refute=False).verdict is Verdict.UNKNOWN, wider


@pytest.mark.drawn(1)
@pytest.mark.parametrize("place", ["lookup", "scatter", "dynamic_slice", "remainder"])
def test_what_differs_beyond_a_range_is_found_there_alone(place: str) -> None:
    pair, name, within, (lower, higher) = PLACES[place]
    modules = pair()
    assert verify(*modules).verdict is Verdict.REFUTED
    assert verify(*modules, assume={name: (lower, higher)}).verdict is Verdict.REFUTED
    assert verify(*modules, assume={name: within}).verdict is Verdict.PROVED


@pytest.mark.drawn(2)
@pytest.mark.parametrize("place", ["lookup", "clamp", "dynamic_slice", "quotient", "wrap"])
def test_the_second_check_knows_of_it(place: str) -> None:
    pair, name, within, _ = PLACES[place]
    report = verify(*pair(), assume={name: within}, recheck=True)
    assert report.verdict is Verdict.PROVED
    assert report.recheck is not None and not report.recheck.disagreements


def _wrong(change: str) -> tuple[str, str]:
    """The lookup with a fault that no range of the tokens saves."""

    def local(table: Any, tokens: Any) -> Any:
        mine = table.shape[0]
        at = tokens - lax.axis_index("i") * (mine if change != "offset" else mine - 1)
        inside = (at >= 0) & (at <= mine if change == "bound" else at < mine)
        found = jnp.where(inside[:, None], table[jnp.clip(at, 0, mine - 1)], 1.0 if change == "filled" else 0)
        return found if change == "dropped" else lax.psum(found, "i")

    placed = _placed((P("i"), P()), P(), ((32, 3), jnp.float32), ((5,), jnp.int32))
    return placed.pair(lambda table, tokens: table[tokens], local)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("change", ["offset", "bound", "filled", "dropped"])
@pytest.mark.parametrize("within", [(0, 32), (3, 30)])
def test_a_range_saves_no_wrong_program(change: str, within: tuple[int, int]) -> None:
    found = verify(*_wrong(change), assume={"tokens": within}, refute=change == "bound")
    assert found.verdict is not Verdict.PROVED


def test_what_is_wrong_for_tokens_inside_is_not_put_down_to_tokens_outside() -> None:
    report = verify(*_wrong("offset"))
    assert report.verdict is Verdict.REFUTED
    assert report.suggestion is None


@pytest.mark.drawn(5)
@pytest.mark.parametrize("devices", [2, 4, 8])
@pytest.mark.parametrize("dtype", [jnp.int32, jnp.uint32, jnp.int16, jnp.uint8])
def test_lookups_of_all_types(dtype: Any, devices: int) -> None:
    modules = _looked_up(32, dtype, devices)
    assert verify(*modules, assume={"tokens": (0, 32)}, refute=False).verdict is Verdict.PROVED
    assert verify(*modules, assume={"tokens": (0, 33)}, refute=False).verdict is not Verdict.PROVED


def test_a_refutation_by_tokens_outside_says_under_what_it_is_proved() -> None:
    report = verify(*_looked_up(32))
    assert report.verdict is Verdict.REFUTED
    assert report.suggestion is not None
    assert report.suggestion.preconditions == ("tokens in [0, 32)",)
    assert report.suggestion.proved == report.suggestion.results == ("result",)


def test_a_window_has_to_lie_inside_too() -> None:
    """A window of two rows that begins at the last one is clamped by the whole module alone."""

    def local(cache: Any, update: Any, at: Any) -> Any:
        mine, first = cache.shape[0], lax.axis_index("i") * cache.shape[0]
        rows = first + jnp.arange(mine)
        from_update = sum(jnp.where((rows == at + k)[:, None], update[k], 0) for k in range(2))
        return jnp.where(((rows >= at) & (rows < at + 2))[:, None], from_update, cache)

    arguments = ((16, 3), jnp.float32), ((2, 3), jnp.float32), ((), jnp.int32)
    modules = _placed((P("i"), P(), P()), P("i"), *arguments).pair(
        lambda cache, update, at: lax.dynamic_update_slice(cache, update, (at, 0)), local
    )
    report = verify(*modules)
    assert report.suggestion is not None
    assert report.suggestion.preconditions == ("at in [0, 15)",)
    assert report.suggestion.proved


def _told(argv: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    status = cli.main([*argv, "--no-progress"])
    out, err = capsys.readouterr()
    return status, out, err


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """The lookup as files."""
    names = []
    for name, module in zip(("whole", "parts"), _looked_up(32), strict=True):
        (tmp_path / f"{name}.mlir").write_text(module)
        names.append(str(tmp_path / f"{name}.mlir"))
    return names


def test_the_command_line(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = _told([*files, "--assume", "tokens in [0, 32)"], capsys)
    assert status == 0
    assert out.startswith("Given that tokens in [0, 32):\nPROVED ")
    status, out, _ = _told([*files, "--assume", "tok* in [0, 32)", "--format", "json"], capsys)
    assert json.loads(out)["preconditions"] == ["tokens in [0, 32)"]
    status, out, err = _told([*files, "--assume", "token in [0, 32)"], capsys)
    assert (status, out) == (2, "")
    assert err.startswith(
        "hlo-verify: error[HV419]: assumed: token in [0, 32): there is no such argument; did you mean"
    )
    assert _told([*files, "--assume", "tokens below 32"], capsys)[0] == 2


def test_files_that_say_it(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shardings = tmp_path / "shardings.toml"
    shardings.write_text("[assume]\ntokens = [0, 32]\n")
    assert _told([*files, "--shardings", str(shardings)], capsys)[0] == 0
    shardings.write_text("[assume]\ntokens = 'in [0, 32]'\n")
    assert _told([*files, "--no-refute", "--shardings", str(shardings)], capsys)[0] == 3
    shardings.write_text("assume = 3\n")
    status, _, err = _told([*files, "--shardings", str(shardings)], capsys)
    assert status == 2
    assert "assume must be a table" in err
    (tmp_path / "pyproject.toml").write_text("[tool.hlo-verify.assume]\ntokens = [0, 32]\n")
    monkeypatch.chdir(tmp_path)
    assert _told(files, capsys)[0] == 0
    (tmp_path / "pyproject.toml").write_text("[tool.hlo-verify.assume]\ntokens = []\n")
    status, _, err = _told(files, capsys)
    assert status == 2
    assert "pyproject.toml" in err


def test_a_witness_keeps_what_was_assumed(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "found.witness"
    status, out, _ = _told([*files, "--assume", "tokens in [1, 34)", "--witness", str(saved)], capsys)
    assert status == 1
    assert out.startswith("Given that tokens in [1, 34):\nREFUTED: only inputs were found that lie outside")
    again = replay(saved)
    assert again.verdict is Verdict.REFUTED
    assert again.preconditions == ("tokens in [1, 34)",)
    assert _told(["--replay", str(saved)], capsys)[1].startswith("Given that tokens in [1, 34):\n")
    status, _, err = _told(["--replay", str(saved), "--assume", "tokens in [0, 32)"], capsys)
    assert status == 2
    assert "--assume does not go with --replay" in err


def test_options_that_would_ignore_it(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = tmp_path / "said.toml"
    said.write_text("[assume]\ntokens = [0, 32]\n")
    status, _, err = _told([*files, "--results", str(said)], capsys)
    assert status == 2
    assert "shardings says, not results" in err
    status, _, err = _told(["--each-pass", str(tmp_path), "--assume", "tokens in [0, 32)"], capsys)
    assert status == 2
    assert "--assume does not go with --each-pass" in err


def test_what_matches_nothing_is_an_error_in_python() -> None:
    with pytest.raises(InputError, match="there is no such argument"):
        verify(*_looked_up(32), assume={"labels": (0, 32)})


def test_layers_are_not_taken_for_equal_where_ranges_differ() -> None:
    """What is derived of a layer with such tokens holds for another layer's tokens if these are such as well."""

    def layers(x: Any, tokens: Any, gather: Callable[[Any, Any], Any]) -> Any:
        for k in range(4):
            x = jnp.tanh(x + gather(x, tokens[k]))
        return x

    whole = lambda x, *tokens: layers(x, tokens, lambda x, t: x.at[t].get(mode="fill", fill_value=0.0))  # noqa: E731
    local = lambda x, *tokens: layers(x, tokens, lambda x, t: x.at[t].get(mode="promise_in_bounds"))  # noqa: E731
    arguments = [((8, 3), jnp.float32), *[((8,), jnp.int32)] * 4]
    placed = _placed((P(),) * 5, P(), *arguments)
    modules = placed.lowered(whole), placed.lowered(local)  # without manual regions, which are not taken apart
    every = {f"tokens[{k}]": (0, 8) for k in range(4)}
    assert verify(*modules, assume=every, refute=False).verdict is Verdict.PROVED
    for k in (0, 3):
        fewer = {name: values for name, values in every.items() if name != f"tokens[{k}]"}
        assert verify(*modules, assume=fewer, refute=False).verdict is Verdict.UNKNOWN


def _mine(table: Any, tokens: Any) -> Any:
    """The rows of a table that is split over its vocabulary."""
    size = table.shape[0]
    at = tokens - lax.axis_index("i") * size
    inside = (at >= 0) & (at < size)
    return lax.psum(jnp.where(inside[:, None], table[jnp.where(inside, at, 0)], 0), "i")


def _in_a_loop() -> tuple[str, str]:
    """Tokens that a scan takes one after another."""

    def steps(lookup: Callable[[Any, Any], Any]) -> Callable[..., Any]:
        return lambda table, tokens, x: lax.scan(lambda x, t: (jnp.tanh(x + lookup(table, t)), None), x, tokens)[0]

    arguments = ((32, 3), jnp.float32), ((5, 2), jnp.int32), ((2, 3), jnp.float32)
    placed = _placed((P("i"), P(), P()), P(), *arguments)
    return placed.pair(steps(lambda table, t: table[t]), steps(_mine))


def _of_two_tables() -> tuple[str, str]:
    arguments = ((32, 3), jnp.float32), ((16, 3), jnp.float32), ((6,), jnp.int32), ((6,), jnp.int32)
    placed = _placed((P("i"), P("i"), P(), P()), P(), *arguments)
    return placed.pair(
        lambda words, places, tokens, at: words[tokens] + places[at],
        lambda words, places, tokens, at: _mine(words, tokens) + _mine(places, at),
    )


def _loss() -> tuple[str, str]:
    """A label below 0 counts from the end to `take_along_axis`, and is none to devices."""

    def local(logits: Any, labels: Any) -> Any:
        size = logits.shape[-1]
        top = lax.pmax(logits.max(-1), "i")
        total = lax.psum(jnp.exp(logits - top[:, None]).sum(-1), "i")
        at = labels - lax.axis_index("i") * size
        mine = jnp.take_along_axis(logits, jnp.clip(at, 0, size - 1)[:, None], axis=-1)[:, 0]
        wanted = lax.psum(jnp.where((at >= 0) & (at < size), mine, 0.0), "i")
        return (jnp.log(total) + top - wanted).mean()

    def whole(logits: Any, labels: Any) -> Any:
        wanted = jnp.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]
        return (jax.nn.logsumexp(logits, axis=-1) - wanted).mean()

    placed = _placed((P(None, "i"), P()), P(), ((6, 32), jnp.float32), ((6,), jnp.int32))
    return placed.pair(whole, local)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("pair", "verdict", "under"),
    [
        (_in_a_loop, Verdict.REFUTED, ("tokens in [0, 32)",)),
        (_of_two_tables, Verdict.REFUTED, ("tokens in [0, 32)", "at in [0, 16)")),
        (_loss, Verdict.REFUTED, ("labels in [0, 32)",)),
    ],
)
def test_what_is_suggested(pair: Callable[[], tuple[str, str]], verdict: Verdict, under: tuple[str, ...]) -> None:
    modules = pair()
    report = verify(*modules)
    assert report.verdict is verdict
    assert report.suggestion is not None
    assert report.suggestion.preconditions == under
    assert report.suggestion.proved == ("result",)
    assert report.suggestion.found is (verdict is Verdict.REFUTED)
    assert verify(*modules, assume=under, refute=False).verdict is Verdict.PROVED
