# SPDX-License-Identifier: Apache-2.0
"""What our planner stores in Watcher's tables is what our own commands plan."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from environments import ROOT, Environment
from watcher_lab import PROGRAMS

from planner import documents
from planner.making import registry
from planner.plan.model import JOIN, ActionPlan
from planner.testing import plan

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("beside")]

CASES = Path(__file__).parents[1] / "cases"
PLANNERS = ("weight", "workload_stabilization", "node_resource_consolidation")
#: What a strategy of Watcher cannot say.
NOT_IN_WATCHER = ("error", "limits")


class Case(NamedTuple):
    """A case, and the plan that our own commands make of it."""

    name: str
    given: Mapping[str, Any]
    made: ActionPlan


def text(value: Any) -> str:
    """Return the value of an option as watcher.conf has it."""
    if isinstance(value, Mapping):
        return ",".join(f"{name}:{number}" for name, number in value.items())
    return str(value)


def given(planner: str, options: Mapping[str, Any], **case: Any) -> dict[str, Any]:
    """Return a case for the program, with its options in watcher.conf."""
    own = {name: text(value) for name, value in options.items()}
    settings = {"watcher_planners.actionplan": {"planner": planner, **own}}
    return {"settings": settings, "hosts": {}} | case


def engine(**limits: int) -> dict[str, Any]:
    """Return the settings for our engine with limits."""
    texts = ",".join(f"{token}={number}" for token, number in limits.items())
    return {
        "watcher_applier": {"workflow_engine": "actionplan"},
        "watcher_workflow_engines.actionplan": {"limits": texts},
    }


def proposed(action: str | Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return type and parameters of an action of a case."""
    if isinstance(action, str):
        return re.sub(r"-\d+$", "", action), {}
    parameters = action.get("input_parameters") or {}
    if "resource_id" in action:
        parameters = {**parameters, "resource_id": action["resource_id"]}
    return action["action_type"], parameters


def of_our_own(planner: str, file: Path) -> Case | None:
    """Return a case of ours, None if a strategy cannot propose it."""
    case = documents.read(file).value
    facts = case.get("facts") or {}
    if set(NOT_IN_WATCHER) & set(case) or set(facts) - {"instances"}:
        return None
    if any(isinstance(a, Mapping) and "touches" in a for a in case["actions"]):
        return None
    hosts = {uuid: fact["host"] for uuid, fact in facts.get("instances", {}).items()}
    actions = [*map(proposed, case["actions"])]
    # Watcher is asked where the instances are that a plan for workload_stabilization resizes.
    asked = {own.get("resource_id") for kind, own in actions if kind == "resize"}
    if hosts and (planner != "workload_stabilization" or not asked.issuperset(hosts)):
        return None
    return made(f"{planner}/{file.stem}", planner, case.get("options") or {}, actions, hosts)


def of_watcher(file: Path) -> Case | None:
    """Return a case of Watcher's planners, None if ours refuses it."""
    case = json.loads(file.read_text(encoding="utf-8"))
    if "expected" not in case or file.stem == "weight-17":
        return None
    actions = [*map(proposed, case["solution"]["actions"])]
    hosts = case.get("lookups") or {}
    return made(file.stem, case["planner"], case["config"], actions, hosts)


def made(
    name: str,
    planner: str,
    options: Mapping[str, Any],
    actions: Sequence[tuple[str, Mapping[str, Any]]],
    hosts: Mapping[str, str],
) -> Case:
    """Return a case with our own plan for it."""
    document = {
        "actions": [{"action_type": kind, "input_parameters": own} for kind, own in actions],
        "facts": {"instances": {uuid: {"host": host} for uuid, host in hosts.items()}},
        "options": options,
    }
    own = plan(registry.planner(planner), document, check_types=False)
    case = given(planner, options, actions=actions, hosts=hosts)
    if own.limits:
        case["settings"] |= engine(**own.limits)
    return Case(name, case, own)


def cases() -> Iterator[Case]:
    """Yield all cases."""
    for planner in PLANNERS:
        for file in sorted((CASES / planner).glob("*.yaml")):
            if found := of_our_own(planner, file):
                yield found
    for file in sorted((CASES / "watcher").glob("*.json")):
        if found := of_watcher(file):
            yield found


def run(
    environment: Environment, folder: Path, given: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Plan cases in Watcher."""
    ended = subprocess.run(
        [environment.python, "-W", "ignore", PROGRAMS / "our_planner.py", folder],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found: list[dict[str, Any]] = json.loads(ended.stdout)
    return found


def flattened(made: ActionPlan) -> list[tuple[str, list[int]]]:
    """Return type and parents of each action but joins; parents are positions, in their order."""
    joins = {a.uuid: a.before() for a in made.actions if a.action_type == JOIN}
    actions = [a for a in made.actions if a.uuid not in joins]
    position = {a.uuid: i for i, a in enumerate(actions)}

    def parents(uuids: Sequence[str]) -> list[int]:
        found = [parents(joins[u]) if u in joins else [position[u]] for u in uuids]
        return list(dict.fromkeys(p for some in found for p in some))

    return [(a.action_type, parents(a.before())) for a in actions]


def test_every_case_has_in_watcher_the_parents_and_needs_that_it_has_here(
    watcher_environment: Environment, tmp_path: Path
) -> None:
    all_cases = list(cases())
    assert len(all_cases) > 40
    found = run(watcher_environment, tmp_path, [case.given for case in all_cases])
    for case, stored in zip(all_cases, found, strict=True):
        assert "error" not in stored, (case.name, stored)
        rows = [(action["type"], action["parents"]) for action in stored["actions"]]
        assert rows == flattened(case.made), case.name
        assert stored["state"] == case.made.state, case.name
        assert {action["state"] for action in stored["actions"]} <= {"PENDING"}


@pytest.mark.parametrize("number", [0, 3])
def test_the_notifications_are_those_of_watchers_own_planner(
    watcher_environment: Environment, tmp_path: Path, number: int
) -> None:
    actions = [("nop", {"message": str(i)}) for i in range(number)]
    one = given("weight", {}, actions=actions)
    ours, stock = run(watcher_environment, tmp_path, [one, one | {"planner": "weight"}])
    assert ours == stock
    assert ours["sent"].count("action.create") == number
    assert ours["state"] == ("RECOMMENDED" if number else "SUCCEEDED")


def test_all_mistakes_are_told_and_nothing_is_stored(
    watcher_environment: Environment, tmp_path: Path
) -> None:
    actions = [("nop", {"message": "m"})]
    wrong = given("weight", {"weights": "nop:many,sleep:few", "wieghts": "nop:3"}, actions=actions)
    (found,) = run(watcher_environment, tmp_path, [wrong])
    assert found["left"]
    for part in ("nop: 'many' is not a number", "sleep: 'few' is not a number", "no such option"):
        assert part in found["error"]


def test_a_plan_of_which_the_database_refuses_a_row_leaves_nothing(
    watcher_environment: Environment, tmp_path: Path
) -> None:
    actions = [("nop", {"message": str(i)}) for i in range(3)]
    wrong = given("weight", {}, actions=actions, refused=True)
    (found,) = run(watcher_environment, tmp_path, [wrong])
    assert "UNIQUE constraint failed: actions.uuid" in found["error"]
    assert found["left"]
    assert found["sent"] == []


def test_a_plan_whose_limits_nobody_would_keep_is_refused(
    watcher_environment: Environment, tmp_path: Path
) -> None:
    actions = [("nop", {"message": "m"}), ("migrate", {})]
    slots = given("weight", {"ordering": "slots"}, actions=actions)
    kept = slots["settings"] | engine(**{"type:*": 1})
    loose = slots["settings"] | engine(**{"type:nop": 1, "type:migrate": 3})
    tried = [slots | {"settings": settings} for settings in (slots["settings"], kept, loose)]
    stock, ours, too_many = run(watcher_environment, tmp_path, tried)
    assert "limits = type:migrate=2, type:nop=1" in stock["error"]
    assert "only workflow_engine = actionplan keeps" in stock["error"]
    assert ours["state"] == "RECOMMENDED"
    assert "watcher.conf:" in too_many["error"]
    assert "limits = type:migrate=2 is missing" in too_many["error"]
    assert stock["left"]
    assert too_many["left"]


def test_options_of_our_planner_leave_that_of_watcher_alone(
    watcher_environment: Environment, tmp_path: Path
) -> None:
    actions = [("nop", {"message": "m"}), ("sleep", {"duration": 0}), ("sleep", {"duration": 0})]
    case = given("weight", {"parallelization": "sleep:2"}, actions=actions)
    ours, of_watcher = run(watcher_environment, tmp_path, [case, case | {"planner": "weight"}])
    assert [action["parents"] for action in ours["actions"]] == [[], [0], [0]]
    assert [action["parents"] for action in of_watcher["actions"]] == [[], [0], [1]]


def test_touches_of_a_third_party_come_from_the_configuration(
    watcher_environment: Environment, tmp_path: Path
) -> None:
    actions = [
        ("rack_move", {"host": "c1"}),
        ("rack_move", {"host": "c2"}),
        ("drain", {"of": "c1"}),
    ]
    case = given("weight", {"parallelization": "rack_move:2"}, actions=actions)
    known = {"touches": "rack_move: leaves node:{host}\n  drain: takes_down node:{of}"}
    case["settings"]["watcher_planners.actionplan"]["weights"] = "rack_move:2,drain:2"
    told = case["settings"] | {"watcher_workflow_engines.actionplan": known}
    unknown, of_table = run(watcher_environment, tmp_path, [case, case | {"settings": told}])
    assert [action["parents"] for action in unknown["actions"]] == [[], [], []]
    assert [action["parents"] for action in of_table["actions"]] == [[], [], [0]]


def test_the_strategy_of_the_page_has_our_planner(watcher_environment: Environment) -> None:
    page = ROOT / "doc" / "how-to" / "inside_watcher_strategy.py"
    program = (
        "import runpy; from watcher.common import config, service, utils; config.parse_args(['x']);"
        f"strategy = runpy.run_path({str(page)!r})['HostMaintenance'](utils.Struct());"
        "print(strategy.planner, strategy.get_name())"
    )
    command = [watcher_environment.python, "-W", "ignore", "-c", program]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert printed.split() == ["actionplan", "planned_host_maintenance"]
