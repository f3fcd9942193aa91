# SPDX-License-Identifier: Apache-2.0
"""The statements of the database store: on plans, on the queue, and on several actions of a plan.

They are SQL for every kind of database; see :mod:`applier.storage.dialects` for what differs.
Whether a plan may start already is decided by the clock of the database, which all appliers share.
Adjacent reports that are equal except for the action become one statement, except in PostgreSQL. So
a commit usually has four statements, however many actions end and start in it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from applier.storage.schema import insert_into, words
from applier.storage.transactions import Write
from applier.storage.transitions import UNCLAIMED_PLAN, UNDOABLE, WAITING_PLAN
from planner.plan.states import PlanState

#: The row of one plan.
PLAN = "SELECT * FROM actionplan_plan WHERE uuid = :plan_uuid"
#: The uuids of all plans. SQLite reads them from an index, so that no page of rows is needed.
NUMBERS = "SELECT uuid, number FROM actionplan_plan ORDER BY uuid"
#: When each plan was made. It is read from an index, too.
MADE = "SELECT number, created_at FROM actionplan_plan ORDER BY created_at, number"
#: The actions of a plan as planned, in plan order.
ACTIONS = "SELECT * FROM actionplan_action WHERE plan = :plan_uuid ORDER BY position"
#: The same with the columns of their states, which are NULL for an action that has none.
_MEMBERS = """
    SELECT a.*, s.action_type, s.state, s.outcome, s.state_reason, s.status_message,
        s.started_at, s.ended_at, s.attempts
    FROM actionplan_action AS a
    LEFT JOIN actionplan_action_state AS s ON s.plan = a.plan AND s.uuid = a.uuid
    WHERE a.plan = :plan_uuid"""
MEMBERS = f"{_MEMBERS} ORDER BY a.position"
#: The same of one action, of those that a reference matches, and of those that run.
MEMBER = f"{_MEMBERS} AND a.uuid = :action_uuid"
MATCHES = f"""{_MEMBERS}
        AND (a.uuid = :reference OR a.uuid LIKE :beginning ESCAPE '/' OR a.name = :reference)
    ORDER BY a.position"""
RUNNING = f"{_MEMBERS} AND s.state = 'ONGOING' ORDER BY a.position"
#: Those that requests to the plan name, and how many are in each state, by their wave.
REQUESTED = f"""{_MEMBERS} AND a.uuid IN (
        SELECT action FROM actionplan_request WHERE plan = :plan_uuid)
    ORDER BY a.position"""
WAVE_STATES = """
    SELECT wave, state, count(*) AS number FROM actionplan_action_state
    WHERE plan = :plan_uuid AND wave IS NOT NULL GROUP BY wave, state ORDER BY wave, state"""
#: The state rows of the actions of a plan.
STATES = "SELECT * FROM actionplan_action_state WHERE plan = :plan_uuid"
#: State, start and number of attempts of one action.
ACTION = """
    SELECT state, started_at, attempts FROM actionplan_action_state
    WHERE plan = :plan_uuid AND uuid = :action_uuid"""
#: The ended attempts of an action, oldest first.
ATTEMPTS = """
    SELECT action, number, started_at, ended_at, state, outcome, message, output, worker,
        left_in
    FROM actionplan_attempt
    WHERE plan = :plan_uuid AND action = :action_uuid
    ORDER BY number"""
#: The ended attempts of all actions of a plan, with the end of each output.
ALL_ATTEMPTS = """
    SELECT action, number, started_at, ended_at, state, outcome, message, worker, left_in,
        CASE WHEN length(output) > :most THEN substr(output, length(output) - :most + 1)
            ELSE output END AS output
    FROM actionplan_attempt
    WHERE plan = :plan_uuid
    ORDER BY action, number"""
#: The latest attempts whose durations are used for a type, with tokens and parameters of their
#: actions.
DURATIONS = """
    SELECT t.started_at, t.ended_at, a.tokens, a.input_parameters
    FROM actionplan_attempt AS t
    LEFT JOIN actionplan_action AS a ON a.plan = t.plan AND a.uuid = t.action
    WHERE t.measures = :action_type AND t.ended_at < :before
    ORDER BY t.id DESC
    LIMIT :most"""
#: The requests of a plan with numbers greater than ``after``, oldest first.
REQUESTS = """
    SELECT * FROM actionplan_request
    WHERE plan = :plan_uuid AND number > :after
    ORDER BY number"""
#: The entries of the history with numbers greater than ``after``, latest first; at most ``most``.
HISTORY = """
    SELECT * FROM actionplan_history
    WHERE number > :after AND number < :before
    ORDER BY number DESC
    LIMIT :most"""
#: The same of one plan; and of plans, people and times. ``of`` and ``by`` are LIKE patterns.
HISTORY_OF_PLAN = """
    SELECT * FROM actionplan_history
    WHERE number > :after AND number < :before AND plan = :plan_uuid
    ORDER BY number DESC
    LIMIT :most"""
CHOSEN_HISTORY = """
    SELECT * FROM actionplan_history
    WHERE number > :after AND number < :before AND at >= :since
        AND who LIKE :by ESCAPE '/' AND plan LIKE :of ESCAPE '/'
    ORDER BY number DESC
    LIMIT :most"""
#: Whether a plan has entries of the history with numbers greater than ``after``.
LATER = """
    SELECT number FROM actionplan_history WHERE number > :after AND plan = :plan_uuid LIMIT 1"""
#: The names of the plans that have one, those saved last first.
NAMES = """
    SELECT uuid, name FROM actionplan_plan
    WHERE name IS NOT NULL ORDER BY number DESC LIMIT :most"""
#: One subscription that has not ended at the time ``now``, if there is any.
SUBSCRIBED = "SELECT name FROM actionplan_subscription WHERE until IS NULL OR until > :now LIMIT 1"
#: Check the claim of a plan and store the name of the write, which counts as a heartbeat. No row
#: matches if the claim has ended, if the write was already made, or if ``publishes`` (whether the
#: writer writes events; None for a write without any) is not as in the row. The row stays locked
#: until the transaction ends.
HOLD_CLAIM = """
    UPDATE actionplan_plan
    SET updated_at = :now, heartbeat_at = :now, last_write = :write
    WHERE uuid = :plan_uuid AND claim = :held AND publishes = coalesce(:publishes, publishes)
        AND coalesce(last_write, '') != :write"""
#: By the accepted states of a plan: check its state and store the name of the write. No row matches
#: if the plan is in another state or the write was already made.
HOLD_STATE: dict[tuple[PlanState, ...], str] = {
    states: f"""
    UPDATE actionplan_plan
    SET updated_at = :now, last_write = :write
    WHERE uuid = :plan_uuid AND state IN {words(states)} AND coalesce(last_write, '') != :write"""
    for states in (WAITING_PLAN, UNCLAIMED_PLAN)
}
#: Increment the number of requests of a plan that somebody runs.
COUNT_REQUEST = """
    UPDATE actionplan_plan SET requests = requests + 1
    WHERE uuid = :plan_uuid AND claim IS NOT NULL"""
#: Cancel the PENDING actions of a plan.
CANCEL = """
    UPDATE actionplan_action_state
    SET state = 'CANCELLED', state_reason = NULL, status_message = :new_message, ended_at = :now
    WHERE plan = :plan_uuid AND state = 'PENDING'"""
#: Replace the message of a SKIPPED action.
REWORD_SKIP = """
    UPDATE actionplan_action_state SET status_message = :new_message
    WHERE plan = :plan_uuid AND uuid = :action_uuid AND state = 'SKIPPED'"""
#: Change the state of a plan, if state and claim have not changed since they were read.
MOVE = """
    UPDATE actionplan_plan
    SET state = :new_state, deleted_from = :deleted_from, claim = :new_claim,
        status_message = :new_message, updated_at = :now, start_at = :start_at, last_write = :write
    WHERE uuid = :plan_uuid AND state = :old_state AND coalesce(claim, '') = :held
        AND requests = coalesce(:read, requests)"""
#: Put a plan at the end of the queue of plans that reserve resources; NULL removes it.
QUEUE_RESERVED = "UPDATE actionplan_plan SET reserved = :new_number WHERE uuid = :plan_uuid"
#: Release the resources that a plan has reserved.
GIVE_BACK = "DELETE FROM actionplan_reservation WHERE plan = :plan_uuid"
#: Remove all jobs at workers of a plan that has ended.
REMOVE_JOBS = "DELETE FROM actionplan_worker_job WHERE plan = :plan_uuid"
#: Store a heartbeat of the claimant.
BEAT = "UPDATE actionplan_plan SET heartbeat_at = :now WHERE uuid = :plan_uuid AND claim = :held"
#: The uuid of the plan that was saved before ``earlier`` others, except removed ones.
LAST = """
    SELECT uuid FROM actionplan_plan WHERE state != 'DELETED'
    ORDER BY number DESC LIMIT 1 OFFSET :earlier"""
#: The plans that reserved a plan's resources before it did, in the order of their reservations.
HELD = """
    SELECT r.resource, theirs.uuid AS plan, theirs.name, theirs.claimant_user AS "user"
    FROM actionplan_reservation AS own
    JOIN actionplan_plan AS mine ON mine.uuid = own.plan
    JOIN actionplan_reservation AS r ON r.resource = own.resource
    JOIN actionplan_plan AS theirs ON theirs.uuid = r.plan
    WHERE own.plan = :plan_uuid AND theirs.reserved < mine.reserved
    ORDER BY theirs.reserved"""
#: Delete a service, before its next report is inserted or when it has ended.
FORGET_SERVICE = "DELETE FROM actionplan_service WHERE uuid = :service_uuid"
SERVICES = "SELECT * FROM actionplan_service ORDER BY heartbeat_at DESC, uuid"
#: All plans that a reference may match, and perhaps more: SQLite's LIKE ignores
#: case, and MySQL's = ignores trailing spaces.
FIND = """
    SELECT uuid, name FROM actionplan_plan
    WHERE (uuid LIKE :beginning ESCAPE '/' OR name = :reference) AND state != 'DELETED'
        OR uuid = :reference"""


def beginning(reference: str) -> str:
    """Return the LIKE pattern, for :data:`FIND`, of all texts that begin with ``reference``.

    >>> beginning("6a1f_")
    '6a1f/_%'
    """
    # No uuid begins with a longer text, and SQLite refuses long patterns.
    return exactly(reference[:40]) + "%"


def exactly(text: str | None) -> str:
    """Return the LIKE pattern of a text; that of any text for None."""
    return "%" if text is None else re.sub("([/%_])", r"/\1", text)


#: The limit of a list that has none.
ALL = sys.maxsize

#: Columns that a new plan leaves out: ``number`` is set by the database, the others by runs.
OF_RUNS = frozenset(
    {
        "number",
        "claim",
        "claimant_host",
        "claimant_pid",
        "claimant_user",
        "claimant_jobs",
        "claimant_options",
        "heartbeat_at",
        "heartbeat_interval_s",
        "requests_before",
        "claimed_at",
        "last_write",
        "queued",
        "reserved",
        "publishes",
        "deleted_from",
    }
)
#: Insert an entry of the history; the database sets its number.
INSERT_HISTORY = insert_into("actionplan_history", without=("number",))
#: Insert the row of a change that is to happen once; it fails if there is one with this key.
INSERT_ANSWER = insert_into("actionplan_answer")
#: The answers to requests that changed no plan, from before a time.
_OLD_ANSWERS = "FROM actionplan_answer WHERE plan = :of_none AND at < :before"
OLD_ANSWERS, FORGET_ANSWERS = f"SELECT at {_OLD_ANSWERS} LIMIT 1", f"DELETE {_OLD_ANSWERS}"
#: Insert one row into a table.
INSERT_PLAN = insert_into("actionplan_plan", without=OF_RUNS)
INSERT_ACTION = insert_into("actionplan_action")
INSERT_STATE = insert_into("actionplan_action_state")
INSERT_REQUEST = insert_into("actionplan_request")
INSERT_SERVICE = insert_into("actionplan_service")
INSERT_RESERVATION = insert_into("actionplan_reservation")
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
#: An action of a plan becomes UNKNOWN.
DOUBT = "UPDATE actionplan_plan SET doubtful = 1 WHERE uuid = :plan_uuid AND doubtful = 0"
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
