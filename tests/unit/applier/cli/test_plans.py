# SPDX-License-Identifier: Apache-2.0
"""Each verb in each state of a plan: it is done, or why not is said, and nothing is half done."""

from __future__ import annotations

import pytest
from sample_plans import MADE

from applier.storage.sql_store import SqlStore
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, PlanState

from .conftest import Run

CANCELLED, SKIPPED, DELETED = "is CANCELLED.", "a is SKIPPED.", "is DELETED."
OVER, NO_SKIP = "nothing is left to cancel", "only PENDING actions"
ANEW = "make a new one: actionplan create FILE\n"
WAITS = "it waits for an applier already; run it here: actionplan apply plan-1\n"
ENDS = "it has ended; go on with it: actionplan apply plan-1\n"
REMOVED = f"Refused: plan plan-1 is DELETED: it was removed; {ANEW}"
NEWER = f"a newer plan took its place; {ANEW}"
DONE = f"nothing of it is left to do; {ANEW}"
RAW = "it has not been started yet; run it: actionplan apply plan-1\n"
READY = "is PENDING."
#: What each verb answers in each state.
ANSWERS = {
    "RECOMMENDED": (CANCELLED, SKIPPED, DELETED, READY, "RECAP", RAW),
    "PENDING": (CANCELLED, SKIPPED, "cancel it first", WAITS, "RECAP", WAITS),
    "PAUSED": (CANCELLED, SKIPPED, "cancel it first", READY, "RECAP", READY),
    "SUCCEEDED": (OVER, NO_SKIP, DELETED, DONE, DONE, DONE),
    "FAILED": (OVER, NO_SKIP, DELETED, ENDS, "RECAP", READY),
    "CANCELLED": (OVER, NO_SKIP, DELETED, ENDS, "RECAP", READY),
    "SUPERSEDED": (OVER, NO_SKIP, DELETED, NEWER, NEWER, NEWER),
    "DELETED": (OVER, NO_SKIP, REMOVED, REMOVED, REMOVED, REMOVED),
}
VERBS = (
    ("stop", "plan-1", "--cancel"),
    ("action", "skip", "plan-1", "a", "--reason", "by hand"),
    ("delete", "plan-1", "--yes"),
    ("start", "plan-1"),
    ("apply", "plan-1", "--yes"),
    ("resume", "plan-1"),
)
ENDED = {
    "SUCCEEDED": ActionState.SUCCEEDED,
    "FAILED": ActionState.FAILED,
    "CANCELLED": ActionState.CANCELLED,
    "SUPERSEDED": ActionState.CANCELLED,
    "DELETED": ActionState.CANCELLED,
}


def test_without_any_plan_the_last_one_is_to_be_made(run: Run) -> None:
    code, _, err = run("show", "last")
    assert code == 1
    assert err.startswith("Refused: there is no plan; ")
    assert err.endswith(": actionplan create FILE\n")


@pytest.mark.parametrize("state", ANSWERS)
def test_a_verb_does_it_or_says_why_not(run: Run, store: SqlStore, state: str) -> None:
    old = ENDED.get(state, ActionState.PENDING)
    for number, (verb, answer) in enumerate(zip(VERBS, ANSWERS[state], strict=True)):
        uuid = f"{number}-plan"
        store.save_plan(
            ActionPlan(
                uuid=uuid,
                planner="weight",
                actions=(Action(uuid=f"{uuid}-a", name="a", action_type="nop", state=old),),
                created_at=MADE,
                state=PlanState(state),
            )
        )
        code, out, err = run(*(uuid if word == "plan-1" else word for word in verb))
        assert answer.replace("plan-1", uuid) in out + err, verb
        assert (code == 0) is (err == "")
        if err:
            kept = store.load_plan(uuid)
            assert (kept.state, kept.actions[0].state) == (PlanState(state), old)
