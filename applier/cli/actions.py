"""Verbs about the actions of a plan: ``action list``, ``action show``, ``action skip``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from applier.cli.create import add_format, rendered
from applier.cli.plans import with_plan
from applier.cli.reporters.words import duration
from applier.cli.session import now, user
from applier.cli.verb import ListVerb, Verb
from applier.contracts import Wish
from applier.errors import PlanConflict
from planner.model import Action, ActionPlan
from planner.states import ActionState, PlanState

ACTION_HELP = "name or uuid of the action"


class ActionList(ListVerb):
    """List the actions of a plan in schedule order"""

    EXAMPLES = ("action list last", "action list last --state FAILED -f json")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take a plan and a state."""
        parser = with_plan(super().get_parser(prog_name))
        parser.add_argument("--state", choices=[str(s) for s in ActionState], help="only these")
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
        message if whole or len(message) <= 40 else f"{message[:39]}…",
    )
    if whole:
        row = (*row, [names[u] for u in action.parents], [names[u] for u in action.needs])
    return row


class ActionShow(Verb):
    """Show one action: what it does, what it waits for, what it printed"""

    EXAMPLES = ("action show last db-1", "action show 7f3a91 db-1 -f json")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take a plan, an action and a format."""
        parser = with_plan(super().get_parser(prog_name))
        parser.add_argument("action", metavar="ACTION", help=ACTION_HELP)
        add_format(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Load and write."""
        plan = self.session.plan(parsed_args.plan)
        action = self.session.action(plan, parsed_args.action)
        output = self.session.store.output(plan.uuid, action.uuid)
        if parsed_args.format != "table":
            value = {**action.to_dict(), "output": output}
            self.app.stdout.write(rendered(value, parsed_args.format))
            return 0
        for line in described(plan, action):
            self.say(line)
        if output:
            self.say("output:")
            for line in output.splitlines()[-20:]:
                self.say(f"  | {line}")
        return 0


def described(plan: ActionPlan, action: Action) -> Iterator[str]:
    """Write what is known of an action, a line each."""
    names = {a.uuid: f"{a.label} ({a.state})" for a in plan.actions}
    yield f"{action.label}  {action.state}" + (f" ({action.outcome})" if action.outcome else "")
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
        "attempts": action.attempts or None,
    }
    for title, value in known.items():
        if value:
            yield f"  {title:<11} {value}"


class ActionSkip(Verb):
    """Skip an action that has not started

    It counts as done for what needs it. What depends on it is shown first.
    """

    EXAMPLES = ("action skip last db-1 --reason 'moved by hand'",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take a plan, an action and a reason."""
        parser = with_plan(super().get_parser(prog_name))
        parser.add_argument("action", metavar="ACTION", help=ACTION_HELP)
        parser.add_argument("--reason", metavar="TEXT", required=True, help="why, for the record")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Skip at once where nobody runs the plan; ask the claimant otherwise."""
        session = self.session
        plan = session.plan(parsed_args.plan)
        action = session.action(plan, parsed_args.action)
        waiting = [a.label for a in plan.actions if action.uuid in a.needs]
        if waiting:
            self.say(f"These need {action.label} and will run as if it were done:")
            self.say(f"  {', '.join(waiting)}")
        short = plan.uuid[:8]
        if plan.state is PlanState.ONGOING:
            if action.state is not ActionState.PENDING:
                text = f"{action.label} is {action.state}: only PENDING actions can be skipped"
                raise PlanConflict(plan.uuid, plan.state, text)
            wish = Wish(verb="skip", who=user(), why=parsed_args.reason, action=action.uuid)
            session.store.add_wish(plan.uuid, wish, now=now())
            self.say(f"Plan {short} is ONGOING: its applier has been asked to skip {action.label}.")
            return 0
        message = f"skipped by {user()}: {parsed_args.reason}"
        session.store.skip_action(plan.uuid, action.uuid, now=now(), message=message)
        self.say(f"{action.label} of plan {short} is SKIPPED.")
        return 0
