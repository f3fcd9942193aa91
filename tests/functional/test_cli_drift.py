# SPDX-License-Identifier: Apache-2.0
"""What is not as planned any more is told, and refused."""

from __future__ import annotations

from threading import Event

import pytest
from command_line import CommandLine

from applier.clouds.simulated import SimulatedCloud
from planner.states import ActionState, PlanState

WEB = {f"web-{n}": f"6a1f0001-0000-4000-8000-00000000000{n}" for n in (1, 2, 3)}


@pytest.fixture
def cloud(actionplan: CommandLine) -> SimulatedCloud:
    """Return the cloud that the command line works on."""
    return SimulatedCloud(actionplan.simulator, speed=1000)


def move(cloud: SimulatedCloud, name: str, host: str) -> None:
    """Move an instance, as somebody else would."""
    cloud.migrate(WEB[name], host, True, Event())


def test_a_plan_that_the_cloud_does_not_fit_any_more_is_refused(
    actionplan: CommandLine, cloud: SimulatedCloud
) -> None:
    stop = Event()
    actionplan.good("create", "-", stdin=actionplan.good("drain", "compute-1"))
    move(cloud, "web-1", "compute-4")
    cloud.delete_instance(WEB["web-2"], stop)
    cloud.set_service_status("compute-3", "disabled", "smoke", stop)
    ended = actionplan("apply", "last", "--yes")
    assert ended.code == 4
    assert "ago; the cloud is not as planned:\n" in ended.out
    assert "  web-1 is on compute-4, and was planned to leave compute-1\n" in ended.out
    assert "  web-2 does not exist, and is to be changed by move-web-2\n" in ended.out
    assert "  compute-3, where instances are to go, is disabled (smoke)\n" in ended.out
    assert "make a new one, or run it nevertheless with --accept-drift" in ended.err
    queued = actionplan("start", "last")
    assert queued.code == 4
    assert "  web-1 is on compute-4, and was planned to leave compute-1\n" in queued.out
    assert "make a new one, or run it nevertheless with --accept-drift" in queued.err
    (plan,) = actionplan.plans()
    assert plan.state is PlanState.RECOMMENDED
    assert cloud.service("compute-1")["status"] == "enabled"
    assert actionplan("apply", "last", "--yes", "--accept-drift").code == 3
    (plan,) = actionplan.plans()
    states = {a.name: a.state for a in plan.actions}
    assert states == {
        "disable-compute-1": ActionState.SUCCEEDED,
        "move-web-1": ActionState.SKIPPED,
        "move-web-2": ActionState.SKIPPED,
        "move-web-3": ActionState.FAILED,
    }


def test_what_the_plan_itself_changes_is_no_drift(
    actionplan: CommandLine, cloud: SimulatedCloud
) -> None:
    cloud.set_service_status("compute-3", "disabled", None, Event())
    there_and_back = [("compute-1", "compute-3"), ("compute-3", "compute-4")]
    actionplan.document(
        "plan.yaml",
        {
            "action_type": "change_nova_service_state",
            "resource_id": "compute-3",
            "input_parameters": {"state": "enabled"},
        },
        *(
            {
                "action_type": "migrate",
                "resource_id": WEB["web-1"],
                "input_parameters": {
                    "migration_type": "live",
                    "source_node": source,
                    "destination_node": destination,
                },
            }
            for source, destination in there_and_back
        ),
    )
    actionplan.good("apply", "plan.yaml", "--yes")
    assert cloud.instance(WEB["web-1"])["host"] == "compute-4"


def test_a_plan_is_queued_although_the_cloud_changed_if_that_is_accepted(
    actionplan: CommandLine, cloud: SimulatedCloud
) -> None:
    actionplan.good("create", "-", stdin=actionplan.good("drain", "compute-1"))
    move(cloud, "web-1", "compute-4")
    told = actionplan.good("start", "last", "--accept-drift")
    assert "ago; the cloud is not as planned:\n" in told
    (plan,) = actionplan.plans()
    assert plan.state is PlanState.PENDING


def test_an_instance_that_is_where_it_is_to_go_is_no_drift(
    actionplan: CommandLine, cloud: SimulatedCloud
) -> None:
    actionplan.good("create", "-", stdin=actionplan.good("drain", "compute-1"))
    move(cloud, "web-1", "compute-2")
    actionplan.good("apply", "last", "--yes")
    (plan,) = actionplan.plans()
    assert [a.state for a in plan.actions if a.name == "move-web-1"] == [ActionState.SKIPPED]


def test_the_question_says_how_old_the_plan_is(actionplan: CommandLine) -> None:
    actionplan.good("create", "-", stdin=actionplan.good("drain", "compute-1"))
    with actionplan.on_terminal("apply", "last") as terminal:
        seen = terminal.wait_for("[y/N]")
        assert "ago; the cloud is as planned." in seen
        assert "3 of 18 instances" in seen
        terminal.type("n\n")
        assert terminal.end() == 1
