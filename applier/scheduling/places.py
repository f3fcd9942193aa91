# SPDX-License-Identifier: Apache-2.0
"""Places: tokens that all actions of one member of a block hold together. Pure.

A block is a set of members, usually nodes; a member is a group of actions. At most so many members
of a block may be between their first and their last action as the limit of the block's token says.
A member takes its place with its first action that starts, and gives it back when all its actions
have ended, whether they ran or not.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterator, Mapping, Sequence

from applier.scheduling.concurrency import SharedUnit
from applier.scheduling.gates import Gates
from planner.plan.guarantees import canary_text
from planner.plan.model import Action
from planner.plan.place_rules import PlaceRule
from planner.plan.states import OPEN, WELL, ActionState


class Places:
    """The places of a run: who holds one, and when it is free again.

    ``actions`` are those of the plan with their states. For a member that began in an earlier run
    and has open actions, a place is reserved: it comes before all members that have not begun.
    """

    def __init__(
        self,
        actions: Mapping[str, Action],
        rules: Mapping[str, PlaceRule],
        gates: Gates,
        keeps: bool = True,
        given_up: Collection[str] = (),
    ) -> None:
        self._actions, self._gates = actions, gates
        self._rules, self._keeps = dict(rules), keeps
        self._holds: dict[tuple[str, str], SharedUnit] = {}
        #: The holds of each action; most plans have none.
        self.of: dict[str, tuple[SharedUnit, ...]] = {}
        self._left: Counter[SharedUnit] = Counter()
        self._members: defaultdict[SharedUnit, list[str]] = defaultdict(list)
        self._failed: defaultdict[str, int] = defaultdict(int)
        self._well: Counter[str] = Counter()
        begun: dict[SharedUnit, bool] = {}
        for action in actions.values():
            if not action.places:
                continue
            mine = self.of[action.uuid] = tuple(
                self._holds.setdefault(p, SharedUnit(*p)) for p in action.places
            )
            for hold in mine:
                self._members[hold].append(action.uuid)
                self._left[hold] += action.state in OPEN
                if action.state is ActionState.ONGOING or action.uuid in given_up:
                    begun[hold] = True
                elif action.attempts:
                    begun.setdefault(hold, False)
                if action.state not in WELL and action.state not in OPEN:
                    hold.cause = hold.cause or action.uuid
                if action.uuid in given_up:
                    hold.given_up, hold.cause = True, action.uuid
        #: The members that began in an earlier run.
        self._earlier = frozenset(begun)
        for hold, runs in begun.items():
            if self._left[hold] and not runs:
                gates.units.reserve(hold)
            else:
                gates.enter(hold)
            if hold.given_up:
                gates.units.kept[hold.token].append(hold)
        for hold in begun:
            if not self._left[hold]:
                self._finish(hold)

    def ended(self, uuid: str, state: ActionState, *, given_up: bool = False) -> str | None:
        """Count an action that has ended; if it was the last of a member, free its place.

        Return why the plan is to pause because of that; None if it is not.
        """
        told = None
        for hold in self.of.get(uuid, ()):
            self._left[hold] -= 1
            if state not in WELL and hold.cause is None:
                hold.cause = uuid
            if given_up and not hold.given_up:
                hold.given_up, hold.cause = True, uuid
                self._gates.units.kept[hold.token].append(hold)
            if not self._left[hold] and self._finish(hold):
                number = self._well[hold.token]
                if number == self._rules[hold.token].pause_after:
                    told = canary_text(hold.token, number)
        return told

    def holders(self, token: str) -> Iterator[tuple[str, str | None, Sequence[str]]]:
        """Yield who has a place of a block: member, the action that failed, all its actions."""
        for hold, uuids in self._members.items():
            if hold.token == token and hold.taken:
                yield hold.member, hold.cause, uuids

    def begins(self, uuid: str) -> bool:
        """Return whether an action that was just taken is the first of its members to start."""
        holds = self.of.get(uuid, ())
        return not any(hold.users > 1 or hold in self._earlier for hold in holds)

    def to_finish(self, ended: Container[str]) -> set[str]:
        """Return the open actions of members that have begun, and all that must end before these.

        ``ended`` are the actions that have ended. A member that has to begin for that is included
        with all its actions.
        """
        found: set[str] = set()
        left = [
            uuid
            for hold, uuids in self._members.items()
            if hold.users or hold in self._earlier
            for uuid in uuids
        ]
        while left:
            uuid = left.pop()
            if uuid not in found and uuid not in ended:
                found.add(uuid)
                left += self._actions[uuid].before()
                left += (u for group in self._actions[uuid].needs_any for u in group)
                left += (u for hold in self.of.get(uuid, ()) for u in self._members[hold])
        return found

    def closed(self, token: str, keeper: str) -> str | None:
        """Return why no place of a block is free any more; None for any other token."""
        if all(hold.token != token for hold in self._members):
            return None
        kept = [member for member, cause, _ in self.holders(token) if cause]
        failed = f"{', '.join(kept)} did not end well" if kept else "too many did not end well"
        first = self._actions[keeper].label
        return f"{failed}, so that no other may begin ({token}); {first} failed first"

    def limit_was_set(self, token: str) -> None:
        """An operator's limit is not widened."""
        if token in self._rules:
            self._rules[token] = self._rules[token]._replace(widens=())

    def _finish(self, hold: SharedUnit) -> bool:
        """Free the place of a member, or keep it; return whether the member ended well."""
        if not hold.taken and hold not in self._earlier:
            return False  # none of its actions started
        rule = self._rules.get(hold.token, PlaceRule())
        if hold.cause is not None:
            self._failed[hold.token] += 1
            if rule.stop_after is not None and self._failed[hold.token] > rule.stop_after:
                self._gates.shut(hold.token, hold.cause)
            if hold.given_up:
                return False
            if rule.keep and self._keeps:
                if not hold.taken:
                    self._gates.leave(hold)
                    self._gates.enter(hold)
                self._gates.units.kept[hold.token].append(hold)
                return False
        else:
            self._well[hold.token] += 1
        self._gates.leave(hold)
        if hold.cause is None:
            for after, limit in rule.widens:
                if after == self._well[hold.token]:
                    self._gates.set_limit(hold.token, limit)
        return hold.cause is None
