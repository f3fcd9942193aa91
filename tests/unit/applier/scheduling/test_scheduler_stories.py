# SPDX-License-Identifier: Apache-2.0
"""Stories of one plan each: events go in, and exactly these instructions come out."""

from __future__ import annotations

import re
from dataclasses import replace
from unittest.mock import ANY

import pytest

from applier.contracts import Report, Request
from applier.scheduling import waiting
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.failures import FailureRules, OnFailure, TypePolicy
from applier.scheduling.scheduler import Decisions, HaltReason, Scheduler, WaitReason
from applier.scheduling.verdict import ends
from planner.plan.model import JOIN, Action, Trigger
from planner.plan.states import ActionState, Outcome

State = ActionState
DONE, GOES_ON = True, False


def action(uuid: str, **fields) -> Action:
    return Action(uuid=uuid, name=uuid, **{"action_type": "nop", **fields})


class Story:
    """A scheduler whose turns are told as lines: what ends, what starts, what stops.

    Of the reason of an end a line holds who and what is named in it, states, and numbers.
    """

    def __init__(self, *actions: Action, max_workers: int = 9, limits=None, **options) -> None:
        workerless, ranks = options.pop("workerless", ()), options.pop("ranks", None)
        given_up = options.pop("given_up", ())
        links = waiting.links(actions, waiting.completed(actions, ends(actions)))
        concurrency = Concurrency(
            limits=limits or {}, max_workers=max_workers, workerless=workerless
        )
        groups = {it["name"] for it in options.get("tolerances", ())}
        self.names = {"ann", "enough", "loops", "broken", *groups, *(a.uuid for a in actions)}
        self.scheduler = Scheduler(
            actions, links, concurrency, FailureRules(**options), ranks, given_up=given_up
        )

    def begin(self, *requests: Request) -> list[str]:
        return self.told(self.scheduler.begin(requests))

    def turn(self, *events: Request | str) -> list[str]:
        """Let things happen: a Request, or ``UUID`` (it changed something) or ``UUID STATE``."""
        requests = [event for event in events if isinstance(event, Request)]
        reports = [report(event) for event in events if isinstance(event, str)]
        return self.told(self.scheduler.decide(reports, requests))

    def tells(self, begun: object, *turns: object) -> None:
        """Begin, and take turns: each is events and what they tell, a halt, or DONE or not."""
        assert self.begin() == begun
        for number, turn in enumerate(turns, 1):
            if isinstance(turn, tuple):
                *events, told = turn
                assert self.turn(*events) == told, f"turn {number}"
            elif isinstance(turn, HaltReason):
                assert self.scheduler.stopped is turn
            else:
                assert self.scheduler.done is turn

    def told(self, turn: Decisions) -> list[str]:
        lines = [f"plan: {self.named(turn.cancelling)}"] if turn.cancelling else []
        for r in turn.ended:
            named = self.named(r.message or "")
            lines.append(f"{r.uuid} {r.state}" + f": {named}" * bool(named))
        lines += [f"start {uuid}" for uuid in turn.starts]
        return lines + [f"stop {uuid}" for uuid in turn.stops]

    def named(self, message: str) -> str:
        words = [word.strip(":") for word in re.findall(r"[\w:-]+", message)]
        told = (w for w in words if w in self.names or w.isdigit() or w.isupper() or ":" in w)
        return " ".join(told)


def report(text: str) -> Report:
    uuid, _, state = text.partition(" ")
    how = {
        "": (State.SUCCEEDED, Outcome.CHANGED),
        "ok": (State.SUCCEEDED, Outcome.OK),
        "fails": (State.FAILED, Outcome.FAILED),
        "breaks": (State.FAILED, Outcome.ERROR),
    }
    new, outcome = how.get(state) or (State(state), None)
    return Report(uuid=uuid, old=State.ONGOING, state=new, outcome=outcome)


def skip(uuid: str) -> Request:
    return Request(verb="skip", who="ann", why="it is broken", action=uuid)


CANCEL = Request(verb="cancel", who="ann", why="enough")
PAUSE = Request(verb="pause", who="ann")


def test_what_was_not_begun_starts_again_at_once_and_counts_as_no_retry():
    story = Story(action("a"), policies={"nop": TypePolicy(retries=1, retry_delay_s=5.0)})
    story.begin()
    for delay_s in (0.0, 0.0, 5.0):
        again = report("a fails")._replace(again=delay_s == 0.0)
        found = story.scheduler.decide([again])
        assert found.delays == [("a", delay_s)]
        assert story.told(story.scheduler.decide([], elapsed=["a"])) == ["start a"]
    assert story.turn("a fails") == []
    assert story.scheduler.done


def test_what_was_cancelled_before_its_start_did_not_end_well():
    story = Story(action("a"), action("b", parents=("a",)))
    story.begin()
    assert "b CANCELLED: ann enough" in story.turn(CANCEL)
    story.turn("a")
    assert story.scheduler.done
    assert not story.scheduler.well


def test_a_plan_without_actions_is_done_at_once():
    Story().tells([], DONE)


def test_a_failure_ends_what_needs_it_and_names_where_it_began():
    Story(
        action("a"),
        action("b", needs=("a",)),
        action("c", needs=("b",)),
        action("d", parents=("a",)),
    ).tells(
        ANY,
        (
            "a fails",
            ["b FAILED_DEPENDENCIES: a FAILED", "c FAILED_DEPENDENCIES: b a FAILED", "start d"],
        ),
    )


def test_with_only_after_failure_the_next_runs_if_the_one_before_failed():
    needs = [action("b", needs=("a",)), action("c", needs=("b", "a")), action("d", parents=("c",))]
    story = Story(action("a"), *needs, on_failure=OnFailure.ONLY_AFTER_FAILURE)
    story.begin()
    assert story.turn("a fails") == ["start b"]
    assert story.turn("b ok") == [
        "c SKIPPED: b",
        "d SKIPPED: c",
    ]


def test_with_only_after_failure_a_join_hands_on_what_became_of_the_one_before_it():
    join = action("j", action_type=JOIN, needs=("a",))
    after = action("b", parents=("j",))
    for ended, told in (
        ("a fails", ["j SUCCEEDED", "start b"]),
        ("a", ["j SUCCEEDED", "b SKIPPED: a"]),
    ):
        story = Story(action("a"), join, after, on_failure=OnFailure.ONLY_AFTER_FAILURE)
        story.begin()
        assert story.turn(ended) == told


def test_with_pause_a_failure_keeps_everything_from_starting_and_ending():
    Story(
        action("a"),
        action("b"),
        action("c", needs=("a",)),
        action("d", parents=("b",)),
        on_failure=OnFailure.PAUSE,
    ).tells(ANY, ("a fails", []), GOES_ON, ("b", []), DONE, HaltReason.PAUSED)


HAND_BACK = Request(verb="hand_back", who="the applier", why="it ends")


def test_a_failure_together_with_a_cancel_is_cancelled():
    story = Story(action("a"), action("b", parents=("a",)), on_failure=OnFailure.PAUSE)
    story.begin()
    assert "b CANCELLED: ann enough" in story.turn("a fails", CANCEL)
    assert story.scheduler.stopped is HaltReason.CANCELLED


def test_a_plan_that_is_handed_back_starts_nothing_new():
    story = Story(action("a"), action("b", parents=("a",)))
    story.begin()
    assert story.turn(HAND_BACK) == []
    assert story.turn("a") == []
    assert story.scheduler.done
    why = "handed back by the applier: it ends"
    assert story.scheduler.halt == (HaltReason.HANDED_BACK, why, None)


@pytest.mark.parametrize(
    ("event", "stopped"),
    [(PAUSE, HaltReason.PAUSED), (CANCEL, HaltReason.CANCELLED), ("a fails", HaltReason.PAUSED)],
)
@pytest.mark.parametrize("first", [True, False])
def test_any_other_halt_counts_before_a_hand_back(event, stopped, first):
    story = Story(action("a"), action("b"), action("c"), max_workers=2, on_failure=OnFailure.PAUSE)
    story.begin()
    for one in [event, HAND_BACK] if first else [HAND_BACK, event]:
        story.turn(one)
    assert story.scheduler.stopped is stopped


def test_alternatives_of_which_none_ended_well_end_what_needs_them():
    Story(action("a"), action("b"), action("c", needs_any=(("a", "b"),))).tells(
        ANY, ("a fails", []), ("b fails", ["c FAILED_DEPENDENCIES: 2 a FAILED"])
    )


TRIGGERED = (action("a"), action("b", triggers=(Trigger("a", (Outcome.CHANGED,)),)))


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ("a", ["start b"]),
        ("a ok", ["b SKIPPED"]),
        ("a fails", ["b FAILED_DEPENDENCIES: a FAILED"]),
    ],
)
def test_a_trigger_decides_whether_an_action_runs(event, told):
    Story(*TRIGGERED).tells(ANY, (event, told))


def test_without_ranks_the_place_in_the_plan_decides():
    story = Story(action("b"), action("a"), max_workers=1)
    assert [story.begin(), story.turn("b")] == [["start b"], ["start a"]]


def test_an_action_waits_for_a_token_and_the_next_does_not():
    story = Story(
        action("a", tokens=("node:1",)),
        action("b", tokens=("node:1",)),
        action("c", tokens=("node:2",)),
        limits={"node:*": 1},
    )
    assert story.begin() == ["start a", "start c"]
    assert story.scheduler.why("b") == WaitReason("token", ("a",), "node:1")
    assert story.turn("c") == []
    assert story.turn("a") == ["start b"]


def test_why_tells_what_an_action_waits_for():
    story = Story(
        action("a"),
        action("b"),
        action("c", parents=("a", "b")),
        action("d", needs_any=(("a", "b"),)),
        max_workers=1,
    )
    story.begin()
    why = story.scheduler.why
    assert why("a") is None
    assert why("b") == WaitReason("worker", ("a",))
    assert why("c") == WaitReason("all", ("a", "b"))
    assert why("d") == WaitReason("any", ("a", "b"))
    story.turn("a fails")
    assert why("c") == WaitReason("all", ("b",))
    assert why("d") == WaitReason("any", ("b",))


def test_a_cancel_ends_all_that_has_not_started_and_stops_what_runs():
    Story(action("a"), action("b", parents=("a",)), action("c"), max_workers=1).tells(
        ANY,
        (
            CANCEL,
            ["plan: ann enough", "b CANCELLED: ann enough", "c CANCELLED: ann enough", "stop a"],
        ),
        GOES_ON,
        (CANCEL, []),
        ("a CANCELLED", []),
        DONE,
        HaltReason.CANCELLED,
    )


def test_a_cancel_that_comes_with_the_last_end_is_too_late():
    story = Story(action("a"))
    story.begin()
    assert story.turn("a", CANCEL) == []
    assert story.scheduler.stopped is None


def test_a_pause_lets_what_runs_end_and_leaves_the_rest():
    story = Story(action("a"), action("b", parents=("a",)), action("c", needs=("a",)))
    story.begin()
    assert story.turn(PAUSE) == []
    assert story.turn("a fails") == []
    assert story.scheduler.done
    assert story.scheduler.why("b") is None


def test_a_paused_plan_may_still_be_cancelled():
    story = Story(action("a"), action("b", parents=("a",)))
    story.begin()
    story.turn(PAUSE)
    assert story.turn(CANCEL)[1:] == [
        "b CANCELLED: ann enough",
        "stop a",
    ]


@pytest.mark.parametrize("uuid", ["a", "no such action"])
def test_a_skip_of_what_runs_or_is_not_there_changes_nothing(uuid):
    Story(action("a"), action("b", needs=("a",))).tells(ANY, (skip(uuid), []), ("a", ["start b"]))


def test_what_waits_for_itself_does_not_keep_a_plan_from_ending():
    """Validation refuses such a plan; should one come through, it ends, and says why."""
    Story(action("a", needs_any=(("b",),)), action("b", parents=("a",))).tells(
        ["a CANCELLED", "b CANCELLED"], DONE
    )


def on_node(uuid: str, node: str, **fields) -> Action:
    return action(uuid, tokens=(f"node:{node}",), **fields)


ONE_OF_THREE = [{"name": "compute", "nodes": ["1", "2", "3"], "failed_nodes": 1}]


def test_beyond_what_is_tolerated_nothing_starts_and_what_runs_ends():
    story = Story(
        on_node("a", "1"),
        on_node("b", "2"),
        on_node("c", "3"),
        on_node("d", "3", parents=("c",)),
        action("anchor", parents=("a", "b", "c")),
        tolerances=ONE_OF_THREE,
    )
    story.begin()
    assert story.turn("a fails") == []
    why = "2 compute 1 1 2"
    assert story.turn("b UNKNOWN") == [f"d CANCELLED: {why}", f"anchor CANCELLED: {why}"]
    assert not story.scheduler.done
    assert story.turn("c") == []
    assert story.scheduler.done
    halt = story.scheduler.halt
    assert (halt.stopped, story.named(halt.why), halt[2]) == (HaltReason.EXCEEDED, why, None)


def test_what_fails_beyond_what_is_tolerated_is_not_tried_again():
    story = Story(
        on_node("a", "1"),
        on_node("b", "2", retries=3),
        tolerances=[{"name": "nodes of no group", "nodes": ["1"], "failed_nodes": 0}],
    )
    story.begin()
    story.turn("a fails")
    assert story.turn("b fails") == []
    assert story.scheduler.done
    assert "nodes of no group" in story.scheduler.halt.why


def test_nodes_that_failed_in_an_earlier_run_count():
    Story(
        replace(on_node("a", "1"), state=State.UNKNOWN),
        on_node("b", "2"),
        tolerances=[{"name": "compute", "nodes": ["1", "2"], "failed_nodes": 0}],
    ).tells(["b CANCELLED: 1 compute 1"], DONE)


def test_what_goes_on_may_end_before_what_stands_before_it_runs_again():
    going_on = action("b", parents=("a",), state=State.ONGOING)
    story = Story(action("a"), going_on, action("c", parents=("b",)))
    assert story.begin() == ["start a"]
    assert story.turn("b") == [], "c is behind a, through b"
    assert story.turn("a") == ["start c"]


def test_a_cancel_and_an_abort_stop_what_goes_on():
    for verb in ("cancel", "abort"):
        story = Story(action("a", state=State.ONGOING))
        assert "stop a" in story.begin(Request(verb=verb, who="ann", action="a"))
