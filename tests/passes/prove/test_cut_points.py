"""A guess that holds shortens a proof; one that does not hold proves nothing."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.limits import Limits
from hlo_verify.passes.guess.shards import shards
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.cut_points import Guess, Guesses
from hlo_verify.passes.prove.each_device.apart import Apart
from hlo_verify.passes.prove.each_device.compare import EachDevice, each_device
from hlo_verify.program.ir import Module
from hlo_verify.program.pair import device_count
from hlo_verify.session import Session
from tests.passes.prove.each_device.programs import PROGRAMS, Program, on, turned

STEPS: dict[str, Program] = {}
"""Programs of several steps, of which each is the reference's in another spelling."""


def step(name: str, program: Program) -> None:
    STEPS[name] = program


def shortest_paths(last: int = 8, rounds: int = 2) -> Callable[[jax.Array], jax.Array]:
    def local(d: jax.Array) -> jax.Array:
        for _ in range(rounds):
            whole = lax.all_gather(d, "i", tiled=True)
            d = functools.reduce(jnp.minimum, [d[:, k, None] + whole[k] for k in range(last)])
        return d

    return local


def squared(d: jax.Array) -> jax.Array:
    for _ in range(2):
        d = (d[:, :, None] + d[None]).min(1)
    return d


step(
    "shortest_paths",
    Program(
        on({"i": 4}, P("i"), P("i"), (8, 8)), squared, shortest_paths, {"one_short": {"last": 7}, "once": {"rounds": 1}}
    ),
)


def thresholds(low: float = -0.05, scale: float = 0.1) -> Callable[..., jax.Array]:
    def local(a: jax.Array, b: jax.Array, x: jax.Array) -> jax.Array:
        def turn(_: object, x: jax.Array) -> jax.Array:
            rest = lax.psum(a @ x, "i") - b
            moved = x - scale * (rest @ a)
            return moved - jnp.clip(moved, low, 0.05)

        return lax.fori_loop(0, 2, turn, x)

    return local


def lasso(a: jax.Array, b: jax.Array, x: jax.Array) -> jax.Array:
    for _ in range(2):
        moved = x - 0.1 * a.T @ (a @ x - b)
        x = jnp.sign(moved) * jax.nn.relu(jnp.abs(moved) - 0.05)
    return x


step(
    "soft_thresholds",
    Program(
        on({"i": 4}, (P(None, "i"), P(), P("i")), P("i"), (5, 8), (5,), (8,)),
        lasso,
        thresholds,
        {"one_sided": {"low": 0.0}, "too_far": {"scale": 0.2}},
    ),
)


def convolved(x: jax.Array, w: jax.Array, stride: int, padding: Any) -> jax.Array:
    return lax.conv_general_dilated(x[None], w, (stride,), padding, dimension_numbers=("NWC", "WIO", "NWC"))[0]


def stem(wraps: bool = False) -> Callable[..., jax.Array]:
    def shifted(x: jax.Array, by: int) -> jax.Array:
        return lax.ppermute(x, "i", turned(4, by) if wraps else [(k, k + by) for k in range(4) if 0 <= k + by < 4])

    def local(x: jax.Array, v: jax.Array, w: jax.Array) -> jax.Array:
        around = jnp.concatenate([shifted(x[-1:], 1), x, shifted(x[:1], -1)])
        y = jax.nn.gelu(convolved(around, v, 1, "VALID"))
        y = jnp.concatenate([shifted(y[-1:], 1), y])
        return jax.nn.gelu(convolved(y, w, 2, "VALID"))

    return local


def whole_stem(x: jax.Array, v: jax.Array, w: jax.Array) -> jax.Array:
    return jax.nn.gelu(convolved(jax.nn.gelu(convolved(x, v, 1, [(1, 1)])), w, 2, [(1, 1)]))


step(
    "convolutions",
    Program(
        on({"i": 4}, (P("i"), P(), P()), P("i"), (8, 2), (3, 2, 2), (3, 2, 2)),
        whole_stem,
        stem,
        {"wraps": {"wraps": True}},
    ),
)


WRONG = [(name, wrong) for name, program in STEPS.items() for wrong in program.wrong]


def loaded(program: Program, wrong: str | None = None) -> tuple[Module, Module]:
    logical, partitioned = map(load, program.pair(wrong))
    return logical, partitioned


def guessed(pair: tuple[Module, Module], session: Session) -> Guesses:
    return shards(*pair, device_count(*pair), session)


def proves(found: EachDevice | None) -> bool:
    return found is not None and all(found.proves(n) for n in range(len(found.wanted)))


def shows(found: EachDevice | None) -> bool:
    return found is not None and all(found.proves(n, briefly=True) for n in range(len(found.wanted)))


@pytest.mark.parametrize("name", STEPS)
def test_programs_of_several_steps(name: str) -> None:
    report = hlo_verify.verify(*STEPS[name].pair(), refute=False)
    assert report.verdict is Verdict.PROVED, [result.reason for result in report.results]


@pytest.mark.parametrize("name", STEPS)
def test_it_takes_the_guesses(name: str) -> None:
    pair = loaded(STEPS[name])
    with Session().on() as session:
        assert shows(each_device(*pair, session, guessed(pair, session)))
    if name != "convolutions":  # which take a minute written out
        with Session().on() as session:
            assert not shows(each_device(*pair, session))


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("name", "wrong"), WRONG)
def test_wrong_programs_of_several_steps(name: str, wrong: str) -> None:
    pair = loaded(STEPS[name], wrong)
    with Session().on() as session:
        assert not Apart(*pair, session, [0], guesses=guessed(pair, session)).proves_briefly(0)
    assert hlo_verify.verify(*STEPS[name].pair(wrong), refute=True).verdict is Verdict.REFUTED


@pytest.mark.drawn(6)
@pytest.mark.parametrize(
    ("name", "wrong"), [(name, wrong) for name, program in PROGRAMS.items() for wrong in (None, *program.wrong)]
)
def test_other_programs_with_guesses(name: str, wrong: str | None) -> None:
    pair = loaded(PROGRAMS[name], wrong)
    with Session().on() as session:
        assert proves(each_device(*pair, session, guessed(pair, session))) == (wrong is None)


def misled(guesses: Guesses, generator: random.Random) -> Guesses:
    """Each value guessed to be what another one is, or to lie elsewhere."""
    every = [guess for each in guesses.values() for guess in each]

    def other(guess: Guess) -> Guess:
        starts = list(guess.starts)
        generator.shuffle(starts)
        return replace(guess, starts=tuple(starts))

    return {
        made: [other(guess) for guess in each] + [guess for guess in every if guess.order == each[0].order][:4]
        for made, each in guesses.items()
    }


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("name", "wrong"), WRONG)
def test_wrong_guesses_prove_nothing(name: str, wrong: str) -> None:
    right, pair = loaded(STEPS[name]), loaded(STEPS[name], wrong)
    with Session().on() as session:
        of_right = guessed(right, session)
        for guesses in (of_right, misled(guessed(pair, session), random.Random(0))):
            assert not Apart(*pair, session, [0], guesses=guesses).proves_briefly(0)


def test_what_is_guessed_in_vain_has_an_end() -> None:
    pair = loaded(STEPS["shortest_paths"])
    with Session(Limits(vain_guesses=1)).on() as session:
        guesses = guessed(pair, session)
        wrong = misled(guesses, random.Random(1))
        each_device(*pair, session, {made: wrong[made][4:] for made in wrong if made in guesses})
        assert "vain_guesses" in session.spent().limits


def test_what_the_reference_guards_is_not_taken_for_what_it_does_not() -> None:
    """A mean over what may be nothing: the value for an empty mask is asked of the device's own program."""
    placed = on({"i": 4}, (P("i"), P("i")), P(), (8,), (8,))

    def reference(x: jax.Array, m: jax.Array) -> jax.Array:
        held = jnp.where(m > 0, 1.0, 0.0)
        mean = (x * held).sum() / held.sum()
        return jnp.where(held.sum() > 0, mean, 0.0) + 2 * jnp.tanh(x).sum()

    def local(x: jax.Array, m: jax.Array, empty: float) -> jax.Array:
        held = jnp.where(m > 0, 1.0, 0.0)
        total, count = lax.psum((x * held).sum(), "i"), lax.psum(held.sum(), "i")
        mean = jnp.where(count > 0, total / jnp.maximum(count, 1), empty)
        return mean + 2 * lax.psum(jnp.tanh(x).sum(), "i")

    assert hlo_verify.verify(*placed.pair(reference, functools.partial(local, empty=0.0))).verdict is Verdict.PROVED
    assert hlo_verify.verify(*placed.pair(reference, functools.partial(local, empty=5.0))).verdict is not Verdict.PROVED


def test_values_at_which_a_logical_tensor_has_none_stand_for_no_others() -> None:
    """`t = s/n` is computed on the way to one result; of another, `n*t` on a device is 0 where n is, whatever s is."""
    placed = on({"i": 4}, (P("i"), P("i")), (P(), P()), (8,), (8,))

    def reference(x: jax.Array, m: jax.Array) -> tuple[jax.Array, jax.Array]:
        held = jnp.where(m > 0, 1.0, 0.0)
        return jnp.where(held.sum() > 0, x.sum() / held.sum(), 0.0), x.sum()

    def local(x: jax.Array, m: jax.Array) -> tuple[jax.Array, jax.Array]:
        held = jnp.where(m > 0, 1.0, 0.0)
        total, count = lax.psum(x.sum(), "i"), lax.psum(held.sum(), "i")
        mean = jnp.where(count > 0, total / jnp.maximum(count, 1), 0.0)
        return mean, mean * count

    report = hlo_verify.verify(*placed.pair(reference, local))
    assert report.results[1].verdict is not Verdict.PROVED


def _of_one_sign(v: jax.Array, w: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.where((v > 1) == (w > 1), y, 0)


def _of_one_number(v: jax.Array, w: jax.Array, y: jax.Array) -> jax.Array:
    return y * (1.0 + v.astype(jnp.int32) - w.astype(jnp.int32))


def _of_one_place(v: jax.Array, w: jax.Array, y: jax.Array) -> jax.Array:
    def place(t: jax.Array) -> jax.Array:
        return jnp.argmax(jnp.stack([t, jnp.ones(())]))

    return y[(jnp.arange(3) + place(v) - place(w)) % 3]


def _of_one_greatest(v: jax.Array, w: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.where((jnp.maximum(v, 1) > 3) == (jnp.maximum(w, 1) > 3), y, 0)


@pytest.mark.parametrize("both", [_of_one_sign, _of_one_number, _of_one_place, _of_one_greatest])
def test_values_that_are_a_logical_tensor_where_it_is_a_number_are_not_one_another(both: Callable[..., Any]) -> None:
    """Where `m` adds up to 0, the first result is 0, and `t` is on the way to none."""
    placed = on({"i": 4}, (P("i"), P("i"), P()), (P(), P()), (8,), (8,), (3,))

    def reference(x: jax.Array, m: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        t = x.sum() / m.sum()
        return jnp.where(m.sum() != 0, t, 0), y

    def local(x: jax.Array, m: jax.Array, y: jax.Array, otherwise: float) -> tuple[jax.Array, jax.Array]:
        n = lax.psum(m.sum(), "i")
        t = lax.psum(x.sum(), "i") / n
        v, w = (jnp.where(jnp.isfinite(t), t, instead) for instead in (0, otherwise))
        return jnp.where(n != 0, t, 0), both(v, w, y)

    report = hlo_verify.verify(*placed.pair(reference, functools.partial(local, otherwise=0)), refute=False)
    assert report.verdict is Verdict.PROVED
    report = hlo_verify.verify(*placed.pair(reference, functools.partial(local, otherwise=7)), refute=False)
    assert [result.verdict for result in report.results] == [Verdict.PROVED, Verdict.UNKNOWN]


@pytest.mark.parametrize(("dtype", "verdict"), [(jnp.complex64, Verdict.UNKNOWN), (jnp.float32, Verdict.PROVED)])
def test_complex_values_stand_for_no_real_ones(dtype: Any, verdict: Verdict) -> None:
    """`1/(1 + z*z)` is none where z is i; 0 times that adds nothing to a real number alone."""
    given = [jax.ShapeDtypeStruct(shape, dtype) for shape in ((4, 3), (3, 2))]
    placed = replace(on({"i": 2}, (P("i"), P()), P("i")), arguments=given)

    def reference(x: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
        z = x @ w
        return jnp.real(z) * 3 + 2 * jnp.imag(z), jnp.real(z) * 5

    def local(x: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
        z = x @ w
        return 2 * jnp.imag(z) + 3 * jnp.real(z), jnp.real(z) * 5 + jnp.real(1 / (z * z + 1)) * 0

    report = hlo_verify.verify(*placed.pair(reference, local), refute=False)
    assert [result.verdict for result in report.results] == [Verdict.PROVED, verdict]
