"""Runs a plan in this process: signals, progress, recap, exit code."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Protocol

from applier.cli import claim
from applier.cli.reporters.lines import Lines
from applier.cli.session import now
from applier.cli.set_options import SetOptions
from applier.cli.verb import FAILED, PAUSED, REFUSED, Verb
from applier.contracts import Listener
from applier.errors import PlanConflict, StoreError
from planner.errors import InvalidTransition
from planner.model import ActionPlan
from planner.states import ActionState, PlanState

if TYPE_CHECKING:
    from applier.run.runner import Runner

EXIT_CODES = {
    PlanState.SUCCEEDED: 0,
    PlanState.FAILED: FAILED,
    PlanState.PAUSED: PAUSED,
    PlanState.CANCELLED: PAUSED,
}
#: Who stops a plan, as the record names it.
_SIGNALS = {
    signal.SIGINT: "SIGINT (Ctrl-C)",
    signal.SIGTERM: "SIGTERM",
    signal.SIGHUP: "SIGHUP (the terminal went away)",
}


class Watcher(Listener, Protocol):
    """What shows how far a plan has come; a context manager."""

    def __enter__(self) -> Watcher: ...

    def __exit__(self, *_: object) -> None: ...

    def tell(self, text: str) -> None:
        """Say what a signal brought about, inside its handler, or what became of the record."""


def run(verb: Verb, plan: ActionPlan, settings: SetOptions, workers: int) -> int:
    """Run a plan that is kept; returns the exit code.

    Whoever comes second is refused with PlanConflict. The program's output must be one that
    outlives a terminal that goes away: the run is not to break for that.
    """
    from applier.cli.reporters import recap

    session, store = verb.session, verb.session.store
    out = verb.app.stdout
    shown = watcher(verb, plan)
    runner = session.assembly.runner(
        listeners=[shown], on_failure=settings.on_failure, max_workers=workers
    )
    began = time.monotonic()
    with signals(runner, shown.tell), lapses(shown.tell):
        try:
            _queue(verb, plan)
            with shown:
                runner.run(plan.uuid)
        except (PlanConflict, InvalidTransition) as reason:
            raise claim.taken(store, plan.uuid) or reason from reason
        except StoreError as reason:
            text = f"{reason}. What ran of plan {plan.uuid[:8]} has ended; its end is not on record"
            raise StoreError(text) from reason
    plan = store.load_plan(plan.uuid)
    recap.show(plan, time.monotonic() - began, out)
    for line in recap.next_steps(plan):
        verb.say(line)
    return exit_code(plan)


def exit_code(plan: ActionPlan) -> int:
    """Give the exit code for a plan that has stopped."""
    if any(a.state is ActionState.UNKNOWN for a in plan.actions):
        return PAUSED
    return EXIT_CODES.get(plan.state, REFUSED)


def watcher(verb: Verb, plan: ActionPlan) -> Watcher:
    """Give what shows how far a plan has come: a block on a terminal, else lines."""
    if verb.on_terminal and os.environ.get("TERM") != "dumb":
        from applier.cli.reporters.block import Block

        return Block(plan, verb.app.stdout)
    return Lines(plan, verb.app.stdout)


def _queue(verb: Verb, plan: ActionPlan) -> None:
    """Make a plan PENDING; that somebody else did so in between is no harm: one will claim it."""
    store = verb.session.store
    if plan.state is PlanState.PENDING:
        return
    try:
        store.move_plan(plan.uuid, PlanState.PENDING, now=now())
    except (PlanConflict, InvalidTransition):
        if store.load_plan(plan.uuid).state is not PlanState.PENDING:
            raise


class _Teller(logging.Handler):
    """Tells what is logged."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Tell the sentence."""
        self._tell(record.getMessage())


@contextmanager
def lapses(tell: Callable[[str], None]) -> Iterator[None]:
    """Tell when the record is away, and when it is there again: nothing goes on meanwhile."""
    from applier.recording import store_retry

    handler, before = _Teller(tell), store_retry.LOG.level
    store_retry.LOG.addHandler(handler)
    # Nothing below is logged unless it was asked for.
    store_retry.LOG.setLevel(logging.INFO)
    try:
        yield
    finally:
        store_retry.LOG.removeHandler(handler)
        store_retry.LOG.setLevel(before)


@contextmanager
def signals(runner: Runner, tell: Callable[[str], None]) -> Iterator[None]:
    """Let the first signal pause the plan, the second cancel it, while it runs.

    A hang-up never cancels: of one that goes away, both the terminal and its shell may tell.
    Signals that whoever started the program wants ignored (``nohup``) stay so.
    """
    seen: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        if seen and number == signal.SIGHUP:
            return
        seen.append(number)
        name = signal.Signals(number).name
        if len(seen) == 1:
            runner.pause(_SIGNALS[signal.Signals(number)])
            tell(f"{name}: pausing; what runs ends. Once more cancels the plan.")
        elif len(seen) == 2:
            runner.cancel(_SIGNALS[signal.Signals(number)])
            tell(f"{name}: cancelling; what runs is told to stop.")
        else:
            tell(f"{name}: still waiting for what runs; kill -9 {os.getpid()} leaves it in doubt.")

    heeded = [n for n in _SIGNALS if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
