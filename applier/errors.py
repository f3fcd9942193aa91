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
    ├── UnknownActionTypes    a plan has action types that no installed plugin offers
    ├── OtherCloud            a plan was made for another cloud than the configured one
    ├── GuardRefusal          what a plan demands before it may run does not hold
    ├── OutOfDate             the plan or the cloud is not as planned any more
    ├── StoreError            the store cannot be used: unreachable, foreign tables, another version
    ├── DamagedRecord         rows of the store cannot be what ActionPlan wrote
    └── ConfigurationError    an option has an invalid value
"""

from __future__ import annotations

from collections.abc import Iterable

from planner.errors import accepted, shown


def interrupt_in(error: BaseException | None) -> KeyboardInterrupt | None:
    """Return the KeyboardInterrupt that an error is, or that led to it, else None.

    Imports, drivers and libraries raise errors of many kinds when they are interrupted.
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error


class ApplierError(Exception):
    """The base class of all errors of the applier.

    The message says what is wrong, where it is, and what is accepted.
    """


class ActionFailed(ApplierError):
    """The action ran and could not do its work; the message becomes its status message."""


class JobLost(ApplierError, ConnectionError):
    """A command, or work in a cloud, was started, and its end is not known.

    ``is_over`` says that nothing of it runs any more; otherwise it may still run.
    """

    def __init__(self, text: str, *, is_over: bool) -> None:
        self.is_over = is_over
        super().__init__(text)


class AlreadyDone(ApplierError):
    """The work is done already; the action becomes SKIPPED, and the message says why."""


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
                "a unique name, or 'last' (see: actionplan list)"
            )
        super().__init__(text)


class ActionNotFound(ApplierError):
    """No action of the plan, or more than one, matches ``reference``; None: of any plan."""

    def __init__(self, plan: str | None, reference: str, candidates: Iterable[str] = ()) -> None:
        self.plan, self.reference, self.candidates = plan, reference, tuple(candidates)
        if plan is None:
            text = f"no plan has an action {reference!r}"
        elif self.candidates:
            text = f"{reference!r} matches {len(self.candidates)} actions of plan {plan}: "
            text += ", ".join(self.candidates)
        else:
            text = f"plan {plan} has no action {reference!r} (see: actionplan action list {plan})"
        super().__init__(text)


class WorkerNotFound(ApplierError):
    """No worker is called ``name``."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        workers = tuple(known)
        of_them = f"; {accepted(name, workers)}" if workers else ": none is registered"
        super().__init__(f"there is no worker {name!r}{of_them}")


class PlanConflict(ApplierError):
    """Somebody else changed or claimed the plan meanwhile; ``state`` is its current state."""

    def __init__(self, plan: str, state: str, text: str) -> None:
        self.plan, self.state = plan, state
        super().__init__(text)


class RequestsUnread(PlanConflict):
    """An operator requested something that the claimant has not read yet."""


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
    """A saved plan whose content was changed, or a plan that the cloud does not fit any more."""


class GuardRefusal(ApplierError):
    """A plan may not run: what it, or the configuration, demands before that does not hold."""

    def __init__(self, plan: str, text: str) -> None:
        self.plan = plan
        super().__init__(text)


class StoreError(ApplierError):
    """The store cannot be used; the message says why, and what the user can do."""


class DamagedRecord(ApplierError):
    """Rows of the store cannot be what ActionPlan wrote; ``mistakes`` lists what is wrong."""

    def __init__(self, what: str, mistakes: Iterable[str]) -> None:
        self.mistakes = tuple(f"{what} is damaged: {mistake}" for mistake in mistakes)
        super().__init__("; ".join(shown(self.mistakes)))


class ConfigurationError(ApplierError):
    """An option has an invalid value; the message names it and says what is accepted.

    ``mistakes`` lists all mistakes of the file that the message names, if there are several.
    """

    def __init__(self, text: str, mistakes: Iterable[object] = ()) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(text)
