# SPDX-License-Identifier: Apache-2.0
"""``actionplan db check``: find damage in the record."""

from __future__ import annotations

import argparse

from applier.cli.verb import REFUSED, Verb
from applier.wording import count


class DbCheck(Verb):
    """Check the record, and list all damage

    It checks the version of the tables, indexes, the integrity of the file or tables, states,
    claims, JSON, links between actions, that each plan is as it was saved, and that no row is left
    without its plan. It changes nothing, and may be used while appliers run. The exit code is 1 if
    anything is wrong.
    """

    EXAMPLES = ("db check", "--config-file watcher.conf db check")

    def take_action(self, parsed_args: argparse.Namespace) -> int:  # noqa: ARG002
        """Write each problem on a line of its own."""
        from applier import configuration
        from applier.storage.record_check import check

        found = check(configuration.connection(self.session.conf))
        for problem in found.problems:
            self.say(problem)
        plans = count(found.plans, "plan")
        if found.problems:
            problems = count(len(found.problems), "problem")
            self.note(f"The record in {found.record} is damaged: {problems}, {plans} read.")
            return REFUSED
        self.say(f"The record in {found.record} is sound: {plans}.")
        return 0
