"""What a proof claims about loops.

Of a loop the prover says for each component what it is at the start of iteration t, as a term in t: this is the
induction hypothesis. A component of a partitioned loop is a shard of what the logical loop carries, a tensor that is
known by its name only. Three claims for each component are the induction:

    start   at t = 0 it is the initial value, where what the logical loop carries is its initial value
    step    at t + 1 it is what an iteration makes, where what the logical loop carries is what one makes there
    end     at t = trips it is the loop's result, where what the logical loop carries is its result

Others are about the condition: it holds for t < trips alone, and what it was read from are the components. What the
prover lets be arbitrary (past the end of a shard) is what the loop has there. Loops that were unrolled, or taken in
closed form, have no such hypothesis and are not written down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.ops.counting import COUNT
from hlo_verify.ops.induction import Loop, book_of
from hlo_verify.ops.values import Context, Value, position_var, positions
from hlo_verify.passes.recheck.meanings import UnwrittenError
from hlo_verify.passes.recheck.plain import Affine, Element, Expr, Gate, Symbol, plus, whole
from hlo_verify.passes.recheck.transcribe import Opening
from hlo_verify.program.ir import Op
from hlo_verify.terms.term import Poly, Read, Tensor, reads

Side = Callable[[Opening], Expr]

Where = tuple[Affine, ...]

Instead = dict[Tensor, Callable[[Opening, Where], Expr]]
"""What reads of some tensors stand for."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What a loop of the logical module carries by name: component `k`, read `around` (devices, the counters of loops
    around, its own counter) and at a position; `result` is its name in the end."""

    loop: Loop
    k: int
    around: tuple[Index, ...]
    result: Tensor


def carried_by(loops: Sequence[Loop]) -> dict[Tensor, Carried]:
    """What loops carry by name."""
    found = {}
    for loop in loops:
        for k, (state, final) in enumerate(zip(loop.state, loop.final, strict=True)):
            name, result = state.term.atom, final.term.atom
            if isinstance(name, Read) and name.tensor.kind == "loop" and isinstance(result, Read):
                around = name.indices[: len(name.indices) - len(state.shape)]
                if around and around[-1] is expr.of_var(loop.t):
                    found[name.tensor] = Carried(loop, k, around, result.tensor)
    return found


@dataclass(frozen=True, slots=True)
class Induction:
    """A `while` as it was interpreted: its components before, in and after an iteration, and in the end."""

    initial: Sequence[Value]
    state: Sequence[Value]
    after: Sequence[Value]
    final: Sequence[Value]
    tested: Sequence[Value]
    """The components as the condition was read from them."""
    test: Value
    outside: tuple[Index, ...]
    """What arbitrary values depend on besides iteration and position."""
    loop: Loop
    """The logical loop: itself, or the one that its components are shards of."""
    carried: Mapping[Tensor, Carried]

    @property
    def t(self) -> Var:
        return self.loop.t

    def component(self, k: int) -> Iterator[tuple[str, Side, Side]]:
        """The claims about a component: of which step, what it should be, what the prover says that it is.

        None about what is only named, or arbitrary. Raises `UnwrittenError` where the hypothesis has another form.
        """
        state, initial, after, final = (part[k].term for part in (self.state, self.initial, self.after, self.final))
        if (
            k < len(self.loop.state)
            and self.state[k] is self.loop.state[k]
            and self.final[k] is self.loop.final[k]
            and self._is_name(state)
        ):
            return
        if state is initial:
            yield "steps", _side(after), _side(state)
            yield "ends", _side(final), _side(state)
            return
        own, arbitrary = self._hypothesis(k)
        end = _arbitrary(final, "loop result", k)
        if arbitrary and not own and len(end) == 1 and final.atom in end:
            return
        starts: Instead = {}
        steps: Instead = {}
        ends: Instead = {}
        for source in own:
            found = self.carried[source]
            starts[source] = _at(found.loop.initial[found.k])
            steps[source] = _at(found.loop.after[found.k])
            ends[source] = _element_of(found.result, len(found.around) - 1)
        anything = Symbol("anything", "opaque", self.state[k].type.dtype)
        for source in arbitrary:
            starts[source], steps[source] = _at(self.initial[k]), _at(self.after[k])
            ends[source] = _element(anything, len(self.outside))
        last = {read.tensor: _element(anything, None) for read in end}
        yield "starts", _side(initial), _side(state, {self.t: Affine(0)}, starts)
        yield "steps", _side(after), _side(state, {self.t: plus(whole(self.t), 1)}, steps)
        yield "ends", _side(final, {}, last), _side(state, {self.t: Affine(self.t.size)}, ends)

    def _is_name(self, p: Poly) -> bool:
        return isinstance(p.atom, Read) and p.atom.tensor in self.carried

    def _hypothesis(self, k: int) -> tuple[set[Tensor], set[Tensor]]:
        """What a component reads of what the logical loop carries, and of what is arbitrary."""
        own, arbitrary = set(), set()
        value = self.state[k]
        place = (*self.outside, expr.of_var(self.t), *positions(value.shape))
        for read in reads(value.term):
            found = self.carried.get(read.tensor)
            if found is not None and found.loop is self.loop:
                if read.indices[: len(found.around)] != found.around:
                    raise UnwrittenError("what a loop carries, read at another iteration")
                own.add(read.tensor)
            elif read in _arbitrary(value.term, "carried", k):
                if read.indices != place:
                    raise UnwrittenError("an arbitrary value that is the same one at several places")
                arbitrary.add(read.tensor)
            elif read.tensor.bodies or self.t in read.free:
                raise UnwrittenError("a component that is more than a shard")
        return own, arbitrary

    def condition(self) -> Iterator[tuple[str, Side, Side]]:
        """The claims about the condition, at a count `n` up to the number of iterations."""
        counts = {v for value in (*self.tested, self.test) for v in value.term.free if v.prefix == COUNT}
        if len(counts) != 1 or self.t.size < 2:
            raise UnwrittenError("a condition that does not count")
        (count,) = counts
        n = whole(expr.fresh("f", self.t.size + 1))
        yield "goes on", lambda _: Gate(n, None, self.t.size - 1), _side(self.test.term, {count: n})
        for k, (tested, state) in enumerate(zip(self.tested, self.state, strict=True)):
            if count in tested.term.free:
                yield "counts", _side(state.term, {self.t: n}), _side(tested.term, {count: n})
            elif tested.term is not state.term and tested.term.atom not in _arbitrary(tested.term, "carried", k):
                raise UnwrittenError("a condition on something else than the loop carries")


def induction(op: Op, operands: Sequence[Value], values: Sequence[Value], context: Context) -> Induction:
    """The induction that the prover made over a loop. Raises `UnwrittenError` where it made none."""
    condition, body = op.regions
    environment = context.environment
    if any(v not in environment for v in (*body.arguments, *body.results)):
        raise UnwrittenError("a loop without an iteration")
    state = [environment[v] for v in body.arguments]
    carried = carried_by(book_of(context).loops)
    loops = {
        id(found.loop): found.loop
        for value, before in zip(state, operands, strict=True)
        if value.term is not before.term
        for read in reads(value.term)
        if (found := carried.get(read.tensor)) is not None
    }
    if len(loops) != 1:
        raise UnwrittenError("a loop that is not taken by induction")
    (loop,) = loops.values()
    if not any(loop.t in value.term.free for value in state):
        raise UnwrittenError("a loop that takes several turns of a logical one at a time, or leaves some out")
    return Induction(
        operands,
        state,
        [environment[v] for v in body.results],
        values,
        [environment[v] for v in condition.arguments],
        environment[condition.results[0]],
        context.execution,
        loop,
        carried,
    )


def _arbitrary(p: Poly, name: str, k: int) -> set[Read]:
    return {read for read in reads(p) if read.tensor.kind == "opaque" and read.tensor.name == f"{name} {k}"}


def _side(p: Poly, env: Mapping[Var, Affine] | None = None, instead: Instead | None = None) -> Side:
    return lambda opening: opening.term(p, env or {}, _bound(instead or {}, opening))


def _bound(instead: Instead, opening: Opening) -> dict[Tensor, Callable[[Where], Expr]]:
    return {source: partial(known, opening) for source, known in instead.items()}


def _at(value: Value) -> Callable[[Opening, Where], Expr]:
    """A value, at the position that is read."""

    def known(opening: Opening, where: Where) -> Expr:
        place = where[len(where) - len(value.shape) :]
        env = {position_var(i, n): e for i, (n, e) in enumerate(zip(value.shape, place, strict=True)) if n > 1}
        return opening.term(value.term, env)

    return known


def _element_of(source: Tensor, iteration: int) -> Callable[[Opening, Where], Expr]:
    """Another tensor, where one is read; it has no index for the iteration."""
    return lambda opening, where: Element(opening.symbol(source), (*where[:iteration], *where[iteration + 1 :]))


def _element(source: Symbol, iteration: int | None) -> Callable[[Opening, Where], Expr]:
    def known(_: Opening, where: Where) -> Expr:
        return Element(source, where if iteration is None else (*where[:iteration], *where[iteration + 1 :]))

    return known
