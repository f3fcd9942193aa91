# SPDX-License-Identifier: Apache-2.0
"""Two records may share a folder of jobs: ``job clean`` asks before it removes what is not its."""

from __future__ import annotations

import json

import pytest
from command_line import CommandLine, wait_until

from applier.machines.job_names import is_permit
from planner.states import PlanState

NAMED = "On this machine: 2 leftovers of the unknown plan {}\n"
QUESTION = "another record has them and may need what their commands have left. Remove it? [y/N]"


def folders(actionplan: CommandLine) -> list[str]:
    place = actionplan.record.parent / "jobs"
    return sorted(path.name for path in place.iterdir())


@pytest.fixture
def elsewhere(actionplan: CommandLine) -> dict[str, str]:
    """Return the environment of commands that use another record in the same folder."""
    other = actionplan.record.with_name("other.sqlite")
    return {"OS_ACTIONPLAN__CONNECTION": f"sqlite:///{other}"}


@pytest.fixture
def ended(actionplan: CommandLine) -> str:
    """Kill the applier of a plan once its command runs, and let that end; return the plan's uuid.

    The exit code is only in the folder of the command, beside the permit of its attempt.
    """
    command = "echo begin >> effects; while [ ! -e go ]; do sleep 0.02; done; exit 7"
    given = {"command": command, "cwd": str(actionplan.folder), "changed_exit_codes": [7]}
    action = {"name": "first", "action_type": "shell", "input_parameters": given}
    actionplan.document("plan.yaml", action)
    with actionplan.start("apply", "plan.yaml", "--yes") as applier:
        wait_until((actionplan.folder / "effects").exists)
        applier.kill()
        applier.communicate()
    (actionplan.folder / "go").touch()
    (name,) = (name for name in folders(actionplan) if not is_permit(name))
    wait_until((actionplan.record.parent / "jobs" / name / "rc").exists)
    return actionplan.plan().uuid


def test_what_another_record_needs_is_named_and_kept(actionplan, elsewhere, ended):
    before = folders(actionplan)
    assert len(before) == 2
    rows = json.loads(actionplan("job", "list", "-f", "json", **elsewhere).out)
    assert [(row["plan"], row["leftover"]) for row in rows] == [(ended, "unknown plan")] * 2
    code, out, _ = actionplan("job", "clean", **elsewhere)
    assert code == 0
    assert out.startswith(NAMED.format(ended))
    assert QUESTION in " ".join(out.split())
    assert out.endswith("without a question, add --yes.\n0 leftovers removed, 2 kept.\n")
    assert folders(actionplan) == before
    actionplan.good("resume", "last")
    assert actionplan("apply", "last", "--yes").code == 0
    assert actionplan.plan().state is PlanState.SUCCEEDED
    assert (actionplan.folder / "effects").read_text() == "begin\n"


@pytest.mark.parametrize(("words", "typed"), [((), "y\n"), (("--yes",), "")])
def test_it_is_removed_after_a_yes(actionplan, elsewhere, ended, words, typed):
    code, out, _ = actionplan("job", "clean", *words, stdin=typed, **elsewhere)
    assert code == 0
    assert (QUESTION in " ".join(out.split())) is (not words)
    assert out.endswith("2 leftovers removed, 0 kept.\n")
    assert folders(actionplan) == []


def test_a_command_that_begins_while_the_question_is_open_is_kept(actionplan):
    place = actionplan.record.parent / "jobs" / "another-plan.a.1.1"
    place.mkdir(parents=True)
    with actionplan.on_terminal("job", "clean") as terminal:
        terminal.wait_for("[y/N]")
        (place / "rc").write_text("0\n")
        terminal.type("y\n")
        terminal.wait_for("0 leftovers removed, 1 kept.")
        assert terminal.end() == 0
    assert place.exists()


def test_what_still_runs_is_kept_even_with_yes(actionplan, elsewhere):
    """Its plan is on another record."""
    command = "echo begin >> effects; while [ -d . ] && [ ! -e go ]; do sleep 0.02; done"
    given = {"command": command, "cwd": str(actionplan.folder)}
    actionplan.document("plan.yaml", {"action_type": "shell", "input_parameters": given})
    with actionplan.start("apply", "plan.yaml", "--yes") as applier:
        wait_until((actionplan.folder / "effects").exists)
        out = actionplan("job", "clean", "--yes", **elsewhere).out
        (actionplan.folder / "go").touch()
        assert applier.wait() == 0
    assert out.endswith("1 kept.\n")
