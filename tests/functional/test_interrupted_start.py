# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while a program starts: it says that it was interrupted, and never that it has a bug."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

#: Interrupts import number N of each copy of a program, for every N that is asked for. The first
#: two are those of ``applier`` and of the module of the entry point, before any of our code runs.
PROGRAM = """
import os, runpy, signal, sys

class Interrupts:
    left = 0
    begun = False
    def find_spec(self, name, path=None, target=None):
        Interrupts.begun |= name == "applier"
        Interrupts.left -= Interrupts.begun
        if Interrupts.begun and Interrupts.left == 0:
            signal.raise_signal(signal.SIGINT)

script, word, *numbers = sys.argv[1:]
sys.meta_path.insert(0, Interrupts())
for number in map(int, numbers):
    child = os.fork()
    if child == 0:
        sys.argv = [script, word]
        Interrupts.left = number
        runpy.run_path(script, run_name="__main__")
        os.abort()
    _, status = os.waitpid(child, 0)
    print(number, os.waitstatus_to_exitcode(status), flush=True)
"""
PROGRAMS = sorted(distribution("actionplan").entry_points.select(group="console_scripts").names)


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_interrupt_during_any_import_is_told_as_such(program, actionplan):
    later = range(12, 300, 29 if program == "actionplan" else 144)
    numbers = [str(number) for number in (*range(3, 12), *later)]
    script = Path(sys.executable).with_name(program)
    word = "list" if program == "actionplan" else "--help"
    # actionplan-watcher ends early where no module has this name.
    (actionplan.folder / "watcher.py").touch()
    path = f"{actionplan.folder}:{actionplan.environment['PYTHONPATH']}"
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, script, word, *numbers],
        env={**actionplan.environment, "PYTHONPATH": path},
        cwd=actionplan.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split() for line in ended.stdout.splitlines()]
    codes = [line[1] for line in lines if line and line[0] in numbers]
    assert codes[:9] == ["130"] * 9, ended
    assert set(codes) <= {"130", "0"}
    assert ended.stderr.count("Interrupted.") == codes.count("130")
    assert "bug" not in ended.stderr
    assert "Traceback" not in ended.stderr
