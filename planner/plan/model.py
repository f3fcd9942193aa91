# SPDX-License-Identifier: Apache-2.0
"""The data model: proposed actions, and the action plans that planners make of them.

All classes are frozen. The actions of a plan refer to each other by uuid. Actions with equal links,
such as the ``parents`` of all actions in a chunk, share one tuple object; that also holds for a
plan that was read from a file or a store.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple

from planner import guards as demands
from planner.errors import short
from planner.plan import digest, place_rules
from planner.plan.place_rules import HeldPlace, PlaceRule
from planner.plan.states import ActionState, Outcome, PlanState, StateReason
from planner.schemas import ranges

#: Version of the action plan format that this release writes and reads.
VERSION = "2.0"
#: The action type of a join: it does nothing, takes no worker, and replaces n x m edges by n + m.
JOIN = "join"
#: The action type of an anchor: a synchronization point of many nodes in a deployment.
ANCHOR = "anchor"


class Effect(StrEnum):
    """The effect of an action on a resource."""

    USES = "uses"
    LEAVES = "leaves"
    ENTERS = "enters"
    TAKES_DOWN = "takes_down"
    BRINGS_UP = "brings_up"
    DISABLES = "disables"
    ENABLES = "enables"


#: A reference to a parameter of an action in the text of a touch: ``{resource_id}``.
PARAMETER = re.compile(r"\{([A-Za-z_]\w*)\}", re.ASCII)


class Touch(NamedTuple):
    """A resource (``KIND:ID``) and the effect of an action on it."""

    resource: str
    effect: Effect = Effect.USES

    @classmethod
    def parse(cls, text: str) -> Touch:
        """Parse ``[EFFECT ]KIND:ID``; raises ValueError that lists the accepted effects.

        >>> Touch.parse("leaves node:compute-1")
        Touch(resource='node:compute-1', effect=<Effect.LEAVES: 'leaves'>)
        >>> Touch.parse("instance:6a1f").effect.value
        'uses'
        """
        effect, _, resource = text.rpartition(" ")
        kind, colon, name = resource.partition(":")
        if not (kind and colon and name) or (effect and effect not in set(Effect)):
            raise ValueError(
                f"{text!r} is not a touch: [EFFECT ]KIND:ID, where EFFECT is one of "
                + ", ".join(Effect)
            )
        return cls(resource, Effect(effect or "uses"))

    @classmethod
    def fill(cls, texts: Iterable[str], parameters: Mapping[str, Any]) -> tuple[Touch, ...]:
        """Return the touches of texts in which ``{NAME}`` stands for the value of a parameter.

        A text with a parameter that is missing, blank, or no text or number is left out.

        >>> Touch.fill(["instance:{uuid}", "leaves node:{host}"], {"uuid": "i1"})
        (Touch(resource='instance:i1', effect=<Effect.USES: 'uses'>),)
        """
        known = {n: v for n, v in parameters.items() if isinstance(v, str | int) and f"{v}".strip()}
        return tuple(
            cls.parse(PARAMETER.sub(lambda found: str(known[found[1]]), text))
            for text in texts
            if known.keys() >= set(PARAMETER.findall(text))
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposedAction:
    """An action that is wanted and not scheduled yet.

    The document says by name what must end well before it, ``needs``, and what must have ended
    before it, ``after``. ``because`` gives the rule of each need that the document does not say.
    """

    name: str
    action_type: str
    resource_id: str | None = None
    input_parameters: Mapping[str, Any] = field(default_factory=dict)
    description: str | None = None
    touches: tuple[Touch, ...] = ()
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    because: Mapping[str, str] = field(default_factory=dict)
    estimate_s: float | None = None
    timeout_s: float | None = None
    retries: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Solution:
    """The wanted changes: actions, in the order in which they were proposed.

    ``facts`` is the known state of the cloud (``instances``, ``hosts``, ``services``, ``flavors``).
    """

    actions: Sequence[ProposedAction]
    name: str | None = None
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    audit_uuid: str | None = None
    strategy_name: str | None = None
    efficacy_indicators: Sequence[Any] = ()
    global_efficacy: Sequence[Any] = ()
    warnings: tuple[str, ...] = ()


class Trigger(NamedTuple):
    """An event that lets another action run: ``action``, a uuid, ends with one of ``outcomes``."""

    action: str
    outcomes: tuple[Outcome, ...]


class Blocker(NamedTuple):
    """Keeps another action from running if ``action``, a uuid, fails with one of ``outcomes``."""

    action: str
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Action:
    """One action of a plan. Times are aware datetimes in UTC, durations are seconds.

    The action may start once all ``parents`` have ended, all ``needs`` have succeeded, and one
    action of each group in ``needs_any`` has succeeded. If it has ``triggers``, one of them must
    have ended with one of its outcomes. It does not run if an action of ``blocked_by`` ended with
    one of the failures given there. It holds its ``tokens`` while it runs. With the other actions
    of a member it holds ``places``, from the first start to the last end of them.
    """

    uuid: str
    action_type: str
    name: str | None = None
    resource_id: str | None = None
    input_parameters: Mapping[str, Any] = field(default_factory=dict)
    description: str | None = None
    reason: str | None = None
    parents: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    needs_any: tuple[tuple[str, ...], ...] = ()
    triggers: tuple[Trigger, ...] = ()
    blocked_by: tuple[Blocker, ...] = ()
    tokens: tuple[str, ...] = ()
    places: tuple[HeldPlace, ...] = ()
    estimate_s: float | None = None
    timeout_s: float | None = None
    retries: int = 0
    state: ActionState = ActionState.PENDING
    outcome: Outcome | None = None
    state_reason: StateReason | None = None
    status_message: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    attempts: int = 0

    @property
    def label(self) -> str:
        """The action's name, or the beginning of its uuid."""
        return self.name or short(self.uuid)

    def before(self) -> tuple[str, ...]:
        """List the actions that must have ended before this one starts: its predecessors.

        These are parents, needs and triggers, each once, in that order. ``needs_any`` is not
        included, because the action may start as soon as one action of each group has succeeded.
        """
        if not self.needs and not self.triggers:
            return self.parents
        if not self.parents and not self.triggers:
            return self.needs
        triggers = [trigger.action for trigger in self.triggers]
        return tuple(dict.fromkeys((*self.parents, *self.needs, *triggers)))

    def to_dict(self) -> dict[str, Any]:
        """Convert the action to JSON types: texts, numbers, lists and mappings."""
        return {
            "uuid": self.uuid,
            "name": self.name,
            "action_type": self.action_type,
            "resource_id": self.resource_id,
            "input_parameters": self.input_parameters,
            "description": self.description,
            "reason": self.reason,
            "parents": list(self.parents),
            "needs": list(self.needs),
            "needs_any": [list(group) for group in self.needs_any] if self.needs_any else [],
            "triggers": _events(self.triggers) if self.triggers else [],
            # Few actions have blockers: an empty field is left out.
            **({"blocked_by": _events(self.blocked_by)} if self.blocked_by else {}),
            "tokens": list(self.tokens),
            **({"places": [list(place) for place in self.places]} if self.places else {}),
            "estimate_s": self.estimate_s,
            "timeout_s": self.timeout_s,
            "retries": self.retries,
            "state": str(self.state),
            "outcome": None if self.outcome is None else str(self.outcome),
            **({"state_reason": str(self.state_reason)} if self.state_reason else {}),
            "status_message": self.status_message,
            "started_at": _time_text(self.started_at),
            "ended_at": _time_text(self.ended_at),
            "attempts": self.attempts,
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], share: _Share = tuple) -> Action:
        """Create an action from the result of :meth:`to_dict`; a missing field has its default.

        ``share`` turns a list of uuids into a tuple. ``ActionPlan.from_dict`` passes a function
        that returns the same tuple object for equal lists.
        """
        known = dict(value)
        for key in ("parents", "needs", "tokens"):
            known[key] = share(known.get(key) or ())
        known["needs_any"] = tuple(share(group) for group in known.get("needs_any") or ())
        for key, kind in (("triggers", Trigger), ("blocked_by", Blocker)):
            known[key] = tuple(
                kind(e["action"], tuple(Outcome(o) for o in e["outcomes"]))
                for e in known.get(key) or ()
            )
        known["places"] = tuple(HeldPlace(*place) for place in known.get("places") or ())
        known["state"] = ActionState(known.get("state", "PENDING"))
        for key, reasons in (("outcome", Outcome), ("state_reason", StateReason)):
            known[key] = reasons(known[key]) if known.get(key) else None
        for key in ("started_at", "ended_at"):
            known[key] = _time(known.get(key))
        return cls(**known)


def _events(pairs: Iterable[Trigger | Blocker]) -> list[dict[str, Any]]:
    return [{"action": p.action, "outcomes": [str(o) for o in p.outcomes]} for p in pairs]


_Share = Callable[[Iterable[str]], tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class ActionPlan:
    """Actions in schedule order, with their links, and the limits that hold while they run.

    ``limits`` maps a token to the number of actions that may hold it at once. ``KIND:*`` limits
    each token of that kind separately. ``warnings`` are sentences for the reader of the plan.
    ``cloud`` is the name of the cloud that its facts came from, and ``facts_at`` when they were
    read; None if it is not known. ``guards`` are the conditions under which the plan may run. A
    PENDING plan starts at ``start_at``, or later; None: as soon as possible.
    """

    uuid: str
    planner: str
    actions: tuple[Action, ...]
    name: str | None = None
    state: PlanState = PlanState.RECOMMENDED
    created_at: datetime | None = None
    updated_at: datetime | None = None
    status_message: str | None = None
    audit_uuid: str | None = None
    strategy_name: str | None = None
    efficacy_indicators: Sequence[Any] = ()
    global_efficacy: Sequence[Any] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    places: Mapping[str, PlaceRule] = field(default_factory=dict)
    tolerances: Sequence[Mapping[str, Any]] = ()
    on_failure: str | None = None
    cloud: str | None = None
    facts_at: datetime | None = None
    start_at: datetime | None = None
    guards: demands.Guards = demands.NO_GUARDS
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # A plan that was read has lists where a plan that was made has tuples; they must compare
        # equal.
        for name in ("efficacy_indicators", "global_efficacy", "tolerances"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def aged_from(self) -> datetime | None:
        """The time from which the age of the plan counts; None if it is not known."""
        return self.facts_at or self.created_at

    @cached_property
    def digest(self) -> str:
        """A checksum of all fields that a run uses: see :mod:`planner.plan.digest`.

        Without ``facts_at``, the time at which the plan was made is covered only if the plan itself
        demands an age, so that a document gives the same digest at any time.
        """
        demands_age = self.guards.approval_max_age_s is not None
        aged_from = self.aged_from if demands_age else self.facts_at
        head = {
            "planner": self.planner,
            "limits": self.limits,
            "tolerances": [dict(tolerance) for tolerance in self.tolerances],
            "on_failure": self.on_failure,
            "cloud": self.cloud,
            "aged_from": None if aged_from is None else aged_from.astimezone(UTC).isoformat(),
            "guards": {} if self.guards == demands.NO_GUARDS else self.guards.to_dict(),
            # Few plans have places: an empty field is left out.
            **({"places": place_rules.to_dict(self.places)} if self.places else {}),
        }
        return digest.of(self.actions, head)

    def to_dict(self) -> dict[str, Any]:
        """Convert the plan to format 2.0, to be written as JSON or YAML."""
        return {**self.head(), "actions": [action.to_dict() for action in self.actions]}

    def head(self) -> dict[str, Any]:
        """Return the result of :meth:`to_dict` without ``actions``."""
        return {
            "version": VERSION,
            "uuid": self.uuid,
            "name": self.name,
            "planner": self.planner,
            "state": str(self.state),
            "digest": self.digest,
            "created_at": _time_text(self.created_at),
            "updated_at": _time_text(self.updated_at),
            "status_message": self.status_message,
            "audit_uuid": self.audit_uuid,
            "strategy_name": self.strategy_name,
            "efficacy_indicators": list(self.efficacy_indicators),
            "global_efficacy": list(self.global_efficacy),
            "limits": dict(self.limits),
            **({"places": place_rules.to_dict(self.places)} if self.places else {}),
            "tolerances": [dict(t) for t in self.tolerances],
            "on_failure": self.on_failure,
            "cloud": self.cloud,
            # Few plans have these: empty fields are left out.
            **({"facts_at": _time_text(self.facts_at)} if self.facts_at else {}),
            **({"start_at": _time_text(self.start_at)} if self.start_at else {}),
            **({} if self.guards == demands.NO_GUARDS else {"guards": self.guards.to_dict()}),
            "warnings": list(self.warnings),
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> ActionPlan:
        """Create a plan from the result of :meth:`to_dict`.

        The digest is computed again. A value that does not fit its schema (:mod:`.saved`)
        raises KeyError, TypeError or ValueError.
        """
        known = {k: v for k, v in value.items() if k not in ("version", "digest", "limits_now")}
        seen: dict[tuple[str, ...], tuple[str, ...]] = {}

        def share(uuids: Iterable[str]) -> tuple[str, ...]:
            once = tuple(uuids)
            return seen.setdefault(once, once)

        known["actions"] = tuple(Action.from_dict(a, share) for a in known["actions"])
        known["state"] = PlanState(known.get("state", "RECOMMENDED"))
        known["warnings"] = tuple(known.get("warnings") or ())
        for key in ("created_at", "updated_at", "facts_at", "start_at"):
            known[key] = _time(known.get(key))
        if "places" in known:
            known["places"] = place_rules.of(known["places"])
        if "guards" in known:
            known["guards"] = demands.of(known["guards"])
        return cls(**known)


def _time_text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _time(text: str | None) -> datetime | None:
    return None if text is None else ranges.moment(text)
