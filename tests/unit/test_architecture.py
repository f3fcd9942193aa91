# SPDX-License-Identifier: Apache-2.0
"""The layers of the architecture, and the house rules that a reading of the source can check.

Nothing is imported here: every module is read with ``ast``. A check gives sentences that begin with
``file:line``; each check is also shown a planted violation, so that it cannot fall silent.
"""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import networkx as nx
import pytest

from planner import documents
from planner.errors import InvalidInput

ROOT = Path(__file__).parents[2]
PACKAGES = ("planner", "applier")


class Layer(NamedTuple):
    """Modules that may import each other, the layers in ``above``, and some third parties.

    ``NAME.*`` is a package with all in it, any other entry that module alone. In a layer kept
    ``apart`` no entry imports another. ``third_party`` None means any. A ``pure`` layer knows no
    clock, no file, no process, no thread, no chance.
    """

    name: str
    modules: tuple[str, ...]
    above: tuple[str, ...]
    third_party: tuple[str, ...] | None
    pure: bool = False
    apart: bool = False


LAYERS = (
    Layer(
        "L0",
        (
            "planner.errors",
            "planner.model",
            "planner.place_rules",
            "planner.ranges",
            "planner.safe_text",
            "planner.states",
            "planner.differences.*",
            "planner.blast_radius",
            "planner.digest",
            "planner.failure_costs",
            "planner.json_text",
            "planner.failure_budget",
            "planner.guarding",
            "planner.guards",
            "planner.windows",
            "planner.deadlocks",
            "planner.graph",
            "planner.guarantees",
            "planner.graph_algorithms",
            "planner.effects",
            "planner.extent",
            "planner.secret_references",
            "planner.write_only",
            "planner.render.*",
        ),
        above=(),
        third_party=("networkx",),
        pure=True,
    ),
    Layer(
        "L0",
        ("planner.schema_references",),
        above=(),
        third_party=("jsonschema_specifications", "referencing"),
        pure=True,
    ),
    Layer(
        "L1",
        ("planner.contract", "planner.planners.*", "planner.problems.*"),
        above=("L0",),
        third_party=("networkx", "oslo_config"),
        pure=True,
    ),
    Layer(
        "L2",
        (
            "planner",
            "planner.checking",
            "planner.configuration_files",
            "planner.documents",
            "planner.options",
            "planner.planning",
            "planner.registry",
            "planner.saved",
            "planner.saved_schema",
            "planner.schema_errors",
            "planner.testing",
            "planner.yaml_text",
        ),
        above=("L0", "L1"),
        third_party=("jsonschema", "jsonschema_rs", "oslo_config", "stevedore", "yaml"),
    ),
    Layer(
        "L3",
        (
            "applier",
            "applier.errors",
            "applier.extras",
            "applier.guarding.*",
            "applier.store.*",
            "applier.backoff",
            "applier.log_fields",
            "applier.notifications.*",
            "applier.scheduling.*",
            "applier.run.outcome",
            "applier.run.node_states",
            "applier.run.durations",
            "applier.run.planned_and_taken",
            "applier.run.pooled",
            "applier.rehearsal.*",
            "applier.rollback.*",
            "applier.timeline.*",
            "applier.wording",
        ),
        above=("L0",),
        third_party=("networkx",),
        pure=True,
    ),
    Layer(
        "L3", ("applier.guarding.open_times",), above=("L0",), third_party=("dateutil",), pure=True
    ),
    Layer(
        "L3",
        ("applier.contracts.*",),
        above=("L0",),
        third_party=("oslo_config",),
        pure=True,
    ),
    Layer(
        "L4a",
        (
            "applier.machines.*",
            "applier.secrets.*",
            "applier.whole_files",
        ),
        above=("L0", "L2", "L3"),
        third_party=("asyncssh",),
    ),
    Layer(
        "L4",
        ("applier.storage.*", "applier.actions.*", "applier.clouds.*"),
        above=("L0", "L1", "L2", "L3", "L4a"),
        third_party=("alembic", "jsonschema", "oslo_config", "sqlalchemy", "yaml"),
        apart=True,
    ),
    Layer(
        "L4",
        ("applier.clouds.openstack.*",),
        above=("L0", "L1", "L2", "L3"),
        third_party=("keystoneauth1", "openstack", "oslo_config"),
    ),
    Layer(
        "L5",
        ("applier.recording.*", "applier.engines.*"),
        above=("L0", "L1", "L2", "L3", "L4a", "L4"),
        third_party=("networkx", "oslo_config", "taskflow"),
    ),
    Layer(
        "L6",
        (
            "applier.configuration.*",
            "applier.assembly",
            "applier.delivery.*",
            "applier.monitoring.*",
            "applier.run.*",
            "applier.service.*",
            "applier.watcher.engine_options",
            "applier.watcher.options",
            "applier.workers.*",
        ),
        above=("L0", "L1", "L2", "L3", "L4a", "L4", "L5"),
        third_party=(
            "amqp",
            "celery",
            "cotyledon",
            "kombu",
            "networkx",
            "opentelemetry",
            "oslo_config",
            "oslo_log",
            "oslo_messaging",
            "oslo_service",
            "platformdirs",
            "prometheus_client",
            "redis",
            "requests",
        ),
    ),
    Layer(
        "L6b",
        ("applier.operations.*",),
        above=("L0", "L1", "L2", "L3", "L4a", "L4", "L5", "L6"),
        third_party=("networkx", "oslo_config"),
    ),
    Layer(
        "L6c",
        ("applier.report.*",),
        above=("L0", "L1", "L2", "L3", "L4a", "L4", "L5", "L6", "L6b"),
        third_party=("jinja2", "markupsafe", "oslo_config"),
    ),
    Layer(
        "L7",
        (
            "applier.api.*",
            "applier.cli.*",
            "applier.console_scripts",
            "applier.service.main",
            "applier.workers.main",
            "applier.testing.*",
            "applier.watcher.*",
        ),
        above=("L0", "L1", "L2", "L3", "L4a", "L4", "L5", "L6", "L6b", "L6c"),
        third_party=None,
    ),
)

#: What makes a function give something else the next time, or leave something behind.
IMPURE = frozenset(
    {
        "asyncio",
        "concurrent",
        "io",
        "multiprocessing",
        "os",
        "pathlib",
        "random",
        "secrets",
        "signal",
        "socket",
        "subprocess",
        "tempfile",
        "threading",
        "time",
        "uuid",
    }
)

#: Names of files that say nothing of what is in them.
EMPTY_NAMES = ("base", "common", "default", "helpers", "manager", "misc", "utils")
#: Subjects that files of one name treat for several packages: on each layer, or for each planner.
SUBJECTS = """
actions approvals archives blast_radius claims concurrency_checks cycles database
document drain dry_run durations env errors events failure_budget figures graph guards
history holds limits main options pages plan_list planner plans rehearsals
resume retention runs schema schemas selection services session start_times states
subscriptions svg tables values verify windows worker_jobs workers
"""
FILE_LINES = 400
FUNCTION_LINES = 60

#: Modules in which a state may be assigned.
WRITERS_OF_STATES = ("applier/recording/recorder.py", "applier/storage/rows.py")

#: Where everything may be caught and not raised again, and why.
CATCHES_ALL = {
    (
        "applier/engines/tasks.py",
        "ActionTask._executed",
    ): "a plugin may raise anything; it becomes a report",
    (
        "applier/engines/tasks.py",
        "ActionTask.abort",
    ): "a plugin may raise anything; execute tells its end",
    ("applier/engines/tasks.py", "verified"): "a plugin may raise anything; then nobody can say",
    ("applier/engines/tasks.py", "waits_s"): "a plugin may raise anything; executed, it says so",
    (
        "applier/delivery/delivery.py",
        "EventDelivery.run",
    ): "logged, and tried again; without the thread the receiver gets nothing",
    (
        "applier/delivery/messaging.py",
        "Notifications._deliver",
    ): "the libraries of a bus raise anything; it becomes Away",
    (
        "applier/delivery/sending_thread.py",
        "SendingThread.run",
    ): "a call may raise anything; it is raised where somebody waits for the call",
    (
        "applier/run/prechecks.py",
        "_answered",
    ): "a plugin may raise anything; then it is its answer",
    (
        "applier/service/worker_loop.py",
        "WorkerLoop._look_at",
    ): "a plugin may raise anything; it is logged, and keeps no other plan from running",
    (
        "applier/workers/celery_app.py",
        "CeleryDelivery._loop",
    ): "the libraries of brokers raise anything; without the thread no worker hears of jobs",
    (
        "applier/workers/follower.py",
        "JobFollower._loop",
    ): "logged, and tried again; without the thread the plan never ends",
    ("planner/registry.py", "load"): "importing a plugin may raise anything; the error names it",
    ("planner/planners/solution.py", "about"): "a plugin may raise anything; the error names it",
    (
        "applier/watcher/actions.py",
        "WatcherAction.precheck",
    ): "Watcher's plugins may raise anything; it becomes a failure that names the phase",
    (
        "applier/watcher/actions.py",
        "WatcherAction.execute",
    ): "Watcher's plugins may raise anything; it becomes a failure that names the phase",
    (
        "applier/watcher/actions.py",
        "WatcherAction._clean_up",
    ): "the first failure is reported; this one is logged",
    ("applier/testing/action_suite.py", "_note_end"): "the suite judges whatever a plugin raises",
    (
        "applier/testing/cloud_checks/offered.py",
        "_note_end",
    ): "the suite judges whatever a plugin raises",
}

#: Modules that hand a command line to a shell.
SHELLS = ("applier/actions/shell.py",)
#: The module that reads YAML, and the name of its safe loader.
YAML_READER, YAML_LOADER = "planner/yaml_text.py", "_Loader"


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


@cache
def places_of(module: str) -> list[tuple[Layer, str]]:
    """Find the layer of a module, and the entry that names it: one, if the table is right.

    Of a module's own entry and those of the packages around it, the closest holds.
    """
    found = [
        (layer, entry)
        for layer in LAYERS
        for entry in layer.modules
        if module == entry.removesuffix(".*")
        or (entry.endswith(".*") and module.startswith(entry.removesuffix("*")))
    ]
    closest = max((len(entry) for _, entry in found), default=0)
    return [(layer, entry) for layer, entry in found if len(entry) == closest]


def imports(source: Source, modules: set[str]) -> Iterator[tuple[int, str]]:
    """Return line and name of all that a module imports, wherever it does so.

    A name taken from one of ``modules`` that is a module itself counts as that module.
    """
    package = source.path.rpartition("/")[0].replace("/", ".").split(".")
    for node in source.nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            outer = package[: len(package) - node.level + 1] if node.level else []
            whole = ".".join([*outer, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{whole}.{alias.name}"
                yield node.lineno, inner if inner in modules else whole


def layers(sources: Sequence[Source]) -> Iterator[str]:
    """Each module stands in a layer, and imports its own layer and those above it."""
    modules = {s.module for s in sources}
    for source in sources:
        places = places_of(source.module)
        if len(places) != 1:
            count = "several layers" if places else "no layer"
            yield (
                f"{source.path}:1: {source.module} belongs to {count}: "
                "mend LAYERS in tests/unit/test_architecture.py, and the picture in doc/"
            )
            continue
        layer, entry = places[0]
        for line, name in imports(source, modules):
            why = forbidden(layer, entry, name)
            if why:
                yield f"{source.path}:{line}: {source.module} ({layer.name}) imports {name}: {why}"


def forbidden(layer: Layer, entry: str, name: str) -> str | None:
    """Say why the modules of an entry may not import ``name``, if they may not."""
    first = name.partition(".")[0]
    if first in PACKAGES:
        places = places_of(name)
        if not places:
            return "it belongs to no layer"
        target, target_entry = places[0]
        if target.name not in (layer.name, *layer.above):
            return f"that is {target.name}; accepted are {', '.join((layer.name, *layer.above))}"
        if layer.apart and target is layer and target_entry != entry:
            return "siblings of this layer know nothing of each other"
    elif first in sys.stdlib_module_names:
        if layer.pure and first in IMPURE:
            return "this layer is pure"
    elif layer.third_party is not None and first not in layer.third_party:
        return f"third parties accepted here: {', '.join(layer.third_party) or 'none'}"
    return None


def no_circles(sources: Sequence[Source]) -> Iterator[str]:
    """No modules import each other, neither directly nor through others, nor for types alone."""
    modules = {source.module for source in sources}
    imported = [(s.module, name) for s in sources for _, name in imports(s, modules)]
    for circle in nx.strongly_connected_components(nx.DiGraph(imported)):
        if len(circle) > 1:
            yield f"{', '.join(sorted(circle))} import each other"


def one_class_of_a_name(sources: Sequence[Source]) -> Iterator[str]:
    """Two classes have two names."""
    known: dict[str, Source] = {}
    for source in sources:
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                other = known.setdefault(node.name, source)
                if other is not source:
                    yield f"{source.path}:{node.lineno}: {other.path} has a class {node.name}, too"


def names_that_say_something(sources: Sequence[Source]) -> Iterator[str]:
    """No file is called utils, common or the like."""
    for source in sources:
        name = source.path.rpartition("/")[2].removesuffix(".py")
        if name in EMPTY_NAMES:
            yield f"{source.path}:1: {name!r} does not say what is in it"


def one_file_of_a_name(sources: Sequence[Source]) -> Iterator[str]:
    """Two files have two names, unless the name is a subject that several packages treat."""
    known: dict[str, Source] = {}
    for source in sources:
        name = source.path.rpartition("/")[2].removesuffix(".py")
        # The names of migrations begin with a number.
        if name == "__init__" or name in SUBJECTS.split() or name[0].isdigit():
            continue
        other = known.setdefault(name, source)
        if other is not source:
            yield f"{source.path}:1: {other.path} has this name, too; accepted for: SUBJECTS"


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


def nothing_swallowed(sources: Sequence[Source]) -> Iterator[str]:
    """Who catches everything raises it again, or stands in CATCHES_ALL with a reason."""
    broad = ("Exception", "BaseException")
    for source in sources:
        for name, function in [("module", source.tree), *functions(source)]:
            for handler in own_nodes(function):
                if not isinstance(handler, ast.ExceptHandler):
                    continue
                last = handler.body[-1]
                again = isinstance(last, ast.Raise) and last.exc is None
                caught = [] if handler.type is None else names_in(handler.type)
                if handler.type is not None and not set(broad) & set(caught):
                    continue
                if not again and (source.path, name) not in CATCHES_ALL:
                    where = f"{source.path}:{handler.lineno}"
                    yield f"{where}: {name} catches everything; name what can be raised"


def no_waiting_by_the_clock(sources: Sequence[Source]) -> Iterator[str]:
    """Nothing sleeps: what waits can be stopped."""
    for source, call in calls(sources):
        if name_of(call) in ("time.sleep", "sleep"):
            yield f"{source.path}:{call.lineno}: time.sleep cannot be stopped; wait for an event"


def no_shell(sources: Sequence[Source]) -> Iterator[str]:
    """Only the shell action hands a line to a shell."""
    for source, call in calls(sources):
        asked = any(
            k.arg == "shell" and not (isinstance(k.value, ast.Constant) and not k.value.value)
            for k in call.keywords
        )
        if source.path not in SHELLS and (asked or name_of(call) in ("os.system", "os.popen")):
            yield f"{source.path}:{call.lineno}: a shell outside {', '.join(SHELLS)}"


def one_reader_of_yaml(sources: Sequence[Source]) -> Iterator[str]:
    """Only the module that reads YAML chooses a loader, and it is the safe one."""
    for source, call in calls(sources):
        name = name_of(call)
        if not name.startswith("yaml.") or "load" not in name:
            continue
        if name.removeprefix("yaml.").removesuffix("_all") == "safe_load":
            continue
        loaders = [names_in(k.value) for k in call.keywords if k.arg == "Loader"]
        if source.path != YAML_READER or name != "yaml.load" or loaders != [[YAML_LOADER]]:
            where = f"{source.path}:{call.lineno}"
            yield f"{where}: {name}; accepted is yaml.load with {YAML_LOADER} in {YAML_READER}"


def docstrings(sources: Sequence[Source]) -> Iterator[str]:
    """Every public module, class, function and method says what it is."""

    def missing(source: Source, node: ast.AST, name: str) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | Function):
                if child.name.startswith("_"):
                    continue
                whole = f"{name}.{child.name}"
                if ast.get_docstring(child) is None:
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


def names_in(node: ast.expr) -> list[str]:
    """Return the plain names in an expression: of one exception, or of a tuple of them."""
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]


Check = Callable[[Sequence[Source]], Iterator[str]]
CHECKS: tuple[Check, ...] = (
    layers,
    no_circles,
    one_class_of_a_name,
    one_file_of_a_name,
    names_that_say_something,
    sizes,
    one_writer_of_states,
    nothing_swallowed,
    no_waiting_by_the_clock,
    no_shell,
    one_reader_of_yaml,
    docstrings,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_product_keeps_the_rule(check: Check) -> None:
    found = list(check(product()))
    assert not found, "\n".join([check.__doc__ or "", *found])


def planted(root: Path, path: str, text: str) -> list[Source]:
    """Write one module into a tree of its own, and read that tree."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return read(root)


PLANTED = [
    # check, file, text, how the sentence goes on after file:line
    (layers, "planner/model.py", "import sqlalchemy", "planner.model (L0) imports sqlalchemy"),
    (layers, "planner/model.py", "from os import path", "this layer is pure"),
    (layers, "planner/graph.py", "def f():\n    import time", "this layer is pure"),
    (layers, "planner/effects.py", "from planner.contract import Planner", "that is L1"),
    (layers, "planner/planners/weight.py", "import planner.planning", "that is L2"),
    (layers, "planner/planners/weight.py", "from .. import registry", "that is L2"),
    (layers, "planner/registry.py", "from applier.contracts import Action", "that is L3"),
    (layers, "applier/contracts/actions.py", "from planner.registry import load", "that is L2"),
    (layers, "applier/contracts/actions.py", "import subprocess", "this layer is pure"),
    (
        layers,
        "applier/run/outcome.py",
        "from taskflow.patterns import graph_flow",
        "accepted here: networkx",
    ),
    (layers, "applier/scheduling/gates.py", "import threading", "this layer is pure"),
    (layers, "applier/actions/nop.py", "from applier.storage import sql", "siblings"),
    (
        layers,
        "applier/storage/sql.py",
        "from applier.recording.recorder import Recorder",
        "that is L5",
    ),
    (layers, "applier/storage/sql.py", "import taskflow", "accepted here: alembic"),
    (layers, "applier/engines/tasks.py", "from applier.run.runner import Runner", "that is L6"),
    (layers, "applier/run/runner.py", "import applier.cli.main", "that is L7"),
    (layers, "applier/newcomer.py", "", "applier.newcomer belongs to no layer"),
    (layers, "planner/model.py", "from planner.newcomer import x", "it belongs to no layer"),
    (names_that_say_something, "applier/storage/utils.py", "", "'utils' does not say"),
    (sizes, "planner/graph.py", "x = 1\n" * 401, "401 lines, more than 400"),
    (sizes, "planner/graph.py", "def f():\n" + "    x = 1\n" * 60, "f has 61 lines"),
    (
        one_writer_of_states,
        "applier/run/runner.py",
        "plan.state = 'ONGOING'",
        "a state is assigned",
    ),
    (one_writer_of_states, "applier/run/runner.py", "plan.state: str = 'x'", "a state is assigned"),
    (one_writer_of_states, "applier/run/runner.py", "a.name, a.state = 'x', 'y'", "a state is"),
    (
        nothing_swallowed,
        "applier/run/runner.py",
        "try: f()\nexcept: pass",
        "module catches everything",
    ),
    (
        nothing_swallowed,
        "applier/run/runner.py",
        "class A:\n  def f(self):\n    try: g()\n    except (OSError, Exception) as e: print(e)",
        "A.f catches everything",
    ),
    (no_waiting_by_the_clock, "applier/run/runner.py", "import time\ntime.sleep(1)", "cannot be"),
    (
        no_waiting_by_the_clock,
        "applier/engines/tasks.py",
        "from time import sleep\nsleep(1)",
        "cannot be",
    ),
    (no_shell, "applier/actions/nop.py", "subprocess.run('ls', shell=True)", "a shell outside"),
    (no_shell, "applier/actions/nop.py", "subprocess.run('ls', shell=x)", "a shell outside"),
    (no_shell, "applier/cli/main.py", "os.system('ls')", "a shell outside"),
    (
        one_reader_of_yaml,
        "applier/configuration/__init__.py",
        "yaml.load(text, Loader=_Loader)",
        "yaml.load;",
    ),
    (one_reader_of_yaml, "planner/yaml_text.py", "yaml.load(text, yaml.Loader)", "yaml.load;"),
    (one_reader_of_yaml, "planner/yaml_text.py", "yaml.unsafe_load(text)", "yaml.unsafe_load;"),
    (docstrings, "planner/model.py", "x = 1", "planner.model has no docstring"),
    (docstrings, "planner/model.py", "'''M.'''\ndef f(): pass", "planner.model.f has no docstring"),
    (
        docstrings,
        "planner/model.py",
        "'''M.'''\nclass A:\n  '''A.'''\n  def f(self): pass",
        "planner.model.A.f has no docstring",
    ),
]


@pytest.mark.parametrize(("check", "path", "text", "sentence"), PLANTED)
def test_a_planted_violation_is_found(
    tmp_path: Path, check: Check, path: str, text: str, sentence: str
) -> None:
    found = list(check(planted(tmp_path, path, text)))
    assert len(found) == 1
    assert found[0].startswith(f"{path}:")
    assert sentence in found[0]


def test_modules_that_import_each_other_are_found(tmp_path: Path) -> None:
    planted(tmp_path, "planner/a.py", "from planner import b")
    planted(tmp_path, "planner/b.py", "def f():\n    from planner.c import C")
    planted(tmp_path, "planner/c.py", "if TYPE_CHECKING:\n    import planner.a")
    sources = planted(tmp_path, "planner/d.py", "import planner.a")
    assert list(no_circles(sources)) == ["planner.a, planner.b, planner.c import each other"]


def test_two_classes_of_one_name_are_found(tmp_path: Path) -> None:
    planted(tmp_path, "applier/api/v1/plans.py", "class Plan: pass")
    sources = planted(tmp_path, "planner/model.py", "class _Own: pass\nclass Plan: pass")
    assert list(one_class_of_a_name(sources)) == [
        "applier/api/v1/plans.py:1: planner/model.py has a class Plan, too"
    ]


def test_two_files_of_one_name_are_found(tmp_path: Path) -> None:
    planted(tmp_path, "planner/plans.py", "")
    planted(tmp_path, "planner/rules.py", "")
    planted(tmp_path, "applier/plans.py", "")
    sources = planted(tmp_path, "applier/rules.py", "")
    found = list(one_file_of_a_name(sources))
    assert found == [
        "applier/rules.py:1: planner/rules.py has this name, too; accepted for: SUBJECTS"
    ]


ALLOWED = [
    (layers, "planner/model.py", "from planner.states import X\nimport json"),
    (layers, "planner/planners/weight.py", "from oslo_config import cfg"),
    (layers, "applier/engines/linear.py", "from taskflow.patterns import graph_flow"),
    (layers, "applier/storage/sql.py", "import time\nfrom applier.storage import rows"),
    (one_writer_of_states, "applier/recording/recorder.py", "row.state = new"),
    (one_writer_of_states, "applier/errors.py", "class A:\n  def f(self): self.state = 'x'"),
    (nothing_swallowed, "applier/run/runner.py", "try: f()\nexcept BaseException:\n  g()\n  raise"),
    (nothing_swallowed, "applier/run/runner.py", "try: f()\nexcept ExceptionGroup: pass"),
    (no_shell, "applier/actions/nop.py", "subprocess.run(['ls'], shell=False)"),
    (no_shell, "applier/actions/shell.py", "subprocess.run('ls', shell=True)"),
    (one_reader_of_yaml, "planner/yaml_text.py", "yaml.load(text, Loader=_Loader)"),
    (one_reader_of_yaml, "applier/clouds/simulated_document.py", "yaml.safe_load(text)"),
    (docstrings, "planner/model.py", "'''M.'''\ndef _f():\n  class A: pass"),
]


@pytest.mark.parametrize(("check", "path", "text"), ALLOWED)
def test_what_a_rule_allows_is_not_found(
    tmp_path: Path, check: Check, path: str, text: str
) -> None:
    assert list(check(planted(tmp_path, path, text))) == []


def test_no_entry_of_the_tables_is_left_over() -> None:
    modules = {source.module for source in product()}
    gone = [
        entry
        for layer in LAYERS
        for entry in layer.modules
        if entry.removesuffix(".*") not in modules
    ]
    paths = {source.path for source in product()}
    gone += {*WRITERS_OF_STATES, *SHELLS, YAML_READER} - paths
    known = {(s.path, name) for s in product() for name, _ in functions(s)}
    gone += [str(key) for key in CATCHES_ALL if key not in known]
    assert gone == []


def test_the_loader_of_documents_builds_no_python_objects() -> None:
    with pytest.raises(InvalidInput, match="python/object"):
        documents.parse("actions: !!python/object/apply:os.getcwd []", "plan.yaml")
