# SPDX-License-Identifier: Apache-2.0
"""What holds for every store, wherever it keeps its plans: pure, and the same sentences for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime
from types import EllipsisType

from applier.contracts import Claimant, Report
from applier.errors import PlanConflict, PlanNotFound
from applier.store import Attempt, Reservation
from planner.errors import InvalidPlan, InvalidTransition
from planner.model import ActionPlan
from planner.states import ActionState, Outcome, PlanState, Who, sources

#: Of what an action printed, this many bytes (UTF-8) are kept: the last ones.
OUTPUT_LIMIT = 64 * 1024
#: The fewest characters that are read as the beginning of a uuid; fewer are only a name.
SHORTEST_BEGINNING = 4
#: The word for the plan that was saved last.
LAST = "last"
#: Nobody runs a plan in one of these, so an operator may still skip its actions.
WAITING_PLAN = (PlanState.RECOMMENDED, PlanState.PENDING, PlanState.PAUSED)
#: What becomes of the open actions of a plan that nobody runs when an operator gives it a state:
#: what was running when its applier died is in doubt.
LEFT_OPEN = {
    PlanState.CANCELLED: {
        ActionState.PENDING: ActionState.CANCELLED,
        ActionState.ONGOING: ActionState.UNKNOWN,
    },
    PlanState.PAUSED: {ActionState.ONGOING: ActionState.UNKNOWN},
}
#: Nobody runs a plan in one of these, so an operator may settle its actions.
UNCLAIMED_PLAN = (*WAITING_PLAN, PlanState.SUCCEEDED, PlanState.FAILED, PlanState.CANCELLED)
#: A plan in one of these can be resumed; a RECOMMENDED one is started.
RESUMABLE = tuple(
    state
    for state in sources(PlanState.PENDING, Who.OPERATOR)
    if state is not PlanState.RECOMMENDED
)
#: What an operator may say of work that is in doubt, and the outcome that goes with it.
SETTLED = {ActionState.SUCCEEDED: Outcome.CHANGED, ActionState.FAILED: Outcome.FAILED}

#: What the end of an attempt to undo an action makes of that action.
UNDONE = {
    ActionState.SUCCEEDED: ActionState.REVERTED,
    ActionState.SKIPPED: ActionState.REVERTED,
    ActionState.FAILED: ActionState.REVERT_FAILED,
    ActionState.UNKNOWN: ActionState.REVERT_FAILED,
}
#: What may be undone.
UNDOABLE = frozenset({ActionState.SUCCEEDED, ActionState.REVERT_FAILED})


def gives_up(state: PlanState) -> bool:
    """Say whether a plan that comes into this state is let go by who runs it."""
    return state not in (PlanState.ONGOING, PlanState.CANCELLING)


def measures(end: Report | Attempt) -> bool:
    """Say whether an attempt that ends so tells how long its type of action takes."""
    worked = end.outcome in (Outcome.CHANGED, Outcome.CREATED)
    return worked and end.state is ActionState.SUCCEEDED


def seconds(times: Iterable[tuple[datetime, datetime]]) -> list[float]:
    """Turn (start, end) into durations; those that a clock made negative tell nothing."""
    took = ((end - start).total_seconds() for start, end in times)
    return [duration for duration in took if duration >= 0]


def attempt_end(report: Report) -> tuple[ActionState, Outcome | None]:
    """Say how an attempt ended: one that is tried again has FAILED."""
    if report.state is ActionState.PENDING:
        return ActionState.FAILED, report.outcome
    return report.state, report.outcome


def require_resumable(uuid: str, state: PlanState, actions: Collection[str]) -> None:
    """Raise InvalidTransition for a plan that nobody can resume.

    One that SUCCEEDED can be where ``actions`` of it are to run again: a rollback undid them.
    """
    if state not in RESUMABLE or (state is PlanState.SUCCEEDED and not actions):
        raise InvalidTransition("plan", uuid, state, PlanState.PENDING, RESUMABLE, Who.OPERATOR)


def require_seen(
    uuid: str, state: str, found: Claimant | None, seen: Claimant | EllipsisType | None
) -> None:
    """Raise PlanConflict if somebody runs a plan who was not ``seen``, or was heard of since."""
    if seen is not ... and found != seen:
        text = f"plan {uuid[:8]} is {state}: who runs it has changed, or was heard of, in between"
        raise PlanConflict(uuid, state, text)


def require_free(uuid: str, state: str, found: Claimant | None, seen: Claimant | None) -> None:
    """Raise PlanConflict if somebody runs a plan, unless that is who was ``seen`` to be gone."""
    if found is not None:
        if seen is None:
            raise still_claimed(uuid, state)
        require_seen(uuid, state, found, seen)


def require_settling(action: str, new: ActionState) -> None:
    """Raise InvalidTransition for a state that is no answer to whether an action did its work."""
    if new not in SETTLED:
        raise InvalidTransition("action", action, "in doubt", new, (), Who.OPERATOR)


def firsts(found: Iterable[Reservation]) -> list[Reservation]:
    """Of each resource keep the reservation that comes first; sorted by resource."""
    first: dict[str, Reservation] = {}
    for reservation in found:
        first.setdefault(reservation.resource, reservation)
    return [first[resource] for resource in sorted(first)]


def undone(plan: str, report: Report) -> Report | None:
    """Say what the end of a revert makes of the action that it was to undo; None: nothing."""
    new = UNDONE.get(report.state)
    if report.undoes is None or new is None:
        return None
    how = "undone" if new is ActionState.REVERTED else f"not undone, {report.message}"
    message = f"{how} (rollback plan {plan[:8]})"
    return Report(uuid=report.undoes.action, old=ActionState.SUCCEEDED, state=new, message=message)


def kept(text: str | None) -> str | None:
    r"""Give the end of a text that somebody else wrote, in characters that every database takes.

    At most :data:`OUTPUT_LIMIT` bytes. What a command prints may be anything, and must not be the
    reason that its outcome cannot be written: NUL and lone surrogates are replaced.

    >>> kept("a\0b\ud800")
    'a�b?'
    """
    if text is None:
        return None
    data = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace")
    return data[-OUTPUT_LIMIT:].decode("utf-8", "ignore")


def require_distinct(plan: ActionPlan) -> None:
    """Raise InvalidPlan if two actions of a plan have one uuid: no record could tell them apart."""
    counts = Counter(action.uuid for action in plan.actions)
    if len(counts) != len(plan.actions):
        twice = (uuid for uuid, number in counts.items() if number > 1)
        raise InvalidPlan(f"two actions of plan {plan.uuid} have the uuid {u}" for u in twice)


def choose(reference: str, known: Collection[tuple[str, str | None]]) -> str:
    """Give the uuid of the one plan, of (uuid, name) pairs, that a person means.

    A whole uuid is preferred to a beginning or a name; of these there must be only one. Raises
    PlanNotFound with the beginnings of all that fit.

    >>> plans = [("6a1f-1", "web"), ("6a1f-2", None), ("77e0-3", "web-2")]
    >>> choose("77e0", plans), choose("web", plans), choose("6a1f-2", plans)
    ('77e0-3', '6a1f-1', '6a1f-2')
    >>> choose("6a1f", plans)
    Traceback (most recent call last):
    applier.errors.PlanNotFound: '6a1f' fits 2 plans: 6a1f-1, 6a1f-2
    """
    if any(uuid == reference for uuid, _ in known):
        return reference
    long_enough = len(reference) >= SHORTEST_BEGINNING
    fits = [
        uuid
        for uuid, name in known
        if name == reference or (long_enough and uuid.startswith(reference))
    ]
    if len(fits) != 1:
        raise PlanNotFound(reference, beginnings(fits))
    return fits[0]


def beginnings(uuids: Iterable[str]) -> list[str]:
    """Cut uuids to the first eight characters, or as many more as tell them apart, sorted."""
    whole = sorted(uuids)
    for length in range(8, max(map(len, whole), default=0)):
        short = [uuid[:length] for uuid in whole]
        if len(set(short)) == len(whole):
            return short
    return whole


def already_saved(uuid: str, state: str) -> PlanConflict:
    """Say that a plan of this uuid is there."""
    return PlanConflict(uuid, state, f"plan {uuid} is already in the record, {state}")


def changed_meanwhile(uuid: str, old: str, state: str) -> PlanConflict:
    """Say that somebody else was faster."""
    text = f"plan {uuid[:8]} was {old} and is {state} now: somebody else changed it"
    return PlanConflict(uuid, state, text)


def cannot_claim(uuid: str, state: str) -> PlanConflict:
    """Say that a plan is not there for the taking."""
    return PlanConflict(
        uuid, state, f"plan {uuid[:8]} is {state}: only PENDING plans can be claimed"
    )


def not_claimed(uuid: str, state: str) -> PlanConflict:
    """Say that nobody would read a request."""
    text = f"plan {uuid[:8]} is {state}: nobody runs it, so nobody would read a request"
    return PlanConflict(uuid, state, text)


def not_waiting(uuid: str, state: str, accepted: Iterable[PlanState]) -> PlanConflict:
    """Say that an operator may not write a plan's actions now."""
    states = ", ".join(accepted)
    text = f"plan {uuid[:8]} is {state}: actions can be changed here while it is one of {states}"
    return PlanConflict(uuid, state, text)


def still_claimed(uuid: str, state: str) -> PlanConflict:
    """Say that a plan must be resumed, and not started, if the one who runs it is gone."""
    text = f"plan {uuid[:8]} is {state}: somebody runs it; if that is over, resume the plan"
    return PlanConflict(uuid, state, text)


def lost_claim(uuid: str, state: str) -> PlanConflict:
    """Say that the plan is run by somebody else now, or by nobody."""
    return PlanConflict(uuid, state, f"plan {uuid[:8]} is {state}, and this run's claim has ended")


def row_changed(uuid: str, state: str, action: str, old: str, found: str) -> PlanConflict:
    """Say that an action is not in the state that a report was made from."""
    text = f"action {action} of plan {uuid} is {found}, not {old} as its report says"
    return PlanConflict(uuid, state, text)
