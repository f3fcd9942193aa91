# SPDX-License-Identifier: Apache-2.0
"""Texts for durations, numbers, names, lists and triggers, as people read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from applier.contracts import Report, RunOptions
from applier.store import Reservation
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, Outcome, PlanState
from planner.safe_text import visible


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


def told_once(actions: Iterable[Action]) -> list[list[Action]]:
    """Group actions that have the same state and message, in the order of the first of each group.

    >>> named = {"a1": "no room", "b": "no route", "a2": "no room"}
    >>> actions = [Action(uuid=u, action_type="nop", status_message=m) for u, m in named.items()]
    >>> [[action.uuid for action in same] for same in told_once(actions)]
    [['a1', 'a2'], ['b']]
    """
    found: dict[tuple[ActionState, str | None], list[Action]] = {}
    for action in actions:
        found.setdefault((action.state, action.status_message), []).append(action)
    return list(found.values())


def named(actions: Sequence[Action]) -> str:
    """Return the name of an action, or the number and the first names of several.

    >>> named([Action(uuid=name, action_type="nop", name=name) for name in "abcde"])
    '5 actions (a, b, c, +2)'
    """
    names = [one_line(action.label) for action in actions]
    many = len(names) > 1
    return f"{count(len(names), 'action')} ({some(names, 3, ', ')})" if many else names[0]


def run_options(options: RunOptions) -> str:
    """Return how many actions run at once and what a failure does, each with its source.

    >>> run_options(RunOptions(40, "--set", "pause", "the plan"))
    'at most 40 actions at once (--set), on_failure = pause (the plan)'
    """
    at_once = f"at most {count(options.max_workers, 'action')} at once ({options.workers_from})"
    return f"{at_once}, on_failure = {options.on_failure} ({options.failure_from})"


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
        case ActionState.CANCELLED if action.started_at is not None:
            return "stopped"
    return "not run"


#: The maximum number of actions that a line names.
_MOST_NAMED = 3


def because(action: Action, actions: Mapping[str, Action], outcomes: Mapping[str, Outcome]) -> str:
    """Return which outcomes of which actions have triggered this one; an empty text if none has.

    ``outcomes`` are those of the actions that have ended.

    >>> one = Action(uuid="u", action_type="nop", name="a")
    >>> two = Action(uuid="v", action_type="nop", triggers=(("u", (Outcome.CREATED,)),))
    >>> because(two, {"u": one, "v": two}, {"u": Outcome.CREATED})
    'because a was created'
    """
    fired = [
        f"{one_line(actions[uuid].label)} {_OUTCOMES[outcome]}"
        for uuid, asked in action.triggers
        if (outcome := outcomes.get(uuid)) is not None and outcome in asked and uuid in actions
    ]
    return f"because {some(fired, _MOST_NAMED, ', ')}" if fired else ""


def sources(plan: ActionPlan, action: Action) -> list[str]:
    """Return, for each action that can trigger this one, its outcome and the outcomes that trigger.

    >>> one = Action(uuid="u", action_type="nop", name="a", outcome=Outcome.OK)
    >>> two = Action(uuid="v", action_type="nop", triggers=(("u", (Outcome.CREATED,)),))
    >>> sources(ActionPlan(uuid="p", planner="events", actions=(one, two)), two)
    ['a is ok; it triggers this on created']
    """
    known = {a.uuid: a for a in plan.actions}
    found = [
        f"{one_line(source.label)} "
        f"{_OUTCOMES[source.outcome] if source.outcome else f'is {source.state}'}; "
        f"it triggers this on {' or '.join(outcomes)}"
        for source, outcomes in ((known[uuid], asked) for uuid, asked in action.triggers)
    ]
    return [
        *found[:_MOST_NAMED],
        *([f"+{len(found) - _MOST_NAMED}"] if len(found) > _MOST_NAMED else []),
    ]


_OUTCOMES = {
    Outcome.CHANGED: "changed",
    Outcome.CREATED: "was created",
    Outcome.OK: "is ok",
    Outcome.FAILED: "failed",
    Outcome.ERROR: "ended in error",
}


def for_reserved(reservation: Reservation) -> str:
    """Return what an action waits for whose resource another plan has reserved."""
    name = f" ({one_line(reservation.name)})" if reservation.name else ""
    plan = f"plan {reservation.plan[:8]}{name} of {reservation.user}"
    return f"for {reservation.resource}, on which {plan} works"


def wait_for_others(reservations: Sequence[Reservation]) -> Iterator[str]:
    """Yield sentences about the resources that other plans have reserved, the first of them."""
    for reservation in reservations[:10]:
        yield f"Actions wait {for_reserved(reservation)}."


def natural(text: str) -> list[tuple[bool, int | str]]:
    """Return the key by which names are sorted: ``web-2`` before ``web-10``, numbers before words.

    >>> sorted(["web-10", "web-2", "7"], key=natural)
    ['7', 'web-2', 'web-10']
    """
    # Python refuses to parse very long numbers.
    parts = re.findall("([0-9]{1,18})|([^0-9]+)", text)
    return [(bool(word), int(number) if number else word) for number, word in parts]
