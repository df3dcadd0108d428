"""The good pairs that are mutated: small builds of `tools/fixtures`, captured once into a folder of their own."""

from __future__ import annotations

import io
import json
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hlo_verify.jaxlib_api import ir
from hlo_verify.passes.canonicalize.inline import Builder
from hlo_verify.passes.load.load import read
from hlo_verify.xla.execute_child import spell_out_groups, walk

CACHE = Path(tempfile.gettempdir()) / "hlo-verify-mutate"

DEFAULT = tuple(
    "mlp_dp mlp_tp mlp_2d mlp_zero3 mlp_accumulate gspmd_mlp_2d embedding_gather_scatter masks_iota moe_top2 "
    "transformer_fwd_8 transformer_grads_8 transformer_train_8 transformer_scan_8 transformer_scan_sp_8 "
    "transformer_sp_8 transformer_remat_8 gspmd_transformer_grads_8 conv_spatial encoder_uneven gspmd_encoder_uneven "
    "shardmap_megatron_mlp shardmap_attention_heads shardmap_fsdp shardmap_vocab_xent".split()
)
"""Every fixture for 8 devices whose small build is proved."""

OFTEN, SOMETIMES = 12, 4
"""How often a fixture is mutated in a round, in which those that take several seconds a mutant come once."""

DEAR = frozenset(
    "transformer_grads_8 transformer_train_8 transformer_scan_8 transformer_scan_sp_8 transformer_sp_8 "
    "transformer_remat_8 gspmd_transformer_grads_8 conv_spatial encoder_uneven gspmd_encoder_uneven".split()
)
MIDDLING = frozenset({"moe_top2", "transformer_fwd_8"})


def in_turn(names: Sequence[str]) -> tuple[str, ...]:
    """A round: the fixtures in the order in which mutants of them are made, again and again."""

    def times(name: str) -> int:
        return 1 if name in DEAR else SOMETIMES if name in MIDDLING else OFTEN

    return tuple(name for turn in range(OFTEN) for name in names if times(name) > turn)


@dataclass(frozen=True, slots=True)
class Case:
    """A good pair as MLIR bytecode. `integers` bounds what integer arguments may hold; `mesh` has its axes' sizes."""

    name: str
    logical: bytes
    partitioned: bytes
    mesh: tuple[int, ...]
    integers: int

    @property
    def devices(self) -> int:
        return math.prod(self.mesh)


def read_case(folder: Path, name: str) -> Case:
    """A captured pair."""
    facts = json.loads((folder / name / "case.json").read_text())
    halves = ((folder / name / f"{half}.mlirbc").read_bytes() for half in ("logical", "partitioned"))
    return Case(name, *halves, mesh=tuple(facts["mesh"]), integers=facts["integers"])


def capture(folder: Path, names: Sequence[str]) -> None:
    """Lower what is not in the folder yet; each takes some seconds."""
    from tools.fixtures.catalogue import FIXTURES
    from tools.fixtures.make import capture as capture_texts

    unknown = [name for name in names if name not in FIXTURES]
    if unknown:
        raise SystemExit(f"there is no fixture {', '.join(unknown)}")
    for name in names:
        target = folder / name
        if (target / "case.json").is_file():
            continue
        fixture = FIXTURES[name]
        with tempfile.TemporaryDirectory() as scratch:
            texts = capture_texts(fixture, Path(scratch), small=True)
        halves = []
        for half in ("logical", "partitioned"):
            (text,) = (text for file, text in texts.items() if file.startswith(half))
            halves.append(text.encode())
        keep(folder, Case(name, *halves, mesh=tuple(fixture.mesh.values()), integers=fixture.integers))


def keep(folder: Path, case: Case) -> None:
    """Write a pair whose modules are as they came, ready to be mutated."""
    target = folder / case.name
    target.mkdir(parents=True, exist_ok=True)
    (target / "logical.mlirbc").write_bytes(prepare(case.logical, None))
    (target / "partitioned.mlirbc").write_bytes(prepare(case.partitioned, case.devices))
    (target / "case.json").write_text(json.dumps({"mesh": list(case.mesh), "integers": case.integers}))


def kept(folder: Path) -> tuple[str, ...]:
    """The names of the pairs that a folder has."""
    return tuple(sorted(file.parent.name for file in folder.glob("*/case.json")))


def require_proofs(folder: Path, names: Sequence[str]) -> None:
    """Leave with a message where a captured pair is not PROVED: nothing can be told of its mutants."""
    import hlo_verify

    for case in (read_case(folder, name) for name in names):
        verdict = hlo_verify.verify(case.logical, case.partitioned, refute=False).verdict
        if verdict != "PROVED":
            raise SystemExit(f"the small build of {case.name} is {verdict}: it is no good pair")


def prepare(contents: bytes, devices: int | None) -> bytes:
    """A module as bytecode that says for how many devices it is, without what stands in the way of edits.

    Groups are lists of devices; layouts, and functions that nothing calls, are gone.
    """
    module = read(contents).module
    with module.context, ir.Location.unknown():
        spell_out_groups(module.operation, Builder(module).attributes)
        called = {"main"}
        for operation in walk(module.operation):
            for key in ("result_layout", "xla_shape"):
                if key in operation.attributes and not operation.name.startswith("mhlo."):
                    del operation.attributes[key]
            called |= (
                {ir.FlatSymbolRefAttr(operation.attributes["callee"]).value}
                if "callee" in operation.attributes
                else set()
            )
            if "called_computations" in operation.attributes:
                called |= {ir.FlatSymbolRefAttr(each).value for each in operation.attributes["called_computations"]}
        for operation in list(module.body.operations):
            if operation.operation.name == "func.func" and operation.attributes["sym_name"].value not in called:
                operation.operation.erase()
        if devices is not None:
            kind = ir.IntegerType.get_signless(32)
            for key, value in (("mhlo.num_partitions", devices), ("mhlo.num_replicas", 1)):
                module.operation.attributes[key] = ir.IntegerAttr.get(kind, value)
        module.operation.verify()
    return bytecode(module)


def bytecode(module: object) -> bytes:
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)  # type: ignore[attr-defined]
    return buffer.getvalue()


def as_text(module: bytes) -> str:
    """For people; it has the source locations too."""
    return str(read(module).module.operation.get_asm(enable_debug_info=True))
