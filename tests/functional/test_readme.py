# SPDX-License-Identifier: Apache-2.0
"""README.rst shows what the commands in it print; ACTIONPLAN_REWRITE=1 writes it anew."""

from __future__ import annotations

import os
import subprocess

from console_blocks import ROOT, Command, Reader, differences, steps, write

README = ROOT / "README.rst"
#: Simulated seconds in a second. The page is written in real time, so that its times are true.
SPEED = 1000


def test_what_the_readme_shows_is_what_is_printed(tmp_path):
    if os.environ.get("ACTIONPLAN_REWRITE") == "1":
        write(README, Reader(tmp_path / "write", speed=1))
    found = differences(README, Reader(tmp_path / "read", speed=SPEED))
    assert not found, "\n".join([*found, "to write it anew: ACTIONPLAN_REWRITE=1"])


def test_the_readme_shows_a_plan_before_all_else():
    lines = README.read_text(encoding="utf-8").splitlines()
    first = next(step for step in steps(lines) if isinstance(step, Command))
    assert first.text == "actionplan create etc/examples/host-maintenance.yaml"
    assert first.first < 20
    assert first.output[0].startswith("Plan ")


PAGE = """\
.. code-block:: console

   $ actionplan list
   WRONG
"""


def test_a_page_that_says_something_else_is_found_and_can_be_mended(tmp_path):
    page = tmp_path / "page.rst"
    page.write_text(PAGE, encoding="utf-8")
    reader = Reader(tmp_path / "reader", speed=SPEED)
    (found,) = differences(page, reader)
    assert "$ actionplan list" in found
    assert "WRONG" in found
    assert write(page, reader) == 1
    assert differences(page, reader) == []


def test_a_script_is_one_that_bash_reads():
    for script in ("demo", "check", "tools/environment", ".ci/run"):
        ended = subprocess.run(["bash", "-n", ROOT / script], capture_output=True, check=False)
        assert (ended.returncode, ended.stderr) == (0, b""), script
