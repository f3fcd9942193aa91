# SPDX-License-Identifier: Apache-2.0
"""Who has a place after a resume, a failure or a window, and which nodes finish before a halt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from applier.contracts import Report, Request
from applier.scheduling import waiting
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.decisions import Decisions, HaltReason, WaitKind
from applier.scheduling.failures import FailureRules, OnFailure, TypePolicy
from applier.scheduling.scheduler import NO_FAILURE_RULES, Scheduler
from applier.scheduling.verdict import ends
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


def well(uuid: str, state: ActionState = ActionState.SUCCEEDED) -> Report:
    """Return the report of an end, which is a good one unless a state is given."""
    outcome = Outcome.CHANGED if state is ActionState.SUCCEEDED else Outcome.FAILED
    return Report(uuid=uuid, old=ActionState.ONGOING, state=state, outcome=outcome)


def test_a_reserved_place_is_lent_to_whom_the_half_done_node_waits_for() -> None:
    run = resumed(action("b", 1), action("a", 1, **DONE), action("a", 2, parents=("a/1", "b/1")))
    assert run.begin().starts == ["b/1"]
    assert run.decide([well("b/1")], []).starts == ["a/2"]


def test_a_node_that_failed_before_a_pause_keeps_its_place_after_it() -> None:
    decisions = resumed(action("a", 1, **FAILED), action("b", 1)).begin()
    assert decisions.starts == []
    (ended,) = decisions.ended
    assert (ended.uuid, ended.state) == ("b/1", ActionState.CANCELLED)
    assert "a did not end well, so that no other may begin" in str(ended.message)
    # A second place is free all the same; and with keep=False none is kept.
    assert resumed(action("a", 1, **FAILED), action("b", 1), limit=2).begin().starts == ["b/1"]
    given_back = resumed(action("a", 1, **FAILED), action("b", 1), rule=PlaceRule(keep=False))
    assert given_back.begin().starts == ["b/1"]


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


class Held:
    """Holds the actions of these uuids."""

    def __init__(self, *uuids: str) -> None:
        self.uuids = set(uuids)

    def holds(self, action: Action, *, begins: bool) -> bool:
        return action.uuid in self.uuids


def test_what_a_window_holds_takes_no_place_from_others_until_it_opens() -> None:
    held = Held("a/1")
    run = resumed(action("a", 1), action("b", 1), holding=held)
    assert run.begin().starts == ["b/1"]
    assert len(run.held) == 1
    why = run.why("a/1")
    assert why is not None
    assert why.kind is WaitKind.WINDOW
    assert run.decide([well("b/1")]).starts == []
    assert not run.done
    held.uuids.clear()
    assert run.decide([], reopened=True).starts == ["a/1"]
    assert run.decide([well("a/1")]).ended == []
    assert run.done


def test_what_is_still_held_waits_on_and_is_skipped_and_cancelled_like_any_other() -> None:
    held = Held("a/1", "b/1", "c/1")
    run = resumed(*(action(name, 1) for name in "abc"), limit=3, holding=held)
    assert run.begin().starts == []
    held.uuids.remove("c/1")
    assert run.decide([], reopened=True).starts == ["c/1"]
    assert len(run.held) == 2
    (report,) = run.decide([], [Request(verb="skip", who="ada", action="a/1")]).ended
    assert report.state is ActionState.SKIPPED
    (report,) = run.decide([], [Request(verb="cancel", who="ada")]).ended
    assert (report.uuid, report.state) == ("b/1", ActionState.CANCELLED)


# A pause, a cancel and rules about failures let the nodes that have begun finish.


def steps(*nodes: str, number: int = 3, **fields: Any) -> list[Action]:
    """Return actions such as ``a/1``, each of which needs the one before on its node."""
    return [
        action(node, k, needs=(f"{node}/{k - 1}",) if k > 1 else (), **fields)
        for node in nodes
        for k in range(1, number + 1)
    ]


def started(
    actions: Iterable[Action],
    limit: int = 1,
    failures: FailureRules = NO_FAILURE_RULES,
    **rule: Any,
) -> Scheduler:
    """Return the scheduler of a run that has begun."""
    run = resumed(*actions, limit=limit, failures=failures, **rule)
    run.begin()
    return run


def ended(run: Scheduler, uuid: str, *verbs: str, well_done: bool = True) -> Decisions:
    """Return the decisions after the end of an action, with requests at the same time."""
    report = well(uuid, ActionState.SUCCEEDED if well_done else ActionState.FAILED)
    return run.decide([report], [Request(verb=verb, who="ann", number=1) for verb in verbs])


def states(made: Decisions) -> dict[str, ActionState]:
    return {report.uuid: report.state for report in made.ended}


def test_pause_now_stops_in_the_middle_of_a_node_even_after_a_pause() -> None:
    for verbs in (["pause-now"], ["pause", "pause-now"]):
        run = started(steps("a", "b"))
        assert ended(run, "a/1", *verbs).starts == [], verbs
        assert run.done


def test_a_node_that_finishes_runs_what_comes_before_its_steps() -> None:
    first, last = steps("a", number=2)
    outside = Action(uuid="outside", action_type="nop", parents=("a/1",))
    other = Action(uuid="other", action_type="nop", parents=("a/1",))
    last = Action(uuid="a/2", action_type="nop", needs=("outside",), places=last.places)
    run = started([first, outside, other, last])
    assert ended(run, "a/1", "pause").starts == ["outside"]
    assert ended(run, "outside").starts == ["a/2"]
    ended(run, "a/2")
    assert run.done


def test_a_cancelled_plan_ends_when_the_begun_node_has_and_cancels_the_rest_at_once() -> None:
    run = started(steps("a", "b", number=2))
    made = ended(run, "a/1", "cancel")
    assert (made.starts, made.stops) == (["a/2"], [])
    assert states(made) == {"b/1": ActionState.CANCELLED, "b/2": ActionState.CANCELLED}
    assert ended(run, "a/2").cancelling is None
    assert (run.done, run.stopped) == (True, HaltReason.CANCELLED)


def test_cancel_now_stops_the_begun_node_too_even_after_a_cancel() -> None:
    run = started(steps("a", "b", number=2), limit=2)
    assert ended(run, "a/1", "cancel").stops == []
    made = run.decide([], [Request(verb="cancel-now", who="ann", number=2)])
    assert sorted(made.stops) == ["a/2", "b/1"]
    assert states(made) == {"b/2": ActionState.CANCELLED}


def test_a_step_that_fails_while_its_node_finishes_is_retried() -> None:
    rules = FailureRules(policies={"nop": TypePolicy(retries=1, retry_delay_s=0)})
    for verb in ("pause", "cancel"):
        run = started(steps("a", "b", number=2), failures=rules)
        ended(run, "a/1", verb)
        made = ended(run, "a/2", well_done=False)
        assert made.delays == [("a/2", 0)]
        assert run.decide([], elapsed=["a/2"]).starts == ["a/2"]


def test_a_failure_that_pauses_the_plan_lets_the_other_nodes_finish() -> None:
    run = started(steps("a", "b", "c", number=2), 2, FailureRules(on_failure=OnFailure.PAUSE))
    made = ended(run, "a/1", well_done=False)
    assert (run.stopped, made.starts) == (HaltReason.PAUSED, [])
    assert ended(run, "b/1").starts == ["b/2"]
    ended(run, "b/2")
    assert run.done


def test_more_failed_nodes_than_tolerated_cancel_what_has_not_begun() -> None:
    tolerance = {"name": "web", "nodes": ["a"], "failed_nodes": 0}
    rules = FailureRules(tolerances=[tolerance])
    mine = [*steps("a", number=2, tokens=("node:a",)), *steps("b", "c", number=2)]
    run = started(mine, 2, rules)
    made = ended(run, "a/1", well_done=False)
    assert states(made) == {
        "a/2": ActionState.FAILED_DEPENDENCIES,
        "c/1": ActionState.CANCELLED,
        "c/2": ActionState.CANCELLED,
    }
    assert ended(run, "b/1").starts == ["b/2"]
    ended(run, "b/2")
    assert (run.done, run.stopped) == (True, HaltReason.EXCEEDED)


def test_an_applier_that_ends_lets_no_node_finish_whatever_was_asked_before() -> None:
    for verb, reason in (("pause", HaltReason.PAUSED), ("cancel", HaltReason.CANCELLED)):
        run = started(steps("a", "b"))
        assert ended(run, "a/1", verb).starts == ["a/2"]
        assert ended(run, "a/2", "hand_back").starts == []
        assert (run.done, run.stopped) == (True, reason)


def test_what_finishes_says_why_it_waits_and_what_does_not_start_says_nothing() -> None:
    run = started(steps("a", "b"))
    ended(run, "a/1", "pause")
    why = run.why("a/3")
    assert why is not None
    assert why.actions == ("a/2",)
    assert run.why("b/1") is None


def test_the_plan_pauses_once_its_first_nodes_have_ended_well() -> None:
    rule = PlaceRule(pause_after=1, widens=((1, 2),), keep=False)
    run = started(steps("bad", "a", "b", "c", number=2), rule=rule)
    assert ended(run, "bad/1", well_done=False).starts == ["a/1"]
    assert ended(run, "a/1").starts == ["a/2"]
    assert ended(run, "a/2").starts == []
    assert (run.done, run.stopped) == (True, HaltReason.PAUSED)
    well = [replace(a, state=ActionState.SUCCEEDED, attempts=1) for a in steps("a", number=2)]
    again = started([*well, *steps("b", "c", "d", number=1)], rule=rule)
    assert ended(again, "b/1").starts == ["d/1"]
    assert again.halt is None
