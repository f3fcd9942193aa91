# SPDX-License-Identifier: Apache-2.0
"""Calls one action plugin in a worker, and turns every result into a report."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from taskflow import task
from taskflow.types import notifier

from applier.contracts import ActionPlugin, Report, Verified
from applier.engines.environment import ActionEnvironment
from applier.errors import ActionFailed, AlreadyDone
from applier.scheduling.resumption import in_doubt
from applier.scheduling.type_policy import timeout_s
from planner.model import Action
from planner.states import ActionState, Outcome, StateReason

LOG = logging.getLogger(__name__)

#: How much of an action's output is kept: the last bytes of it, as UTF-8.
KEPT_BYTES = 64 * 1024
#: How long a message may be before its end is cut off.
_MESSAGE_LENGTH = 2000
#: Why a task that ran ended so.
_REASONS = {
    ActionState.SKIPPED: StateReason.ALREADY_DONE,
    ActionState.CANCELLED: StateReason.ABORTED,
}
_DONE = frozenset({Outcome.CHANGED, Outcome.CREATED, Outcome.OK})


class Output:
    """Keeps the end of what an action prints, in bounded memory. Threads may share it.

    >>> output = Output(kept=8)
    >>> output.write("one, two, "); output.write("three")
    >>> output.text()
    'o, three'
    """

    def __init__(self, kept: int = KEPT_BYTES) -> None:
        self._kept = kept
        self._bytes = bytearray()
        self._lock = threading.Lock()

    def write(self, text: str) -> None:
        """Append text; drop the oldest if there is too much."""
        chunk = text[-self._kept :].encode(errors="replace")
        with self._lock:
            self._bytes += chunk
            if len(self._bytes) > 2 * self._kept:  # not at each write: that would copy each time
                del self._bytes[: -self._kept]

    def text(self) -> str | None:
        """Return the kept text; None if nothing was printed."""
        with self._lock:
            kept = bytes(self._bytes[-self._kept :])
        return kept.decode(errors="ignore") or None


_Ending = tuple[ActionState, Outcome | None, str | None]


class ActionTask(task.Task):
    """Runs one action; :meth:`execute` is called in a worker, and gives a report, always.

    ``waits_s`` is for how long it does nothing but wait (it is not executed then), ``limit_s``
    after how long it is told to stop. ``cut_off`` says that of an attempt before this one nobody
    knows what it did. Made by :func:`_like`.
    """

    action: Action
    plugin: type[ActionPlugin]
    environment: ActionEnvironment
    stop: threading.Event
    waits_s: float | None
    limit_s: float | None
    cut_off: bool
    timed_out = False
    broke = False
    work: ActionPlugin | None = None

    def renew(self) -> None:
        """Make it ready for another attempt."""
        self.cut_off = self.cut_off or self.broke
        self.stop, self.timed_out, self.work = threading.Event(), False, None

    def time_out(self) -> None:
        """Tell it to stop because its time is over; its end is verified afterwards."""
        self.timed_out = True
        self.stop.set()

    def abort(self) -> None:
        """Call the plugin's abort, where there is anything to abort."""
        if self.work is not None:
            try:
                self.work.abort()
            except BaseException:
                # A plugin may raise anything; its end is told by execute alone.
                LOG.exception("Action %s: abort broke", self.action.uuid)

    def execute(self) -> Report:
        """Do the action; touches no store and raises nothing."""
        output = Output()
        try:
            state, outcome, message = self._perform(output)
        except BaseException as error:
            # A plugin may raise anything, SystemExit too; here it costs its own action only, while
            # one that got past the worker would leave the action running for ever.
            LOG.exception("Action %s (%s) broke", self.action.uuid, self.action.action_type)
            state, outcome = ActionState.FAILED, Outcome.ERROR
            message = "".join(traceback.format_exception_only(error)).strip()
        if self.timed_out and state is ActionState.FAILED:
            state, outcome, message = self._look(message)
        self.broke = outcome is Outcome.ERROR
        return Report(
            uuid=self.action.uuid,
            old=ActionState.ONGOING,
            state=state,
            outcome=outcome,
            state_reason=_REASONS.get(state),
            message=message and message[:_MESSAGE_LENGTH],
            output=output.text(),
        )

    def _perform(self, output: Output) -> _Ending:
        if self.stop.is_set():
            return self._stopped(None)
        context = self.environment.context(self.action, output.write)
        try:
            work = self.work = self.plugin(self.action.input_parameters, context)
            work.precheck()
            outcome: object = work.execute(self.stop)
        except AlreadyDone as reason:
            if self.cut_off:
                return self._done_before(str(reason))
            return ActionState.SKIPPED, Outcome.OK, str(reason) or "there was nothing to do"
        except ActionFailed as reason:
            if self.stop.is_set():
                return self._stopped(str(reason))
            return ActionState.FAILED, Outcome.FAILED, str(reason) or "it gave no reason"
        if outcome is Outcome.OK and self.cut_off:
            return self._done_before("it found nothing to do")
        if isinstance(outcome, Outcome) and outcome in _DONE:
            return ActionState.SUCCEEDED, outcome, None
        name = f"{self.plugin.__module__}.{self.plugin.__qualname__}"
        message = f"{name} returned {outcome!r}: accepted is an Outcome, {', '.join(sorted(_DONE))}"
        return ActionState.FAILED, Outcome.ERROR, f"{message}; failure is raised"

    def _stopped(self, reason: str | None) -> _Ending:
        """Return the end of an attempt that was told to stop; no reason: before it began."""
        if self.timed_out:
            return ActionState.FAILED, Outcome.FAILED, reason or "before it began"
        how = "aborted before it began" if reason is None else f"aborted: {reason}"
        return ActionState.CANCELLED, None, how

    def _done_before(self, reason: str) -> _Ending:
        message = f"an attempt that was cut off had done it: {reason}"
        return ActionState.SUCCEEDED, Outcome.CHANGED, message

    def _look(self, message: str | None) -> _Ending:
        """Return the end of an attempt that timed out: what its plugin can verify decides."""
        found = verified(self.work.verify) if self.work is not None else Verified.NOT_DONE
        text = f"timed out after {self.limit_s or 0:g} s"
        if found is Verified.DONE:
            return ActionState.SUCCEEDED, Outcome.CHANGED, f"{text}; verified: its work is done"
        if found is Verified.IN_DOUBT:
            return ActionState.UNKNOWN, None, f"{text}; {in_doubt(self.action)}"
        return ActionState.FAILED, Outcome.ERROR, f"{text}: {message}"


def verified(look: Callable[[], Verified]) -> Verified:
    """Ask a plugin whether its work is done; whatever it raises means IN_DOUBT."""
    try:
        found = look()
    except BaseException:
        # A plugin may raise anything, SystemExit too.
        LOG.exception("An action cannot be verified")
        return Verified.IN_DOUBT
    return found if isinstance(found, Verified) else Verified.IN_DOUBT


class JoinTask(task.Task):
    """Replaces n x m links by n + m; no worker executes it."""

    def execute(self) -> None:
        """Do nothing."""


_ACTION_TASK = ActionTask("action")
_JOIN_TASK = JoinTask("join")


def _like(other: task.Task, name: str) -> Any:
    """Make another task of the same class, with a name and a notifier of its own.

    The constructor would read the signatures of the class, which takes twenty times as long.
    """
    made = object.__new__(type(other))
    own = notifier.RestrictedNotifier(task.Task.TASK_EVENTS)
    made.__dict__.update(other.__dict__, name=name, _notifier=own)
    return made


def waits_s(action: Action, plugin: type[ActionPlugin]) -> float | None:
    """Return for how many seconds an action only waits; None if it does work."""
    try:
        seconds = plugin.waits_s(action.input_parameters)
    except BaseException:
        # A plugin may raise anything; executed, it will say what the matter is.
        LOG.exception("Action %s (%s): waits_s broke", action.uuid, action.action_type)
        return None
    return seconds if seconds is not None and seconds >= 0 else None


def workerless(actions: Iterable[Action], plugins: Mapping[str, type[ActionPlugin]]) -> set[str]:
    """Return the uuids of actions that do not count against ``max_workers``."""
    return {
        action.uuid
        for action in actions
        if (plugin := plugins.get(action.action_type)) is not None and not plugin.TAKES_WORKER
    }


def task_maker(
    actions: Iterable[Action], environment: ActionEnvironment, cut_off: Collection[str] = ()
) -> Callable[[str], task.Task]:
    """Return the function that makes the task for an action's uuid, or for the name of a join.

    An action whose type has no plugin (a plan's own join) gets the task of a join. ``cut_off`` are
    the uuids of actions whose last attempt was interrupted before it reported its end.
    """
    plugins = environment.plugins
    known = {a.uuid: a for a in actions if a.action_type in plugins}

    def make(name: str) -> task.Task:
        action = known.get(name)
        made = _like(_JOIN_TASK if action is None else _ACTION_TASK, name)
        if action is not None:
            made.action, made.plugin = action, plugins[action.action_type]
            made.environment, made.stop = environment, threading.Event()
            waits = waits_s(action, made.plugin)
            made.waits_s = None if waits is None else waits / environment.pace
            made.limit_s = timeout_s(action, environment.policies)
            made.cut_off = name in cut_off
        return made

    return make
