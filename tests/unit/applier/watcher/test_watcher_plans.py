# SPDX-License-Identifier: Apache-2.0
"""Watcher's rows as an action plan, plans of ours as its rows, and its option of touches."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from oslo_config import cfg

from applier.actions.instance_moves import Migrate
from applier.actions.instances import Shelve
from applier.store import Attempt
from applier.watcher.engine_options import ENGINE_OPTIONS, SECTION, TOUCHES
from applier.watcher.plans import action_rows, plan_of, plan_solution
from planner.errors import InvalidInput, InvalidPlan
from planner.plan.model import JOIN, Action, ActionPlan, Effect, Touch
from planner.plan.states import ActionState, PlanState

TYPES = {"migrate": Migrate, "shelve": Shelve}
INSTANCE = "6a1f0001-0000-4000-8000-000000000001"
AT = datetime(2026, 1, 2, tzinfo=UTC)
PLAN = SimpleNamespace(
    uuid="plan", state="ONGOING", status_message=None, created_at=None, updated_at=None
)


def row(uuid, kind="third", parents=(), state="PENDING", message=None, **parameters):
    return SimpleNamespace(
        uuid=uuid,
        action_type=kind,
        parents=list(parents),
        state=state,
        status_message=message,
        input_parameters=parameters,
    )


def plan(*rows, begun=None):
    return plan_of(PLAN, rows, TYPES, {"node:*": 1}, begun or {})


def test_needs_and_tokens_are_found_from_what_the_types_touch():
    moved = row("a", "migrate", resource_id=INSTANCE, source_node="c1", destination_node="c2")
    shelved = row("b", "shelve", ["a"], resource_id=INSTANCE)
    a, b = plan(moved, shelved).actions
    assert a.tokens == ("type:migrate", f"instance:{INSTANCE}", "node:c1", "node:c2")
    assert (b.parents, b.needs) == (("a",), ("a",))


def test_actions_of_unknown_types_have_order_only():
    _, b = plan(row("a"), row("b", parents=["a"])).actions
    assert (b.parents, b.needs, b.tokens) == (("a",), (), ("type:third",))


def test_rows_may_stand_before_their_parents():
    found = plan(row("b", parents=["a"]), row("a"))
    assert [action.uuid for action in found.actions] == ["a", "b"]
    assert (found.uuid, found.state, dict(found.limits)) == (
        "plan",
        PlanState.ONGOING,
        {"node:*": 1},
    )


def test_equal_parents_are_one_object():
    rows = [row("a"), row("b"), *(row(f"c{i}", parents=["a", "b"]) for i in range(3))]
    assert len({id(action.parents) for action in plan(*rows).actions[2:]}) == 1


def test_a_parent_that_is_named_twice_counts_once():
    assert plan(row("a"), row("b", parents=["a", "a"])).actions[1].parents == ("a",)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([row("a", parents=["b"]), row("b", parents=["a"])], "a cycle: a -> b -> a"),
        ([row("a", parents=["none"])], "a comes after none"),
        ([row("a", parents=["a"])], "a cycle: a -> a"),
    ],
)
def test_parents_that_cannot_be_are_refused_with_a_sentence(rows, sentence):
    with pytest.raises(InvalidPlan, match=sentence):
        plan(*rows)


def test_attempts_tell_what_is_in_doubt_and_when_it_began():
    doubtful = Attempt(number=1, started_at=AT, ended_at=AT, state=ActionState.UNKNOWN)
    failed = doubtful._replace(state=ActionState.FAILED)
    begun = {"a": [failed, doubtful], "b": [Attempt(number=1, started_at=AT)]}
    a, b, c = plan(
        row("a", state="FAILED"), row("b", state="ONGOING"), row("c", state="FAILED"), begun=begun
    ).actions
    assert [x.state for x in (a, b, c)] == [
        ActionState.UNKNOWN,
        ActionState.ONGOING,
        ActionState.FAILED,
    ]
    assert (a.attempts, b.started_at, b.ended_at, c.attempts) == (2, AT, None, 0)


# Plans of ours as rows of Watcher: joins flattened, needs among the parents.


def made_of(*actions: Action) -> ActionPlan:
    return ActionPlan(uuid="p", planner="weight", actions=actions)


def test_what_follows_a_join_follows_all_before_it() -> None:
    made = made_of(
        Action(uuid="a", action_type="nop"),
        Action(uuid="b", action_type="nop"),
        Action(uuid="j", action_type=JOIN, parents=("a", "b")),
        Action(uuid="c", action_type="nop", parents=("j",)),
        Action(uuid="k", action_type=JOIN, parents=("j", "c")),
        Action(uuid="d", action_type="nop", parents=("k",), needs=("b",)),
    )
    found = {row["uuid"]: row["parents"] for row in action_rows(made)}
    assert found == {"a": [], "b": [], "c": ["a", "b"], "d": ["a", "b", "c"]}


def test_needs_stand_among_the_parents_once() -> None:
    made = made_of(
        Action(uuid="a", action_type="nop"),
        Action(uuid="b", action_type="nop"),
        Action(uuid="c", action_type="nop", parents=("a",), needs=("a", "b")),
    )
    assert action_rows(made)[2]["parents"] == ["a", "b"]
    assert {row["state"] for row in action_rows(made)} == {"PENDING"}


# A solution of a strategy, planned inside Watcher.


RESIZE = {
    "action_type": "resize",
    "input_parameters": {"resource_id": INSTANCE, "flavor": "m1.small"},
}
SLOTS = "[watcher_planners.weight]\nordering = slots\n"
OURS = f"{SLOTS}[watcher_applier]\nworkflow_engine = actionplan\n[{SECTION}]\nlimits = "


@pytest.fixture
def of_solution(tmp_path):
    """Return a function that plans a nop and a resize: gives limits, and whose host it asked."""

    def planned(planner, text=""):
        (tmp_path / "watcher.conf").write_text(text)
        conf, asked = cfg.ConfigOpts(), []
        conf(["--config-file", str(tmp_path / "watcher.conf")], project="watcher")
        conf.register_opts(ENGINE_OPTIONS, group=SECTION)
        conf.register_opt(cfg.StrOpt("workflow_engine", default="taskflow"), "watcher_applier")
        actions = [{"action_type": "nop"}, RESIZE]
        found = plan_solution(actions, planner, conf, lambda uuid: asked.append(uuid) or "c1")
        return dict(found.limits), asked

    return planned


def test_a_host_is_asked_for_by_the_planner_that_orders_by_hosts(of_solution):
    assert of_solution("weight") == ({}, [])
    assert of_solution("workload_stabilization") == ({}, [INSTANCE])


def test_limits_that_no_engine_would_keep_are_refused_with_their_place(of_solution):
    for kept in ("type:nop=1, type:resize=2", "type:*=1"):
        limits, _ = of_solution("weight", OURS + kept)
        assert limits == {"type:nop": 1, "type:resize": 2}
    for text, lost in ((SLOTS, "type:nop=1, type:resize=2"), (f"{OURS}type:*=2", "type:nop=1")):
        with pytest.raises(InvalidInput) as refused:
            of_solution("weight", text)
        assert f"limits = {lost} is missing" in str(refused.value)
        assert ("workflow_engine =" in str(refused.value)) is (text == SLOTS)


# The option ``touches`` of the engine inside Watcher.


def test_types_stand_on_lines_or_between_semicolons():
    table = TOUCHES(
        "rack: instance:{resource_id}, leaves node:{from}\nother: node:{host}; third: volume:v1"
    )
    assert list(table) == ["rack", "other", "third"]
    assert table["rack"].of({"resource_id": "i1", "from": "c1"}) == (
        Touch("instance:i1"),
        Touch("node:c1", Effect.LEAVES),
    )
    assert TOUCHES(TOUCHES._formatter(table)) == table


def test_a_touch_whose_parameter_is_missing_is_left_out():
    table = TOUCHES("rack: instance:{resource_id}, node:{host}")
    assert table["rack"].of({"resource_id": "i1", "host": None}) == (Touch("instance:i1"),)


def test_all_mistakes_are_named():
    with pytest.raises(ValueError, match="eats") as refusal:
        TOUCHES("rack: eats node:{host}; nothing; two: node:a; two: node:b")
    text = str(refusal.value)
    assert "'eats node:{host}' is not a touch" in text
    assert "'nothing' is not TYPE" in text
    assert "two has two entries" in text
