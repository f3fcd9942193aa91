# SPDX-License-Identifier: Apache-2.0
"""Checks of the name, the options and the getters of a cloud."""

# Tests are assertions.
# ruff: noqa: S101

from __future__ import annotations

from uuid import uuid4

from applier.configuration.plugin_options import of_cloud
from applier.testing.cloud_checks.cloud_works import CloudSample


class LookingChecks:
    """Name, options and getters."""

    def test_its_name_is_stable(self, sample: CloudSample) -> None:
        """``name``, which is recorded with plans, is one line of at most 255 characters."""
        name = sample.cloud.name
        assert name.strip(), "the name is blank"
        assert name.isprintable(), f"the name {name!r} cannot be shown on one line"
        assert len(name) <= 255, "the name is longer than a record can keep"
        assert sample.cloud.name == name, "the name has changed"

    def test_it_says_whether_it_is_real(self, sample: CloudSample) -> None:
        """IS_REAL is a bool; pauses are shortened only on a cloud where it is False."""
        assert isinstance(sample.cloud.IS_REAL, bool), "IS_REAL is True or False"

    def test_its_options_can_be_configured(self, sample: CloudSample) -> None:
        """Each option has a help text, which the sample configuration shows."""
        for option in of_cloud("cloud", type(sample.cloud)):
            assert option.help, f"option {option.name} has no help"

    def test_what_does_not_exist_is_none(self, sample: CloudSample) -> None:
        """Getters return None for an object that does not exist."""
        cloud, missing = sample.cloud, str(uuid4())
        assert cloud.instance(missing) is None
        assert cloud.instance_named(f"no-{missing}") is None
        assert cloud.service(f"no-{missing}") is None
        assert cloud.host(f"no-{missing}") is None
        assert cloud.flavor(f"no-{missing}") is None
        if sample.volume:
            assert cloud.volume(missing) is None

    def test_what_exists_is_described(self, sample: CloudSample) -> None:
        """Getters return the fields that actions use. The task of an idle instance is None."""
        cloud = sample.cloud
        instance, service = cloud.instance(sample.instance), cloud.service(sample.host)
        flavor, host = cloud.flavor(sample.flavor), cloud.host(sample.host)
        assert instance is not None
        assert (instance["host"], instance["flavor"]) == (sample.host, sample.flavor)
        assert (instance["status"], instance["task"]) == ("ACTIVE", None)
        assert cloud.instance_named(instance["name"]) == sample.instance
        assert service is not None
        assert service["status"] == "enabled"
        assert "reason" in service
        assert flavor is not None
        assert {"vcpus", "ram_mb", "disk_gb"} <= flavor.keys()
        if sample.idle_host:
            assert host is not None
            assert host["power"] == "on"
        if sample.volume:
            volume = cloud.volume(sample.volume)
            assert volume is not None
            assert {"name", "pool", "type", "instance"} <= volume.keys()
            assert volume["task"] is None
