# SPDX-License-Identifier: Apache-2.0
"""Completion in bash and zsh: verbs, options, plans, actions, planners, types and files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from command_line import EXAMPLE, ROOT, CommandLine

from applier.cli.completion import FILES, WORDS


def offered(actionplan: CommandLine, *words: str) -> list[str]:
    """Return what is offered for the last word."""
    actionplan.environment[WORDS] = "\n".join(words)
    return actionplan.good("complete", "--words").splitlines()


@pytest.fixture
def planned(actionplan: CommandLine) -> CommandLine:
    """Return a command line with one stored plan."""
    actionplan.good("create", str(EXAMPLE))
    return actionplan


def test_only_deleted_plans_are_offered_to_be_brought_back(planned):
    (plan,) = planned.plans()
    planned.good("delete", "last", "--yes")
    assert offered(planned, "undelete", "") == [plan.uuid]


#: Words, what is offered for the last one, and what is not.
OFFERED = [
    ([""], ["apply", "action", "event"], ["show last"]),
    (["action", ""], ["list", "show", "type"], ["apply"]),
    (["apply", "--"], ["--yes", "--set", "--dry-run"], ["last"]),
    (["apply", ""], [FILES, "last", "host-maintenance"], ["--yes"]),
    (["create", ""], [FILES], ["last"]),
    (["create", "--planner", "w"], ["weight"], ["events"]),
    (["show", ""], ["last", "host-maintenance"], [FILES]),
    (["show", "last", "-f", ""], ["json", "table"], ["last"]),
    (["show", "last", ""], [], ["last"]),
    (["action", "show", "last", "move-w"], ["move-web-1", "move-web-2"], ["move-db-1"]),
    (["action", "type", "show", "mig"], ["migrate"], ["nop"]),
    (["planner", "show", ""], ["weight", "events"], ["last"]),
    (["example", "show", "etc/ex"], ["etc/examples/host-maintenance.yaml"], []),
    (["nonsense", ""], [], ["apply"]),
    (["--con"], ["--config-file"], ["--debug"]),
    (["--config-file", ""], [FILES], ["apply", "show"]),
    (["--log-file", "x", "show", ""], ["last", "host-maintenance"], [FILES]),
    (["show", "last", "--log-file", ""], [FILES], ["last"]),
    (["show", "last", "--log-file=some"], [FILES], ["last"]),
    (["graph", "last", "--format", "="], ["svg"], [FILES]),
    (["graph", "last", "--out=some"], [FILES], ["last"]),
    (["create", "--set", "ordering", "=", "chunks", ""], [FILES], ["last"]),
]


def test_what_is_offered(planned):
    for words, among, not_among in OFFERED:
        found = offered(planned, *words)
        assert set(among) <= set(found), words
        assert not set(not_among) & set(found), words


def test_a_record_that_cannot_be_opened_is_no_error(actionplan):
    actionplan.configure(actionplan={"connection": "sqlite:////dev/null/record.sqlite"})
    assert "weight" in offered(actionplan, "create", "--planner", "")
    assert offered(actionplan, "show", "") == []


def in_shell(planned: CommandLine, shell: str, script: str) -> list[str]:
    """Run a script in a shell that has loaded the completion; return its lines."""
    folder = Path(planned.folder)
    loaded = folder / f"completion.{shell}"
    loaded.write_text(planned.good("complete", shell), encoding="utf-8")
    (folder / "some-file.yaml").write_text("", encoding="utf-8")
    path = f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
    ended = subprocess.run(
        [shell, "-c", script.replace("LOADED", str(loaded))],
        env={**planned.environment, "PATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return ended.stdout.splitlines()


def test_bash_completes(planned):
    script = (
        "source LOADED; complete -p actionplan;"
        ' COMP_WORDS=(actionplan apply "some"); COMP_CWORD=2; _actionplan;'
        ' printf "%s\\n" "${COMPREPLY[@]}";'
        " COMP_WORDS=(actionplan graph last --out = some); COMP_CWORD=5; _actionplan;"
        ' printf "%s\\n" "${COMPREPLY[@]}";'
        " COMP_WORDS=(actionplan action show last move-web-1); COMP_CWORD=4; _actionplan;"
        ' printf "%s\\n" "${COMPREPLY[@]}"'
    )
    assert in_shell(planned, "bash", script) == [
        "complete -F _actionplan actionplan",
        "some-file.yaml",
        "some-file.yaml",
        "move-web-1",
    ]


@pytest.mark.needs("zsh")
def test_zsh_completes(planned):
    script = (
        "compdef() { print -r -- compdef $* }; _files() { print -r -- files };"
        " compadd() { print -rl -- ${(P)2} }; compset() { print -r -- compset $* };"
        " source LOADED; words=(actionplan graph last --out=some); CURRENT=4; _actionplan;"
        " words=(actionplan create some); CURRENT=3; _actionplan;"
        " words=(actionplan action show last move-web); CURRENT=5; _actionplan"
    )
    found = [line for line in in_shell(planned, "zsh", script) if line]
    assert found == [
        "compdef _actionplan actionplan",
        "compset -P *=",
        "files",
        "files",
        "move-web-1",
        "move-web-2",
        "move-web-3",
    ]
