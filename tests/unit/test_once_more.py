# SPDX-License-Identifier: Apache-2.0
"""Failed tests are run once more, alone: what passes then is flaky."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLAKY = """
def test_flaky():
    from pathlib import Path
    ran = Path("ran").exists()
    Path("ran").touch()
    assert ran, "the first time"
"""
BROKEN = """
def test_broken():
    print("words that were printed")
    assert False
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sources", "code", "told"),
    [
        ([FLAKY], 0, ["FLAKY: test_it.py::test_flaky", "the first time", "1 passed"]),
        ([FLAKY, BROKEN], 1, ["FLAKY: test_it.py::test_flaky", "words that were printed"]),
        ([f"def test_{n}(): assert False" for n in range(21)], 1, ["21 tests failed"]),
    ],
    ids=["flaky", "broken", "too many"],
)
def test_what_fails_once_is_told_from_what_fails(
    tmp_path: Path, sources: list[str], code: int, told: list[str]
) -> None:
    (tmp_path / "test_it.py").write_text("\n".join(sources))
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "-p no:cacheprovider"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    first = run("-m", "pytest", "-p", "tests.once_more", "--failures-to=failures", "-n", "2")
    assert first.returncode == 1, first.stdout + first.stderr
    again = run(str(ROOT / "tests" / "once_more.py"), "failures")
    assert again.returncode == code, again.stdout
    assert [words for words in told if words not in again.stdout] == []
