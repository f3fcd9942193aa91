# SPDX-License-Identifier: Apache-2.0
"""``actionplan config show``: every option, its value, and the source of the value."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from applier.cli.arguments import argument
from applier.cli.exit_codes import REFUSED
from applier.cli.plugins import shown as shown_value
from applier.cli.session import configuration_of, warn
from applier.cli.verb import ListVerb
from applier.errors import ConfigurationError
from planner.errors import InvalidInput, Mistake, PlannerError, accepted, shown

if TYPE_CHECKING:
    from oslo_config import cfg


#: The source of a value that is set nowhere.
DEFAULT = "default"


class ConfigShow(ListVerb):
    """Show every option, its value, and the source of the value

    The options that every action type has are shown for migrations, and for others where they are
    set. Secrets are not shown. The mistakes for which other commands refuse the configuration
    follow; then the exit code is 1.
    """

    EXAMPLES = ("config show", "config show --section actionplan")
    ARGUMENTS = (argument("--section NAME", "only options of this section"),)

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        from applier import configuration
        from applier.configuration import plugin_options

        section = parsed_args.section
        options: list[tuple[str, cfg.Opt]] = [
            (group if isinstance(group, str) else group.name, opt)
            for group, opts in configuration.list_opts()
            for opt in opts
        ]
        of_types = plugin_options.sections_of_types()
        sections = {*(name for name, _ in options), *of_types}
        if section is not None and section not in sections:
            text = f"no such section; {accepted(section, sections)}"
            raise InvalidInput([Mistake(text, place=f"--section {section}")])
        # Invalid values are shown, not refused.
        conf = configuration_of(self.session.config_files, checked=False)
        configuration.register_all(conf)
        options += _of_actionplan(conf)
        more: list[tuple[str, cfg.Opt]] = [
            (name, opt) for name in of_types for opt in plugin_options.OF_EVERY_TYPE
        ]
        where = _Origins(conf, options + more)
        listed = {(name, opt.dest) for name, opt in options}
        options += [
            (name, opt)
            for name, opt in more
            if (name, opt.dest) not in listed
            and (name == section or where(name, opt.dest) != DEFAULT)
        ]
        self._mistakes = _mistakes(self.session.config_files)
        return ("section", "option", "value", "from"), (
            (name, opt.dest, value_of(conf, name, opt), where(name, opt.dest))
            for name, opt in options
            if section in (None, name)
        )

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Show the options, then each mistake; return REFUSED if there is one."""
        code = super().run(parsed_args)
        for mistake in shown(self._mistakes):
            self.note(f"Mistake: {' '.join(str(mistake).split())}")
        return REFUSED if self._mistakes else int(code)


def _of_actionplan(conf: cfg.ConfigOpts) -> list[tuple[str, cfg.Opt]]:
    """Return the options of a planner that are set in ``[watcher_planners.actionplan]``."""
    from planner.making import options, registry

    section = options.SECTION_IN_WATCHER
    try:
        known = registry.planner(conf[section].planner).OPTIONS
    except PlannerError:  # it is one of the mistakes
        return []
    conf.register_opts(known, group=section)
    return [(section, opt) for opt in known if options.is_set(conf, section, opt.dest)]


def _mistakes(files: Sequence[str]) -> Sequence[object]:
    """Return the mistakes in a configuration that is read, but not accepted by other commands."""
    try:
        configuration_of(files, warn=warn)
    except ConfigurationError as reason:
        return reason.mistakes or (reason,)
    return ()


def value_of(conf: cfg.ConfigOpts, group: str, opt: cfg.Opt) -> str:
    """Return the value of an option as text: a secret masked, an invalid value explained."""
    from oslo_config import cfg

    from applier import configuration
    from applier.configuration import option_types

    try:
        value = conf[group][opt.dest]
    except (cfg.Error, ValueError, RecursionError) as error:
        return f"cannot be used: {option_types.explained(opt, error)}"
    if (group, opt.name) == ("actionplan", "connection"):
        return _connection(conf)
    if (group, opt.name) == ("actionplan", "simulator"):
        return str(configuration.simulator_path(conf))
    return shown_value(opt, value)


def _connection(conf: cfg.ConfigOpts) -> str:
    from applier import configuration
    from applier.storage import connection

    return connection.shown(connection.parse(configuration.connection(conf)))


class _Origins:
    """Finds the source of an option's value: a file, the environment or the default."""

    def __init__(self, conf: cfg.ConfigOpts, options: Sequence[tuple[str, cfg.Opt]]) -> None:
        self._conf = conf
        # oslo.config remembers only one file for a section, the last that contains it. So each file
        # is also read alone. A later file takes precedence.
        names: Sequence[str] = conf.config_file or ()
        self._alone = [(name, configuration_of([name], checked=False)) for name in reversed(names)]
        for _, alone in self._alone:
            for section, opt in options:
                alone.register_opt(opt, group=section)

    def __call__(self, group: str, option: str) -> str:
        from oslo_config import cfg

        where, detail = _location(self._conf, group, option)
        if where is not cfg.Locations.user:
            return detail or DEFAULT
        for name, alone in self._alone:
            if _location(alone, group, option)[0] is cfg.Locations.user:
                return name
        return detail


def _location(conf: cfg.ConfigOpts, group: str, option: str) -> tuple[cfg.Locations, str]:
    """Return the kind of source of a value, and its name; the name is empty for a default."""
    from oslo_config import cfg

    try:
        found = conf.get_location(option, group)
    except (cfg.Error, ValueError, RecursionError):
        # get_location() reads the value, and only one that is set can be invalid.
        variable = f"OS_{group.upper()}__{option.upper()}"
        if variable in os.environ:
            return cfg.Locations.environment, variable
        return cfg.Locations.user, ""
    if found is None or found.location in (cfg.Locations.opt_default, cfg.Locations.set_default):
        return cfg.Locations.opt_default, ""
    return found.location, str(found.detail or found.location.name)
