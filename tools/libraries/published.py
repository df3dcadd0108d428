"""What published packages distribute by hand, against plain references: pairs for `tools.byhand`.

`python -m tools.byhand "$PWD/tools/libraries/published" --refute`, where einops is installed. pip downloads packages,
without what they need, into the folder that HLO_VERIFY_LIBRARIES names, or one in the temporary folder. Of a file those
functions are run that a pair needs, or all of it but the imports that are dropped; what is changed in it stands here.
Names that begin with "wrong" differ from their references.
"""

from __future__ import annotations

import ast
import math
import os
import subprocess
import sys
import tempfile
import types
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

WHEELS = {
    "dinosaur": "1.5.1",
    "ejkernel": "0.0.80.3",
    "jaxdecomp": "0.3.1",
    "ringattention": "0.1.2",
}
FOLDER = Path(os.environ.get("HLO_VERIFY_LIBRARIES", Path(tempfile.gettempdir()) / "hlo-verify-libraries"))

Function = Callable[..., Any]
LAB: dict[str, tuple[Any, ...]] = {}


def package(name: str) -> Path:
    """The unpacked wheel of a package."""
    folder = FOLDER / f"{name}-{WHEELS[name]}"
    if not folder.exists():
        wanted = ["--no-deps", "--pre", "--dest", str(FOLDER), f"{name}=={WHEELS[name]}"]
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", *wanted], check=True)
        (wheel,) = FOLDER.glob(f"{name.replace('-', '_')}-*.whl")
        zipfile.ZipFile(wheel).extractall(folder)
    return folder


def functions(file: Path, names: Sequence[str], known: Mapping[str, Any]) -> dict[str, Function]:
    """Those functions of a file, without what else it holds and imports; `known` is what they lean on."""
    body = [n for n in ast.parse(file.read_text()).body if isinstance(n, ast.FunctionDef) and n.name in names]
    for function in (n for each in body for n in ast.walk(each) if isinstance(n, ast.FunctionDef)):
        function.returns = None
        for argument in [*function.args.args, *function.args.kwonlyargs]:
            argument.annotation = None
    found = {"jax": jax, "jnp": jnp, "lax": lax, "math": math, "partial": partial, **known}
    exec(compile(ast.Module(body, []), str(file), "exec"), found)
    return {name: found[name] for name in names}


def whole(file: Path, drop: Sequence[str], changed: Mapping[str, str] | None = None) -> types.ModuleType:
    """A file as a module, without the imports that begin so, and with some text changed."""
    text = file.read_text()
    for old, new in (changed or {}).items():
        assert old in text, old
        text = text.replace(old, new)
    tree = ast.parse(text)
    tree.body = [n for n in tree.body if not any(_imports(n, each) for each in drop)]
    module = types.ModuleType(f"{file.stem}_{len(sys.modules)}")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module
    exec(compile(tree, str(file), "exec"), module.__dict__)
    return module


def _imports(node: ast.stmt, name: str) -> bool:
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").startswith(name)
    return isinstance(node, ast.Import) and node.names[0].name.startswith(name)


def on(mesh: AbstractMesh, local: Function, inside: Any, out: Any, *, check: bool = False) -> Function:
    return jax.shard_map(local, mesh=mesh, in_specs=inside, out_specs=out, check_vma=check)


def of(*shape: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def gradient(f: Function, arguments: int) -> Function:
    return jax.grad(lambda *args: jnp.sum(jnp.sin(f(*args))), tuple(range(arguments)))


def ring_attention() -> None:
    """`ringattention`: blocks of keys go round, chunk by chunk, by the authors of the paper."""
    file = package("ringattention") / "ringattention" / "ringattention_jax.py"
    added, chosen = (
        "attn_weights = attn_weights + bias_chunk",
        "attn_weights = jnp.where(bias_chunk < 0, {}, attn_weights)",
    )
    as_it_is = whole(file, ["flax"])
    infinite = whole(file, ["flax"], {added: chosen.format("-jnp.inf")})
    skips_own = {"(c * causal_block_size_k)": "(c * causal_block_size_k + causal_block_size_k)"}
    skipping = whole(file, ["flax"], {added: chosen.format("-jnp.inf"), **skips_own})
    split = P(None, "ring", None, None)

    def ring(module: Any, chunk: int, causal: bool, devices: int = 4) -> Function:
        how = {
            "causal_block_size": 1 if causal else None,
            "deterministic": True,
            "dropout_rng": None,
            "attn_pdrop": 0.0,
            "query_chunk_size": chunk,
            "key_chunk_size": chunk,
            "dtype": jnp.float32,
            "policy": jax.checkpoint_policies.nothing_saveable,
            "precision": None,
            "prevent_cse": False,
        }

        def local(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
            found: jax.Array = module.ring_attention(q, k, v, None, None, None, "ring", True, how)
            return found

        return on(AbstractMesh((devices,), ("ring",)), local, (split,) * 3, split)

    def attention(causal: bool, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(q.shape[-1])
        if causal:
            scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1), v)

    full, causal = partial(attention, False), partial(attention, True)
    given = (of(1, 16, 2, 4),) * 3
    for chunk, name in ((4, "one_chunk"), (2, "chunks")):
        LAB[f"ring_{name}"] = full, ring(as_it_is, chunk, False), given
        LAB[f"ring_causal_{name}"] = causal, ring(as_it_is, chunk, True), given
        LAB[f"ring_causal_infinite_{name}"] = causal, ring(infinite, chunk, True), given
    LAB["wrong_ring_causal_infinite"] = causal, ring(skipping, 2, True), given
    LAB["ring_64_chunks"] = full, ring(as_it_is, 2, False, 64), (of(1, 256, 2, 4),) * 3
    LAB["ring_causal_infinite_64_chunks"] = causal, ring(infinite, 2, True, 64), (of(1, 256, 2, 4),) * 3
    LAB["ring_gradient"] = gradient(full, 3), gradient(ring(as_it_is, 4, False), 3), given
    LAB["ring_causal_infinite_gradient"] = gradient(causal, 3), gradient(ring(infinite, 4, True), 3), given


def losses() -> None:
    """`ejkernel`: losses over a vocabulary that devices split. Where `shard_map` does not check what varies, a gradient
    is a part of what it should be: its public functions have it checked for that reason."""
    folder = package("ejkernel") / "ejkernel" / "kernels" / "_xla"
    for name in ("fused_cross_entropy", "fused_kl_divergence"):
        parent = types.ModuleType(f"ejkernel_{name}")
        parent.__path__ = [str(folder / name)]
        sys.modules[parent.__name__] = parent
    from importlib import import_module

    entropy: Any = import_module("ejkernel_fused_cross_entropy._xla_impl_fwd").fused_cross_entropy
    divergence: Any = import_module("ejkernel_fused_kl_divergence._xla_impl_fwd").fused_kl_divergence
    mesh, split = AbstractMesh((4,), ("tp",)), P(None, None, "tp")
    scores, labels = of(2, 8, 64), of(2, 8, dtype=jnp.int32)

    def plain(scores: jax.Array, labels: jax.Array) -> jax.Array:
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(scores, -1), labels[..., None], -1))

    def by_vocabulary(check: bool) -> Function:
        def local(scores: jax.Array, labels: jax.Array) -> Any:
            return entropy(scores, labels, reduction="mean", vocab_parallel_axis="tp")[0]

        return on(mesh, local, (split, P()), P(), check=check)

    inside = ("labels in [0, 64)",)
    LAB["cross_entropy"] = plain, by_vocabulary(False), (scores, labels), inside
    LAB["cross_entropy_gradient"] = jax.grad(plain), jax.grad(by_vocabulary(True)), (scores, labels), inside
    LAB["wrong_cross_entropy_gradient"] = jax.grad(plain), jax.grad(by_vocabulary(False)), (scores, labels), inside

    def between(kind: str, student: jax.Array, teacher: jax.Array) -> jax.Array:
        p, q = jax.nn.log_softmax(teacher, -1), jax.nn.log_softmax(student, -1)
        m = jnp.log(0.5 * jnp.exp(p) + 0.5 * jnp.exp(q))
        parts = {
            "forward": jnp.exp(p) * (p - q),
            "reverse": jnp.exp(q) * (q - p),
            "jsd": 0.5 * jnp.exp(p) * (p - m) + 0.5 * jnp.exp(q) * (q - m),
        }
        return jnp.mean(jnp.sum(parts[kind], -1))

    for kind in ("forward", "reverse", "jsd"):
        local = partial(divergence, reduction="mean", direction=kind, vocab_parallel_axis="tp")
        both = partial(between, kind), on(mesh, local, (split, split), P(), check=True)
        LAB[f"divergence_{kind}"] = *both, (scores, scores)
        LAB[f"divergence_{kind}_gradient"] = *map(jax.grad, both), (scores, scores)


def atmosphere() -> None:
    """`dinosaur`: running sums along a split axis, and products whose parts go round a ring both ways."""

    def mapped(f: Function | None = None, *, mesh: Any, in_specs: Any, out_specs: Any, check_rep: bool) -> Any:
        how = {"mesh": mesh, "in_specs": in_specs, "out_specs": out_specs, "check_vma": check_rep}
        return partial(jax.shard_map, **how) if f is None else jax.shard_map(f, **how)

    theirs: Any = whole(package("dinosaur") / "dinosaur" / "jax_numpy_utils.py", ["jax.experimental"])
    theirs.shard_map = types.SimpleNamespace(shard_map=mapped)
    mesh = AbstractMesh((8,), ("x",))
    along, given = NamedSharding(mesh, P("x", None)), (of(16, 6),)
    LAB["running_sums"] = partial(jnp.cumsum, axis=0), lambda x: theirs.cumsum(x, 0, sharding=along), given
    LAB["running_sums_back"] = (
        lambda x: jnp.cumsum(x[::-1], 0)[::-1],
        lambda x: theirs.reverse_cumsum(x, 0, sharding=along),
        given,
    )
    for way, gathers in (("gathered", True), ("scattered", False)):

        def product(a: jax.Array, b: jax.Array, gathers: bool = gathers) -> Any:
            specs = {"rhs_spec": P("x", None), "out_spec": P("x", None)}
            return theirs.sharded_einsum("im,mj->ij", a, b, gather_inputs=gathers, mesh=mesh, **specs)

        LAB[f"product_both_ways_{way}"] = jnp.matmul, product, (of(16, 24), of(24, 5))


def cosmology() -> None:
    """`jaxdecomp`: halos with their corners on two axes, and Fourier transforms of pencils and slabs."""
    folder = package("jaxdecomp") / "jaxdecomp" / "_src" / "jax"
    halo = functions(folder / "halo.py", ["_halo_pencils"], {})["_halo_pencils"]

    def smoothed(x: jax.Array) -> jax.Array:
        """Of a field with one row and one column more on each side."""
        sides = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
        return 2 * x[1:-1, 1:-1] + sides + x[2:, 2:]

    ring = ((1, 1), (1, 1), (0, 0))
    mesh, split = AbstractMesh((2, 4), ("x", "y")), P("x", "y", None)
    for name, periodic in (("periodic", True), ("zero", False)):

        def local(x: jax.Array, periodic: bool = periodic) -> jax.Array:
            return smoothed(halo(jnp.pad(x, ring), (1, 1), (periodic, periodic), "x", "y"))

        def whole_field(x: jax.Array, periodic: bool = periodic) -> jax.Array:
            return smoothed(jnp.pad(x, ring, mode="wrap") if periodic else jnp.pad(x, ring))

        LAB[f"halo_{name}"] = whole_field, on(mesh, local, (split,), split), (of(8, 16, 3),)
    LAB["wrong_halo"] = smoothed_at_once(smoothed, ring), LAB["halo_zero"][1], (of(8, 16, 3),)

    known = {
        "fft": lambda x, _, axis, adjoint: jnp.fft.fft(x, axis=axis),
        "fft2": lambda x, _, axes, adjoint: jnp.fft.fft2(x, axes=axes),
        "COMPLEX": lambda kind: kind,
        "jaxdecomp": types.SimpleNamespace(config=types.SimpleNamespace(transpose_axis_contiguous=True)),
    }
    theirs = functions(folder / "fft.py", ["_fft_pencils", "_fft_slab_xy"], known)
    field = (of(8, 16, 8, dtype=jnp.complex64),)

    def transformed(x: jax.Array) -> jax.Array:
        return jnp.fft.fftn(x).transpose(1, 2, 0)

    pencils = partial(theirs["_fft_pencils"], fft_type=None, adjoint=False, x_axis_name="x", y_axis_name="y")
    LAB["fourier_pencils"] = transformed, on(mesh, pencils, (split,), split), field
    slab = partial(theirs["_fft_slab_xy"], fft_type=None, adjoint=False, x_axis_name="x")
    line = AbstractMesh((8,), ("x",))
    LAB["fourier_slab"] = transformed, on(line, slab, (P("x", None, None),), P(None, "x", None)), field


def smoothed_at_once(smoothed: Function, ring: Any) -> Function:
    """As if the field had no edges."""
    return lambda x: smoothed(jnp.pad(x, ring, mode="edge"))


for add in (ring_attention, losses, atmosphere, cosmology):
    add()
