# SPDX-License-Identifier: Apache-2.0
"""Runs a plan in this process: signals, progress, events, recap, exit code."""

from __future__ import annotations

import logging
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from applier.assembly import now
from applier.cli.exit_codes import OF_PLANS, PAUSED, REFUSED
from applier.cli.reporters.progress_lines import Progress, ProgressLines
from applier.cli.terminal import lasting, patient
from applier.cli.verb import Verb, refused
from applier.contracts import Listener, Report
from applier.engines import recorder
from applier.errors import DamagedRecord, PlanConflict, StoreError
from applier.operations import refusals
from applier.operations.creation import SetOptions
from applier.wording import planned_and_taken
from planner.errors import InvalidTransition
from planner.plan.model import ActionPlan
from planner.plan.states import ActionState, PlanState

if TYPE_CHECKING:
    from applier.run.runner import Runner


@contextmanager
def opened(verb: Verb, path: str) -> Iterator[TextIO]:
    """Open the file to which events are appended; raises ConfigurationError if that fails.

    For ``-``, yield standard output, whose writes raise OSError if they fail. The verb then writes
    its own output to standard error, until that fails.
    """
    if path == "-":
        out = patient(verb.app.stdout)
        verb.app.stdout = lasting(verb.app.stderr)
        yield out
        return
    with refused(f"--events {path} cannot be written"):
        file = Path(path).open("a", encoding="ascii", newline="\n")  # noqa: SIM115 - closed below
    try:
        yield file
    finally:
        # What could not be written, the writer of the lines has told; it is still in the buffer.
        with suppress(OSError):
            file.close()


#: The logger with warnings about traces that could not be sent.
_MONITORING_LOG = logging.getLogger("applier.monitoring")
#: Names of signals in the record.
_SIGNALS = {
    signal.SIGINT: "SIGINT (Ctrl-C)",
    signal.SIGTERM: "SIGTERM",
    signal.SIGHUP: "SIGHUP (the terminal went away)",
}


#: Added to the message when the record failed before any action started.
NOTHING_RAN = "Nothing has run"


class _Starts(Listener):
    """Sets ``seen`` once any action has started: it runs only after its start was committed."""

    seen = False

    def on_reports(self, reports: Iterable[Report]) -> None:
        self.seen = self.seen or any(r.state is ActionState.ONGOING for r in reports)

    def on_plan(self, state: PlanState, message: str | None) -> None:
        """Ignore the state of the plan."""


def run(
    verb: Verb,
    plan: ActionPlan,
    settings: SetOptions,
    events: TextIO | None = None,
    reason: str | None = None,
) -> int:
    """Run a stored plan until it stops; return the exit code. Its events are written to ``events``.

    Raises PlanConflict if another process runs it. Standard output must be a stream that does not
    fail when the terminal goes away, so that the run continues.
    """
    told: deque[str] = deque(maxlen=1)
    with warnings_sent_to(_MONITORING_LOG, told.append), verb.session.traced():
        code = _run(verb, plan, settings, events, reason)
    # Below the recap: while the plan runs, only the progress display writes to the terminal.
    for text in told:
        verb.note(text)
    return code


def _run(
    verb: Verb,
    plan: ActionPlan,
    settings: SetOptions,
    events: TextIO | None,
    reason: str | None,
) -> int:
    """Run a plan, show its progress and a recap; return the exit code."""
    session, store = verb.session, verb.session.store
    shown, starts = progress_of(verb, plan, at=now()), _Starts()
    listeners: list[Listener] = [starts, shown]
    if events is not None:
        from applier.notifications.schema import EventLines

        listeners.append(EventLines(plan, events, clock=now, tell=shown.tell))
    runner = session.runner(
        listeners=listeners,
        on_failure=settings.on_failure,
        max_workers=settings.max_workers,
        reason=reason,
        tell=shown.tell,
    )
    with signals(runner, plan, shown.tell), warnings_sent_to(recorder.LOG, shown.tell):
        try:
            _queue(verb, plan)
            with shown:
                state = runner.run(plan.uuid)
        except (PlanConflict, InvalidTransition) as reason:
            raise refusals.already_running(store, plan.uuid) or reason from reason
        except (StoreError, DamagedRecord) as reason:
            if starts.seen and isinstance(reason, DamagedRecord):
                raise  # it was no write that failed: the end is on record
            ran = f"What ran of plan {plan.uuid[:8]} has ended; its end is not on record"
            raise StoreError(f"{reason}. {ran if starts.seen else NOTHING_RAN}") from reason
    try:
        code = recap(verb, store.load_plan(plan.uuid), runner.planned_s())
    except (StoreError, DamagedRecord) as reason:
        ended = f"Plan {plan.uuid[:8]} is {state}, on record"
        verb.note(f"{ended}; its recap cannot be read: {reason}")
        code = OF_PLANS.get(state, REFUSED)
    if state is PlanState.FAILED:
        _undo(verb, plan, events)
    return code


def _undo(verb: Verb, plan: ActionPlan, events: TextIO | None) -> None:
    """Run the plan that undoes one which FAILED, if the configuration says so."""
    from applier.run import rolling_back

    who = verb.operator.name
    made = rolling_back.undoing(verb.session, plan.uuid, who=who, tell=verb.say)
    if made is not None:
        _run(verb, made, SetOptions(), events, rolling_back.OPTION)


def recap(verb: Verb, plan: ActionPlan, planned_s: float | None) -> int:
    """Show the recap of a stored plan that has stopped; return the exit code.

    ``planned_s`` is None if it is not known. Raises StoreError or DamagedRecord.
    """
    from applier.cli.reporters import recap
    from applier.operations import last_run

    took_s = last_run.taken_s(verb.session.store, plan)
    recap.show(plan, took_s, verb.app.stdout)
    if planned_s is not None:
        verb.say(f"{planned_and_taken(planned_s, took_s).capitalize()}.")
    for line in last_run.next_steps(plan):
        verb.say(line)
    return exit_code(plan)


def exit_code(plan: ActionPlan) -> int:
    """Return the exit code for a plan that has stopped."""
    if any(a.state is ActionState.UNKNOWN for a in plan.actions):
        return PAUSED
    return OF_PLANS.get(plan.state, REFUSED)


def progress_of(
    verb: Verb,
    plan: ActionPlan,
    *,
    at: datetime,
    first: datetime | None = None,
) -> Progress:
    """Return the display of progress: a block on a terminal, otherwise lines.

    ``at`` is the time now. If the run began before, ``first`` is the time of its first start.
    """
    if verb.on_terminal and os.environ.get("TERM") != "dumb":
        from applier.cli.reporters.progress_block import ProgressBlock

        return ProgressBlock(plan, verb.app.stdout, at=at, first=first)
    return ProgressLines(plan, verb.app.stdout, at=at, first=first)


def _queue(verb: Verb, plan: ActionPlan) -> None:
    """Make a plan PENDING; if another process did so meanwhile, do nothing: the claim decides."""
    store = verb.session.store
    if plan.state is PlanState.PENDING and plan.start_at is None:
        return
    try:
        # ``apply`` starts it now, even if it was to start at a later time.
        store.start_plan(plan.uuid, None, now=now(), history=verb.entry("start"))
    except (PlanConflict, InvalidTransition):
        if store.load_plan(plan.uuid).state is not PlanState.PENDING:
            raise


class _Teller(logging.Handler):
    """A log handler that calls a function with each message of level WARNING or above."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Call the function with the message."""
        self._tell(record.getMessage())


@contextmanager
def warnings_sent_to(log: logging.Logger, tell: Callable[[str], None]) -> Iterator[None]:
    """Call ``tell`` with each warning and error that ``log`` receives inside the block."""
    handler, before = _Teller(tell), log.level
    log.addHandler(handler)
    # Without --verbose, the program sets the root logger to CRITICAL, which would drop warnings.
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


@contextmanager
def signals(runner: Runner, plan: ActionPlan, tell: Callable[[str], None]) -> Iterator[None]:
    """Handle signals while the plan runs: the first pauses it, the second cancels it at once.

    SIGHUP never cancels: when a terminal goes away, both it and its shell may send one. Signals
    that were ignored when the program started (``nohup``) stay ignored.
    """
    seen: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        if seen and number == signal.SIGHUP:
            return
        seen.append(number)
        name = signal.Signals(number).name
        if len(seen) == 1:
            runner.pause(_SIGNALS[signal.Signals(number)])
            what = "nodes that have begun finish" if plan.places else "running actions end"
            tell(f"{name}: pausing; {what}. Press again to cancel the plan.")
        elif len(seen) == 2:
            runner.cancel(_SIGNALS[signal.Signals(number)])
            tell(f"{name}: cancelling; running actions are told to stop.")
        else:
            tell(
                f"{name}: still waiting for running actions; kill -9 {os.getpid()} leaves "
                "them in doubt."
            )

    heeded = [n for n in _SIGNALS if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
