# SPDX-License-Identifier: Apache-2.0
"""Says which cloud a plan works on, and whether anything real is touched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner.model import JOIN, ActionPlan

#: The cloud of this release.
NAME = "simulated"
#: Action types that work on the cloud alone, or on nothing. All others may touch what is real.
_IN_THE_CLOUD = frozenset(
    {
        *("migrate", "resize", "stop", "shelve", "delete", "create_instance", "delete_instance"),
        *("change_nova_service_state", "change_node_power_state", "volume_migrate"),
        *("turn_host_to_acpi_s3_state", "nop", "sleep", "pause", "anchor", "skipped", JOIN),
    }
)
#: Action types that do nothing real on a node without an address: such a node is simulated.
_ON_NODES = frozenset({"shell", "puppet", "sync", "upload_file", "copy_files", "reboot"})


def cloud_of(plan: ActionPlan) -> str:
    """Return the cloud of a plan, and which of its action types touch something real.

    >>> cloud_of(ActionPlan(uuid="u", planner="weight", actions=()))
    'simulated: nothing real is touched'
    """
    real = sorted({name for action in plan.actions for name in _real(*_done(action))})
    but = f", except by {', '.join(real)}" if real else ""
    return f"{NAME}: nothing real is touched{but}"


def _done(action: Any) -> tuple[str, Mapping[str, Any]]:
    """Return the type and the parameters of an action, or of the action that it undoes."""
    kind, given = action.action_type, action.input_parameters
    if kind == "revert":
        return str(given.get("action_type")), given.get("parameters") or {}
    return kind, given


def _real(kind: str, given: Mapping[str, Any]) -> Iterator[str]:
    is_simulated_node = kind in _ON_NODES and given.get("node") and not given.get("address")
    if kind not in _IN_THE_CLOUD and not is_simulated_node:
        yield kind
