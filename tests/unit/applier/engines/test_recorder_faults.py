# SPDX-License-Identifier: Apache-2.0
"""The recorder and a store that fails: nothing is lost, and nothing is written twice."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime

import pytest
from temporary_store import TemporaryStore
from trials import CLAIMANT

from applier.contracts import Report
from applier.engines.recorder import Recorder
from applier.errors import PlanConflict, StoreError
from applier.scheduling.decisions import Decisions
from planner.errors import InvalidTransition
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, Outcome, PlanState

NOW = datetime(2026, 11, 21, tzinfo=UTC)
State = ActionState


class FailingStore(TemporaryStore):
    """A store whose next writes fail as they are told: before or after they are written."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[str] = []
        self.writes: list[str] = []
        self.reserved: list[list[str]] = []

    def _fail(self, name, write):
        self.writes.append(name)
        how = self.failures.pop(0) if self.failures else "never"
        if how == "before":
            raise StoreError("connection refused")
        write()
        if how == "after":
            raise StoreError("the answer was lost")
        if how == "taken":
            self.take_away()
            raise StoreError("the answer was lost")

    def take_away(self):
        """Let another claim the plan."""
        self.resume_plan("plan", [], now=NOW)
        self.claim_plan("plan", CLAIMANT, now=NOW)

    def commit(self, uuid, claim, reports, *, now):
        write = super().commit
        self._fail("commit", lambda: write(uuid, claim, reports, now=now))

    def move_claimed(self, uuid, claim, new, **given):
        write = super().move_claimed
        self._fail("move", lambda: write(uuid, claim, new, **given))

    def reserve(self, uuid, claim, resources, *, now):
        write = super().reserve
        self._fail("reserve", lambda: write(uuid, claim, resources, now=now))
        self.reserved.append(list(resources))


class Heard:
    """A listener that notes what it hears, and raises what it is told to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.error: Exception | None = None

    def on_reports(self, reports):
        self.lines += [f"{report.uuid} {report.state}" for report in reports]
        if self.error:
            raise self.error

    def on_plan(self, state, message):
        self.lines.append(f"plan {state}: {message}")


@pytest.fixture
def store():
    actions = tuple(Action(uuid=u, action_type="nop") for u in "abc")
    plan = ActionPlan(uuid="plan", planner="t", state=PlanState.PENDING, actions=actions)
    with closing(FailingStore()) as made:
        made.save_plan(plan)
        yield made


@pytest.fixture
def heard():
    return Heard()


@pytest.fixture
def make(store, heard):
    """Make a recorder of the claimed plan."""

    def recorder(**options) -> Recorder:
        store.claim = store.claim_plan("plan", CLAIMANT, now=NOW)
        plan = store.load_plan("plan")
        return Recorder(store, plan, store.claim, clock=lambda: NOW, listeners=[heard], **options)

    return recorder


@pytest.fixture
def recorder(make):
    """A recorder that tries again for a minute; the tests pass what waits."""
    return make(patience_s=60.0)


def at_once(seconds: float) -> None:
    assert seconds > 0


def ended(uuid: str, message: str | None = None, state: State = State.SUCCEEDED) -> Report:
    outcome = Outcome.CHANGED if state is State.SUCCEEDED else Outcome.FAILED
    return Report(uuid=uuid, old=State.ONGOING, state=state, outcome=outcome, message=message)


def states(store) -> dict[str, str]:
    return {a.uuid: str(a.state) for a in store.load_plan("plan").actions}


# What is not committed stays incoming


def test_ends_that_could_not_be_committed_are_committed_with_the_next_turn(store, make, heard):
    recorder = make()
    recorder.commit(Decisions(starts=["a", "b"]))
    reports = [ended("a"), ended("b")]
    recorder.incoming += reports
    store.failures = ["before"]
    with pytest.raises(StoreError):
        recorder.commit(Decisions(starts=["c"]))
    assert recorder.incoming == reports
    assert heard.lines == ["a ONGOING", "b ONGOING"]
    assert recorder.states["a"] is State.ONGOING
    recorder.commit(Decisions())
    assert states(store) == {"a": "SUCCEEDED", "b": "SUCCEEDED", "c": "PENDING"}
    assert recorder.incoming == []


@pytest.mark.parametrize(("before", "meanwhile"), [("ab", "c"), ("a", "bc")])
def test_they_stand_before_those_that_came_in_meanwhile(store, recorder, before, meanwhile):
    recorder.commit(Decisions(starts=["a", "b", "c"]))
    recorder.incoming += map(ended, before)

    def wait(seconds):
        recorder.incoming += map(ended, meanwhile)
        store.take_away()

    store.failures = ["before"]
    with pytest.raises(PlanConflict):
        recorder.commit(Decisions(), wait)
    assert [report.uuid for report in recorder.incoming] == ["a", "b", "c"]


def test_a_change_that_is_not_allowed_does_not_count_as_written(store, recorder):
    """The state that it names is on record already, and the store fails once."""
    recorder.commit(Decisions(starts=["a"]))
    recorder.incoming.append(ended("a"))
    recorder.commit(Decisions())
    store.failures = ["before"]
    wrong = Report(uuid="a", old=State.SUCCEEDED, state=State.SUCCEEDED)
    with pytest.raises(InvalidTransition):
        recorder.commit(Decisions(ended=[wrong]), at_once)


# A write of which only the answer was lost


def test_a_commit_whose_answer_was_lost_is_not_written_twice(store, recorder, heard):
    store.failures = ["after"]
    recorder.commit(Decisions(starts=["a"]), at_once)
    assert states(store)["a"] == recorder.states["a"] == "ONGOING"
    assert store.load_plan("plan").actions[0].attempts == 1
    assert heard.lines == ["a ONGOING"]


def test_it_is_a_conflict_if_the_claim_was_lost_meanwhile(store, recorder, heard):
    """What is on record is what was to be written, and yet the plan is somebody else's now."""
    store.failures = ["taken"]
    with pytest.raises(PlanConflict):
        recorder.commit(Decisions(starts=["a"]), at_once)
    assert (states(store)["a"], recorder.states["a"]) == ("ONGOING", "PENDING")
    assert heard.lines == []


def test_it_is_a_conflict_if_something_else_was_written(store, recorder):
    def wait(seconds):
        skipped = Report(uuid="b", old=State.PENDING, state=State.SKIPPED)
        store.commit("plan", store.claim, [skipped], now=NOW)

    store.failures = ["before"]
    with pytest.raises(PlanConflict):
        recorder.commit(Decisions(starts=["a", "b"]), wait)
    assert states(store) == {"a": "PENDING", "b": "SKIPPED", "c": "PENDING"}


@pytest.mark.parametrize("how", ["before", "after"])
def test_the_state_of_a_plan_is_written_once(store, recorder, heard, how):
    store.failures = [how]
    recorder.move(PlanState.CANCELLING, "by ann", at_once)
    plan = store.load_plan("plan")
    assert (plan.state, plan.status_message) == (PlanState.CANCELLING, "by ann")
    assert heard.lines == ["plan CANCELLING: by ann"]


def test_a_cancel_waits_as_the_turn_does(store, recorder):
    waited = []
    store.failures = ["before"]
    recorder.commit(Decisions(cancelling="by ann"), waited.append)
    assert len(waited) == 1
    assert store.load_plan("plan").state is PlanState.CANCELLING


def test_a_state_that_somebody_else_wrote_is_a_conflict(store, recorder):
    store.failures = ["before"]
    with pytest.raises(PlanConflict):
        recorder.move(PlanState.SUCCEEDED, None, lambda _: store.take_away())
    assert store.load_plan("plan").state is PlanState.ONGOING


# Reservations


@pytest.mark.parametrize("how", ["before", "after"])
def test_reservations_are_written_again_though_they_may_have_been_written(store, recorder, how):
    store.failures = [how]
    recorder.reserve(["node:1"])
    assert (store.writes, store.reserved) == (["reserve", "reserve"], [["node:1"]])


def test_a_plan_that_is_taken_away_while_it_reserves_reserves_nothing(store, recorder):
    store.failures = ["taken"]
    for _ in range(2):
        with pytest.raises(PlanConflict):
            recorder.reserve(["node:1"])


# What is told


def test_an_attempt_that_is_tried_again_says_so(store, recorder):
    recorder.commit(Decisions(starts=["a", "b"]))
    recorder.incoming += [ended("a", "no route", State.FAILED), ended("b", None, State.FAILED)]
    recorder.commit(Decisions(delays=[("a", 5.0), ("b", 0.25)]))
    told = {a.uuid: (str(a.state), a.status_message) for a in store.load_plan("plan").actions}
    assert told["a"] == ("PENDING", "no route; retry in 5 s")
    assert told["b"] == ("PENDING", "it failed; retry in 0.25 s")


def test_an_exception_leaves_nothing_open_and_the_listeners_hear_of_it(store, recorder, heard):
    recorder.commit(Decisions(starts=["a", "b"]))
    recorder.incoming.append(ended("a"))
    heard.lines.clear()
    with pytest.raises(ZeroDivisionError), recorder:
        raise ZeroDivisionError("oh")
    why = "the applier broke: ZeroDivisionError: oh"
    assert heard.lines == [
        "plan ONGOING: None",
        "a SUCCEEDED",
        "b UNKNOWN",
        "c CANCELLED",
        f"plan FAILED: {why}",
    ]
    assert recorder.incoming == []
    assert states(store) == {"a": "SUCCEEDED", "b": "UNKNOWN", "c": "CANCELLED"}
    assert store.load_plan("plan").status_message == why


def test_what_broke_because_of_a_listener_is_on_record_all_the_same(store, recorder, heard):
    heard.error = RuntimeError("a listener")
    with pytest.raises(RuntimeError, match="a listener"), recorder:
        recorder.commit(Decisions(starts=["a"]))
    assert store.load_plan("plan").state is PlanState.FAILED
    assert states(store) == {"a": "UNKNOWN", "b": "CANCELLED", "c": "CANCELLED"}
