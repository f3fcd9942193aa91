# SPDX-License-Identifier: Apache-2.0
"""``actionplan approve``: record that the user approves a plan, so that it may run."""

from __future__ import annotations

import argparse

from applier.cli.arguments import with_plan, with_reason
from applier.cli.verb import Verb


class Approve(Verb):
    """Approve a plan, for others to run it

    What must be approved is configured (approvals, approvals_for), or demanded by the part
    'guards' of a document. An approval is of the plan as it is: it is void when anything of the
    plan differs. 'show' tells who approved a plan, 'history' as well.
    """

    EXAMPLES = ("approve last --reason 'looked at with the network team'",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan and a reason."""
        return with_reason(with_plan(super().get_parser(prog_name)), required=True)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Record the approval; raises GuardRefusal if it would not count."""
        from applier.operations import approving

        plan = self.session.plan(parsed_args.plan)
        approving.approve(self.session.assembly, self.operator, plan, parsed_args.reason)
        return 0
