# SPDX-License-Identifier: Apache-2.0
"""Examples are planned without a warning, listed, shown and copied; ``./demo`` runs one."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ROOT

from applier.cli import examples
from applier.clouds.simulated import SimulatedCloud
from applier.errors import ConfigurationError
from planner import documents, make_plan
from planner.making import registry
from planner.planners.deployment.schema import RUNNABLE
from planner.schemas import checking

EXAMPLES = ROOT / "etc" / "examples"
DOCUMENTS = sorted([*EXAMPLES.glob("*.yaml"), *EXAMPLES.glob("events/*.yaml")])


def test_an_example_fits_its_schema_and_says_what_it_is():
    kinds = {
        planner.KIND: planner.SCHEMA
        for planner in map(registry.planner, registry.names(registry.PLANNERS))
    }
    for example in DOCUMENTS:
        document = documents.read(example).value
        assert checking.compiled(kinds[document.get("kind", "solution")])(document) == [], example
        assert example.read_text(encoding="utf-8").startswith("# ")
        assert document["name"]


@pytest.mark.parametrize("example", DOCUMENTS, ids=lambda path: path.name)
def test_an_example_is_planned_without_a_warning(example):
    document = documents.read(example).value
    types = {task["type"] for task in document.get("tasks", ())} & set(RUNNABLE)
    missing = types - set(registry.names(registry.ACTIONS))
    if missing:
        pytest.skip(f"action types that are not installed: {', '.join(sorted(missing))}")
    plan = make_plan(example)
    assert plan.warnings == ()
    own = document.get("actions", document.get("tasks", ["one"]))
    assert len(plan.actions) >= len(own)


def test_what_the_maintenance_says_of_the_small_cloud_is_true(tmp_path):
    document = documents.read(EXAMPLES / "host-maintenance.yaml").value
    cloud = SimulatedCloud(tmp_path / "simulator.json").snapshot()
    facts = document["facts"]
    assert {k: cloud["instances"][k]["host"] for k in facts["instances"]} == {
        k: fact["host"] for k, fact in facts["instances"].items()
    }
    assert {k: cloud["instances"][k]["name"] for k in facts["instances"]} == {
        k: fact["name"] for k, fact in facts["instances"].items()
    }
    assert {k: host["labels"]["rack"] for k, host in cloud["hosts"].items()} == {
        k: fact["rack"] for k, fact in facts["hosts"].items()
    }
    emptied = {
        i["name"] for i in cloud["instances"].values() if i["host"] in ("compute-1", "compute-2")
    }
    moved = {
        a["input_parameters"]["resource_name"]
        for a in document["actions"]
        if a["action_type"] == "migrate"
    }
    assert moved == emptied


# ``example list``, ``show`` and ``copy`` in a checkout; test_packaging.py tries a wheel


FIRST = "etc/examples/host-maintenance.yaml"


def test_each_document_is_listed_with_what_it_is(actionplan):
    ended = actionplan("example", "list", "-f", "json")
    about = {row["name"]: row["what it is"] for row in json.loads(ended.out)}
    assert about[FIRST] == "Rack r1 gets new power supplies tonight"
    assert {"etc/watcher.conf.sample", "etc/actionplan-applier.service"} <= set(about)
    assert all((ROOT / name).is_file() for name in about)
    assert all(text for name, text in about.items() if name.endswith((".yaml", ".service", ".sql")))


def test_what_a_run_left_in_the_checkout_is_not_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(examples, "__file__", str(tmp_path / "applier" / "cli" / "examples.py"))
    left = (
        "examples/events/site/made",
        "examples/plugin/build/lib/rackplan/__init__.py",
        "examples/plugin/rackplan.egg-info/PKG-INFO",
        "examples/plugin/rackplan/__pycache__/announce.pyc",
        "examples/.#a.yaml",
        "examples/a.yaml~",
        "other",
    )
    for name in ("actionplan-applier.service", "examples/a.yaml", *left):
        (tmp_path / "etc" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "etc" / name).touch()
    shutil.copy(ROOT / "setup.cfg", tmp_path)
    assert list(examples.files()) == ["etc/actionplan-applier.service", "etc/examples/a.yaml"]


def test_a_file_is_installed_at_the_path_at_which_it_lies_in_the_checkout():
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    for folder, patterns in parser["options.data_files"].items():
        for pattern in patterns.split() if folder.startswith("share/actionplan") else ():
            inside = Path(pattern).relative_to("etc")
            assert folder == (Path("share/actionplan") / inside).parent.as_posix()


def test_packages_without_their_files_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(examples, "__file__", str(tmp_path / "applier" / "cli" / "examples.py"))
    with pytest.raises(ConfigurationError, match="the examples were not installed"):
        examples.files()


def test_one_is_shown_by_its_name_or_its_path(actionplan):
    for name in ("host-maintenance.yaml", "examples/host-maintenance.yaml", FIRST):
        assert actionplan.good("example", "show", name) == (ROOT / FIRST).read_text("utf-8")
    for words, sentence in (
        (("show", "solution.yam"), "solution.yam: no such example; did you mean 'solution.yaml'?"),
        (("copy", ""), "'': no such example; Known: README.rst, "),
        (("show", "conf"), "conf: one file is shown at a time; choose from etc/examples/events/"),
    ):
        ended = actionplan("example", *words)
        assert (ended.code, ended.out) == (1, "")
        assert ended.err.startswith(f"Refused: {sentence}")


def test_all_are_copied_to_the_paths_that_the_documentation_names(actionplan):
    ended = actionplan("example", "copy")
    assert ended.code == 0
    assert ended.err == f"Next: actionplan create {FIRST}\n"
    assert ended.out.splitlines() == list(examples.files())
    for name, path in examples.files().items():
        assert (actionplan.folder / name).read_bytes() == path.read_bytes()
    assert os.access(actionplan.folder / "etc/examples/events/bring", os.X_OK)


def test_a_folder_of_them_is_copied_below_the_folder_that_is_named(actionplan):
    ended = actionplan("example", "copy", "events", "to try")
    copied = [n for n in examples.files() if n.startswith("etc/examples/events/")]
    assert ended.out.splitlines() == [f"to try/{name}" for name in copied]
    assert ended.err.startswith("Next: cd 'to try' && actionplan create ")


def test_no_file_is_overwritten_and_then_none_is_copied(actionplan):
    own = actionplan.folder / "etc/examples/rolling-update.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("mine", encoding="utf-8")
    ended = actionplan("example", "copy")
    told = "Refused: nothing was copied, these exist: etc/examples/rolling-update.yaml\n"
    assert (ended.code, ended.out, ended.err) == (1, "", told)
    assert own.read_text(encoding="utf-8") == "mine"
    assert list(own.parent.iterdir()) == [own]


# ``./demo``, in a copy of the checkout, with this environment


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy what ``./demo`` reads. Its environment is this one, so that nothing is installed.

    The installed program is the checkout's own; the mark in ``.venv`` says which folder an
    environment belongs to, so each file of it is linked but that one.
    """
    copy = tmp_path_factory.mktemp("demo") / "check out"
    copy.mkdir()
    for name in ("demo", "tools", "etc", "setup.cfg"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, copy / name)
    (copy / ".venv").mkdir()
    for entry in Path(sys.prefix).iterdir():
        if entry.name != "complete":
            (copy / ".venv" / entry.name).symlink_to(entry)
    (copy / ".venv" / "complete").write_text(f"{copy}\n", encoding="utf-8")
    return copy


def test_the_demo_runs_its_commands_in_order_in_its_folder_and_its_last_three_lines_work(checkout):
    # The simulated cloud works off the file's own speed; the environment wins over it.
    environment = {**os.environ, "OS_ACTIONPLAN__SIMULATOR_SPEED": "1000", "HOME": str(checkout)}
    ended = subprocess.run(
        ["./demo"],
        cwd=checkout,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    given = r"^\$ actionplan --config-file demo-out/watcher.conf (.*)$"
    assert re.findall(given, ended.stdout, re.MULTILINE) == [
        "simulator show",
        "create etc/examples/host-maintenance.yaml",
        "apply last --yes",
        "simulator show",
    ]
    assert "SUCCEEDED  took" in ended.stdout
    kept = {path.name for path in (checkout / "demo-out").iterdir()}
    assert {"watcher.conf", "actionplan.sqlite", "simulator.json"} <= kept
    assert not (checkout / ".local").exists()
    for line in map(str.strip, ended.stdout.splitlines()[-3:]):
        assert line.startswith(".venv/bin/actionplan ")
        told = subprocess.run(
            ["bash", "-c", line], cwd=checkout, capture_output=True, text=True, check=False
        )
        assert told.returncode == 0, told.stderr
        assert told.stdout


def test_an_argument_that_does_not_exist_is_refused(checkout):
    told = subprocess.run(
        ["./demo", "--openstak"], cwd=checkout, capture_output=True, text=True, check=False
    )
    assert (told.returncode, told.stderr) == (2, "Usage: ./demo [--openstack]\n")


CORE, EVERYTHING = "--editable .", "--editable .[test,doc,postgresql,mysql]"


@pytest.mark.parametrize(
    ("made", "asked", "installed"),
    [
        ((), "core", CORE),
        ((), "", EVERYTHING),
        (("core",), "core", None),
        (("core",), "", EVERYTHING),
        (("complete",), "core", None),
        (("complete",), "", None),
    ],
)
def test_only_what_is_missing_is_installed(tmp_path, made, asked, installed):
    """The interpreter is a script that notes its arguments."""
    for name in ("setup.cfg", "pyproject.toml"):
        shutil.copy2(ROOT / name, tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\n[ "$1" = -c ] || echo "$*" >>called\necho Collecting\n')
    python.chmod(0o755)
    for mark in made:
        (tmp_path / ".venv" / mark).write_text(f"{tmp_path}\n", encoding="utf-8")
    command = ["bash", "-euc", f". {shlex.quote(str(ROOT / 'tools' / 'environment'))} {asked}"]
    for run in (1, 2):
        told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (told.returncode, told.stderr) == (0, "")
        # What was made once is not made again.
        assert bool(told.stdout) == (run == 1 and installed is not None)
    called = tmp_path / "called"
    assert installed is not None or not called.exists()
    if installed is not None:
        (line,) = called.read_text().splitlines()
        assert line.endswith(installed)
