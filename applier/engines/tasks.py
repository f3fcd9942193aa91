# SPDX-License-Identifier: Apache-2.0
"""Calls an action plugin in a worker, and turns every result into a report."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from taskflow import task

from applier import log_fields
from applier.contracts import ActionPlugin, Report, Verified
from applier.engines.environment import ActionEnvironment, ActionOutput
from applier.errors import ActionFailed, AlreadyDone, JobLost
from applier.scheduling.failures import timeout_s
from applier.scheduling.interrupted import in_doubt
from applier.secret_values import NO_SECRETS, BlottedOutput, Blotting, resolve
from applier.store.worker_jobs import StopReason
from planner.plan.model import JOIN, Action
from planner.plan.states import ActionState, Outcome, StateReason

if TYPE_CHECKING:
    from applier.machines.open_machines import AttemptMachines

LOG = logging.getLogger(__name__)

#: Longer messages are cut off after this many characters.
_MESSAGE_LENGTH = 2000
#: The state reason of an action that ran, for states that need one.
_REASONS = {
    ActionState.SKIPPED: StateReason.ALREADY_DONE,
    ActionState.CANCELLED: StateReason.ABORTED,
}
_DONE = frozenset({Outcome.CHANGED, Outcome.CREATED, Outcome.OK})
#: The attempts that threads of this process are at work on: uuids of actions, by id of the task.
_AT_WORK: dict[int, str] = {}


def is_at_work_here(action: str) -> bool:
    """Return whether a thread of this process is at work on an attempt of an action."""
    return action in list(_AT_WORK.values())


class _Ending(NamedTuple):
    """How an attempt ended; ``given_up`` is true if a command of it may still run."""

    state: ActionState
    outcome: Outcome | None = None
    message: str | None = None
    given_up: bool = False


class ActionTask(task.Task):
    """Runs one action; a worker calls :meth:`execute`, which always returns a report.

    ``waits_s`` is the duration of an action that only waits; it is not executed. ``limit_s`` is the
    time-out. ``cut_off`` is true if an earlier attempt was interrupted, so that its effect is not
    known. ``attempt`` counts from 1. ``continued_s`` is None, or how many seconds ago another
    applier started a command of this attempt, which goes on. ``broke`` is true if this attempt
    ended with the outcome ``error``. Tasks are made by :func:`task_maker`.
    """

    action: Action
    plugin: type[ActionPlugin]
    environment: ActionEnvironment
    stop: threading.Event
    waits_s: float | None
    limit_s: float | None
    cut_off: bool
    attempt: int
    continued_s: float | None
    machines: AttemptMachines | None = None
    timed_out = False
    broke = False
    work: ActionPlugin | None = None
    blotting = NO_SECRETS

    def renew(self) -> None:
        """Prepare the task for another attempt."""
        self.cut_off = self.cut_off or self.broke
        self.stop, self.timed_out, self.work = threading.Event(), False, None
        self.attempt, self.continued_s, self.machines = self.attempt + 1, None, None
        self.blotting = NO_SECRETS

    def permit(self) -> bool:
        """Write the permit with which the attempt may begin, before its start is recorded.

        An applier that takes the plan over can then prove that the attempt has not begun. Only
        actions for which :func:`needs_permit` is true have one. Return False if it cannot be
        written.
        """
        if self.waits_s is not None or not needs_permit(self.action, self.plugin):
            return True
        self.machines = self.environment.machines_of(self.action, self.attempt)
        return self.machines is None or self.machines.permit()

    def stop_for(self, why: StopReason) -> None:
        """Set the stop signal; after a time-out, :meth:`execute` verifies the effect."""
        self.timed_out = self.timed_out or why is StopReason.TIMEOUT
        self.stop.set()

    def let_go(self) -> None:
        """Leave the commands of the attempt running when its stop signal is set from now on."""
        if self.machines is not None:
            self.machines.let_go()

    def forget(self) -> None:
        """Remove the jobs of the attempt, whose end is on record."""
        if self.machines is not None:
            self.machines.forget()

    def abort(self) -> None:
        """Call the plugin's abort, if the plugin has been created."""
        if self.work is not None:
            with log_fields.about(action=self.action.uuid):
                try:
                    self.work.abort()
                except BaseException:  # noqa: BLE001
                    # A plugin may raise anything. Only execute reports the end of the action.
                    LOG.error(
                        "Action %s: its abort raised an unexpected error\n%s",
                        self.action.uuid,
                        self.blotting(traceback.format_exc()),
                    )

    def execute(self) -> Report:
        """Run the action and return its report; write to no store, and raise nothing.

        The log lines of the plugin carry the uuid of the action.
        """
        _AT_WORK[id(self)] = self.action.uuid
        try:
            with log_fields.about(action=self.action.uuid):
                return self._executed()
        finally:
            del _AT_WORK[id(self)]

    def _executed(self) -> Report:
        output = ActionOutput()
        try:
            end = self._perform(output)
        except BaseException as error:  # noqa: BLE001
            # A plugin may raise anything, even SystemExit. Caught here, it fails only this action;
            # if it ended the worker, the action would stay ONGOING for ever.
            LOG.error(
                "Action %s (%s) raised an unexpected error\n%s",
                self.action.uuid,
                self.action.action_type,
                self.blotting(traceback.format_exc()),
            )
            text = "".join(traceback.format_exception_only(error)).strip()
            end = _Ending(ActionState.FAILED, Outcome.ERROR, text)
        if self.timed_out and end.state is ActionState.FAILED:
            end = self._look(end.message)
        message = end.message and self.blotting(end.message)
        self.broke = end.outcome is Outcome.ERROR
        return Report(
            uuid=self.action.uuid,
            old=ActionState.ONGOING,
            state=end.state,
            outcome=end.outcome,
            state_reason=_REASONS.get(end.state),
            message=message and message[:_MESSAGE_LENGTH],
            output=output.text(),
            given_up=end.given_up,
        )

    def _perform(self, output: ActionOutput) -> _Ending:
        if self.machines is None:
            self.machines = self.environment.machines_of(self.action, self.attempt)
        if self.stop.is_set():
            return self._stopped(None)
        try:
            parameters, self.blotting = resolve(self.action.input_parameters, self.plugin.SCHEMA)
        except ActionFailed as reason:
            if self.continued_s is not None:
                text = f"{reason}; its command goes on; {in_doubt(self.action.label)}"
                return _Ending(ActionState.UNKNOWN, None, text, given_up=True)
            return _Ending(ActionState.FAILED, Outcome.FAILED, str(reason))
        if self.blotting is NO_SECRETS:
            return self._run(parameters, output.write)
        written = BlottedOutput(self.blotting, output.write)
        try:
            return self._run(parameters, written)
        finally:
            written.close()

    def _run(self, parameters: Mapping[str, Any], output: Callable[[str], None]) -> _Ending:
        context = self.environment.context(self.action, output, self.machines)
        try:
            work = self.work = self.plugin(parameters, context)
            if self.continued_s is None:
                self._precheck(work)
            outcome: object = work.execute(self.stop)
        except AlreadyDone as reason:
            if self.cut_off:
                return self._done_before(str(reason))
            text = str(reason) or "there was nothing to do"
            return _Ending(ActionState.SKIPPED, Outcome.OK, text)
        except ActionFailed as reason:
            if self.stop.is_set():
                return self._stopped(str(reason))
            return _Ending(ActionState.FAILED, Outcome.FAILED, str(reason) or "it gave no reason")
        except JobLost as lost:
            return self._job_lost(lost)
        if outcome is Outcome.OK and self.cut_off:
            return self._done_before("it found nothing to do")
        if isinstance(outcome, Outcome) and outcome in _DONE:
            return _Ending(ActionState.SUCCEEDED, outcome)
        name = f"{self.plugin.__module__}.{self.plugin.__qualname__}"
        message = f"{name} returned {outcome!r}: accepted is an Outcome, {', '.join(sorted(_DONE))}"
        return _Ending(ActionState.FAILED, Outcome.ERROR, f"{message}; failure is raised")

    def _precheck(self, work: ActionPlugin) -> None:
        if self.machines is None:
            return work.precheck()
        self.machines.is_prechecking = True
        try:
            work.precheck()
        finally:
            self.machines.is_prechecking = False

    def _stopped(self, reason: str | None) -> _Ending:
        """Return the result of a stopped attempt; ``reason`` is None if it had not begun."""
        if self.continued_s is not None:
            try:
                self._end_continued()
            except (ActionFailed, OSError) as error:
                text = f"{error}; its command may still run there; {in_doubt(self.action.label)}"
                return _Ending(ActionState.UNKNOWN, None, text, given_up=True)
            reason = reason or "its command was ended"
        if self.timed_out:
            return _Ending(ActionState.FAILED, Outcome.FAILED, reason or "before it began")
        how = "aborted before it began" if reason is None else f"aborted: {reason}"
        return _Ending(ActionState.CANCELLED, None, how)

    def _end_continued(self) -> None:
        """End the command of another applier, which this attempt may not have reached yet.

        Raises ActionFailed if it goes on, ActionFailed or OSError if its machine is not reached.
        """
        if self.machines is None:
            return
        on = self.plugin.runs_on(self.action.input_parameters)
        places = list(dict.fromkeys((None, *on)))
        self.machines.end(places)
        for job in self.machines.find(places):
            if job.is_running:
                raise ActionFailed(f"a stop did not end it: {job}")

    def _job_lost(self, lost: JobLost) -> _Ending:
        """Return the result of an attempt with a command whose end is not known."""
        found = Verified.IN_DOUBT
        if self.work is not None:
            found = verified(self.work.verify, self.blotting)
        if found is Verified.DONE:
            text = f"{lost}; verified: its work is done"
            return _Ending(ActionState.SUCCEEDED, Outcome.CHANGED, text)
        if lost.is_over and (found is Verified.NOT_DONE or self.plugin.RERUN_SAFE):
            if self.stop.is_set():
                return self._stopped(str(lost))
            return _Ending(ActionState.FAILED, Outcome.ERROR, str(lost))
        text = f"{lost}; {in_doubt(self.action.label)}"
        return _Ending(ActionState.UNKNOWN, None, text, given_up=not lost.is_over)

    def _done_before(self, reason: str) -> _Ending:
        message = f"an interrupted attempt had done it: {reason}"
        return _Ending(ActionState.SUCCEEDED, Outcome.CHANGED, message)

    def _look(self, message: str | None) -> _Ending:
        """Return the result of an attempt that timed out, after its plugin verified the effect."""
        found = Verified.NOT_DONE
        if self.work is not None:
            found = verified(self.work.verify, self.blotting)
        text = f"timed out after {self.limit_s or 0:g} s"
        if found is Verified.DONE:
            text = f"{text}; verified: its work is done"
            return _Ending(ActionState.SUCCEEDED, Outcome.CHANGED, text)
        if found is Verified.IN_DOUBT:
            return _Ending(ActionState.UNKNOWN, None, f"{text}; {in_doubt(self.action.label)}")
        return _Ending(ActionState.FAILED, Outcome.ERROR, f"{text}: {message}")


def verified(look: Callable[[], Verified], blotting: Blotting) -> Verified:
    """Return the result of ``look``, a plugin's verify; IN_DOUBT if it raises an error."""
    try:
        found = look()
    except BaseException:  # noqa: BLE001
        # A plugin may raise anything, even SystemExit.
        trace = blotting(traceback.format_exc())
        LOG.error("An action cannot be verified\n%s", trace)
        return Verified.IN_DOUBT
    return found if isinstance(found, Verified) else Verified.IN_DOUBT


class JoinTask(task.Task):
    """The task of a join, which replaces n x m links by n + m. It is not executed."""

    def execute(self) -> None:
        """Do nothing."""


# Tasks are copies of these two: to make one inspects its class, which takes thirty times as long.
_ACTION_TASK, _JOIN_TASK = ActionTask("action"), JoinTask("join")


def needs_permit(action: Action, plugin: type[ActionPlugin]) -> bool:
    """Return whether attempts need a permit: they run commands that must not run twice."""
    return not plugin.RERUN_SAFE and bool(plugin.runs_on(action.input_parameters))


def waits_s(action: Action, plugin: type[ActionPlugin]) -> float | None:
    """Return the duration of an action that only waits, in seconds; None if it does work."""
    try:
        seconds = plugin.waits_s(action.input_parameters)
    except BaseException:
        # A plugin may raise anything. Its execution will report the problem.
        LOG.exception(
            "Action %s (%s): waits_s raised an unexpected error", action.uuid, action.action_type
        )
        return None
    return seconds if seconds is not None and seconds >= 0 else None


def workerless(actions: Iterable[Action], plugins: Mapping[str, type[ActionPlugin]]) -> set[str]:
    """Return the uuids of actions that do not count against ``max_workers``."""
    return {
        action.uuid
        for action in actions
        if (plugin := plugins.get(action.action_type)) is not None and not plugin.TAKES_WORKER
    }


def only_waiting(actions: Iterable[Action], plugins: Mapping[str, type[ActionPlugin]]) -> set[str]:
    """Return the uuids of actions that only wait, for which no worker is needed anywhere."""
    return {
        action.uuid
        for action in actions
        if action.action_type != JOIN
        and (plugin := plugins.get(action.action_type)) is not None
        and waits_s(action, plugin) is not None
    }


def task_maker(
    actions: Iterable[Action],
    environment: ActionEnvironment,
    cut_off: Collection[str] = (),
    continued: Mapping[str, float] | None = None,
) -> Callable[[str], Any]:
    """Return a function that makes a task, given the uuid of an action or the name of a join.

    An action without a plugin, which is a join of the plan, gets a JoinTask. ``cut_off`` are the
    uuids of actions whose last attempt was interrupted before it reported its end. ``continued``
    are attempts that go on: how many seconds ago each was started, by uuid of its action.
    """
    going_on = continued or {}
    plugins = environment.plugins
    known = {a.uuid: a for a in actions if a.action_type in plugins}

    def make(name: str) -> Any:
        action = known.get(name)
        made: Any = (_JOIN_TASK if action is None else _ACTION_TASK).copy(retain_listeners=False)
        made.name = name
        if action is not None:
            made.action, made.plugin = action, plugins[action.action_type]
            made.environment, made.stop = environment, threading.Event()
            waits = waits_s(action, made.plugin)
            made.waits_s = None if waits is None else waits / environment.pace
            made.limit_s = timeout_s(action, environment.policies)
            made.cut_off = name in cut_off
            made.continued_s = going_on.get(name)
            made.attempt = action.attempts + (name not in going_on)
        return made

    return make
