"""`hlo-verify export`: graphs with what was found of their nodes, as Model Explorer reads them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from hlo_verify import cli
from hlo_verify.export.costs import cost_of
from hlo_verify.export.graph import graph_of
from hlo_verify.export.model_explorer import COSTS, NAMES
from hlo_verify.passes.load.load import load

TESTDATA = Path(__file__).resolve().parents[2] / "testdata"


def export(tmp_path: Path, *arguments: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The graphs that are written, by id, and the data about nodes, by kind."""
    file = tmp_path / "graph.json"
    assert cli.main(["export", "--model-explorer", str(file), *map(str, arguments)]) == 0
    collection = json.loads(file.read_text())
    assert collection.keys() == {"label", "graphs"}
    kinds = {kind: tmp_path / f"graph.{kind}.json" for kind in NAMES}
    data = {kind: json.loads(path.read_text()) for kind, path in kinds.items() if path.exists()}
    graphs = {graph["id"]: graph for graph in collection["graphs"]}
    for graph in graphs.values():
        check(graph)
    for kind, of_graphs in data.items():
        for name, each in of_graphs.items():
            assert each["results"].keys() <= {node["id"] for node in graphs[name]["nodes"]}
            assert all(isinstance(one["value"], int if kind in COSTS else str) for one in each["results"].values())
    return graphs, data


def check(graph: dict[str, Any]) -> None:
    """What Model Explorer asks of a graph: its fields, and edges from outputs that there are."""
    nodes = {node["id"]: node for node in graph["nodes"]}
    assert len(nodes) == len(graph["nodes"])
    for node in graph["nodes"]:
        assert node.keys() == {"id", "label", "namespace", "attrs", "incomingEdges", "outputsMetadata"}
        assert all(isinstance(pair[key], str) for pair in node["attrs"] for key in ("key", "value"))
        assert not node["namespace"].startswith("/") and "//" not in node["namespace"]
        for edge in node["incomingEdges"]:
            outputs = [one["id"] for one in nodes[edge["sourceNodeId"]]["outputsMetadata"]]
            assert edge["sourceNodeOutputId"] in outputs


def values(data: dict[str, Any], graph: str) -> Counter[str]:
    return Counter(each["value"] for each in data[graph]["results"].values())


def test_a_pair_with_a_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = TESTDATA / "embedding_gather_scatter"
    graphs, data = export(tmp_path, folder / "logical.hlo.gz", folder / "broken_dropped_psum.hlo.gz")
    assert graphs.keys() == {"logical", "partitioned"}
    assert values(data["verdict"], "logical") == {"REFUTED": 1, "PROVED": 1}
    found = values(data["verdict"], "partitioned")
    assert found["at fault"] == 1 and found["a shard"] and found["of shards"]
    (fault,) = (at for at, one in data["verdict"]["partitioned"]["results"].items() if one["value"] == "at fault")
    assert next(node["label"] for node in graphs["partitioned"]["nodes"] if node["id"] == fault) == "gather"
    assert values(data["lineage"], "partitioned") == {"scatter@embedding.py:16[8000*(d mod 4) + i,j]": 1}
    assert "tiles 4 × 1, 2 copies" in values(data["sharding"], "partitioned")
    matches = json.loads((tmp_path / "graph.matches.json").read_text())["mappingEntries"]
    ids = [{node["id"] for node in graph["nodes"]} for graph in graphs.values()]
    assert all(set(one["leftNodeIds"]) <= ids[0] and set(one["rightNodeIds"]) <= ids[1] for one in matches)
    said = capsys.readouterr().out
    assert "REFUTED" in said and "model-explorer" in said and "graph.matches.json" in said


def test_a_proved_pair_sends_and_has_regions(tmp_path: Path) -> None:
    folder = TESTDATA / "shardmap_fsdp"
    graphs, data = export(tmp_path, folder / "logical.mlir.gz", folder / "partitioned.mlir.gz")
    assert values(data["verdict"], "logical") == {"PROVED": 4}
    assert "at fault" not in values(data["verdict"], "partitioned")
    assert data["sent"].keys() == {"partitioned"}
    inside = [node for node in graphs["partitioned"]["nodes"] if "each device" in node["namespace"]]
    assert len(inside) > 20


UNPLACED = """HloModule m, entry_computation_layout={{(f32[{n}]{{0}})->f32[{n}]{{0}}}}, num_partitions={count}
ENTRY main {{
  x = f32[{n}]{{0}} parameter(0)
  t = f32[{n}]{{0}} tanh(x), metadata={{op_name="f/tanh" source_file="f.py" source_line=3}}
  ROOT r = f32[{n}]{{0}} add(t, t), metadata={{op_name="f/add" source_file="f.py" source_line=4}}
}}
"""


def test_a_pair_of_which_nobody_says_how_it_lies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = tmp_path / "one.txt", tmp_path / "two.txt"
    for path, n, count in zip(paths, (8, 4), (1, 2), strict=True):
        path.write_text(UNPLACED.format(n=n, count=count))
    graphs, data = export(tmp_path, *paths)
    assert values(data["verdict"], "logical") == {"PROVED": 1}
    assert "argument x has no sharding" in capsys.readouterr().out
    assert len(graphs["partitioned"]["nodes"]) == 4


def test_one_module_and_graphs_alone(tmp_path: Path) -> None:
    folder = TESTDATA / "mlp_tp"
    graphs, data = export(tmp_path, folder / "partitioned.hlo.gz")
    assert len(graphs) == 1 and not {"verdict", "lineage"} & data.keys()
    (flops,) = data["flops"].values()
    assert max(one["value"] for one in flops["results"].values()) == 2 * 1024 * 1792 * 4096
    alone = tmp_path / "alone"
    alone.mkdir()
    graphs, data = export(alone, "--no-verify", folder / "logical.hlo.gz", folder / "partitioned.hlo.gz")
    assert len(graphs) == 2 and not {"verdict", "lineage"} & data.keys()


@pytest.mark.parametrize("case", ["transformer_scan_8/partitioned.hlo.gz", "conv_spatial/partitioned.hlo.gz"])
def test_every_operation_has_a_node_and_a_cost(case: str) -> None:
    module = load(TESTDATA / case)
    graph = graph_of(module, "m")
    names = Counter(node.op.name for node in graph.nodes if node.op is not None)
    assert names.keys() >= {op.name for op in module.main.ops}
    assert len({node.id for node in graph.nodes}) == len(graph.nodes)
    costs = [cost for cost in map(cost_of, graph.nodes) if cost is not None]
    assert all(min(cost.flops, cost.touched, cost.sent) >= 0 for cost in costs)
    assert any(cost.flops for cost in costs) and any(cost.sent for cost in costs)


def test_what_cannot_be_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = str(TESTDATA / "mlp_tp" / "logical.hlo.gz")
    assert cli.main(["export", "--model-explorer", str(tmp_path / "g.json"), module, module, module]) == 2
    assert cli.main(["export", "--model-explorer", str(tmp_path / "g.json"), "--partition", module, module]) == 2
    assert cli.main(["export", "--model-explorer", str(tmp_path / "none" / "g.json"), module]) == 2
    assert "cannot write" in capsys.readouterr().err


SERVER = """
import sys
import model_explorer
from model_explorer import server
port, graphs, *data = sys.argv[1:]
config = model_explorer.config()
config.add_model_from_path(graphs)
with open(graphs) as file:
    config.graphs_list.append(file.read())
for path in data:
    with open(path) as file:
        config.add_node_data(path, file.read())
server.start(host="127.0.0.1", port=int(port), config=config, no_open_in_browser=True, skip_health_check=True)
"""

PYTHON = os.environ.get("MODEL_EXPLORER_PYTHON", sys.executable)
"""An interpreter that has ai-edge-model-explorer."""

ASKS = pytest.mark.skipif(
    sys.executable == PYTHON and find_spec("model_explorer") is None,
    reason="ai-edge-model-explorer is not installed, and MODEL_EXPLORER_PYTHON names no Python that has it",
)


@ASKS
def test_the_server_of_model_explorer_gives_the_graphs_back(tmp_path: Path) -> None:
    folder = TESTDATA / "shardmap_fsdp"
    graphs, data = export(tmp_path, folder / "logical.mlir.gz", folder / "partitioned.mlir.gz")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    file = tmp_path / "graph.json"
    paths = [str(tmp_path / f"graph.{kind}.json") for kind in data]
    with subprocess.Popen([PYTHON, "-c", SERVER, str(port), str(file), *paths], stdout=subprocess.DEVNULL) as server:
        try:
            assert ask(port, "/check_health", tries=150) == b"model_explorer_ok"
            found = json.loads(ask(port, "/api/v1/load_graphs_json?graph_index=0"))
            assert {graph["id"]: graph for graph in found["graphs"]} == graphs
            text = json.loads(ask(port, f"/api/v1/read_text_file?path={quote(str(file))}"))["content"]
            assert json.loads(text) == found
            for number, kind in enumerate(data):
                given = json.loads(ask(port, f"/api/v1/load_node_data?node_data_index={number}"))["content"]
                assert json.loads(given) == data[kind]
        finally:
            server.kill()


def ask(port: int, path: str, tries: int = 1) -> bytes:
    """What the server answers; while it starts it does not."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for _ in range(tries - 1):
        try:
            with opener.open(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                return bytes(answer.read())
        except OSError:
            time.sleep(0.2)
    with opener.open(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
        return bytes(answer.read())


FIELDS = """
import dataclasses, json, sys
from model_explorer import graph_builder, node_data_builder
kinds = ("Graph", "GraphNode", "IncomingEdge", "KeyValue", "MetadataItem")
found = {kind: [f.name for f in dataclasses.fields(getattr(graph_builder, kind))] for kind in kinds}
for kind in ("GraphNodeData", "NodeDataResult", "GradientItem"):
    found[kind] = [f.name for f in dataclasses.fields(getattr(node_data_builder, kind))]
print(json.dumps(found))
"""


@ASKS
def test_its_own_classes_have_the_fields_that_are_written(tmp_path: Path) -> None:
    asked = subprocess.run([PYTHON, "-c", FIELDS], capture_output=True, check=True, text=True, timeout=60)
    fields = {kind: set(names) for kind, names in json.loads(asked.stdout.splitlines()[-1]).items()}
    graphs, data = export(tmp_path, TESTDATA / "mlp_tp" / "partitioned.hlo.gz")
    for graph in graphs.values():
        assert graph.keys() <= fields["Graph"]
        for node in graph["nodes"]:
            assert node.keys() <= fields["GraphNode"]
            assert all(edge.keys() <= fields["IncomingEdge"] for edge in node["incomingEdges"])
            assert all(pair.keys() <= fields["KeyValue"] for pair in node["attrs"])
            assert all(item.keys() <= fields["MetadataItem"] for item in node["outputsMetadata"])
    for kinds in data.values():
        for each in kinds.values():
            assert each.keys() <= fields["GraphNodeData"]
            assert all(one.keys() <= fields["NodeDataResult"] for one in each["results"].values())
            assert all(stop.keys() <= fields["GradientItem"] for stop in each.get("gradient", []))
