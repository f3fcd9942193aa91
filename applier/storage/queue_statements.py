# SPDX-License-Identifier: Apache-2.0
"""The statements of the queue of plans that wait for an applier.

Whether a plan may start already is decided by the clock of the database, which all appliers share.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import bindparam

from applier.storage.columns import is_due
from applier.storage.compiled import Deferred, word
from applier.storage.statements import SUBSCRIBED
from applier.storage.tables import plans, turn
from planner.states import PlanState

_ONE = sa.literal_column("1", sa.Integer)


#: Increment the last number in the queues. Other transactions wait here until this one ends.
TAKE_TURN = Deferred(lambda: sa.update(turn).values(number=turn.c.number + _ONE))
TURN = Deferred(lambda: sa.select(turn.c.number))
#: Put a plan at the end of the queue of plans that wait for an applier.
QUEUE = Deferred(
    lambda: (
        sa.update(plans)
        .where(plans.c.uuid == bindparam("plan_uuid"))
        .values(queued=bindparam("new_number"))
    )
)
#: Claim a plan that waits for an applier, and may start now.
CLAIM = Deferred(
    lambda: (
        sa.update(plans)
        .where(
            plans.c.uuid == bindparam("plan_uuid"),
            plans.c.state == word(PlanState.PENDING),
            is_due(plans.c.start_at),
        )
        .values(
            state=word(PlanState.ONGOING),
            claim=bindparam("new_claim"),
            claimant_host=bindparam("host"),
            claimant_pid=bindparam("pid"),
            claimant_user=bindparam("user"),
            claimant_jobs=bindparam("jobs"),
            updated_at=bindparam("now"),
            heartbeat_at=bindparam("now"),
            heartbeat_interval_s=bindparam("interval_s"),
            requests_before=plans.c.requests,
            publishes=sa.case(
                (SUBSCRIBED().exists(), _ONE), else_=sa.literal_column("0", sa.Integer)
            ),
            claimed_at=bindparam("now"),
            start_at=sa.null(),
            last_write=bindparam("new_claim"),
        )
    )
)
#: The plans that wait for an applier and may start now, longest wait first.
PENDING_PLANS = Deferred(
    lambda: (
        sa.select(plans.c.uuid)
        .where(plans.c.state == word(PlanState.PENDING), is_due(plans.c.start_at))
        .order_by(sa.func.coalesce(plans.c.queued, sa.literal_column("0")), plans.c.number)
    )
)
