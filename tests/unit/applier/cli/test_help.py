# SPDX-License-Identifier: Apache-2.0
"""Help at every level: a sentence, examples that parse, no line too wide."""

from __future__ import annotations

import re
import shlex

import pytest

from applier.cli.help import GROUPS
from applier.cli.program import Program, Verbs

from .conftest import Run

NAMES = sorted([*(name for name, _ in Verbs("actionplan.cli")), "help", "complete"])


def test_every_verb_stands_in_one_group() -> None:
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(listed) == NAMES


def test_every_verb_explains_itself_within_100_columns_with_examples_that_parse(run: Run) -> None:
    program = Program()
    for name in NAMES:
        code, out, err = run("help", *name.split())
        assert (code, err) == (0, "")
        assert max(map(len, out.splitlines())) <= 100, name
        assert re.search(r"^[A-Z].+", out.split("\n\n")[1]), name
        assert run(*name.split(), "--help")[1] == out
        lines = re.findall(r"^  actionplan (.*)$", out.partition("Examples:")[2], re.MULTILINE)
        assert lines, name
        for line in lines:
            words = shlex.split(re.split(r" [|>] ", line)[0])
            _, rest = program.parser.parse_known_args(words)
            verb, found, arguments = program.command_manager.find_command(rest)
            assert found == name
            command = verb(program, None, cmd_name=found)
            assert command.get_parser(f"actionplan {found}").parse_args(arguments), line


def test_help_of_a_beginning_lists_what_begins_so(run: Run) -> None:
    code, out, _ = run("help", "simulator")
    assert code == 0
    assert {line.split()[1] for line in out.splitlines()} == {"show", "reset"}


def test_help_of_what_documents_have_names_the_verbs_that_explain_it(run: Run) -> None:
    words = {
        "rollout": ("planner show rollout", "schema rollout"),
        "solution": ("planner show weight", "schema solution"),
        "weight": ("planner show weight", "schema solution"),
        "migrate": ("action type show migrate", "schema migrate"),
    }
    for word, named in words.items():
        code, out, err = run("help", word)
        assert (code, err) == (0, "")
        lines = [line.strip().removeprefix("actionplan ") for line in out.splitlines()]
        assert {*named} <= {*lines}, word
        for line in lines[1:]:
            assert run(*line.split())[0] == 0, line


def test_a_verb_that_cannot_be_loaded_hides_no_other(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone:
        """An entry point of a module that is not there."""

        name = "list"

        def load(self) -> None:
            """Fail as an import does."""
            raise ImportError("no module")

    load = Verbs.load_commands

    def loaded(self: Verbs, namespace: str) -> None:
        load(self, namespace)
        self.commands["list"] = Gone()  # type: ignore[assignment]

    monkeypatch.setattr(Verbs, "load_commands", loaded)
    out = run("--help")[1]
    assert re.search(r"^  list +cannot be loaded: no module$", out, re.MULTILINE)
    assert re.search(r"^  show +Show a plan", out, re.MULTILINE)


def test_completion_names_every_verb(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACTIONPLAN_WORDS", "")
    offered = run("complete", "--words")[1].split()
    assert offered == sorted({name.split()[0] for name in NAMES})
