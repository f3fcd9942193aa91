# SPDX-License-Identifier: Apache-2.0
"""A pause, a cancel and rules about failures let the nodes that have begun finish."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from applier.contracts import Report, Request
from applier.scheduling import waiting
from applier.scheduling.decisions import Decisions, HaltReason
from applier.scheduling.scheduler import NO_FAILURE_RULES, Scheduler
from applier.scheduling.submissions import Concurrency
from applier.scheduling.verdict import FailureRules, OnFailure, TypePolicy
from planner.plan.model import Action
from planner.plan.place_rules import HeldPlace, PlaceRule
from planner.plan.states import ActionState, Outcome

TOKEN = "serial:p"  # noqa: S105
PLAIN = PlaceRule()


def steps(*nodes: str, number: int = 3, **fields: Any) -> list[Action]:
    """Return actions such as ``a/1``, each of which needs the one before on its node."""
    return [
        Action(
            uuid=f"{node}/{k}",
            action_type="nop",
            needs=(f"{node}/{k - 1}",) if k > 1 else (),
            places=(HeldPlace(TOKEN, node),),
            **fields,
        )
        for node in nodes
        for k in range(1, number + 1)
    ]


def started(
    actions: Iterable[Action],
    limit: int = 1,
    failures: FailureRules = NO_FAILURE_RULES,
    rule: PlaceRule = PLAIN,
) -> Scheduler:
    """Return the scheduler of a run that has begun."""
    actions = list(actions)
    concurrency = Concurrency(limits={TOKEN: limit}, max_workers=4, places={TOKEN: rule})
    run = Scheduler(
        actions, waiting.links(actions, waiting.completed(actions, {})), concurrency, failures
    )
    run.begin()
    return run


def ended(run: Scheduler, uuid: str, *verbs: str, well: bool = True) -> Decisions:
    """Return the decisions after the end of an action, with requests at the same time."""
    state = ActionState.SUCCEEDED if well else ActionState.FAILED
    outcome = Outcome.CHANGED if well else Outcome.FAILED
    report = Report(uuid=uuid, old=ActionState.ONGOING, state=state, outcome=outcome)
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
        made = ended(run, "a/2", well=False)
        assert made.delays == [("a/2", 0)]
        assert run.decide([], elapsed=["a/2"]).starts == ["a/2"]


def test_a_failure_that_pauses_the_plan_lets_the_other_nodes_finish() -> None:
    run = started(steps("a", "b", "c", number=2), 2, FailureRules(on_failure=OnFailure.PAUSE))
    made = ended(run, "a/1", well=False)
    assert (run.stopped, made.starts) == (HaltReason.PAUSED, [])
    assert ended(run, "b/1").starts == ["b/2"]
    ended(run, "b/2")
    assert run.done


def test_more_failed_nodes_than_tolerated_cancel_what_has_not_begun() -> None:
    tolerance = {"name": "web", "nodes": ["a"], "failed_nodes": 0}
    rules = FailureRules(tolerances=[tolerance])
    mine = [*steps("a", number=2, tokens=("node:a",)), *steps("b", "c", number=2)]
    run = started(mine, 2, rules)
    made = ended(run, "a/1", well=False)
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
    assert ended(run, "bad/1", well=False).starts == ["a/1"]
    assert ended(run, "a/1").starts == ["a/2"]
    assert ended(run, "a/2").starts == []
    assert (run.done, run.stopped) == (True, HaltReason.PAUSED)
    well = [replace(a, state=ActionState.SUCCEEDED, attempts=1) for a in steps("a", number=2)]
    again = started([*well, *steps("b", "c", "d", number=1)], rule=rule)
    assert ended(again, "b/1").starts == ["d/1"]
    assert again.halt is None
