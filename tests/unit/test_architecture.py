# SPDX-License-Identifier: Apache-2.0
"""The layers of .importlinter, and the house rules that a reading of the source can check.

For the rules every module is read with ``ast``. A check gives sentences that begin with
``file:line``; each check is also shown a planted violation, so that it cannot fall silent. What
ruff finds is not checked here.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import grimp
import networkx as nx
import pytest
from importlinter import configuration
from importlinter.application import use_cases

ROOT = Path(__file__).parents[2]
PACKAGES = ("planner", "applier")

#: Names of files that say nothing of what is in them.
EMPTY_NAMES = ("base", "common", "default", "helpers", "manager", "misc", "utils")
#: The methods of cliff that every verb overrides.
OF_A_VERB = frozenset({"get_parser", "take_action"})
FILE_LINES = 400
FUNCTION_LINES = 60

#: Modules in which a state may be assigned.
WRITERS_OF_STATES = ("applier/engines/recorder.py", "applier/storage/rows.py")


Function = ast.FunctionDef | ast.AsyncFunctionDef


class Source(NamedTuple):
    """One module as it is written; ``nodes`` are all of ``tree``."""

    path: str
    module: str
    text: str
    tree: ast.Module
    nodes: list[ast.AST]


def read(root: Path) -> list[Source]:
    """Read every module of the packages under ``root``, in alphabetical order."""
    found = []
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            path = file.relative_to(root)
            parts = path.with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            text = file.read_text(encoding="utf-8")
            tree = ast.parse(text)
            found.append(Source(path.as_posix(), module, text, tree, list(ast.walk(tree))))
    return found


@cache
def product() -> list[Source]:
    """Return the modules of this checkout."""
    gc.disable()  # half a million nodes, which all stay
    try:
        return read(ROOT)
    finally:
        gc.freeze()
        gc.enable()


def names_that_say_something(sources: Sequence[Source]) -> Iterator[str]:
    """No file is called utils, common or the like."""
    for source in sources:
        name = source.path.rpartition("/")[2].removesuffix(".py")
        if name in EMPTY_NAMES:
            yield f"{source.path}:1: {name!r} does not say what is in it"


def sizes(sources: Sequence[Source]) -> Iterator[str]:
    """No file and no function is longer than a person keeps in mind."""
    for source in sources:
        lines = len(source.text.splitlines())
        if lines > FILE_LINES:
            yield f"{source.path}:1: {lines} lines, more than {FILE_LINES}"
        for name, function in functions(source):
            lines = (function.end_lineno or function.lineno) - function.lineno + 1
            if lines > FUNCTION_LINES:
                where = f"{source.path}:{function.lineno}"
                yield f"{where}: {name} has {lines} lines, more than {FUNCTION_LINES}"


def one_writer_of_states(sources: Sequence[Source]) -> Iterator[str]:
    """Only the recorder and the rows of the store assign a state; ``self.state`` is one's own."""
    for source in sources:
        if source.path in WRITERS_OF_STATES:
            continue
        for node in source.nodes:
            if not (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)):
                continue
            if node.attr == "state" and ast.unparse(node.value) != "self":
                where = f"{source.path}:{node.lineno}"
                yield f"{where}: a state is assigned outside {' and '.join(WRITERS_OF_STATES)}"


def no_waiting_by_the_clock(sources: Sequence[Source]) -> Iterator[str]:
    """Nothing sleeps: what waits can be stopped."""
    for source, call in calls(sources):
        if name_of(call) in ("time.sleep", "sleep"):
            yield f"{source.path}:{call.lineno}: time.sleep cannot be stopped; wait for an event"


def docstrings(sources: Sequence[Source]) -> Iterator[str]:
    """Every public module, class, function and method says what it is; an override need not."""
    classes = {
        node.name: node for s in sources for node in s.nodes if isinstance(node, ast.ClassDef)
    }

    def overrides(of: ast.AST, name: str) -> bool:
        """Return whether a base of a class has this method; verbs have those of cliff."""
        bases = of.bases if isinstance(of, ast.ClassDef) else []
        known = [classes[n] for base in bases for n in last_names(base) if n in classes]
        return bool(bases and name in OF_A_VERB) or any(
            overrides(base, name) or name in {getattr(m, "name", None) for m in base.body}
            for base in known
        )

    def missing(source: Source, node: ast.AST, name: str) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | Function):
                if child.name.startswith("_"):
                    continue
                whole = f"{name}.{child.name}"
                if ast.get_docstring(child) is None and not overrides(node, child.name):
                    yield f"{source.path}:{child.lineno}: {whole} has no docstring"
                if isinstance(child, ast.ClassDef):
                    yield from missing(source, child, whole)

    for source in sources:
        if ast.get_docstring(source.tree) is None:
            yield f"{source.path}:1: {source.module} has no docstring"
        yield from missing(source, source.tree, source.module)


def functions(source: Source) -> Iterator[tuple[str, Function]]:
    """Return all functions of a module with their names inside it (``Class.method``)."""

    def inside(node: ast.AST, outer: tuple[str, ...]) -> Iterator[tuple[str, Function]]:
        for child in ast.iter_child_nodes(node):
            name = (*outer, child.name) if isinstance(child, ast.ClassDef | Function) else outer
            if isinstance(child, Function):
                yield ".".join(name), child
            yield from inside(child, name)

    yield from inside(source.tree, ())


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Return the nodes of a function that are not inside another function."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, Function):
            yield child
            yield from own_nodes(child)


def calls(sources: Sequence[Source]) -> Iterator[tuple[Source, ast.Call]]:
    """Return all calls of all modules."""
    for source in sources:
        for node in source.nodes:
            if isinstance(node, ast.Call):
                yield source, node


def name_of(call: ast.Call) -> str:
    """Return what is called as it is written: ``yaml.load``."""
    return ast.unparse(call.func)


def last_names(base: ast.expr) -> list[str]:
    """Return the name of a base class, without its module and its parameters, in a list."""
    named = base.value if isinstance(base, ast.Subscript) else base
    return [ast.unparse(named).rpartition(".")[2]]


Check = Callable[[Sequence[Source]], Iterator[str]]
CHECKS: tuple[Check, ...] = (
    names_that_say_something,
    sizes,
    one_writer_of_states,
    no_waiting_by_the_clock,
    docstrings,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_product_keeps_the_rule(check: Check) -> None:
    found = list(check(product()))
    assert not found, "\n".join([check.__doc__ or "", *found])


def test_the_layers_are_kept() -> None:
    # Its command would configure logging, and silence the loggers of all later tests.
    configuration.configure()
    assert use_cases.lint_imports(str(ROOT / ".importlinter"), cache_dir=None, no_logo=True)


def test_no_modules_import_each_other_neither_through_others_nor_for_types_alone() -> None:
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imports = ((m, n) for m in graph.modules for n in graph.find_modules_directly_imported_by(m))
    found = nx.strongly_connected_components(nx.DiGraph(imports))
    assert [circle for circle in found if len(circle) > 1] == []


def planted(root: Path, path: str, text: str) -> list[Source]:
    """Write one module into a tree of its own, and read that tree."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return read(root)


PLANTED = [
    # check, file, text, how the sentence goes on after file:line
    (names_that_say_something, "planner/utils.py", "", "'utils' does not say"),
    (sizes, "planner/plan/graph.py", "x = 1\n" * 401, "401 lines, more than 400"),
    (sizes, "planner/plan/graph.py", "def f():\n" + "    x = 1\n" * 60, "f has 61 lines"),
    (one_writer_of_states, "applier/run.py", "plan.state = 'ONGOING'", "a state is assigned"),
    (one_writer_of_states, "applier/run.py", "plan.state: str = 'x'", "a state is assigned"),
    (one_writer_of_states, "applier/run.py", "a.name, a.state = 'x', 'y'", "a state is"),
    (no_waiting_by_the_clock, "applier/run.py", "import time\ntime.sleep(1)", "cannot be"),
    (no_waiting_by_the_clock, "applier/run.py", "from time import sleep\nsleep(1)", "cannot be"),
    (docstrings, "planner/plan/model.py", "x = 1", "planner.plan.model has no docstring"),
    (
        docstrings,
        "planner/plan/model.py",
        "'M.'\ndef f(): pass",
        "planner.plan.model.f has no docstring",
    ),
    (docstrings, "planner/a.py", "'M.'\nclass A:\n  'A.'\n  def f(self): 0", "planner.a.A.f has"),
]


@pytest.mark.parametrize(("check", "path", "text", "sentence"), PLANTED)
def test_a_planted_violation_is_found(
    tmp_path: Path, check: Check, path: str, text: str, sentence: str
) -> None:
    (found,) = check(planted(tmp_path, path, text))
    assert found.startswith(f"{path}:")
    assert sentence in found


ALLOWED = [
    (one_writer_of_states, "applier/engines/recorder.py", "row.state = new"),
    (one_writer_of_states, "applier/errors.py", "class A:\n  def f(self): self.state = 'x'"),
    (docstrings, "planner/plan/model.py", "'M.'\ndef _f():\n  class A: pass"),
    (
        docstrings,
        "planner/a.py",
        "'M.'\nclass A:\n  'A.'\n  def f(self): 'F.'\nclass B(A):\n  'B.'\n  def f(self): 0",
    ),
]


@pytest.mark.parametrize(("check", "path", "text"), ALLOWED)
def test_what_a_rule_allows_is_not_found(
    tmp_path: Path, check: Check, path: str, text: str
) -> None:
    assert list(check(planted(tmp_path, path, text))) == []


def test_each_writer_of_states_exists() -> None:
    assert set(WRITERS_OF_STATES) <= {source.path for source in product()}
