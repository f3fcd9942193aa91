# SPDX-License-Identifier: Apache-2.0
"""What a plan costs around Ansible: a module on 20 hosts, as a ratio to ansible-playbook itself.

Run it: ``python tests/benchmark/ansible_run.py``. The hosts are this machine. Both take turns, and
the figure is the median of all rounds: of the whole processes, from their start to their end. It
ends with 1 if the limit is missed; no measurement is asserted by a test.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from planner.documents import inventory

ROUNDS, HOSTS, LIMIT = 5, 20, 1.2
LOCAL = "ansible_connection=local ansible_python_interpreter='{{ ansible_playbook_python }}'"
PLAYBOOK = "[{hosts: all, gather_facts: false, tasks: [{command: 'true'}]}]\n"
PLAN = """\
actions:
- action_type: ansible
  input_parameters: {module: command, arguments: 'true', inventory: hosts.ini}
"""
PROGRAM = "import sys; from applier.cli.main import main; sys.exit(main())"


def main() -> int:
    """Measure, print, and return 1 if the limit is missed."""
    playbook = inventory.program("ansible-playbook")
    if playbook is None:
        print(inventory.MISSING.format("this benchmark"))
        return 1
    plan = (sys.executable, "-c", PROGRAM, "apply", "plan.yaml", "--yes")
    commands = {
        "ansible-playbook": (playbook, "-i", "hosts.ini", "site.yml"),
        "actionplan apply": plan,
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = [f"host-{n} {LOCAL}\n" for n in range(HOSTS)]
        (folder / "hosts.ini").write_text("".join(lines))
        (folder / "site.yml").write_text(PLAYBOOK)
        (folder / "plan.yaml").write_text(PLAN)
        environment = {**os.environ, "HOME": name, "PYTHONPATH": str(Path(__file__).parents[2])}
        for command in commands.values():  # which fills caches
            subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        for _ in range(ROUNDS):
            for what, command in commands.items():
                began = time.monotonic()
                subprocess.run(
                    command, cwd=folder, env=environment, check=True, capture_output=True
                )
                taken[what].append(time.monotonic() - began)
    floor, ours = (statistics.median(found) for found in taken.values())
    print(f"ansible-playbook, a module on {HOSTS} hosts: {floor:.2f} s")
    missed = ours / floor > LIMIT
    print(
        f"actionplan apply of the same: {ours:.2f} s, {ours / floor:.2f} x"
        f"   limit: {LIMIT} x{'   MISSED' if missed else ''}"
    )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
