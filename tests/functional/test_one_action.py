# SPDX-License-Identifier: Apache-2.0
"""The page about the way of one action names the files that are entered, and no others."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "doc/architecture/one-action.rst"

pytestmark = pytest.mark.slow


def entered(folder: Path) -> set[str]:
    """Return the files that applying the document of the page enters."""
    page = PAGE.read_text(encoding="utf-8")
    block = re.search(r"\.\. code-block:: yaml\n\n((?:   .*\n)+)", page)
    assert block
    document = folder / "nop.yaml"
    document.write_text(re.sub("^   ", "", block[1], flags=re.M), encoding="utf-8")
    found = folder / "entered.json"
    program = [sys.executable, str(ROOT / "tests/functional/trace.py"), str(found)]
    homes = dict.fromkeys(("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"), str(folder))
    for _ in range(2):  # the first run makes the record
        line = [*program, "apply", str(document), "--yes"]
        subprocess.run(line, check=True, capture_output=True, cwd=ROOT, env={**os.environ, **homes})
    return {file_of(module) for module in json.loads(found.read_text(encoding="utf-8"))}


def file_of(module: str) -> str:
    path = module.replace(".", "/")
    return f"{path}/__init__.py" if (ROOT / path).is_dir() else f"{path}.py"


#: More files than this are no way that a reader follows.
MOST = 81


def test_the_page_names_every_file_that_is_entered_and_no_other(tmp_path):
    named = set(re.findall(r"``((?:applier|planner)/\S+?\.py)``", PAGE.read_text("utf-8")))
    assert named == entered(tmp_path)


def test_a_reader_can_follow_the_way():
    named = set(re.findall(r"``((?:applier|planner)/\S+?\.py)``", PAGE.read_text("utf-8")))
    assert len(named) <= MOST
