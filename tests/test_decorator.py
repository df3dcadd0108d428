"""`hlo_verify.jit`: what runs is verified before it runs for the first time, and all else is as under `jax.jit`."""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

import hlo_verify
from hlo_verify import InputError, NotProvedError, NotProvedWarning, Report, Verdict, executed
from hlo_verify.cache.store import FOLDER
from hlo_verify.diagnostics import Input

X = np.arange(6, dtype=np.float32).reshape(2, 3)
PROVED = hlo_verify.shown.shown(hlo_verify.report.Report("f", (hlo_verify.Result(0, "", Verdict.PROVED),), (), 1, 0.0))


@pytest.fixture(autouse=True)
def _no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, "")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[executed.Question]:
    """The questions that were asked; all are answered PROVED, so that nothing is verified."""
    questions: list[executed.Question] = []

    def decide(asked: executed.Question, settings: executed.Settings) -> Report:
        questions.append(asked)
        return PROVED

    monkeypatch.setattr(hlo_verify.decorator, "decide", decide)
    return questions


class TestVerdicts:
    def test_what_is_right_runs(self) -> None:
        f = hlo_verify.jit(lambda x: jnp.tanh(x) * 2, reference=lambda x: 2 * jnp.tanh(x))
        np.testing.assert_allclose(f(X), 2 * np.tanh(X), rtol=1e-6)
        (report,) = f.verification.reports
        assert report.verdict is Verdict.PROVED
        assert report.compared == "the reference with the module that the backend made and runs"

    def test_what_is_declared_stands_for_another_value(self) -> None:
        def reference(x: Any) -> Any:
            with jax.named_scope("gate"):
                gate = jnp.tanh(x)
            return {"y": x * gate}

        def f(x: Any, scale: float) -> Any:
            with jax.named_scope("cheap"):
                gate = jnp.clip(x, -1, 1)
            return {"y": x * gate * scale}

        for scale, verdict in ((1.0, Verdict.PROVED), (2.0, Verdict.REFUTED)):
            g = hlo_verify.jit(
                functools.partial(f, scale=scale),
                reference=reference,
                approximations={"cheap": "gate"},
                assume={"x": (-4, 4), "gate": (-1, 1)},
            )
            report = g.verification.check(X)
            assert report.verdict is verdict, report
            assert report.headline.startswith(f"{verdict} with 1 declared approximation: cheap (f32[2,3], test_dec")
            assert report.preconditions == ("x in [-4, 4)", "gate in [-1, 1)")

    def test_approximations_go_with_a_reference(self) -> None:
        with pytest.raises(InputError, match="approximations go with a reference"):
            hlo_verify.jit(lambda x: x, approximations="a = b")

    def test_what_is_wrong_never_runs(self) -> None:
        ran: list[object] = []

        @hlo_verify.jit(reference=lambda x: x * 3)
        def f(x: Any) -> Any:
            jax.debug.callback(ran.append, x)
            return x * 2

        for _ in range(2):
            with pytest.raises(NotProvedError, match="the factor is 2 where 3 is expected") as raised:
                f(X)
        jax.effects_barrier()
        assert raised.value.report.verdict is Verdict.REFUTED
        assert not ran and len(f.verification.reports) == 1, "verified once, and never run"

    def test_other_results_or_arguments(self) -> None:
        more = hlo_verify.jit(lambda x: x, reference=lambda x: (x, x))
        with pytest.raises(NotProvedError, match=r"the reference returns result\[0\]") as raised:
            more(X)
        assert raised.value.report.results[0].code is Input.NOT_ALIKE
        unused = hlo_verify.jit(lambda x, y: x * 2, reference=lambda x, y: 2 * x + 0 * y)
        assert unused(X, X).shape == X.shape
        assert "with the arguments that it does not use" in unused.verification.reports[0].compared
        with pytest.raises(NotProvedError, match=r"the summand y\[i,j\] is missing"):
            hlo_verify.jit(lambda x, y: x * 2, reference=lambda x, y: 2 * x + y)(X, X)

    def test_preconditions(self) -> None:
        reference = lambda table, token: table[token]  # noqa: E731
        rows = lambda table, token: jax.lax.dynamic_index_in_dim(table, token % 8, keepdims=False)  # noqa: E731
        table, token = np.ones((8, 3), np.float32), np.int32(3)
        under = hlo_verify.jit(rows, reference=reference, assume={"token": (0, 8)})
        assert under(table, token).shape == (3,)
        assert under.verification.reports[0].preconditions == ("token in [0, 8)",)
        with pytest.raises(NotProvedError):
            hlo_verify.jit(rows, reference=reference)(table, token)
        with pytest.raises(NotProvedError, match="there is no such argument"):
            hlo_verify.jit(rows, assume={"tokens": (0, 8)})(table, token)

    def test_a_defect_of_ours_is_no_traceback(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def defect(*_: object) -> None:
            raise ZeroDivisionError("in the prover")

        monkeypatch.setattr(hlo_verify.decorator, "decide", defect)
        with pytest.raises(NotProvedError, match=r"ZeroDivisionError: in the prover.*a defect of hlo-verify"):
            hlo_verify.jit(lambda x: x)(X)


class TestFailures:
    wrong = staticmethod(functools.partial(hlo_verify.jit, lambda x: x, reference=lambda x: (x, x)))

    def test_warn(self) -> None:
        f = self.wrong(on_failure="warn")
        with pytest.warns(NotProvedWarning, match="the reference returns") as warned:
            assert f(X).shape == X.shape
        assert Path(warned[0].filename).name == Path(__file__).name, "the caller's line"
        assert f(X).shape == X.shape, "once is enough"

    def test_a_function_of_the_report(self) -> None:
        reports: list[Report] = []
        f = self.wrong(on_failure=reports.append)
        f(X), f(X)
        assert [report.verdict for report in reports] == [Verdict.UNKNOWN]

    def test_a_function_that_raises_does_so_again(self) -> None:
        def stop(report: Report) -> None:
            raise KeyError(report.verdict)

        f = self.wrong(on_failure=stop)
        for _ in range(2):
            with pytest.raises(KeyError, match="UNKNOWN"):
                f(X)

    def test_what_there_is_no_such_thing_as(self) -> None:
        with pytest.raises(InputError, match="on_failure is 'raise', 'warn' or a function"):
            hlo_verify.jit(lambda x: x, on_failure="ignore")
        with pytest.raises(InputError, match="not a precondition"):
            hlo_verify.jit(lambda x: x, assume={"x": "even"})
        for wrong in ({"assume": 3}, {"reference": 3}, {"time_limit": "10s"}, {"effort": "max"}):
            with pytest.raises(InputError, match=r"not a precondition|reference is a|time_limit is|effort is"):
                hlo_verify.jit(lambda x: x, **wrong)

    def test_in_the_background(self) -> None:
        right = hlo_verify.jit(lambda x: x + 1, background=True)
        assert right(X).shape == X.shape
        assert [report.verdict for report in right.verification.wait()] == [Verdict.PROVED]
        wrong = hlo_verify.jit(lambda x: x * 2, reference=lambda x: x * 3, background=True, time_limit=1e-9)
        with pytest.warns(NotProvedWarning) as warned:
            assert wrong(X).shape == X.shape
            with pytest.raises(NotProvedError):
                wrong.verification.wait()
        assert Path(warned[0].filename).name == Path(__file__).name, "the function's line"
        with pytest.raises(NotProvedError):
            wrong.verification.wait()


def both(f: Callable[..., Any], **options: Any) -> Iterator[Any]:
    """A function under `jax.jit`, and under ours."""
    yield jax.jit(f, **options)
    yield hlo_verify.jit(f, **options)


class TestAsUnderJax:
    def test_once_for_a_signature(self, asked: list[executed.Question]) -> None:
        traced = []

        @hlo_verify.jit
        def f(x: Any, y: float = 1) -> Any:
            traced.append(x)
            return x * y

        for x in (X, X, jnp.array(X), X, X[:1], np.int32(3), X, X[:1]):
            np.testing.assert_array_equal(f(x), x)
        assert len(asked) == len(traced) == 3
        assert f._cache_size() == 4, "an array on a device is another entry of the cache, and runs the same"

    def test_later_calls_never_come_here(self, asked: list[executed.Question], monkeypatch: pytest.MonkeyPatch) -> None:
        f = hlo_verify.jit(lambda x: x + 1)
        f(X)
        monkeypatch.setattr(type(f.verification), "_found_of", None)
        f(X)
        with pytest.raises(TypeError, match="NoneType"):
            f(X[:1])

    def test_what_jax_has_compiled_before_is_verified_too(self, asked: list[executed.Question]) -> None:
        def f(x: Any) -> Any:
            return x + 1

        jax.jit(f)(X)
        ours, again = hlo_verify.jit(f), hlo_verify.jit(f, reference=lambda x: 1 + x)
        ours(X), again(X), ours(X), again(X)
        assert [question.has_reference for question in asked] == [False, True]

    def test_other_transformations(self, asked: list[executed.Question]) -> None:
        found = []
        for f in both(lambda x: jnp.sin(x).sum()):
            found.append(
                (
                    jax.grad(f)(X),
                    jax.vmap(f)(X),
                    jax.jit(f)(X),
                    jax.jvp(f, (X,), (X,))[1],
                    jax.hessian(f)(X[0]),
                    jax.jit(jax.grad(jax.checkpoint(f)))(X),
                    jax.lax.map(f, X),
                    jax.eval_shape(f, X).shape,
                    str(jax.make_jaxpr(f)(X)),
                )
            )
        jax.tree.map(np.testing.assert_array_equal, *found)
        assert not asked, "what is compiled then is another function"

    def test_static_arguments_trees_and_names(self, asked: list[executed.Question]) -> None:
        def f(tree: dict[str, Any], n: int, *rest: Any, power: Callable[..., Any], **more: Any) -> Any:
            return {"y": power(tree["x"], n) + sum(rest), **more}

        results = []
        for g in both(f, static_argnums=1, static_argnames="power"):
            results.append([g({"x": X}, n, X, power=jnp.power, z=X) for n in (2, 3, 2)])
            with pytest.raises(ValueError, match="Non-hashable static arguments"):
                g({"x": X}, [2], power=jnp.power)
        jax.tree.map(np.testing.assert_array_equal, *results)
        assert len(asked) == 2

    def test_static_arguments_of_a_reference(self) -> None:
        f = hlo_verify.jit(lambda x, n: x * n, static_argnums=1, reference=lambda x, n: n * x)
        assert f(X, 3).shape == X.shape and f.verification.reports[0].verdict is Verdict.PROVED

    def test_donation(self, asked: list[executed.Question]) -> None:
        for f in both(lambda x, y: x + y, donate_argnums=0):
            given = jnp.array(X)
            f(given, X)
            assert given.is_deleted()
            with pytest.raises((ValueError, RuntimeError), match="deleted"):
                f(given, X)

    def test_clear_cache(self, asked: list[executed.Question]) -> None:
        for f in both(lambda x: x + 1):
            f(X)
            assert f._cache_size() == 1
            f.clear_cache()
            assert f._cache_size() == 0
            f(X)
        assert len(asked) == 2, "it is compiled again, and verified again"

    def test_lower_and_compile(self, asked: list[executed.Question]) -> None:
        for f in both(lambda x, n: x * n, static_argnums=1):
            traced, lowered = f.trace(X, 2), f.lower(X, 2)
            assert isinstance(traced, jax.stages.Traced) and isinstance(lowered, jax.stages.Lowered)
            assert traced.lower().as_text() == lowered.as_text()
            np.testing.assert_array_equal(lowered.compile()(X), 2 * X)
            assert f.eval_shape(X, 2).shape == X.shape
        assert not asked
        assert f.verification.check(jax.ShapeDtypeStruct(X.shape, X.dtype), 2).verdict is Verdict.PROVED
        f(X, 2), f.verification.check(X, 2)
        assert len(asked) == 1, "it is the same executable"

    def test_an_outer_jit_is_itself(self, asked: list[executed.Question]) -> None:
        outer = jax.jit(hlo_verify.jit(lambda x: x + 1), donate_argnums=0)
        assert "tf.aliasing_output" in outer.lower(X).as_text()
        assert "jit" in str(jax.make_jaxpr(outer)(X))

    def test_effects_and_callbacks(self, asked: list[executed.Question]) -> None:
        def f(x: Any) -> Any:
            jax.debug.callback(lambda s: seen.append(s), x.sum())
            io_callback(lambda s: seen.append(-s), None, x.sum(), ordered=True)
            return jax.pure_callback(lambda x: x + 1, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

        for g in both(f):
            seen: list[Any] = []
            for _ in range(3):
                np.testing.assert_array_equal(g(X), X + 1)
            jax.effects_barrier()
            assert sorted(float(value) for value in seen) == [-15.0] * 3 + [15.0] * 3
        assert len(asked) == 1, "JAX looks such a function up each time, and it is known here"

    def test_references_are_not_followed(self) -> None:
        def f(ref: Any, x: Any) -> Any:
            ref[...] += x
            return x

        ref = jax.new_ref(jnp.zeros(3))
        with pytest.raises(NotProvedError, match="the function writes to references"):
            hlo_verify.jit(f)(ref, 1.0)
        np.testing.assert_array_equal(jax.jit(f)(ref, 1.0), 1.0)

    def test_errors_of_the_function(self) -> None:
        def f(x: Any) -> Any:
            if x.sum() > 0:
                raise AssertionError
            return x

        for g in both(f):
            with pytest.raises(jax.errors.TracerBoolConversionError):
                g(X)
            with pytest.raises(TypeError, match="missing 1 required positional argument"):
                g()

    def test_disable_jit(self, asked: list[executed.Question]) -> None:
        for f in both(lambda x: x if x.sum() > 0 else -x):
            with jax.disable_jit():
                np.testing.assert_array_equal(f(X), X)
        assert not asked

    def test_settings_of_jax_are_another_signature(self, asked: list[executed.Question]) -> None:
        for f in both(lambda x: x @ x.T):
            f(X)
            with jax.default_matmul_precision("float32"):
                f(X)
            assert f._cache_size() == 2
        assert len(asked) == 2

    def test_methods_partials_and_callables(self, asked: list[executed.Question]) -> None:
        class Scale:
            def __init__(self, by: float) -> None:
                self.by = by

            def __call__(self, x: Any) -> Any:
                return x * self.by

            @functools.partial(hlo_verify.jit, static_argnums=0)
            def method(self, x: Any) -> Any:
                return x * self.by

        three = Scale(3)
        for f in (three, three.__call__, functools.partial(lambda a, x: a * x, 3)):
            np.testing.assert_array_equal(hlo_verify.jit(f)(X), 3 * X)
        np.testing.assert_array_equal(three.method(X), 3 * X)
        np.testing.assert_array_equal(Scale(4).method(X), 4 * X)
        assert len(asked) == 5

    def test_what_it_says_of_itself(self) -> None:
        def f(x: Any) -> Any:
            """Return what it is given."""
            return x

        for g in both(f):
            assert (g.__name__, g.__doc__, g.__wrapped__) == ("f", "Return what it is given.", f)

    def test_it_goes_away(self, asked: list[executed.Question]) -> None:
        def f(x: Any) -> Any:
            return x + 1

        ours = hlo_verify.jit(f)
        ours(X)
        gone = weakref.ref(ours.verification)
        del ours
        gc.collect()
        assert gone() is None

    def test_threads_wait_for_the_verdict(self, asked: list[executed.Question]) -> None:
        f = hlo_verify.jit(lambda x: x * 2)
        found: list[Any] = []
        threads = [Thread(target=lambda: found.append(f(X))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 4 and len(asked) == 1
