# SPDX-License-Identifier: Apache-2.0
"""Makes the actions of an update, and their links: create, terminate, gates, pauses and joins."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, islice
from typing import Any

from planner.contract import Surroundings
from planner.plan.model import JOIN, Action, ProposedAction
from planner.planners.draft import action_of
from planner.planners.rolling_update.batches import RESIZE, Phase, Roll
from planner.planners.rolling_update.definitions import deployment_command
from planner.planners.rolling_update.members import Member
from planner.planners.rolling_update.template import Group

After = tuple[str, ...]
#: The parameters of an action that may name its resource.
_RESOURCES = ("resource_id", "name", "node")


class RollBuilder:
    """Builds the actions in schedule order; the methods append them to ``actions``.

    ``gates`` are run after each batch. ``durations`` maps action types to seconds and overrides
    their estimates. ``ends`` maps the uuid of each action to its earliest end, in seconds from the
    start of the plan. An unknown duration counts as 0, and the action type is added to ``untimed``.
    ``unused`` are, by group, the properties of its definition that no new instance gets.
    """

    def __init__(
        self,
        surroundings: Surroundings,
        gates: Sequence[ProposedAction],
        durations: Mapping[str, float],
    ) -> None:
        self._surroundings, self._gates, self._durations = surroundings, gates, durations
        self.actions: list[Action] = []
        self.ends: dict[str, float] = {}
        self.untimed: set[str] = set()
        self.unused: dict[str, set[str]] = {}

    def join(self, name: str, after: After) -> After:
        """Add a join; return the uuids for which its successors wait."""
        return self._add(ProposedAction(name=name, action_type=JOIN), after, None)

    def roll(self, roll: Roll, after: After, others: Sequence[str] = ()) -> After:
        """Add all actions of a group, which wait for ``after``; return the uuids of the last ones.

        ``others`` are the groups that it depends on, to which some of these actions belong. If the
        group does not change, ``after`` is returned.
        """
        names, called = _new_names(roll), _display_names(roll.members)
        batches = sum(phase.name != RESIZE for phase in roll.phases)
        for number, phase in enumerate(roll.phases, 1):
            path = f"{roll.group.name}/{phase.name}"
            reason = f"batch {number} of {batches}"
            if phase.name == RESIZE:
                reason = f"from {roll.end - phase.create + len(phase.terminate)} to {roll.end}"
            if others and number == 1:
                reason += f", after {', '.join(others)}, on which it depends"
            after = self._pause(path, phase.pause_before_s, after, reason)
            new = list(islice(names, phase.create))
            if roll.group.servers is not None:
                keys = [key for _, key in new if key is not None]
                after = self._deployed(roll, path, keys, phase, after, reason)
            else:
                created = [
                    self._created(roll.group, one, f"{path}/create-{i}")
                    for i, one in enumerate(new, 1)
                ]
                ended = [
                    self._terminated(roll, m, f"{path}/terminate-{called[m.id]}")
                    for m in phase.terminate
                ]
                steps = [("created", created), ("terminated", ended)]
                for what, proposed in steps if phase.creates_first else reversed(steps):
                    after = self._side_by_side(f"{path}/{what}", proposed, after, reason)
            if phase.name != RESIZE:
                after = self._gated(roll, phase, path, after, reason)
            after = self._pause(path, phase.pause_after_s, after, reason)
        return after

    def _deployed(
        self, roll: Roll, path: str, keys: Sequence[str], phase: Phase, after: After, reason: str
    ) -> After:
        """Add the deployments of one batch: to the servers of ``keys``, and to what leaves."""
        servers = {member.key: member.id for member in roll.members}
        new, old = roll.group.configuration.value, (roll.old or roll.group).configuration.value
        asked = [
            (key, servers[key], "UPDATE", new)
            if key in servers
            else (key, (roll.group.servers or {})[key], "CREATE", new)
            for key in keys
        ]
        gone = [m for m in phase.terminate if m.key not in (roll.group.servers or {})]
        asked += [(m.key or m.id, m.id, "DELETE", old) for m in gone]
        proposed = [
            self._proposed(
                f"{path}/{action.lower()}-{key}",
                "shell",
                deployment_command(value, server, key, action),
            )
            for key, server, action, value in asked
            if action in value["actions"]
        ]
        return self._side_by_side(f"{path}/deployed", proposed, after, reason)

    def _side_by_side(
        self, name: str, proposed: Sequence[ProposedAction], after: After, reason: str
    ) -> After:
        """Add actions that may run at the same time, and a join; return the uuid of the join.

        Without actions, no join is added, and ``after`` is returned.
        """
        if not proposed:
            return after
        return self.join(name, tuple(u for p in proposed for u in self._add(p, after, reason)))

    def _gated(self, roll: Roll, phase: Phase, path: str, after: After, reason: str) -> After:
        gates = [self._named(gate, f"{path}/gate-{gate.name}") for gate in self._gates]
        signals_s = roll.group.policy.signals_s if roll.group.policy is not None else None
        if signals_s is not None:
            gates = [replace(gate, timeout_s=gate.timeout_s or signals_s) for gate in gates]
            # No signal reaches a plan: without a gate, members have the longest that one may take.
            wait = self._proposed(f"{path}/gate-signals", "pause", {"seconds": signals_s})
            gates = gates or ([wait] if phase.create else [])
        if len(gates) == 1:
            return self._add(gates[0], after, f"the gate of {reason}")
        return self._side_by_side(f"{path}/gates", gates, after, f"a gate of {reason}")

    def _pause(self, path: str, seconds: float, after: After, reason: str) -> After:
        if not seconds:
            return after
        parameters = {"seconds": seconds}
        return self._add(self._proposed(f"{path}/pause", "pause", parameters), after, reason)

    def _created(self, group: Group, new: tuple[str, str | None], path: str) -> ProposedAction:
        name, key = new
        definition = _definition(group, key)
        schema = self._surroundings.action_type("create_instance").SCHEMA.get("properties", {})
        known = schema.get("configuration", {}).get("properties")
        value = definition["configuration"]
        if known is not None:
            unused = self.unused.setdefault(group.name, set())
            if "type" in value:
                unused.update(f"{f} of the resource" for f in value.keys() - {"type", "properties"})
                value = value.get("properties")
            unused.update(value.keys() - known.keys() if isinstance(value, Mapping) else ())
        return self._proposed(path, "create_instance", {"name": name, **definition})

    def _terminated(self, roll: Roll, member: Member, name: str) -> ProposedAction:
        before = roll.group if member.current or roll.old is None else roll.old
        own = {"resource_id": member.id}
        if member.name:
            own["resource_name"] = member.name
        parameters = {**own, **_definition(before, member.key)}
        return self._proposed(name, "delete_instance", parameters)

    def _proposed(self, name: str, kind: str, parameters: Mapping[str, Any]) -> ProposedAction:
        known = self._surroundings.action_type(kind)
        return ProposedAction(
            name=name,
            action_type=kind,
            resource_id=next((parameters[n] for n in _RESOURCES if n in parameters), None),
            input_parameters=parameters,
            description=known.describe(parameters),
            touches=tuple(known.touches(parameters)),
            estimate_s=self._durations.get(kind, known.estimate(parameters)),
        )

    def _named(self, gate: ProposedAction, name: str) -> ProposedAction:
        estimate_s = self._durations.get(gate.action_type, gate.estimate_s)
        return replace(gate, name=name, estimate_s=estimate_s)

    def _add(self, proposed: ProposedAction, after: After, reason: str | None) -> After:
        uuid = self._surroundings.new_id()
        if proposed.estimate_s is None and proposed.action_type != JOIN:
            self.untimed.add(proposed.action_type)
        begin = max((self.ends[before] for before in after), default=0.0)
        self.ends[uuid] = begin + (proposed.estimate_s or 0.0)
        self.actions.append(action_of(proposed, uuid, reason=reason, parents=after, needs=after))
        return (uuid,)


def _definition(group: Group, key: str | None) -> dict[str, Any]:
    definition = {"group": group.name, "configuration": group.configuration.of(key)}
    return {**definition, "places": group.places} if group.places else definition


def _display_names(members: Sequence[Member]) -> dict[str, str]:
    """Map the id of each member to its name, or to its id if the name is not unique.

    >>> web, *two = Member(id="1", name="web"), *(Member(id=i, name="db") for i in "23")
    >>> _display_names([web, *two])
    {'1': 'web', '2': '2', '3': '3'}
    """
    names = Counter(name for m in members for name in {m.id, m.name or m.id})
    return {m.id: m.name if m.name and names[m.name] == 1 else m.id for m in members}


def _new_names(roll: Roll) -> Iterator[tuple[str, str | None]]:
    """Yield names and keys of new members: GROUP-DIGEST-NUMBER, with the digest of the definition.

    The number is the key; in a group without keys, the first number is the number of current
    members plus 1. Names and ids of members are skipped: of a key, the digest is another then. If
    the name of a member with the new definition is not known, its id is included in the digest, so
    that no new name can equal its name.
    """
    alike = [member for member in roll.members if member.current or roll.cause is None]
    unnamed = sorted(member.id for member in alike if not member.name)
    taken = {name for member in roll.members for name in (member.id, member.name)}

    def named(key: str | None, number: Any, more: Sequence[Any] = ()) -> str:
        salt = [*([unnamed] if unnamed else ()), *more]
        definition = _definition(roll.group, key)
        text = json.dumps([definition, *salt] if salt else definition, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:6]
        return f"{roll.group.name}-{digest}-{number}"

    for key in roll.keys:
        tries = (named(key, key, [n] if n else ()) for n in count())
        yield next(name for name in tries if name not in taken), key
    if roll.keys or roll.group.removal is not None:
        return
    current = sum(member.current for member in roll.members)
    for number in count(current + 1):
        name = named(None, number)
        if name not in taken:
            yield name, None
