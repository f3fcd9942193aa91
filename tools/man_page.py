# SPDX-License-Identifier: Apache-2.0
"""Writes doc/actionplan.1, the manual page, from the verbs: ``.venv/bin/python tools/man_page.py``.

What stands in it comes from the program's own help. It names no date and no version, so that it
changes only when a verb does; a test compares it.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "doc" / "_ext"))

from usage import folded, gives_rows, metavar, own_arguments, usage  # noqa: E402

from applier.cli.help import EXAMPLES, GROUPS  # noqa: E402
from applier.cli.program import DESCRIPTION, Program  # noqa: E402

PAGE = ROOT / "doc" / "actionplan.1"


def page() -> str:
    """Return the page as roff for man(7)."""
    return "\n".join(lines()) + "\n"


def lines() -> Iterator[str]:
    """Write the page from its title to its end."""
    yield '.\\" Written by tools/man_page.py'
    yield ".TH ACTIONPLAN 1"
    yield from (".SH NAME", text("actionplan - plan changes of a cloud, and apply them"))
    yield from (".SH SYNOPSIS", r"\fBactionplan\fR \fIVERB\fR ...")
    yield from (".SH DESCRIPTION", text(DESCRIPTION))
    yield from literal(EXAMPLES.splitlines())
    program = Program()
    loaded = {name: entry.load() for name, entry in program.command_manager}
    for title, verbs in GROUPS.items():
        yield f".SH {title.upper()}"
        for name in verbs:
            verb = loaded[name](program, None)
            yield f".SS {text(name)}"
            yield from about(verb.get_parser(f"actionplan {name}"), verb.EXAMPLES)
    yield ".SH FILES"
    yield from entry("~/.config/actionplan/watcher.conf", "configuration of the user")
    yield from entry("/etc/watcher/watcher.conf", "configuration where the user has none")
    yield from entry("~/.local/state/actionplan/", "the record, where nothing else is configured")


def about(parser: argparse.ArgumentParser, examples: Iterable[str]) -> Iterator[str]:
    """Write what a verb does, its arguments and examples."""
    arguments = own_arguments(parser)
    yield from literal(folded(parser.prog, [usage(a) for a in arguments], width=76))
    yield from paragraphs(inspect.cleandoc(parser.description or ""))
    for argument in arguments:
        names = argument.option_strings or [""]
        told = argument.help or ""
        if argument.choices and argument.metavar is None:
            told += f": {', '.join(argument.choices)}"
        yield from entry(", ".join(f"{n} {metavar(argument)}".strip() for n in names), told)
    if gives_rows(parser):
        yield from entry("-f FORMAT, -c COLUMN", "format of the rows, and which columns are shown")
    yield from (".PP", "Examples:")
    yield from literal(f"actionplan {line}" for line in examples)


def paragraphs(told: str) -> Iterator[str]:
    """Write running text."""
    for line in told.splitlines():
        yield text(line) if line else ".PP"


def entry(term: str, told: str) -> Iterator[str]:
    """Write a term with its explanation below."""
    yield from (".TP", rf"\fB{text(term)}\fR", text(told))


def literal(written: Iterable[str]) -> Iterator[str]:
    """Write lines that stay as they are."""
    yield from (".PP", ".nf", ".RS 4")
    yield from map(text, written)
    yield from (".RE", ".fi")


def text(line: str) -> str:
    """Escape what roff would read as a command, and hyphens, which people copy."""
    escaped = line.replace("\\", "\\e").replace("-", "\\-")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
