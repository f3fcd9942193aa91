# SPDX-License-Identifier: Apache-2.0
"""Verbs that show the actions of a plan: ``action list``, ``action show``, ``why``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from applier.cli.arguments import ACTION, PLAN, argument, format_of, state_of
from applier.cli.reporters.formatting import through, wrapped
from applier.cli.verb import Columns, ListVerb, Rows, Verb, rendered, rows
from applier.operations import creation, hidden_parameters, lookup
from applier.store import Attempt, PlanStore
from applier.wording import count, duration, one_line, seconds_between, some
from planner.plan.failure_costs import FailureCosts
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import OPEN, ActionState
from planner.schemas.hidden_values import labelled

#: The maximum numbers of output lines that are shown of the last attempt, and of earlier ones.
_LAST, _EARLIER = 20, 5
#: The maximum number of actions that a sentence names.
_NAMED = 6
_TIME = "%Y-%m-%d %H:%M:%S"


def described_by(
    store: PlanStore, plan: str, action: str
) -> tuple[ActionPlan, Action, Sequence[Action]]:
    """Find an action with as much of its plan as describes it, and what does not run if it fails.

    Of a long plan, no more is loaded than is shown, and nothing is known of a failure. Raises as
    :func:`lookup.find_part`.
    """
    if store.long_plan(uuid := store.find_plan(plan)) is not None:
        return (*lookup.find_part(store, uuid, action), ())
    whole = store.load_plan(uuid)
    found = lookup.find_action(whole, action)
    return whole, found, FailureCosts(whole.actions).not_run(found.uuid)


def described(
    plan: ActionPlan, action: Action, not_run: Sequence[Action], width: int
) -> Iterator[str]:
    """Yield the fields of an action, as lines no longer than ``width``.

    ``not_run`` are the actions that do not run if it fails. Of the plan, those are enough that
    ``load_part`` of the store has.
    """
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
        "if it fails": _not_run(not_run),
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


#: The maximum length of a message in a table, and how much of that is taken from its end, where the
#: exit code of a command is.
_MESSAGE, _END = 60, 24


class ActionList(ListVerb):
    """List the actions of a plan in schedule order"""

    EXAMPLES = ("action list last", "action list last --state FAILED -f json")
    NOTHING = "No such actions."
    ARGUMENTS = (PLAN, state_of(ActionState))

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        plan = self.session.plan(parsed_args.plan)
        names, message = {a.uuid: a.label for a in plan.actions}, self._message(plan)
        whole = parsed_args.formatter != "table"
        columns: Columns = {
            "uuid": lambda a: a.uuid if whole else a.uuid[:8],
            "name": lambda a: a.label,
            "type": lambda a: a.action_type,
            "state": lambda a: str(a.state),
            "outcome": lambda a: str(a.outcome or ""),
            "took": lambda a: took(a) if whole else duration(took(a)),
            "message": lambda a: message(a) if whole else _cut(message(a)),
        }
        if whole:
            columns["parents"] = lambda a: [names[uuid] for uuid in a.parents]
            columns["needs"] = lambda a: [names[uuid] for uuid in a.needs]
        chosen = [a for a in plan.actions if parsed_args.state in (None, str(a.state))]
        return rows(columns, chosen)

    def _message(self, plan: ActionPlan) -> Callable[[Action], str]:
        """Return a function of an action: its message, or the window for which alone it waits."""
        window_of = self.session.waits_for(plan)
        ended = {a.uuid for a in plan.actions if a.state not in OPEN}

        def message(action: Action) -> str:
            could = action.state is ActionState.PENDING and ended.issuperset(action.before())
            window = window_of(action) if could and not action.status_message else None
            return f"waits for {window}" if window else action.status_message or ""

        return message


def took(action: Action) -> float | None:
    """Return the seconds of an action; None if it has not ended."""
    return seconds_between(action.started_at, action.ended_at)


def _cut(message: str) -> str:
    """Shorten a long message by leaving out its middle.

    >>> _cut("run-the-long-script --with many --options >&2: exit code 7: no such host")
    'run-the-long-script --with many --o…xit code 7: no such host'
    """
    if len(message) <= _MESSAGE:
        return message
    return f"{message[: _MESSAGE - _END - 1]}…{message[-_END:]}"


class ActionShow(Verb):
    """Show one action: its fields, what it needs, and every attempt with its output

    What does not run if it fails is told of plans of up to 10,000 actions.
    """

    EXAMPLES = ("action show last db-1", "action show 7f3a91 db-1 -f json")
    ARGUMENTS = (PLAN, ACTION, format_of())

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        store = self.session.store
        plan, action, not_run = described_by(store, parsed_args.plan, parsed_args.action)
        action = hidden_parameters.action_without(action, self.session.action_types)
        attempts = store.attempts(plan.uuid, action.uuid)
        if parsed_args.format != "table":
            value = {
                **action.to_dict(),
                "not_run_if_it_fails": [a.label for a in not_run],
                "output": store.output(plan.uuid, action.uuid),
                "attempts_made": [attempt_as_dict(a) for a in attempts],
            }
            self.write(rendered(value, parsed_args.format))
            return 0
        for line in described(plan, action, not_run, self.width):
            self.say(line)
        for line in tried(action, attempts, self.width):
            self.say(line)
        return 0


class Why(Verb):
    """Explain when an action starts, what it waits for, or why it did not run

    Before a run, the explanation is based on a forecast, during a run on the stored states. The
    start of an action in a plan of more than 10,000 is forecast only with --set max_workers=N.
    """

    EXAMPLES = ("why last db-1", "why last db-1 --set max_workers=8")
    ARGUMENTS = (
        PLAN,
        ACTION,
        argument(
            "--set KEY=VALUE",
            "option of the run (max_workers=4), as given to apply",
            action="append",
            default=[],
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        from applier.operations import explanation

        settings = creation.read_settings(parsed_args.set)
        creation.refuse_planning(settings, None)
        session = self.session
        plan, action = lookup.find_part(session.plans, parsed_args.plan, parsed_args.action)
        for line in explanation.explained(session, plan, action, settings.max_workers):
            self.say_wrapped(line, 4)
        return 0
