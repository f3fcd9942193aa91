# SPDX-License-Identifier: Apache-2.0
"""What plugins and adapters promise: actions, clouds, stores, engines, listeners.

Rules that hold for all: success returns, failure raises; no method decides what runs next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from applier.errors import ActionFailed
from planner.model import Touch
from planner.states import ActionState, Outcome, PlanState, StateReason

if TYPE_CHECKING:
    from oslo_config import cfg


class Verified(StrEnum):
    """What looking at the world says about work that was cut off."""

    DONE = "done"
    NOT_DONE = "not done"
    IN_DOUBT = "in doubt"


class StopSignal(Protocol):
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

    def instance_named(self, name: str) -> str | None:
        """Return the id of the one instance of that name; ActionFailed if there are several."""

    def volume(self, volume_id: str) -> Mapping[str, Any] | None:
        """``name, pool, type, instance``."""

    def service(self, host: str) -> Mapping[str, Any] | None:
        """``status`` (enabled, disabled), ``reason``, of the compute service on a host."""

    def host(self, host: str) -> Mapping[str, Any] | None:
        """``power`` (on, off, suspended)."""

    def flavor(self, flavor: str) -> Mapping[str, Any] | None:
        """``vcpus, ram_mb, disk_gb``."""

    def migrate(
        self, instance_id: str, destination: str | None, live: bool, stop: StopSignal
    ) -> str:
        """Move an instance; returns the host it is on now."""

    def resize(self, instance_id: str, flavor: str, stop: StopSignal) -> None:
        """Change the flavor of an instance."""

    def set_instance_status(self, instance_id: str, status: str, stop: StopSignal) -> None:
        """Make an instance ACTIVE, SHUTOFF or SHELVED."""

    def create_instance(self, name: str, wanted: Mapping[str, Any], stop: StopSignal) -> str:
        """Create an instance; returns its id. There must be none of that name.

        ``wanted``: ``flavor, image, key_name, user_data, networks, ...``, as far as they are said.
        In these texts, ``${NAME}`` stands for what the cloud knows by that name, and
        ``${NoEcho NAME DIGEST}`` for a value that nobody may read here: it is filled in or refused.
        """

    def delete_instance(self, instance_id: str, stop: StopSignal) -> None:
        """Remove an instance."""

    def set_service_status(
        self, host: str, status: str, reason: str | None, stop: StopSignal
    ) -> None:
        """Enable or disable the compute service of a host."""

    def set_host_power(self, host: str, power: str, stop: StopSignal) -> None:
        """Switch a host on or off, or suspend it (ACPI S3).

        Down only without ACTIVE instances: the refusal names them.
        """

    def migrate_volume(
        self, volume_id: str, pool: str | None, volume_type: str | None, stop: StopSignal
    ) -> None:
        """Move a volume to another pool, or give it another type."""


class Ended(NamedTuple):
    """How a program ended.

    ``code`` is its exit code, or minus the signal that ended it, or None if it could not be ended
    and goes on. ``why`` says why it was cut off: ``stop``, ``timeout`` or None. ``last_line`` is
    the last line of its output that is not blank.
    """

    code: int | None
    why: str | None
    seconds: float
    last_line: str


class Content(NamedTuple):
    """A file: what is in it, and its permissions, such as ``0o644``."""

    data: bytes
    mode: int


class Machine(Protocol):
    """A machine on which programs run and files lie: this one, or one that is reached over SSH.

    It is opened for one attempt of an action, and knows its stop. All raise
    :class:`applier.errors.ActionFailed` with a sentence when they are refused or stopped, and
    ConnectionError when the way to the machine is broken.
    """

    def run(
        self,
        program: Sequence[str],
        *,
        output: Callable[[str], None],
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float | None = None,
    ) -> Ended:
        """Run a program and follow it until it has ended; a stop or the time-out ends its group.

        Both of its streams go to ``output`` in pieces, its input is empty, ``env`` is added to the
        environment. Raises OSError or ValueError if it cannot be started, or ends with 126 or 127.
        """

    def read(self, path: str) -> Content | None:
        """Return a file, or None if there is none."""

    def write(self, path: str, data: bytes, mode: int) -> None:
        """Put a file in its place as a whole, and make the folders above it where they lack."""

    def files(self, folder: str) -> list[str]:
        """List what is below a folder and is no folder itself, as paths relative to it."""

    def remove(self, path: str) -> None:
        """Remove a file."""

    def rsync(self, path: str) -> tuple[list[str], str]:
        """Return options and destination for an rsync, run here, that writes to ``path`` there."""


class Machines(Protocol):
    """Where tasks do their work."""

    def machine(self, address: str | None, stop: StopSignal) -> Machine:
        """Open the machine at ``[user@]host[:port]``, or this one."""

    def simulate(self, node: str, task: str, seconds: float, stop: StopSignal) -> Outcome:
        """Do nothing for a while in place of a task of a node that is simulated."""

    def close(self) -> None:
        """End all connections; what still uses one breaks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionContext:
    """What an action is given besides its parameters.

    ``output`` keeps what a command prints. ``options`` has the value of each option that the
    plugin declares, by name, as configured in ``[watcher_actions.TYPE]``. ``name`` is the name of
    the action in the plan. Without ``machines`` the action makes its own connections.
    """

    cloud: Callable[[], Cloud]
    output: Callable[[str], None]
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    machines: Machines | None = None


class ActionPlugin(ABC):
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
    #: False if it takes no place in ``max_workers``: it waits (:meth:`waits_s`), or ends at once.
    TAKES_WORKER: ClassVar[bool] = True
    #: True if :meth:`revert` undoes it; only such actions stand in a rollback.
    REVERTIBLE: ClassVar[bool] = False
    #: Options of the section ``[watcher_actions.TYPE]``, besides those that every type has.
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = ()

    def __init__(self, parameters: Mapping[str, Any], context: ActionContext) -> None:
        self.parameters = parameters
        self.context = context

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:  # noqa: ARG003
        """Return which resources it works on, and what it does to them."""
        return ()

    @classmethod
    def estimate(cls, parameters: Mapping[str, Any]) -> float | None:  # noqa: ARG003
        """Return how many seconds it will take, or None."""
        return None

    @classmethod
    def options_type(cls, parameters: Mapping[str, Any]) -> str:  # noqa: ARG003
        """Return the action type whose options it is given: its own, unless it works as another."""
        return cls.TYPE

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return in a few words what it will do to what."""
        return f"{cls.TYPE} {parameters.get('resource_id') or ''}".rstrip()

    def precheck(self) -> None:  # noqa: B027
        """Look before the work: raises AlreadyDone or ActionFailed, changes nothing."""

    @abstractmethod
    def execute(self, stop: StopSignal) -> Outcome:
        """Do the work; returns CHANGED, CREATED or OK, raises ActionFailed.

        Ends as soon as it can once ``stop`` is set, by raising ActionFailed.
        """

    @classmethod
    def waits_s(cls, parameters: Mapping[str, Any]) -> float | None:  # noqa: ARG003
        """Return for how many seconds it only waits, or None if it does work.

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

    def revert(self, stop: StopSignal) -> Outcome:  # noqa: ARG002
        """Undo what :meth:`execute` did; raises ActionFailed, also when it cannot be undone."""
        raise ActionFailed(f"{self.TYPE} cannot be undone")


#: The action type of reverts: rollback plans are made of them.
REVERT = "revert"


class ActionOf(NamedTuple):
    """An action of another plan, by the uuids of both."""

    plan: str
    action: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """How one action ended, or that it starts: a line of the record.

    ``old`` is the state that the row must still have. From ONGOING back to PENDING is an attempt
    that failed and is tried again. ``given_up``: its thread hangs, and its tokens stay held.
    ``undoes`` is what it was to undo, in a rollback: that becomes REVERTED or REVERT_FAILED.
    """

    uuid: str
    old: ActionState
    state: ActionState
    outcome: Outcome | None = None
    state_reason: StateReason | None = None
    message: str | None = None
    output: str | None = None
    given_up: bool = False
    undoes: ActionOf | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimant:
    """Who runs a plan. ``heartbeat_at`` is when it was last heard of, as the record knows it."""

    host: str
    pid: int
    user: str
    heartbeat_at: datetime | None = None


class RequestVerb(StrEnum):
    """What can be asked of a running plan."""

    CANCEL = "cancel"
    PAUSE = "pause"
    #: Pause the plan, and leave it to another applier. Only its own applier asks for that.
    HAND_BACK = "hand_back"
    #: Skip one action.
    SKIP = "skip"
    #: Stop one running action.
    ABORT = "abort"
    #: Change limits.
    LIMIT = "limit"


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A request to a running plan, most often of an operator.

    ``verb`` is a :class:`RequestVerb`; any other, which a newer release may have recorded, is
    ignored. ``action`` is the uuid of the action to skip or to abort. ``limits`` are by token, and
    the number of workers under ``max_workers``. ``number`` counts the requests of a plan from 1.
    """

    verb: str
    who: str
    why: str | None = None
    action: str | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    number: int = 0
    created_at: datetime | None = None


class Listener(Protocol):
    """Hears what was committed, after the commit, in the engine's thread. Must not raise."""

    def on_reports(self, reports: Iterable[Report]) -> None:
        """Called when actions started or ended."""

    def on_plan(self, state: PlanState, message: str | None) -> None:
        """Called when the plan changed its state."""
