"""Calls one action plugin in a worker, and turns whatever comes of it into a report."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from taskflow import task

from applier.contracts import Action as ActionPlugin
from applier.contracts import ActionContext, Cloud, Report
from applier.errors import ActionFailed, AlreadyDone
from planner.model import Action
from planner.states import ActionState, Outcome

LOG = logging.getLogger(__name__)

#: How much of an action's output is kept: the last bytes of it, as UTF-8.
KEPT_BYTES = 64 * 1024
#: How long a message may be before its end is cut off.
_MESSAGE_LENGTH = 2000
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
        """Add to the end; what does not fit any more is dropped at the beginning."""
        chunk = text[-self._kept :].encode(errors="replace")
        with self._lock:
            self._bytes += chunk
            if len(self._bytes) > 2 * self._kept:  # not at each write: that would copy each time
                del self._bytes[: -self._kept]

    def text(self) -> str | None:
        """Give what was kept, or None if nothing was printed."""
        with self._lock:
            kept = bytes(self._bytes[-self._kept :])
        return kept.decode(errors="ignore") or None


class ActionTask(task.Task):
    """Runs one action; :meth:`execute` is called in a worker, and gives a report, always.

    Made by copying, because the constructor reads signatures, and costs twenty times as much.
    """

    action: Action
    plugin: type[ActionPlugin]
    cloud: Callable[[], Cloud]
    options: Mapping[str, Any]
    stop: threading.Event

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
        return Report(
            uuid=self.action.uuid,
            old=ActionState.ONGOING,
            state=state,
            outcome=outcome,
            message=message and message[:_MESSAGE_LENGTH],
            output=output.text(),
        )

    def _perform(self, output: Output) -> tuple[ActionState, Outcome | None, str | None]:
        if self.stop.is_set():
            return ActionState.CANCELLED, None, "aborted before it began"
        context = ActionContext(cloud=self.cloud, output=output.write, options=self.options)
        try:
            work = self.plugin(self.action.input_parameters, context)
            work.precheck()
            outcome: object = work.execute(self.stop)
        except AlreadyDone as reason:
            return ActionState.SKIPPED, Outcome.OK, str(reason) or "there was nothing to do"
        except ActionFailed as reason:
            if self.stop.is_set():
                return ActionState.CANCELLED, None, f"aborted: {reason}"
            return ActionState.FAILED, Outcome.FAILED, str(reason) or "it gave no reason"
        if isinstance(outcome, Outcome) and outcome in _DONE:
            return ActionState.SUCCEEDED, outcome, None
        name = f"{self.plugin.__module__}.{self.plugin.__qualname__}"
        message = f"{name} returned {outcome!r}: accepted is an Outcome, {', '.join(sorted(_DONE))}"
        return ActionState.FAILED, Outcome.ERROR, f"{message}; failure is raised"


class JoinTask(task.Task):
    """Stands where n x m links would; no worker ever sees it."""

    def execute(self) -> None:
        """Do nothing."""


_ACTION_TASK = ActionTask("action")
_JOIN_TASK = JoinTask("join")


def task_maker(
    actions: Iterable[Action],
    plugins: Mapping[str, type[ActionPlugin]],
    *,
    cloud: Callable[[], Cloud],
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> Callable[[str], task.Task]:
    """Give the function that makes the task for an action's uuid, or for the name of a join.

    ``plugins`` and ``options`` go by action type. An action whose type has no plugin (a plan's own
    join) gets the task of a join.
    """
    known = {a.uuid: a for a in actions if a.action_type in plugins}

    def make(name: str) -> task.Task:
        action = known.get(name)
        made = (_JOIN_TASK if action is None else _ACTION_TASK).copy(retain_listeners=False)
        made.name = name
        if action is not None:
            made.action, made.plugin, made.cloud = action, plugins[action.action_type], cloud
            made.options = (options or {}).get(action.action_type, {})
            made.stop = threading.Event()
        return made

    return make
