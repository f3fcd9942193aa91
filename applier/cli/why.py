# SPDX-License-Identifier: Apache-2.0
"""``actionplan why``: explain when an action starts, why it waits, or why it did not run."""

from __future__ import annotations

import argparse

from applier.cli import arguments
from applier.cli.arguments import with_action
from applier.cli.plan_files import refuse_planning
from applier.cli.reporters.action_text import wrapped
from applier.cli.reporters.triggers import sources
from applier.cli.session import find_action
from applier.cli.verb import Verb
from applier.operations import claim
from applier.wording import one_line
from planner.model import Action
from planner.states import ActionState


class Why(Verb):
    """Explain when an action starts, what it waits for, or why it did not run

    Before a run, the explanation is based on a forecast, during a run on the stored states.
    """

    EXAMPLES = ("why last db-1", "why last db-1 --set max_workers=8")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan, an action, and how many workers."""
        parser = with_action(super().get_parser(prog_name))
        parser.add_argument(
            "--set",
            metavar="KEY=VALUE",
            action="append",
            default=[],
            help="option of the run (max_workers=4), as given to apply",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Explain by the record, or by a forecast for a plan that does not run."""
        from applier.cli.predictions import past_durations, predicted, sentence
        from applier.cli.reporters.plan_table import console
        from applier.cli.reporters.reasons import foreseen, waiting

        settings = arguments.read_settings(parsed_args.set)
        refuse_planning(settings, None)
        session = self.session
        workers = settings.max_workers or session.max_workers
        plan = session.plan(parsed_args.plan)
        action = find_action(plan, parsed_args.action)
        if action.state is not ActionState.PENDING:
            lines = [*ended_or_runs(action), *(f"  {line}" for line in sources(plan, action))]
        elif plan.state in claim.RUNNING:
            others = session.store.held_by_others(plan.uuid)
            waits = waiting(plan, action, others, session.store.requests(plan.uuid), workers)
            lines = [f"{one_line(action.label)} waits:", *(f"  {line}" for line in waits)]
        else:
            durations = past_durations(session).of(plan)
            found = predicted(session, plan, durations, workers).forecast
            lines = [*foreseen(plan, action, found, workers), sentence(durations)]
        width = console(self.app.stdout).width
        for line in lines:
            for part in wrapped(line, 4, width):
                self.say(part)
        return 0


def ended_or_runs(action: Action) -> list[str]:
    """Return lines about the end of an action, or the start of a running one."""
    label, why = one_line(action.label), one_line(action.status_message or "")
    if action.state is ActionState.ONGOING:
        since = f" since {action.started_at:%Y-%m-%d %H:%M:%S} UTC" if action.started_at else ""
        return [f"{label} runs{since}, attempt {action.attempts}."]
    ran = "ran" if action.started_at else "did not run"
    outcome = f" ({action.outcome})" if action.outcome else ""
    return [f"{label} {ran}: it is {action.state}{outcome}{f': {why}' if why else '.'}"]
