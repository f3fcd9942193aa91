"""How states, durations and lists are written for people."""

from __future__ import annotations

from collections.abc import Iterable

from planner.model import Action
from planner.states import ActionState, Outcome

#: Colour of each state; the word is always written too.
STYLES = {
    ActionState.SUCCEEDED: "green",
    ActionState.SKIPPED: "cyan",
    ActionState.ONGOING: "bold",
    ActionState.FAILED: "bold red",
    ActionState.UNKNOWN: "bold red",
    ActionState.REVERT_FAILED: "bold red",
    ActionState.FAILED_DEPENDENCIES: "red",
    ActionState.CANCELLED: "yellow",
}
#: Columns of a recap, in order.
RESULTS = ("changed", "already", "skipped", "failed", "not run")


def duration(seconds: float | None) -> str:
    """Write seconds the short way.

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


def some(names: Iterable[str], most: int) -> str:
    """Write the first names of a list, and how many more there are.

    >>> some(["a", "b", "c"], 2), some([], 2)
    ('a b +1', '-')
    """
    known = list(names)
    more = f" +{len(known) - most}" if len(known) > most else ""
    return " ".join(known[:most]) + more or "-"


def count(number: int, word: str) -> str:
    """Write a number with its word.

    >>> count(1, "host"), count(2, "host")
    ('1 host', '2 hosts')
    """
    return f"{number} {word}{'' if number == 1 else 's'}"


def result(action: Action) -> str:
    """Say in which column of a recap an action stands."""
    match action.state:
        case ActionState.SUCCEEDED:
            return "already" if action.outcome is Outcome.OK else "changed"
        case ActionState.SKIPPED:
            return "already" if action.outcome is Outcome.OK else "skipped"
        case ActionState.FAILED | ActionState.UNKNOWN | ActionState.REVERT_FAILED:
            return "failed"
    return "not run"


def resources(actions: Iterable[Action], kind: str) -> list[str]:
    """List the resources of a kind that actions touch, each once, in plan order.

    >>> resources([Action(uuid="u", action_type="nop", tokens=("node:c1",))], "node")
    ['c1']
    """
    found = (token.partition(":") for action in actions for token in action.tokens)
    return list(dict.fromkeys(name for k, _, name in found if k == kind))
