# SPDX-License-Identifier: Apache-2.0
"""Every source file names its licence in its first lines; ACTIONPLAN_REWRITE=1 adds the line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINE = "# SPDX-License-Identifier: Apache-2.0\n"
FOLDERS = (".ci", "applier", "doc", "etc", "planner", "tests", "tools")
#: Folders that tests, examples and builds leave in a checkout.
MADE = {"__pycache__", "_build", "site"}
#: What bash reads, without a suffix and a line that says so.
SOURCED = ROOT / "tools" / "environment"


def source_files() -> Iterator[Path]:
    """Find what is written in a language with comments that begin with ``#``, and is no data."""
    files = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    for path in (*ROOT.glob("*"), *files):
        if not path.is_file() or MADE & set(path.relative_to(ROOT).parts):
            continue
        if path.suffix == ".py" or path == SOURCED or is_script(path):
            yield path


def is_script(path: Path) -> bool:
    """True for a file whose first line names its interpreter."""
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def named(text: str) -> bool:
    """True for a text whose first line is the licence's, or the one after the interpreter's."""
    lines = text.splitlines(keepends=True)
    return LINE in lines[: 2 if text.startswith("#!") else 1]


def with_line(text: str) -> str:
    """Put the line where it belongs; a text that has it stays as it is."""
    if named(text):
        return text
    first, rest = "", text
    if text.startswith("#!"):
        first, end, rest = text.partition("\n")
        first += end
    return first + LINE + rest


@pytest.mark.parametrize("path", sorted(source_files()), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_source_file_names_its_licence(path: Path) -> None:
    if os.environ.get("ACTIONPLAN_REWRITE") == "1":
        path.write_text(with_line(path.read_text(encoding="utf-8")), encoding="utf-8")
    assert named(path.read_text(encoding="utf-8")), f"write it: {LINE}"


def test_the_files_looked_at_are_of_every_kind() -> None:
    found = {str(path.relative_to(ROOT)) for path in source_files()}
    assert {"check", "demo", ".ci/run", "tools/environment", "setup.py"} <= found
    assert {"etc/examples/events/bring", "tools/man_page.py", "doc/conf.py"} <= found
    assert len(found) > 400


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", LINE),
        ('"""A."""\n', LINE + '"""A."""\n'),
        ("#!/bin/sh\necho\n", f"#!/bin/sh\n{LINE}echo\n"),
        (LINE + "x = 1\n", LINE + "x = 1\n"),
        (f"#!/bin/sh\n{LINE}", f"#!/bin/sh\n{LINE}"),
    ],
)
def test_the_line_is_put_first_or_after_the_interpreter_and_once(text: str, expected: str) -> None:
    assert with_line(text) == expected


@pytest.mark.parametrize("text", ["", "x = 1\n" + LINE, LINE.replace("Apache-2.0", "MIT")])
def test_a_text_without_the_line_in_its_place_is_found(text: str) -> None:
    assert not named(text)
