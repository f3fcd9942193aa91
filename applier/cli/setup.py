"""Verbs that look at and prepare the ground: ``config show``, ``simulator ...``, ``db upgrade``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from applier.cli.arguments import add_format
from applier.cli.files import rendered
from applier.cli.plugins import shown
from applier.cli.session import configuration_of
from applier.cli.verb import ListVerb, Verb
from applier.errors import StoreError
from planner.errors import InvalidInput, Mistake, accepted

if TYPE_CHECKING:
    from oslo_config import cfg


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
        from applier import conf as configuration

        section = parsed_args.section
        options = [
            (group if isinstance(group, str) else group.name, opt)
            for group, opts in configuration.list_opts()
            for opt in opts
        ]
        sections = {name for name, _ in options}
        if section is not None and section not in sections:
            text = f"no such section; {accepted(section, sections)}"
            raise InvalidInput([Mistake(text, place=f"--section {section}")])
        configuration.register_all(self.session.conf)
        where = _Origins(self.session.conf)
        return ("section", "option", "value", "from"), (
            (name, opt.name, value_of(self.session.conf, name, opt), where(name, opt.name))
            for name, opt in options
            if section in (None, name)
        )


def value_of(conf: cfg.ConfigOpts, group: str, opt: cfg.Opt) -> str:
    """Write the value of an option; what is secret, or cannot be used, is said and not shown."""
    from oslo_config import cfg

    from applier import conf as configuration

    try:
        value = conf[group][opt.name]
    except cfg.ConfigFileValueError as reason:
        return f"cannot be used: {str(reason).rpartition('is not valid: ')[2]}"
    if (group, opt.name) == ("actionplan", "connection"):
        return _connection(conf)
    if (group, opt.name) == ("actionplan", "simulator"):
        return str(configuration.simulator_path(conf))
    return "***" if opt.secret and value is not None else shown(opt, value)


def _connection(conf: cfg.ConfigOpts) -> str:
    from applier import conf as configuration
    from applier.storage import urls

    try:
        return urls.shown(urls.parse(configuration.connection(conf)))
    except StoreError:
        return "cannot be used: no URL of a database"


class _Origins:
    """Says which file, or what else, gives an option its value."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        from applier import conf as configuration

        self._conf = conf
        # oslo.config remembers one file for a whole section, the last that has it. Asked alone,
        # each file answers for its own options; a later file wins.
        names: Sequence[str] = conf.config_file or ()
        self._alone = [(name, configuration_of([name])) for name in reversed(names)]
        for _, alone in self._alone:
            configuration.register_all(alone)

    def __call__(self, group: str, option: str) -> str:
        from oslo_config import cfg

        where, detail = _location(self._conf, group, option)
        if where is not cfg.Locations.user:
            return detail or "default"
        for name, alone in self._alone:
            if _location(alone, group, option)[0] is cfg.Locations.user:
                return name
        return detail


def _location(conf: cfg.ConfigOpts, group: str, option: str) -> tuple[cfg.Locations, str]:
    """Say where a value comes from; of a default no more is known."""
    from oslo_config import cfg

    try:
        found = conf.get_location(option, group)
    except cfg.ConfigFileValueError:
        # To say where it is, oslo.config reads it, and only what a file holds can fail so.
        return cfg.Locations.user, ""
    if found is None or found.location in (cfg.Locations.opt_default, cfg.Locations.set_default):
        return cfg.Locations.opt_default, ""
    return found.location, str(found.detail or found.location.name)


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
        from applier.cli.reporters.plan_table import console, put
        from applier.cli.reporters.simulator import tables

        out = console(self.app.stdout)
        for number, table in enumerate(tables(snapshot)):
            if number:
                self.say()
            put(out, table)
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
        from applier import conf as configuration
        from applier.clouds.simulated import SimulatedCloud

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
        from applier import conf as configuration
        from applier.storage import schema_version, urls

        url = configuration.connection(self.session.conf)
        schema_version.upgrade(url)
        self.say(f"The record in {urls.shown(urls.parse(url))} is up to date.")
        return 0
