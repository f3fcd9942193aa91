# SPDX-License-Identifier: Apache-2.0
"""The contract of clouds, as tests that any project can run on its own cloud.

In a test module, with pytest::

    from applier.testing.cloud_suite import CloudContract, CloudSample

    @pytest.fixture
    def sample():
        cloud = MyCloud(url=...)
        yield CloudSample(cloud=cloud, instance=..., host="compute-1", ...)
        cloud.close()

    class TestMyCloud(CloudContract):
        LEFT_OUT = frozenset({"suspend"})

Each test gets a new sample and changes it. ``LEFT_OUT`` names the operations that the cloud does
not offer; they have to raise ActionFailed with a sentence. All names are in
:data:`applier.testing.cloud_operations.NAMES`.
"""

# Tests are assertions.
# ruff: noqa: S101

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from applier.configuration.plugin_options import of_cloud
from applier.contracts import Print, StopSignal
from applier.testing.cloud_operations import (
    NAMES,
    NEW,
    CloudSample,
    Offered,
    TriedOperation,
    back,
    require_refusal,
    works,
)

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


each_operation = pytest.mark.parametrize("name", NAMES)


class OperationChecks(Offered):
    """Checks of each operation of a cloud, called by itself."""

    @each_operation
    def test_it_ends_when_its_work_is_done(self, sample: CloudSample, name: str) -> None:
        """When the operation returns, the cloud has the new state, and the instance has no task."""
        self.require_offered(name)
        work = works(sample)[name]
        assert not work.is_done(), "the sample has been changed before"
        end = self.end_of(work)
        assert end is None, f"it failed: {end}"
        assert work.is_done(), "it has returned, and its work is not done"
        instance = sample.cloud.instance(sample.instance)
        assert instance is None or instance["task"] is None, f"{instance} is still at work"

    @each_operation
    def test_what_is_done_is_not_done_again(self, sample: CloudSample, name: str) -> None:
        """A second call returns or raises ActionFailed, and does not change the state."""
        self.require_offered(name)
        work = works(sample)[name]
        assert self.end_of(work) is None
        before = sample.cloud.instance_named(NEW)
        end = self.end_of(work)
        if end is not None or name == "create":
            require_refusal(end)
        assert work.is_done(), "the second call has changed what the first one did"
        assert sample.cloud.instance_named(NEW) == before

    @pytest.mark.parametrize("name", ["stop", "shelve", "service", "power"])
    def test_it_can_be_turned_back(self, sample: CloudSample, name: str) -> None:
        """Start, unshelve, enable and switch on undo their counterparts."""
        self.require_offered(name)
        undo = back(sample)[name]
        assert self.end_of(works(sample)[name]) is None
        assert not undo.is_done()
        assert self.end_of(undo) is None
        assert undo.is_done(), "it has returned, and its work is not done"

    @each_operation
    def test_a_stop_that_is_set_ends_it_early(self, sample: CloudSample, name: str) -> None:
        """The operation raises ActionFailed, or goes on until its work is done."""
        self.require_offered(name)
        work, stop = works(sample)[name], threading.Event()
        stop.set()
        end = self.end_of(work, stop)
        if end is None:
            assert work.is_done(), "it returned, and its work is not done"
        else:
            require_refusal(end)

    def test_without_a_destination_the_cloud_chooses(self, sample: CloudSample) -> None:
        """``migrate`` returns the new host of the instance, which is not the old one."""
        self.require_offered("live_migrate")
        cloud, chosen = sample.cloud, list[str]()
        work = TriedOperation(
            lambda stop, out: chosen.append(cloud.migrate(sample.instance, None, True, stop, out)),
            lambda: True,
        )
        assert self.end_of(work) is None
        moved = cloud.instance(sample.instance)
        assert moved is not None
        assert chosen == [moved["host"]] != [sample.host]

    def test_what_is_left_out_is_refused(self, sample: CloudSample) -> None:
        """Operations in LEFT_OUT raise ActionFailed with a sentence, not an error of a library."""
        assert set(NAMES) >= self.LEFT_OUT, f"the operations are: {', '.join(NAMES)}"
        for name in sorted(self.LEFT_OUT):
            require_refusal(self.end_of(works(sample)[name]))


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


THREADS = 8


class CloudConcurrencyChecks(Offered):
    """Checks of operations and getters that threads call at the same time."""

    def test_any_number_of_threads_may_look(self, sample: CloudSample) -> None:
        """The getters return the same values to all threads that call them at the same time."""
        cloud, seen = sample.cloud, list[object]()

        def look(_stop: StopSignal, _output: Print) -> None:
            seen.append((cloud.instance(sample.instance), cloud.service(sample.host)))

        ends = self.ends_of([TriedOperation(look, lambda: True)] * THREADS)
        assert ends == [None] * THREADS
        assert len(seen) == THREADS
        assert all(answer == seen[0] for answer in seen)

    @pytest.mark.parametrize("name", ["live_migrate", "stop", "create", "delete", "service"])
    def test_what_is_under_way_is_not_begun_again(self, sample: CloudSample, name: str) -> None:
        """Of two callers, one does the work; the other returns as well, or gets ActionFailed."""
        self.require_offered(name)
        work = works(sample)[name]
        ends = self.ends_of([work, work])
        failures = [end for end in ends if end is not None]
        assert len(failures) < 2, f"nobody has done it: {failures}"
        for end in failures:
            require_refusal(end)
        # Several instances of one name would be refused here.
        assert work.is_done()


__all__ = ["CloudContract", "CloudSample"]


class CloudContract(LookingChecks, OperationChecks, RefusedChecks, CloudConcurrencyChecks):
    """Tests of the cloud of the fixture ``sample``."""
