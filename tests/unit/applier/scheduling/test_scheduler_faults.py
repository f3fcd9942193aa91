# SPDX-License-Identifier: Apache-2.0
"""Stories of what goes wrong, or is changed while a plan runs, and which halt is told."""

from __future__ import annotations

from unittest.mock import ANY

import pytest
from test_scheduler_stories import CANCEL, DONE, PAUSE, Story, action, skip

from applier.contracts import Report, Request
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.failures import OnFailure, TypePolicy
from applier.scheduling.scheduler import HaltReason, Scheduler, WaitReason
from applier.store import Reservation
from planner.plan.model import ANCHOR, JOIN
from planner.plan.states import ActionState

ONE_WORKER = Concurrency(limits={}, max_workers=1)
TWICE = {"nop": TypePolicy(retries=1, retry_delay_s=5)}
ABORT_A = Request(verb="abort", who="ann", why="it loops", action="a")


class Faults(Story):
    """A story in which retries, delays, and what other plans hold are told as well."""

    def turn(self, *events: Request | str, elapsed=(), held_by_others=None) -> list[str]:
        """Let things happen as in other stories; ``UUID elapsed`` is the end of a delay."""
        requests = [event for event in events if isinstance(event, Request)]
        told = [event for event in events if isinstance(event, str)]
        elapsed = [*elapsed, *(e.partition(" ")[0] for e in told if e.endswith(" elapsed"))]
        reports = [_report(event) for event in told if not event.endswith(" elapsed")]
        turn = self.scheduler.decide(
            reports, requests, elapsed=elapsed, held_by_others=held_by_others
        )
        return [f"delay {uuid} {seconds:g}" for uuid, seconds in turn.delays] + self.told(turn)


def _report(text: str) -> Report:
    uuid, _, how = text.partition(" ")
    state = {"": "SUCCEEDED", "fails": "FAILED", "hangs": "UNKNOWN"}.get(how) or how
    return Report(
        uuid=uuid, old=ActionState.ONGOING, state=ActionState(state), given_up=how == "hangs"
    )


def limit(**limits: int) -> Request:
    named = {
        name.replace("_", ":") if name != "max_workers" else name: limits[name] for name in limits
    }
    return Request(verb="limit", who="ann", limits=named)


def held(*resources: str) -> list[Reservation]:
    return [Reservation(resource=r, plan="other", name="drain", user="bob") for r in resources]


# Retries


def test_an_attempt_that_failed_starts_again_after_its_delay():
    story = Faults(action("a"), action("b", needs=("a",)), policies=TWICE)
    assert story.begin() == ["start a"]
    assert story.turn("a fails") == ["delay a 5"]
    assert story.scheduler.why("a") == WaitReason("delay", ())
    assert not story.scheduler.done
    assert story.turn(elapsed=["a"]) == ["start a"]
    assert story.turn("a fails") == ["b FAILED_DEPENDENCIES: a FAILED"]
    assert story.scheduler.done


def test_the_plan_says_how_often_before_its_type():
    story = Faults(action("a", retries=2), policies=TWICE)
    story.begin()
    for _ in range(2):
        assert story.turn("a fails") == ["delay a 5"]
        assert story.turn(elapsed=["a"]) == ["start a"]
    assert story.turn("a fails") == []


def test_without_a_policy_of_its_type_only_what_the_plan_allows_is_tried_again_and_at_once():
    Faults(action("a", retries=1), action("b")).tells(
        ANY, ("a fails", ["delay a 0"]), ("b fails", [])
    )


@pytest.mark.parametrize("end", ["a UNKNOWN", "a CANCELLED", "a SKIPPED", "a"])
def test_only_a_failure_is_tried_again(end):
    Faults(action("a"), policies=TWICE).tells(ANY, (end, []), DONE)


def test_a_delay_holds_neither_worker_nor_tokens():
    Faults(
        action("a", tokens=("node:1",)),
        action("b", tokens=("node:1",)),
        policies=TWICE,
        limits={"node:*": 1},
        max_workers=1,
    ).tells(ANY, ("a fails", ["delay a 5", "start b"]), ("a elapsed", []), ("b", ["start a"]))


def test_a_pause_in_a_delay_leaves_the_action_to_the_next_run():
    Faults(action("a"), policies=TWICE).tells(
        ANY, ("a fails", ANY), (PAUSE, []), DONE, ("a elapsed", [])
    )


def test_an_attempt_that_fails_after_a_pause_is_left_to_the_next_run():
    Faults(action("a"), policies=TWICE).tells(ANY, (PAUSE, ANY), ("a fails", ["delay a 5"]), DONE)


def test_a_cancel_in_a_delay_ends_the_action():
    story = Faults(action("a"), policies=TWICE)
    story.begin()
    story.turn("a fails")
    assert story.turn(CANCEL)[1:] == ["a CANCELLED: ann enough"]
    assert story.scheduler.done
    assert story.turn(elapsed=["a"]) == []


@pytest.mark.parametrize("asked", [CANCEL, ABORT_A, skip("a")])
def test_a_failure_that_comes_with_a_request_to_end_it_is_not_tried_again(asked):
    story = Faults(action("a"), policies=TWICE)
    story.begin()
    assert not [line for line in story.turn("a fails", asked) if line.startswith("delay")]
    assert story.scheduler.done


def test_a_skip_in_a_delay_takes_effect_at_once():
    Faults(action("a"), action("b", needs=("a",)), policies=TWICE).tells(
        ANY, ("a fails", ANY), (skip("a"), ["a SKIPPED: ann broken", "start b"]), ("a elapsed", [])
    )


def test_with_pause_only_the_last_attempt_pauses_and_says_which_action_it_was():
    story = Faults(action("a"), action("b"), on_failure=OnFailure.PAUSE, policies=TWICE)
    story.begin()
    story.turn("a fails")
    assert story.scheduler.stopped is None
    story.turn(elapsed=["a"])
    story.turn("a fails")
    by = Request(verb="pause", who="on_failure = pause", why="a ended FAILED")
    assert story.scheduler.halt == (HaltReason.PAUSED, "paused because a ended FAILED", by)


# Abort


def test_an_abort_stops_one_action_and_it_is_not_tried_again():
    story = Faults(action("a"), action("b", needs=("a",)), action("c"), policies=TWICE)
    story.begin()
    assert story.turn(ABORT_A) == ["stop a"]
    assert story.turn("a fails") == ["b FAILED_DEPENDENCIES: a FAILED"]
    assert list(story.scheduler.running) == ["c"]


def test_an_abort_in_a_delay_ends_the_action():
    Faults(action("a"), action("b", needs=("a",)), policies=TWICE).tells(
        ANY,
        ("a fails", ANY),
        (ABORT_A, ["a CANCELLED: ann loops", "b FAILED_DEPENDENCIES: a CANCELLED"]),
        ("a elapsed", []),
        DONE,
    )


# Actions that need no worker


def test_what_takes_no_worker_starts_while_all_workers_are_busy():
    Faults(action("a"), action("b"), action("c"), max_workers=1, workerless={"c"}).tells(
        ["start a", "start c"], ("c", []), ("a", ["start b"])
    )


# Actions that were given up


def hanging(*more, **options):
    options = {"limits": {"node:*": 1}, "max_workers": 1, **options}
    return Faults(action("a", tokens=("node:1",)), *more, **options)


def test_the_worker_of_what_hangs_is_replaced():
    hanging(action("b")).tells(ANY, ("a hangs", ["start b"]))


def test_what_waits_for_a_token_that_stays_held_is_cancelled_when_nothing_else_runs():
    story = hanging(
        action("b"),
        action("c", tokens=("node:1",)),
        action("d", needs=("c",)),
        action("e", parents=("c",)),
    )
    story.begin()
    assert story.turn("a hangs") == ["start b"]
    assert story.scheduler.why("c") == WaitReason("token", ("a",), "node:1")
    assert story.turn("b") == [
        "c CANCELLED: node:1 a",
        "d FAILED_DEPENDENCIES: c CANCELLED",
        "start e",
    ]
    assert story.turn("e") == []
    assert story.scheduler.done


@pytest.mark.parametrize("given_up", [("a",), ()])
def test_what_may_still_run_since_an_earlier_run_holds_its_tokens_and_no_worker(given_up):
    story = Faults(
        action("a", tokens=("node:1",), state=ActionState.UNKNOWN),
        action("b", tokens=("node:2",)),
        action("c", tokens=("node:1",)),
        limits={"node:*": 1},
        max_workers=1,
        given_up=given_up,
    )
    assert story.begin() == ["start b"]
    end = ["c CANCELLED: node:1 a"]
    assert story.turn("b") == (end if given_up else ["start c"])


@pytest.mark.parametrize("earlier", [True, False])
def test_what_comes_after_what_may_still_run_is_not_begun(earlier):
    """Its end is not known; nor is what comes after that, whatever its needs."""
    a = action("a", **({"state": ActionState.UNKNOWN} if earlier else {}))
    story = Faults(
        a,
        action("b", parents=("a",)),
        action("c", parents=("b",)),
        action("d", needs=("a",)),
        action("e", parents=("d",)),
        action("f", parents=("join",)),
        action("join", action_type=JOIN, parents=("a",)),
        action("anchor", action_type=ANCHOR, parents=("a", "b")),
        action("free", parents=("anchor",)),
        given_up=("a",) if earlier else (),
    )
    told = story.begin() if earlier else [*story.begin(), *story.turn("a hangs")]
    assert sorted(set(told) - {"start a"}) == [
        "b CANCELLED: a",
        "c CANCELLED: a",
        "d FAILED_DEPENDENCIES: a UNKNOWN",
        "e CANCELLED: a",
        "f CANCELLED: a",
        "join SUCCEEDED",
        "start anchor",
    ]
    assert story.turn("anchor") == ["start free"], "a node that is lost does not hold up the others"
    assert story.turn("free") == []
    assert story.scheduler.done


def test_what_comes_after_what_may_still_run_is_found_in_any_order_of_the_plan():
    Faults(
        action("join", action_type=JOIN, parents=("a",), state=ActionState.SUCCEEDED),
        action("a", state=ActionState.UNKNOWN),
        action("b", parents=("join",)),
        given_up=("a",),
    ).tells(["b CANCELLED: a"])


# Limits


def test_a_limit_of_a_kind_holds_for_each_token_by_itself():
    tokens = {"a": "node:1", "b": "node:1", "c": "node:2", "d": "node:2"}
    story = Faults(*(action(u, tokens=(t,)) for u, t in tokens.items()), max_workers=1)
    story.begin()
    asked = Request(verb="limit", who="ann", limits={"node:*": 1, "max_workers": 4})
    assert story.turn(asked) == ["start c"]


def test_a_turn_tells_how_many_workers_there_are_now():
    scheduler = Scheduler([], {}, ONE_WORKER)
    assert scheduler.decide([], [limit(max_workers=3)]).max_workers is None, "it comes too late"
    one = action("a")
    scheduler = Scheduler([one], {"a": []}, ONE_WORKER)
    assert scheduler.begin([limit(max_workers=3)]).max_workers == 3


# What other plans hold


def test_an_action_on_what_another_plan_holds_waits_until_it_is_given_back():
    story = Faults(action("a", tokens=("node:1",)), action("b", tokens=("node:2",)))
    turn = story.scheduler.begin(held_by_others=held("node:1"))
    assert turn.starts == ["b"]
    assert story.scheduler.why("a") == WaitReason("plan", (), "node:1", held("node:1")[0])
    assert story.turn("b") == []
    assert not story.scheduler.done
    assert story.turn(held_by_others=[]) == ["start a"]


def test_what_another_plan_reserves_later_keeps_what_waits_from_starting():
    story = Faults(action("b"), action("a", tokens=("node:1",)), max_workers=1)
    story.begin()
    assert story.turn(held_by_others=held("node:1")) == []
    assert story.turn("b") == []
    assert story.turn(held_by_others=[]) == ["start a"]


def test_what_waits_for_another_plan_collects_no_tokens():
    """It may be examined as often as you like: others take turns with what it needs besides."""
    members = [action(f"m{i:02}", tokens=("node:2",)) for i in range(40)]
    story = Faults(action("a", tokens=("node:1", "node:2")), *members, limits={"node:*": 1})
    (first,) = story.scheduler.begin(held_by_others=held("node:1")).starts
    for number in range(39):
        assert story.turn(f"m{number:02}") == [f"start m{number + 1:02}"]
    assert first == "m00"


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (CANCEL, "a CANCELLED: ann enough"),
        (skip("a"), "a SKIPPED: ann broken"),
    ],
)
def test_what_waits_for_another_plan_can_be_cancelled_and_skipped(asked, line):
    story = Faults(action("a", tokens=("node:1",)))
    story.scheduler.begin(held_by_others=held("node:1"))
    assert story.turn(asked)[-1] == line
    assert story.scheduler.done


def test_a_pause_does_not_wait_for_another_plan():
    story = Faults(action("a", tokens=("node:1",)))
    story.scheduler.begin(held_by_others=held("node:1"))
    story.turn(PAUSE)
    assert story.scheduler.done


# Which of several reasons to start nothing new is the one that is told.

TOLERANCES = [{"name": "compute", "nodes": ["1", "2"], "failed_nodes": 0}]


def two_running(**options) -> Faults:
    story = Faults(
        action("a", tokens=("node:1",)), action("b", tokens=("node:2",)), action("c"), **options
    )
    story.begin()
    return story


@pytest.mark.parametrize("state", ["FAILED", "UNKNOWN"])
def test_a_pause_after_a_failure_does_not_replace_a_cancel(state):
    story = two_running(max_workers=2, on_failure=OnFailure.PAUSE)
    story.turn(CANCEL)
    told = story.scheduler.halt
    story.turn(f"a {state}")
    assert story.scheduler.halt == told
    assert told.stopped is HaltReason.CANCELLED


def test_the_first_of_two_failures_is_the_reason_of_a_pause():
    story = two_running(on_failure=OnFailure.PAUSE)
    story.turn("a fails")
    story.turn("b fails")
    by = Request(verb="pause", who="on_failure = pause", why="a ended FAILED")
    assert story.scheduler.halt == (HaltReason.PAUSED, "paused because a ended FAILED", by)


def test_a_tolerance_that_is_exceeded_does_not_replace_a_pause():
    story = two_running(tolerances=TOLERANCES)
    story.turn(PAUSE)
    story.turn("a fails")
    assert story.scheduler.halt == (HaltReason.PAUSED, "paused by ann", PAUSE)


def test_no_other_state_pauses():
    story = two_running(on_failure=OnFailure.PAUSE)
    report = Report(uuid="a", old=ActionState.ONGOING, state=ActionState.CANCELLED)
    story.scheduler.decide([report])
    assert story.scheduler.halt is None
