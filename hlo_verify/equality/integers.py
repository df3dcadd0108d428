"""Index expressions and guards as Z3 integer arithmetic.

Variables whose digits divide one another are encoded digit by digit, so that most expressions stay
linear; a remainder or quotient by a constant is a fresh quotient and remainder. The machine value of a sum of integers
under conditions (`k + 16*[k < 0]`, a place that may be counted from the end) is that sum, but for a multiple of the
number of the type's values. A table, and the value of any other term, is an integer of which only the range is known:
what Z3 proves then holds for any value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import z3

from hlo_verify.equality.backend import Answer, Different, Equal, Limit, Limits, Unknown
from hlo_verify.equality.effort import Effort, z3_context
from hlo_verify.equality.z3_limits import limit, satisfiable
from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.terms.summed_values import Summand, summed_under_conditions
from hlo_verify.terms.term import Guard


@dataclass(frozen=True, slots=True)
class Together:
    """Whether some conditions hold nowhere together: their product and 0 are the sides of the question."""

    conditions: tuple[z3.BoolRef, ...]


class Integers:
    """A solver over the index variables of one question. Make it with every expression that will occur."""

    def __init__(self, expressions: Iterable[Index], effort: Effort) -> None:
        self.effort = effort
        self._context = z3_context()
        self.solver = z3.SolverFor("QF_LIA", ctx=self._context)
        self._limits = effort.limits
        limit(self.solver, self._limits)
        self._breakpoints: dict[Var, set[int]] = {}
        self._pieces: dict[Var, list[tuple[int, z3.ArithRef]]] = {}
        self._opaque: dict[int, z3.ArithRef] = {}
        self._memo: dict[int, z3.ArithRef] = {}
        self._quotients: dict[tuple[Index, int], tuple[z3.ArithRef, z3.ArithRef]] = {}
        for e in expressions:
            self._collect(e)

    def _collect(self, e: Index) -> None:
        for atom, _ in e.items:
            if isinstance(atom, Digit):
                breakpoints = self._breakpoints.setdefault(atom.var, {1})
                breakpoints.add(atom.low)
                if not atom.top:
                    breakpoints.add(atom.low * atom.radix)
            else:
                for inner in atom.exprs:
                    self._collect(inner)
                for part in summed_under_conditions(atom) or ():
                    for condition in part.conditions:
                        self._collect(condition.form)
                    self._collect(part.value)

    def _digits(self, v: Var) -> list[tuple[int, z3.ArithRef]]:
        """The variable as digits: (weight, integer), with its range asserted."""
        found = self._pieces.get(v)
        if found is not None:
            return found
        breakpoints = sorted(self._breakpoints.get(v, {1}))
        if any(b % a for a, b in pairwise(breakpoints)):
            breakpoints = [1]
        pieces = []
        for n, low in enumerate(breakpoints):
            piece = z3.Int(f"{v.prefix}{v.uid}_{low}", self._context)
            if v.size < expr.UNBOUNDED:
                end = breakpoints[n + 1] if n + 1 < len(breakpoints) else None
                top = (v.size - 1) // low if end is None else end // low - 1
                self.solver.add(piece >= 0, piece <= top)
            pieces.append((low, piece))
        if len(breakpoints) > 1 and v.size < expr.UNBOUNDED:
            self.solver.add(z3.Sum([low * piece for low, piece in pieces]) <= v.size - 1)
        self._pieces[v] = pieces
        return pieces

    def number(self, value: int) -> z3.ArithRef:
        """A constant."""
        return z3.IntVal(value, self._context)

    def of(self, e: Index) -> z3.ArithRef:
        """An index expression."""
        found = self._memo.get(e.uid)
        if found is None:
            found = self.number(e.const)
            for atom, c in e.items:
                found = found + c * (self._digit(atom) if isinstance(atom, Digit) else self._other(atom))
            self._memo[e.uid] = found
        return found

    def _digit(self, atom: Digit) -> z3.ArithRef:
        pieces = self._digits(atom.var)
        end = atom.var.size if atom.top else atom.low * atom.radix
        if any(low == atom.low for low, _ in pieces):
            parts = [(low // atom.low) * piece for low, piece in pieces if atom.low <= low < end]
            last = max(low for low, _ in pieces if low < end)
            following = [low for low, _ in pieces if low > last]
            if atom.top or following[:1] == [end]:
                total = parts[0]
                for part in parts[1:]:
                    total = total + part
                return total
        whole = z3.Sum([low * piece for low, piece in pieces]) if len(pieces) > 1 else pieces[0][1]
        high = self._divided(whole, atom.low)[0]
        return high if atom.top else self._divided(high, atom.radix)[1]

    def _quotient(self, e: Index, m: int) -> tuple[z3.ArithRef, z3.ArithRef]:
        """Quotient and remainder of an expression, the same integers whenever they are asked for."""
        found = self._quotients.get((e, m))
        if found is None:
            found = self._quotients[e, m] = self._divided(self.of(e), m)
        return found

    def _divided(self, x: z3.ArithRef, m: int) -> tuple[z3.ArithRef, z3.ArithRef]:
        """Quotient and remainder, as fresh integers."""
        if m == 1:
            return x, self.number(0)
        key = expr.next_uid()
        q, r = z3.Int(f"q{key}", self._context), z3.Int(f"r{key}", self._context)
        self.solver.add(x == m * q + r, r >= 0, r < m)
        return q, r

    def _other(self, atom: Opaque) -> z3.ArithRef:
        found = self._opaque.get(atom.uid)
        if found is not None:
            return found
        if atom.operator in ("mod", "div"):
            m = atom.args[0]
            q, r = self._quotient(atom.exprs[0], m)
            found = q if atom.operator == "div" else r
        elif atom.operator == "clamp":
            x, (lo, hi) = self.of(atom.exprs[0]), atom.args
            found = z3.If(x < lo, self.number(lo), z3.If(x > hi, self.number(hi), x))
        elif (parts := summed_under_conditions(atom)) is not None:
            found = self._summed(atom, parts)
        else:
            found = z3.Int(f"o{atom.uid}", self._context)
            if atom.lo > -expr.UNBOUNDED and atom.hi < expr.UNBOUNDED:
                self.solver.add(found >= atom.lo, found <= atom.hi)
        self._opaque[atom.uid] = found
        return found

    def _summed(self, atom: Opaque, parts: Sequence[Summand]) -> z3.ArithRef:
        """The machine value of a sum."""
        total = self.number(0)
        for part in parts:
            value = self.of(part.value)
            for condition in part.conditions:
                value = z3.If(self.holds(condition), value, self.number(0))
            total = total + part.times * value
        times = z3.Int(f"w{atom.uid}", self._context)
        found = total + (atom.hi - atom.lo + 1) * times
        self.solver.add(found >= atom.lo, found <= atom.hi)
        return found

    def holds(self, guard: Guard) -> z3.BoolRef:
        """A guard as a condition."""
        form = self.of(guard.form)
        parts = []
        if guard.lo is not None:
            parts.append(form >= guard.lo)
        if guard.hi is not None:
            parts.append(form <= guard.hi)
        return z3.And(parts)

    def decide(self, question: Together, limits: Limits) -> Answer:
        """As `backend.Backend.decide`; a difference comes without a model."""
        if limits != self._limits:
            self._limits = limits
            limit(self.solver, limits)
        found = satisfiable(self.solver, limits, *question.conditions)
        if isinstance(found, Unknown):
            return found
        return Different(0, "") if found else Equal()

    def possible(self, *conditions: z3.BoolRef) -> bool:
        """Whether the conditions can hold together; True also if that is not known."""
        if self.effort.left <= 0:
            return True
        self.effort.left -= 1
        answer = self.decide(Together(conditions), self._limits)
        self.effort.session.check()
        if isinstance(answer, Unknown):
            self.effort.unanswered.append(answer)
            self.effort.session.reached("solver_megabytes" if answer.limit is Limit.MEMORY else "solver_steps")
        return not isinstance(answer, Equal)
