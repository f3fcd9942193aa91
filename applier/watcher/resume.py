# SPDX-License-Identifier: Apache-2.0
"""Lets plans go on: makes them PENDING again, and sends them to the appliers.

They are plans whose applier has died, or that ended without doing all of their work. The next run
verifies actions that were running. Actions that SUCCEEDED or were SKIPPED never run again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import sqlalchemy as sa
from oslo_config import cfg
from oslo_utils import timeutils
from watcher.db.sqlalchemy import models

from applier.backoff import delays_s
from applier.contracts import Claimant
from applier.errors import ApplierError, PlanConflict, StoreError
from applier.run.liveness import SilenceWatch, gone
from applier.watcher import claims, database, endings
from applier.watcher.database import ACTIONS, PLANS, actions_of, attempts, plan_row, runs
from applier.watcher.states import CANCEL_STATES, DOUBT, says_not_run
from planner.errors import PlannerError

SERVICES = models.Service.__table__
_RUNNING = ("ONGOING", "CANCELLING")
#: The states of plans that can become PENDING; from _RUNNING only if their applier has died.
RESUMABLE = ("PENDING", "CANCELLED", "FAILED", *_RUNNING)
_SAY_SO = "if nobody runs it, and nothing of it had begun, say so: --not-begun"
#: Seconds before an unclaimed plan is sent again: the first pause, and the longest.
FIRST_S, LONGEST_S = 5.0, 60.0
Value = TypeVar("Value")


@database.translated
def reopen(uuid: str, seen: Claimant | None, *, not_begun: bool = False) -> None:
    """Make a plan PENDING; ``seen`` is its claimant, which has died, or None without a claimant.

    ``not_begun`` is true if an operator states that no action had begun (see
    :func:`refusal`). Raises PlanNotFound, and PlanConflict if the plan cannot
    become PENDING or if another process changed it meanwhile.
    """
    now = datetime.now(UTC)
    with database.writing() as connection:
        row = plan_row(connection, uuid, lock=True)
        run = claims.run_row(connection, uuid)
        if seen is not None:
            claims.end(connection, uuid, seen)
            endings.fail_repeatedly_interrupted(connection, uuid, now)
        why = _refusal(row, run, seen) or (
            refusal(connection, row, run, not_begun=not_begun) if seen is None else None
        )
        if why:
            raise PlanConflict(uuid, row.state, f"plan {uuid} is {row.state}: {why}")
        for uuids, state, message in _resets(connection, row):
            database.set_actions(connection, ACTIONS.c.uuid.in_(uuids), now, state, message)
        pending = {"state": "PENDING", "status_message": None, "hostname": None}
        if not database.set_plan(connection, row, now, **pending):
            text = f"plan {uuid} was {row.state}: somebody else changed it meanwhile"
            raise PlanConflict(uuid, row.state, text)


def _refusal(row: Any, run: Any, seen: Claimant | None) -> str | None:
    """Return why a plan cannot become PENDING; None if its state and its claim allow it."""
    if seen is None and run is not None and run.claim is not None:
        return f"process {run.pid} on {run.host} runs it"
    if row.state not in RESUMABLE:
        return f"accepted are {', '.join(RESUMABLE)}"
    return None


def _resets(connection: sa.Connection, row: Any) -> Iterator[tuple[list[str], str, str | None]]:
    """Yield uuids of actions, with the state and the message that they get.

    Actions with an open attempt become ONGOING: the next run verifies them. Those whose last
    attempt is UNKNOWN become FAILED, in doubt. The others that did not do their work become
    PENDING. If the applier has died, FAILED actions are left out, because nobody decided to retry
    them.
    """
    begun = database.attempts_of(connection, row.uuid)
    failed = () if row.state in _RUNNING else ("FAILED",)
    verified, doubtful, reset = [], [], []
    for action in connection.execute(actions_of(row.id, ("CANCELLED", *failed, *_RUNNING))):
        last = begun[action.uuid][-1] if action.uuid in begun else None
        if last is not None and last.ended_at is None:
            verified.append(action.uuid)
        elif last is not None and last.state == "UNKNOWN":
            doubtful.append(action.uuid)
        else:
            reset.append(action.uuid)
    yield verified, "ONGOING", None
    yield doubtful, "FAILED", DOUBT
    yield reset, "PENDING", None


@database.translated
def waiting(also: str | None = None) -> list[str]:
    """Return the uuids of PENDING plans without a claimant that this engine has run before.

    The plan ``also`` is included if it is PENDING without a claimant, even if it never ran here.
    """
    with database.reading() as connection:
        pending = sa.select(PLANS.c.uuid).where(
            PLANS.c.state == "PENDING", PLANS.c.deleted_at.is_(None)
        )
        uuids = list(connection.execute(pending).scalars())
        known = sa.select(runs.c.plan_uuid, runs.c.claim).where(runs.c.plan_uuid.in_(uuids))
        claim = {row.plan_uuid: row.claim for row in connection.execute(known)}
    ours = claim.keys() | {also}
    return [uuid for uuid in uuids if uuid in ours and claim.get(uuid) is None]


def refusal(connection: sa.Connection, row: Any, run: Any, *, not_begun: bool) -> str | None:
    """Return why a plan without a claimant cannot be resumed; None if it can.

    ``row`` is the row of the plan. ``run`` is the row of its last run by this engine, or None.
    ``not_begun`` is true if an operator states that no action had begun. The plan is refused all
    the same if the database shows that one had.

    Watcher makes a plan ONGOING before it calls the engine, which claims it. If the applier is
    killed between the two, no action of the plan has begun. Watcher's own engine makes no claims,
    and Watcher writes the same message to the actions that it cancels whether they had begun or
    not. Where the database does not show it, an operator has to state that none had begun.
    """
    if run is not None and row.state not in _RUNNING:
        return None
    begun = _begun_by_others(connection, row, first=run is None)
    if begun:
        return f"Watcher's own engine has begun actions of it: {begun}; a new audit plans the rest"
    if not_begun:
        return None
    if row.state in _RUNNING:
        return _alive(connection, row.hostname)
    if _unclear(connection, row):
        return f"this engine never ran it, so nobody knows what of it had begun; {_SAY_SO}"
    return None


def _begun_by_others(connection: sa.Connection, row: Any, *, first: bool) -> int:
    """Return how many actions have begun without an attempt of this engine.

    ``first`` is true if this engine never ran the plan: then actions that have ended count as well.
    """
    ours = sa.select(attempts.c.action_uuid).where(attempts.c.plan_uuid == row.uuid)
    states = (*_RUNNING, "SUCCEEDED", "FAILED") if first else _RUNNING
    found = actions_of(row.id, states).where(ACTIONS.c.uuid.not_in(ours))
    return len(connection.execute(found).all())


def _unclear(connection: sa.Connection, row: Any) -> bool:
    """Return whether a plan has CANCELLED actions that may have begun before."""
    found = connection.execute(actions_of(row.id, ["CANCELLED"]))
    return not all(says_not_run(action.status_message) for action in found)


def _alive(connection: sa.Connection, host: str | None) -> str | None:
    """Return a refusal if the applier of a plan may be alive; None if Watcher counts it as down."""
    if not host:
        return f"Watcher does not say which applier has it; {_SAY_SO}"
    mine = (SERVICES.c.name == "watcher-applier", SERVICES.c.host == host)
    kept = sa.select(SERVICES).where(*mine, SERVICES.c.deleted_at.is_(None))
    oldest = timeutils.utcnow() - timedelta(seconds=cfg.CONF.service_down_time)
    for service in connection.execute(kept):
        heard = service.last_seen_up or service.updated_at or service.created_at
        if heard >= oldest:
            return f"applier {host} has it, and was heard of at {heard:%H:%M:%S} UTC; {_SAY_SO}"
    return None


def to_appliers() -> Callable[[str], None]:
    """Return a function that sends a plan to Watcher's appliers."""
    from watcher.applier.rpcapi import ApplierAPI
    from watcher.common.context import make_context

    appliers: Any = ApplierAPI()
    context = make_context(is_admin=True)
    return lambda uuid: appliers.launch_action_plan(context, uuid)


class Follower:
    """Watches the claimants of all plans, or of the plan ``only``, in calls of :meth:`look`.

    ``cast`` sends the uuid of a plan to the appliers. ``tell`` is called with sentences for the
    user.
    """

    def __init__(
        self,
        cast: Callable[[str], None],
        tell: Callable[[str], None],
        only: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cast, self._tell, self._only, self._clock = cast, tell, only, clock
        self._watch = SilenceWatch(clock)
        #: The claimants at the first look, by plan.
        self._first: dict[str, Claimant] | None = None
        #: By unclaimed plan: when it is to be sent again, and the delays after that, in seconds.
        self._sent: dict[str, tuple[float, Iterator[float]]] = {}

    def reset(self) -> None:
        """Reset the counts of missed heartbeats, after a time in which none could be written."""
        self._watch.reset()

    def look(self) -> bool:
        """Reopen the plans of claimants that have died, and send unclaimed plans to the appliers.

        Return whether another look is needed: because a plan waits for an applier, or because a
        claimant has written no heartbeat since the first look and may still turn out to be dead.
        """
        found = self._mine(claims.claimed())
        if self._first is None:
            self._first = found
        self._watch.begin_round()
        for uuid, claimant in found.items():
            if self._watch.is_dead(uuid, claimant):
                self._revive(uuid, claimant)
        unclaimed = self._mine(dict.fromkeys(waiting(self._only)))
        self._sent = {uuid: known for uuid, known in self._sent.items() if uuid in unclaimed}
        for uuid in unclaimed:
            self._send(uuid)
        return bool(unclaimed or found.items() & self._first.items())

    def _mine(self, plans: dict[str, Value]) -> dict[str, Value]:
        return {u: value for u, value in plans.items() if self._only in (None, u)}

    def _revive(self, uuid: str, claimant: Claimant) -> None:
        try:
            if endings.plan_state(uuid) in CANCEL_STATES:
                endings.take_over(uuid, claimant, resume=True)
                self._tell(f"plan {uuid}: {gone(claimant)}; its cancel was finished")
            else:
                reopen(uuid, claimant)
                self._tell(f"plan {uuid}: {gone(claimant)}; it goes on")
        except StoreError:
            raise
        except (ApplierError, PlannerError) as reason:
            self._tell(f"plan {uuid}: {reason}")

    def _send(self, uuid: str) -> None:
        now = self._clock()
        due, delays = self._sent.get(uuid) or (now, delays_s(FIRST_S, LONGEST_S))
        if now >= due:
            self._cast(uuid)
            due = now + next(delays)
        self._sent[uuid] = due, delays
