# SPDX-License-Identifier: Apache-2.0
"""How programs start: what they import, Ctrl-C meanwhile, and what they do to their environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml
from api_client import api_process, configured
from command_line import EXAMPLE, ROOT
from sample_plans import new_plan
from worker_processes import fleet_for_tests

from applier.cli.help import GROUPS
from applier.run.this_process import this_host
from applier.storage.sql_store import SqlStore
from applier.store import Service
from planner.plan.states import PlanState

CASES = yaml.safe_load((ROOT / "tests/cases/cli/imports.yaml").read_text(encoding="utf-8"))
#: Modules that take long to import, and what each command line may import of them, by their names.
HEAVY, ALLOWED = CASES["heavy"], CASES["allowed"]
#: Those that most verbs may import.
SHARED = ("oslo.config",)
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
    at = datetime.now(UTC)
    store.report_service(Service("s", this_host(), os.getpid(), "ann", at, at, "simulated"))
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


# Ctrl-C while a program starts: it was interrupted, and never has a bug


#: Interrupts import number N of each copy of a program, for every N that is asked for. The first
#: two are those of ``applier`` and of the module of the entry point, before any of our code runs.
INTERRUPTED = """
import os, runpy, signal, sys

class Interrupts:
    left = 0
    begun = False
    def find_spec(self, name, path=None, target=None):
        Interrupts.begun |= name == "applier"
        Interrupts.left -= Interrupts.begun
        if Interrupts.begun and Interrupts.left == 0:
            signal.raise_signal(signal.SIGINT)

script, word, *numbers = sys.argv[1:]
sys.meta_path.insert(0, Interrupts())
for number in map(int, numbers):
    child = os.fork()
    if child == 0:
        sys.argv = [script, word]
        Interrupts.left = number
        runpy.run_path(script, run_name="__main__")
        os.abort()
    _, status = os.waitpid(child, 0)
    print(number, os.waitstatus_to_exitcode(status), flush=True)
"""
COMMANDS = sorted(distribution("actionplan").entry_points.select(group="console_scripts").names)


@pytest.mark.parametrize("program", COMMANDS)
def test_an_interrupt_during_any_import_is_told_as_such(program, actionplan):
    later = range(12, 300, 29 if program == "actionplan" else 144)
    numbers = [str(number) for number in (*range(3, 12), *later)]
    script = Path(sys.executable).with_name(program)
    word = "list" if program == "actionplan" else "--help"
    # actionplan-watcher ends early where no module has this name.
    (actionplan.folder / "watcher.py").touch()
    path = f"{actionplan.folder}:{actionplan.environment['PYTHONPATH']}"
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, script, word, *numbers],
        env={**actionplan.environment, "PYTHONPATH": path},
        cwd=actionplan.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split() for line in ended.stdout.splitlines()]
    codes = [line[1] for line in lines if line and line[0] in numbers]
    assert codes[:9] == ["130"] * 9, ended
    assert set(codes) <= {"130", "0"}
    assert ended.stderr.count("Interrupted.") == codes.count("130")
    assert "bug" not in ended.stderr
    assert "Traceback" not in ended.stderr


# No program changes its environment while it has threads. A process crashes if one thread changes
# it while another reads it, as the libraries of databases do when they connect (getenv(3)).


WATCH = Path(__file__).parents[1] / "environment_changes"


def watched(folder: Path) -> dict[str, str]:
    """Return the environment of a program whose changes are written down."""
    return {"PYTHONPATH": str(WATCH), "ENVIRONMENT_CHANGES": str(folder / "changes")}


def changes(folder: Path, *programs: str) -> list[str]:
    """Return what was written down; each of these programs was watched."""
    found = (folder / "changes").read_text(encoding="utf-8").splitlines()
    for program in programs:
        assert f"{program} starts" in found
    return [line for line in found if not line.endswith(" starts")]


@pytest.mark.server
def test_a_worker_and_an_applier(tmp_path):
    """Celery sets variables when a worker starts."""
    with fleet_for_tests(tmp_path, broker="redis") as processes:
        processes.workers(1, **watched(tmp_path))
        processes.start("actionplan-applier", **watched(tmp_path))
        plan = processes.ended(processes.shells(4, 0.1))
    assert plan.state is PlanState.SUCCEEDED
    found = changes(tmp_path, "actionplan-worker", "actionplan-applier")
    assert any(line.startswith("actionplan-worker b'CELERY_LOG_LEVEL'") for line in found)
    assert [line for line in found if not line.endswith(" beside nothing")] == []


@pytest.mark.long
def test_a_command_and_the_api(actionplan):
    configured(actionplan, port=0)
    actionplan.environment |= watched(actionplan.folder)
    assert actionplan("apply", str(EXAMPLE), "--yes").code == 0
    with api_process(actionplan) as api:
        assert api("/v2/plans").json["items"][0]["state"] == "SUCCEEDED"
    found = changes(actionplan.folder, "actionplan", "actionplan-api")
    assert [line for line in found if not line.endswith(" beside nothing")] == []
