# SPDX-License-Identifier: Apache-2.0
"""The interface of action types, which are plugins.

The names of OpenStack Watcher for all of this are in doc/how-to/coming-from-watcher.rst.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from applier.contracts.machines import Ended, Machines, Print, StopSignal
from applier.contracts.reports import ActionOf
from applier.errors import ActionFailed
from planner.plan.model import Action, Touch
from planner.plan.states import Outcome

if TYPE_CHECKING:
    from oslo_config import cfg

    from applier.contracts.clouds import Cloud


class Verified(StrEnum):
    """The result of verifying the work of an interrupted action."""

    DONE = "done"
    NOT_DONE = "not done"
    IN_DOUBT = "in doubt"


#: Maps the result for an action to the one for undoing it.
_UNDONE = {
    Verified.DONE: Verified.NOT_DONE,
    Verified.NOT_DONE: Verified.DONE,
    Verified.IN_DOUBT: Verified.IN_DOUBT,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionContext:
    """The context of an action: everything that it gets besides its parameters.

    ``cloud`` returns the cloud; it raises ActionFailed for a type that does not declare USES_CLOUD.
    ``output`` is called with text that the action prints. ``options`` has the value of each option
    that the plugin declares, by name, as configured in ``[watcher_actions.TYPE]``. ``name`` is the
    name of the action in the plan. ``machines`` is None for a type without USES_MACHINES.
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

        Its output is recorded. The program outlives the applier: if the applier is killed, the next
        one calls ``execute`` again, and this call then follows the running program to its end.
        """
        if self.machines is None:
            raise ActionFailed("no commands can be run here: this action has no machines")
        machine = self.machines.machine(address, stop)
        return machine.run(program, output=self.output, env=env, cwd=cwd, timeout_s=timeout_s)


class ActionPlugin(ABC):
    """Base class of action types; a plugin is one class, registered under ``actionplan.actions``.

    Planners use ``TYPE``, ``SCHEMA``, :meth:`touches`, :meth:`estimate` and :meth:`describe`, which
    are pure. The applier creates an instance for each attempt, and to check or verify an action.
    """

    #: The name of the action type, as in input documents.
    TYPE: ClassVar[str]
    #: JSON Schema (draft 2020-12) of ``input_parameters``.
    SCHEMA: ClassVar[Mapping[str, Any]]
    #: The parameter that a step of a rollout may give alone; None if it must write its parameters.
    MAIN: ClassVar[str | None] = None
    #: Parameters that are a path on the machine of the applier, or a list of paths. In a document,
    #: they may be relative to its folder.
    PATHS: ClassVar[Sequence[str]] = ()
    #: True if it may be run again after an interrupted attempt without harm.
    RERUN_SAFE: ClassVar[bool] = False
    #: True if it may run again even while an interrupted attempt may still be at work somewhere: it
    #: follows that work, or both at once do no harm. Else it runs again once that process is gone.
    JOINS_WORK: ClassVar[bool] = False
    #: False if it does not count against ``max_workers``, because it only waits (:meth:`waits_s`),
    #: or ends at once.
    TAKES_WORKER: ClassVar[bool] = True
    #: False if it uses no machine: neither ``context.run`` nor ``context.machines``, which is None.
    USES_MACHINES: ClassVar[bool] = True
    #: False if a cancel or an abort sends a running action no stop signal and waits for its end.
    #: Its time-out sends one nevertheless.
    STOPPABLE: ClassVar[bool] = True
    #: True if it calls ``context.cloud()``. Such actions run only on the cloud that their plan was
    #: made for; for other actions, ``context.cloud()`` raises ActionFailed.
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
        """Return the expected duration in seconds; None if it is not known."""
        return None

    @classmethod
    def runs_on(cls, parameters: Mapping[str, Any]) -> Sequence[str | None]:  # noqa: ARG003
        """Return the addresses of the machines on which it runs commands; None is this machine.

        An applier that takes over an interrupted action looks for its commands there. If there are
        any machines, an attempt that provably has not run its first command is started anew.
        """
        return ()

    @classmethod
    def uses_cloud(cls, parameters: Mapping[str, Any]) -> bool:  # noqa: ARG003
        """Return whether it uses the cloud; for ``revert``, whether the undone type does."""
        return cls.USES_CLOUD

    @classmethod
    def joins_work(cls, parameters: Mapping[str, Any]) -> bool:  # noqa: ARG003
        """Return JOINS_WORK; for ``revert``, that of the undone type."""
        return cls.JOINS_WORK

    @classmethod
    def is_revertible(cls, parameters: Mapping[str, Any]) -> bool:  # noqa: ARG003
        """Return whether an action with these parameters can be undone: by default, REVERTIBLE.

        A type overrides it if the parameters may lack the state to which an undo returns.
        """
        return cls.REVERTIBLE

    @classmethod
    def works_outside(cls, parameters: Mapping[str, Any]) -> bool:  # noqa: ARG003
        """Return whether it changes or reads a real system other than the cloud, such as a node."""
        return not cls.USES_CLOUD

    @classmethod
    def options_type(cls, parameters: Mapping[str, Any]) -> str:  # noqa: ARG003
        """Return the action type whose options it uses; for ``revert``, the type that it undoes."""
        return cls.TYPE

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a short description: what it does, and to which resource."""
        return f"{cls.TYPE} {parameters.get('resource_id') or ''}".rstrip()

    def precheck(self) -> None:  # noqa: B027
        """Check that the work is necessary and possible, else raise AlreadyDone or ActionFailed."""

    def dry_run(self) -> str | None:
        """Look what :meth:`execute` would do, and change nothing; return it as a clause, or None.

        It may run commands that only look, unlike :meth:`precheck`, whose errors it raises as well.
        """
        self.precheck()
        return None

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
        """Check whether the work of an interrupted attempt is done; change nothing.

        An error that it raises counts as IN_DOUBT.
        """
        return Verified.IN_DOUBT

    def revert(self, stop: StopSignal) -> Outcome:  # noqa: ARG002
        """Undo the work of :meth:`execute`; raise ActionFailed if that fails or is impossible."""
        raise ActionFailed(f"{self.TYPE} cannot be undone")

    def verify_revert(self) -> Verified:
        """Check whether the work of an interrupted :meth:`revert` is done; change nothing.

        By default the opposite of :meth:`verify`. A type must override it if its ``verify`` returns
        NOT_DONE for work that still runs: a revert that still runs is not DONE. An error that it
        raises counts as IN_DOUBT.
        """
        return _UNDONE[self.verify()]


#: The action type of the actions in rollback plans.
REVERT = "revert"


def undone_by(action: Action) -> ActionOf | None:
    """Return the action of another plan that an action reverts, or None.

    >>> of = {"undoes": {"plan": "p", "action": "a"}}
    >>> undone_by(Action(uuid="r", action_type="revert", input_parameters=of))
    ActionOf(plan='p', action='a')
    """
    undoes = action.input_parameters.get("undoes") if action.action_type == REVERT else None
    return ActionOf(**undoes) if undoes else None
