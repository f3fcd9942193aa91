# SPDX-License-Identifier: Apache-2.0
"""Checks that impossible operations are refused with a sentence, and change nothing."""

# Tests are assertions.
# ruff: noqa: S101

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from applier.testing.cloud_checks.cloud_works import CloudSample, TriedOperation, works
from applier.testing.cloud_checks.offered import Offered, require_refusal

#: By operation: the fields of the sample that are replaced, one at a time, by an unknown id.
_MISSING: Mapping[str, tuple[str, ...]] = {
    "live_migrate": ("instance", "other_host"),
    "resize": ("instance", "other_flavor"),
    "stop": ("instance",),
    "create": ("flavor",),
    "delete": ("instance",),
    "service": ("host",),
    "power": ("idle_host",),
    "volume_migrate": ("volume", "other_pool"),
    "retype": ("other_type",),
}


class RefusedChecks(Offered):
    """Checks of operations that a cloud has to refuse with ActionFailed."""

    @pytest.mark.parametrize(
        ("name", "field"), [(name, field) for name in _MISSING for field in _MISSING[name]]
    )
    def test_what_does_not_exist_is_refused(
        self, sample: CloudSample, name: str, field: str
    ) -> None:
        """The operation raises ActionFailed with a sentence; the instance stays as it was."""
        self.require_offered(name)
        before = sample.cloud.instance(sample.instance)
        missing: dict[str, Any] = {field: str(uuid4())}
        require_refusal(self.end_of(works(replace(sample, **missing))[name]))
        assert sample.cloud.instance(sample.instance) == before

    def test_a_host_with_instances_that_run_is_not_switched_off(self, sample: CloudSample) -> None:
        """The message of ActionFailed contains the name of an instance; the host stays on."""
        self.require_offered("power")
        cloud, host = sample.cloud, sample.host
        work = TriedOperation(
            lambda stop, out: cloud.set_host_power(host, "off", stop, out), lambda: True
        )
        end = self.end_of(work)
        require_refusal(end)
        instance, known = cloud.instance(sample.instance), cloud.host(host)
        assert instance is not None
        assert instance["name"] in str(end), f"{end}: the instance is not named"
        assert known is not None
        assert known["power"] == "on"
