# SPDX-License-Identifier: Apache-2.0
"""From a document to a plan: which planner, which mistakes, and always the same plan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from planner import ActionPlan, PlannerError, make_plan
from planner.errors import BrokenPlugin, InvalidInput, UnknownPlugin
from planner.making.planning import read_problem
from planner.plan.model import ProposedAction, Solution
from planner.planners.deployment import message
from planner.planners.weight import WeightPlanner
from planner.testing import NOW, action_type, edges, plan

ROOT = Path(__file__).parents[4]
TWO = {"actions": [{"action_type": "nop", "name": "a"}, {"action_type": "sleep", "name": "b"}]}
UUID = "6a1f0001-0000-4000-8000-000000000001"


def configuration(folder: Path, text: str) -> cfg.ConfigOpts:
    file = folder / "watcher.conf"
    file.write_text(text, encoding="utf-8")
    conf = cfg.ConfigOpts()
    conf(args=[], default_config_files=[str(file)], default_config_dirs=[])
    return conf


def unchecked(document: Any, *args: Any, **options: Any) -> ActionPlan:
    return make_plan(document, *args, check_types=False, **options)


def refusals(document: Any, *args: Any, **options: Any) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        make_plan(document, *args, **options)
    return str(refused.value).splitlines()


def test_the_planner_is_the_argument_before_the_document_before_the_file(tmp_path: Path) -> None:
    conf = configuration(tmp_path, "[watcher_planner]\nplanner = workload_stabilization\n")
    named = {"actions": [], "planner": "node_resource_consolidation"}
    assert unchecked(TWO).planner == "weight"
    assert unchecked(TWO, conf=conf).planner == "workload_stabilization"
    assert unchecked(named, conf=conf).planner == "node_resource_consolidation"
    assert unchecked(named, "weight", conf=conf).planner == "weight"


def test_an_unknown_planner_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(UnknownPlugin, match="did you mean 'weight'") as refused:
        make_plan(TWO, "wieght")
    assert (refused.value.what, refused.value.name) == ("planner", "wieght")
    file = tmp_path / "plan.yaml"
    file.write_text("actions: []\nplanner: wieght\n")
    (line,) = refusals(file)
    assert line.startswith(f"{file}:2: planner: no planner 'wieght'")
    assert "did you mean 'weight'?" in line
    conf = configuration(tmp_path, "\n[watcher_planner]\nplanner = wieght\n")
    (line,) = refusals(TWO, conf=conf)
    assert "watcher.conf:3: [watcher_planner] planner: " in line
    assert "'wieght'" in line


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"kind": "solutoin", "actions": []}, "kind: no kind 'solutoin'; did you mean 'solution'"),
        (
            {"kind": "deployment", "planner": "weight", "actions": []},
            "kind: planner 'weight' reads documents of kind 'solution', this is 'deployment'",
        ),
        ({"kind": 5, "actions": []}, "kind: 5 is not a kind of document"),
        ({"planner": [], "actions": []}, "planner: [] is not the name of a planner"),
        ([1], "document: a mapping with 'actions' or a 'kind' is expected"),
        ("text", "text: cannot be read: No such file"),
        ({}, "document: the field 'actions' is missing"),
        ({"version": "2.0", "actions": []}, "version: this is an action plan: it is made already"),
    ],
    ids=str,
)
def test_a_document_of_no_known_kind_is_refused(document: Any, sentence: str) -> None:
    first = refusals(document)[0]
    assert first.startswith(sentence)
    assert first.count("Known: ") <= 1


DOCUMENT = """\
options: {weigths: {nop: 1}}
actions:
  - action_type: migrte
  - action_type: migrate
    resource_id: 6a1f0001-0000-4000-8000-000000000001
    input_parameters:
      migration_type: warm
  - action_typ: nop
  - {name: x, action_type: nop, colour: red}
  - {name: y, action_type: sleep, input_parameters: {duration: soon}}
  - {name: y, action_type: nop}
limits: {"node:*": 0}
"""


def test_all_mistakes_are_listed_at_once_each_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(DOCUMENT)
    conf = configuration(tmp_path, "[watcher_planners.weight]\nparallelization = nop:0\n")
    found = refusals(file, options={"ordering": "sets"}, conf=conf)
    beginnings = [
        f"{file}:1: options.weigths: planner 'weight' has no option 'weigths'",
        f"{file}:12: limits.node:*: 0 is less than 1",
        f"{file}:3: actions[0].action_type: no action type 'migrte'; did you mean 'migrate'?",
        f"{file}:7: actions[1].input_parameters.migration_type: 'warm' is not accepted",
        f"{file}:6: actions[1].input_parameters: the field 'source_node' is missing",
        f"{file}:8: actions[2]: the field 'action_type' is missing",
        f"{file}:8: actions[2].action_typ: not a field here; did you mean 'action_type'?",
        f"{file}:9: actions[3].colour: not a field here",
        f"{file}:10: actions[4].input_parameters.duration: 'soon' is not a number",
        f"{file}:11: actions[5].name: the name 'y' occurs twice",
        f"{tmp_path}/watcher.conf:2: [watcher_planners.weight] parallelization: nop: '0' is not",
        "option ordering: Valid values are [chunks, slots], but found 'sets'",
    ]
    missing = [b for b in beginnings if not any(line.startswith(b) for line in found)]
    assert not missing, "\n".join(["not found:", *missing, "among:", *found])
    assert len(found) == len(beginnings)


def test_a_plan_for_unchecked_types_warns_of_each_type_once() -> None:
    document = {
        "actions": [{"action_type": "warp"}, {"action_type": "warp"}, {"action_type": "nop"}]
    }
    no_plugin, not_checked, weight, parallelization = unchecked(document).warnings
    assert all("'warp'" in warning for warning in (no_plugin, weight, parallelization))
    assert "no plugin" in no_plugin
    assert "'nop': its parameters were not checked" in not_checked
    assert "no weight: 0" in weight
    assert "no parallelization: 1" in parallelization
    document = {"actions": [{"action_type": "nop", "input_parameters": {"message": "hello"}}]}
    assert make_plan(document).warnings == ()


def test_what_the_document_says_is_carried_through() -> None:
    document = {
        "name": "maintenance",
        "audit_uuid": "audit-1",
        "strategy_name": "drain",
        "efficacy_indicators": [{"name": "released", "value": 1}],
        "global_efficacy": [{"value": 50}],
        "limits": {"type:nop": 1},
        "actions": [
            {"action_type": "nop", "name": "a", "estimate_s": 3, "timeout_s": 9, "retries": 2}
        ],
    }
    made = unchecked(document)
    assert made.name == "maintenance"
    assert (made.audit_uuid, made.strategy_name) == ("audit-1", "drain")
    assert made.efficacy_indicators == ({"name": "released", "value": 1},)
    assert made.global_efficacy == ({"value": 50},)
    assert made.limits == {"type:nop": 1}
    (action,) = made.actions
    assert (action.estimate_s, action.timeout_s, action.retries) == (3, 9, 2)


def test_an_action_says_what_it_does_and_holds_what_it_touches() -> None:
    parameters = {"migration_type": "live", "source_node": "c1", "destination_node": "c2"}
    document = {
        "actions": [{"action_type": "migrate", "resource_id": UUID, "input_parameters": parameters}]
    }
    (action,) = make_plan(document).actions
    assert action.name == "migrate-1"
    assert action.description == f"move {UUID} from c1 to c2"
    assert action.reason == "weight 30"
    assert action.tokens == ("type:migrate", f"instance:{UUID}", "node:c1", "node:c2")
    assert action.resource_id == UUID
    assert action.input_parameters == {"resource_id": UUID, **parameters}


def test_a_resource_may_be_given_inside_or_beside_but_not_two() -> None:
    inside = {"action_type": "stop", "input_parameters": {"resource_id": UUID}}
    beside = {"action_type": "stop", "resource_id": UUID}
    first, second = make_plan({"actions": [inside, beside]}).actions
    assert (first.resource_id, first.input_parameters) == (
        second.resource_id,
        {"resource_id": UUID},
    )
    (line,) = refusals({"actions": [{**inside, "resource_id": "other"}]}, check_types=False)
    assert line.startswith("actions[0].resource_id: 'other' here, ")


def test_a_name_that_is_taken_is_not_given_again() -> None:
    document = {"actions": [{"action_type": "nop"}, {"action_type": "nop", "name": "nop-1"}]}
    assert [action.name for action in unchecked(document).actions] == ["nop-2", "nop-1"]


def test_written_touches_replace_those_of_the_type() -> None:
    document = {
        "actions": [{"action_type": "nop", "touches": ["leaves node:c1", "uses rack:r1"]}],
    }
    assert make_plan(document).actions[0].tokens == ("type:nop", "node:c1", "rack:r1")


def test_a_limit_of_the_document_that_bounds_nothing_is_a_warning() -> None:
    document = {**TWO, "limits": {"type:nop": 1, "node:*": 2}}
    warning = "limit 'node:*' has no effect: no action of this plan holds it"
    assert warning in unchecked(document).warnings
    assert not any("type:nop" in warning for warning in unchecked(document).warnings)


def test_a_message_that_is_read_back_warns_as_its_plan_did() -> None:
    task = {"id": "t", "type": "shell", "roles": ["a"], "parameters": {"cmd": "true"}}
    document = {
        "kind": "deployment",
        "limits": {"type:nothing": 2},
        "nodes": [{"uid": "1", "roles": ["a"]}],
        "tasks": [task],
    }
    made = unchecked(document)
    assert made.warnings[-1].startswith("limit 'type:nothing' has no effect")
    assert unchecked(message.write(made)).warnings == made.warnings


def test_limits_of_a_file_and_of_the_planner_hold_both_and_the_document_replaces_them(
    tmp_path: Path,
) -> None:
    text = "[watcher_planner]\nlimits = type:migrate=1, type:resize=5, node:*=3\n"
    conf = configuration(tmp_path, text)
    document = {
        "actions": [{"action_type": t} for t in ("migrate", "resize", "nop")],
        "options": {"ordering": "slots"},
        "limits": {"node:*": 7},
    }
    assert unchecked(document, conf=conf).limits == {
        "type:migrate": 1,
        "type:resize": 2,
        "type:nop": 1,
        "node:*": 7,
    }


def test_a_type_that_fails_over_parameters_that_fit_is_to_blame() -> None:
    odd = action_type("odd")
    odd.touches = classmethod(lambda _, parameters: parameters["no-such-key"])  # type: ignore
    with pytest.raises(BrokenPlugin) as broken:
        plan(WeightPlanner, {"actions": [{"action_type": "odd"}]}, odd)
    assert (broken.value.what, broken.value.name) == ("action type", "odd")
    assert broken.value.reason.startswith("KeyError: 'no-such-key'")


def test_a_type_is_not_asked_about_parameters_that_its_schema_refuses() -> None:
    odd = action_type("odd", schema={"required": ["host"]})
    odd.touches = classmethod(lambda _, parameters: parameters["host"])  # type: ignore
    with pytest.raises(InvalidInput, match="the field 'host' is missing"):
        plan(WeightPlanner, {"actions": [{"action_type": "odd"}]}, odd)


def test_a_type_whose_schema_is_wrong_is_to_blame() -> None:
    odd = action_type("odd", schema={"type": "objekt"})
    with pytest.raises(BrokenPlugin) as broken:
        plan(WeightPlanner, {"actions": [{"action_type": "odd"}]}, odd)
    assert broken.value.name == "odd"
    assert broken.value.reason.startswith("its schema is wrong")


def test_clock_and_ids_are_parameters() -> None:
    made = unchecked(TWO, now=lambda: NOW, new_id=iter(["plan", "first", "second"]).__next__)
    assert (made.uuid, made.created_at) == ("plan", NOW)
    assert [action.uuid for action in made.actions] == ["first", "second"]


def test_uuids_and_times_are_all_that_differs_between_two_plans() -> None:
    one, two = (unchecked(TWO).to_dict() for _ in range(2))
    assert one["digest"] == two["digest"]
    assert one["uuid"] != two["uuid"]
    assert edges(ActionPlan.from_dict(one)) == edges(ActionPlan.from_dict(two))


@pytest.mark.slow
def test_every_interpreter_gives_the_same_bytes_whatever_its_hash_seed(tmp_path: Path) -> None:
    actions = [
        {"action_type": t, "resource_id": f"i{k % 3}", "touches": [f"instance:i{k % 3}", *more]}
        for k in range(4)
        for t, more in (
            ("migrate", ["leaves node:c1", "enters node:c2"]),
            ("third-party", ["takes_down node:c1"]),
            ("change_node_power_state", ["brings_up node:c1", "takes_down node:c2"]),
            ("change_nova_service_state", ["enables node:c1", "disables node:c2"]),
        )
    ]
    file = tmp_path / "plan.json"
    facts = {"instances": {f"i{k}": {"host": "c1"} for k in range(3)}}
    limits = {"node:*": 1, "type:nop": 2}
    file.write_text(json.dumps({"actions": actions, "limits": limits, "facts": facts}))
    code = """
import itertools, json, sys
from planner import make_plan
from planner.testing import NOW
for planner in ("weight", "workload_stabilization"):
    ids = map(str, itertools.count())
    plan = make_plan(sys.argv[1], planner, check_types=False, now=lambda: NOW, new_id=ids.__next__)
    print(json.dumps(plan.to_dict()))
"""
    told = {
        subprocess.run(
            [sys.executable, "-c", code, str(file)],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(told) == 1
    assert b"does not wait for" in told.pop()


def test_a_planner_that_makes_a_loop_is_refused() -> None:
    class Loop(WeightPlanner):
        def plan(self, problem: Solution, options: Any) -> ActionPlan:
            draft = self.draft(problem)
            draft.add(ProposedAction(name="a", action_type="nop"), (1,), "first")
            draft.add(ProposedAction(name="b", action_type="nop"), (0,), "second")
            return draft.plan()

    with pytest.raises(PlannerError, match="a cycle: a -> b -> a"):
        plan(Loop, TWO, check_types=False)


@pytest.mark.parametrize(
    ("facts", "cloud", "expected"),
    [
        ({}, None, None),
        ({}, "east", "east"),
        ({"cloud": None}, "east", "east"),
        ({"cloud": "west"}, "east", "west"),
        ({"cloud": "west"}, None, "west"),
    ],
)
def test_a_plan_is_for_the_cloud_of_its_facts_else_for_the_one_handed_over(facts, cloud, expected):
    assert make_plan({**TWO, "facts": facts}, cloud=cloud, check_types=False).cloud == expected


def test_the_name_of_a_cloud_is_checked():
    with pytest.raises(InvalidInput, match=r"facts\.cloud: "):
        make_plan({**TWO, "facts": {"cloud": 5}})


def test_planners_see_the_tables_of_the_facts_and_not_the_name():
    tables = {"instances": {"i": {"host": "h"}}}
    problem = read_problem({**TWO, "facts": {"cloud": "west", **tables}}, check_types=False)
    assert problem.problem.facts == tables
