# SPDX-License-Identifier: Apache-2.0
"""Verbs about the simulated cloud: ``simulator show``, ``simulator reset``."""

from __future__ import annotations

import argparse

from applier.cli.arguments import add_format
from applier.cli.plan_files import rendered
from applier.cli.verb import Verb
from applier.run.plan_cloud import SIMULATED


class SimulatorShow(Verb):
    """Show the simulated cloud: hosts, instances, volumes, services"""

    EXAMPLES = ("simulator show", "simulator show -f json")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a format."""
        parser = super().get_parser(prog_name)
        add_format(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Write the state of the cloud."""
        snapshot = self.session.assembly.simulated_cloud().snapshot()
        _tell_other(self)
        if parsed_args.format != "table":
            self.app.stdout.write(rendered(snapshot, parsed_args.format))
            return 0
        from applier.cli.reporters.plan_table import console, put
        from applier.cli.reporters.simulator_tables import tables

        out = console(self.app.stdout)
        for number, table in enumerate(tables(snapshot)):
            if number:
                self.say()
            put(out, table)
        return 0


class SimulatorReset(Verb):
    """Reset the simulated cloud

    To the small cloud that is part of the product, or to the cloud in a file of the same format.
    """

    EXAMPLES = ("simulator reset", "simulator reset --from my-cloud.yaml")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a file."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--from", dest="source", metavar="FILE", help="cloud to start with")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Replace the state of the simulated cloud; raises ConfigurationError for a wrong file."""
        from applier import configuration
        from applier.clouds.simulated import SimulatedCloud

        path = configuration.simulator_path(self.session.conf)
        SimulatedCloud.reset(path, parsed_args.source)
        self.say(f"The simulated cloud in {path} is as new.")
        _tell_other(self)
        return 0


def _tell_other(verb: Verb) -> None:
    """Write a note to standard error if the configured cloud is not the simulated one."""
    configured = verb.session.conf.actionplan.cloud
    if configured != SIMULATED:
        verb.note(f"Note: plans run on another cloud: [actionplan] cloud is {configured}.")
