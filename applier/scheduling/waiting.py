# SPDX-License-Identifier: Apache-2.0
"""Actions that wait for a delay, for another plan, or at the gates. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from applier.scheduling.gates import Gates
from applier.scheduling.held_by_others import HeldByOthers
from applier.scheduling.turn import WaitReason
from applier.store import Reservation
from planner.model import Action


class Waiting:
    """The actions that only a limit, another plan or a delay keeps from starting.

    ``workerless`` are those that do not count against the workers of the ``gates``.
    """

    def __init__(
        self,
        gates: Gates,
        actions: Mapping[str, Action],
        ranks: Mapping[str, int],
        workerless: Collection[str],
    ) -> None:
        self._gates, self._actions, self._ranks = gates, actions, ranks
        self._workerless = workerless
        self._at_gates: set[str] = set()
        #: Those whose attempt failed, and that start again after a delay.
        self.delayed: set[str] = set()
        self._held_by_others = HeldByOthers()

    @property
    def for_others(self) -> bool:
        """True if an action waits for a delay or for another plan, which end by themselves."""
        return bool(self.delayed or self._held_by_others)

    def submit(self, uuid: str) -> None:
        """Queue an action that may run for whatever it still lacks."""
        action = self._actions[uuid]
        if not self._held_by_others.park(action):
            self._at_gates.add(uuid)
            worker = uuid not in self._workerless
            self._gates.submit(uuid, action.tokens, self._ranks[uuid], worker=worker)

    def elapsed(self, uuids: Iterable[str]) -> None:
        """Queue the actions whose delay is over, unless they ended meanwhile."""
        for uuid in uuids:
            if uuid in self.delayed:
                self.delayed.remove(uuid)
                self.submit(uuid)

    def hear(self, reservations: Iterable[Reservation]) -> None:
        """Replace the resources that other plans hold."""
        for action in self._held_by_others.replace(reservations):
            self.submit(action.uuid)
        for uuid in [u for u in self._at_gates if self._held_by_others.park(self._actions[u])]:
            self._at_gates.remove(uuid)
            self._gates.withdraw(uuid)

    def take(self) -> str | None:
        """Return the next action that may start now, or None."""
        uuid = self._gates.take()
        if uuid is not None:
            self._at_gates.remove(uuid)
        return uuid

    def withdraw(self, uuid: str) -> bool:
        """Remove an action, wherever it waits; return whether it waited."""
        if uuid in self._at_gates:
            self._at_gates.remove(uuid)
            self._gates.withdraw(uuid)
            return True
        if uuid in self.delayed:
            self.delayed.remove(uuid)
            return True
        return self._held_by_others.leave(uuid)

    def lost(self) -> list[tuple[str, str, str]]:
        """Return the actions whose token is never released: action, token, and who holds it."""
        by_rank = sorted(self._at_gates, key=self._ranks.__getitem__)
        return [(uuid, *lost) for uuid in by_rank if (lost := self._gates.lost_to(uuid))]

    def why(self, uuid: str, running: Collection[str]) -> WaitReason | None:
        """Return what an action waits for; None if it does not wait here."""
        action = self._actions[uuid]
        if uuid in self.delayed:
            return WaitReason("delay", ())
        if uuid in self._held_by_others:
            held = self._held_by_others.blocking(action)
            return WaitReason("plan", (), held.resource if held else None, held)
        if uuid not in self._at_gates:
            return None
        token = self._gates.why(uuid)
        if token is None:
            return WaitReason("worker", tuple(running))
        lost = self._gates.lost_to(uuid)
        holders = (u for u in running if token in self._actions[u].tokens)
        return WaitReason(
            "token", (*holders, *([lost[1]] if lost and lost[0] == token else [])), token
        )

    def clear(self) -> None:
        """Remove all actions."""
        self._at_gates.clear()
        self.delayed.clear()
        self._held_by_others.clear()
