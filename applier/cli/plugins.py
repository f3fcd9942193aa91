# SPDX-License-Identifier: Apache-2.0
"""Verbs about planners, action types and schemas; ``plugin new`` writes a package of one."""

from __future__ import annotations

import argparse
import inspect
import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from applier.cli.arguments import argument
from applier.cli.verb import ListVerb, Verb, rendered, write_text
from planner.errors import InvalidInput, Mistake, PlannerError, UnknownPlugin

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

    def say_text(self, text: str) -> None:
        """Write a text; on a terminal, lines that are wider are broken, with their indent kept."""
        for line in text.splitlines():
            if line and self.on_terminal:
                self.say_wrapped(line, len(line) - len(line.lstrip()))
            else:
                self.say(line)

    def say_options(self, section: str, options: Sequence[cfg.Opt]) -> None:
        """Write the name, the help and the configured value of each option of a section."""
        from applier.configuration import plugin_options

        values = plugin_options.read(self.session.conf, section, options)
        for option in options:
            self.say()
            self.say(f"{option.dest} ([{section}])")
            if option.help:
                self.say_text(f"  {option.help}")
            self.say_text(f"  here: {shown(option, values[option.dest])}".rstrip())


class PlannerShow(PluginVerb):
    """Show a planner: what it does, and its options with their configured values"""

    EXAMPLES = ("planner show weight",)
    ARGUMENTS = (argument("NAME", "planner list shows them", dest="planner"),)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        from planner.making import options, registry

        name, conf = parsed_args.planner, self.session.conf
        planner = registry.planner(name)
        self.say(f"{name}  reads documents of kind {planner.KIND}")
        self.say()
        self.say_text(inspect.getdoc(planner) or "")
        own, *others = options.sections_of(name, conf)
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
    ARGUMENTS = (argument("NAME", "action type list shows them", dest="action_type"),)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        from applier.configuration import plugin_options
        from planner.making import registry

        name = parsed_args.action_type
        found = self.session.plugins[name]
        self.say(name)
        self.say()
        self.say_text(inspect.getdoc(found) or "")
        self.say()
        self.say(f"parameters (actionplan schema {name} has all of it):")
        required = found.SCHEMA.get("required", ())
        for parameter, field in (found.SCHEMA.get("properties") or {}).items():
            must = "required" if parameter in required else "optional"
            self.say_text(f"  {parameter:<18} {must}  {_kind(field)}".rstrip())
        declared = plugin_options.of_action_type(name, found)
        section = registry.section_of(registry.ACTIONS, name)
        self.say_options(section, [*plugin_options.OF_EVERY_TYPE, *declared])
        return 0


class Schema(Verb):
    """Print the JSON Schema of a document, an action type, or the action plan

    Without NAME, the names are listed.
    """

    EXAMPLES = ("schema solution", "schema plan", "schema migrate")
    ARGUMENTS = (argument("NAME", "what to print", dest="schema", nargs="?"),)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        from planner.making import registry

        planners = (registry.planner(name) for name in self.session.planner_names())
        documents: dict[str, Mapping[str, Any]] = {p.KIND: p.SCHEMA for p in planners}
        types, name = self.session.action_types, parsed_args.schema
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


_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_PYPROJECT = """\
[build-system]
requires = ["setuptools>=70.1"]
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "0.1"
requires-python = ">=3.11"
dependencies = ["actionplan"]

[project.optional-dependencies]
test = ["pytest"]

# The name that documents use = module:class.
[project.entry-points."actionplan.actions"]
{name} = "{name}.actions:{name}"

[tool.setuptools]
packages = ["{name}"]
"""
_ACTIONS = '''\
"""The action types of {name}."""

from applier.actions.functions import action
from applier.contracts import ActionContext


@action(touches=["node:{{node}}"], rerun_safe=True, examples=[{{"node": "web-1"}}])
def {name}(context: ActionContext, node: str, text: str = "hello") -> None:
    """Say something about a node; put your work here."""
    context.output(f"{{node}}: {{text}}\\n")
'''
_TESTS = '''\
"""What {name} promises: the contract of every action type, and what it does itself."""

import threading

import pytest
from applier.contracts import ActionContext
from applier.testing.action_suite import ActionContract
from planner.plan.states import Outcome

from {name}.actions import {name}


@pytest.fixture
def action():
    return {name}


class TestContract(ActionContract):
    pass


def test_it_says_something_about_the_node():
    said = []
    context = ActionContext(cloud=lambda: None, output=said.append)
    work = {name}({{"node": "web-1"}}, context)
    assert work.execute(threading.Event()) is Outcome.CHANGED
    assert said == ["web-1: hello\\n"]
'''
#: The files of the package, by path; ``{name}`` stands for its name.
_FILES = {
    "pyproject.toml": _PYPROJECT,
    "{name}/__init__.py": "",
    "{name}/actions.py": _ACTIONS,
    "tests/test_actions.py": _TESTS,
}


class PluginNew(Verb):
    """Write a package with an action type of your own and a test that passes"""

    EXAMPLES = ("plugin new my_site",)
    ARGUMENTS = (argument("NAME", "of the package and of the action type: a folder is made"),)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        name, folder = parsed_args.name, Path(parsed_args.name)
        if not _NAME.fullmatch(name) or keyword.iskeyword(name):
            text = "expected the name of a Python package: a-z, 0-9 and _, first a letter"
            raise InvalidInput([Mistake(text, place=repr(name))])
        try:
            folder.mkdir()
        except FileExistsError:
            raise InvalidInput([Mistake("it exists already", place=name)]) from None
        except OSError as reason:
            raise InvalidInput([Mistake(str(reason.strerror), place=name)]) from reason
        (folder / name).mkdir()
        (folder / "tests").mkdir()
        for path, text in _FILES.items():
            write_text(str(folder / path.format(name=name)), text.format(name=name))
        self.say(f"Written: {name}/pyproject.toml, {name}/{name}/actions.py, {name}/tests")
        self.say(f"Next: python -m pip install -e './{name}[test]' && python -m pytest {name}")
        return 0
