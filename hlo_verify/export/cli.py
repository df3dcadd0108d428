"""`hlo-verify export --model-explorer FILE MODULE [PARTITIONED]`."""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.export.graph import Graph, graph_of
from hlo_verify.export.model_explorer import graphs_json, matches_json, node_data
from hlo_verify.limits import TIME_LIMIT
from hlo_verify.program.depth import deeply
from hlo_verify.render.characters import visible
from hlo_verify.render.output import check_outputs, given_path, path_of, write
from hlo_verify.report import Report, Verdict
from hlo_verify.session import Session
from hlo_verify.sources.modules import module_of
from hlo_verify.sources.shardings_file import read_shardings

if TYPE_CHECKING:
    from hlo_verify.export.lineages import Lineages
    from hlo_verify.program.ir import Module

Verify = Callable[..., Report]

LOGICAL, PARTITIONED = "logical", "partitioned"


@dataclass(frozen=True, slots=True)
class Exported:
    """Graphs, what is known of their nodes, which nodes go together, and the verdict of a pair."""

    graphs: tuple[Graph, ...]
    found: dict[str, dict[str, dict[str, str]]]
    matches: tuple[tuple[str, str], ...] = ()
    report: Report | None = None
    notes: list[str] = field(default_factory=list)


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hlo-verify export",
        description="Write the graph of a module, or of a pair with what was found of it, for another tool to show.",
        epilog="exit status: 0 written, 2 input that cannot be read. What the verdict is does not matter to it.",
    )
    add = parser.add_argument
    add("paths", nargs="+", type=given_path, metavar="MODULE", help="a module, or a logical and a partitioned one")
    said = "graphs for ai-edge-model-explorer; data about their nodes come beside FILE (as FILE.verdict.json)"
    add("--model-explorer", type=path_of, metavar="FILE", required=True, help=said)
    add("--partition", action="store_true", help="have the XLA in jaxlib partition the one module, for a pair")
    add("--no-verify", action="store_true", help="of a pair, write graphs alone: neither verdicts nor lineage")
    add("--devices", type=int, metavar="N", help="number of devices, where no module says it")
    add("--shardings", type=path_of, metavar="FILE", help="shardings of the (logical) module's arguments and results")
    said = f"how long verifying may take, and finding lineage (default: {TIME_LIMIT:g})"
    add("--time-limit", type=float, metavar="SECONDS", default=TIME_LIMIT, help=said)
    add("--traceback", action="store_true", help="show where an internal error happened")
    return parser


def main(argv: Sequence[str], verify: Verify) -> int:
    """Run `hlo-verify export` and return its exit status. `verify` is `hlo_verify.verify`. Raises InputError for input
    that cannot be read, and files that cannot be written."""
    arguments = make_parser().parse_args(argv)
    if len(arguments.paths) > 2:
        raise InputError("a graph is of one module, or of a logical and a partitioned one", Input.USAGE)
    if arguments.partition and len(arguments.paths) != 1:
        raise InputError("--partition goes with one module; a pair is partitioned already", Input.USAGE)
    file: Path = arguments.model_explorer
    check_outputs([file], [*map(Path, arguments.paths), arguments.shardings])
    exported = _exported(arguments, verify)
    label = " and ".join(Path(path).name for path in arguments.paths)
    write(graphs_json(label, exported.graphs, exported.found), file)
    data = node_data(exported.graphs, exported.found)
    beside = {kind: file.with_suffix(f".{kind}.json") for kind in data}
    for kind, text in data.items():
        write(text, beside[kind])
    if exported.matches:
        write(matches_json(exported.matches), file.with_suffix(".matches.json"))
    write("".join(f"{visible(line)}\n" for line in _said(exported, file, beside)), None)
    return 0


def _said(exported: Exported, file: Path, beside: dict[str, Path]) -> list[str]:
    """What was written, and how to look at it."""
    sizes = ", ".join(f"{graph.id} with {len(graph.nodes)} nodes" for graph in exported.graphs)
    lines = [f"{file}: {sizes}" + (f"; {exported.report.verdict}" if exported.report is not None else "")]
    lines += exported.notes
    paths = ",".join(map(str, beside.values()))
    lines.append(f"model-explorer {file}" + (f" --node_data_paths={paths}" if paths else ""))
    if exported.matches:
        matches = file.with_suffix(".matches.json")
        lines.append(f"in its two panes, nodes that go together are chosen together by {matches} (Sync, upload)")
    return lines


@deeply
def _exported(arguments: argparse.Namespace, verify: Verify) -> Exported:
    if arguments.partition:
        with tempfile.TemporaryDirectory(prefix="hlo-verify-") as folder:
            verdict = _verified(arguments, verify, keep=folder)
            logical = _read(arguments, Path(arguments.paths[0]))
            return _pair(arguments, logical, module_of(Path(folder) / "partitioned.hlo", None), verdict)
    if len(arguments.paths) == 1:
        module = _read(arguments, Path(arguments.paths[0]))
        graph = graph_of(module, module.name or "module")
        return Exported((graph,), {graph.id: _said_of(graph)})
    logical = _read(arguments, Path(arguments.paths[0]))
    partitioned = module_of(Path(arguments.paths[1]), arguments.devices)
    report = None if arguments.no_verify else _verified(arguments, verify)
    return _pair(arguments, logical, partitioned, report)


def _read(arguments: argparse.Namespace, path: Path) -> Module:
    module = module_of(path, arguments.devices)
    return module if arguments.shardings is None else read_shardings(arguments.shardings).apply(module)


def _verified(arguments: argparse.Namespace, verify: Verify, **more: Any) -> Report:
    options = {"devices": arguments.devices, "shardings": arguments.shardings, "time_limit": arguments.time_limit}
    return verify(*map(Path, arguments.paths), **options, **more)


def _pair(arguments: argparse.Namespace, logical: Module, partitioned: Module, report: Report | None) -> Exported:
    graphs = (graph_of(logical, LOGICAL), graph_of(partitioned, PARTITIONED))
    found: dict[str, dict[str, dict[str, str]]] = {graph.id: _said_of(graph) for graph in graphs}
    if report is None:
        return Exported(graphs, found)
    from hlo_verify.export.lineages import NONE, lineages

    notes = []
    try:
        session = Session.begin(seconds=arguments.time_limit)
        known = lineages(logical, partitioned, session, is_wrong=report.verdict is Verdict.REFUTED)
    except InputError as error:  # where arguments lie is inferred, which the walk does not do
        known = replace(NONE, said=_of_stages(graphs[1], report))
        notes.append(f"lineage of operations that their source lines tell apart alone: {error}")
    nodes = [graph.of_operations() for graph in graphs]
    pairs = [(nodes[0][id(a)], nodes[1][id(b)]) for a, b in known.matched if id(a) in nodes[0] and id(b) in nodes[1]]
    both = min(len(logical.main.arguments), len(partitioned.main.arguments))
    pairs += [(f"argument {n}", f"argument {n}") for n in range(both)]
    found[PARTITIONED]["lineage"] = {nodes[1][at]: text for at, text in known.said.items() if at in nodes[1]}
    for graph, of_node in zip(graphs, nodes, strict=True):
        found[graph.id]["computes"] = {of_node[at]: text for at, text in known.terms.items() if at in of_node}
    found[PARTITIONED]["verdict"] = _of_operations(graphs[1], known) | _at_fault(graphs[1], report)
    for graph in graphs:
        of_results = {f"result {result.index}": str(result.verdict) for result in report.results}
        found[graph.id].setdefault("verdict", {}).update(of_results)
    return Exported(graphs, found, tuple(pairs), report, notes)


def _of_stages(graph: Graph, report: Report) -> dict[int, str]:
    """The lineage that a report has. It names operations by what they are and their lines: where there is but one."""
    told = {(stage.operation, stage.location): stage.lineage for stage in report.stages}
    named = [(node.op.name, str(node.op.location), id(node.op)) for node in graph.nodes if node.op is not None]
    count = Counter((name, where) for name, where, _ in named)
    return {at: told[name, where] for name, where, at in named if (name, where) in told and count[name, where] == 1}


def _said_of(graph: Graph) -> dict[str, dict[str, str]]:
    """What modules say themselves of their nodes."""
    return {"sharding": {node.id: text for node in graph.nodes for key, text in node.told if key == "sharding"}}


def _of_operations(graph: Graph, known: Lineages) -> dict[str, str]:
    """What is known of the operations of the partitioned module: nothing, if there is no lineage of any."""
    if not known.said:
        return {}
    said = {}
    for node in graph.nodes:
        if node.op is not None:
            at = id(node.op)
            said[node.id] = "a shard" if at in known.said else "not matched" if at in known.lost else "of shards"
    return said


def _at_fault(graph: Graph, report: Report) -> dict[str, str]:
    """The operations that findings are about, which say their line of source and their statement."""
    from hlo_verify.passes.diagnose.finding import statement

    blamed = {each.finding.operation for each in report.results if each.finding is not None}
    lines = {each.finding.location for each in report.results if each.finding is not None}
    return {
        node.id: "at fault"
        for node in graph.nodes
        if node.op is not None and (not lines or str(node.op.location) in lines) and statement(node.op) in blamed
    }
