# SPDX-License-Identifier: Apache-2.0
"""Enables and disables the compute services of Nova."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from applier.clouds.openstack.compute import Compute, answered
from applier.contracts import StopSignal
from applier.errors import ActionFailed


class ComputeServices:
    """The compute services, by host."""

    def __init__(self, compute: Compute) -> None:
        self._compute, self._nova = compute, compute.nova

    def service(self, host: str) -> Mapping[str, Any] | None:
        """Return ``status, reason`` of the compute service on a host, None if there is none."""
        found = self._found(host)
        return found and {"status": found.status, "reason": found.disabled_reason}

    def set(self, host: str, status: str, reason: str | None, stop: StopSignal) -> None:
        """Enable or disable a compute service; Nova answers when it is done."""
        found = self._found(host)
        if found is None:
            raise ActionFailed(f"there is no compute service on {host}")
        if status == "enabled":
            change, what = lambda: self._nova.enable_service(found), f"enabling {host}"
        else:
            what = f"disabling {host}"

            def change() -> Any:
                return self._nova.disable_service(found, disabled_reason=reason)

        self._compute.calls.change(what, change, stop)

    def _found(self, host: str) -> Any:
        found = self._compute.calls.read(
            lambda: [
                answered(service, f"host {host}")
                for service in self._nova.services(binary="nova-compute", host=host)
            ]
        )
        return found[0] if found else None
