# SPDX-License-Identifier: Apache-2.0
"""What happens where a program that tests start is missing, and how it is installed."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import programs
import pytest

TESTS = Path(__file__).parents[1]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only folder in which programs are found; the shell stands there."""
    (tmp_path / "env").symlink_to("/usr/bin/env")
    monkeypatch.setattr(programs, "find", lambda name: _path(tmp_path / name))
    return tmp_path


def _path(path: Path) -> str | None:
    return str(path) if path.exists() else None


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("ci", "ends"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)]
)
def test_a_missing_program_skips_and_under_ci_fails(folder, monkeypatch, ci, ends):
    monkeypatch.setenv("CI", ci)
    for name, package in programs.PACKAGES.items():
        with pytest.raises(ends, match=rf"not installed: {name} \({package}\)"):
            programs.require(name)


@pytest.mark.parametrize("ci", ["true", ""])
def test_programs_that_are_there_neither_skip_nor_fail(folder, monkeypatch, ci):
    monkeypatch.setenv("CI", ci)
    program(folder / "dot", "")
    programs.require("dot")
    programs.require()


@pytest.mark.slow
def test_no_other_place_decides_what_a_missing_program_means():
    """Other tests look for a program only to start it, or for a step of a campaign."""
    for path in TESTS.rglob("*.py"):
        if path.name == "programs.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("skipif"):
                assert "which(" not in ast.unparse(node), f"{path}:{node.lineno}"
                assert "is None" not in ast.unparse(node), f"{path}:{node.lineno}"
            if isinstance(node, ast.If) and any(
                isinstance(n, ast.Call) and ast.unparse(n.func) == "pytest.skip"
                for n in ast.walk(node)
            ):
                assert "which(" not in ast.unparse(node.test), f"{path}:{node.lineno}"


def test_programs_that_tests_name_have_a_package():
    named = set()
    for path in TESTS.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "mark.needs" in text else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.needs":
                named |= {ast.literal_eval(argument) for argument in node.args}
    assert named
    assert named <= set(programs.PACKAGES)


@pytest.mark.slow
@pytest.mark.parametrize("user", [0, 1000])
def test_missing_packages_are_installed_quietly_after_one_update(folder, monkeypatch, capfd, user):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    program(folder / "sudo", 'shift; exec "$@"')
    (folder / "true").symlink_to("/bin/true")
    log = folder / "log"
    program(folder / "apt-get", f'echo "$DEBIAN_FRONTEND $*" >>{log}; echo much text')
    for name in programs.PACKAGES:
        if name not in ("dot", "sshd"):
            program(folder / name, "")
    assert programs.install() is None
    assert log.read_text().splitlines() == [
        "noninteractive -qq -o Acquire::Retries=5 update",
        "noninteractive -qq -o Acquire::Retries=5 install --yes --no-install-recommends"
        " graphviz openssh-server",
    ]
    assert capfd.readouterr() == ("Installing graphviz openssh-server\n", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("apt", "sudo", "user", "said"),
    [
        (None, None, 0, "There is no apt-get here"),
        ("exit 0", None, 1000, "sudo asks for a password"),
        ("exit 0", "echo no >&2; exit 1", 1000, "sudo asks for a password"),
        ("echo broken; exit 100", None, 0, "installed not all of them"),
    ],
)
def test_what_cannot_be_installed_is_said_in_a_sentence(folder, monkeypatch, apt, sudo, user, said):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    for name, text in (("apt-get", apt), ("sudo", sudo)):
        if text:
            program(folder / name, text)
    sentence = programs.install()
    assert sentence is not None
    assert said in sentence
    assert sentence.endswith(
        "install by hand: chromium chromium-driver curl default-jre-headless erlang-base"
        " faketime graphviz groff mount nginx-light openssh-client openssh-server"
        " openssl prometheus rabbitmq-server redis-server rsync zsh"
    )


def test_nothing_is_installed_where_nothing_is_missing(folder):
    for name in programs.PACKAGES:
        program(folder / name, "")
    assert programs.install() is None
