# SPDX-License-Identifier: Apache-2.0
"""The statements of the queue of plans that wait for an applier.

Whether a plan may start already is decided by the clock of the database, which all appliers share.
"""

from __future__ import annotations

#: Increment the last number in the queues. Other transactions wait here until this one ends.
TAKE_TURN = "UPDATE actionplan_turn SET number = number + 1"
TURN = "SELECT number FROM actionplan_turn"
_DUE = "state = 'PENDING' AND (start_at IS NULL OR start_at <= now_plus(0))"
#: The plans that wait for an applier and may start now, longest wait first.
WAITING = f"FROM actionplan_plan WHERE {_DUE} ORDER BY coalesce(queued, 0), number"
PENDING_PLANS = f"SELECT uuid {WAITING}"
#: Put a plan at the end of the queue of plans that wait for an applier.
QUEUE = "UPDATE actionplan_plan SET queued = :new_number WHERE uuid = :plan_uuid"
#: Claim a plan that waits for an applier, and may start now.
CLAIM = f"""
    UPDATE actionplan_plan
    SET state = 'ONGOING', claim = :new_claim, claimant_host = :host, claimant_pid = :pid,
        claimant_user = :user, claimant_jobs = :jobs, claimant_options = :options,
        updated_at = :now, heartbeat_at = :now,
        heartbeat_interval_s = :interval_s, requests_before = requests,
        publishes = CASE WHEN EXISTS (
            SELECT name FROM actionplan_subscription WHERE until IS NULL OR until > :now
        ) THEN 1 ELSE 0 END,
        claimed_at = :now, start_at = NULL, last_write = :new_claim
    WHERE uuid = :plan_uuid AND {_DUE}"""
