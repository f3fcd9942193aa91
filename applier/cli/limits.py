# SPDX-License-Identifier: Apache-2.0
"""``actionplan set``: change the limits of a running plan."""

from __future__ import annotations

import argparse

from applier.cli.arguments import positive, with_plan, with_reason
from applier.cli.verb import Verb
from planner.errors import InvalidInput, Mistake, accepted
from planner.model import ActionPlan
from planner.ranges import whole_number

#: Key of the number of workers in the limits of a request.
_WORKERS = "max_workers"


class SetLimits(Verb):
    """Change the limits of a running plan

    They apply to actions that start from now on; running actions continue. A limit for all nodes
    applies to each node separately.
    """

    EXAMPLES = (
        "set last --limit type:migrate=1 --max-workers 2",
        "set 7f3a91 --limit 'node:*=1' --reason 'the network is slow'",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan, limits and a reason."""
        parser = with_plan(super().get_parser(prog_name))
        parser.add_argument(
            "--limit",
            metavar="TOKEN=N",
            action="append",
            default=[],
            help="how many at once may hold a token (type:migrate, node:compute-1, 'node:*')",
        )
        parser.add_argument(
            "--max-workers", type=positive, metavar="N", help="how many actions may run at once"
        )
        return with_reason(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Send a request with the new limits to the claimant."""
        from applier.operations import plans

        plan = self.session.plan(parsed_args.plan)
        limits = parse_limits(plan, parsed_args.limit)
        if parsed_args.max_workers:
            limits[_WORKERS] = parsed_args.max_workers
        if not limits:
            text = "one of them is needed, such as --limit type:migrate=1, or --max-workers 2"
            raise InvalidInput([Mistake(text, place="--limit, --max-workers")])
        plans.set_limits(self.session.assembly, self.operator, plan, limits, parsed_args.reason)
        return 0


def parse_limits(plan: ActionPlan, texts: list[str]) -> dict[str, int]:
    """Parse limits; raises InvalidInput for wrong syntax, and for tokens that no action holds."""
    tokens = {token for action in plan.actions for token in action.tokens}
    known = tokens | {f"{token.partition(':')[0]}:*" for token in tokens} | plan.places.keys()
    limits: dict[str, int] = {}
    wrong = []
    for text in texts:
        token, _, value = text.rpartition("=")
        number = whole_number(value)
        if not token or number is None:
            text_of = "TOKEN=N is expected, N from 1 up, such as type:migrate=1"
            wrong.append(Mistake(text_of, place=f"--limit {text}"))
        elif token not in known:
            kinds = [t for t in known if t.endswith(":*") or t.startswith(("type:", "serial:"))]
            text_of = f"no action of the plan holds {token!r}; {accepted(token, kinds)}"
            wrong.append(Mistake(text_of, place=f"--limit {text}"))
        else:
            limits[token] = number
    if wrong:
        raise InvalidInput(wrong)
    return limits
