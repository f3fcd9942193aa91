# SPDX-License-Identifier: Apache-2.0
"""The errors of the applier.

::

    ApplierError
    ├── ActionFailed          an action ran and could not do its work (raised by plugins)
    ├── JobLost               work was started, and its end is not known
    ├── AlreadyDone           a precheck found nothing left to do (raised by plugins)
    ├── PlanNotFound          no plan, or more than one, matches a reference
    ├── ActionNotFound        the same for an action within a plan
    ├── WorkerNotFound        no worker of this name is registered
    ├── PlanConflict          the plan is in another state than expected, or somebody else runs it
    │   └── RequestsUnread    an operator's request is on record that its claimant has not read
    ├── UnknownActionTypes    a plan has action types that no installed plugin offers
    ├── OtherCloud            a plan was made for another cloud than the configured one
    ├── NoThread              the machine grants no thread that a run needs; nothing has begun
    ├── GuardRefusal          a demand on a plan is not met, such as an approval
    ├── OutOfDate             a saved plan was edited
    │   └── Drift             the cloud has changed since a plan was made
    ├── StoreError            the store cannot be used: unreachable, foreign tables, another version
    ├── DamagedRecord         rows of the store have values that ActionPlan never writes
    │   └── DamagedRows       some of the rows that were asked for; the others can be read
    └── ConfigurationError    an option has an invalid value
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from planner.errors import accepted, shown

Result = TypeVar("Result")


def interrupt_in(error: BaseException | None) -> KeyboardInterrupt | None:
    """Return the KeyboardInterrupt in the chain of an error and its causes; None if it has none.

    Imports, drivers and libraries raise errors of many kinds when they are interrupted.
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error


#: The numbers of the errors of a system that has no more files, processes or memory to give.
_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM})


def shortage_in(error: BaseException) -> str | None:
    """Return what this machine, or this process, has no more of; None for any other error.

    >>> shortage_in(OSError(errno.EMFILE, "Too many open files"))
    'Too many open files'
    """
    if isinstance(error, OSError) and error.errno in _SHORTAGES:
        return error.strerror
    # Python has no error of its own for a thread that the system refuses.
    is_thread = isinstance(error, RuntimeError) and "start new thread" in str(error)
    return "no new thread" if is_thread else None


class ApplierError(Exception):
    """The base class of all errors of the applier.

    The message names the mistake, its place, and the accepted values.
    """


class ActionFailed(ApplierError):
    """The action ran and could not do its work; the message becomes its status message."""


class JobLost(ApplierError, ConnectionError):
    """A command, or work in a cloud, was started, and its end is not known.

    ``is_over`` is True if none of its processes runs any more; if False, it may still run.
    """

    def __init__(self, text: str, *, is_over: bool) -> None:
        self.is_over = is_over
        super().__init__(text)


class AlreadyDone(ApplierError):
    """The work is done already; the action becomes SKIPPED with this message.

    After an interrupted attempt it becomes SUCCEEDED instead.
    """


class PlanNotFound(ApplierError):
    """No plan, or more than one, matches ``reference``; ``candidates`` are those that match."""

    def __init__(self, reference: str, candidates: Iterable[str] = ()) -> None:
        self.reference, self.candidates = reference, tuple(candidates)
        if self.candidates:
            text = (
                f"{reference!r} matches {len(self.candidates)} plans: {', '.join(self.candidates)}"
            )
        elif reference == "last":
            text = "there is no plan; to make one: actionplan create FILE"
        else:
            text = (
                f"no plan {reference!r}; a plan is named by its uuid, a unique beginning of it, "
                "a unique name, 'last', or 'last~1' (see: actionplan list)"
            )
        super().__init__(text)


class ActionNotFound(ApplierError):
    """No action of ``plan``, or more than one, matches ``reference``; None stands for all plans.

    ``known`` are the names of its actions for the message, if they are few enough to be compared.
    """

    def __init__(
        self,
        plan: str | None,
        reference: str,
        candidates: Iterable[str] = (),
        known: Iterable[str] = (),
    ) -> None:
        self.plan, self.reference, self.candidates = plan, reference, tuple(candidates)
        if plan is None:
            text = f"no plan has an action {reference!r}"
        elif self.candidates:
            text = f"{reference!r} matches {len(self.candidates)} actions of plan {plan}: "
            text += ", ".join(self.candidates)
        else:
            names = tuple(known)
            listed = f" (see: actionplan action list {plan})"
            hint = f"; {accepted(reference, names)}" if names else listed
            text = f"plan {plan} has no action {reference!r}{hint}"
        super().__init__(text)


class WorkerNotFound(ApplierError):
    """No worker named ``name`` is registered; the message lists ``known``, those that are."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        workers = tuple(known)
        of_them = f"; {accepted(name, workers)}" if workers else ": none is registered"
        super().__init__(f"there is no worker {name!r}{of_them}")


class PlanConflict(ApplierError):
    """The plan is in another state than expected, or claimed by another; ``state`` is its state."""

    def __init__(self, plan: str, state: str, text: str) -> None:
        self.plan, self.state = plan, state
        super().__init__(text)


class PlanChanged(PlanConflict):
    """The plan was changed after it was looked at, so nothing was written."""

    def __init__(self, plan: str, state: str) -> None:
        text = f"plan {plan[:8]} was changed since: it is {state} now; look at it again"
        super().__init__(plan, state, text)


class RequestsUnread(PlanConflict):
    """A request of an operator waits for the claimant to read it, so nothing was written."""


class UnknownActionTypes(ApplierError):
    """A plan cannot run here: no plugin offers the action types ``names``."""

    def __init__(self, plan: str, names: Iterable[str], known: Iterable[str]) -> None:
        self.plan, self.names, self.known = plan, tuple(sorted(names)), tuple(sorted(known))
        super().__init__(
            f"plan {plan} needs action types that no plugin offers: {', '.join(self.names)}. "
            f"Known: {', '.join(self.known) or 'none'}"
        )


class OtherCloud(ApplierError):
    """A plan cannot run here: it was made for the cloud ``own``, and ``configured`` is another."""

    def __init__(self, plan: str, own: str, configured: str) -> None:
        self.plan, self.own, self.configured = plan, own, configured
        super().__init__(
            f"plan {plan[:8]} was made for the cloud {own!r}, and {configured!r} is configured: "
            "make a new plan, or use the configuration of the cloud that it was made for"
        )


class OutOfDate(ApplierError):
    """A saved plan was edited, or the cloud has changed since a plan was made."""


class Difference(NamedTuple):
    """What differs in the cloud from what a plan was made for, about an instance or a host.

    ``resource`` is its name. ``planned`` and ``now`` are the host of an instance, or the state of a
    host; None for what was not planned, or is not there.
    """

    detail: str
    resource: str
    planned: str | None = None
    now: str | None = None


class Drift(OutOfDate):
    """The cloud has changed since a plan was made."""

    def __init__(self, plan: str, differences: Sequence[Difference]) -> None:
        self.plan, self.differences = plan, tuple(differences)
        super().__init__(
            f"plan {plan[:8]} is out of date: make a new one, "
            "or run it nevertheless with --accept-drift"
        )


class NoThread(ApplierError):
    """The machine grants no thread that a run needs. Nothing has begun."""

    def __init__(self, what: str, reason: object) -> None:
        super().__init__(f"no thread can be started for {what}: {reason}; nothing has begun")


class GuardRefusal(ApplierError):
    """A plan may not run: a demand of its own, or of the configuration, is not met."""

    def __init__(self, plan: str, text: str) -> None:
        self.plan = plan
        super().__init__(text)


class StoreError(ApplierError):
    """The store cannot be used; the message names the cause, and the remedy if there is one."""


class DamagedRecord(ApplierError):
    """Rows of the store have values that ActionPlan never writes; ``mistakes`` lists them."""

    def __init__(self, what: str, mistakes: Iterable[str]) -> None:
        self.mistakes = tuple(f"{what} is damaged: {mistake}" for mistake in mistakes)
        super().__init__("; ".join(shown(self.mistakes)))


class DamagedRow(NamedTuple):
    """A damaged row: its name, what is wrong with it, and the values of its other columns."""

    name: str
    why: str
    values: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.name} is damaged: {self.why}"


class DamagedRows(DamagedRecord):
    """Some of the rows that a method of the store returns are damaged.

    ``rows`` are these; ``sound`` is what the method would return without them.
    """

    def __init__(self, rows: Sequence[DamagedRow], sound: Any) -> None:
        self.rows, self.sound = tuple(rows), sound
        self.mistakes = tuple(map(str, rows))
        ApplierError.__init__(self, "; ".join(shown(self.mistakes)))


def sound_part(read: Callable[[], Result]) -> tuple[Result, Sequence[DamagedRow]]:
    """Return what a method of the store returns without damaged rows, and the damaged rows.

    For whoever shows rows to people. Whoever decides by them needs all of them.
    """
    try:
        return read(), ()
    except DamagedRows as damaged:
        return damaged.sound, damaged.rows


class ConfigurationError(ApplierError):
    """An option has an invalid value; the message names it and the accepted values.

    ``mistakes`` lists all mistakes of the file that the message names, if there are several.
    """

    def __init__(self, text: str, mistakes: Iterable[object] = ()) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(text)
