# SPDX-License-Identifier: Apache-2.0
"""Every source file names its licence in its first lines; ACTIONPLAN_REWRITE=1 adds the line.

Left out is what is no source: documentation, documents and other input of tests and examples, what
is generated, and what has no comments. As in OpenStack, reStructuredText has no such line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LICENCE = "SPDX-License-Identifier: Apache-2.0"
LINE = f"# {LICENCE}\n"
#: What is written in other languages: the line in a comment of each.
COMMENTS = {
    **dict.fromkeys((".cfg", ".conf", ".in", ".service", ".toml", ".yaml"), LINE),
    ".css": f"/* {LICENCE} */\n",
    ".html": f"{{# {LICENCE} #}}\n",
    ".js": f"// {LICENCE}\n",
    ".sql": f"-- {LICENCE}\n",
}
#: Folders of documents, which are input.
INPUT = ("doc/how-to", "doc/planners", "etc/examples", "tests")
#: What stands before the line: an interpreter, or what makes browsers keep to the standard.
FIRST = ("#!", "<!doctype")
FOLDERS = (".ci", "applier", "doc", "etc", "planner", "tests", "tools")
#: Folders that tests, examples and builds leave in a checkout.
MADE = {"__pycache__", "_build", "site"}
#: What is of others, with their licence beside it.
BUNDLED = {"pico.css"}
#: What bash reads, without a suffix and a line that says so.
SOURCED = ROOT / "tools" / "environment"


def source_files() -> Iterator[Path]:
    """Find what is written in a language with comments, and is no input."""
    files = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    for path in (*ROOT.glob("*"), *files):
        if not path.is_file() or path.name in BUNDLED or MADE & set(path.relative_to(ROOT).parts):
            continue
        is_input = path.relative_to(ROOT).as_posix().startswith(INPUT)
        other = path.suffix in COMMENTS and not is_input
        if path.suffix == ".py" or path == SOURCED or other or is_script(path):
            yield path


def is_script(path: Path) -> bool:
    """True for a file whose first line names its interpreter."""
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def line_of(path: Path) -> str:
    """Return the line as a comment of the language of a file."""
    return COMMENTS.get(path.suffix, LINE)


def named(text: str, line: str = LINE) -> bool:
    """True for a text whose first line is the licence's, or the second after one of FIRST."""
    lines = text.splitlines(keepends=True)
    return line in lines[: 2 if text.startswith(FIRST) else 1]


def with_line(text: str, line: str = LINE) -> str:
    """Put the line where it belongs; a text that has it stays as it is."""
    if named(text, line):
        return text
    first, rest = "", text
    if text.startswith(FIRST):
        first, end, rest = text.partition("\n")
        first += end
    return first + line + rest


def test_every_source_file_names_its_licence() -> None:
    if os.environ.get("ACTIONPLAN_REWRITE") == "1":
        for path in source_files():
            path.write_text(with_line(path.read_text("utf-8"), line_of(path)), encoding="utf-8")
    found = {str(path.relative_to(ROOT)): path for path in source_files()}
    wrong = [
        f"{name}: write {line_of(path)}"
        for name, path in found.items()
        if not named(path.read_text("utf-8"), line_of(path))
    ]
    assert not wrong
    assert {"check", "demo", ".ci/run", "tools/environment", "setup.py"} <= found.keys()
    assert {"etc/examples/events/bring", "tools/man_page.py", "doc/conf.py"} <= found.keys()
    assert {"setup.cfg", "ruff.toml", "MANIFEST.in", ".pre-commit-config.yaml"} <= found.keys()
    assert {"etc/actionplan-api.service", "doc/_static/drawings.css"} <= found.keys()
    assert COMMENTS.keys() <= {Path(path).suffix for path in found}
    assert "etc/watcher.conf.sample" not in found
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


def test_the_line_is_a_comment_of_the_language() -> None:
    line = line_of(Path("page.html"))
    assert with_line("<!doctype html>\n<p>\n", line) == f"<!doctype html>\n{line}<p>\n"
    assert named("-- SPDX-License-Identifier: Apache-2.0\nSELECT 1;\n", line_of(Path("a.sql")))


@pytest.mark.parametrize("text", ["", "x = 1\n" + LINE, LINE.replace("Apache-2.0", "MIT")])
def test_a_text_without_the_line_in_its_place_is_found(text: str) -> None:
    assert not named(text)
