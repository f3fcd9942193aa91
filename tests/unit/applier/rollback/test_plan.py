# SPDX-License-Identifier: Apache-2.0
"""Plans that undo plans: what is in them, in which order, and at what size."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

import pytest

from applier.errors import PlanConflict
from applier.rollback import rollback
from planner.plan.graph import order_graph, validate
from planner.plan.model import JOIN, Action, ActionPlan, Effect, Touch, Trigger
from planner.plan.states import ActionState, Outcome, PlanState

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
REVERTIBLE = {"migrate": True, "resize": False}


def is_revertible(action):
    return REVERTIBLE.get(action.action_type, False)


def done(name, action_type="migrate", **fields):
    known = {"state": ActionState.SUCCEEDED, "outcome": Outcome.CHANGED, **fields}
    return Action(uuid=name, name=name, action_type=action_type, **known)


def touched(revert):
    """Return what a revert touches: these tests write it into its parameters."""
    given = revert.input_parameters["parameters"]
    return [Touch(r, Effect(e)) for r, e in given.items() if r.startswith("node:")]


def rolled_back(*actions, **fields):
    known = {"planner": "weight", "state": PlanState.FAILED, **fields}
    plan = ActionPlan(uuid="plan", actions=actions, **known)
    numbers = count()
    made = rollback(plan, is_revertible, touched, now=NOW, new_id=lambda: f"new-{next(numbers)}")
    validate(made.actions)
    return made


def comes_after(plan, kinds=("order", "need")):
    """Return for each revert the reverts before it, also through joins and groups."""
    names = {a.uuid: a.name for a in plan.actions}
    links = [(a, b) for a, b, kind in order_graph(plan).edges(data="kind") if kind in kinds]

    def before(uuid):
        for one, other in links:
            if other == uuid:
                yield from [names[one]] if names.get(one) else before(one)

    return {a.name: sorted(set(before(a.uuid))) for a in plan.actions if a.name}


def test_what_was_done_is_undone_last_first_under_the_same_limits():
    first = done("first", tokens=("instance:a",), timeout_s=9.0, input_parameters={"x": 1})
    plan = rolled_back(first, done("second", parents=("first",)), limits={"node:*": 1})
    assert [a.name for a in plan.actions] == ["revert-second", "revert-first"]
    made = plan.actions[1]
    assert made.action_type == "revert"
    assert made.input_parameters == {
        "action_type": "migrate",
        "parameters": {"x": 1},
        "undoes": {"plan": "plan", "action": "first"},
    }
    assert (made.tokens, made.timeout_s) == (("instance:a",), 9.0)
    assert (made.parents, made.needs) == ((plan.actions[0].uuid,), ())
    assert (made.state, plan.state) == (ActionState.PENDING, PlanState.RECOMMENDED)
    assert (plan.planner, plan.limits, plan.created_at) == ("rollback", {"node:*": 1}, NOW)


@pytest.mark.parametrize("link", [{"needs": ("a",)}, {"needs_any": (("a",),)}])
def test_what_was_needed_is_undone_only_if_what_needed_it_was(link):
    plan = rolled_back(done("a"), done("b", **link))
    assert comes_after(plan, ["need"]) == {"revert-b": [], "revert-a": ["revert-b"]}


def test_what_was_set_off_is_undone_before_what_set_it_off():
    plan = rolled_back(done("a"), done("b", triggers=(Trigger("a", (Outcome.CHANGED,)),)))
    assert comes_after(plan) == {"revert-b": [], "revert-a": ["revert-b"]}


def test_the_order_goes_through_what_is_left_out():
    failed = done("failed", state=ActionState.FAILED, outcome=Outcome.FAILED, needs=("a",))
    plan = rolled_back(
        done("a"), failed, done("same", outcome=Outcome.OK, parents=("failed",)),
        done("b", parents=("same",)), done("last", "resize", parents=("b",)),
    )  # fmt: skip
    assert comes_after(plan) == {"revert-b": [], "revert-a": ["revert-b"]}
    assert [a.action_type for a in plan.actions] == ["revert", JOIN, JOIN, "revert"]


def test_what_cannot_be_undone_is_said():
    plan = rolled_back(
        done("a"),
        done("b", "resize"),
        done("c", "third_partys"),
        done("d", state=ActionState.UNKNOWN),
    )
    b, c, d = (warning.split() for warning in plan.warnings)
    assert (b[0], c[0], d[0]) == ("b", "c", "d")
    assert ("resize" in b, "third_partys" in c, "doubt," in d) == (True, True, True)


def test_nothing_to_undo_is_refused():
    with pytest.raises(PlanConflict, match=r"^plan \S+: nothing that it did"):
        rolled_back(done("a", "resize"))


@pytest.mark.parametrize(
    ("state", "way"),
    [("PENDING", "cancel"), ("ONGOING", "pause or cancel"), ("CANCELLING", "cancel")],
)
def test_a_plan_that_goes_on_is_refused(state, way):
    with pytest.raises(PlanConflict, match=rf"^plan \S+: it is {state}: {way} it before"):
        rolled_back(done("a"), state=PlanState(state))


def test_sets_that_many_share_go_through_a_join():
    """A thousand actions after a thousand need two thousand links, not a million."""
    first = [done(f"a{i}") for i in range(1000)]
    shared = tuple(a.uuid for a in first)
    second = [done(f"b{i}", parents=shared) for i in range(1000)]
    plan = rolled_back(*first, *second)
    assert sum(len(a.before()) for a in plan.actions) == 2000
    assert len(plan.actions) == 2001


def test_a_plan_that_stands_in_another_order_is_undone_all_the_same():
    plan = rolled_back(replace(done("b"), parents=("a",)), done("a"))
    assert [a.name for a in plan.actions] == ["revert-b", "revert-a"]


def test_waiting_leaves_nothing_to_undo():
    plan = rolled_back(done("a"), done("b", "pause", parents=("a",)), done("c", parents=("b",)))
    assert comes_after(plan) == {"revert-c": [], "revert-a": ["revert-c"]}
    assert plan.warnings == ()


ENABLES = {"node:c1": "enables"}
ENTERS = {"node:c1": "enters"}


def test_a_host_is_enabled_before_moves_go_back_onto_it():
    """Disabled, emptied, switched off; then something else."""
    plan = rolled_back(
        done("disable", input_parameters=ENABLES),
        done("move-1", input_parameters=ENTERS, parents=("disable",), needs=("disable",)),
        done("move-2", input_parameters=ENTERS, parents=("move-1",), needs=("disable",)),
        done("off", parents=("move-2",), needs=("move-1", "move-2"), input_parameters={}),
        done("other", parents=("off",), input_parameters={}),
    )
    assert comes_after(plan) == {
        "revert-other": [],
        "revert-off": ["revert-other"],
        "revert-disable": ["revert-off"],
        "revert-move-2": ["revert-disable", "revert-off"],
        "revert-move-1": ["revert-disable", "revert-move-2", "revert-off"],
    }
    assert comes_after(plan, ("need",))["revert-move-1"] == ["revert-disable", "revert-off"]
    assert [a.name for a in plan.actions][:3] == ["revert-other", "revert-off", "revert-disable"]


def test_what_was_enabled_again_is_disabled_and_enabled_before_moves_go_back():
    plan = rolled_back(
        done("disable", input_parameters=ENABLES),
        done("move", input_parameters=ENTERS, needs=("disable",)),
        done("enable", input_parameters={"node:c1": "disables"}, needs=("move", "disable")),
    )
    assert [a.name for a in plan.actions] == ["revert-enable", "revert-disable", "revert-move"]


def test_hosts_in_each_others_way_stay_last_first_and_that_is_told():
    c1, c2 = {"node:c1": "enters"}, {"node:c2": "enters"}
    plan = rolled_back(
        done("disable-1", input_parameters={"node:c1": "enables"}),
        done("disable-2", input_parameters={"node:c2": "enables"}),
        done("a-1", input_parameters=c1, needs=("disable-1",)),
        done("a-2", input_parameters=c2, needs=("a-1", "disable-2")),
        done("b-2", input_parameters=c2, needs=("disable-2",)),
        done("b-1", input_parameters=c1, needs=("b-2", "disable-1")),
    )
    (warning,) = plan.warnings
    assert "enable them by hand" in warning
    assert {a.name for a in plan.actions[-2:]} == {"revert-disable-1", "revert-disable-2"}
