# SPDX-License-Identifier: Apache-2.0
"""TurnHostToAcpiS3State: suspends a host, never one that works."""

from __future__ import annotations

import pytest

from applier.actions.turn_host_to_acpi_s3_state import TurnHostToAcpiS3State
from applier.errors import ActionFailed, AlreadyDone
from planner.model import Effect, Touch
from planner.states import Outcome


def test_a_host_is_suspended_once(context, cloud, stop):
    work = TurnHostToAcpiS3State({"resource_id": "compute-4"}, context)
    work.precheck()
    assert work.execute(stop) is Outcome.CHANGED
    assert cloud.host("compute-4")["power"] == "suspended"
    with pytest.raises(AlreadyDone, match="compute-4 is suspended already"):
        work.precheck()


def test_a_host_that_runs_instances_is_not_suspended(context, stop):
    with pytest.raises(ActionFailed, match="compute-3 still runs cache-1"):
        TurnHostToAcpiS3State({"resource_id": "compute-3"}, context).execute(stop)


def test_a_host_that_is_off_or_does_not_exist_is_refused(context, cloud, stop):
    cloud.set_host_power("compute-4", "off", stop)
    with pytest.raises(ActionFailed, match="compute-4 cannot be suspended: it is off"):
        TurnHostToAcpiS3State({"resource_id": "compute-4"}, context).precheck()
    with pytest.raises(ActionFailed, match="compute-9 cannot be suspended: there is no such"):
        TurnHostToAcpiS3State({"resource_id": "compute-9"}, context).precheck()


def test_its_words_and_touches():
    parameters = {"resource_id": "compute-4"}
    assert TurnHostToAcpiS3State.describe(parameters) == "suspend compute-4"
    touches = TurnHostToAcpiS3State.touches(parameters)
    assert touches == (Touch("node:compute-4", Effect.TAKES_DOWN),)
