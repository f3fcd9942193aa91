# SPDX-License-Identifier: Apache-2.0
"""The table of actions: times, slack, reasons, attempts and the ends of their outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from applier.scheduling.forecast import Forecast
from applier.store import Attempt
from applier.timeline.values import Wait
from applier.timeline.waits import NO_WAIT, Observed
from applier.wording import duration
from planner.plan.model import Action, ActionPlan
from planner.plan.states import OPEN, ActionState
from planner.render import look
from planner.render.swimlanes import places_of

#: The maximum number of actions in the table, and of characters of one output and of all outputs.
MOST_ROWS = 2000
#: How many of the slowest actions are listed.
SLOWEST = 5
OUTPUT, ALL_OUTPUTS = 4000, 150_000
#: The maximum length of a message or a description, and in a table of more than MANY actions.
_LONGEST, _SHORT, MANY = 300, 120, 300
#: How many waits and attempts of an action are shown, the last ones.
_WAITS, _ATTEMPTS = 3, 5
#: The parameter that names the resource of an action for people.
_NAME = "resource_name"
#: A slack of fewer seconds counts as no slack.
SLIGHT_S = 0.05
#: The outputs of actions in these states are shown first, if there is no room for all.
_FIRST = (ActionState.FAILED, ActionState.UNKNOWN, ActionState.REVERT_FAILED, ActionState.CANCELLED)


class Row(NamedTuple):
    """An action in the table, with its number in pictures.

    Columns of times are sorted by those in seconds, which are None if not known; ``planned_s`` is
    what was expected. ``most`` is the maximum length of its texts. ``attempts`` are the last ended
    ones, each with as much of its output as is shown, None if all of it is left out.
    """

    number: int
    action: Action
    where: str
    start: str
    start_s: float | None
    took_s: float | None
    planned_s: float | None
    slack_s: float | None
    is_critical: bool
    most: int
    waits: Sequence[Wait]
    attempts: Sequence[tuple[Attempt, str | None]]


def rows(
    plan: ActionPlan,
    found: Observed,
    made: Forecast,
    planned_s: Mapping[str, float],
    attempts: Mapping[str, Sequence[Attempt]],
) -> tuple[list[Row], list[Row]]:
    """Return the rows of the table in schedule order, at most ``MOST_ROWS``; and the slowest ones.

    ``made`` is a forecast of the whole plan, ``planned_s`` the seconds that were expected by
    action, as far as known, ``attempts`` are its ended attempts by action.
    """
    actions = numbered(plan)
    shown, names = _outputs([a for _, a in actions], attempts), names_of_resources(plan)
    critical, times = frozenset(found.critical), found.times
    most = _SHORT if len(actions) > MANY else _LONGEST

    def took_s(numbered: tuple[int, Action]) -> float:
        interval = times.intervals[numbered[1].uuid]
        return interval.end_s - interval.start_s

    def row(numbered: tuple[int, Action]) -> Row:
        number, action = numbered
        uuid, resource = action.uuid, action.resource_id or ""
        start_s, ran = times.intervals[uuid].start_s, uuid in times.runs
        is_late = times.began is None or (action.state in OPEN and action.started_at is None)
        return Row(
            number=number,
            action=action,
            where=", ".join(places_of(plan.planner, action)) or names.get(resource, resource),
            start=moment(times.began, start_s, is_expected=is_late) if ran else "-",
            start_s=start_s if ran else None,
            took_s=took_s(numbered) if ran else None,
            planned_s=planned_s.get(uuid),
            slack_s=made.slack_s.get(uuid),
            is_critical=uuid in critical,
            most=most,
            waits=found.waiting.get(uuid, NO_WAIT).waits[-_WAITS:],
            attempts=[
                (one, shown.get((uuid, one.number), ""))
                for one in attempts.get(uuid, ())[-_ATTEMPTS:]
            ],
        )

    ran = [one for one in actions if one[1].uuid in times.runs]
    slowest = sorted(ran, key=took_s, reverse=True)[:SLOWEST]
    return list(map(row, actions[:MOST_ROWS])), list(map(row, slowest))


def numbered(plan: ActionPlan) -> list[tuple[int, Action]]:
    """Return the actions of a plan without joins, each with its number, as in pictures."""
    numbers = look.numbered(plan)
    return [(numbers[a.uuid], a) for a in plan.actions if a.uuid in numbers]


def names_of_resources(plan: ActionPlan) -> dict[str, str]:
    """Return the names of resources by id, as far as parameters of the actions have them.

    >>> named = {"resource_name": "web-1"}
    >>> move = Action(uuid="u", action_type="migrate", resource_id="6a1f", input_parameters=named)
    >>> names_of_resources(ActionPlan(uuid="p", planner="weight", actions=(move,)))
    {'6a1f': 'web-1'}
    """
    return {
        action.resource_id: name
        for action in plan.actions
        if action.resource_id and isinstance(name := action.input_parameters.get(_NAME), str)
    }


def spare(slack_s: float | None) -> str:
    """Return a slack in seconds as text.

    >>> spare(0.01), spare(75), spare(None)
    ('0s', '1m15s', '-')
    """
    return duration(0 if slack_s is not None and slack_s < SLIGHT_S else slack_s)


def moment(began: datetime | None, at_s: float, *, is_expected: bool = False) -> str:
    """Return a time of day, ``at_s`` seconds after ``began``, with a "~" if it is expected.

    For a plan that has not begun, it is the time from its beginning.

    >>> moment(None, 75), moment(None, 75, is_expected=True)
    ('+1m15s', '+1m15s')
    """
    if began is None:
        return f"+{duration(at_s)}"
    return ("~" if is_expected else "") + f"{began + timedelta(seconds=at_s):%H:%M:%S}"


def cut(text: str, most: int = _LONGEST) -> str:
    """Cut a text to a maximum length; a text that was cut ends with an ellipsis.

    >>> len(cut("a" * 1000))
    300
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _outputs(
    actions: Sequence[Action], attempts: Mapping[str, Sequence[Attempt]]
) -> dict[tuple[str, int], str | None]:
    """Return the ends of outputs by action and attempt, at most ``ALL_OUTPUTS`` characters in all.

    An ellipsis stands for a beginning that is left out, None for a whole output. The outputs of
    failed actions come first, and among them those of the last attempts.
    """
    tried = [
        (action.state not in _FIRST, position > 0, action.uuid, one)
        for action in actions
        for position, one in enumerate(reversed(attempts.get(action.uuid, ())))
        if one.output
    ]
    tried.sort(key=lambda one: one[:2])
    found, left = dict[tuple[str, int], str | None](), ALL_OUTPUTS
    for _, _, uuid, attempt in tried:
        whole = attempt.output or ""
        text = whole[-OUTPUT:][-left:] if left > 0 else ""
        is_cut = len(text) < len(whole) or len(whole) >= OUTPUT
        found[uuid, attempt.number] = (f"…{text}" if is_cut else text) if text else None
        left -= len(text)
    return found
