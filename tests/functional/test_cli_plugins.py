# SPDX-License-Identifier: Apache-2.0
"""Plugins of one's own: in a file, in a new package, and a cloud of a third party."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import CommandLine, Ended

from planner.plan.states import PlanState

EXAMPLE = Path(__file__).parents[2] / "etc/examples/my_actions.py"
DOCUMENT = """\
kind: rollout
name: restart
nodes: [web-1]
steps:
  - {name: restart, restart: {service: haproxy}}
"""


def test_an_action_type_in_a_file_runs(actionplan):
    folder = actionplan.folder
    (folder / "site").mkdir()
    shutil.copy(EXAMPLE, folder / "site")
    (folder / "p.yaml").write_text(DOCUMENT, encoding="utf-8")
    (folder / "systemctl").write_text("#!/bin/sh\necho $*\n", encoding="utf-8")
    (folder / "systemctl").chmod(0o755)
    (folder / "site/watcher.conf").write_text("[actionplan]\nplugins = my_actions.py\n")
    path = f"{folder}:/usr/bin:/bin"
    named = ("--config-file", "site/watcher.conf")
    assert "restart" in actionplan.program("action", "type", "list", *named).out
    assert actionplan.program("apply", "p.yaml", "--yes", *named, PATH=path).code == 0
    shown = actionplan.program("action", "show", "last", "web-1/restart", *named).out
    assert "restart haproxy" in shown


def test_files_that_cannot_be_used_are_refused_all_at_once(actionplan):
    folder = actionplan.folder
    files = {
        "broken.py": "x = (",
        "empty.py": "x = 1\n",
        "two.py": "x = 1\n",
        "no_python.txt": "",
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    names = "missing.py, broken.py, empty.py, no_python.txt"
    (folder / "own.conf").write_text(f"[actionplan]\nplugins = {names}\n", encoding="utf-8")
    refused = actionplan.program("list", "--config-file", "own.conf")
    assert refused.code == 1
    facts = ("missing.py", "broken.py", "SyntaxError", "empty.py", "no_python.txt", "own.conf:2")
    assert all(fact in refused.err for fact in facts), refused.err
    assert "Traceback" not in refused.err
    refused = actionplan.program("list", OS_ACTIONPLAN__PLUGINS="empty.py")
    assert (refused.code, "not an absolute path" in refused.err) == (1, True)


def test_one_name_in_two_files_is_an_error_that_names_both(actionplan):
    for name in ("one.py", "two.py"):
        shutil.copy(EXAMPLE, actionplan.folder / name)
    (actionplan.folder / "own.conf").write_text("[actionplan]\nplugins = one.py, two.py\n")
    told = actionplan.program("action", "type", "show", "restart", "--config-file", "own.conf").err
    assert "one.py:restart" in told
    assert "two.py:restart" in told


def test_a_new_package_passes_its_tests(actionplan):
    assert actionplan("plugin", "new", "my_site").code == 0
    folder = actionplan.folder / "my_site"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    tried = subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": "."}, capture_output=True, text=True, check=False
    )
    assert tried.returncode == 0, tried.stdout
    for name in ("my_site", "class", "../x", "Upper"):
        assert actionplan("plugin", "new", name).code == 1


# A cloud of a third party: plans run on their own cloud only


TOY = '''
from applier.clouds.simulated import SimulatedCloud
from oslo_config import cfg

class Toy(SimulatedCloud):
    """A cloud in a file of its own, that says that it is real."""

    IS_REAL = True
    OPTIONS = (cfg.StrOpt("region", default="east", help="Where it is."),)

    def __init__(self, *, region):
        super().__init__(f"{region}.json", speed=1000)
        self._region = region

    @property
    def name(self):
        return f"toy:{self._region}"

    def close(self):
        with open("closed", "a") as file:
            file.write("closed\\n")
'''
STOP = {
    "name": "stop-web-1",
    "action_type": "stop",
    "resource_id": "6a1f0001-0000-4000-8000-000000000001",
}


@pytest.fixture
def toy(actionplan: CommandLine, tmp_path: Path) -> CommandLine:
    """Install a distribution with a cloud, and configure it."""
    site = tmp_path / "site"
    about = site / "toycloud-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "toycloud.py").write_text(TOY, encoding="utf-8")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toycloud\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[actionplan.clouds]\ntoy = toycloud:Toy\n")
    actionplan.environment["PYTHONPATH"] = str(site)
    on(actionplan, "toy")
    return actionplan


def on(actionplan: CommandLine, cloud: str, **options: str) -> None:
    known = {"cloud": cloud, "simulator_speed": 1000}
    actionplan.configure(actionplan=known, **({cloud: options} if options else {}))


def refused(ended: Ended, own: str, configured: str) -> None:
    assert ended.code == 4, ended
    assert f"was made for the cloud '{own}', and '{configured}' is configured: " in ended.err
    assert ended.err.count("\n") == 1


def test_a_plan_of_a_third_partys_cloud_from_the_document_to_the_recap(toy):
    toy.document("stop.yaml", STOP)
    made = toy.copied("create", "stop.yaml", "--out", "plan.json")
    assert "\nCloud: toy:east\n" in made.out, made
    assert toy.plan().cloud == "toy:east"
    shown = json.loads(toy.copied("show", "last", "-f", "json").out)
    saved = json.loads((toy.folder / "plan.json").read_text(encoding="utf-8"))
    assert shown["cloud"] == saved["cloud"] == "toy:east"
    assert "toy:east" in toy.copied("list").out
    applied = toy.copied("apply", "plan.json", "--yes")
    assert applied.code == 0, applied
    assert applied.out.count("Cloud: toy:east\n") == 2
    world = json.loads((toy.folder / "east.json").read_text(encoding="utf-8"))
    assert world["instances"][STOP["resource_id"]]["status"] == "SHUTOFF"
    assert not toy.simulator.exists()
    assert (toy.folder / "closed").read_text(encoding="utf-8").startswith("closed\n")


def test_every_verb_that_uses_the_cloud_refuses_a_plan_of_another(toy):
    toy.document("stop.yaml", STOP)
    assert toy.copied("create", "stop.yaml", "--out", "plan.json").code == 0
    on(toy, "toy", region="west")
    verbs = [
        "apply last --yes",
        "apply plan.json --yes",
        "start last",
        "show last --node compute-1",
    ]
    for verb in verbs:
        refused(toy.copied(*verb.split()), "toy:east", "toy:west")
    assert toy.plan().state is PlanState.RECOMMENDED
    assert toy.copied("stop", "last", "--cancel").code == 0
    refused(toy.copied("resume", "last"), "toy:east", "toy:west")
    refused(toy.copied("resume", "last", "--dry-run"), "toy:east", "toy:west")
    on(toy, "toy")
    assert toy.copied("resume", "last").code == 0
    assert toy.copied("apply", "last", "--yes").code == 0
    on(toy, "simulated")
    refused(toy.copied("rollback", "last"), "toy:east", "simulated")
    assert len(toy.plans()) == 1
    on(toy, "toy")
    assert toy.copied("rollback", "last").code == 0
    assert toy.plans()[0].cloud == "toy:east"


def test_the_verbs_of_the_simulator_work_and_say_so(toy):
    note = "Note: plans run on another cloud: [actionplan] cloud is toy.\n"
    for words in (("simulator", "reset"), ("simulator", "show")):
        ended = toy.copied(*words)
        assert (ended.code, ended.err) == (0, note)
    assert toy.simulator.exists()
