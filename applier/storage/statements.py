"""Every statement of the database store, made once.

SQLAlchemy then finds the text of each in its cache, and a commit costs little more than the disk.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam

from applier.storage import rules
from applier.storage.tables import Moment, actions, plans, wishes
from planner.states import ActionState, PlanState

#: The row of one plan.
PLAN = sa.select(plans).where(plans.c.uuid == bindparam("plan_uuid"))
#: The rows of a plan's actions, without what they printed.
ACTIONS = sa.select(*(c for c in actions.c if c is not actions.c.output)).where(
    actions.c.plan == bindparam("plan_uuid")
)
#: What is asked of one action.
ACTION = sa.select(
    actions.c.state, actions.c.started_at, actions.c.ended_at, actions.c.output
).where(actions.c.plan == bindparam("plan_uuid"), actions.c.uuid == bindparam("action_uuid"))
#: The wishes of a plan, oldest first.
WISHES = (
    sa.select(wishes)
    .where(wishes.c.plan == bindparam("plan_uuid"), wishes.c.number > bindparam("after"))
    .order_by(wishes.c.number)
)
#: Take hold of a plan that this claim runs.
HOLD_CLAIM = (
    sa.update(plans)
    .where(plans.c.uuid == bindparam("plan_uuid"), plans.c.claim == bindparam("held"))
    .values(updated_at=bindparam("now"))
)
#: Take hold of a plan that nobody runs.
HOLD_WAITING = (
    sa.update(plans)
    .where(plans.c.uuid == bindparam("plan_uuid"), plans.c.state.in_(map(str, rules.WAITING_PLAN)))
    .values(updated_at=bindparam("now"))
)
#: Take hold of a plan that somebody runs, and of the next number for a wish.
COUNT_WISH = (
    sa.update(plans)
    .where(plans.c.uuid == bindparam("plan_uuid"), plans.c.claim.is_not(None))
    .values(wishes=plans.c.wishes + 1)
)
#: Write one report, if the action is in the state that it says.
REPORT = (
    sa.update(actions)
    .where(
        actions.c.plan == bindparam("plan_uuid"),
        actions.c.uuid == bindparam("action_uuid"),
        actions.c.state == bindparam("old_state"),
    )
    .values(
        state=bindparam("new_state"),
        outcome=bindparam("new_outcome"),
        status_message=bindparam("new_message"),
        output=bindparam("new_output"),
        started_at=sa.func.coalesce(bindparam("new_start", type_=Moment), actions.c.started_at),
        ended_at=bindparam("new_end"),
        attempts=actions.c.attempts + bindparam("more_attempts"),
    )
)
#: Cancel the actions of a plan that have not started.
CANCEL = (
    sa.update(actions)
    .where(actions.c.plan == bindparam("plan_uuid"), actions.c.state == str(ActionState.PENDING))
    .values(
        state=str(ActionState.CANCELLED),
        status_message=bindparam("new_message"),
        ended_at=bindparam("now"),
    )
)
#: Change the state of a plan, if it is in the state and claimed as it was when it was read.
MOVE = (
    sa.update(plans)
    .where(
        plans.c.uuid == bindparam("plan_uuid"),
        plans.c.state == bindparam("old_state"),
        sa.func.coalesce(plans.c.claim, "") == bindparam("held"),
    )
    .values(
        state=bindparam("new_state"),
        claim=bindparam("new_claim"),
        status_message=bindparam("new_message"),
        updated_at=bindparam("now"),
    )
)
#: Claim a plan that waits for an applier.
CLAIM = (
    sa.update(plans)
    .where(plans.c.uuid == bindparam("plan_uuid"), plans.c.state == str(PlanState.PENDING))
    .values(
        state=str(PlanState.ONGOING),
        claim=bindparam("new_claim"),
        claimant_host=bindparam("host"),
        claimant_pid=bindparam("pid"),
        claimant_user=bindparam("user"),
        updated_at=bindparam("now"),
    )
)
#: The plan that was saved last.
LAST = (
    sa.select(plans.c.uuid)
    .where(plans.c.state != str(PlanState.DELETED))
    .order_by(plans.c.number.desc())
    .limit(1)
)


def fitting(reference: str) -> sa.Select[str, str | None]:
    """Every plan that a reference may mean, and perhaps some more: databases compare loosely."""
    likely = plans.c.uuid.startswith(reference, autoescape=True) | (plans.c.name == reference)
    kept = likely & (plans.c.state != str(PlanState.DELETED))
    return sa.select(plans.c.uuid, plans.c.name).where(kept | (plans.c.uuid == reference))


def listed(state: PlanState | None, limit: int | None) -> sa.Select[Any]:
    """The newest plans, in that state, or in any but DELETED."""
    wanted = plans.c.state != str(PlanState.DELETED)
    if state is not None:
        wanted = plans.c.state == str(state)
    return sa.select(plans).where(wanted).order_by(plans.c.number.desc()).limit(limit)


def counted(state: PlanState | None, first: int) -> sa.Select[str, str, int]:
    """How many actions stand in which state, of the plans that :func:`listed` gave.

    ``first`` is the number of the oldest of them: a condition, where a list of uuids could become
    longer than a statement may be.
    """
    wanted = plans.c.state != str(PlanState.DELETED)
    if state is not None:
        wanted = plans.c.state == str(state)
    return (
        sa.select(actions.c.plan, actions.c.state, sa.func.count())
        .join_from(actions, plans)
        .where(wanted, plans.c.number >= first)
        .group_by(actions.c.plan, actions.c.state)
    )
