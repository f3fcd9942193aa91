# SPDX-License-Identifier: Apache-2.0
"""Counts the instances that a plan leaves without a home while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from planner.model import Action, Effect, Touch

#: Action types after which an instance does not run, and those after which it runs again.
OFF = frozenset({"stop", "shelve", "delete_instance"})
ON = frozenset({"start", "unshelve", "create_instance"})
_SWITCHES = {Effect.TAKES_DOWN: True, Effect.BRINGS_UP: False}


@dataclass(kw_only=True, slots=True)
class Homes:
    """Where the instances of one run are, and which hosts are down.

    An instance has no home while the plan has stopped, shelved or deleted it, or has taken down the
    host on which it is. The host of an instance is known only if an action of the plan moves it.
    """

    effects: Mapping[str, Sequence[Touch]]
    host_of: dict[str, str | None]
    on_host: dict[str, set[str]] = field(default_factory=dict)
    off: set[str] = field(default_factory=set)
    down: set[str] = field(default_factory=set)
    homeless: set[str] = field(default_factory=set)
    most: int = 0

    def note(self, action: Action) -> None:
        """Update instances and hosts after an action has succeeded."""
        touches = self.effects.get(action.uuid, ())
        for resource, effect in touches:
            if effect in _SWITCHES:
                (self.down.add if _SWITCHES[effect] else self.down.discard)(resource)
                self._judge(self.on_host.get(resource, ()))
        instances = [t.resource for t in touches if t.resource.startswith("instance:")]
        if action.action_type in OFF:
            self.off.update(instances)
        elif action.action_type in ON:
            self.off.difference_update(instances)
        elif any(t.effect is Effect.LEAVES for t in touches):
            entered = next((t.resource for t in touches if t.effect is Effect.ENTERS), None)
            for instance in instances:
                self._move(instance, entered)
        self._judge(instances)
        self.most = max(self.most, len(self.homeless))

    def _move(self, instance: str, host: str | None) -> None:
        old = self.host_of.get(instance)
        if old is not None:
            self.on_host[old].discard(instance)
        self.host_of[instance] = host
        if host is not None:
            self.on_host.setdefault(host, set()).add(instance)

    def _judge(self, instances: Iterable[str]) -> None:
        for instance in instances:
            if instance in self.off or self.host_of.get(instance) in self.down:
                self.homeless.add(instance)
            else:
                self.homeless.discard(instance)


class HomesOfPlan:
    """Creates a :class:`Homes` for each run. ``touches`` are those of each action by uuid."""

    def __init__(self, actions: Sequence[Action], touches: Mapping[str, Sequence[Touch]]) -> None:
        self._effects = {uuid: found for uuid, found in touches.items() if _counts(found)}
        self._first: dict[str, str | None] = {}
        for action in actions:
            found = touches.get(action.uuid, ())
            left = next((t.resource for t in found if t.effect is Effect.LEAVES), None)
            for touch in found:
                if left is not None and touch.resource.startswith("instance:"):
                    self._first.setdefault(touch.resource, left)

    def at_start(self) -> Homes:
        """Return the homes before any action."""
        homes = Homes(effects=self._effects, host_of=dict(self._first))
        for instance, host in self._first.items():
            if host is not None:
                homes.on_host.setdefault(host, set()).add(instance)
        return homes


def _counts(touches: Sequence[Touch]) -> bool:
    """Return whether an action with these touches may change whether an instance has a home."""
    return any(t.resource.startswith("instance:") or t.effect in _SWITCHES for t in touches)
