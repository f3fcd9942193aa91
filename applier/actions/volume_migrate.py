# SPDX-License-Identifier: Apache-2.0
"""Move a volume to another pool, or change its type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from applier.actions import schemas
from applier.actions.parameters import one_line, resource, text, touch
from applier.contracts import ActionPlugin, StopSignal, Verified
from applier.errors import ActionFailed, AlreadyDone
from planner import ranges
from planner.model import Touch
from planner.states import Outcome

#: Maps ``migration_type`` to: the parameter with the new value, the changed field of the volume,
#: the verb in descriptions.
_WAYS = {
    "migrate": ("destination_node", "pool", "move"),
    "retype": ("destination_type", "type", "retype"),
    "swap": ("destination_type", "type", "swap"),
}


class VolumeMigrate(ActionPlugin):
    """Move a volume to the pool ``destination_node``, or change its type to ``destination_type``.

    ``migrate`` moves it, ``retype`` changes the type of the volume, ``swap`` replaces it by a new
    one of that type. To be undone it needs ``source_node`` or ``source_type``. In OpenStack a pool
    is ``HOST@BACKEND#POOL``, ``swap`` is the same as ``retype``, and neither can be stopped.
    """

    TYPE = "volume_migrate"
    USES_CLOUD = True
    USES_MACHINES = False
    #: True, because the precheck finds that the volume has been moved or retyped.
    RERUN_SAFE = True
    JOINS_WORK = True
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
        """Return the volume."""
        return touch("volume", text(parameters, "resource_id"))

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``move volume db-1-data to fast``."""
        way = text(parameters, "migration_type") or ""
        key, _, verb = _WAYS.get(way, _WAYS["migrate"])
        name, destination = resource(parameters, ""), text(parameters, key)
        words = f"{verb} volume {name}" if name else f"{verb} a volume"
        return one_line(f"{words} to {destination}" if destination else words)

    def precheck(self) -> None:
        """Raise AlreadyDone if the volume is gone, or has the pool or type and no task runs on it.

        A task that runs is left to :meth:`execute`, which waits for its end.
        """
        key, field, _ = _WAYS[self.parameters["migration_type"]]
        name, destination = resource(self.parameters, "volume"), self.parameters[key]
        volume = self.context.cloud().volume(self.parameters["resource_id"])
        if volume is None:
            raise AlreadyDone(f"volume {name} does not exist any more")
        if volume[field] == destination and volume["task"] is None:
            raise AlreadyDone(f"the {field} of {name} is {destination} already")

    def execute(self, stop: StopSignal) -> Outcome:
        """Move or retype the volume; the cloud refuses an unknown pool or type."""
        key, field, _ = _WAYS[self.parameters["migration_type"]]
        destination = self.parameters[key]
        pool, volume_type = (destination, None) if field == "pool" else (None, destination)
        self.context.cloud().migrate_volume(
            self.parameters["resource_id"], pool, volume_type, stop, self.context.output
        )
        return Outcome.CHANGED

    def verify(self) -> Verified:
        """Compare the pool or type of the volume with the requested one.

        While a task runs on the volume, return NOT_DONE: another attempt follows that task.
        """
        key, field, _ = _WAYS[self.parameters["migration_type"]]
        volume = self.context.cloud().volume(self.parameters["resource_id"])
        if volume is None:
            return Verified.IN_DOUBT
        done = volume[field] == self.parameters[key] and volume["task"] is None
        return Verified.DONE if done else Verified.NOT_DONE

    def revert(self, stop: StopSignal) -> Outcome:
        """Move or retype the volume back to ``source_node`` or ``source_type``."""
        _, field, _ = _WAYS[self.parameters["migration_type"]]
        before = self._before()
        name = resource(self.parameters, "volume")
        if before is None:
            raise ActionFailed(f"the earlier {field} of {name} is not on record")
        volume = self.context.cloud().volume(self.parameters["resource_id"])
        if volume is None:
            raise ActionFailed(
                f"{name} cannot have its earlier {field}: it does not exist any more"
            )
        if volume[field] == before and volume["task"] is None:
            return Outcome.OK
        pool, volume_type = (before, None) if field == "pool" else (None, before)
        self.context.cloud().migrate_volume(
            self.parameters["resource_id"], pool, volume_type, stop, self.context.output
        )
        return Outcome.CHANGED

    def verify_revert(self) -> Verified:
        """Compare the pool or type of the volume with ``source_node`` or ``source_type``.

        While a task runs on the volume, return NOT_DONE: another attempt follows that task.
        """
        _, field, _ = _WAYS[self.parameters["migration_type"]]
        before = self._before()
        volume = self.context.cloud().volume(self.parameters["resource_id"])
        if volume is None:
            return Verified.IN_DOUBT
        done = before is not None and volume[field] == before and volume["task"] is None
        return Verified.DONE if done else Verified.NOT_DONE

    def _before(self) -> str | None:
        """Return the earlier pool or type; None if it is not on record."""
        key, _, _ = _WAYS[self.parameters["migration_type"]]
        return text(self.parameters, key.replace("destination", "source"))
