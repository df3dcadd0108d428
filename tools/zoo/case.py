"""One case of the zoo: a file of `testdata/bugs/`, read and lowered. No devices are needed."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import jax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "testdata" / "bugs"

Tree = Any
"""A pytree, as JAX knows them."""

_DTYPES = {"f32": "float32", "i32": "int32", "ui32": "uint32", "bf16": "bfloat16", "i1": "bool"}
_WORDS = ("MESH", "IN", "OUT", "ARGUMENTS", "CODE", "reference", "right")
_CODE = re.compile(r"HV00[1-7]")


class CaseError(Exception):
    """A file of the zoo is not written as `testdata/bugs/README.md` asks."""


@dataclass(frozen=True, slots=True)
class Argument:
    """Type and sizes of an argument; `below` bounds the integers that a run draws for it."""

    dtype: str
    shape: tuple[int, ...]
    below: int


@dataclass(frozen=True, slots=True)
class Case:
    """One bug. `right` and `wrong` are bodies of shard_map; without `wrong`, `edits` of the text of `right` make it."""

    name: str
    title: str
    path: Path
    mesh: Mapping[str, int]
    arguments: Tree
    in_specs: Tree
    out_specs: Tree
    code: str
    line: int
    """The line that carries `# BUG`."""
    reference: Callable[..., Tree]
    right: Callable[..., Tree]
    wrong: Callable[..., Tree] | None
    edits: tuple[tuple[str, str], ...]

    @property
    def devices(self) -> int:
        return prod(self.mesh.values())

    def abstract_mesh(self) -> AbstractMesh:
        return AbstractMesh(tuple(self.mesh.values()), tuple(self.mesh), axis_types=(AxisType.Auto,) * len(self.mesh))

    def shapes(self) -> Tree:
        """The arguments as JAX describes them."""
        return jax.tree.map(lambda each: jax.ShapeDtypeStruct(each.shape, each.dtype), self.arguments)  # type: ignore[no-untyped-call]

    def whole(self, mesh: Mesh | AbstractMesh) -> Any:
        """The reference, jitted, with the case's shardings."""
        return self._jitted(self.reference, mesh)

    def mapped(self, body: Callable[..., Tree], mesh: Mesh | AbstractMesh) -> Any:
        """`right` or `wrong` on every device of the mesh, jitted."""
        function = jax.shard_map(body, mesh=mesh, in_specs=self.in_specs, out_specs=self.out_specs, check_vma=False)
        return self._jitted(function, mesh)

    def edited(self, text: str) -> str:
        """The text of the lowered `right` with the edits made; each finds its place once."""
        for before, after in self.edits:
            if text.count(before) != 1:
                raise CaseError(
                    f"{self.name}: {before!r} is in {text.count(before)} places of the right program's text"
                )
            text = text.replace(before, after)
        return text

    def _jitted(self, function: Callable[..., Tree], mesh: Mesh | AbstractMesh) -> Any:
        shardings = placed(self.in_specs, mesh), placed(self.out_specs, mesh)
        # A wrong program may leave an argument unused; it stays a pair with the reference.
        return jax.jit(function, in_shardings=shardings[0], out_shardings=shardings[1], keep_unused=True)


def placed(specs: Tree, mesh: Mesh | AbstractMesh) -> Tree:
    """Partition specs as shardings on the mesh."""
    return jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs, is_leaf=lambda each: isinstance(each, P))


@dataclass(frozen=True, slots=True)
class Texts:
    """The StableHLO of a case, with source locations."""

    reference: str
    right: str
    wrong: str


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("b[0-9]*.py"))


def load(name: str) -> Case:
    """Read the case called `name`. Raises `CaseError` where the file leaves something out or contradicts itself."""
    path = FOLDER / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"testdata.bugs.{name}", path)
    if spec is None or spec.loader is None or not path.exists():
        raise CaseError(f"there is no case {name} in {FOLDER}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    missing = [word for word in _WORDS if word not in vars(module)]
    if missing:
        raise CaseError(f"{name}: {', '.join(missing)} missing")
    wrong, edits = getattr(module, "wrong", None), getattr(module, "PARTITIONED_EDIT", ())
    if (wrong is None) == (not edits):
        raise CaseError(f"{name}: either a function `wrong` or PARTITIONED_EDIT makes the wrong program")
    if not _CODE.fullmatch(module.CODE):
        raise CaseError(f"{name}: CODE is {module.CODE!r}, not one of HV001 to HV007")
    document = module.__doc__ or ""
    if "Origin:" not in document:
        raise CaseError(f"{name}: the docstring says no origin")
    return Case(
        name,
        document.split("\n", 1)[0],
        path,
        module.MESH,
        _arguments(module.ARGUMENTS),
        module.IN,
        module.OUT,
        module.CODE,
        _bug_line(path),
        module.reference,
        module.right,
        wrong,
        edits,
    )


def lower(case: Case) -> Texts:
    """Lower the three programs for CPUs."""
    mesh, shapes = case.abstract_mesh(), case.shapes()

    def text(jitted: Any) -> str:
        return str(jitted.trace(*shapes).lower(lowering_platforms=("cpu",)).as_text(debug_info=True))

    right = text(case.mapped(case.right, mesh))
    wrong = case.edited(right) if case.wrong is None else text(case.mapped(case.wrong, mesh))
    return Texts(text(case.whole(mesh)), right, wrong)


def _arguments(tree: Tree) -> Tree:
    """`("f32", sizes)` and `("i32", sizes, below)` as arguments, in their tree."""

    def is_argument(each: Any) -> bool:
        return isinstance(each, tuple) and bool(each) and isinstance(each[0], str)

    def read(each: tuple[Any, ...]) -> Argument:
        return Argument(_DTYPES[each[0]], each[1], each[2] if len(each) > 2 else 2)

    return jax.tree.map(read, tree, is_leaf=is_argument)


def _bug_line(path: Path) -> int:
    lines = [n for n, line in enumerate(path.read_text().splitlines(), 1) if line.rstrip().endswith("# BUG")]
    if len(lines) != 1:
        raise CaseError(f"{path.stem}: {len(lines)} lines end with the comment BUG, not one")
    return lines[0]
