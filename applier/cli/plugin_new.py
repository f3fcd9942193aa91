# SPDX-License-Identifier: Apache-2.0
"""``actionplan plugin new``: a package with an action type and its tests, to begin with."""

from __future__ import annotations

import argparse
import keyword
import re
from pathlib import Path

from applier.cli.verb import Verb, write_text
from planner.errors import InvalidInput, Mistake

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

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "name", metavar="NAME", help="of the package and of the action type: a folder is made"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Write the files; raises InvalidInput for a name that is none, or that is taken."""
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
