# SPDX-License-Identifier: Apache-2.0
"""The deployment planner beyond what cases can say: parameters, options, size."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from planner import make_plan
from planner.errors import InvalidInput, InvalidPlan
from planner.plan import deadlocks
from planner.plan.model import JOIN, Action, ActionPlan, Touch
from planner.planners.deployment import message
from planner.planners.deployment.planner import DeploymentPlanner
from planner.testing import action_type, applied, plan

TEXT = {"type": "string"}
PUPPET = action_type(
    "puppet",
    touches=[Touch("volume:shared")],
    estimate_s=7.0,
    schema={
        "type": "object",
        "required": ["manifest"],
        "additionalProperties": False,
        "properties": {
            "manifest": TEXT,
            "modules": {"type": "array"},
            "node": TEXT,
            "address": TEXT,
            "duration_s": {"type": "number"},
        },
    },
)


def document(*tasks: Mapping[str, Any], nodes: int = 1, **fields: Any) -> dict[str, Any]:
    whole = [{"type": "puppet", "version": "2.0.0", "role": "x", **task} for task in tasks]
    machines = [{"uid": str(i), "roles": ["x"]} for i in range(1, nodes + 1)]
    return {"kind": "deployment", "tasks": whole, "nodes": machines, **fields}


def planned(value: Mapping[str, Any]) -> dict[str, Action]:
    return {a.label: a for a in plan(DeploymentPlanner, value, check_types=False).actions}


def test_parameters_are_translated_and_time_out_and_retries_belong_to_the_action() -> None:
    parameters = {
        "puppet_manifest": "/etc/site.pp",
        "puppet_modules": "/etc/a:/etc/b",
        "timeout": 3600,
        "retries": "2",
        "strategy": {"type": "parallel"},
    }
    value = document({"id": "t", "parameters": parameters}, durations={"t": 60})
    action = plan(DeploymentPlanner, value, PUPPET).actions[0]
    assert action.input_parameters == {
        "manifest": "/etc/site.pp",
        "modules": ["/etc/a", "/etc/b"],
        "node": "1",
        "duration_s": 60,
    }
    assert (action.timeout_s, action.retries, action.estimate_s) == (3600, 2, 60)
    assert action.tokens == ("type:puppet", "node:1", "task:t", "busy:nodes", "volume:shared")


def test_an_action_is_described_by_its_type_else_by_task_and_node() -> None:
    class Plain(PUPPET):  # type: ignore[misc, valid-type]
        describe = classmethod(lambda *_: None)

    value = document({"id": "t", "parameters": {"puppet_manifest": "a.pp"}})
    for kind, description in ((PUPPET, "puppet"), (Plain, "puppet t on 1")):
        (action,) = plan(DeploymentPlanner, value, kind).actions
        assert action.description == description


def test_a_note_tells_which_tasks_of_a_group_are_left_out_if_none_of_it_is_chosen() -> None:
    relation = {"name": "a", "policy": "any"}
    tasks = [{"id": "a"}, {"id": "b", "cross-depends": [relation]}]

    def notes(**only: Any) -> list[str]:
        made = plan(DeploymentPlanner, document(*tasks, nodes=2, only=only), check_types=False)
        return [text for text in made.warnings if "left out" in text]

    assert [re.findall(r"\d\S*", note) for note in notes(tasks=["b"])] == [
        ["1/a", "1/b", "1"],
        ["2/a", "1/b", "1"],
    ]
    assert notes(nodes=["1"]) == []


def test_a_node_with_an_address_is_no_simulated_one() -> None:
    value = document({"id": "t", "parameters": {"puppet_manifest": "a.pp"}}, durations={"t": 5})
    value["nodes"] = [{"uid": 1, "roles": "x", "address": "10.0.0.1"}]
    action = plan(DeploymentPlanner, value, PUPPET).actions[0]
    assert action.input_parameters == {"manifest": "a.pp", "node": "1", "address": "10.0.0.1"}
    assert action.estimate_s == 5


def test_the_deployment_server_has_the_address_that_a_node_of_its_name_has() -> None:
    value = document({"id": "t", "role": "master"})
    assert planned(value)["master/t"].input_parameters == {"node": "master"}
    value["nodes"].append({"uid": "master", "roles": ["x"], "address": "admin@10.0.0.9"})
    value["tasks"].append({**value["tasks"][0], "id": "u", "role": "*"})
    found = planned(value)
    assert found["master/t"].input_parameters["address"] == "admin@10.0.0.9"
    assert set(found) == {"master/t", "1/u"}


def test_parameters_are_checked_under_the_names_that_were_written() -> None:
    tasks = [{"id": "t", "parameters": {"puppet_manifest": 1, "colour": "red"}}, {"id": "u"}]
    with pytest.raises(InvalidInput) as refused:
        plan(DeploymentPlanner, document(*tasks), PUPPET)
    unknown, wrong, missing = refused.value.mistakes
    assert unknown.path == ("tasks", 0, "parameters", "colour")
    assert wrong.path == ("tasks", 0, "parameters", "puppet_manifest")
    assert missing.path == ("tasks", 1, "parameters")
    assert "'manifest'" in missing.text


def conf(tmp_path: Path, text: str) -> cfg.ConfigOpts:
    file = tmp_path / "watcher.conf"
    file.write_text(f"[watcher_planners.deployment]\n{text}\n", encoding="utf-8")
    found = cfg.ConfigOpts()
    found(args=[], default_config_files=[str(file)], default_config_dirs=[])
    return found


def engine(made: ActionPlan) -> str:
    return "role" if any(a.label == "join/deployment-100" for a in made.actions) else "task"


def test_the_engine_is_the_one_of_the_request_else_of_the_document_else_of_the_site(
    tmp_path: Path,
) -> None:
    site = conf(tmp_path, "deployment_engine = role\nmax_nodes = 9")
    value = document({"id": "t"})

    def chosen(*given: Any, **fields: Any) -> str:
        return engine(make_plan({**value, **fields}, None, *given, conf=site, check_types=False))

    assert engine(make_plan(value, check_types=False)) == "task"
    assert chosen() == "role"
    assert chosen(deployment_engine="task") == "task"
    assert chosen({"deployment_engine": "role"}, deployment_engine="task") == "role"
    limits = make_plan(value, conf=site, check_types=False).limits
    assert limits == {"node:*": 1, "busy:nodes": 9}


def test_a_wrong_option_of_the_document_is_told_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        planned(document({"id": "t"}, max_nodes=0, deployment_engine="tusk"))
    assert [m.path for m in refused.value.mistakes] == [("deployment_engine",), ("max_nodes",)]


def links(found: Mapping[str, Action]) -> int:
    return sum(len(a.parents) + len(a.needs) + sum(map(len, a.needs_any)) for a in found.values())


def test_all_on_all_others_cost_a_join_and_not_their_square() -> None:
    value = document({"id": "a"}, {"id": "b", "cross-depends": ["a"]}, nodes=97)
    found = planned(value)
    assert [a.label for a in found.values() if a.action_type == JOIN] == ["join/a@*"]
    assert links(found) == 2 * 97
    assert {a.needs for name, a in found.items() if name.endswith("/b")} == {
        (found["join/a@*"].uuid,)
    }
    told = message.write(plan(DeploymentPlanner, value, check_types=False))
    needed = told["nodes"][4]["tasks"][1]["requires"]
    assert {f"{link['node']}/{link['task']}" for link in needed} == {f"{i}/a" for i in range(1, 98)}


def test_one_of_all_on_all_others_cost_a_join_and_not_their_square() -> None:
    relation = {"name": "a", "policy": "any"}
    value = document({"id": "a"}, {"id": "b", "cross-depends": [relation]}, nodes=97)
    found = planned(value)
    (join,) = (a for a in found.values() if a.action_type == JOIN)
    assert (join.needs, len(join.needs_any[0]), links(found)) == ((), 97, 2 * 97)
    assert found["5/b"].needs == (join.uuid,)
    told = message.write(plan(DeploymentPlanner, value, check_types=False))
    group = told["nodes"][4]["tasks"][1]["requires_any"][0]
    assert {link["node"] for link in group} == {str(i) for i in range(1, 98)}


def test_many_that_wait_for_many_of_their_block_cost_a_join_and_not_their_square() -> None:
    tasks = [
        {"id": "a", "role": "x"},
        {"id": "b", "role": "y"},
        {"id": "c", "role": "y", "requires": "b", "cross-depends": [{"name": "a", "role": "x"}]},
    ]
    value = document(*tasks, nodes=194, serial=2)
    for node in value["nodes"][97:]:
        node["roles"] = ["y"]
    found = planned(value)
    assert {a.parents for name, a in found.items() if name.endswith("/b")} == {
        (found["join/serial:nodes/1"].uuid,)
    }
    assert links(found) == 5 * 97


def test_links_to_what_has_no_place_cost_no_search_for_deadlocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(deadlocks, "PlaceWaits")
    tasks = [
        {"id": "before"},
        {"id": "drain", "cross-depends": ["before"]},
        {"id": "upgrade", "requires": "drain"},
        {"id": "after", "cross-depends": ["upgrade"]},
    ]
    serial = [{"tasks": ["drain", "upgrade"], "nodes": 2}]
    assert len(planned(document(*tasks, nodes=9, serial=serial))) == 4 * 9 + 2


def test_who_is_on_both_sides_of_a_join_does_not_wait_for_itself() -> None:
    tasks = [
        {"id": "a", "role": ["x", "y"]},
        {"id": "b", "role": ["x", "y"], "cross-depends": [{"name": "/[ab]/", "role": "y"}]},
    ]
    value = document(*tasks, nodes=20)
    value["nodes"][0]["roles"] = ["y"]
    found = planned(value)
    name = {a.uuid: a.label for a in found.values()}
    assert [name[u] for u in found["1/b"].needs] == ["1/a"]
    assert [name[u] for u in found["2/b"].needs] == ["join//[ab]/@y"]


def test_equal_needs_are_one_object() -> None:
    value = document({"id": "s", "type": "stage"}, {"id": "a", "requires": "s"}, nodes=9)
    assert len({id(a.needs) for a in planned(value).values() if a.needs}) == 1


def test_warnings_have_file_and_line_also_of_other_files(tmp_path: Path) -> None:
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "tasks.yaml").write_text(
        "- {id: a, type: puppet, version: 2, role: x}\n- id: b\n  type: puppet\n  version: 2\n"
        "  role: x\n  requires:\n  - a\n  - nobody\n",
        encoding="utf-8",
    )
    file = tmp_path / "deployment.yaml"
    file.write_text(
        "kind: deployment\ntasks_files: [sets/tasks.yaml]\ntasks:\n"
        "- {id: c, type: puppet, version: 2, role: z}\nnodes: [{uid: 1, roles: [x]}]\n",
        encoding="utf-8",
    )
    made = make_plan(file, check_types=False)
    assert [a.label for a in made.actions] == ["1/a", "1/b"]
    role, task = (w for w in made.warnings if "not checked" not in w)
    assert role.startswith(f"{file}:4: tasks[0]: ")
    assert "'z'" in role
    assert task.startswith(f"{tmp_path}/sets/tasks.yaml:8: tasks[2].requires[1]: ")
    assert "'nobody'" in task


def test_a_mistake_in_another_file_has_its_line(tmp_path: Path) -> None:
    (tmp_path / "tasks.yaml").write_text("- {id: a, type: pupet}\n", encoding="utf-8")
    (tmp_path / "wrong.yaml").write_text("id: a\n", encoding="utf-8")
    head = "kind: deployment\nnodes: []\ntasks_files: "
    file = tmp_path / "deployment.yaml"
    file.write_text(f"{head}[tasks.yaml]\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"tasks\.yaml:1: tasks\[0\]\.type: 'pupet' is not"):
        make_plan(file)
    file.write_text(f"{head}[nowhere.yaml, wrong.yaml, gone.yaml]\n", encoding="utf-8")
    with pytest.raises(InvalidInput) as refused:
        make_plan(file)
    nowhere, wrong, gone = str(refused.value).splitlines()
    for line, name in ((nowhere, "nowhere"), (gone, "gone")):
        assert line.startswith(f"{tmp_path}/{name}.yaml: ")
        assert line.endswith(os.strerror(errno.ENOENT))
    assert wrong.startswith(f"{tmp_path}/wrong.yaml:1: ")
    assert "tasks_files[1]" in wrong


def test_what_changed_since_a_plan_is_told_by_what_it_is() -> None:
    tasks = [
        {"id": "a", "parameters": {"manifest": "a.pp", "modules": ["m"]}},
        {"id": "b", "requires": ["a"], "condition": "settings:on == true"},
        {"id": "c"},
        {"id": "d", "type": "shell", "parameters": {"command": "true"}},
        {"id": "gone"},
    ]
    before = document(*tasks, settings={"on": False}, durations={"c": 5})
    earlier = plan(DeploymentPlanner, before, check_types=False)
    tasks[0] = {**tasks[0], "parameters": {"manifest": "b.pp", "modules": []}}
    tasks[3] = {"id": "d", "parameters": {"manifest": "d.pp"}}
    now = document(*tasks[:4], {"id": "new"}, settings={"on": True}, durations={"c": 9})
    made = plan(
        DeploymentPlanner, {**now, "changed_since": applied(earlier).to_dict()}, check_types=False
    )
    short = earlier.uuid[:8]
    assert {a.label: a.reason for a in made.actions} == {
        "1/a": "its manifest, modules changed",
        "1/b": "its condition is true now",
        "1/d": "it was of type shell",
        "1/new": f"it is not in plan {short}",
    }
    assert f"no longer there since plan {short}: 1/gone" in made.warnings


def test_changed_since_wants_a_plan_of_a_deployment() -> None:
    other = {"version": "2.0", "uuid": "x", "planner": "weight", "actions": []}
    for value, sentence in (({}, "no action plan"), (other, "a plan of planner 'weight'")):
        with pytest.raises(InvalidInput, match=f"changed_since: {sentence}"):
            planned(document({"id": "t"}, changed_since=value))


def test_a_message_says_what_is_wrong_with_it() -> None:
    told = message.write(
        plan(
            DeploymentPlanner,
            document({"id": "a"}, {"id": "b", "requires": "a"}),
            PUPPET,
            check_types=False,
        )
    )
    tasks = told["nodes"][0]["tasks"]
    tasks[1]["requires"][0]["task"] = "nobody"
    tasks.append(json.loads(json.dumps(tasks[0])))
    with pytest.raises(InvalidInput) as refused:
        plan(DeploymentPlanner, told, check_types=False)
    unknown, name, number = refused.value.mistakes
    assert unknown.path == ("nodes", 0, "tasks", 1)
    assert "1/nobody" in unknown.text
    assert name.path == number.path == ("nodes", 0, "tasks", 2)
    assert (name.text[:6], number.text[:2]) == ("'1/a' ", "0 ")


@pytest.mark.parametrize("engine", ["task", "role"])
@pytest.mark.parametrize("hook", [{}, {"required_for": "deploy_start"}, {"requires": "deploy_end"}])
def test_a_message_names_the_engine(engine: str, hook: Mapping[str, Any]) -> None:
    stages = [{"id": name, "type": "stage"} for name in ("deploy_start", "deploy_end")]
    value = document(*stages, {"id": "t", **hook}, deployment_engine=engine)
    told = message.write(plan(DeploymentPlanner, value, check_types=False))
    assert told["deployment_engine"] == engine


def test_a_message_names_the_engine_of_what_changed() -> None:
    stage = {"id": "deploy_start", "type": "stage"}
    hook = {"id": "s", "required_for": "deploy_start"}
    value = document(stage, hook, {"id": "t"}, nodes=2)
    value["deployment_engine"] = "role"
    before = plan(DeploymentPlanner, {**value, "nodes": []}, check_types=False)
    value["changed_since"] = before.to_dict()
    told = message.write(plan(DeploymentPlanner, value, check_types=False))
    assert told["deployment_engine"] == "role"


def test_a_message_that_somebody_else_wrote_is_put_in_order() -> None:
    requires = {"requires": [{"node": 1, "task": "a"}, {"node": "sync", "task": "s"}]}
    told = {
        "kind": "deployment",
        "deployment_engine": "task",
        "nodes": [
            {"node": 2, "tasks": [{"task": "b", "type": "puppet", **requires}]},
            {"node": 1, "tasks": [{"task": "a", "type": "puppet", "parameters": {"x": "y"}}]},
            {"node": "sync", "tasks": [{"task": "s", "type": "anchor"}]},
        ],
    }
    made = plan(DeploymentPlanner, told, check_types=False)
    assert [a.label for a in made.actions] == ["1/a", "sync/s", "2/b"]
    first, _, last = made.actions
    assert first.input_parameters == {"x": "y", "node": "1"}
    assert last.tokens == ("type:puppet", "node:2", "task:b", "busy:nodes")
    assert len(last.needs) == 2
    assert made.limits == {"node:*": 1}


def test_a_loop_in_a_message_is_named() -> None:
    links = {x: {"requires": [{"node": "1", "task": x}]} for x in "ab"}
    tasks = [{"task": x, "type": "puppet", **links[y]} for x, y in ("ab", "ba")]
    nodes = [{"node": "1", "tasks": tasks}]
    told = {"kind": "deployment", "deployment_engine": "task", "nodes": nodes}
    with pytest.raises(InvalidPlan, match="a cycle: 1/a -> 1/b -> 1/a"):
        plan(DeploymentPlanner, told, check_types=False)


def test_only_a_deployment_has_a_message() -> None:
    made = ActionPlan(uuid="0" * 8, planner="weight", actions=())
    with pytest.raises(InvalidInput, match=r"message: plan 00000000 .*'weight'"):
        message.write(made)
