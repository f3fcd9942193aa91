# SPDX-License-Identifier: Apache-2.0
"""A cloud of a third party, installed beside the product: plans run on their own cloud only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import CommandLine, Ended

from planner.plan.states import PlanState

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
