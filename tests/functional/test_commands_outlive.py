# SPDX-License-Identifier: Apache-2.0
"""Commands outlive their applier: whoever takes the plan over follows them to their end.

What leaves an action in doubt, and what is a leftover, is decided in tests/unit/applier/run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from command_line import CommandLine, wait_until

from applier.machines.job_names import is_permit
from planner.plan.states import ActionState, PlanState

#: Begins, says so, waits until it is let go, and ends with exit code 7, which is accepted.
COMMAND = """\
echo first; echo begin >> effects
while [ -d "$PWD" ] && [ ! -e go ]; do sleep 0.02; done
echo end >> effects; echo last; exit 7
"""


class Left:
    """A record whose plan has lost its applier, and the command which that has left."""

    def __init__(self, actionplan: CommandLine) -> None:
        self.line, self.folder = actionplan, actionplan.folder
        self.place, self.effects = actionplan.record.parent / "jobs", self.folder / "effects"

    def begin(self, *others: Mapping[str, Any], **fields: Any) -> None:
        """Apply a plan, and kill the applier once the command of its first action has begun."""
        self.line.document("plan.yaml", self.action("first"), *others, **fields)
        with self.line.start("apply", "plan.yaml", "--yes") as applier:
            wait_until(self.effects.exists)
            applier.kill()
            applier.communicate()

    def action(self, name: str, command: str = COMMAND) -> Mapping[str, Any]:
        """Describe an action that runs a command in the folder of the test."""
        given = {"command": command, "cwd": str(self.folder), "changed_exit_codes": [7]}
        return {"name": name, "action_type": "shell", "input_parameters": given}

    def jobs(self) -> list[str]:
        """Return the names of the folders of commands."""
        names = sorted(path.name for path in self.place.iterdir()) if self.place.exists() else []
        return [name for name in names if not is_permit(name)]

    def let_go(self) -> None:
        """Let the commands end."""
        (self.folder / "go").touch()

    def output(self, name: str) -> str:
        """Return what an action has printed."""
        shown = self.line.good("action", "show", "last", name, "-f", "json")
        return str(json.loads(shown)["output"])


@pytest.fixture
def left(actionplan: CommandLine) -> Any:
    """Yield what was left; let its commands end, also those of a test that failed."""
    made = Left(actionplan)
    yield made
    made.let_go()


def test_a_command_that_outlived_its_applier_is_followed_to_its_end(actionplan, left):
    """One begin, one end, its exit code and its whole output; what it holds stays held."""
    second = left.action("second", "cat effects; exit 7")
    left.begin(second, options={"parallelization": {"shell": 1}})
    actionplan.good("resume", "last")
    with actionplan.start("apply", "last", "--yes") as taker:
        actionplan.wait_for(PlanState.ONGOING, first=ActionState.ONGOING)
        left.let_go()
        out, err = taker.communicate()
        assert taker.returncode == 0, out + err
    assert " taken over first " in out
    assert left.effects.read_text() == "begin\nend\n"
    plan = actionplan.plan()
    assert plan.state is PlanState.SUCCEEDED
    assert [(a.state, a.outcome, a.attempts) for a in plan.actions] == [
        ("SUCCEEDED", "changed", 1),
        ("SUCCEEDED", "changed", 1),
    ]
    assert left.output("first") == "first\nlast\n"
    assert left.output("second") == "begin\nend\n", "it has waited for the first"
    assert left.jobs() == []


def test_what_is_left_is_listed_and_what_nobody_needs_is_removed(actionplan, left):
    left.begin()
    (name,) = left.jobs()
    old = left.place / "no-such-plan.a.1.1"
    old.mkdir()
    (old / "pid").write_text("1 1 another-boot 1\n")
    rows = json.loads(actionplan.good("job", "list", "-f", "json"))
    assert sorted((r["action"], r["attempt"], r["state"], r["leftover"]) for r in rows) == [
        ("a", 1, "restarted", "unknown plan"),
        ("first", 1, "runs", "no"),
    ]
    assert actionplan.good("job", "clean", "--yes") == "1 leftover removed, 1 kept.\n"
    assert left.jobs() == [name]
    left.let_go()
    wait_until((left.place / name / "rc").exists)
    assert actionplan.good("job", "clean") == "0 leftovers removed, 1 kept.\n"
    actionplan.good("resume", "last")
    assert actionplan("apply", "last", "--yes").code == 0
    assert json.loads(actionplan.good("job", "list", "-f", "json")) == []


def test_a_purge_removes_what_the_commands_of_purged_plans_left_here_and_nothing_else(
    actionplan, left
):
    actionplan.document("plan.yaml", {"name": "a", "action_type": "nop"})
    actionplan.good("apply", "plan.yaml", "--yes")
    actionplan.good("create", "plan.yaml")
    kept, ended = sorted(actionplan.plans(), key=lambda plan: str(plan.state))
    for uuid in (ended.uuid, kept.uuid, "plan-of-another-record"):
        folder = left.place / f"{uuid}.a.1.1"
        folder.mkdir(parents=True)
        (folder / "pid").write_text("1 1 another-boot 1\n")
    actionplan.good("purge", "--older-than", "0m", "--yes")
    assert left.jobs() == sorted([f"{kept.uuid}.a.1.1", "plan-of-another-record.a.1.1"])


QUESTION = "another record has them and may need what their commands have left. Remove it? [y/N]"


def test_what_another_record_in_the_same_folder_needs_is_removed_after_a_yes_only(actionplan, left):
    """The exit code of the command is only in its folder, beside the permit of its attempt."""
    left.begin()
    left.let_go()
    (name,) = left.jobs()
    wait_until((left.place / name / "rc").exists)
    before = sorted(left.place.iterdir())
    assert len(before) == 2
    uuid = actionplan.plan().uuid
    other = {"OS_ACTIONPLAN__CONNECTION": f"sqlite:///{actionplan.record}.other"}
    rows = json.loads(actionplan("job", "list", "-f", "json", **other).out)
    assert [(row["plan"], row["leftover"]) for row in rows] == [(uuid, "unknown plan")] * 2
    asked = actionplan("job", "clean", **other)
    assert asked.code == 0
    assert f"2 leftovers of the unknown plan {uuid}\n" in asked.out
    assert QUESTION in " ".join(asked.out.split())
    assert asked.out.endswith("0 leftovers removed, 2 kept.\n")
    assert sorted(left.place.iterdir()) == before
    assert actionplan("job", "clean", stdin="y\n", **other).code == 0
    assert list(left.place.iterdir()) == []
    (left.place / "another-plan.a.1.1").mkdir()
    assert QUESTION not in " ".join(actionplan("job", "clean", "--yes", **other).out.split())
    assert list(left.place.iterdir()) == []


def test_a_command_that_begins_while_the_question_is_open_is_kept(actionplan, left):
    place = left.place / "another-plan.a.1.1"
    place.mkdir(parents=True)
    with actionplan.on_terminal("job", "clean") as terminal:
        terminal.wait_for("[y/N]")
        (place / "rc").write_text("0\n")
        terminal.type("y\n")
        terminal.wait_for("0 leftovers removed, 1 kept.")
        assert terminal.end() == 0
    assert place.exists()


# A playbook is a command as well


LOCAL = "ansible_connection=local ansible_python_interpreter='{{ ansible_playbook_python }}'"
COUNTED = """\
- hosts: all
  gather_facts: false
  tasks:
  - name: before
    shell: echo before {{ inventory_hostname }} >> {{ playbook_dir }}/effects
  - name: wait
    shell: |
      cd {{ playbook_dir }}; touch begun
      while [ -d "$PWD" ] && [ ! -e go ]; do sleep 0.02; done
    run_once: true
  - name: after
    shell: echo after {{ inventory_hostname }} >> {{ playbook_dir }}/effects
"""


def test_a_playbook_outlives_its_applier_and_each_effect_is_there_once(actionplan: CommandLine):
    folder = actionplan.folder
    (folder / "site.yml").write_text(COUNTED)
    (folder / "hosts.ini").write_text(f"[web]\nb {LOCAL}\na {LOCAL}\n")
    text = "{kind: rollout, name: p, nodes: {from: hosts.ini, role: web}, serial: 2, steps: [%s]}"
    (folder / "p.yaml").write_text(text % "{ansible: {playbook: site.yml, inventory: hosts.ini}}")
    with actionplan.start("apply", "p.yaml", "--yes") as applier:
        wait_until((folder / "begun").exists)
        applier.kill()
        applier.communicate()
    for is_last in (False, True):
        actionplan.good("resume", "last")
        with actionplan.start("apply", "last", "--yes") as taker:
            actionplan.wait_for(PlanState.ONGOING, **{"b/ansible": ActionState.ONGOING})
            if is_last:
                (folder / "go").touch()
            else:
                taker.kill()
            out, err = taker.communicate()
    assert taker.returncode == 0, out + err
    effects = sorted((folder / "effects").read_text().splitlines())
    assert effects == ["after a", "after b", "before a", "before b"]
    assert {(a.name, a.outcome, a.attempts) for a in actionplan.plan().actions} == {
        ("a/ansible", "changed", 1),
        ("b/ansible", "changed", 1),
    }
