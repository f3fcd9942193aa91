"""What plugins and adapters promise: actions, clouds, stores, engines, listeners.

Rules that hold for all: success returns, failure raises; no method decides what runs next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Protocol

from applier.errors import ActionFailed
from planner.model import ActionPlan, Touch
from planner.states import ActionState, Outcome, PlanState


class Verified(StrEnum):
    """What looking at the world says about work that was cut off."""

    DONE = "done"
    NOT_DONE = "not done"
    IN_DOUBT = "in doubt"


class Stop(Protocol):
    """Tells a running action that it should end; ``threading.Event`` is one."""

    def is_set(self) -> bool:
        """True once the action should end."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the action should end, at most ``timeout`` seconds; True if it should."""


class Cloud(Protocol):
    """What actions ask of a cloud. Each call returns when the work is done.

    All raise :class:`applier.errors.ActionFailed` with a sentence when the cloud refuses, and end
    early, with ActionFailed, once ``stop`` is set. Getters return None for what does not exist.
    """

    def instance(self, instance_id: str) -> Mapping[str, Any] | None:
        """``name, host, flavor, status`` (ACTIVE, SHUTOFF, SHELVED)."""

    def volume(self, volume_id: str) -> Mapping[str, Any] | None:
        """``name, pool, type, instance``."""

    def service(self, host: str) -> Mapping[str, Any] | None:
        """``status`` (enabled, disabled), ``reason``, of the compute service on a host."""

    def host(self, host: str) -> Mapping[str, Any] | None:
        """``power`` (on, off, suspended)."""

    def flavor(self, flavor: str) -> Mapping[str, Any] | None:
        """``vcpus, ram_mb, disk_gb``."""

    def migrate(self, instance_id: str, destination: str | None, live: bool, stop: Stop) -> str:
        """Move an instance; returns the host it is on now."""

    def resize(self, instance_id: str, flavor: str, stop: Stop) -> None:
        """Give an instance another flavor."""

    def set_instance_status(self, instance_id: str, status: str, stop: Stop) -> None:
        """Make an instance ACTIVE, SHUTOFF or SHELVED."""

    def delete_instance(self, instance_id: str, stop: Stop) -> None:
        """Remove an instance."""

    def set_service_status(self, host: str, status: str, reason: str | None, stop: Stop) -> None:
        """Enable or disable the compute service of a host."""

    def set_host_power(self, host: str, power: str, stop: Stop) -> None:
        """Switch a host on or off, or suspend it (ACPI S3).

        Down only without ACTIVE instances: the refusal names them.
        """

    def migrate_volume(
        self, volume_id: str, pool: str | None, volume_type: str | None, stop: Stop
    ) -> None:
        """Move a volume to another pool, or give it another type."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionContext:
    """What an action is given besides its parameters.

    ``output`` keeps what a command prints; ``options`` are those of ``[watcher_actions.TYPE]``.
    """

    cloud: Callable[[], Cloud]
    output: Callable[[str], None]
    options: Mapping[str, Any] = field(default_factory=dict)


class Action(ABC):
    """One way of changing something. A plugin is one class, registered under ``watcher_actions``.

    Planners read ``TYPE``, ``SCHEMA``, :meth:`touches`, :meth:`estimate` and :meth:`describe`,
    which are pure; the applier makes an instance for each action that it runs.
    """

    #: Name of the action type, as input documents write it.
    TYPE: ClassVar[str]
    #: JSON Schema (draft 2020-12) of ``input_parameters``.
    SCHEMA: ClassVar[Mapping[str, Any]]
    #: True if running it a second time does no harm, even when the first was cut off.
    RERUN_SAFE: ClassVar[bool] = False
    #: False if waiting (:meth:`waits_s`) does not count against ``max_workers``.
    TAKES_WORKER: ClassVar[bool] = True
    #: True if :meth:`revert` undoes it; only such actions stand in a rollback.
    REVERTIBLE: ClassVar[bool] = False

    def __init__(self, parameters: Mapping[str, Any], context: ActionContext) -> None:
        self.parameters = parameters
        self.context = context

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:  # noqa: ARG003
        """Say which resources it works on, and what it does to them."""
        return ()

    @classmethod
    def estimate(cls, parameters: Mapping[str, Any]) -> float | None:  # noqa: ARG003
        """Say how many seconds it will take, or None."""
        return None

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Say in a few words what it will do to what."""
        return f"{cls.TYPE} {parameters.get('resource_id') or ''}".rstrip()

    def precheck(self) -> None:  # noqa: B027
        """Look before the work: raises AlreadyDone or ActionFailed, changes nothing."""

    @abstractmethod
    def execute(self, stop: Stop) -> Outcome:
        """Do the work; returns CHANGED, CREATED or OK, raises ActionFailed.

        Ends as soon as it can once ``stop`` is set, by raising ActionFailed.
        """

    @classmethod
    def waits_s(cls, parameters: Mapping[str, Any]) -> float | None:  # noqa: ARG003
        """Say for how many seconds it does nothing but wait, or None if it does work.

        Such an action is never executed: it holds its tokens and no thread, and succeeds when the
        time is over.
        """
        return None

    def abort(self) -> None:  # noqa: B027
        """Ask for an early end of what :meth:`execute` does, from another thread.

        Called once, after ``stop`` was set, where setting it may not be enough.
        """

    def verify(self) -> Verified:
        """Look whether work that was cut off is done; changes nothing."""
        return Verified.IN_DOUBT

    def revert(self, stop: Stop) -> Outcome:
        """Undo what :meth:`execute` did; raises ActionFailed, also when it cannot be undone."""
        raise ActionFailed(f"{self.TYPE} cannot be undone")


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """How one action ended, or that it starts: a line of the record.

    ``old`` is the state that the row must still have. From ONGOING back to PENDING is an attempt
    that failed and is tried again. ``given_up``: its thread hangs, and its tokens stay held.
    """

    uuid: str
    old: ActionState
    state: ActionState
    outcome: Outcome | None = None
    message: str | None = None
    output: str | None = None
    given_up: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One try of an action, as it is on record; ``number`` counts from 1, over all runs."""

    number: int
    started_at: datetime
    ended_at: datetime | None = None
    state: ActionState | None = None
    outcome: Outcome | None = None
    message: str | None = None
    output: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimant:
    """Who runs a plan. ``heartbeat_at`` is when it was last heard of, as the record knows it."""

    host: str
    pid: int
    user: str
    heartbeat_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """An applier that reports on this record: ``uuid`` is its own from start to end."""

    uuid: str
    host: str
    pid: int
    user: str
    started_at: datetime
    heartbeat_at: datetime
    plans: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Reservation:
    """A resource that an ONGOING plan works on, or will: the first to reserve it has it."""

    resource: str
    plan: str
    name: str | None
    user: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """What an operator asks of a running plan.

    ``verb`` is ``cancel``, ``pause``, ``skip`` or ``abort`` (of the ``action`` with that uuid), or
    ``limit`` (``limits`` by token, and under ``max_workers``); ``number`` counts the wishes of a
    plan from 1.
    """

    verb: str
    who: str
    why: str | None = None
    action: str | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    number: int = 0
    created_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanSummary:
    """A line of ``actionplan list``: the plan without its actions, and how many stand where."""

    uuid: str
    name: str | None
    planner: str
    state: PlanState
    created_at: datetime | None
    updated_at: datetime | None
    actions: Mapping[ActionState, int]


class Store(Protocol):
    """Keeps plans. Every method is one transaction: after it returns, a crash loses nothing.

    Raises :class:`applier.errors.StoreError` when the record cannot be reached. Nobody knows then
    whether a write was made; the same call made again, ``now`` aside, makes it once (``save_plan``
    and ``add_wish`` excepted). No clock decides about any order. The suite in ``applier.testing``
    holds for every implementation.
    """

    def save_plan(self, plan: ActionPlan) -> None:
        """Keep a whole new plan; a crash leaves all of it or none.

        A uuid is saved once: PlanConflict. Raises InvalidPlan if two of its actions have one uuid.
        """

    def load_plan(self, uuid: str) -> ActionPlan:
        """Give a plan with the states it has now; raises PlanNotFound."""

    def find_plan(self, reference: str) -> str:
        """Give the uuid of the plan that a person means: a uuid, a unique beginning of one, a
        unique name, or ``last`` (saved last). Removed plans are found by their whole uuid only.
        Raises PlanNotFound."""

    def list_plans(
        self, *, state: PlanState | None = None, limit: int | None = None
    ) -> list[PlanSummary]:
        """List plans, saved last first; removed ones only when ``state`` asks for them."""

    def move_plan(
        self,
        uuid: str,
        new: PlanState,
        *,
        now: datetime,
        message: str | None = None,
    ) -> None:
        """Change a plan's state for an operator, if the table of states has the row.

        ``message`` becomes the plan's status message, or clears it. CANCELLED also cancels the
        actions that have not started. Of two at once, one gets PlanConflict, as does who moves a
        plan that somebody runs; a change that is not a row raises InvalidTransition.
        """

    def skip_action(self, plan: str, action: str, *, now: datetime, message: str) -> None:
        """Skip a PENDING action of a plan that nobody runs (RECOMMENDED, PENDING or PAUSED).

        Raises PlanConflict for a plan in another state, ActionNotFound, InvalidTransition.
        """

    def claim_plan(self, uuid: str, claimant: Claimant, *, now: datetime) -> str:
        """Turn PENDING into ONGOING; returns a token that every later write must carry.

        Of any number that try at once exactly one succeeds; PlanConflict for the others.
        """

    def claimant(self, uuid: str) -> Claimant | None:
        """Give who runs a plan now, or None; raises PlanNotFound."""

    def beat(self, uuid: str, claim: str, *, now: datetime) -> None:
        """Say that the claimant lives; raises PlanConflict when the claim is not its any more."""

    def resume_plan(
        self, uuid: str, actions: Sequence[str], *, now: datetime, message: str | None = None
    ) -> None:
        """Make a plan PENDING again, and the named actions with it, all or nothing.

        From PAUSED, FAILED, CANCELLED, ONGOING or CANCELLING (of a claimant that is gone: whose
        claim is void from here on). The actions lose outcome, message and times; their attempts
        stay. Those that are ONGOING or UNKNOWN stay so: the next claimant verifies them. Raises
        InvalidTransition for a plan or action that may not, PlanConflict or it of two at once.
        """

    def settle_action(
        self, plan: str, action: str, new: ActionState, *, now: datetime, message: str
    ) -> None:
        """Write what an operator knows of an UNKNOWN or FAILED action of a plan that nobody runs.

        SUCCEEDED gets the outcome ``changed``, FAILED ``failed``; its attempts stay as they were.
        Raises PlanConflict, InvalidTransition, ActionNotFound.
        """

    def attempts(self, plan: str, action: str) -> list[Attempt]:
        """List all tries of an action, oldest first, also one that runs; raises ActionNotFound."""

    def durations(self, action_types: Sequence[str], *, most: int = 200) -> dict[str, list[float]]:
        """Give, by action type, the seconds of the last attempts that did their work.

        SUCCEEDED, ``changed`` or ``created``, under the claim that started them; those that ended
        last first, at most ``most``.
        """

    def reserve(self, uuid: str, claim: str, resources: Sequence[str], *, now: datetime) -> None:
        """Reserve resources for an ONGOING plan, behind whoever reserved them before.

        All at once, when the plan begins; a second call replaces the first, and goes to the back.
        They are given back when the claim ends; those of a claimant that died stay until its plan
        is resumed. A resource has at most 255 characters.
        """

    def held_by_others(self, uuid: str) -> list[Reservation]:
        """List which of a plan's resources another reserved first and still has, by resource."""

    def report_service(self, service: Service) -> None:
        """Keep that a service lives: the first report and every heartbeat."""

    def remove_service(self, uuid: str) -> None:
        """Forget a service that ended."""

    def services(self) -> list[Service]:
        """List the services that reported, last heard of first."""

    def pending_plans(self) -> list[str]:
        """List the uuids of PENDING plans, those that wait longest first."""

    def commit(self, uuid: str, claim: str, reports: Sequence[Report], *, now: datetime) -> None:
        """Write what ended and what starts, in that order, all or nothing.

        A start sets ``started_at`` and counts an attempt, an end sets ``ended_at``. From ONGOING to
        PENDING the attempt has FAILED, and the action has a message but no times until the next
        start. An attempt stays as its action left ONGOING. Raises PlanConflict, and writes nothing,
        when the claim is not this one's any more or a row is not in the state that its report says.
        """

    def move_claimed(
        self,
        uuid: str,
        claim: str,
        new: PlanState,
        *,
        now: datetime,
        message: str | None = None,
    ) -> None:
        """Change the state of a plan that this claim runs; it ends unless that is CANCELLING."""

    def add_wish(self, plan: str, wish: Wish, *, now: datetime) -> None:
        """Keep a wish for a plan's claimant; PlanConflict when nobody runs the plan."""

    def wishes(self, plan: str, after: int = 0) -> list[Wish]:
        """List the wishes with a number above ``after``, oldest first."""

    def output(self, plan: str, action: str) -> str | None:
        """Give what the last attempt of an action printed: the last 64 KiB.

        Raises ActionNotFound. An action is known by its uuid within its plan, here as everywhere.
        """


class Listener(Protocol):
    """Hears what was committed, after the commit, in the engine's thread. Must not raise."""

    def on_reports(self, reports: Iterable[Report]) -> None:
        """Called when actions started or ended."""

    def on_plan(self, state: PlanState, message: str | None) -> None:
        """Called when the plan changed its state."""
