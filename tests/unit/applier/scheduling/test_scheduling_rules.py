# SPDX-License-Identifier: Apache-2.0
"""Which tolerance is exceeded, the places of queues, and what becomes of work that was cut off."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from applier.contracts import Verified
from applier.operations.explanation import foreseen
from applier.scheduling.concurrency import Concurrency, queue_limits
from applier.scheduling.failures import Tolerances
from applier.scheduling.forecast import forecast
from applier.scheduling.interrupted import decide, going_on, was_cut_off
from applier.store import Attempt
from applier.store.worker_jobs import Served
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, Outcome, Who, check

FAILED = ActionState.FAILED


def group(name: str, nodes: str, failed_nodes: int) -> dict[str, object]:
    return {"name": name, "nodes": list(nodes), "failed_nodes": failed_nodes}


def on(*nodes: str) -> Action:
    return Action(uuid="a", action_type="nop", tokens=tuple(f"node:{node}" for node in nodes))


def test_the_group_that_is_exceeded_is_named_and_no_other():
    both = Tolerances([group("compute", "ab", 1), group("storage", "cd", 0)])
    assert both.note(on("a"), FAILED) is None
    assert both.note(on("c"), FAILED) == "1 node of storage failed, none may: c"
    assert both.note(on("b"), FAILED) == "2 nodes of compute failed, 1 may: a, b"


def test_a_node_of_two_groups_counts_for_each_and_the_first_that_is_exceeded_is_named():
    both = Tolerances([group("all", "abc", 2), group("compute", "ab", 1)])
    assert both.note(on("a"), FAILED) is None
    assert both.note(on("b"), FAILED) == "2 nodes of compute failed, 1 may: a, b"
    assert both.note(on("c"), FAILED) == "3 nodes of all failed, 2 may: a, b, c"
    one = Tolerances([group("all", "a", 0), group("compute", "a", 0)])
    assert one.note(on("a"), FAILED) == "1 node of all failed, none may: a"


def test_every_node_of_an_action_counts():
    one = Tolerances([group("compute", "abc", 1)])
    assert one.note(on("a", "c"), FAILED) == "2 nodes of compute failed, 1 may: a, c"


@pytest.mark.parametrize("state", sorted({*ActionState} - {FAILED, ActionState.UNKNOWN}))
def test_only_what_failed_or_is_in_doubt_counts(state):
    one = Tolerances([group("compute", "a", 0)])
    assert one.note(on("a"), state) is None
    assert one.note(on("a"), ActionState.UNKNOWN) is not None


def test_only_tokens_of_nodes_count():
    one = Tolerances([group("compute", "a", 0)])
    named_alike = Action(uuid="b", action_type="nop", tokens=("a", "task:a", "node:b"))
    assert one.note(named_alike, FAILED) is None


def test_ten_nodes_are_named_and_the_others_counted():
    names = "abcdefghijkl"
    one = Tolerances([group("compute", names, 9)])
    told = [one.note(on(name), FAILED) for name in names]
    assert told[:9] == [None] * 9
    for number, note in enumerate(told[9:], 10):
        assert note.startswith(f"{number} nodes of compute"), note
        assert note.endswith(f"i, j and {number - 10} more" if number > 10 else "i, j"), note


# A forecast counts the places of workers; a run hands over to queues without counting.

ACTIONS = [
    Action(uuid=f"{site}{n}", name=f"{site}{n}", action_type="nop", tokens=(f"region:{site}",))
    for site in ("b", "c")
    for n in range(4)
]
SECONDS = {action.uuid: 10.0 for action in ACTIONS}


def concurrency(served: dict[str, Served], workerless: tuple[str, ...] = ()) -> Concurrency:
    found = queue_limits(ACTIONS, ["region"], workerless, served)
    return Concurrency(
        limits={**found.limits}, max_workers=64, workerless=workerless, queue_tokens=found.tokens
    )


@pytest.mark.parametrize(
    ("served", "ends"),
    [
        ({"b": Served(1, 4), "c": Served(1, 4)}, 10.0),
        ({"b": Served(1, 1), "c": Served(1, 4)}, 40.0),
        ({"b": Served(2, 2), "c": Served(1, 1)}, 40.0),
        # Whoever comes later may have any number of places.
        ({"b": Served(1, 2)}, 20.0),
        ({}, 10.0),
        # A worker may have written anything.
        ({"b": Served(1, -3)}, 40.0),
    ],
)
def test_the_places_of_its_queue_limit_each_site(served, ends):
    found = forecast(ACTIONS, SECONDS, concurrency(served))
    assert found.timeline.makespan_s == ends
    assert found.lower_bound_s == ends


def test_what_needs_no_worker_needs_no_place():
    without = tuple(a.uuid for a in ACTIONS if a.uuid.startswith("b"))
    allowed = concurrency({"b": Served(1, 1), "c": Served(1, 4)}, without)
    assert forecast(ACTIONS, SECONDS, allowed).timeline.makespan_s == 10.0


def test_why_names_the_places_and_not_the_threads_of_the_applier():
    allowed = concurrency({"b": Served(1, 1)})
    plan = ActionPlan(uuid="p", planner="weight", actions=tuple(ACTIONS))
    found = forecast(ACTIONS, SECONDS, allowed)
    first, second = sorted(ACTIONS[:4], key=lambda a: found.timeline.start_s[a.uuid])[:2]
    _, free = foreseen(plan, first, found, allowed)
    assert "at once" in free
    _, why = foreseen(plan, second, found, allowed)
    assert "queue b (1)" in why
    # Nobody serves the other one: nothing is said to be free.
    (only,) = foreseen(plan, ACTIONS[4], found, allowed)
    assert "is expected to start at 0s" in only


# What becomes of work that was cut off, as a table.

NOW = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.mark.parametrize(
    ("state", "found", "rerun_safe", "new", "outcome"),
    [
        ("ONGOING", "done", True, "SUCCEEDED", "changed"),
        ("ONGOING", "done", False, "SUCCEEDED", "changed"),
        ("ONGOING", "not done", True, "PENDING", "error"),
        ("ONGOING", "not done", False, "PENDING", "error"),
        ("ONGOING", "in doubt", True, "PENDING", "error"),
        ("ONGOING", "in doubt", False, "UNKNOWN", None),
        ("UNKNOWN", "done", True, "SUCCEEDED", "changed"),
        ("UNKNOWN", "done", False, "SUCCEEDED", "changed"),
        ("UNKNOWN", "not done", True, "PENDING", "error"),
        ("UNKNOWN", "not done", False, "PENDING", "error"),
        ("UNKNOWN", "in doubt", True, "PENDING", "error"),
        ("UNKNOWN", "in doubt", False, None, None),
    ],
)
def test_what_was_cut_off_goes_on_as_its_plugin_found_it(state, found, rerun_safe, new, outcome):
    action = Action(uuid="a", action_type="nop", state=ActionState(state))
    report = decide(action, Verified(found), rerun_safe=rerun_safe)
    if new is None:
        assert report is None, "it stays as it is"
        return
    assert (report.uuid, report.old, report.state, report.outcome) == ("a", state, new, outcome)
    check("action", "a", report.old, report.state, Who.ENGINE)


def test_what_happened_to_its_command_is_said_unless_it_may_still_run():
    action = Action(uuid="a", action_type="nop", state=ActionState.ONGOING)
    told = {"lost": "its worker is gone", "rerun_safe": False}
    assert "its worker is gone" in decide(action, Verified.IN_DOUBT, **told).message
    message = decide(action, Verified.IN_DOUBT, **told, elsewhere="it may run on b").message
    assert "it may run on b" in message
    assert "its worker is gone" not in message


@pytest.mark.parametrize("found", list(Verified))
@pytest.mark.parametrize("rerun_safe", [False, True])
@pytest.mark.parametrize("state", ["ONGOING", "UNKNOWN"])
def test_what_may_still_run_elsewhere_never_runs_again(state, rerun_safe, found):
    action = Action(uuid="a", action_type="nop", state=ActionState(state))
    report = decide(action, found, rerun_safe=rerun_safe, elsewhere="it may run on b")
    if found is Verified.DONE:
        assert report.state is ActionState.SUCCEEDED
    elif state == "UNKNOWN":
        assert report is None
    else:
        assert (report.state, report.outcome) == (ActionState.UNKNOWN, None)
        assert "it may run on b" in report.message


def test_what_goes_on_is_ongoing_again():
    for state in ("ONGOING", "UNKNOWN"):
        report = going_on(Action(uuid="a", action_type="nop", state=ActionState(state)))
        assert (report and report.state) == (ActionState.ONGOING if state == "UNKNOWN" else None)


def test_what_is_in_doubt_says_what_an_operator_can_do():
    action = Action(uuid="a", name="move-web-1", action_type="nop", state=ActionState.ONGOING)
    report = decide(action, Verified.IN_DOUBT, rerun_safe=False)
    assert "actionplan action set PLAN move-web-1 --state" in report.message


@pytest.mark.parametrize(
    ("outcome", "cut_off"),
    [(None, True), (Outcome.ERROR, True), (Outcome.FAILED, False), (Outcome.CHANGED, False)],
)
def test_an_attempt_without_an_outcome_was_cut_off(outcome, cut_off):
    attempts = [
        Attempt(number=1, started_at=NOW, outcome=None),
        Attempt(number=2, started_at=NOW, outcome=outcome),
    ]
    assert was_cut_off(attempts) is cut_off
    assert not was_cut_off([])
