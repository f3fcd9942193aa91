# SPDX-License-Identifier: Apache-2.0
"""Task sets as large as Fuel's: those that Fuel released, where they are, and one of our own.

``ACTIONPLAN_TEST_FUEL`` names a folder with the released ones. They are the ``tasks.yaml`` files of
openstack/fuel-library, joined into one list for each release.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from planner import documents

RELEASE_8 = "fuel-library-8.0-tasks.yaml"
VARIABLE = "ACTIONPLAN_TEST_FUEL"

Task = dict[str, Any]

PHASES = ("pre_deployment", "deploy", "post_deployment")
#: What follows needs the first two, which are Fuel's controllers; the third is its compute node.
ROLES = (
    *("primary-head", "head", "worker", "disk", "disk-shared", "disk-remote", "remote"),
    *("primary-ledger", "ledger", "vault", "plain", "guest", "metal"),
)
HEADS, WORKERS, LEDGERS = ROLES[:2], ROLES[2:], ("primary-ledger", "ledger")
SERVICES = (
    "archive billing catalog console gateway identity lookup mail metrics notary queue search"
)
STEPS = "schema account network service proxy cache worker check policy report"
#: Where the tasks of the middle phase run, and how many there do.
MIDDLE = (
    *(
        (HEADS, 42),
        (("primary-head",), 38),
        (("head",), 10),
        (ROLES, 6),
        ((*ROLES[:10], "metal"), 5),
    ),
    *(((*HEADS, "worker"), 6), (("worker",), 3), *(((role,), 1) for role in ROLES[3:12])),
)
#: The same of the last phase.
LAST = (
    (HEADS, 8),
    (("primary-head",), 7),
    (("worker",), 2),
    (LEDGERS, 2),
    (("metal",), 2),
    (ROLES[2:9], 2),
)


def released(name: str) -> list[Task]:
    """Return the task set in a file of that name, or skip the test and say what is missing."""
    file = Path(os.environ.get(VARIABLE, "")) / name
    if VARIABLE not in os.environ or not file.is_file():
        pytest.skip(
            f"no {name}, made of the tasks.yaml files of openstack/fuel-library: {VARIABLE} names"
            " the folder that holds it"
        )
    found: list[Task] = documents.read(file).value
    return found


def files() -> list[Path]:
    """Return all files with task sets in that folder, or skip the test."""
    found = (
        sorted(Path(os.environ[VARIABLE]).glob("fuel-library-*.yaml"))
        if VARIABLE in os.environ
        else []
    )
    if not found:
        pytest.skip(f"no files: {VARIABLE} names the folder that holds task sets of Fuel")
    return found


def nodes(tasks: Sequence[Task], workers: int) -> list[Task]:
    """Return three controllers and so many compute nodes, by the names of roles in the set."""
    own = any(task["id"] == ROLES[0] for task in tasks)
    first, more, many = ROLES[:3] if own else ("primary-controller", "controller", "compute")
    return [
        {"uid": str(i), "roles": [role]}
        for i, role in enumerate([first, more, more, *[many] * workers], 1)
    ]


def generated(seed: int = 8) -> list[Task]:
    """Return a set of the shape of release 8.0: as many tasks, roles, links and kinds of fields.

    Every link leads from an earlier task to a later one, so there is no loop.
    """
    chance = random.Random(seed)
    stages = [f"{phase}_{end}" for phase in PHASES for end in ("start", "end")]
    tasks = [*_first(), *_middle(chance), *_last(chance)]
    _relate(tasks, chance)
    return [
        {"id": stages[0], "type": "stage"},
        *({"id": b, "type": "stage", "requires": [a]} for a, b in pairwise(stages)),
        *_groups([task["id"] for task in tasks if "groups" in task]),
        *tasks,
    ]


def without_versions(tasks: Sequence[Task]) -> list[Task]:
    """Return the set in the form of earlier releases, whose roles follow one another."""
    new = ("version", "cross-depends", "cross-depended-by")
    return [{field: it for field, it in task.items() if field not in new} for task in tasks]


def shape(tasks: Sequence[Task]) -> dict[str, Any]:
    """Count what a set consists of."""
    relations = ("requires", "required_for", "cross-depends", "cross-depended-by")
    crossing = [link for task in tasks for link in task.get("cross-depends", ())]
    return {
        "types": Counter(task["type"] for task in tasks),
        "fields": Counter(field for task in tasks for field in task),
        "links": {name: sum(len(task.get(name, ())) for task in tasks) for name in relations},
        "crossing": Counter(link.get("policy", link.get("role", "name")) for link in crossing),
        "patterns": any(link["name"].startswith("/") for link in crossing),
    }


def _groups(ids: Sequence[str]) -> Iterator[Task]:
    for role in ROLES:
        primary = role.startswith("primary-")
        strategy: Task = {"type": "one_by_one" if primary else "parallel"}
        group: Task = {"id": role, "type": "group", "role": [role], "required_for": ["deploy_end"]}
        if role == "head":
            strategy["amount"] = 6
        if role != "guest":
            before = {"head": "primary-head", "ledger": "primary-ledger"}
            late = role in WORKERS and role not in (*LEDGERS, "plain")
            group["requires"] = [before.get(role, "head" if late else "deploy_start")]
        if role in (*LEDGERS, "plain"):
            group["required_for"] += HEADS
        if role in ("remote", "plain"):
            group["tasks"] = ids[:5]
        yield group | {"parameters": {"strategy": strategy}}


def _first() -> Iterator[Task]:
    for number in range(14):
        where, kind = ("master", "shell") if number < 3 else ("*", "puppet")
        if 3 <= number < 8:
            kind = "sync" if number == 7 else "copy_files"
        yield _task(f"prepare-{number}", kind, role=where)


def _middle(chance: random.Random) -> Iterator[Task]:
    names = iter([f"{service}-{step}" for step in STEPS.split() for service in SERVICES.split()])
    wheres = [roles for roles, number in MIDDLE for _ in range(number) if roles != ("head",)]
    chance.shuffle(wheres)
    pairs = 10
    for where in wheres:
        name = next(names)
        if where == ("primary-head",) and pairs:
            pairs -= 1
            yield _task(f"primary-{name}", "puppet", groups=[*where])
            yield _task(name, "puppet", groups=["head"])
        else:
            yield _task(name, "puppet", groups=[*where])


def _last(chance: random.Random) -> Iterator[Task]:
    wheres = [roles for roles, number in LAST for _ in range(number)]
    chance.shuffle(wheres)
    kinds = [*["shell"] * 8, *["upload_file"] * 2, *["skipped"] * 2, *["puppet"] * 11]
    for number, (where, kind) in enumerate(zip(wheres, kinds, strict=True)):
        yield _task(f"finish-{number}", kind, role=[*where])


def _task(name: str, kind: str, **where: Any) -> Task:
    return {"id": name, "type": kind, "version": "2.0.0", **where}


def _relate(tasks: list[Task], chance: random.Random) -> None:
    """Link the tasks of each phase, and give some of them conditions and parameters."""
    ids = [task["id"] for task in tasks]
    for at, task in enumerate(tasks):
        phase = PHASES[(at >= 14) + (at >= 133)]
        task["requires"], task["required_for"] = [f"{phase}_start"], [f"{phase}_end"]
    del tasks[-1]["requires"], tasks[-1]["required_for"], tasks[-2]["required_for"]
    middle = range(34, 133)
    for at in _spread(chance, middle, 148):
        _add(tasks[at]["requires"], [*ids[14:at]], chance)
    for at in _spread(chance, range(14, 120), 24):
        _add(tasks[at]["required_for"], [*ids[at + 1 : 133]], chance)
    crossing = sorted(chance.sample(middle, 83))
    roles = iter(["self"] * 21 + ["master"] * 3 + ["any"])
    for at in [*crossing, *_spread(chance, crossing, 33)]:
        links, how = tasks[at].setdefault("cross-depends", []), next(roles, "")
        taken = {link["name"] for link in links}
        # Not what is just before: a pattern for it may match the task itself.
        earlier = ids[:3] if how == "master" else ids[14 : at - 1]
        name = chance.choice([it for it in map(_either, earlier) if it not in taken])
        links.append({"name": name} | _way(how))
    for at in chance.sample(range(14, 40), 2):
        tasks[at]["cross-depended-by"] = [{"name": ids[at + 60]}]
    for at in chance.sample(range(14, 156), 44):
        part = chance.choice(SERVICES.split())
        tasks[at]["condition"] = f"settings:parts.{part}.value == true"
    for task in tasks[:-7]:
        task["parameters"] = {"timeout": chance.choice([180, 300, 1800, 3600])}
    for task in chance.sample(tasks[:-7], 5):
        task["parameters"]["retries"] = 3


def _spread(chance: random.Random, places: Sequence[int], number: int) -> list[int]:
    return sorted(chance.choice(places) for _ in range(number))


def _add(links: list[str], others: list[str], chance: random.Random) -> None:
    links.append(chance.choice([name for name in others if name not in links]))


def _either(name: str) -> str:
    """Name a task, and with it the one of the first head."""
    plain = name.removeprefix("primary-")
    return f"/^(primary-)?{plain}$/" if plain != name else name


def _way(how: str) -> Task:
    return {"policy": "any"} if how == "any" else {"role": how} if how else {}
