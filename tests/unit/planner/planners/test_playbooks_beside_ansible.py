# SPDX-License-Identifier: Apache-2.0
"""Plans of playbooks beside Ansible itself: the same hosts in the same order, if some fail too."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

import pytest
import yaml

from applier.contracts import Report
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.failures import FailureRules
from applier.scheduling.scheduler import Scheduler
from applier.scheduling.waiting import links
from planner import make_plan
from planner.documents.inventory import program
from planner.plan.model import ActionPlan
from planner.plan.states import ActionState, Outcome

pytestmark = pytest.mark.slow

#: Writes a line for each batch that begins a play, with its hosts, and for each task of a host.
CALLBACK = """
import json, os
from ansible.plugins.callback import CallbackBase

def write(line):
    with open(os.environ["VISITS"], "a") as file:
        file.write(json.dumps(line) + chr(10))

class CallbackModule(CallbackBase):
    CALLBACK_VERSION, CALLBACK_TYPE, CALLBACK_NAME = 2.0, "aggregate", "visits"

    def v2_playbook_on_play_start(self, play):
        left = play.get_variable_manager()._inventory
        hosts = [host.name for host in left.get_hosts(play.hosts, order=play.order)]
        write(["play", play.get_name(), hosts])

    def v2_runner_on_start(self, host, task):
        write(["task", host.name, task.get_name()])
"""

INVENTORY = """
[web]
web-[1:5]
[db]
db-1
db-2
web-3
[cache:children]
small
large
[small]
c-2
[large]
c-1
c-2
[prod:children]
web
cache
[all:vars]
ansible_connection=local
"""


def told(folder: Path, playbook: Path, *options: str) -> list[list[Any]]:
    """Run Ansible; return the lines of the callback."""
    (folder / "callbacks").mkdir(exist_ok=True)
    (folder / "callbacks" / "visits.py").write_text(CALLBACK)
    log = folder / "visits"
    log.unlink(missing_ok=True)
    environment = {
        "ANSIBLE_CALLBACK_PLUGINS": str(folder / "callbacks"),
        "ANSIBLE_CALLBACKS_ENABLED": "visits",
        "ANSIBLE_HOME": str(folder / "home"),
        "VISITS": str(log),
    }
    argv = [program("ansible-playbook"), "-i", str(folder / "hosts"), *options, str(playbook)]
    subprocess.run(
        [text for text in argv if text],
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
        timeout=300,
    )
    return [json.loads(line) for line in log.read_text().splitlines()]


def ran(plan: ActionPlan, failing: Set[tuple[int, str]] = frozenset()) -> list[tuple[int, str]]:
    """Run a plan with the scheduler alone; return each play and host of the calls that started.

    A call ends FAILED if it has one of ``failing``, each a play and a host.
    """
    of = {a.uuid: a for a in plan.actions}
    rules = FailureRules(tolerances=plan.tolerances)
    scheduler = Scheduler(
        plan.actions, links(plan.actions), Concurrency(limits={}, max_workers=99), rules
    )
    found: list[tuple[int, str]] = []
    made = scheduler.begin()
    while made.starts:
        reports = []
        for uuid in made.starts:
            given = of[uuid].input_parameters
            pairs = [(given["play"], host) for host in given["hosts"]]
            found += pairs
            failed = not failing.isdisjoint(pairs)
            reports.append(
                Report(
                    uuid=uuid,
                    old=ActionState.ONGOING,
                    state=ActionState.FAILED if failed else ActionState.SUCCEEDED,
                    outcome=Outcome.FAILED if failed else Outcome.CHANGED,
                )
            )
        made = scheduler.decide(reports)
    assert scheduler.done
    return found


PATTERNS = [
    *("all", "web", "db", "prod", "cache", "web:db", "db:web", "all:!db", "web:&db", "!web"),
    *(
        "web[0]",
        "web[-1]",
        "web[1:2]",
        "web[1:]",
        "prod[2:4]",
        "w*",
        "*-1",
        "*[0]",
        "~c-\\d",
        "c-?",
    ),
    *("db,web-1", "web-2,web-1", "&db", "web:!web[0]", "large:small", "cache:&~.*2", "localhost"),
    *("nothing", "web[0:0]", ["web", "!web-2"], ["db", "cache"], "w*,!*3,&prod", "all,localhost"),
]
SERIALS = [None, 0, 1, 2, "40%", "1%", [1, 2], ["10%", 3, "50%"], "2", "{{ two }}", ["29%"]]
ORDERS = [None, "inventory", "sorted", "reverse_sorted", "reverse_inventory"]


def plays(seed: int) -> list[dict[str, Any]]:
    """Return plays without tasks: each pattern, with any serial, order and strategy."""
    chance = random.Random(seed)
    made = []
    for i, pattern in enumerate(PATTERNS):
        play = {"name": str(i), "hosts": pattern, "gather_facts": False}
        play["serial"] = chance.choice(SERIALS)
        play["order"] = chance.choice(ORDERS)
        play["strategy"] = chance.choice([None, "free", "host_pinned"])
        made.append({key: value for key, value in play.items() if value is not None})
    return made


def document(folder: Path, **more: Any) -> Mapping[str, Any]:
    names = {"playbook": str(folder / "site.yml"), "inventory": str(folder / "hosts")}
    return {"kind": "playbook", **names, **more}


@pytest.mark.parametrize("limit", [None, "all:!web-2:!c-1", "db:localhost"])
def test_the_same_hosts_in_the_same_order_as_ansible(tmp_path: Path, limit: str | None) -> None:
    (tmp_path / "hosts").write_text(INVENTORY)
    (tmp_path / "site.yml").write_text(yaml.safe_dump(plays(len(limit or ""))))
    limited = {"limit": limit} if limit else {}
    made = make_plan(document(tmp_path, variables={"two": 2}, **limited), check_types=False)
    options = ["-e", "two=2", *(["--limit", limit] if limit else [])]
    expected = [
        (int(play), host)
        for _, play, hosts in told(tmp_path, tmp_path / "site.yml", *options)
        for host in hosts
    ]
    assert len(expected) > 20
    found = ran(made)
    for play, pattern in enumerate(PATTERNS):
        one, other = ([h for p, h in pairs if p == play] for pairs in (found, expected))
        assert one == other, f"play {play}: {pattern}"
    assert [play for play, _ in found] == [play for play, _ in expected]


#: Plays in which each host has a call of its own, and hosts that fail in them: all but the last.
FAILURES = {
    "it is left out of later plays": ([{"serial": 2}, {"strategy": "free"}, {}], {(0, "hb")}),
    "a batch of which none is left ends the run": ([{"serial": 2}, {}], {(0, "hc"), (0, "hd")}),
    "so many may fail": ([{"serial": 4, "max_fail_percentage": 50}, {}], {(0, "ha"), (0, "hc")}),
    "more than may end the run": (
        [{"serial": 4, "max_fail_percentage": 49}, {}],
        {(0, "ha"), (0, "hc")},
    ),
    "also without serial": ([{"max_fail_percentage": 40}, {}], {(0, "ha"), (0, "hc"), (0, "he")}),
    "none may fail": ([{"serial": [1, 2], "max_fail_percentage": 0}, {}], {(0, "hc")}),
    "any error is fatal": ([{"serial": 3, "any_errors_fatal": "yes"}, {}], {(0, "hf")}),
    "who goes his own way": ([{"strategy": "free"}, {"strategy": "host_pinned"}, {}], {(1, "he")}),
}


@pytest.mark.parametrize("named", FAILURES)
def test_who_failed_is_left_out_and_what_ends_a_run_ends_the_plan(
    tmp_path: Path, named: str
) -> None:
    fields, failing = FAILURES[named]
    (tmp_path / "hosts").write_text("[all:vars]\nansible_connection=local\n[web]\nh[a:f]\n")
    tasks = [
        [{"fail": {}, "when": f"inventory_hostname in {[h for p, h in failing if p == play]}"}]
        for play in range(len(fields))
    ]
    written = [
        {"hosts": "web", "gather_facts": False, "tasks": own, "name": f"{i}", **field}
        for i, (field, own) in enumerate(zip(fields, tasks, strict=True))
    ]
    (tmp_path / "site.yml").write_text(yaml.safe_dump(written))
    expected, play = set(), 0
    for kind, one, _ in told(tmp_path, tmp_path / "site.yml"):
        if kind == "play":
            play = int(one)
        else:
            expected.add((play, one))
    found = ran(make_plan(document(tmp_path), check_types=False), failing)
    assert set(found) == expected
    assert len(found) == len(expected)
