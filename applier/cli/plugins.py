# SPDX-License-Identifier: Apache-2.0
"""Verbs about planners, action types and schemas."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from applier.cli.verb import ListVerb, Verb, rendered
from planner.errors import PlannerError, UnknownPlugin

if TYPE_CHECKING:
    from oslo_config import cfg

    from planner.making.registry import ActionTypes


#: The name of the schema of saved plans.
_PLAN = "plan"


class PlannerList(ListVerb):
    """List the installed planners"""

    EXAMPLES = ("planner list", "planner list -f json")

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:  # noqa: ARG002
        return ("name", "reads", "what it does"), map(_planner_row, self.session.planner_names())


class PluginVerb(Verb):
    """A verb that shows a plugin and its options."""

    def say_wrapped(self, text: str) -> None:
        """Write a text; on a terminal, lines that are wider are broken, with their indent kept."""
        from applier.cli.reporters.formatting import wrapped
        from applier.cli.reporters.plan_table import console

        out = console(self.app.stdout)
        for line in text.splitlines():
            indent = len(line) - len(line.lstrip())
            for part in wrapped(line, indent, out.width) if out.is_terminal and line else [line]:
                self.say(part)

    def say_options(self, section: str, options: Sequence[cfg.Opt]) -> None:
        """Write the name, the help and the configured value of each option of a section."""
        from applier.configuration import plugin_options

        values = plugin_options.read(self.session.conf, section, options)
        for option in options:
            self.say()
            self.say(f"{option.dest} ([{section}])")
            if option.help:
                self.say_wrapped(f"  {option.help}")
            self.say_wrapped(f"  here: {shown(option, values[option.dest])}".rstrip())


class PlannerShow(PluginVerb):
    """Show a planner: what it does, and its options with their configured values"""

    EXAMPLES = ("planner show weight",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="NAME", help="planner list shows them")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        from planner.making import options, registry

        conf, planner = self.session.conf, registry.planner(parsed_args.name)
        self.say(f"{parsed_args.name}  reads documents of kind {planner.KIND}")
        self.say()
        self.say_wrapped(inspect.getdoc(planner) or "")
        own, *others = options.sections_of(parsed_args.name, conf)
        self.say_options(own, planner.OPTIONS)
        for section in others:
            conf.register_opts(planner.OPTIONS, group=section)
            changed = [o for o in planner.OPTIONS if options.is_set(conf, section, o.dest)]
            self.say_options(section, changed)
        return 0


class ActionTypeList(ListVerb):
    """List the installed action types"""

    EXAMPLES = ("action type list",)

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:  # noqa: ARG002
        known = self.session.action_types
        return ("name", "what it does"), ((name, _what_it_does(known, name)) for name in known)


class ActionTypeShow(PluginVerb):
    """Show an action type: what it does, parameters and options"""

    EXAMPLES = ("action type show migrate",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="NAME", help="action type list shows them")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        from applier.configuration import plugin_options
        from planner.making import registry

        found = self.session.plugins[parsed_args.name]
        self.say(parsed_args.name)
        self.say()
        self.say_wrapped(inspect.getdoc(found) or "")
        self.say()
        self.say("parameters (actionplan schema " + parsed_args.name + " has all of it):")
        required = found.SCHEMA.get("required", ())
        for name, field in (found.SCHEMA.get("properties") or {}).items():
            must = "required" if name in required else "optional"
            self.say_wrapped(f"  {name:<18} {must}  {_kind(field)}".rstrip())
        declared = plugin_options.of_action_type(parsed_args.name, found)
        section = registry.section_of(registry.ACTIONS, parsed_args.name)
        self.say_options(section, [*plugin_options.OF_EVERY_TYPE, *declared])
        return 0


class Schema(Verb):
    """Print the JSON Schema of a document, an action type, or the action plan

    Without NAME, the names are listed.
    """

    EXAMPLES = ("schema solution", "schema plan", "schema migrate")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="NAME", nargs="?", help="what to print")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        from planner.making import registry

        planners = (registry.planner(name) for name in self.session.planner_names())
        documents: dict[str, Mapping[str, Any]] = {p.KIND: p.SCHEMA for p in planners}
        types = self.session.action_types
        name = parsed_args.name
        if name == _PLAN:
            from planner.making import saved

            documents[_PLAN] = saved.SCHEMA
        if name is None:
            self.say(f"documents: {', '.join(sorted([_PLAN, *documents]))}")
            self.say(f"action types: {', '.join(types)}")
            return 0
        if name not in documents and name not in list(types):
            raise UnknownPlugin("schema", name, [_PLAN, *documents, *types])
        schema: Mapping[str, Any] = documents.get(name) or types[name].SCHEMA
        self.app.stdout.write(rendered(dict(schema), "json"))
        return 0


def _planner_row(name: str) -> tuple[str, str, str]:
    """Return the row of a planner. One that cannot be imported has the reason in its row."""
    from planner.making import registry

    try:
        planner = registry.planner(name)
    except PlannerError as reason:
        return name, "-", str(reason)
    return name, planner.KIND, _sentence(planner)


def _what_it_does(known: ActionTypes, name: str) -> str:
    try:
        return _sentence(known[name])
    except PlannerError as reason:
        return str(reason)


def _sentence(plugin: type) -> str:
    return (inspect.getdoc(plugin) or "").partition("\n")[0]


def _kind(field: Mapping[str, Any]) -> str:
    if "enum" in field:
        return " | ".join(map(str, field["enum"]))
    kinds = field.get("type", "")
    return str(field.get("description") or (kinds if isinstance(kinds, str) else " | ".join(kinds)))


def shown(opt: cfg.Opt, value: object) -> str:
    """Return the value of an option in the syntax of configuration files; empty for None.

    A secret is replaced.
    """
    if value is None:
        return ""
    if opt.secret:
        return "***"
    # A table can fold a list only at blanks.
    return re.sub(r",\s*", ", ", ", ".join(opt.type.format_defaults(value)))
