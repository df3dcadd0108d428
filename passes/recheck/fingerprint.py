"""Plain terms as text, for telling whether two questions are the same one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from hlo_verify.index.expr import Var
from hlo_verify.passes.recheck.plain import (
    Add,
    Affine,
    Base,
    Call,
    Clamp,
    Element,
    Entry,
    Expr,
    Gate,
    Made,
    Num,
    Power,
    Reduce,
    Row,
    Symbol,
    Table,
    children,
    indices,
)


class Names:
    """Writes terms as text in which variables and tensors go by the order of their occurrence: equal texts are equal
    questions."""

    def __init__(self) -> None:
        self._tensors: dict[Symbol, str] = {}
        self._variables: dict[Var, str] = {}
        self._memo: dict[int, str] = {}
        self._shared: dict[str, str] = {}

    def text(self, terms: Sequence[Expr]) -> str:
        """Some terms as text."""
        roots = [self.of(term) for term in terms]
        return "\n".join([*self._shared, *roots])

    def of(self, node: Expr) -> str:
        """A term's number; its text is written down where it occurs first."""
        found = self._memo.get(id(node))
        if found is None:
            text = self._text(node)
            found = self._memo[id(node)] = self._shared.setdefault(text, f"#{len(self._shared)}")
        return found

    def _text(self, node: Expr) -> str:
        inside = " ".join([self.of(c) for c in children(node)] + [self._affine(e) for e in indices(node)])
        if isinstance(node, Num):
            return str(node.value)
        if isinstance(node, Element):
            source = node.tensor
            known = "" if source.assumed is None else f":{source.assumed}"
            name = self._tensors.setdefault(source, f"t{len(self._tensors)}:{source.dtype}:{source.kind}{known}")
            return f"{name}[{inside}]"
        if isinstance(node, Entry):
            return f"entry{node.values.dtype}{_digest(node.values.tobytes())}[{inside}]"
        if isinstance(node, Gate):
            return f"[{node.lo} {inside} {node.hi}]"
        if isinstance(node, Reduce):
            return f"({node.reducer} {' '.join(map(self._variable, node.bound))} {inside})"
        if isinstance(node, Row | Made):
            return f"({node.function!r} {' '.join(map(self._variable, node.bound))} {inside})"
        label = str(node.function) if isinstance(node, Call) else str(node.exponent) if isinstance(node, Power) else ""
        label += " collects" * (isinstance(node, Add) and node.collects)
        return f"({type(node).__name__}{label} {inside})"

    def _variable(self, v: Var) -> str:
        return self._variables.setdefault(v, f"v{len(self._variables)}:{v.size}")

    def _affine(self, e: Affine) -> str:
        return f"<{e.const}" + "".join(f" {c}*{self._base(p.base)}/{p.low}%{p.radix}" for p, c in e.items) + ">"

    def _base(self, base: Base) -> str:
        if isinstance(base, Var):
            return self._variable(base)
        if isinstance(base, Affine):
            return self._affine(base)
        if isinstance(base, Clamp):
            return f"clamp({self._affine(base.inner)},{base.lo},{base.hi})"
        if isinstance(base, Table):
            return f"table{_digest(repr(base.values).encode())}({self._affine(base.inner)})"
        return f"int({self.of(base.term)})"


def _digest(contents: bytes) -> str:
    """A name for many numbers. Python's own hash will not do: those of (-1,) and (-2,) are equal."""
    return hashlib.blake2b(contents, digest_size=16).hexdigest()
