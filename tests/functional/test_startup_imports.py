# SPDX-License-Identifier: Apache-2.0
"""What a verb imports: nothing that takes long to import and that it does not need."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from applier.cli.help import GROUPS
from applier.storage.sql import SqlStore
from applier.testing.sample_plans import new_plan

#: Modules that take long to import, by the name under which a verb may have them.
HEAVY = {
    "oslo.config": ("oslo_config.cfg",),
    "SQLAlchemy": ("sqlalchemy",),
    "oslo.db": ("oslo_db",),
    "drivers of servers": ("psycopg", "pymysql"),
    "planning": (
        "planner.making.planning",
        "planner.documents",
        "yaml",
        "jsonschema",
        "jsonschema_rs",
    ),
    "graphs": ("planner.plan.graph", "networkx"),
    "planners": ("planner.planners.weight", "planner.planners.events", "planner.planners.solution"),
    "engine": ("taskflow", "applier.engines.linear", "applier.run.runner"),
    "rich": ("rich.console", "rich.text"),
    "cliff's table": ("prettytable",),
    "ssh": ("asyncssh", "applier.machines"),
    "migrations": ("alembic",),
    "traces": ("opentelemetry",),
}
#: Those that most verbs may import.
SHARED = ("oslo.config",)
#: What each command line may import of them.
ALLOWED = {
    "--help": (),
    "--version": (),
    "help show": (),
    # The options of its formats are in the help.
    "help list": ("oslo.config",),
    "help action": (),
    "nonsense": (),
    "list": ("oslo.config",),
    "list -f json": ("oslo.config",),
    "service list": ("oslo.config",),
    "worker list": ("oslo.config",),
    "event list": ("oslo.config",),
    "event list last -f json": ("oslo.config",),
    "event subscription list": ("oslo.config",),
    "event subscription remove nobody": ("oslo.config",),
    "watch last -f json": ("oslo.config",),
    "action list last": ("oslo.config",),
    "stop last --pause": ("oslo.config",),
    "show last": ("oslo.config", "graphs", "rich"),
    "graph last": ("oslo.config", "graphs"),
    # A forecast takes the scheduler, and the plugins that the plan needs.
    "report last": ("oslo.config", "planning", "planners", "graphs", "engine"),
    "diff last last": ("oslo.config", "planning", "graphs", "engine", "rich"),
    "diff last last -f json": ("oslo.config", "planning", "graphs", "engine"),
    # It says when the action starts, by a forecast.
    "why last a": ("oslo.config", "planning", "graphs", "engine", "rich"),
    "history last": ("oslo.config",),
    "action show last a": ("oslo.config", "graphs", "rich"),
    "job list": ("oslo.config", "ssh"),
    "duration list": ("oslo.config",),
    "duration export": ("oslo.config",),
    "export last": ("oslo.config", "planning", "graphs"),
    # The simulated cloud is read from its file.
    "facts": ("oslo.config", "planning"),
    "simulator show": ("oslo.config", "planning", "graphs", "rich"),
    "planner list": ("oslo.config", "planners", "graphs", "rich"),
    "planner show weight": ("oslo.config", "planners", "graphs", "rich"),
    "action type list": ("oslo.config", "ssh", "graphs", "rich"),
    "action type show nop": ("oslo.config", "graphs", "rich"),
    "schema solution": ("oslo.config", "planners"),
    "example list": ("graphs", "rich"),
    "example show host-maintenance.yaml": (),
    # It shows the options of all plugins.
    "config show": (*("oslo.config", "planning", "planners", "graphs", "engine", "rich", "ssh"),),
    "db check": ("oslo.config", "graphs"),
    "diff --help": (),
    "create --help": (),
    "apply --help": (),
}
#: What many may import is imported once; then a copy of the process runs each line, and prints
#: which modules that imported.
SCRIPT = """
import importlib, os, sys
from applier.cli.main import main
names, shared, *lines = sys.argv[1:]
for module in shared.split():
    importlib.import_module(module)
for line in lines:
    child = os.fork()
    if child == 0:
        try:
            main(line.split())
        except SystemExit:
            pass
        found = [name for name in names.split() if name in sys.modules]
        print("\\nIMPORTED", line, *found, sep="\\t", flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a home with a plan in its record."""
    home = tmp_path_factory.mktemp("home")
    folder = home / ".local" / "state" / "actionplan"
    folder.mkdir(parents=True)
    store = SqlStore(f"sqlite:///{folder / 'actionplan.sqlite'}")
    store.save_plan(new_plan("a"))
    store.close()
    return home


def test_a_verb_imports_nothing_heavy_that_it_does_not_need(home):
    names = [module for modules in HEAVY.values() for module in modules]
    for shared in ((), ("oslo.config",)):
        lines = [line for line in ALLOWED if set(shared) == {*ALLOWED[line]} & set(SHARED)]
        modules = ["applier.cli.program", *(name for title in shared for name in HEAVY[title])]
        found = imported(lines, names, home, modules)
        assert found.keys() == set(lines)
        for line in lines:
            allowed = {name for title in ALLOWED[line] for name in HEAVY[title]}
            assert found[line] <= allowed, line


def test_importing_planner_imports_no_networkx():
    script = """
import sys
import planner
assert "networkx" not in sys.modules
planner.order_graph([])
assert "networkx" in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_each_verb_that_only_reads_is_looked_at():
    read = {*GROUPS["Look"], *GROUPS["What there is"], "config show", "simulator show", "db check"}
    # They write files.
    read -= {"example copy", "plugin new"}
    lines = {" ".join(line.split()[: len(verb.split())]) for line in ALLOWED for verb in read}
    assert read <= lines


def test_what_a_verb_needs_is_seen(home):
    """The check above would be worth nothing if it saw no import at all."""
    names = ["sqlite3", "networkx", "cliff.app"]
    assert imported(["list"], names, home) == {"list": {"sqlite3", "cliff.app"}}


def imported(
    lines: list[str], names: list[str], home: Path, shared: Sequence[str] = ()
) -> dict[str, set[str]]:
    """Return which modules command lines import, with a home of their own and no terminal."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, " ".join(names), " ".join(shared), *lines],
        env={**kept, "HOME": str(home)},
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
    )
    told = (line.split("\t") for line in ended.stdout.splitlines() if line.startswith("IMPORTED"))
    return {line: set(found) for _, line, *found in told}
