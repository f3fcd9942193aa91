# SPDX-License-Identifier: Apache-2.0
"""How long a plan of a playbook takes: 200 hosts, 10 plays, read from files.

Run it: ``python tests/benchmark/playbook.py``. It prints the seconds, and how they grow with twice
the hosts; it ends with 1 if a target is missed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import yaml

from planner import make_plan
from planner.plan.model import JOIN

HOSTS, PLAYS = 200, 10
#: Seconds for all, and the most that twice the hosts may take in times of it.
MOST_S, GROWTH = 5.0, 3.0
#: Of ten plays, every other one has the whole fleet in one call, or a call for each host.
KINDS = ({}, {"serial": "10%", "max_fail_percentage": 20})


def planned(folder: Path, hosts: int) -> tuple[float, int]:
    """Plan a playbook of so many hosts; return the seconds, and the number of calls."""
    inventory = {"web": {"hosts": {f"web-[1:{hosts}]": {"ansible_connection": "local"}}}}
    tasks = [{"name": f"task {i}", "ansible.builtin.command": "true"} for i in range(20)]
    plays = [
        {"name": f"play {i}", "hosts": "web", **KINDS[i % 2], "tasks": tasks} for i in range(PLAYS)
    ]
    (folder / "hosts.yml").write_text(yaml.safe_dump(inventory))
    (folder / "site.yml").write_text(yaml.safe_dump(plays))
    document = {"kind": "playbook", "name": "site"}
    began = time.perf_counter()
    plan = make_plan(
        {
            **document,
            "playbook": str(folder / "site.yml"),
            "inventory": str(folder / "hosts.yml"),
        }
    )
    seconds = time.perf_counter() - began
    return seconds, sum(action.action_type != JOIN for action in plan.actions)


def main() -> int:
    """Print the figures; return 1 if a target is missed."""
    with tempfile.TemporaryDirectory() as name:
        once, calls = planned(Path(name), HOSTS)
        twice, _ = planned(Path(name), 2 * HOSTS)
    growth = twice / once
    print(f"{HOSTS} hosts, {PLAYS} plays: {calls} calls in {once:.2f} s (target {MOST_S} s)")
    print(f"twice the hosts: {growth:.2f} times as long (target {GROWTH})")
    return int(once > MOST_S or growth > GROWTH)


if __name__ == "__main__":
    sys.exit(main())
