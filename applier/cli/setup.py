"""Verbs that look at and prepare the ground: ``config show``, ``simulator ...``, ``db upgrade``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from oslo_config import cfg

from applier import conf as configuration
from applier.cli.create import add_format, rendered
from applier.cli.plugins import shown
from applier.cli.reporters.plan_table import console, put
from applier.cli.reporters.simulator import tables
from applier.cli.verb import ListVerb, Verb
from applier.clouds.simulated import SimulatedCloud
from applier.storage import connection, schema


class ConfigShow(ListVerb):
    """Show every option, its value, and where that comes from

    Secrets are not shown.
    """

    EXAMPLES = ("config show", "config show --section actionplan")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take a section."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--section", metavar="NAME", help="only options of this section")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        """Give a row for each option."""
        return ("section", "option", "value", "from"), self._rows(parsed_args.section)

    def _rows(self, section: str | None) -> Iterator[tuple[str, ...]]:
        conf = self.session.conf
        for group, opts in configuration.list_opts():
            name = group if isinstance(group, str) else group.name
            for opt in opts if section in (None, name) else ():
                value = shown(getattr(conf[name], opt.name))
                if name == "actionplan" and opt.name in ("connection", "simulator"):
                    value = _path(conf, opt.name)
                yield name, opt.name, value, _origin(conf, opt.name, name)


def _path(conf: cfg.ConfigOpts, option: str) -> str:
    if option == "connection":
        return connection.shown(connection.parse(configuration.connection(conf)))
    return str(configuration.simulator_path(conf))


def _origin(conf: cfg.ConfigOpts, option: str, group: str) -> str:
    location = conf.get_location(option, group)
    if location is None or location.location in (
        cfg.Locations.opt_default,
        cfg.Locations.set_default,
    ):
        return "default"
    return str(location.detail or location.location.name)


class SimulatorShow(Verb):
    """Show the simulated cloud: hosts, instances, volumes, services"""

    EXAMPLES = ("simulator show", "simulator show -f json")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take a format."""
        parser = super().get_parser(prog_name)
        add_format(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Write the state of the cloud."""
        snapshot = self.session.cloud().snapshot()
        if parsed_args.format != "table":
            self.app.stdout.write(rendered(snapshot, parsed_args.format))
            return 0
        out = console(self.app.stdout)
        for table in tables(snapshot):
            put(out, table)
            self.say()
        return 0


class SimulatorReset(Verb):
    """Start the simulated cloud afresh

    From the small cloud that comes with the product, or from a file of the same form.
    """

    EXAMPLES = ("simulator reset", "simulator reset --from my-cloud.yaml")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take a file."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--from", dest="source", metavar="FILE", help="cloud to start with")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Write a fresh cloud."""
        path = configuration.simulator_path(self.session.conf)
        SimulatedCloud.reset(path, parsed_args.source)
        self.say(f"The simulated cloud in {path} is as new.")
        return 0


class DbUpgrade(Verb):
    """Create or upgrade the tables of the record

    A SQLite record is kept up to date by itself; a server is changed only when this is asked for.
    """

    EXAMPLES = ("db upgrade", "--config-file watcher.conf db upgrade")

    def take_action(self, parsed_args: argparse.Namespace) -> int:  # noqa: ARG002
        """Upgrade to what this release knows."""
        url = configuration.connection(self.session.conf)
        schema.upgrade(url)
        self.say(f"The record in {connection.shown(connection.parse(url))} is up to date.")
        return 0
