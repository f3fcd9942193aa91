"""Move a volume to another pool, or give it another type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from applier.actions import schemas
from applier.actions.parameters import one_line, resource, text, touch
from applier.contracts import ActionPlugin, StopSignal, Verified
from applier.errors import ActionFailed, AlreadyDone
from planner.model import Touch
from planner.states import Outcome

#: What each way of migrating changes: the parameter that names it, its field in a volume, the verb.
_WAYS = {
    "migrate": ("destination_node", "pool", "move"),
    "retype": ("destination_type", "type", "retype"),
    "swap": ("destination_type", "type", "swap"),
}


class VolumeMigrate(ActionPlugin):
    """Move a volume to the pool ``destination_node`` (migrate), or make it ``destination_type``.

    ``retype`` changes the volume, ``swap`` puts a new one of that type in its place. It can be
    undone where ``source_node`` or ``source_type`` says how it was.
    """

    TYPE = "volume_migrate"
    #: What is there already is found by the precheck.
    RERUN_SAFE = True
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
                "properties": {"destination_node": {"type": "string"}},
            },
            "else": {
                "required": ["destination_type"],
                "properties": {"destination_type": {"type": "string"}},
            },
        },
    )

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:
        """The volume."""
        return touch("volume", text(parameters, "resource_id"))

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Say ``move volume db-1-data to fast``."""
        way = text(parameters, "migration_type") or ""
        key, _, verb = _WAYS.get(way, _WAYS["migrate"])
        name, destination = resource(parameters, ""), text(parameters, key)
        words = f"{verb} volume {name}" if name else f"{verb} a volume"
        return one_line(f"{words} to {destination}" if destination else words)

    def precheck(self) -> None:
        """Done if it is gone or there already."""
        key, field, _ = _WAYS[self.parameters["migration_type"]]
        name, destination = resource(self.parameters, "volume"), self.parameters[key]
        volume = self.context.cloud().volume(self.parameters["resource_id"])
        if volume is None:
            raise AlreadyDone(f"volume {name} does not exist any more")
        if volume[field] == destination:
            raise AlreadyDone(f"the {field} of {name} is {destination} already")

    def execute(self, stop: StopSignal) -> Outcome:
        """Move or retype it; the cloud refuses a pool or type that it has not."""
        key, field, _ = _WAYS[self.parameters["migration_type"]]
        destination = self.parameters[key]
        pool, volume_type = (destination, None) if field == "pool" else (None, destination)
        self.context.cloud().migrate_volume(self.parameters["resource_id"], pool, volume_type, stop)
        return Outcome.CHANGED

    def verify(self) -> Verified:
        """Look where it is, or of which type."""
        key, field, _ = _WAYS[self.parameters["migration_type"]]
        volume = self.context.cloud().volume(self.parameters["resource_id"])
        if volume is None:
            return Verified.IN_DOUBT
        return Verified.DONE if volume[field] == self.parameters[key] else Verified.NOT_DONE

    def revert(self, stop: StopSignal) -> Outcome:
        """Move or retype it back to where it is said to have been."""
        key, field, _ = _WAYS[self.parameters["migration_type"]]
        before = self.parameters.get(key.replace("destination", "source"))
        name = resource(self.parameters, "volume")
        if before is None:
            raise ActionFailed(f"nobody said which {field} {name} had before")
        volume = self.context.cloud().volume(self.parameters["resource_id"])
        if volume is not None and volume[field] == before:
            return Outcome.OK
        pool, volume_type = (before, None) if field == "pool" else (None, before)
        self.context.cloud().migrate_volume(self.parameters["resource_id"], pool, volume_type, stop)
        return Outcome.CHANGED
