"""No two files import each other in a circle, imports for types included.

The layers of packages are held by import-linter's contracts in pyproject.toml.
"""

from __future__ import annotations

import grimp


def circles(graph: grimp.ImportGraph) -> list[set[str]]:
    """Sets of modules each of which reaches all others of its set."""
    reached = {name: graph.find_upstream_modules(name) for name in graph.modules}
    found: list[set[str]] = []
    for name, upstream in reached.items():
        circle = {name} | {other for other in upstream if name in reached[other]}
        if len(circle) > 1 and circle not in found:
            found.append(circle)
    return found


def test_no_circles_of_files() -> None:
    assert circles(grimp.build_graph("k3check", cache_dir=None)) == []


def test_a_circle_is_seen() -> None:
    graph = grimp.ImportGraph()
    for name in ("a", "b", "c"):
        graph.add_module(name)
    graph.add_import(importer="a", imported="b")
    graph.add_import(importer="b", imported="c")
    assert circles(graph) == []
    graph.add_import(importer="c", imported="a")
    assert circles(graph) == [{"a", "b", "c"}]
