# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while the program starts: it says that it was interrupted, and never that it has a bug."""

from __future__ import annotations

import subprocess
import sys

from command_line import CommandLine

#: Interrupts the import number N of each copy of the program, for every N that is asked for.
PROGRAM = """
import os, sys
from applier.cli.main import main

class Interrupts:
    left = 0
    def find_spec(self, name, path=None, target=None):
        Interrupts.left -= 1
        if Interrupts.left == 0:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupts())
for number in map(int, sys.argv[1:]):
    child = os.fork()
    if child == 0:
        Interrupts.left = number
        os._exit(main(["list"]))
    _, status = os.waitpid(child, 0)
    print(number, os.waitstatus_to_exitcode(status), flush=True)
"""


def test_an_interrupt_during_any_import_is_told_as_such(actionplan: CommandLine) -> None:
    numbers = [str(number) for number in (*range(1, 10), *range(10, 300, 29))]
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *numbers],
        env=actionplan.environment,
        cwd=actionplan.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    codes = {line.split()[1] for line in ended.stdout.splitlines() if line.split()[0] in numbers}
    assert codes <= {"130", "0"}
    assert "130" in codes
    assert ended.stderr.count("Interrupted.") >= 9
    assert "bug" not in ended.stderr
    assert "Traceback" not in ended.stderr
