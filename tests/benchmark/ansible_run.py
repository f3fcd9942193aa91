# SPDX-License-Identifier: Apache-2.0
"""What a plan costs around Ansible: a module on 20 hosts, as a ratio to ansible-playbook itself.

Run it: ``python tests/benchmark/ansible_run.py``. The hosts are this machine. Both commands take
turns, and the figures are medians of all rounds, of whole processes: their processor time, user and
system, and the time that passes, which needs a quiet machine. It ends with 1 if the limit is
missed.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from planner.documents import inventory

ROUNDS, HOSTS, LIMIT = 7, 20, 1.2
LOCAL = "ansible_connection=local ansible_python_interpreter='{{ ansible_playbook_python }}'"
PLAYBOOK = "[{hosts: all, gather_facts: false, tasks: [{command: 'true'}]}]\n"
PLAN = """\
actions:
- action_type: ansible
  input_parameters: {module: command, arguments: 'true', inventory: hosts.ini}
"""
PROGRAM = "import sys; from applier.cli.main import main; sys.exit(main())"


class Taken(NamedTuple):
    """Seconds of the processors, and of the clock."""

    processor_s: float
    clock_s: float


def main() -> int:
    """Measure, print, and return 1 if the limit is missed."""
    playbook = inventory.program("ansible-playbook")
    if playbook is None:
        print(inventory.MISSING.format("this benchmark"))
        return 1
    own = (sys.executable, "-c", PROGRAM, "apply", "plan.yaml", "--yes")
    rounds: list[tuple[Taken, Taken]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        hosts = [f"host-{n} {LOCAL}\n" for n in range(HOSTS)]
        (folder / "hosts.ini").write_text("".join(hosts))
        (folder / "site.yml").write_text(PLAYBOOK)
        (folder / "plan.yaml").write_text(PLAN)
        for _ in range(ROUNDS + 1):
            floor = measured((playbook, "-i", "hosts.ini", "site.yml"), folder)
            rounds.append((floor, measured(own, folder)))
    del rounds[0]  # which filled caches
    missed = False
    for kind in Taken._fields:
        floor_s, own_s = (
            statistics.median(getattr(taken, kind) for taken in column)
            for column in zip(*rounds, strict=True)
        )
        beyond = own_s / floor_s > LIMIT
        text = f"{kind}: ansible-playbook {floor_s:.2f}, actionplan apply {own_s:.2f}"
        missing = "   MISSED" if beyond else ""
        print(f"{text:<62} {own_s / floor_s:5.2f} x   limit: {LIMIT} x{missing}")
        missed |= beyond
    return int(missed)


def measured(command: tuple[str, ...], folder: Path) -> Taken:
    """Run a command to its end in a folder, which is its home."""
    environment = {**os.environ, "HOME": str(folder), "PYTHONPATH": str(Path(__file__).parents[2])}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(own, ended - began)


if __name__ == "__main__":
    sys.exit(main())
