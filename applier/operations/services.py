# SPDX-License-Identifier: Apache-2.0
"""Which applier services may run a plan that waits."""

from __future__ import annotations

from collections.abc import Iterator

from applier.assembly import now
from applier.errors import sound_part
from applier.operations import claim
from applier.store import Service, ServiceStore
from applier.wording import ago
from planner.model import ActionPlan


def present(store: ServiceStore, cloud: str | None = None) -> list[Service]:
    """List the services whose process is not known to be gone, latest heartbeat first.

    Damaged ones, which ``service list`` names, are left out. With the name of a cloud, those that
    are configured for another are left out, too.
    """
    from applier.run import liveness

    services, _ = sound_part(store.services)
    there = [service for service in services if not liveness.is_gone(service)]
    return [s for s in there if cloud is None or s.cloud == cloud]


def nobody_present(store: ServiceStore) -> str:
    """Return the beginning of a sentence about a plan for which no service is present."""
    return f"No applier service{' for its cloud' if present(store) else ''}"


def pending_lines(plan: ActionPlan, last: Service, *, is_due: bool = True) -> Iterator[str]:
    """Yield lines about a PENDING plan; ``last`` is the service with the latest heartbeat.

    Without ``is_due``, the line that it waits for a service is left out: it waits for a time.
    """
    heard = ago((now() - last.heartbeat_at).total_seconds())
    if is_due:
        yield f"{claim.named(plan)} is PENDING, and waits for an applier service."
    yield f"Heard of {heard}: {last.user} on {last.host}, process {last.pid}."
    yield f"Follow it with: actionplan watch {plan.uuid[:8]}"
