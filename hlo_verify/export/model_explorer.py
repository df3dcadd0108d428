"""Graphs and data about their nodes as ai-edge-model-explorer reads them.

A file of graphs is a collection: a label and graphs, each with an id and nodes. Data about nodes is one file for each
thing that is known: by graph, by node, a value and perhaps a colour. What the fields mean is in the package's
`graph_builder.py` and `node_data_builder.py` (version 0.1.34).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hlo_verify.export.costs import Cost, cost_of
from hlo_verify.export.graph import Graph, Node

GRADIENT = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#e07a5f"}]
"""From the least to the most of a cost."""

COLOURS = {
    "PROVED": "#a7c957",
    "REFUTED": "#e4576f",
    "UNKNOWN": "#ffd166",
    "at fault": "#e4576f",
    "a shard": "#a7c957",
    "of shards": "#dfe8c4",
    "not matched": "#ffd166",
}
"""Of verdicts, and of what is known of an operation."""

COSTS: Mapping[str, Callable[[Cost], int]] = {
    "flops": lambda cost: cost.flops,
    "bytes": lambda cost: cost.touched,
    "sent": lambda cost: cost.sent,
}
"""What is known of costs, by the name that a file of it has."""

NAMES = {
    "verdict": "verdict",
    "lineage": "lineage",
    "computes": "computes",
    "sharding": "sharding",
    "flops": "floating-point operations",
    "bytes": "bytes read and written",
    "sent": "bytes given to collectives",
}
"""What Model Explorer calls each kind of data."""

Found = Mapping[str, Mapping[str, str]]
"""What is known of nodes: by kind of data, by node."""


def graphs_json(label: str, graphs: Sequence[Graph], found: Mapping[str, Found]) -> str:
    """The graphs as one collection. `found` is by graph, and is told with the nodes too."""
    collection = {"label": label, "graphs": [_graph(graph, found.get(graph.id, {})) for graph in graphs]}
    return json.dumps(collection, ensure_ascii=False) + "\n"


def _graph(graph: Graph, found: Found) -> dict[str, Any]:
    return {"id": graph.id, "nodes": [_node(node, found) for node in graph.nodes]}


def _node(node: Node, found: Found) -> dict[str, Any]:
    said = [(kind, each[node.id]) for kind, each in found.items() if node.id in each and kind != "sharding"]
    cost = cost_of(node)
    costs = [] if cost is None else [(NAMES[kind], f"{of(cost):,}") for kind, of in COSTS.items() if of(cost)]
    return {
        "id": node.id,
        "label": node.label,
        "namespace": node.namespace,
        "attrs": [{"key": key, "value": value} for key, value in (*said, *node.told, *costs)],
        "incomingEdges": [
            {"sourceNodeId": source, "sourceNodeOutputId": str(output), "targetNodeInputId": str(n)}
            for n, (source, output) in enumerate(node.inputs)
        ],
        "outputsMetadata": [
            {"id": str(n), "attrs": [{"key": "tensor_shape", "value": str(type_)}]}
            for n, type_ in enumerate(node.outputs)
        ],
    }


def node_data(graphs: Sequence[Graph], found: Mapping[str, Found]) -> dict[str, str]:
    """The files of node data, by kind: those of which anything is known."""
    data: dict[str, dict[str, Any]] = {}
    for graph in graphs:
        for kind, each in found.get(graph.id, {}).items():
            if each:
                data.setdefault(kind, {})[graph.id] = _texts(kind, each)
        for kind, of in COSTS.items():
            costs = ((node.id, cost_of(node)) for node in graph.nodes)
            values = {at: {"value": of(cost)} for at, cost in costs if cost is not None and of(cost)}
            if values:
                data.setdefault(kind, {})[graph.id] = {"name": NAMES[kind], "results": values, "gradient": GRADIENT}
    return {kind: json.dumps(data[kind], ensure_ascii=False) + "\n" for kind in NAMES if kind in data}


def _texts(kind: str, found: Mapping[str, str]) -> dict[str, Any]:
    results = {
        at: {"value": value} | ({"bgColor": COLOURS[value], "textColor": "#14171c"} if value in COLOURS else {})
        for at, value in found.items()
    }
    return {"name": NAMES[kind], "results": results, "showExpandedSummaryOnGroupNode": kind == "verdict"}


def matches_json(pairs: Sequence[tuple[str, str]]) -> str:
    """Which nodes of two graphs go together, for looking at both at once: by node of the first graph, those of the
    second that compute shards of it."""
    together: dict[str, list[str]] = {}
    for left, right in pairs:
        together.setdefault(left, []).append(right)
    entries = [{"leftNodeIds": [left], "rightNodeIds": right} for left, right in together.items()]
    return json.dumps({"mappingEntries": entries}, ensure_ascii=False) + "\n"
