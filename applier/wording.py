# SPDX-License-Identifier: Apache-2.0
"""Texts for durations, numbers, names and lists, as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from applier.contracts import Report
from planner.model import Action, ActionPlan
from planner.safe_text import visible
from planner.states import ActionState, Outcome, PlanState


def duration(seconds: float | None) -> str:
    """Return a duration as a short text.

    >>> [duration(s) for s in (None, 0.25, 9.0, 75, 3725)]
    ['-', '0.2s', '9s', '1m15s', '1h02m']
    """
    if seconds is None:
        return "-"
    if seconds < 10 and seconds != int(seconds):
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def seconds_between(begin: datetime | None, end: datetime | None) -> float | None:
    """Return the seconds that something took; None if a time is missing, or a clock was set back.

    >>> at, before = datetime(2026, 1, 2), datetime(2026, 1, 1)
    >>> seconds_between(before, at), seconds_between(at, before), seconds_between(at, None)
    (86400.0, None, None)
    """
    if begin is None or end is None or end < begin:
        return None
    return (end - begin).total_seconds()


def planned_and_taken(planned_s: float, taken_s: float) -> str:
    """Return a text with an expected and an actual duration.

    >>> planned_and_taken(289, 302)
    'planned 4m49s, took 5m02s'
    """
    return f"planned {duration(planned_s)}, took {duration(taken_s)}"


def minutes(seconds: float) -> str:
    """Return a duration as minutes and seconds, right-aligned in a column of six characters.

    >>> minutes(75.9)
    '  1:15'
    """
    whole = int(seconds)
    return f"{whole // 60:>3}:{whole % 60:02d}"


def some(names: Iterable[str], most: int, between: str = " ") -> str:
    """Return the first names of a list, and how many more there are.

    >>> some(["a", "b", "c"], 2), some(["a", "b"], 2, ", "), some([], 2)
    ('a b +1', 'a, b', '-')
    """
    known = list(names)
    more = f"{between}+{len(known) - most}" if len(known) > most else ""
    return between.join(known[:most]) + more or "-"


def one_line(text: str) -> str:
    r"""Return a text on one line, with hidden characters made visible.

    >>> print(one_line("no route\n  to host\x1b[2J"))
    no route to host\x1b[2J
    """
    return visible(" ".join(text.split()))


def starting(action: Action, because: str = "") -> str:
    """Return the name of an action that starts, why it was triggered, and its description.

    >>> starting(Action(uuid="u", action_type="nop", name="a"))
    'a  nop'
    """
    does = action.description or action.action_type
    return "  ".join(filter(None, (one_line(action.label), because, one_line(does))))


def retry_line(report: Report, action: Action) -> str:
    """Return the line that announces a retry: the action, and why its attempt failed.

    >>> failed = Report(uuid="u", old="ONGOING", state="PENDING", message="no room")
    >>> retry_line(failed, Action(uuid="u", action_type="nop", name="a"))
    'retry: a: no room'
    """
    return f"retry: {one_line(action.label)}: {one_line(report.message or 'it failed')}"


def ago(seconds: float) -> str:
    """Return how long ago something was. It is never negative, as clocks of hosts may differ.

    >>> ago(75), ago(-1)
    ('1m15s ago', '0s ago')
    """
    return f"{duration(max(0, round(seconds)))} ago"


def count(number: int, word: str) -> str:
    """Return a number with its noun.

    >>> count(1, "host"), count(2, "host")
    ('1 host', '2 hosts')
    """
    return f"{number} {word}{'' if number == 1 else 's'}"


def standing(state: PlanState | None, start_at: datetime | None) -> str:
    """Return the state of a plan, and when it starts if it waits for a time.

    >>> standing(PlanState.PENDING, datetime(2026, 11, 28, 22))
    'PENDING, starts 2026-11-28 22:00 UTC'
    """
    waits = start_at is not None and state is PlanState.PENDING
    return f"{state}, starts {start_at:%Y-%m-%d %H:%M} UTC" if waits else str(state)


def resources(actions: Iterable[Action], kind: str) -> list[str]:
    """List the resources of a kind that actions touch, each once, in plan order.

    >>> resources([Action(uuid="u", action_type="nop", tokens=("node:c1",))], "node")
    ['c1']
    """
    begins = f"{kind}:"
    found = (t for action in actions for t in action.tokens if t.startswith(begins))
    return [token.removeprefix(begins) for token in dict.fromkeys(found)]


def gains(plan: ActionPlan) -> Iterator[str]:
    """Yield the efficacy indicators of the plan, one line each."""
    for indicator in (*plan.efficacy_indicators, *plan.global_efficacy):
        if not isinstance(indicator, Mapping) or not indicator.get("description"):
            continue
        text, value = str(indicator["description"]), indicator.get("value")
        if isinstance(value, str | int | float):
            text = f"{text} {value} {indicator.get('unit') or ''}"
        yield one_line(text.rstrip())


def result(action: Action) -> str:
    """Return the column of a run's summary that counts an action, such as ``changed``."""
    match action.state:
        case ActionState.SUCCEEDED:
            return "already" if action.outcome is Outcome.OK else "changed"
        case ActionState.SKIPPED:
            return "already" if action.outcome is Outcome.OK else "skipped"
        case ActionState.FAILED | ActionState.REVERT_FAILED:
            return "failed"
        case ActionState.UNKNOWN:
            return "in doubt"
    return "not run"
