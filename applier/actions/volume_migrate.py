# SPDX-License-Identifier: Apache-2.0
"""Move a volume to another pool, or change its type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from applier.actions import schemas
from applier.actions.cloud_states import StateChange
from applier.actions.parameters import one_line, resource, text, touch
from applier.contracts import StopSignal
from applier.errors import ActionFailed, AlreadyDone
from planner.plan.model import Touch
from planner.plan.states import Outcome
from planner.schemas import ranges

#: Maps ``migration_type`` to: the parameter with the new value, the changed field of the volume,
#: the verb in descriptions.
_WAYS = {
    "migrate": ("destination_node", "pool", "move"),
    "retype": ("destination_type", "type", "retype"),
    "swap": ("destination_type", "type", "swap"),
}


class VolumeMigrate(StateChange):
    """Move a volume to the pool ``destination_node``, or change its type to ``destination_type``.

    ``migrate`` moves it, ``retype`` changes the type of the volume, ``swap`` replaces it by a new
    one of that type. To be undone it needs ``source_node`` or ``source_type``. In OpenStack a pool
    is ``HOST@BACKEND#POOL``, ``swap`` is the same as ``retype``, and neither can be stopped.
    """

    TYPE = "volume_migrate"
    REVERTIBLE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {
            "resource_id": {**schemas.UUID, "description": "UUID of the volume"},
            "migration_type": {"enum": ["swap", "retype", "migrate"]},
        },
        optional={
            "destination_node": {**schemas.TEXT_OR_NULL, "description": "pool, for migrate"},
            "destination_type": {**schemas.TEXT_OR_NULL, "description": "for retype and swap"},
            "source_node": {**schemas.TEXT_OR_NULL, "description": "pool before, to undo it"},
            "source_type": {**schemas.TEXT_OR_NULL, "description": "type before, to undo it"},
            "resource_name": schemas.RESOURCE_NAME,
        },
        examples=[
            {
                "resource_id": "7b2e0001-0000-4000-8000-000000000001",
                "resource_name": "db-1-data",
                "migration_type": "migrate",
                "destination_node": "fast",
            },
            {
                "resource_id": "7b2e0001-0000-4000-8000-000000000001",
                "migration_type": "retype",
                "destination_type": "ssd",
            },
        ],
        **{
            "if": {"properties": {"migration_type": {"const": "migrate"}}},
            "then": {
                "required": ["destination_node"],
                "properties": {"destination_node": ranges.ARGUMENT},
            },
            "else": {
                "required": ["destination_type"],
                "properties": {"destination_type": ranges.ARGUMENT},
            },
        },
    )

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:
        return touch("volume", text(parameters, "resource_id"))

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        way = text(parameters, "migration_type") or ""
        key, _, verb = _WAYS.get(way, _WAYS["migrate"])
        name, destination = resource(parameters, ""), text(parameters, key)
        words = f"{verb} volume {name}" if name else f"{verb} a volume"
        return one_line(f"{words} to {destination}" if destination else words)

    def precheck(self) -> None:
        """Leave a task that runs to :meth:`execute`, an unknown pool or type to the cloud."""
        name, wanted, volume = resource(self.parameters, "volume"), self._wanted(), self._known()
        if volume is None:
            raise AlreadyDone(f"volume {name} does not exist any more")
        if self._has(volume, wanted):
            raise AlreadyDone(f"the {self._field()} of {name} is {wanted} already")

    def revert(self, stop: StopSignal) -> Outcome:
        """Move or retype the volume back to ``source_node`` or ``source_type``."""
        if self._before() is not None and self._known() is None:
            name, gone = resource(self.parameters, "volume"), "it does not exist any more"
            raise ActionFailed(f"{name} cannot have its earlier {self._field()}: {gone}")
        return super().revert(stop)

    @classmethod
    def is_revertible(cls, parameters: Mapping[str, Any]) -> bool:
        return _before(parameters) is not None

    def _key(self) -> str:
        return _WAYS[self.parameters["migration_type"]][0]

    def _field(self) -> str:
        return _WAYS[self.parameters["migration_type"]][1]

    def _known(self) -> Mapping[str, Any] | None:
        return self.context.cloud().volume(self.parameters["resource_id"])

    def _has(self, known: Mapping[str, Any], state: str) -> bool:
        return bool(known[self._field()] == state and known["task"] is None)

    def _wanted(self) -> Any:
        return self.parameters[self._key()]

    def _before(self) -> str | None:
        return _before(self.parameters)

    def _change(self, state: str, stop: StopSignal) -> None:
        pool, volume_type = (state, None) if self._field() == "pool" else (None, state)
        self.context.cloud().migrate_volume(
            self.parameters["resource_id"], pool, volume_type, stop, self.context.output
        )


def _before(parameters: Mapping[str, Any]) -> str | None:
    """Return the earlier pool or type; None if the parameters do not have it."""
    key = _WAYS.get(text(parameters, "migration_type") or "", ("",))[0]
    return text(parameters, key.replace("destination", "source"))
