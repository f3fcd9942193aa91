# SPDX-License-Identifier: Apache-2.0
"""What a verb imports: nothing that takes long to import and that it does not need."""

from __future__ import annotations

import os
import subprocess
import sys
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
    "dialects of servers": ("sqlalchemy.dialects.postgresql", "sqlalchemy.dialects.mysql"),
    "planning": ("planner.planning", "planner.documents", "yaml", "jsonschema", "jsonschema_rs"),
    "graphs": ("planner.graph", "networkx"),
    "planners": ("planner.planners.weight", "planner.planners.events", "planner.planners.solution"),
    "engine": ("taskflow", "applier.engines.flow", "applier.run.runner"),
    "rich": ("rich.console", "rich.text"),
    "cliff's table": ("prettytable",),
    "ssh": ("asyncssh", "applier.machines"),
    "migrations": ("alembic",),
    "traces": ("opentelemetry",),
}
#: What each command line may import of them.
ALLOWED = {
    "--help": (),
    "--version": (),
    "help show": (),
    # The options of its formats are in the help.
    "help list": ("oslo.config",),
    "help action": (),
    "nonsense": (),
    "list": ("oslo.config", "SQLAlchemy"),
    "list -f json": ("oslo.config", "SQLAlchemy"),
    "service list": ("oslo.config", "SQLAlchemy"),
    "worker list": ("oslo.config", "SQLAlchemy"),
    "event list": ("oslo.config", "SQLAlchemy"),
    "event list last -f json": ("oslo.config", "SQLAlchemy"),
    "event subscription list": ("oslo.config", "SQLAlchemy"),
    "event subscription remove nobody": ("oslo.config", "SQLAlchemy"),
    "watch last -f json": ("oslo.config", "SQLAlchemy"),
    "action list last": ("oslo.config", "SQLAlchemy"),
    "pause last": ("oslo.config", "SQLAlchemy"),
    "show last": ("oslo.config", "SQLAlchemy", "graphs", "rich"),
    "graph last": ("oslo.config", "SQLAlchemy", "graphs"),
    # A forecast takes the scheduler, and the plugins that the plan needs.
    "report last": ("oslo.config", "SQLAlchemy", "planning", "planners", "graphs", "engine"),
    "diff last last": ("oslo.config", "SQLAlchemy", "planning", "graphs", "engine", "rich"),
    "diff last last -f json": ("oslo.config", "SQLAlchemy", "planning", "graphs", "engine"),
    # It says when the action starts, by a forecast.
    "why last a": ("oslo.config", "SQLAlchemy", "planning", "graphs", "engine", "rich"),
    "history last": ("oslo.config", "SQLAlchemy"),
    "action show last a": ("oslo.config", "SQLAlchemy", "graphs", "rich"),
    "job list": ("oslo.config", "ssh"),
    "duration list": ("oslo.config", "SQLAlchemy"),
    "duration export": ("oslo.config", "SQLAlchemy"),
    "export last": ("oslo.config", "SQLAlchemy", "planning", "graphs"),
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
    "config show": (
        *("oslo.config", "SQLAlchemy", "planning", "planners", "graphs", "engine", "rich", "ssh"),
    ),
    "db check": ("oslo.config", "SQLAlchemy", "graphs"),
    "diff --help": (),
    "create --help": (),
    "apply --help": (),
}
#: Runs a command line, and prints which modules that imported.
SCRIPT = """
import sys
from applier.cli.main import main
try:
    main(sys.argv[2:])
except SystemExit:
    pass
sys.stdout.flush()
print("\\nIMPORTED", *[name for name in sys.argv[1].split(",") if name in sys.modules])
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


@pytest.mark.parametrize("line", ALLOWED)
def test_a_verb_imports_nothing_heavy_that_it_does_not_need(line: str, home: Path) -> None:
    names = [module for modules in HEAVY.values() for module in modules]
    found = imported(line, names, home)
    assert found <= {name for title in ALLOWED[line] for name in HEAVY[title]}


def test_importing_planner_imports_no_networkx() -> None:
    script = """
import sys
import planner
assert "networkx" not in sys.modules
planner.order_graph([])
assert "networkx" in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_each_verb_that_only_reads_is_looked_at() -> None:
    read = {*GROUPS["Look"], *GROUPS["What there is"], "config show", "simulator show", "db check"}
    # It writes files.
    read -= {"example copy"}
    lines = {" ".join(line.split()[: len(verb.split())]) for line in ALLOWED for verb in read}
    assert read <= lines


def test_what_a_verb_needs_is_seen(home: Path) -> None:
    """The check above would be worth nothing if it saw no import at all."""
    assert imported("list", ["sqlalchemy", "networkx", "cliff.app"], home) == {
        "sqlalchemy",
        "cliff.app",
    }


def imported(line: str, names: list[str], home: Path) -> set[str]:
    """Return which modules a command line imports, with a home of its own and no terminal."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, ",".join(names), *line.split()],
        env={**kept, "HOME": str(home)},
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
    )
    _, _, told = ended.stdout.rpartition("\nIMPORTED")
    return set(told.split())
