# SPDX-License-Identifier: Apache-2.0
"""The table of actions: times, slack, reasons, attempts and the ends of their outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from applier.report.values import Row, Tried
from applier.scheduling.forecast import Forecast
from applier.store import Attempt
from applier.timeline.waits import NO_WAIT, Observed
from applier.wording import duration, seconds_between
from planner.plan.model import Action, ActionPlan
from planner.plan.states import OPEN, ActionState
from planner.render import look
from planner.render.look import LOOKS
from planner.render.swimlanes import places_of

#: The maximum number of actions in the table, and of characters of one output and of all outputs.
MOST_ROWS = 2000
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


def rows(
    plan: ActionPlan,
    found: Observed,
    made: Forecast,
    attempts: Mapping[str, Sequence[Attempt]],
) -> list[Row]:
    """Return the rows of the table in schedule order, at most ``MOST_ROWS``.

    ``made`` is a forecast of the whole plan, ``attempts`` are its ended attempts by action.
    """
    actions = numbered(plan)
    shown, names = _outputs([a for _, a in actions], attempts), names_of_resources(plan)
    critical, times = frozenset(found.critical), found.times
    most = _SHORT if len(actions) > MANY else _LONGEST

    def row(number: int, action: Action) -> Row:
        uuid, resource = action.uuid, action.resource_id or ""
        start_s, end_s = times.intervals[uuid]
        ran, slack_s = uuid in times.runs, made.slack_s.get(uuid)
        took_s = end_s - start_s if ran else None
        is_late = times.began is None or (action.state in OPEN and action.started_at is None)
        return Row(
            number=number,
            uuid=uuid,
            name=action.label,
            action_type=action.action_type,
            where=", ".join(places_of(plan.planner, action)) or names.get(resource, resource),
            state=str(action.state),
            mark=LOOKS[str(action.state)].mark,
            start=moment(times.began, start_s, is_expected=is_late) if ran else "-",
            start_s=start_s if ran else None,
            took=("~" if action.state in OPEN else "") + duration(took_s) if ran else "-",
            took_s=took_s,
            slack=spare(slack_s),
            slack_s=slack_s,
            tries=action.attempts,
            is_critical=uuid in critical,
            about=cut(action.description or "", most),
            reason=cut(action.reason or "", most),
            message=cut(action.status_message or "", most),
            waits=[
                cut(f"waited {duration(w.end_s - w.start_s)}, {w.reason}: {w.what}", most)
                for w in found.waiting.get(uuid, NO_WAIT).waits[-_WAITS:]
            ],
            attempts=[_tried(uuid, one, shown) for one in attempts.get(uuid, ())[-_ATTEMPTS:]],
        )

    return [row(number, action) for number, action in actions[:MOST_ROWS]]


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


def _tried(uuid: str, attempt: Attempt, shown: Mapping[tuple[str, int], str]) -> Tried:
    output = shown.get((uuid, attempt.number), "")
    whole = attempt.output or ""
    return Tried(
        number=attempt.number,
        state=str(attempt.state or ""),
        began=f"{attempt.started_at.astimezone():%Y-%m-%d %H:%M:%S}",
        took=duration(seconds_between(attempt.started_at, attempt.ended_at)),
        message=cut(attempt.message or ""),
        output=output,
        worker=attempt.worker or "",
        is_cut=len(output) < len(whole) or len(whole) >= OUTPUT,
    )


def _outputs(
    actions: Sequence[Action], attempts: Mapping[str, Sequence[Attempt]]
) -> dict[tuple[str, int], str]:
    """Return the ends of outputs by action and attempt, at most ``ALL_OUTPUTS`` characters in all.

    The outputs of failed actions come first, and among them those of the last attempts.
    """
    tried = [
        (action.state not in _FIRST, position > 0, action.uuid, one)
        for action in actions
        for position, one in enumerate(reversed(attempts.get(action.uuid, ())))
        if one.output
    ]
    tried.sort(key=lambda one: one[:2])
    found, left = {}, ALL_OUTPUTS
    for _, _, uuid, attempt in tried:
        text = (attempt.output or "")[-OUTPUT:][-left:] if left > 0 else ""
        found[uuid, attempt.number] = text
        left -= len(text)
    return found
