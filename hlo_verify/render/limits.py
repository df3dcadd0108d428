"""The table of limits in docs/limits.md: `python -m hlo_verify.render.limits` prints it, and a test compares."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from itertools import pairwise

from hlo_verify.limits import EFFORTS, Limits


def table() -> str:
    """A row for each limit: what it is for each effort, and what `Limits` says of it."""
    rows = [f"| name | {' | '.join(EFFORTS)} | what and why |", f"|---|{'--:|' * len(EFFORTS)}---|"]
    for name, said in _documented():
        values = " | ".join(f"{getattr(Limits.of(effort), name):,}" for effort in EFFORTS)
        rows.append(f"| `{name}` | {values} | {said} |")
    return "\n".join(rows)


def _documented() -> Iterator[tuple[str, str]]:
    """The limits, each with the text that stands behind it."""
    (found,) = ast.parse(inspect.getsource(Limits)).body
    assert isinstance(found, ast.ClassDef)
    for field, text in pairwise(found.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            said = text.value.value if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) else ""
            yield field.target.id, " ".join(str(said).split())


if __name__ == "__main__":
    print(table())
