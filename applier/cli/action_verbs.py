# SPDX-License-Identifier: Apache-2.0
"""Verbs that show the actions of a plan: ``action list``, ``action show``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from applier.cli.arguments import add_format, with_action, with_plan
from applier.cli.plan_files import rendered
from applier.cli.reporters import action_text
from applier.cli.verb import ListVerb, Verb
from applier.operations import hidden_values
from applier.operations.lookup import find_action
from applier.wording import duration, seconds_between
from planner.failure_costs import FailureCosts
from planner.model import Action, ActionPlan
from planner.states import OPEN, ActionState

#: The maximum length of a message in a table, and how much of that is taken from its end, where the
#: exit code of a command is.
_MESSAGE, _END = 60, 24


class ActionList(ListVerb):
    """List the actions of a plan in schedule order"""

    EXAMPLES = ("action list last", "action list last --state FAILED -f json")
    NOTHING = "No such actions."

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan and a state."""
        parser = with_plan(super().get_parser(prog_name))
        states = [str(s) for s in ActionState]
        parser.add_argument(
            "--state",
            metavar="STATE",
            type=str.upper,
            choices=states,
            help=f"only these: {', '.join(states)}",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        """Return a row for each action."""
        plan = self.session.plan(parsed_args.plan)
        names = {a.uuid: a.label for a in plan.actions}
        whole = parsed_args.formatter != "table"
        columns: tuple[str, ...] = ("uuid", "name", "type", "state", "outcome", "took", "message")
        if whole:
            columns = (*columns, "parents", "needs")
        waits = self._waits(plan)
        return columns, (
            _row(waits(a), names, whole)
            for a in plan.actions
            if parsed_args.state in (None, str(a.state))
        )

    def _waits(self, plan: ActionPlan) -> Callable[[Action], Action]:
        """Return a function that returns an action as it is to be shown.

        If the action waits only for a window, its status message names that window.
        """
        window_of = self.session.assembly.waits_for(plan)
        ended = {a.uuid for a in plan.actions if a.state not in OPEN}

        def with_message(action: Action) -> Action:
            could = action.state is ActionState.PENDING and ended.issuperset(action.before())
            window = window_of(action) if could and not action.status_message else None
            return replace(action, status_message=f"waits for {window}") if window else action

        return with_message


def _row(action: Action, names: dict[str, str], whole: bool) -> tuple[Any, ...]:
    took = seconds_between(action.started_at, action.ended_at)
    message = action.status_message or ""
    row: tuple[Any, ...] = (
        action.uuid if whole else action.uuid[:8],
        action.label,
        action.action_type,
        str(action.state),
        str(action.outcome or ""),
        took if whole else duration(took),
        message if whole else _cut(message),
    )
    if whole:
        row = (*row, [names[u] for u in action.parents], [names[u] for u in action.needs])
    return row


def _cut(message: str) -> str:
    """Shorten a long message by leaving out its middle.

    >>> _cut("run-the-long-script --with many --options >&2: exit code 7: no such host")
    'run-the-long-script --with many --o…xit code 7: no such host'
    """
    if len(message) <= _MESSAGE:
        return message
    return f"{message[: _MESSAGE - _END - 1]}…{message[-_END:]}"


class ActionShow(Verb):
    """Show one action: its fields, what it needs, and every attempt with its output"""

    EXAMPLES = ("action show last db-1", "action show 7f3a91 db-1 -f json")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan, an action and a format."""
        parser = with_action(super().get_parser(prog_name))
        add_format(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Write the fields and the attempts of the action."""
        plan = self.session.plan(parsed_args.plan)
        action = find_action(plan, parsed_args.action)
        action = hidden_values.action_without(action, self.session.action_types)
        store = self.session.store
        attempts, damaged = self.readable(lambda: store.attempts(plan.uuid, action.uuid))
        if parsed_args.format != "table":
            value = {
                **action.to_dict(),
                "not_run_if_it_fails": [
                    a.label for a in FailureCosts(plan.actions).not_run(action.uuid)
                ],
                "output": None if damaged else store.output(plan.uuid, action.uuid),
                "attempts_made": [action_text.attempt_as_dict(a) for a in attempts],
            }
            self.app.stdout.write(rendered(value, parsed_args.format))
            return 0
        from applier.cli.reporters.plan_table import console

        width = console(self.app.stdout).width
        for line in action_text.described(plan, action, width):
            self.say(line)
        for line in action_text.tried(action, attempts, width):
            self.say(line)
        return 0
