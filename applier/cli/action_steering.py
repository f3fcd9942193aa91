# SPDX-License-Identifier: Apache-2.0
"""Verbs that change an action of a plan: ``action skip``, ``action abort``, ``action set``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial

from applier.assembly import user
from applier.cli import claim
from applier.cli.arguments import with_action, with_reason
from applier.cli.session import find_action, now
from applier.cli.verb import Verb
from applier.contracts import Request
from applier.errors import PlanConflict
from planner.model import Action, ActionPlan
from planner.states import ActionState, PlanState

_SETTLED = {"succeeded": ActionState.SUCCEEDED, "failed": ActionState.FAILED}


class ActionSkip(Verb):
    """Skip an action that has not started

    It counts as done for the actions that need it. Actions that depend on it are shown first.
    """

    EXAMPLES = ("action skip last db-1 --reason 'moved by hand'",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan, an action and a reason."""
        return with_reason(with_action(super().get_parser(prog_name)), required=True)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Skip the action if nobody runs the plan; otherwise send a request to the claimant."""
        session = self.session
        plan = session.plan(parsed_args.plan)
        action = find_action(plan, parsed_args.action)
        if action.state is not ActionState.PENDING:
            text = f"{action.label} is {action.state}: only PENDING actions can be skipped"
            raise PlanConflict(plan.uuid, plan.state, text)
        for line in consequences(plan, action):
            self.say(line)
        skip = partial(self._skip, action=action, why=parsed_args.reason)
        return claim.retried(session.store, plan, skip)

    def _skip(self, plan: ActionPlan, action: Action, why: str) -> int:
        store = self.session.store
        if plan.state is PlanState.ONGOING:
            request = Request(verb="skip", who=user(), why=why, action=action.uuid)
            store.add_request(plan.uuid, request, now=now())
            self.say(claim.asked(store, plan, f"to skip {action.label}"))
            self.say("It is skipped once everything before it has ended, unless it starts first.")
            return 0
        message = f"skipped by {user()}: {why}"
        store.skip_action(plan.uuid, action.uuid, now=now(), message=message)
        self.say(f"{claim.named(plan)}: {action.label} is SKIPPED.")
        return 0


def consequences(plan: ActionPlan, action: Action) -> Iterator[str]:
    """List the actions that need an action directly, and count those that need it indirectly."""
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
        yield f"No action needs {action.label}."
        return
    yield f"{action.label} will count as done for the actions that need it:"
    yield f"  {', '.join(a.label for a in direct)}"
    through = len(reached) - 1 - len(direct)
    if through:
        yield f"  and, through these, {through} more"


def _needed_by(action: Action) -> set[str]:
    return {*action.needs, *(uuid for group in action.needs_any for uuid in group)}


class ActionAbort(Verb):
    """Tell a running action to stop; the plan continues without it

    Actions that need it do not run. Its action type decides whether it stops, and how soon.
    """

    EXAMPLES = ("action abort last db-1 --reason 'it hangs'",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan, an action and a reason."""
        return with_reason(with_action(super().get_parser(prog_name)))

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Send an abort request to the claimant."""
        store = self.session.store
        plan = self.session.plan(parsed_args.plan)
        action = find_action(plan, parsed_args.action)
        if action.state is not ActionState.ONGOING:
            text = f"{action.label} is {action.state}: only ONGOING actions can be aborted"
            if action.state is ActionState.PENDING:
                text += f". To leave it out: actionplan action skip {plan.uuid[:8]} {action.label}"
            raise PlanConflict(plan.uuid, plan.state, text)
        request = Request(verb="abort", who=user(), why=parsed_args.reason, action=action.uuid)
        store.add_request(plan.uuid, request, now=now())
        self.say(claim.asked(store, plan, f"to abort {action.label}"))
        return 0


class ActionSet(Verb):
    """Set the state of an action in doubt, or of a failed one finished by hand

    Possible only while nobody runs the plan. To continue the plan: actionplan resume PLAN.
    """

    EXAMPLES = (
        "action set last db-1 --state succeeded --reason 'looked: it is on compute-4'",
        "action set last db-1 --state failed --reason 'looked: it never moved'",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan, an action, a state and a reason."""
        parser = with_action(super().get_parser(prog_name))
        parser.add_argument("--state", choices=sorted(_SETTLED), required=True, help="what it is")
        return with_reason(parser, required=True)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Store the new state of the action."""
        plan = self.session.plan(parsed_args.plan)
        action = find_action(plan, parsed_args.action)
        new = _SETTLED[parsed_args.state]
        taken = claim.already_running(self.session.store, plan.uuid)
        if taken:
            raise taken
        known = [ActionState.UNKNOWN]
        if new is ActionState.SUCCEEDED:
            known.append(ActionState.FAILED)
        if action.state not in known:
            text = f"{action.label} is {action.state}: only {' and '.join(known)} can be set to"
            raise PlanConflict(plan.uuid, plan.state, f"{text} {new}")
        message = f"set by {user()}: {parsed_args.reason}"
        self.session.store.settle_action(plan.uuid, action.uuid, new, now=now(), message=message)
        self.say(f"{claim.named(plan)}: {action.label} is {new}.")
        self.say(f"Continue the plan: actionplan resume {plan.uuid[:8]}")
        return 0
