# SPDX-License-Identifier: Apache-2.0
"""A story of etc/examples/events goes on with real files, and a kill loses no event.

The page doc/planners/events runs the others, and shows what they print."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from command_line import ROOT, CommandLine, Gate

from planner.states import ActionState, Outcome

STORIES = Path("etc/examples/events")
OK, CHANGED, NOTHING = Outcome.OK, Outcome.CHANGED, None


class Site:
    """The examples in a scratch folder: their files are edited, and their stories run."""

    def __init__(self, actionplan: CommandLine) -> None:
        self._actionplan = actionplan
        self.folder = actionplan.folder / STORIES
        shutil.copytree(ROOT / STORIES, self.folder, ignore=shutil.ignore_patterns("site"))

    def run(self, story: str) -> dict[str, Outcome | None]:
        """Run a story; gives how each action ended, None for those that did not run."""
        ended = self._actionplan("apply", str(STORIES / story), "--yes")
        assert ended.code == 0, ended
        return {a.label: a.outcome for a in self._actionplan.plans()[0].actions}

    def read(self, name: str) -> str:
        return (self.folder / "site" / name).read_text()

    def edit(self, name: str, old: str, new: str) -> None:
        file = self.folder / "conf" / name
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))


@pytest.fixture
def site(actionplan: CommandLine) -> Site:
    return Site(actionplan)


def test_haproxy_runs_once_more_after_glance_which_found_keystone_through_it(
    site: Site, actionplan: CommandLine
) -> None:
    found = site.run("haproxy.yaml")
    assert list(found)[-3:] == ["haproxy.run#0", "glance_config.run", "haproxy.run#1"]
    assert found == dict.fromkeys(found, CHANGED)
    assert site.read("glance.endpoint").splitlines() == [
        "glance_port=9292",
        "uses_keystone_port=5000",
    ]
    assert sorted(site.read("haproxy.cfg").split()) == ["glance_port=9292", "keystone_port=5000"]
    why = actionplan.good("why", "last", "haproxy.run#1")
    assert "SUCCEEDED (changed)" in why
    assert "  glance_config.run changed;" in why
    staged = {"keystone.run": OK, "glance.run": OK}
    assert site.run("haproxy.yaml") == {**dict.fromkeys(found), **staged}
    site.edit("keystone.conf", "5000", "5001")
    assert site.run("haproxy.yaml") == {
        "keystone.run": CHANGED,
        "glance.run": OK,
        "keystone_config.run": CHANGED,
        "haproxy.run#0": CHANGED,
        "glance_config.run": CHANGED,
        "haproxy.run#1": OK,
    }
    site.edit("glance.conf", "9292", "9293")
    assert site.run("haproxy.yaml") == {
        **dict.fromkeys(found),
        "keystone.run": OK,
        "glance.run": CHANGED,
        "glance_config.run": CHANGED,
        "haproxy.run#1": CHANGED,
    }
    assert sorted(site.read("haproxy.cfg").split()) == ["glance_port=9293", "keystone_port=5001"]


CHANGE_AND_RELOAD = {
    "kind": "events",
    "name": "killed",
    "events": ["on web.config changed web.reload"],
    "after": [["web.config", "gate.run"], ["gate.run", "web.reload"]],
    "staged": ["web.config", "gate.run"],
}


def test_a_kill_between_a_change_and_its_reload_still_reloads(
    actionplan: CommandLine, gate: Gate
) -> None:
    actions = {
        "web.config": {"action_type": "shell", "input_parameters": {"command": "echo >> changes"}},
        "gate.run": {k: v for k, v in gate.action("gate.run").items() if k != "name"},
        "web.reload": {"action_type": "shell", "input_parameters": {"command": "echo >> reloads"}},
    }
    file = actionplan.folder / "plan.yaml"
    file.write_text(yaml.safe_dump({**CHANGE_AND_RELOAD, "actions": actions}))
    with actionplan.start("apply", "plan.yaml", "--yes") as process:
        gate.wait()
        process.kill()
        process.wait()
    assert not (actionplan.folder / "reloads").exists()
    # The command outlives its applier, and the next one finds how it ended.
    gate.let_go()
    actionplan.good("resume", "last")
    assert actionplan("apply", "last", "--yes").code == 0
    assert {a.state for a in actionplan.plan().actions} == {ActionState.SUCCEEDED}
    assert (actionplan.folder / "changes").read_text() == "\n"
    assert (actionplan.folder / "reloads").read_text() == "\n"
