# SPDX-License-Identifier: Apache-2.0
"""Checks that operations bring the cloud to the expected state, and are not done twice."""

# Tests are assertions.
# ruff: noqa: S101

from __future__ import annotations

import threading

import pytest

from applier.testing.cloud_checks.cloud_works import NEW, CloudSample, TriedOperation, back, works
from applier.testing.cloud_checks.offered import NAMES, Offered, require_refusal

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
