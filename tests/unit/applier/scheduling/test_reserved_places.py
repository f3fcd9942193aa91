# SPDX-License-Identifier: Apache-2.0
"""Places after a resume, after failures and changed limits: who has one, and who gets none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from applier.contracts import Report, Request
from applier.scheduling import waiting
from applier.scheduling.decisions import WaitKind
from applier.scheduling.scheduler import Scheduler
from applier.scheduling.submissions import Concurrency
from applier.scheduling.verdict import ends
from applier.testing.sample_plans import new_plan
from planner.plan.model import Action
from planner.plan.place_rules import HeldPlace, PlaceRule
from planner.plan.states import ActionState, Outcome

TOKEN = "serial:p"  # noqa: S105
DONE = {"state": ActionState.SUCCEEDED, "attempts": 1}
PLAIN = PlaceRule()
FAILED = {"state": ActionState.FAILED, "attempts": 1}


def resumed(*actions: Action, rule: PlaceRule = PLAIN, limit: int = 1, **more: Any) -> Scheduler:
    """Return the scheduler of a run in which so many nodes at a time may be under way."""
    return Scheduler(
        actions,
        waiting.links(actions, waiting.completed(actions, ends(actions))),
        Concurrency(limits={TOKEN: limit}, max_workers=4, places={TOKEN: rule}),
        **more,
    )


def action(node: str, step: int, **fields: object) -> Action:
    uuid = f"{node}/{step}"
    places = (HeldPlace(TOKEN, node),)
    return Action(uuid=uuid, action_type="nop", places=places, **fields)  # type: ignore[arg-type]


def well(uuid: str) -> Report:
    return Report(
        uuid=uuid,
        old=ActionState.ONGOING,
        state=ActionState.SUCCEEDED,
        outcome=Outcome.CHANGED,
    )


def test_a_reserved_place_is_lent_to_whom_the_half_done_node_waits_for() -> None:
    run = resumed(action("b", 1), action("a", 1, **DONE), action("a", 2, parents=("a/1", "b/1")))
    assert run.begin().starts == ["b/1"]
    assert run.decide([well("b/1")], []).starts == ["a/2"]


def test_a_node_that_failed_before_a_pause_keeps_its_place_after_it() -> None:
    decisions = resumed(action("a", 1, **FAILED), action("b", 1)).begin()
    assert decisions.starts == []
    (ended,) = decisions.ended
    assert (ended.uuid, ended.state) == ("b/1", ActionState.CANCELLED)
    assert f"{TOKEN} is kept by a" in str(ended.message)
    # A second place is free all the same; and with keep=False none is kept.
    assert resumed(action("a", 1, **FAILED), action("b", 1), limit=2).begin().starts == ["b/1"]
    given_back = resumed(action("a", 1, **FAILED), action("b", 1), rule=PlaceRule(keep=False))
    assert given_back.begin().starts == ["b/1"]


def test_an_action_that_a_window_holds_back_gives_the_place_to_others() -> None:
    class OnlyB:
        """Lets node b start alone."""

        def holds(self, action: Action, *, begins: bool) -> bool:
            return action.uuid != "b/1"

    run = resumed(action("a", 1), action("b", 1), holding=OnlyB())
    assert run.begin().starts == ["b/1"]


def test_no_other_node_of_a_rack_begins_after_too_many_of_it_have_failed() -> None:
    def node(name: str, rack: str) -> Action:
        places = (HeldPlace(TOKEN, name), HeldPlace(f"{TOKEN}:{rack}", name))
        return Action(uuid=name, action_type="nop", places=places)

    for keep in (True, False):
        nodes = [node("a1", "a"), node("a2", "a"), node("b1", "b"), node("b2", "b")]
        rack = PlaceRule(keep=keep, stop_after=0)
        rules = {TOKEN: PlaceRule(keep=keep), f"{TOKEN}:a": rack, f"{TOKEN}:b": rack}
        limits = {TOKEN: 2, f"{TOKEN}:a": 2, f"{TOKEN}:b": 2}
        concurrency = Concurrency(limits=limits, max_workers=1, places=rules)
        run = Scheduler(nodes, waiting.links(nodes, waiting.completed(nodes, {})), concurrency)
        assert run.begin().starts == ["a1"]
        failed = Report(uuid="a1", old=ActionState.ONGOING, state=ActionState.FAILED)
        assert run.decide([failed]).starts == ["b1"]
        assert run.decide([well("b1")]).starts == ["b2"]
        (left,) = run.decide([well("b2")]).ended
        assert (left.uuid, left.state) == ("a2", ActionState.CANCELLED)
        assert f"{TOKEN}:a" in str(left.message)


# Actions that are held back although they could start: no tokens, no dead ends.


class Held:
    """Holds the actions of these names."""

    def __init__(self, *names):
        self.names, self.told = set(names), []

    def holds(self, action, *, begins):
        return action.name in self.names

    def again_s(self):
        return 1.0

    def ended(self):
        pass

    def tell(self, number):
        self.told.append(number)


def scheduler(holding, *names, tokens=(), limits=None, max_workers=9):
    actions = [replace(a, parents=(), tokens=tokens) for a in new_plan(*names).actions]
    made = Scheduler(
        actions,
        waiting.links(actions, ()),
        Concurrency(limits=limits or {}, max_workers=max_workers),
        holding=holding,
    )
    return made, {a.name: a.uuid for a in actions}


def done(uuid):
    return Report(
        uuid=uuid,
        old=ActionState.ONGOING,
        state=ActionState.SUCCEEDED,
        outcome=Outcome.CHANGED,
    )


def test_what_is_held_takes_no_token_from_others():
    held = Held("a")
    made, uuids = scheduler(held, "a", "b", tokens=("node:c",), limits={"node:*": 1})
    assert made.begin().starts == [uuids["b"]]
    assert len(made.held) == 1
    assert made.why(uuids["a"]).kind is WaitKind.WINDOW
    assert made.decide([done(uuids["b"])]).starts == []
    assert not made.done
    held.names.clear()
    assert made.decide([], reopened=True).starts == [uuids["a"]]
    assert made.decide([done(uuids["a"])]).ended == []
    assert made.done


def test_what_is_still_held_waits_on():
    held = Held("a", "b")
    made, uuids = scheduler(held, "a", "b")
    assert made.begin().starts == []
    held.names.remove("b")
    assert made.decide([], reopened=True).starts == [uuids["b"]]
    assert len(made.held) == 1


def test_what_is_held_is_skipped_and_cancelled_like_any_other():
    made, uuids = scheduler(Held("a", "b"), "a", "b")
    made.begin()
    skip = Request(verb="skip", who="ada", action=uuids["a"])
    (report,) = made.decide([], [skip]).ended
    assert report.state is ActionState.SKIPPED
    (report,) = made.decide([], [Request(verb="cancel", who="ada")]).ended
    assert (report.uuid, report.state) == (uuids["b"], ActionState.CANCELLED)
    assert made.done
