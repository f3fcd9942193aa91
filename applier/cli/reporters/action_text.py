# SPDX-License-Identifier: Apache-2.0
"""One action as text: its fields, and every attempt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from applier.cli.reporters.column_widths import wrapped
from applier.cli.reporters.joins import through
from applier.store import Attempt
from applier.wording import count, duration, one_line, seconds_between, some
from planner.failure_costs import FailureCosts
from planner.model import JOIN, Action, ActionPlan
from planner.secret_references import labelled

#: The maximum numbers of output lines that are shown of the last attempt, and of earlier ones.
_LAST, _EARLIER = 20, 5
#: The maximum number of actions that a sentence names.
_NAMED = 6
_TIME = "%Y-%m-%d %H:%M:%S"


def described(plan: ActionPlan, action: Action, width: int) -> Iterator[str]:
    """Yield the fields of an action, as lines no longer than ``width``."""
    names = {a.uuid: f"{a.label} ({a.state})" for a in plan.actions}
    joins = [a for a in plan.actions if a.action_type == JOIN]
    needs = through(action.needs, {j.uuid: j.needs for j in joins})
    before = through((*action.parents, *action.needs), {j.uuid: j.before() for j in joins})
    yield f"{one_line(action.label)}  {action.state}" + (
        f" ({action.outcome})" if action.outcome else ""
    )
    known = {
        "what": action.description,
        "type": action.action_type,
        "uuid": action.uuid,
        "message": action.status_message,
        "why here": action.reason,
        "needs": ", ".join(names[u] for u in needs),
        "after": ", ".join(names[u] for u in before if u not in needs),
        "triggered by": ", ".join(
            f"{names[t.action]} on {' or '.join(t.outcomes)}" for t in action.triggers
        ),
        "blocked by": ", ".join(
            f"{names[b.action]} on {' or '.join(b.outcomes)}" for b in action.blocked_by
        ),
        "if it fails": _not_run(FailureCosts(plan.actions).not_run(action.uuid)),
        "holds": ", ".join(action.tokens),
        "parameters": ", ".join(f"{k}={v}" for k, v in labelled(action.input_parameters).items()),
        "started": action.started_at and f"{action.started_at:%Y-%m-%d %H:%M:%S} UTC",
        "ended": action.ended_at and f"{action.ended_at:%Y-%m-%d %H:%M:%S} UTC",
        "attempts": str(action.attempts or ""),
    }
    for title, value in known.items():
        if value:
            yield from wrapped(f"  {title:<11} {one_line(value)}", 14, width)


def _not_run(actions: Sequence[Action]) -> str:
    """Return a sentence that names the actions that do not run, or an empty text."""
    names = some([a.label for a in actions], _NAMED, ", ")
    return f"{count(len(actions), 'action')} would not run: {names}" if actions else ""


def tried(action: Action, attempts: Sequence[Attempt], width: int) -> Iterator[str]:
    """Yield lines about every attempt: number, start, duration, state, and the end of its output.

    Of a single attempt only the output is shown: the rest equals the fields of the action.
    """
    if len(attempts) == 1 and action.started_at:
        yield from _output(attempts[0], _LAST, "")
        return
    for attempt in attempts:
        state = f"{attempt.state or 'runs'}" + (f" ({attempt.outcome})" if attempt.outcome else "")
        why = f": {one_line(attempt.message)}" if attempt.message else ""
        took = duration(seconds_between(attempt.started_at, attempt.ended_at))
        line = f"attempt {attempt.number}  {attempt.started_at:{_TIME}}  took {took}  {state}{why}"
        yield from wrapped(line, 11, width)
        yield from _output(attempt, _LAST if attempt is attempts[-1] else _EARLIER, "  ")


def _output(attempt: Attempt, most: int, indent: str) -> Iterator[str]:
    if not attempt.output:
        return
    lines = attempt.output.splitlines()
    yield f"{indent}output:" if len(lines) <= most else f"{indent}output, the last {most} lines:"
    yield from (f"{indent}  | {line}" for line in lines[-most:])


def attempt_as_dict(attempt: Attempt) -> dict[str, Any]:
    """Return an attempt as a mapping, for JSON and YAML."""
    return {
        "number": attempt.number,
        "started_at": attempt.started_at.isoformat(),
        "ended_at": attempt.ended_at.isoformat() if attempt.ended_at else None,
        "took_s": seconds_between(attempt.started_at, attempt.ended_at),
        "state": str(attempt.state) if attempt.state else None,
        "outcome": str(attempt.outcome) if attempt.outcome else None,
        "message": attempt.message,
        "output": attempt.output,
    }
