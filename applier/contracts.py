# SPDX-License-Identifier: Apache-2.0
"""The interfaces of action plugins, machines and listeners, and the values they use.

For all of them: methods return on success and raise an error on failure. No method decides what
runs next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from applier.errors import ActionFailed
from applier.worker_jobs import JobOffer
from planner.model import Touch
from planner.states import ActionState, Outcome, PlanState, StateReason

if TYPE_CHECKING:
    from oslo_config import cfg

    from applier.cloud_contracts import Cloud


class Verified(StrEnum):
    """The result of verifying the work of an interrupted action."""

    DONE = "done"
    NOT_DONE = "not done"
    IN_DOUBT = "in doubt"


class StopSignal(Protocol):
    """Tells a running action that it should end; ``threading.Event`` implements it."""

    def is_set(self) -> bool:
        """Return whether the action should end."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the action should end, at most ``timeout`` seconds; return the state."""


#: Is called with text that an action prints.
Print = Callable[[str], None]


def silent(text: str) -> None:
    """Drop what is printed."""


class Ended(NamedTuple):
    """The result of a program.

    ``code`` is its exit code, or the negative number of the signal that ended it, or None if it
    could not be ended and still runs. ``why`` is the reason why it was interrupted: ``stop``,
    ``timeout`` or None. ``last_line`` is the last line of its output that is not blank.
    """

    code: int | None
    why: str | None
    seconds: float
    last_line: str


class Content(NamedTuple):
    """The content of a file, and its permissions, such as ``0o644``."""

    data: bytes
    mode: int


class Machine(Protocol):
    """A machine on which programs are run and files are written: this one, or one over SSH.

    It is opened for one attempt of an action, and observes its stop signal. All methods raise
    :class:`applier.errors.ActionFailed` with a sentence if they are refused or stopped, and
    ConnectionError if the connection to the machine is lost.
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
        """Run a program until it has ended; a stop or the time-out ends its process group.

        Its standard output and error are passed to ``output`` in pieces. Its input is empty.
        ``env`` is added to the environment. If it cannot be started, OSError or ValueError is
        raised, or the exit code is 126 or 127.
        """

    def read(self, path: str) -> Content | None:
        """Return a file, or None if it does not exist."""

    def write(self, path: str, data: bytes, mode: int) -> None:
        """Replace a file as a whole, and create missing folders above it."""

    def files(self, folder: str) -> list[str]:
        """List everything below a folder except folders, as paths relative to it."""

    def remove(self, path: str) -> None:
        """Remove a file."""

    def rsync(self, path: str) -> tuple[list[str], str]:
        """Return options and destination for a local rsync that writes to ``path`` there."""


class Machines(Protocol):
    """Opens the machines on which tasks run."""

    def machine(self, address: str | None, stop: StopSignal) -> Machine:
        """Return the machine at ``[user@]host[:port]``, or this machine for None."""

    def simulate(self, node: str, task: str, seconds: float, stop: StopSignal) -> Outcome:
        """Wait for the duration of a task on a simulated node."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionContext:
    """The context of an action: everything that it gets besides its parameters.

    ``cloud`` returns the cloud; it raises ActionFailed for a type that does not declare USES_CLOUD.
    ``output`` is called with text that the action prints. ``options`` has the value of each option
    that the plugin declares, by name, as configured in ``[watcher_actions.TYPE]``. ``name`` is the
    name of the action in the plan. ``machines`` is None for types that say that they use none.
    """

    cloud: Callable[[], Cloud]
    output: Print
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    machines: Machines | None = None

    def run(
        self,
        program: Sequence[str],
        stop: StopSignal,
        *,
        address: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float | None = None,
    ) -> Ended:
        """Run a program as a job, on this machine or on that at ``address``; see Machine.run.

        Its output is recorded. It outlives the applier: if that is killed, the next one calls
        ``execute`` again, in which this call follows the program to its end.
        """
        if self.machines is None:
            raise ActionFailed("no commands can be run here: this action has no machines")
        machine = self.machines.machine(address, stop)
        return machine.run(program, output=self.output, env=env, cwd=cwd, timeout_s=timeout_s)


class ActionPlugin(ABC):
    """Base class of action types; a plugin is one class, registered under ``actionplan.actions``.

    Planners use ``TYPE``, ``SCHEMA``, :meth:`touches`, :meth:`estimate` and :meth:`describe`, which
    are pure. The applier creates an instance for each attempt that it runs.
    """

    #: The name of the action type, as in input documents.
    TYPE: ClassVar[str]
    #: JSON Schema (draft 2020-12) of ``input_parameters``.
    SCHEMA: ClassVar[Mapping[str, Any]]
    #: True if it may be run again after an interrupted attempt without harm.
    RERUN_SAFE: ClassVar[bool] = False
    #: False if it does not count against ``max_workers``, because it only waits (:meth:`waits_s`),
    #: or ends at once.
    TAKES_WORKER: ClassVar[bool] = True
    #: False if it uses no machine: neither ``context.run`` nor ``context.machines``, which is None.
    USES_MACHINES: ClassVar[bool] = True
    #: False if a running action is never told to stop: a cancel waits for its end.
    STOPPABLE: ClassVar[bool] = True
    #: True if it calls ``context.cloud()``. Such actions run only on the cloud that their plan was
    #: made for; others are given no cloud.
    USES_CLOUD: ClassVar[bool] = False
    #: True if :meth:`revert` undoes it; a rollback contains only such actions.
    REVERTIBLE: ClassVar[bool] = False
    #: Options of the section ``[watcher_actions.TYPE]``, besides those that every type has.
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = ()

    def __init__(self, parameters: Mapping[str, Any], context: ActionContext) -> None:
        self.parameters = parameters
        self.context = context

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:  # noqa: ARG003
        """Return the resources that it works on, and its effect on each."""
        return ()

    @classmethod
    def estimate(cls, parameters: Mapping[str, Any]) -> float | None:  # noqa: ARG003
        """Return the expected duration in seconds, or None."""
        return None

    @classmethod
    def runs_on(cls, parameters: Mapping[str, Any]) -> Sequence[str | None]:  # noqa: ARG003
        """Return the addresses of the machines on which it runs commands; None is this machine.

        There, an applier that takes an interrupted action over looks for its commands. If there are
        any machines, an attempt that has run no command yet may be repeated from its beginning.
        """
        return ()

    @classmethod
    def uses_cloud(cls, parameters: Mapping[str, Any]) -> bool:  # noqa: ARG003
        """Return USES_CLOUD, unless it calls another type."""
        return cls.USES_CLOUD

    @classmethod
    def works_outside(cls, parameters: Mapping[str, Any]) -> bool:  # noqa: ARG003
        """Return whether it changes or asks something real outside the cloud."""
        return not cls.USES_CLOUD

    @classmethod
    def options_type(cls, parameters: Mapping[str, Any]) -> str:  # noqa: ARG003
        """Return the action type whose options it uses: its own, unless it calls another type."""
        return cls.TYPE

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a short description: what it does, and to which resource."""
        return f"{cls.TYPE} {parameters.get('resource_id') or ''}".rstrip()

    def precheck(self) -> None:  # noqa: B027
        """Check that the work is necessary and possible, else raise AlreadyDone or ActionFailed."""

    @abstractmethod
    def execute(self, stop: StopSignal) -> Outcome:
        """Do the work; return CHANGED, CREATED or OK, or raise ActionFailed.

        Once ``stop`` is set, it has to end as soon as possible, by raising ActionFailed.
        """

    @classmethod
    def waits_s(cls, parameters: Mapping[str, Any]) -> float | None:  # noqa: ARG003
        """Return the number of seconds that it only waits, or None if it does work.

        An action that only waits is not executed: it uses no thread, holds its tokens, and succeeds
        when the time is over.
        """
        return None

    def abort(self) -> None:  # noqa: B027
        """Make :meth:`execute` end early; called from another thread.

        Called once, after ``stop`` was set. Needed only if :meth:`execute` cannot check ``stop``.
        """

    def verify(self) -> Verified:
        """Check whether the work of an interrupted attempt is done; change nothing."""
        return Verified.IN_DOUBT

    def revert(self, stop: StopSignal) -> Outcome:  # noqa: ARG002
        """Undo the work of :meth:`execute`; raise ActionFailed if that fails or is impossible."""
        raise ActionFailed(f"{self.TYPE} cannot be undone")


#: The action type of the actions in rollback plans.
REVERT = "revert"


class ActionOf(NamedTuple):
    """A reference to an action of another plan: the uuids of plan and action."""

    plan: str
    action: str


class Report(NamedTuple):
    """A change of the state of one action: its start, its end, or a retry.

    ``old`` is the state that the action must still have in the store. From ONGOING to PENDING means
    that an attempt failed and will be retried. ``given_up`` means that its thread hangs; its tokens
    stay held. ``undoes`` is the original action in a rollback, which becomes REVERTED or
    REVERT_FAILED. ``job`` is the job of a worker on another machine: the report of a start offers
    it, the report of an end removes it. ``again`` means that an attempt which FAILED did not do its
    work because its worker was lost: another one follows, whatever the number of retries.
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
    job: JobOffer | None = None
    again: bool = False

    @property
    def starts(self) -> bool:
        """Whether an attempt starts."""
        return self.old is ActionState.PENDING and self.state is ActionState.ONGOING


class Claimant(NamedTuple):
    """The process that runs a plan.

    ``heartbeat_at`` is the time of its last recorded heartbeat, by the clock of its host, and
    ``heartbeat_interval_s`` the seconds between two. ``requests_before`` is the number of the last
    request that was made before it claimed the plan. The store sets the first and the last.
    """

    host: str
    pid: int
    user: str
    heartbeat_at: datetime | None = None
    heartbeat_interval_s: float = 5.0
    requests_before: int = 0


class RequestVerb(StrEnum):
    """The kinds of requests to a running plan."""

    CANCEL = "cancel"
    PAUSE = "pause"
    #: Pause the plan, and leave it to another applier. Only the applier that runs it requests this.
    HAND_BACK = "hand_back"
    #: Skip one action.
    SKIP = "skip"
    #: Stop one running action.
    ABORT = "abort"
    #: Change limits.
    LIMIT = "limit"


class Request(NamedTuple):
    """A request to a running plan, usually by an operator.

    ``verb`` is a :class:`RequestVerb`; an unknown one, which a newer release may have recorded, is
    ignored. ``action`` is the uuid of the action to skip or to abort. ``limits`` maps tokens to new
    limits, and ``max_workers`` to the number of workers. ``number`` counts the requests of a plan
    from 1.
    """

    verb: str
    who: str
    why: str | None = None
    action: str | None = None
    limits: Mapping[str, int] = {}
    number: int = 0
    created_at: datetime | None = None


class HistoryEntry(NamedTuple):
    """A change of a plan: who made it, when and why.

    ``verb`` is what was done or asked for. ``project``, ``address`` and ``request_id`` are known
    of requests over HTTP. ``number`` and ``plan`` are set by the store; the numbers of the entries
    of a plan are in the order of its changes.
    """

    verb: str
    who: str
    at: datetime
    why: str | None = None
    action: str | None = None
    project: str | None = None
    address: str | None = None
    request_id: str | None = None
    number: int = 0
    plan: str = ""


class Listener(Protocol):
    """Is notified of each commit, in the engine's thread. Its methods must not raise."""

    def on_reports(self, reports: Iterable[Report]) -> None:
        """Handle the committed starts and ends of actions."""

    def on_plan(self, state: PlanState, message: str | None) -> None:
        """Handle a committed change of the state of the plan."""
