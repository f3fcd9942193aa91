# SPDX-License-Identifier: Apache-2.0
"""The recorder writes each turn once, checks every change, and tells listeners after it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sample_plans import new_plan
from trials import CLAIMANT

from applier.contracts import REVERT, Report
from applier.engines.recorder import Recorder, write_patiently
from applier.errors import DamagedRecord, PlanConflict, StoreError
from applier.scheduling.decisions import Decisions
from planner.errors import InvalidTransition
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, Outcome, PlanState, StateReason

NOW = datetime(2026, 11, 21, tzinfo=UTC)
State = ActionState


class Log:
    """A listener that notes what it hears, and what the store has at that moment."""

    def __init__(self, store):
        self.store, self.lines = store, []

    def on_reports(self, reports):
        on_record = {a.uuid: a.state for a in self.store.load_plan("plan").actions}
        self.lines += [f"{report.uuid} {report.state}" for report in reports]
        last = {report.uuid: report.state for report in reports}
        assert last.items() <= on_record.items(), "it is committed before"

    def on_plan(self, state, message):
        self.lines.append(f"plan {state}: {message}")


@pytest.fixture
def store(store):
    """Return a store with a plan of three actions."""
    actions = tuple(Action(uuid=u, action_type="nop") for u in "abc")
    store.save_plan(
        ActionPlan(uuid="plan", planner="test", state=PlanState.PENDING, actions=actions)
    )
    return store


@pytest.fixture
def log(store):
    return Log(store)


@pytest.fixture
def recorder(store, log):
    claim = store.claim_plan("plan", CLAIMANT, now=NOW)
    return Recorder(store, store.load_plan("plan"), claim, clock=lambda: NOW, listeners=[log])


def ended(uuid, old=State.ONGOING, state=State.SUCCEEDED):
    outcome = Outcome.CHANGED if state is State.SUCCEEDED else None
    return Report(uuid=uuid, old=old, state=state, outcome=outcome)


def break_inside(recorder, error):
    with pytest.raises(type(error)), recorder:
        raise error


def states(store):
    plan = store.load_plan("plan")
    return str(plan.state), {a.uuid: str(a.state) for a in plan.actions}


def test_a_turn_is_one_commit_of_ends_and_starts_in_that_order(store, recorder, log):
    recorder.commit(Decisions(starts=["a", "b"]))
    recorder.incoming.append(ended("a"))
    skipped = ended("c", State.PENDING, State.SKIPPED)
    recorder.commit(Decisions(ended=[skipped]))
    assert log.lines == ["a ONGOING", "b ONGOING", "a SUCCEEDED", "c SKIPPED"]
    assert states(store)[1] == {"a": "SUCCEEDED", "b": "ONGOING", "c": "SKIPPED"}
    assert recorder.states["a"] is State.SUCCEEDED
    assert recorder.incoming == []


def test_a_cancel_is_written_before_what_follows_from_it(store, recorder, log):
    recorder.commit(
        Decisions(cancelling="by ann", ended=[ended("a", State.PENDING, State.CANCELLED)])
    )
    assert log.lines == ["plan CANCELLING: by ann", "a CANCELLED"]
    assert states(store)[0] == "CANCELLING"


def test_a_change_that_is_not_in_the_table_is_refused_and_nothing_is_written(store, recorder):
    recorder.commit(Decisions(starts=["a"]))
    recorder.incoming.append(ended("a"))
    wrong = ended("b", State.PENDING, State.FAILED)
    with pytest.raises(InvalidTransition, match="action b is PENDING"):
        recorder.commit(Decisions(starts=["c"], ended=[wrong]))
    assert states(store)[1] == {"a": "ONGOING", "b": "PENDING", "c": "PENDING"}
    assert [report.uuid for report in recorder.incoming] == ["a"]


def test_an_exception_while_cancelling_makes_it_cancelled(store, recorder):
    recorder.commit(Decisions(cancelling="by ann"))
    break_inside(recorder, ZeroDivisionError())
    assert states(store)[0] == "CANCELLED"


@pytest.mark.parametrize("error", [StoreError("gone"), PlanConflict("plan", "ONGOING", "lost")])
def test_nothing_is_written_behind_a_store_that_failed(store, recorder, error):
    recorder.commit(Decisions(starts=["a"]))
    break_inside(recorder, error)
    assert states(store) == ("ONGOING", {"a": "ONGOING", "b": "PENDING", "c": "PENDING"})


@pytest.fixture
def rolling_back(store):
    """Return the plan that a rollback undoes, and the recorder of the rollback."""
    undone = new_plan("done", state=PlanState.SUCCEEDED)
    done = replace(undone.actions[0], state=State.SUCCEEDED, outcome=Outcome.CHANGED)
    store.save_plan(replace(undone, actions=(done,)))
    parameters = {"undoes": {"plan": undone.uuid, "action": done.uuid}}
    revert = Action(uuid="undo", action_type=REVERT, input_parameters=parameters)
    rollback = new_plan(uuid="rollback", state=PlanState.PENDING)
    store.save_plan(replace(rollback, actions=(revert, Action(uuid="other", action_type="nop"))))
    claim = store.claim_plan("rollback", CLAIMANT, now=NOW)
    return undone.uuid, Recorder(store, store.load_plan("rollback"), claim, clock=lambda: NOW)


def test_the_end_of_a_revert_is_written_with_what_it_undoes(store, rolling_back):
    """The action of the other plan changes in the same commit."""
    undone, recorder = rolling_back
    recorder.commit(Decisions(starts=["undo", "other"]))
    recorder.incoming += [ended("undo"), ended("other")]
    recorder.commit(Decisions())
    assert store.load_plan(undone).actions[0].state is State.REVERTED
    assert [a.state for a in store.load_plan("rollback").actions] == [State.SUCCEEDED] * 2


def test_the_end_of_a_revert_is_written_so_also_if_the_run_breaks(store, rolling_back):
    undone, recorder = rolling_back
    recorder.commit(Decisions(starts=["undo", "other"]))
    recorder.incoming.append(ended("undo"))
    with pytest.raises(ValueError, match="broken"), recorder:
        raise ValueError("broken")
    assert store.load_plan(undone).actions[0].state is State.REVERTED
    states = [State.SUCCEEDED, State.UNKNOWN]
    assert [a.state for a in store.load_plan("rollback").actions] == states


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        (StateReason.OPERATOR, State.SUCCEEDED),
        (StateReason.NOT_TRIGGERED, State.SUCCEEDED),
        (StateReason.ALREADY_DONE, State.REVERTED),
    ],
)
def test_a_skipped_revert_has_undone_nothing_unless_nothing_was_left(
    store, rolling_back, reason, state
):
    undone, recorder = rolling_back
    skipped = Report(uuid="undo", old=State.PENDING, state=State.SKIPPED, state_reason=reason)
    recorder.commit(Decisions(ended=[skipped]))
    assert store.load_plan(undone).actions[0].state is state


# Writes are tried again, with growing delays, until the store is back or patience ends.

CONFLICT = PlanConflict("plan", "ONGOING", "the row has changed")


class Store:
    """Gives these answers, one after another; time passes only while it is waited for."""

    def __init__(self, *answers) -> None:
        self.answers, self.now, self.waited = list(answers), 0.0, []

    def attempt(self):
        answer = self.answers.pop(0)
        if answer is not None:
            raise answer

    def wait(self, seconds):
        self.waited.append(seconds)
        self.now += seconds

    def write(self, is_written=lambda: False, patience_s=100.0):
        write_patiently(self.attempt, is_written, patience_s, self.wait, lambda: self.now)


@pytest.fixture
def away():
    return StoreError("connection refused")


def test_delays_grow_up_to_the_longest(away, caplog):
    store = Store(*[away] * 10, None)
    store.write()
    assert store.waited[:3] == [0.05, 0.1, 0.2]
    assert store.waited[-1] == 5.0


def test_when_patience_ends_the_error_comes_out(away, caplog):
    store = Store(*[away] * 1000)
    with pytest.raises(StoreError, match="connection refused"):
        store.write()
    assert store.now == pytest.approx(100.0)


def test_a_part_of_the_record_that_is_missing_for_a_while_is_waited_for(caplog):
    missing = DamagedRecord("the record", ["no such table"])
    Store(missing, missing, None).write()
    with pytest.raises(StoreError, match="no such table"):
        Store(*[missing] * 1000).write()


def test_without_patience_the_first_error_comes_out(away):
    store = Store(away, None)
    with pytest.raises(StoreError):
        store.write(patience_s=0.0)
    assert store.waited == []


def test_a_refusal_at_first_is_a_refusal():
    with pytest.raises(PlanConflict):
        Store(CONFLICT).write(is_written=lambda: True)


@pytest.mark.parametrize("written", [True, False])
def test_a_refusal_after_an_error_may_be_our_own_write(written, away, caplog):
    store = Store(away, CONFLICT)
    if written:
        store.write(is_written=lambda: True)
    else:
        with pytest.raises(PlanConflict):
            store.write(is_written=lambda: False)


def test_a_store_that_goes_away_while_it_is_asked_is_asked_again(away, caplog):
    asked = [away, True]

    def is_written():
        answer = asked.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    Store(away, CONFLICT, CONFLICT).write(is_written=is_written)
    assert asked == []


def test_the_first_failure_and_the_return_are_warnings_and_what_is_between_is_not(away, caplog):
    caplog.set_level("INFO")
    Store(away, away, away, None).write()
    assert [(r.levelname, "cannot" in r.getMessage()) for r in caplog.records] == [
        ("WARNING", True),
        ("INFO", True),
        ("INFO", True),
        ("WARNING", False),
    ]
    assert caplog.records[-1].getMessage() == "The record can be reached again"
