# SPDX-License-Identifier: Apache-2.0
"""Plans as values: there and back."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from planner.plan.model import Action, ActionPlan, Blocker, Effect, Touch, Trigger
from planner.plan.states import ActionState, Outcome, PlanState, StateReason

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)


def rich_plan(prefix: str = "u") -> ActionPlan:
    """A plan in which every field says something; ``prefix`` makes other uuids of it."""
    u = [f"{prefix}{i}" for i in range(5)]
    both = (u[0], u[1])
    return ActionPlan(
        uuid=f"{prefix}-plan",
        planner="events",
        name="n",
        created_at=NOW,
        limits={"node:*": 2, "type:nop": 1},
        efficacy_indicators=({"name": "released", "value": 2},),
        tolerances=({"name": "g", "nodes": ["1"], "failed_nodes": 1},),
        on_failure="pause",
        cloud="east",
        warnings=("careful",),
        actions=(
            Action(uuid=u[0], action_type="nop", name="a", tokens=("type:nop", "node:c1")),
            Action(uuid=u[1], action_type="nop", name="b", input_parameters={"x": [1, {"y": 2}]}),
            Action(uuid=u[2], action_type="nop", name="c", parents=both, needs=(u[0],)),
            Action(uuid=u[3], action_type="nop", name="d", parents=both, needs_any=(both, (u[2],))),
            Action(
                uuid=u[4],
                action_type="nop",
                name="e",
                resource_id="r",
                description="what",
                reason="why",
                triggers=(Trigger(u[3], (Outcome.CHANGED, Outcome.CREATED)),),
                estimate_s=1.5,
                timeout_s=10.0,
                retries=2,
                state=ActionState.FAILED,
                outcome=Outcome.ERROR,
                status_message="broken",
                started_at=NOW,
                ended_at=NOW,
                attempts=3,
            ),
        ),
    )


def with_action(plan: ActionPlan, i: int, **changed: Any) -> ActionPlan:
    actions = list(plan.actions)
    actions[i] = replace(actions[i], **changed)
    return replace(plan, actions=tuple(actions))


def test_a_plan_comes_back_from_json_as_it_was() -> None:
    plan = rich_plan()
    back = ActionPlan.from_dict(json.loads(json.dumps(plan.to_dict())))
    assert back == plan
    assert back.digest == plan.digest


def test_a_plan_written_twice_gives_the_same_bytes() -> None:
    plan = rich_plan()
    back = ActionPlan.from_dict(plan.to_dict())
    assert json.dumps(back.to_dict()) == json.dumps(plan.to_dict())


def test_parents_that_are_equal_are_one_object_after_reading() -> None:
    back = ActionPlan.from_dict(json.loads(json.dumps(rich_plan().to_dict())))
    c, d = back.actions[2:4]
    assert c.parents is d.parents
    assert d.needs_any[0] is d.parents


def test_fields_that_are_left_out_have_their_defaults() -> None:
    read = ActionPlan.from_dict(
        {"uuid": "p", "planner": "x", "actions": [{"uuid": "a", "action_type": "nop"}]}
    )
    assert read == ActionPlan(uuid="p", planner="x", actions=(Action(uuid="a", action_type="nop"),))


@pytest.mark.parametrize(
    ("field", "kind"),
    [("state", ActionState), ("outcome", Outcome), ("state_reason", StateReason)],
)
def test_words_of_an_action_are_members_of_their_enumerations(field: str, kind: Any) -> None:
    words = {"uuid": "a", "action_type": "nop"}
    for member in kind:
        assert getattr(Action.from_dict({**words, field: str(member)}), field) is member
    with pytest.raises(ValueError, match="ASLEEP"):
        Action.from_dict({**words, field: "ASLEEP"})


def test_a_field_that_is_not_known_is_refused() -> None:
    with pytest.raises(TypeError, match="colour"):
        ActionPlan.from_dict({"uuid": "p", "planner": "x", "actions": [], "colour": "red"})


def test_a_plan_does_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        rich_plan().state = PlanState.PENDING  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        rich_plan().actions[0].state = ActionState.ONGOING  # type: ignore[misc]


def test_lists_and_tuples_make_the_same_plan() -> None:
    assert replace(rich_plan(), tolerances=list(rich_plan().tolerances)) == rich_plan()


def test_what_must_have_ended_is_parents_then_needs_then_sources_each_once() -> None:
    action = Action(
        uuid="x",
        action_type="nop",
        parents=("a", "b"),
        needs=("b", "c"),
        needs_any=(("z",),),
        triggers=(Trigger("c", (Outcome.OK,)), Trigger("d", (Outcome.OK,))),
    )
    assert action.before() == ("a", "b", "c", "d")


def test_blockers_stand_in_a_plan_that_has_some() -> None:
    blocked = with_action(rich_plan(), 4, blocked_by=(Blocker("u2", (Outcome.ERROR,)),))
    written = blocked.to_dict()
    assert written["actions"][4]["blocked_by"] == [{"action": "u2", "outcomes": ["error"]}]
    assert "blocked_by" not in written["actions"][3]
    assert ActionPlan.from_dict(written) == blocked


def test_an_action_without_a_name_is_called_by_the_beginning_of_its_uuid() -> None:
    assert Action(uuid="0123456789", action_type="nop").label == "01234567"


@pytest.mark.parametrize("text", ["node", ":c1", "node:", "eats node:c1", "uses  ", ""])
def test_a_touch_that_is_none_is_refused_with_what_is_accepted(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a touch.*leaves, enters"):
        Touch.parse(text)


@pytest.mark.parametrize("effect", Effect)
def test_a_touch_is_read_as_it_is_written(effect: Effect) -> None:
    assert Touch.parse(f"{effect} file:/etc/a:b") == Touch("file:/etc/a:b", effect)
