"""Everything that applying refuses or cannot do.

::

    ApplierError
    ├── ActionFailed          an action ran and could not do its work (raised by plugins)
    ├── AlreadyDone           a precheck found nothing left to do (raised by plugins)
    ├── PlanNotFound          no plan, or more than one, fits what was asked for
    ├── ActionNotFound        the same for an action within a plan
    ├── PlanConflict          the plan is not in the state that was expected, or another claims it
    ├── UnknownActionTypes    a plan with action types that no plugin here offers
    ├── StoreError            the record cannot be used: unreachable, not ours, of another version
    └── ConfigurationError    an option that cannot be used
"""

from __future__ import annotations

from collections.abc import Iterable


class ApplierError(Exception):
    """Applying refused; the message says what, where and what is accepted."""


class ActionFailed(ApplierError):
    """The action ran and could not do its work; the message becomes its status message."""


class AlreadyDone(ApplierError):
    """Nothing is left to do; the action is SKIPPED, and the message says why."""


class PlanNotFound(ApplierError):
    """Nothing, or more than one plan, fits ``reference``; ``candidates`` are those that do."""

    def __init__(self, reference: str, candidates: Iterable[str] = ()) -> None:
        self.reference, self.candidates = reference, tuple(candidates)
        if self.candidates:
            text = f"{reference!r} fits {len(self.candidates)} plans: {', '.join(self.candidates)}"
        elif reference == "last":
            text = "there is no plan; to make one: actionplan create FILE"
        else:
            text = (
                f"no plan {reference!r}; a plan is named by its uuid, a unique beginning of it, "
                "a unique name, or 'last' (see: actionplan list)"
            )
        super().__init__(text)


class ActionNotFound(ApplierError):
    """No action of the plan, or more than one, fits ``reference``."""

    def __init__(self, plan: str, reference: str, candidates: Iterable[str] = ()) -> None:
        self.plan, self.reference, self.candidates = plan, reference, tuple(candidates)
        if self.candidates:
            text = f"{reference!r} fits {len(self.candidates)} actions of plan {plan}: "
            text += ", ".join(self.candidates)
        else:
            text = f"plan {plan} has no action {reference!r} (see: actionplan action list {plan})"
        super().__init__(text)


class PlanConflict(ApplierError):
    """Somebody else changed or claimed the plan in between; ``state`` is what it is now."""

    def __init__(self, plan: str, state: str, text: str) -> None:
        self.plan, self.state = plan, state
        super().__init__(text)


class UnknownActionTypes(ApplierError):
    """A plan cannot run here: no plugin offers the action types ``names``."""

    def __init__(self, plan: str, names: Iterable[str], known: Iterable[str]) -> None:
        self.plan, self.names, self.known = plan, tuple(sorted(names)), tuple(sorted(known))
        super().__init__(
            f"plan {plan} needs action types that no plugin offers: {', '.join(self.names)}. "
            f"Known: {', '.join(self.known) or 'none'}"
        )


class StoreError(ApplierError):
    """The record cannot be used; the message says why and what would help."""


class ConfigurationError(ApplierError):
    """An option cannot be used; the message names it and says what is accepted.

    ``mistakes`` are those of the file that it names, where they are many.
    """

    def __init__(self, text: str, mistakes: Iterable[object] = ()) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(text)
