# SPDX-License-Identifier: Apache-2.0
"""Documents of ``kind: playbook``: their JSON Schema, and what a play says of its hosts.

That is in which batches they come, and how many of them may fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from planner.errors import Mistake, Path, cut, shown
from planner.planners.solution_schema import COMMON
from planner.schemas import ranges

_NAMES: dict[str, Any] = {
    **ranges.ARGUMENT,
    "type": ["string", "array"],
    "items": ranges.ARGUMENT,
}
_TEXTS = ranges.list_of(ranges.TEXT)
_PLAY: dict[str, Any] = ranges.mapping(
    "hosts",
    name={**ranges.TEXT, "description": "Of its hosts where it has none."},
    hosts=ranges.list_of(ranges.RESOURCE, description="In the order in which Ansible takes them."),
    is_shuffled={"type": "boolean", "description": "Whether it asks for any order."},
    serial=ranges.list_of({**ranges.TEXT, "type": ["integer", "string"]}),
    strategy=ranges.TEXT,
    max_fail_percentage={"type": "number", "minimum": 0, "maximum": ranges.MOST},
    any_errors_fatal={"type": "boolean"},
    vars_prompt={**_TEXTS, "description": "Variables that it asks a user for."},
    tasks={**_TEXTS, "description": "The names of those that the tags choose."},
    handlers=_TEXTS,
    words={**_TEXTS, "description": "Those of its tasks that say what is lost."},
    makes={**_TEXTS, "description": "The variables that its tasks set."},
    lacks_facts={
        "type": "boolean",
        "description": "Whether it uses facts that only earlier plays gather.",
    },
)
SCHEMA: dict[str, Any] = ranges.document(
    "playbook",
    "A playbook of Ansible, run play by play on the hosts of an inventory.",
    *("kind", "playbook", "inventory"),
    **COMMON,
    playbook={**ranges.ARGUMENT, "description": "A file, relative to this one."},
    inventory={
        **_NAMES,
        "minItems": 1,
        "description": "One or more inventories, relative to this document.",
    },
    limit={**_NAMES, "description": "A pattern: only these hosts, as --limit."},
    tags={**_NAMES, "description": "Only tasks with one of these tags, as --tags."},
    skip_tags={**_NAMES, "description": "No tasks with one of these, as --skip-tags."},
    variables={
        "type": "object",
        **ranges.BY_NAME,
        "description": "As --extra-vars: over all others.",
    },
    become={
        "type": "boolean",
        "description": "Run tasks as another user, root by default, where the playbook does "
        "not say, as --become.",
    },
    forks={
        **ranges.COUNT_OF_ONE_OR_MORE,
        "description": "On how many hosts at once; as Ansible is configured where left out.",
    },
    vault_password={**ranges.ARGUMENT, "description": "A reference to a secret."},
    plays=ranges.list_of(
        _PLAY, minItems=1, description="What the playbook does on the hosts; read from it."
    ),
)

#: Words of tasks and templates whose meaning depends on which hosts share a call.
TOGETHER = (
    *("run_once", "throttle", "any_errors_fatal", "hostvars"),
    *("ansible_play_hosts", "ansible_play_hosts_all", "ansible_play_batch", "play_hosts"),
)
#: Tasks that make hosts or groups while a playbook runs.
GROWING = ("add_host", "group_by")
#: What is told of plays.
_GROWN = "not taken over are groups and hosts that tasks make: have them in the inventory"
_LOST = "not taken over, as each play is a run of its own, are variables that tasks of others set"
_INCLUDED = "not taken over are variables that include_vars reads in earlier plays"
_FACTS = (
    "not taken over, without a fact cache of Ansible, are facts that earlier plays gather; without "
    "gather_facts, they are undefined in these plays"
)
_HOSTVARS = (
    "in hostvars, hosts of other calls have neither variables that tasks set nor, without a fact "
    "cache of Ansible, facts"
)
_SHUFFLED = "order: shuffle is not taken over, hosts stay as in the inventory"
_EMPTY = "no host is left for these plays"
_UNTAGGED = "no task of these plays has the tags"
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
        self._chooses_tasks = bool(document.get("tags") or document.get("skip_tags"))
        self.mistakes: list[Mistake] = []
        #: What is to be told: for each sentence, what it is about and where that stands.
        self._told: dict[str, dict[str, Path]] = {}
        #: How often each name was wanted, and the names that were given.
        self._wanted: dict[str, int] = {}
        self._given: set[str] = set()
        #: The variables that earlier plays made, and their hosts.
        self._made: set[str] = set()
        self._hosts: set[str] = set()

    def read(self, number: int, entry: Mapping[str, Any]) -> Play | None:
        """Return a play; None if nothing of it runs, which a warning tells, or it has mistakes."""
        path = ("plays", number)
        name, hosts, words = self._named(entry), entry["hosts"], {*entry.get("words", ())}
        for asked in entry.get("vars_prompt", ()):
            text = f"the play asks for {asked!r}: give it in 'variables'"
            self.mistakes.append(Mistake(text, (*path, "vars_prompt")))
        tasks = entry.get("tasks", ())
        if not hosts or (self._chooses_tasks and not tasks):
            self._tell(_UNTAGGED if hosts else _EMPTY, name, path)
            return None
        strategy, serial = entry.get("strategy", "linear"), entry.get("serial", ())
        batches = self._batches(hosts, serial, (*path, "serial"))
        tolerated = _tolerated(entry, batches)
        self._tell_what_is_lost(name, entry, batches, path)
        is_apart = strategy.endswith(_APART)
        # Where each host goes its own way, Ansible runs tasks with run_once on all.
        ignored = ("run_once",) if is_apart else ()
        together = [word for word in TOGETHER if word in words and word not in ignored]
        counts = any(0 < most < len(b) - 1 for most, b in zip(tolerated, batches, strict=True))
        reasons = {
            f"strategy {strategy}": is_apart,
            f"serial {', '.join(map(str, serial))}": len(batches) > 1,
            f"max_fail_percentage {entry.get('max_fail_percentage', 0):g}": counts,
        }
        return Play(
            number,
            name,
            batches,
            ", ".join(reason for reason, holds in reasons.items() if holds),
            ", ".join(together),
            tolerated,
            tasks,
            entry.get("handlers", ()),
        )

    def warnings(self) -> Iterator[Mistake]:
        """Yield a warning for each kind of what is not taken over, where it was found first."""
        for text, found in self._told.items():
            yield Mistake(f"{text}: {', '.join(shown(sorted(found)))}", next(iter(found.values())))

    def _tell(self, text: str, about: str, path: Path) -> None:
        self._told.setdefault(text, {}).setdefault(about, path)

    def _tell_what_is_lost(
        self, name: str, entry: Mapping[str, Any], batches: Sequence[Sequence[str]], path: Path
    ) -> None:
        """Tell what a play uses of earlier calls; note what it makes itself."""
        words, makes = {*entry.get("words", ())}, {*entry.get("makes", ())}
        # Whether earlier calls had hosts that are not in each of these batches.
        has_others = len(batches) > 1 or not self._hosts <= {*batches[0]}
        told = {
            _GROWN: words.intersection(GROWING),
            _LOST: (self._made & words) - makes,
            _INCLUDED: {name} if "include_vars" in self._made else (),
            _FACTS: {name} if entry.get("lacks_facts") else (),
            _HOSTVARS: {name} if "hostvars" in words and has_others else (),
            _SHUFFLED: {name} if entry.get("is_shuffled") else (),
        }
        for text, abouts in told.items():
            for about in abouts:
                self._tell(text, about, path)
        self._made |= makes
        self._hosts.update(entry["hosts"])

    def _named(self, entry: Mapping[str, Any]) -> str:
        """Return the name of a play, which is its hosts where it has none; equal ones count on."""
        wanted = cut(entry.get("name") or "play", ranges.LONGEST_NAME)
        name, number = wanted, self._wanted.get(wanted, 1)
        while name in self._given:
            number += 1
            name = f"{wanted} ({number})"
        self._wanted[wanted] = number
        self._given.add(name)
        return name

    def _batches(
        self, hosts: Sequence[str], serial: Sequence[Any], path: Path
    ) -> list[Sequence[str]]:
        """Return hosts cut by the field ``serial``: the last of its sizes is that of all others.

        A percentage is rounded down, by the arithmetic of floating-point numbers, as in Ansible.
        """
        try:
            sizes = [_size(one, len(hosts)) for one in map(str, serial)] or [0]
        except ValueError:
            text = f"{serial!r} has neither numbers of hosts nor percentages"
            self.mistakes.append(Mistake(text, path))
            return [hosts]
        found: list[Sequence[str]] = []
        first = 0
        while first < len(hosts):
            size = sizes[min(len(found), len(sizes) - 1)]
            last = first + size if size > 0 else len(hosts)
            found.append(hosts[first:last])
            first = last
        return found


def _size(text: str, hosts: int) -> int:
    return int(int(text[:-1]) / 100.0 * hosts) or 1 if text.endswith("%") else int(text)


def _tolerated(entry: Mapping[str, Any], batches: Sequence[Sequence[str]]) -> list[int]:
    """Return, for each batch, how many of its hosts may fail without ending the run."""
    percent = 0 if entry.get("any_errors_fatal") else entry.get("max_fail_percentage", 100)
    return [int(min(len(b) - 1, max(0, percent) * len(b) / 100)) for b in batches]
