"""A small language in which laws are written, and what finds and replaces terms by them.

    Law("a multiple is zero",  "zero(k*a)",  "zero(a)",  "k != 0")

says: where `zero` is applied to a number times a term, and that number is not 0, it is applied to the term. The left
side is a function whose arguments are

    a, b, c      any term, the same one wherever the letter occurs
    k, m         a number;  n  a whole one
    0, 1         this number
    nan          what is no number, as a program writes it
    -a           a term of which `parity.direction` says that it is the negative of another one
    k*a          a term with a leading coefficient k other than 1; with -k and -a where the condition does not hold of k

The right side has terms and numbers added, multiplied, negated and compared (a truth value is 0 or 1), and functions
of them. `f`, on either side, is one function after the other that the law is of. A condition compares numbers, or asks
a predicate of `CONDITIONS` about terms. A law whose left side is no such pattern has `by`: a function that finds it
among the arguments and replaces it. Its condition is about a whole argument, written as on the left side; one about
letters (`a > 0`) is asked by that function:

    Law("...",  "exponential(a + b)",  "exponential(a) * exponential(b)",  "is_factor(a + b)",  by=...)
"""

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hlo_verify.terms.addition import plain, scale
from hlo_verify.terms.functions import Function
from hlo_verify.terms.no_number import is_nan, nan
from hlo_verify.terms.parity import direction
from hlo_verify.terms.products import add, times
from hlo_verify.terms.term import ONE, ZERO, Poly, monomial_skey, number
from hlo_verify.terms.used import used

Arguments = tuple[Poly, ...]
Found = dict[str, Any]
"""What the letters of a pattern stand for: terms, numbers, and the function `f`."""
Reader = Callable[[Poly, Found], bool]
Predicate = Callable[..., bool]
Apply = Callable[[Function, Arguments], Poly]

TERMS = frozenset("abc")
NUMBERS = frozenset("kmn")
NONE = "nan"


@dataclass(frozen=True, slots=True)
class Law:
    """One law: wherever the left side occurs and the condition holds, the right side takes its place."""

    name: str
    left: str
    right: str
    when: str = ""
    functions: Sequence[Function] = ()
    """What `f` stands for."""
    by: Callable[[Function, Arguments], Poly | None] | None = None
    """What replaces the left side, from the function and its arguments."""


@dataclass(slots=True)
class Rule:
    """A law, of one function, as what is done with its arguments."""

    law: Law
    find: Callable[[Arguments], Found | None]
    holds: Callable[[Found], bool] | None
    replace: Callable[[Found], Poly | None]
    is_noted: bool = True
    """Whether it is noted here that the law was used."""

    def __call__(self, args: Arguments) -> Poly | None:
        found = self.find(args)
        if found is None:
            return None
        if self.holds is not None and not self.holds(found) and not self._holds_of_negative(found):
            return None
        result = self.replace(found)
        if result is not None and self.is_noted:
            used(self.law.name)
        return result

    def _holds_of_negative(self, found: Found) -> bool:
        """Whether the condition holds where `k*a` is `-k` times `-a`; if so, that is what was found."""
        assert self.holds is not None
        if "k*a" not in found or found["k"] == -1:
            return False
        found |= {"k": -found["k"], "a": scale(found["a"], -1)}
        return self.holds(found)


@dataclass(frozen=True, slots=True)
class Language:
    """What the names mean that laws are written with."""

    functions: Mapping[str, Function]
    """What functions are called in terms, where it is not as in the table."""
    conditions: Mapping[str, Predicate]
    apply: Apply

    def function(self, name: str) -> Function:
        return self.functions.get(name) or Function(name)

    def rules(self, table: Sequence[Law]) -> dict[Function, list[Rule]]:
        """The laws by the function that they are of, in the order of the table."""
        found: dict[Function, list[Rule]] = {}
        shared = [by for by, n in Counter(law.by for law in table if law.by is not None).items() if n > 1]
        for law in table:
            left = parsed(law.left)
            assert isinstance(left, ast.Call) and isinstance(left.func, ast.Name), law
            names = law.functions if left.func.id == "f" else (self.function(left.func.id),)
            for function in names:
                rules = found.setdefault(function, [])
                if law.by in shared and any(rule.law.by is law.by for rule in rules):
                    continue
                rules.append(self._rule(law, function, left, law.by in shared))
        return found

    def _rule(self, law: Law, function: Function, left: ast.Call, is_shared: bool) -> Rule:
        if law.by is None:
            holds = self._condition(law.when, {})
            return Rule(law, _finder(function, left), holds, self._term(parsed(law.right)))
        by = law.by
        whole = {ast.unparse(argument): n for n, argument in enumerate(left.args)}
        is_asked = not is_shared and _is_about_arguments(law.when, whole)
        holds = self._condition(law.when, whole) if is_asked else None
        return Rule(law, lambda args: {"args": args}, holds, lambda found: by(function, found["args"]), not is_shared)

    def _condition(self, text: str, whole: Mapping[str, int]) -> Callable[[Found], bool] | None:
        if not text:
            return None
        node = parsed(text)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            predicate = self.conditions[node.func.id]
            values = [_operand(argument, whole) for argument in node.args]
            return lambda found: predicate(*(value(found) for value in values))
        return _number(node)

    def _term(self, node: ast.expr) -> Callable[[Found], Poly]:
        """What makes a term of what was found."""
        if _is_number(node):
            value = _number(node)
            return lambda found: number(Fraction(value(found)))
        if isinstance(node, ast.Name):
            name = node.id
            return (lambda found: nan()) if name == NONE else lambda found: found[name]
        if isinstance(node, ast.UnaryOp):
            inner = self._term(node.operand)
            return lambda found: scale(inner(found), -1)
        if isinstance(node, ast.BinOp):
            return self._combined(node)
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name), ast.dump(node)
        head = node.func.id
        function = self.function(head)
        arguments = [self._term(argument) for argument in node.args]
        apply = self.apply
        if head == "f":
            return lambda found: apply(found["f"], tuple([argument(found) for argument in arguments]))
        return lambda found: apply(function, tuple([argument(found) for argument in arguments]))

    def _combined(self, node: ast.BinOp) -> Callable[[Found], Poly]:
        a, b = self._term(node.left), self._term(node.right)
        if isinstance(node.op, ast.Add):
            return lambda found: add(a(found), b(found))
        assert isinstance(node.op, ast.Mult), ast.dump(node)
        if _is_number(node.left):
            factor = _number(node.left)
            return lambda found: scale(b(found), plain(Fraction(factor(found))))
        return lambda found: times(a(found), b(found))


def _is_about_arguments(text: str, whole: Mapping[str, int]) -> bool:
    """Whether a condition asks about whole arguments; what replaces the left side asks for any other."""
    node = parsed(text) if text else None
    return isinstance(node, ast.Call) and all(ast.unparse(argument) in whole for argument in node.args)


def parsed(text: str) -> ast.expr:
    """One side of a law, or its condition."""
    return ast.parse(text, mode="eval").body


def _finder(function: Function, left: ast.Call) -> Callable[[Arguments], Found | None]:
    readers = [(n, _reader(argument)) for n, argument in enumerate(left.args)]
    readers.sort(key=lambda item: item[1] in (_negative, _multiple))  # what takes longest is asked last

    def find(args: Arguments) -> Found | None:
        found: Found = {"f": function}
        for n, reader in readers:
            if not reader(args[n], found):
                return None
        return found

    return find


def _reader(node: ast.expr) -> Reader:
    """What reads an argument by a pattern, and says whether it fits."""
    if isinstance(node, ast.Constant):
        wanted = ONE if node.value else ZERO
        return lambda p, found: p is wanted
    if isinstance(node, ast.Name):
        name = node.id
        if name == NONE:
            return lambda p, found: is_nan(p)
        if name in TERMS:
            return lambda p, found: found.setdefault(name, p) is p
        return _whole_number if name == "n" else lambda p, found: _constant(name, p, found)
    if isinstance(node, ast.UnaryOp):
        return _negative
    assert ast.unparse(node) == "k * a", ast.unparse(node)
    return _multiple


def _constant(name: str, p: Poly, found: Found) -> bool:
    value = p.constant
    found[name] = value
    return value is not None


def _whole_number(p: Poly, found: Found) -> bool:
    found["n"] = p.constant
    return isinstance(p.constant, int)


def _negative(p: Poly, found: Found) -> bool:
    if direction(p) >= 0:
        return False
    found["a"] = scale(p, -1)
    return True


def _multiple(p: Poly, found: Found) -> bool:
    if p.constant is not None:
        return False
    k = leading(p)
    if k == 1:
        return False
    found |= {"k*a": True, "k": k, "a": scale(p, Fraction(1) / Fraction(k))}
    return True


def leading(p: Poly) -> int | Fraction:
    """The least coefficient of a monomial that is no constant, of several the structurally first.

    It is the same of other tensors in the place of these, as far as that goes (and of a multiple, that multiple of it):
    what is derived for one layer is renamed for others.
    """
    if len(p.items) == 1:
        return p.items[0][1]
    least = min(abs(Fraction(c)) for mono, c in p.items if mono)
    items = [item for item in p.items if item[0] and abs(Fraction(item[1])) == least]
    if len({c for _, c in items}) == 1:
        return items[0][1]
    return min(items, key=lambda item: (monomial_skey(item[0]), tuple(a.uid for a, _ in item[0])))[1]


def _operand(node: ast.expr, whole: Mapping[str, int]) -> Callable[[Found], Any]:
    """What a condition asks about: a whole argument of a law with `by`, or what a letter stands for."""
    place = whole.get(ast.unparse(node))

    def value(found: Found) -> Any:
        if "args" in found and place is not None:
            return found["args"][place]
        assert isinstance(node, ast.Name), ast.unparse(node)
        return found[node.id]

    return value


OPERATIONS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda x, y: Fraction(x) / Fraction(y),
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: operator.gt,
    ast.Lt: operator.lt,
}
"""What is done with numbers, besides `abs`."""


def _is_number(node: ast.expr) -> bool:
    """Whether an expression is made of numbers alone."""
    return all(inner.id in NUMBERS or inner.id == "abs" for inner in ast.walk(node) if isinstance(inner, ast.Name))


def _number(node: ast.expr) -> Callable[[Found], Any]:
    """What computes with the numbers that were found."""
    if isinstance(node, ast.Constant):
        value = node.value
        return lambda found: value
    if isinstance(node, ast.Name):
        name = node.id
        return lambda found: found[name]
    if isinstance(node, ast.Compare):
        operation, parts = OPERATIONS[type(node.ops[0])], [node.left, node.comparators[0]]
    elif isinstance(node, ast.BinOp):
        operation, parts = OPERATIONS[type(node.op)], [node.left, node.right]
    elif isinstance(node, ast.UnaryOp):
        operation, parts = OPERATIONS[type(node.op)], [node.operand]
    else:
        assert isinstance(node, ast.Call) and ast.unparse(node.func) == "abs", ast.unparse(node)
        operation, parts = abs, list(node.args)
    values = [_number(part) for part in parts]
    return lambda found: operation(*[value(found) for value in values])
