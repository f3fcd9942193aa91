# SPDX-License-Identifier: Apache-2.0
"""Verbs that change an action of a plan: ``action skip``, ``action abort``, ``action set``."""

from __future__ import annotations

import argparse

from applier.cli.arguments import with_action, with_reason
from applier.cli.verb import Verb
from applier.operations.lookup import find_action
from planner.states import ActionState

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
        from applier.operations import actions

        plan = self.session.plan(parsed_args.plan)
        action = find_action(plan, parsed_args.action)
        actions.skip(self.session.store, self.operator, plan, action, parsed_args.reason)
        return 0


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
        from applier.operations import actions

        plan = self.session.plan(parsed_args.plan)
        action = find_action(plan, parsed_args.action)
        actions.abort(self.session.store, self.operator, plan, action, parsed_args.reason)
        return 0


class ActionForceComplete(Verb):
    """Let the cloud end a running migration at once, by pausing the instance

    For a live migration that does not converge. The action then ends as any other does. Not every
    cloud can do it.
    """

    EXAMPLES = ("action force-complete last move-db-1",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan and an action."""
        return with_action(super().get_parser(prog_name))

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Send the request to the cloud; raises PlanConflict, OtherCloud, ActionFailed.

        The process that runs the plan waits for the end of the migration, as before.
        """
        from applier.operations import actions

        plan = self.session.plan(parsed_args.plan)
        action = find_action(plan, parsed_args.action)
        actions.force_complete(self.session.assembly, self.operator, plan, action)
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
        from applier.operations import actions

        plan = self.session.plan(parsed_args.plan)
        action = find_action(plan, parsed_args.action)
        new, why = _SETTLED[parsed_args.state], parsed_args.reason
        actions.settle(self.session.store, self.operator, plan, action, new, why)
        return 0
