# SPDX-License-Identifier: Apache-2.0
"""Statements on several actions of one plan; each is built once for each number of actions.

Adjacent reports that are equal except for the action become one statement, except in PostgreSQL. So
a commit usually has four statements, however many actions end and start in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from applier.storage.schema import words
from applier.storage.transactions import Write
from applier.storage.transitions import UNDOABLE

#: The parameters for the uuids of actions; one statement has at most this many actions.
UUIDS = tuple(f"uuid_{i}" for i in range(50))
#: How many actions are in one statement, by kind of database. PostgreSQL gets one statement for
#: each action: without statistics of the table, it would read all rows of a plan to find several
#: of them. In its pipeline, single statements are cheap.
AT_ONCE = {"sqlite": len(UUIDS), "mysql": len(UUIDS), "postgresql": 1}

#: A function that returns the statement for a number of actions.
Statements = Callable[[int], str]


def writes(
    statements: Statements,
    uuids: Sequence[str],
    values: Mapping[str, Any],
    *,
    at_once: int,
    checked: bool = True,
) -> Iterator[Write]:
    """Yield the writes for these actions; each statement has up to ``at_once`` of them.

    ``values`` are the other parameters. If ``checked``, each write must change as many rows as it
    has actions.
    """
    for first in range(0, len(uuids), at_once):
        some = uuids[first : first + at_once]
        parameters = {**values, **dict(zip(UUIDS, some, strict=False))}
        yield Write(statements(len(some)), parameters, len(some) if checked else None)


def _about(text: str) -> Statements:
    """Return a function that makes and caches the statement for a number of actions.

    ``THESE`` in it stands for the condition that a row is that of one of these actions.
    """

    @cache
    def about(number: int) -> str:
        uuids = ", ".join(f":{name}" for name in UUIDS[:number])
        return text.replace("THESE", f"s.plan = :plan_uuid AND s.uuid IN ({uuids})")

    return about


#: Start actions that are PENDING.
START = _about("""
    UPDATE actionplan_action_state AS s
    SET state = 'ONGOING', outcome = NULL, state_reason = NULL, status_message = :new_message,
        started_at = :now, ended_at = NULL, attempts = attempts + 1
    WHERE THESE AND state = 'PENDING'""")
#: Continue the last attempt of actions that are UNKNOWN, whose commands were found.
REOPEN = _about("""
    UPDATE actionplan_action_state AS s
    SET state = 'ONGOING', outcome = NULL, state_reason = NULL, status_message = :new_message,
        ended_at = NULL
    WHERE THESE AND state = 'UNKNOWN'""")
#: Delete the record of these attempts, which have not ended after all.
DROP_ATTEMPT = _about("""
    DELETE FROM actionplan_attempt
    WHERE plan = :plan_uuid AND EXISTS (
        SELECT s.uuid FROM actionplan_action_state AS s
        WHERE THESE AND s.plan = actionplan_attempt.plan
            AND s.uuid = actionplan_attempt.action AND s.attempts = actionplan_attempt.number)""")
#: End actions that are in the old state of their reports.
END = _about("""
    UPDATE actionplan_action_state AS s
    SET state = :new_state, outcome = :new_outcome, state_reason = :new_reason,
        status_message = :new_message, ended_at = :now
    WHERE THESE AND state = :old_state""")
#: Make actions PENDING again.
AGAIN = _about("""
    UPDATE actionplan_action_state AS s
    SET state = 'PENDING', outcome = NULL, state_reason = NULL, status_message = :new_message,
        started_at = NULL, ended_at = NULL
    WHERE THESE""")
#: Write the new state of reverted actions of another plan, if their old state allows that.
UNDONE = _about(f"""
    UPDATE actionplan_action_state AS s
    SET state = :new_state, state_reason = NULL, status_message = :new_message
    WHERE THESE AND state IN {words(sorted(UNDOABLE))}""")
#: Insert the attempts that just ended, copied from the rows of their actions. Durations are used of
#: those that SUCCEEDED, changed or created something, and started under the current claim. One that
#: was given up may still be at work: in a named process, by default that of the claimant. A
#: pipeline sends this before the result of END is known, hence the last condition.
KEEP_ATTEMPT = _about("""
    INSERT INTO actionplan_attempt (
        plan, action, number, started_at, ended_at, state, outcome, measures, message, output,
        left_in)
    SELECT s.plan, s.uuid, s.attempts, coalesce(s.started_at, s.ended_at), s.ended_at, s.state,
        s.outcome,
        CASE WHEN s.state = 'SUCCEEDED' AND s.outcome IN ('changed', 'created')
            AND s.started_at >= p.claimed_at THEN s.action_type END,
        s.status_message, :new_output,
        CASE WHEN :given_up = 1
            THEN coalesce(:new_left_in, p.claimant_host || ':' || p.claimant_pid) END
    FROM actionplan_action_state AS s JOIN actionplan_plan AS p ON p.uuid = s.plan
    WHERE THESE AND s.ended_at IS NOT NULL""")
