# SPDX-License-Identifier: Apache-2.0
"""Undo an action of another type; rollback plans consist of such actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from applier.actions import schemas
from applier.actions.parameters import one_line, text
from applier.contracts import ActionPlugin, StopSignal, Verified
from applier.errors import ActionFailed
from planner.errors import PlannerError
from planner.making.registry import ActionTypes
from planner.plan.model import Effect, Touch
from planner.plan.states import Outcome

#: Maps the effect of the original action on a resource to the effect of undoing it.
_REVERSED = {
    Effect.USES: Effect.USES,
    Effect.LEAVES: Effect.ENTERS,
    Effect.ENTERS: Effect.LEAVES,
    Effect.TAKES_DOWN: Effect.BRINGS_UP,
    Effect.BRINGS_UP: Effect.TAKES_DOWN,
    Effect.DISABLES: Effect.ENABLES,
    Effect.ENABLES: Effect.DISABLES,
}
_TYPES = ActionTypes()


def _of_undone(method: str, otherwise: Any) -> Any:
    """Return a class method that asks the original type; ``otherwise`` if it is not installed."""

    def asked(_: type[Revert], parameters: Mapping[str, Any]) -> Any:
        undone, given = _undone(parameters)
        return otherwise if undone is None else getattr(undone, method)(given)

    return classmethod(asked)


class Revert(ActionPlugin):
    """Undo an action of another type, given its type and its parameters.

    ``actionplan rollback`` makes plans of such actions. The other type must be REVERTIBLE.
    """

    TYPE = "revert"
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {
            "action_type": {**schemas.TEXT, "description": "type of the action to undo"},
            "parameters": {"type": "object", "description": "parameters of that action"},
        },
        optional={
            "undoes": {
                "type": "object",
                "description": "the action to undo, by uuid; it becomes REVERTED",
                "required": ["plan", "action"],
                "properties": {"plan": schemas.TEXT, "action": schemas.TEXT},
                "additionalProperties": False,
            }
        },
        examples=[
            {
                "action_type": "change_nova_service_state",
                "parameters": {"resource_id": "compute-1", "state": "disabled"},
            }
        ],
    )

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:
        """Return the touches of the original action, with the opposite effects."""
        undone, given = _undone(parameters)
        if undone is None:
            return ()
        return [Touch(t.resource, _REVERSED[t.effect]) for t in undone.touches(given)]

    estimate = _of_undone("estimate", None)
    runs_on = _of_undone("runs_on", ())
    uses_cloud = _of_undone("uses_cloud", True)
    joins_work = _of_undone("joins_work", False)
    works_outside = _of_undone("works_outside", True)

    @classmethod
    def options_type(cls, parameters: Mapping[str, Any]) -> str:
        return text(parameters, "action_type") or cls.TYPE

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        undone, given = _undone(parameters)
        if undone is None:
            return one_line(f"undo {text(parameters, 'action_type') or 'an action'}")
        return one_line(f"undo: {undone.describe(given)}")

    def precheck(self) -> None:
        self._work()

    def execute(self, stop: StopSignal) -> Outcome:
        self._running = self._work()
        return self._running.revert(stop)

    def abort(self) -> None:
        if self._running is not None:
            self._running.abort()

    def verify(self) -> Verified:
        return self._work().verify_revert()

    #: The original action while it is being undone.
    _running: ActionPlugin | None = None

    def _work(self) -> ActionPlugin:
        undone, given = _undone(self.parameters)
        name = self.parameters["action_type"]
        if undone is None:
            raise ActionFailed(f"nothing can be undone: no action type {name!r} can be used here")
        if not undone.is_revertible(given):
            raise ActionFailed(f"{name} cannot be undone")
        return undone(given, self.context)


def _undone(parameters: Mapping[str, Any]) -> tuple[type[ActionPlugin] | None, Mapping[str, Any]]:
    """Return type and parameters of the original action; the type is None if not installed."""
    name, given = text(parameters, "action_type"), parameters.get("parameters")
    if name is None or name == Revert.TYPE:
        return None, {}
    try:
        found = _TYPES[name]
    except PlannerError:
        return None, {}
    plugin = found if isinstance(found, type) and issubclass(found, ActionPlugin) else None
    return plugin, given if isinstance(given, Mapping) else {}
