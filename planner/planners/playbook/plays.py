# SPDX-License-Identifier: Apache-2.0
"""What a play says of its hosts: which, in which batches, and how many of them may fail."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from planner.errors import Mistake, Path, cut, shown
from planner.plan.extent import listed
from planner.planners.playbook.fields import Fields
from planner.planners.playbook.patterns import Inventory
from planner.schemas import ranges

#: Words of tasks and templates whose meaning depends on which hosts share a call.
TOGETHER = (
    *("run_once", "throttle", "any_errors_fatal", "hostvars"),
    *("ansible_play_hosts", "ansible_play_hosts_all", "ansible_play_batch", "play_hosts"),
)
#: Tasks that make hosts or groups while a playbook runs.
GROWING = ("add_host", "group_by")
_REGISTERED = re.compile(r"""\b(?:register|set_fact)["']?:\s*[{"'\s]*([A-Za-z_]\w*)""")
#: What is told of plays.
_GROWN = "not taken over are groups and hosts that tasks make: have them in the inventory"
_LOST = "not taken over, as each play is a run of its own, are variables that tasks of others set"
_SHUFFLED = "order: shuffle is not taken over, hosts stay as in the inventory"
_UNKNOWN = "the inventory has no such hosts or groups"
_EMPTY = "no host is left for these plays"
_WORD = re.compile(r"[A-Za-z_]\w*")
_PARTS = ("pre_tasks", "roles", "tasks", "post_tasks", "handlers")
_BLOCKS = ("block", "rescue", "always")
_ORDERS = ("inventory", "reverse_inventory", "sorted", "reverse_sorted", "shuffle")
_STRATEGIES = ("linear", "free", "host_pinned", "debug")
_APART = ("free", "host_pinned")


class Play(NamedTuple):
    """A play of a playbook: ``batches`` are its hosts, in the order in which they are taken.

    ``number`` counts the plays from 0. ``apart`` is why each host has a call of its own,
    ``together`` why the hosts of a batch share one; both are empty if they just may share one.
    ``tolerated`` has, of each batch, how many hosts may fail; more end the run.
    """

    number: int
    name: str
    batches: Sequence[Sequence[str]]
    apart: str
    together: str
    tolerated: Sequence[int]
    tasks: Sequence[str]
    handlers: Sequence[str]


class PlayReader:
    """Reads the plays of a document; mistakes are appended to its list."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._given: Mapping[str, Any] = document.get("variables") or {}
        self._inventory = Inventory(document["groups"])
        self.mistakes: list[Mistake] = []
        #: What is to be told: for each sentence, what it is about and where that stands.
        self._told: dict[str, dict[str, Path]] = {}
        self._names: dict[str, int] = {}
        #: The variables that earlier plays made.
        self._made: set[str] = set()
        self._limit = self._limited(document)

    def _limited(self, document: Mapping[str, Any]) -> frozenset[str] | None:
        """Return the hosts that the field ``limit`` leaves; None for all."""
        if "limit" not in document:
            return None
        found: list[str] = []
        try:
            found = self._inventory.matching(listed(document["limit"]))
            problem = "" if found else "no host of the inventory matches it"
        except ValueError as reason:
            problem = str(reason)
        if problem:
            self.mistakes.append(Mistake(problem, ("limit",)))
        self._inventory.unmatched.clear()
        return frozenset(found)

    def read(self, number: int, entry: Mapping[str, Any]) -> Play | None:
        """Return a play; None if it has no hosts, which a warning tells, or mistakes."""
        raw, path = entry["play"], ("plays", number)
        known = {"groups": self._inventory.groups, **entry.get("variables", {}), **self._given}
        fields = Fields((*path, "play"), raw, known, self.mistakes)
        self._require_answers(fields, raw.get("vars_prompt"))
        name = self._named(raw)
        hosts = self._hosts(name, fields)
        words, made = _texts(entry)
        self._note_made(words, made, path)
        for word in words.intersection(GROWING):
            self._tell(_GROWN, word, path)
        strategy = fields.one_of("strategy", _STRATEGIES)
        batches = fields.batches(hosts)
        tolerated = fields.tolerated(batches)
        if not hosts:
            return None
        # Where each host goes its own way, Ansible runs tasks with run_once on all.
        ignored = ("run_once",) if strategy in _APART else ()
        together = [word for word in TOGETHER if word in words and word not in ignored]
        counts = any(0 < most < len(b) - 1 for most, b in zip(tolerated, batches, strict=True))
        reasons = {
            f"strategy {strategy}": strategy in _APART,
            f"serial {fields.value('serial')}": len(batches) > 1,
            f"max_fail_percentage {fields.value('max_fail_percentage')}": counts,
        }
        tasks = [*_tasks(entry)]
        return Play(
            number,
            name,
            batches,
            ", ".join(reason for reason, holds in reasons.items() if holds),
            ", ".join(together),
            tolerated,
            [task for part, task in tasks if part != "handlers"],
            [task for part, task in tasks if part == "handlers"],
        )

    def warnings(self) -> Iterator[Mistake]:
        """Yield a warning for each kind of what is not taken over, where it was found first."""
        for text, found in self._told.items():
            yield Mistake(f"{text}: {', '.join(shown(sorted(found)))}", next(iter(found.values())))

    def _tell(self, text: str, about: str, path: Path) -> None:
        self._told.setdefault(text, {}).setdefault(about, path)

    def _note_made(self, words: set[str], made: set[str], path: Path) -> None:
        """Tell of variables of earlier plays that a play uses and does not make; note its own."""
        for name in self._made & words - made:
            self._tell(_LOST, name, path)
        self._made |= made

    def _named(self, raw: Mapping[str, Any]) -> str:
        """Return the name of a play, which is its hosts where it has none; equal ones count on."""
        name = cut(raw.get("name") or ",".join(listed(raw["hosts"])), ranges.LONGEST_NAME)
        number = self._names[name] = self._names.get(name, 0) + 1
        return name if number == 1 else f"{name} ({number})"

    def _hosts(self, name: str, fields: Fields) -> list[str]:
        """Return the hosts of a play in the order in which Ansible takes them."""
        patterns = [str(one) for raw in listed(fields.value("hosts")) for one in listed(raw)]
        order = fields.one_of("order", _ORDERS)
        if order == "shuffle":
            self._tell(_SHUFFLED, name, fields.path)
        try:
            found = self._inventory.matching(patterns)
        except ValueError as reason:
            fields.wrong("hosts", str(reason))
            return []
        if self._limit is not None:
            found = [host for host in found if host in self._limit]
        for pattern in self._inventory.unmatched:
            self._tell(_UNKNOWN, pattern, (*fields.path, "hosts"))
        self._inventory.unmatched.clear()
        if not found:
            self._tell(_EMPTY, name, (*fields.path, "hosts"))
        if order.endswith("sorted"):
            found.sort()
        return found[::-1] if order.startswith("reverse") else found

    def _require_answers(self, fields: Fields, prompts: Any) -> None:
        """Append a mistake for what a play would ask a user for."""
        for asked in listed(prompts):
            name = asked.get("name") if isinstance(asked, Mapping) else None
            if name and name not in self._given and asked.get("default") is None:
                fields.wrong("vars_prompt", f"it asks for {name!r}: give it in 'variables'")


def _texts(entry: Mapping[str, Any]) -> tuple[set[str], set[str]]:
    """Return the words of a play and its roles, and the variables that their tasks make."""
    words, made = words_of(json.dumps(entry["play"]))
    for role in entry.get("roles", {}).values():
        words.update(role.get("words", ()))
        made.update(role.get("makes", ()))
    return words, made


def words_of(text: str) -> tuple[set[str], set[str]]:
    """Return the words of tasks or templates, and the variables that the tasks make.

    >>> sorted(words_of("{shell: 'a {{ b }}', register: c}")[1])
    ['c']
    """
    return set(_WORD.findall(text)), set(_REGISTERED.findall(text))


def _tasks(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names of the tasks of a play in their order, each with the part that has it."""
    roles = entry.get("roles", {})
    for part in _PARTS:
        for raw in listed(entry["play"].get(part)):
            if part != "roles":
                yield from ((part, name) for name in task_names([raw]))
            elif (name := role_name(raw)) is not None:
                found = roles.get(name, {}).get("tasks") or ["its tasks"]
                yield from ((part, f"{name}: {task}") for task in found)


def role_name(raw: Any) -> str | None:
    """Return the name of an entry of ``roles``: a text, or a mapping with its name."""
    found = raw.get("role") or raw.get("name") if isinstance(raw, Mapping) else raw
    return found if isinstance(found, str) else None


def task_names(tasks: Iterable[Any]) -> Iterator[str]:
    """Yield the names of tasks, also of those in blocks; one without a name has that of its module.

    >>> [*task_names([{"block": [{"name": "a"}], "rescue": [{"debug": {}}]}, {"meta": "noop"}])]
    ['a', 'debug', 'meta']
    """
    for task in tasks:
        if not isinstance(task, Mapping):
            continue
        if "block" in task:
            for part in _BLOCKS:
                yield from task_names(listed(task.get(part)))
        else:
            yield str(task.get("name") or next(iter(task), "a task"))
