"""Each verb in each state of a plan: it is done, or why not is said, and nothing is half done."""

from __future__ import annotations

import pytest

from applier.record import Store
from applier.testing.plans import MADE
from planner.model import Action, ActionPlan
from planner.states import ActionState, PlanState

from .conftest import Run

CANCELLED, SKIPPED, DELETED = "is CANCELLED.", "a is SKIPPED.", "is DELETED."
NOT_NOW, NO_SKIP, ONCE = "can become", "only PENDING actions", "a plan is applied once"
#: What each verb answers in each state.
ANSWERS = {
    "RECOMMENDED": (CANCELLED, SKIPPED, DELETED, "is PENDING.", "RECAP"),
    "PENDING": (CANCELLED, SKIPPED, "cancel it first", NOT_NOW, "RECAP"),
    "PAUSED": (CANCELLED, SKIPPED, "cancel it first", "is PENDING.", "RECAP"),
    "SUCCEEDED": (NOT_NOW, NO_SKIP, DELETED, NOT_NOW, ONCE),
    "FAILED": (NOT_NOW, NO_SKIP, DELETED, NOT_NOW, ONCE),
    "CANCELLED": (NOT_NOW, NO_SKIP, DELETED, NOT_NOW, ONCE),
    "SUPERSEDED": (NOT_NOW, NO_SKIP, DELETED, NOT_NOW, ONCE),
    "DELETED": (NOT_NOW, NO_SKIP, NOT_NOW, NOT_NOW, ONCE),
}
VERBS = (
    ("cancel", "plan-1"),
    ("action", "skip", "plan-1", "a", "--reason", "by hand"),
    ("delete", "plan-1"),
    ("start", "plan-1"),
    ("apply", "plan-1", "--yes"),
)
CASES = [
    pytest.param(state, verb, answer, id=f"{state}-{verb[0]}")
    for state, answers in ANSWERS.items()
    for verb, answer in zip(VERBS, answers, strict=True)
]
ENDED = {
    "SUCCEEDED": ActionState.SUCCEEDED,
    "FAILED": ActionState.FAILED,
    "CANCELLED": ActionState.CANCELLED,
    "SUPERSEDED": ActionState.CANCELLED,
    "DELETED": ActionState.CANCELLED,
}


@pytest.mark.parametrize(("state", "verb", "answer"), CASES)
def test_a_verb_does_it_or_says_why_not(
    run: Run, store: Store, state: str, verb: tuple[str, ...], answer: str
) -> None:
    old = ENDED.get(state, ActionState.PENDING)
    action = Action(uuid="a", name="a", action_type="nop", state=old)
    plan = ActionPlan(
        uuid="plan-1",
        planner="weight",
        actions=(action,),
        created_at=MADE,
        state=PlanState(state),
    )
    store.save_plan(plan)
    code, out, err = run(*verb)
    assert answer in out + err
    assert (code == 0) is (err == "")
    if err:
        kept = store.load_plan("plan-1")
        assert (kept.state, kept.actions[0].state) == (PlanState(state), old)
