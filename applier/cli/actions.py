"""Verbs about the actions of a plan: ``action list``, ``action show``, ``action skip``."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator
from typing import Any

from applier.cli import claim
from applier.cli.arguments import add_format, with_action, with_plan
from applier.cli.files import rendered
from applier.cli.reporters.plan_table import WIDTH
from applier.cli.reporters.words import duration, one_line
from applier.cli.session import find_action, now, user
from applier.cli.verb import ListVerb, Verb
from applier.contracts import Wish
from applier.errors import PlanConflict
from planner.model import Action, ActionPlan
from planner.states import ActionState, PlanState

#: How much of an action's message a table shows, and of its output.
_MESSAGE, _LINES = 40, 20


class ActionList(ListVerb):
    """List the actions of a plan in schedule order"""

    EXAMPLES = ("action list last", "action list last --state FAILED -f json")
    NOTHING = "No such actions."

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take a plan and a state."""
        parser = with_plan(super().get_parser(prog_name))
        states = [str(s) for s in ActionState]
        parser.add_argument(
            "--state", metavar="STATE", choices=states, help=f"only these: {', '.join(states)}"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        """Give a row for each action."""
        plan = self.session.plan(parsed_args.plan)
        names = {a.uuid: a.label for a in plan.actions}
        whole = parsed_args.formatter != "table"
        columns: tuple[str, ...] = ("uuid", "name", "type", "state", "outcome", "took", "message")
        if whole:
            columns = (*columns, "parents", "needs")
        return columns, (
            _row(a, names, whole) for a in plan.actions if parsed_args.state in (None, str(a.state))
        )


def _row(action: Action, names: dict[str, str], whole: bool) -> tuple[Any, ...]:
    took = None
    if action.started_at and action.ended_at:
        took = (action.ended_at - action.started_at).total_seconds()
    message = action.status_message or ""
    row: tuple[Any, ...] = (
        action.uuid if whole else action.uuid[:8],
        action.label,
        action.action_type,
        str(action.state),
        str(action.outcome or ""),
        took if whole else duration(took),
        message if whole or len(message) <= _MESSAGE else f"{message[: _MESSAGE - 1]}…",
    )
    if whole:
        row = (*row, [names[u] for u in action.parents], [names[u] for u in action.needs])
    return row


class ActionShow(Verb):
    """Show one action: what it does, what it waits for, what it printed"""

    EXAMPLES = ("action show last db-1", "action show 7f3a91 db-1 -f json")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take a plan, an action and a format."""
        parser = with_action(super().get_parser(prog_name))
        add_format(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Load and write."""
        plan = self.session.plan(parsed_args.plan)
        action = find_action(plan, parsed_args.action)
        output = self.session.store.output(plan.uuid, action.uuid)
        if parsed_args.format != "table":
            value = {**action.to_dict(), "output": output}
            self.app.stdout.write(rendered(value, parsed_args.format))
            return 0
        for line in described(plan, action):
            self.say(line)
        if output:
            lines = output.splitlines()
            self.say("output:" if len(lines) <= _LINES else f"output, the last {_LINES} lines:")
            for line in lines[-_LINES:]:
                self.say(f"  | {line}")
        return 0


def described(plan: ActionPlan, action: Action) -> Iterator[str]:
    """Write what is known of an action, as lines that are not too long."""
    names = {a.uuid: f"{a.label} ({a.state})" for a in plan.actions}
    yield f"{one_line(action.label)}  {action.state}" + (
        f" ({action.outcome})" if action.outcome else ""
    )
    known = {
        "what": action.description,
        "type": action.action_type,
        "uuid": action.uuid,
        "message": action.status_message,
        "why here": action.reason,
        "needs": ", ".join(names[u] for u in action.needs),
        "after": ", ".join(names[u] for u in action.parents if u not in action.needs),
        "holds": ", ".join(action.tokens),
        "parameters": ", ".join(f"{k}={v}" for k, v in action.input_parameters.items()),
        "started": action.started_at and f"{action.started_at:%Y-%m-%d %H:%M:%S} UTC",
        "ended": action.ended_at and f"{action.ended_at:%Y-%m-%d %H:%M:%S} UTC",
        "attempts": str(action.attempts or ""),
    }
    for title, value in known.items():
        if value:
            yield from textwrap.wrap(
                f"  {title:<11} {one_line(value)}",
                WIDTH,
                subsequent_indent=" " * 14,
                break_long_words=False,
                break_on_hyphens=False,
            )


class ActionSkip(Verb):
    """Skip an action that has not started

    It counts as done for what needs it. What depends on it is shown first.
    """

    EXAMPLES = ("action skip last db-1 --reason 'moved by hand'",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take a plan, an action and a reason."""
        parser = with_action(super().get_parser(prog_name))
        parser.add_argument("--reason", metavar="TEXT", required=True, help="why, for the record")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Skip at once where nobody runs the plan; ask the claimant otherwise."""
        session = self.session
        plan = session.plan(parsed_args.plan)
        action = find_action(plan, parsed_args.action)
        if action.state is not ActionState.PENDING:
            text = f"{action.label} is {action.state}: only PENDING actions can be skipped"
            raise PlanConflict(plan.uuid, plan.state, text)
        for line in consequences(plan, action):
            self.say(line)
        if plan.state is PlanState.ONGOING:
            wish = Wish(verb="skip", who=user(), why=parsed_args.reason, action=action.uuid)
            session.store.add_wish(plan.uuid, wish, now=now())
            self.say(claim.asked(session.store, plan, f"to skip {action.label}"))
            self.say("It is skipped once everything before it has ended, unless it starts first.")
            return 0
        message = f"skipped by {user()}: {parsed_args.reason}"
        session.store.skip_action(plan.uuid, action.uuid, now=now(), message=message)
        self.say(f"{claim.named(plan)}: {action.label} is SKIPPED.")
        return 0


def consequences(plan: ActionPlan, action: Action) -> Iterator[str]:
    """Say what needs an action: what does so itself by name, what does through others by number."""
    direct = [a for a in plan.actions if action.uuid in _needed_by(a)]
    dependants: dict[str, list[str]] = {}
    for later in plan.actions:
        for uuid in _needed_by(later):
            dependants.setdefault(uuid, []).append(later.uuid)
    reached, ahead = {action.uuid}, [action.uuid]
    while ahead:
        new = [u for u in dependants.get(ahead.pop(), ()) if u not in reached]
        reached.update(new)
        ahead += new
    if not direct:
        yield f"Nothing needs {action.label}."
        return
    yield f"{action.label} will count as done for what needs it:"
    yield f"  {', '.join(a.label for a in direct)}"
    through = len(reached) - 1 - len(direct)
    if through:
        yield f"  and, through these, {through} more"


def _needed_by(action: Action) -> set[str]:
    return {*action.needs, *(uuid for group in action.needs_any for uuid in group)}
