# SPDX-License-Identifier: Apache-2.0
"""Every installed action type keeps the contract, and plans can be made of anything with it."""

from __future__ import annotations

import threading
from importlib.metadata import EntryPoint, entry_points

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from applier.actions.markers import Nop
from applier.clouds.simulated import SimulatedCloud
from applier.contracts import ActionContext, ActionPlugin
from applier.errors import ActionFailed, AlreadyDone
from applier.testing.action_suite import ActionContract
from planner.plan.states import Outcome

INSTALLED = sorted(entry_points(group="actionplan.actions"), key=lambda entry: entry.name)
OURS = [entry for entry in INSTALLED if entry.value.startswith("applier.actions.")]


@pytest.fixture(params=INSTALLED, ids=lambda entry: entry.name)
def entry(request) -> EntryPoint:
    return request.param


@pytest.fixture
def action(entry) -> type[ActionPlugin]:
    return entry.load()


class TestInstalledActions(ActionContract):
    def test_it_is_registered_under_its_type(self, entry, action):
        assert entry.name == action.TYPE

    def test_neither_a_precheck_nor_a_stopped_run_changes_the_cloud(self, action, tmp_path):
        cloud = SimulatedCloud(tmp_path / "cloud.json")
        context = ActionContext(cloud=lambda: cloud, output=lambda _: None)
        before, stop = cloud.snapshot(), threading.Event()
        stop.set()
        for example in action.SCHEMA["examples"]:
            work = action(example, context)
            try:
                work.precheck()
                work.execute(stop)
            except (AlreadyDone, ActionFailed):
                pass
        assert cloud.snapshot() == before


def test_the_types_of_the_product_are_installed():
    assert {entry.name for entry in OURS} == {
        *("nop", "sleep", "pause", "shell", "migrate", "resize", "stop", "start"),
        *("shelve", "unshelve", "delete"),
        *("change_nova_service_state", "change_node_power_state", "volume_migrate"),
        *("turn_host_to_acpi_s3_state", "revert"),
        *("create_instance", "delete_instance", "http_check"),
        *("puppet", "sync", "upload_file", "copy_files", "reboot", "anchor", "skipped"),
        "ansible",
    }


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@pytest.mark.parametrize("entry", OURS, ids=lambda entry: entry.name)
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_planning_never_raises_whatever_the_parameters_are(entry, data):
    action = entry.load()
    keys = st.sampled_from(sorted(action.SCHEMA["properties"]))
    parameters = data.draw(st.dictionaries(keys, VALUES, max_size=5))
    for touch in action.touches(parameters):
        assert touch.resource.partition(":")[2], "a touch of nothing"
    action.estimate(parameters)
    action.waits_s(parameters)
    assert action.describe(parameters)


class Broken(Nop):
    """Breaks what a test of the suite below asks for."""

    @classmethod
    def estimate(cls, parameters):
        return float(parameters["duration"])

    may_end = threading.Event()

    def execute(self, stop):
        self.may_end.wait()
        return Outcome.CHANGED


class TestTheSuiteItself:
    """Each test of the suite fails for an action that breaks its rule."""

    suite = ActionContract()

    def test_it_finds_planning_that_raises(self):
        with pytest.raises(KeyError):
            self.suite.test_planning_with_it_survives_parameters_that_nobody_checked(Broken)

    def test_it_finds_an_action_that_does_not_stop(self, tmp_path, monkeypatch):
        monkeypatch.setattr("applier.testing.action_suite.SOON_S", 0.05)
        monkeypatch.setattr(Broken, "may_end", threading.Event())
        with pytest.raises(AssertionError, match="still runs"):
            self.suite.test_a_stop_that_is_set_ends_it_soon(Broken, tmp_path)
        Broken.may_end.set()

    @pytest.mark.parametrize("misspelled", ["anyof", "minlength"])
    def test_it_finds_keywords_that_are_misspelled(self, misspelled):
        class Misspelled(Nop):
            SCHEMA = {**Nop.SCHEMA, "properties": {"message": {misspelled: 1}}}

        with pytest.raises(AssertionError, match=misspelled):
            self.suite.test_its_schema_is_one(Misspelled)

    def test_it_finds_a_schema_that_takes_anything(self):
        class Loose(Nop):
            SCHEMA = {"type": "object", "additionalProperties": True, "examples": [{}]}

        with pytest.raises(AssertionError, match="unknown ones are refused"):
            self.suite.test_its_schema_refuses_unknown_parameters(Loose)

    def test_it_finds_examples_that_do_not_fit(self):
        class Wrong(Nop):
            SCHEMA = {**Nop.SCHEMA, "examples": [{"message": 5}]}

        with pytest.raises(AssertionError, match="is not of type"):
            self.suite.test_its_examples_satisfy_its_schema(Wrong)

    def test_it_finds_a_missing_docstring(self):
        class Silent(Nop):
            pass

        with pytest.raises(AssertionError, match="no docstring"):
            self.suite.test_it_says_what_it_does(Silent)
