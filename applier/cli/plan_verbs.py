# SPDX-License-Identifier: Apache-2.0
"""``actionplan show``: one stored plan."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from itertools import chain
from typing import ClassVar

from applier.assembly import now
from applier.cli import host_state, plan_files
from applier.cli.arguments import add_format, with_plan
from applier.cli.verb import Verb
from applier.guarding import windows
from applier.operations import approving, changed_limits, claim, hidden_values, start_times
from planner.errors import InvalidInput, Mistake
from planner.model import ActionPlan


class ShowPlan(Verb):
    """Show a plan wave by wave, or the whole plan as JSON or YAML

    '-f message' writes the three-level message of a deployment: nodes, their tasks, and the
    dependencies of each task. 'create' can read it. '--node HOST' looks at the cloud, and says what
    left the host, what remains on it and why, and whether it is safe to power off.
    """

    EXAMPLES: ClassVar[tuple[str, ...]] = (
        "show last",
        "show host-maintenance --all",
        "show 7f3a91 -f json",
        "show last -f message",
        "show last --node compute-1",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan and a format."""
        parser = with_plan(super().get_parser(prog_name))
        parser.add_argument("--all", action="store_true", help="show every action of a long plan")
        parser.add_argument("--node", metavar="HOST", help="show one host of the cloud instead")
        add_format(parser, "message")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Write the plan."""
        plan = self.session.plan(parsed_args.plan)
        if parsed_args.node:
            return self._show_host(plan, parsed_args.node, parsed_args.format)
        if parsed_args.format == "message":
            from planner.planners.deployment import message

            known = hidden_values.without(plan, self.session.action_types)
            self.app.stdout.write(plan_files.rendered(message.write(known), "json"))
            return 0
        if parsed_args.format != "table":
            self.app.stdout.write(plan_files.shown(self.session, plan, parsed_args.format))
            return 0
        from applier.cli.reporters import deployment_table, plan_table

        changed = changed_limits.holding_now(self.session.store, plan)
        plan_table.show(
            plan, self.app.stdout, whole=parsed_args.all, run_by=self.about(plan), changed=changed
        )
        if deployment_table.is_shown(plan):
            deployment_table.show(plan, self.app.stdout)
        return 0

    def about(self, plan: ActionPlan) -> Iterable[str]:
        """Return lines about who runs the plan, its approvals, and its windows."""
        assembly, at = self.session.assembly, now()
        return chain(
            claim.claimant_lines(self.session.store, plan, self.session.record, at),
            approving.lines(assembly, plan),
            start_times.lines(plan),
            windows.lines(plan, assembly.open_times(plan), at),
        )

    def _show_host(self, plan: ActionPlan, host: str, form: str) -> int:
        """Write which instances have left a host and which remain, by a new query of the cloud."""
        if form == "message":
            raise InvalidInput([Mistake("a host has no message", place="--node")])
        self.session.require_own_cloud(plan)
        state = host_state.compare_with_facts(plan, host, self.session.assembly.facts())
        if form == "table":
            for line in host_state.lines(state):
                self.say(line)
        else:
            self.app.stdout.write(plan_files.rendered(state, form))
        return 0
