# SPDX-License-Identifier: Apache-2.0
"""Options that action types and engines declare: read, checked, and handed to the plugin."""

from __future__ import annotations

from typing import ClassVar

import pytest
from oslo_config import cfg

from applier import configuration
from applier.assembly import Assembly
from applier.configuration import plugin_options
from applier.configuration.plugin_options import action_options
from applier.contracts import ActionPlugin, Verified
from applier.engines.taskflow_engine import TaskFlowEngine
from applier.errors import ConfigurationError
from applier.scheduling.failures import TypePolicy
from planner.errors import BrokenPlugin
from planner.making import registry
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, Outcome, PlanState


class Siren(ActionPlugin):
    """Sound a siren."""

    TYPE = "siren"
    SCHEMA: ClassVar = {"type": "object"}
    REVERTIBLE = True
    OPTIONS = (
        cfg.IntOpt("volume", default=3, min=0, max=10, help="How loud."),
        cfg.StrOpt("dial-out", default="", help="Whom to call."),
    )
    heard: ClassVar[list] = []

    def _hear(self, what):
        self.heard.append((what, dict(self.context.options)))

    def precheck(self):
        self._hear("precheck")

    def execute(self, stop):
        self._hear("execute")
        return Outcome.CHANGED

    def verify(self):
        self._hear("verify")
        return Verified.DONE

    def revert(self, stop):
        self._hear("revert")
        return Outcome.CHANGED


@pytest.fixture(autouse=True)
def heard():
    Siren.heard.clear()
    return Siren.heard


def read(tmp_path, text):
    file = tmp_path / "watcher.conf"
    file.write_text(text, encoding="utf-8")
    return configuration.load([str(file)], checked=False)


TEXT = """
[watcher_actions.migrate]
retries = 2
retry_delay_s = 1.5
timeout_s = 600
estimate_s = 30
[watcher_actions.third_partys]
retries = 1
"""


def test_each_action_type_has_the_policy_of_its_section(tmp_path):
    """Also one that is not installed, and one without a section."""
    conf = read(tmp_path, TEXT)
    assert plugin_options.policies(conf, ["migrate", "nop", "third_partys"]) == {
        "migrate": TypePolicy(retries=2, retry_delay_s=1.5, timeout_s=600, estimate_s=30),
        "nop": TypePolicy(),
        "third_partys": TypePolicy(retries=1),
    }


def test_a_value_that_cannot_be_is_refused_with_its_place(tmp_path):
    options = action_options(
        read(tmp_path, "[watcher_actions.siren]\nvolume = 11\n"), {"siren": Siren}
    )
    with pytest.raises(ConfigurationError) as refused:
        options["siren"]
    place = f"{tmp_path}/watcher.conf:2: [watcher_actions.siren] volume: "
    assert str(refused.value) == place + "Should be less than or equal to 10"


def test_options_that_cannot_be_declared_are_refused_with_the_plugin(tmp_path):
    every_type_has = ("retries", "retry_delay_s", "timeout_s", "estimate_s")
    no_list = (("volume",), {"volume": 3}, 7, iter(Siren.OPTIONS))
    twice = (*Siren.OPTIONS, cfg.IntOpt("dial_out", help="Mine."))
    for options, said in (
        *(((cfg.IntOpt(name, help="Mine."),), f"'siren'.*'{name}'") for name in every_type_has),
        *((options, "its OPTIONS are not a list") for options in no_list),
        (twice, r"'siren' .* two options 'dial_out'$"),
    ):
        other = type("Other", (Siren,), {"OPTIONS": options})
        with pytest.raises(BrokenPlugin, match=said):
            action_options(read(tmp_path, ""), {"siren": other})["siren"]


class Strict(Siren):
    """A siren that needs to be told whom to call."""

    OPTIONS = (
        cfg.StrOpt("dial-out", required=True, help="Whom to call."),
        cfg.IntOpt("volume", required=True, default=3, help="How loud."),
    )


def test_a_required_option_that_is_not_set_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r"^\[watcher_actions\.siren\] dial_out: "):
        action_options(read(tmp_path, ""), {"siren": Strict})["siren"]
    conf = read(tmp_path, "[watcher_actions.siren]\ndial_out = fire\n")
    assert action_options(conf, {"siren": Strict})["siren"] == {"dial_out": "fire", "volume": 3}


def plan(**fields):
    action = Action(uuid="a", **{"action_type": "siren", **fields})
    return ActionPlan(uuid="plan", planner="test", state=PlanState.PENDING, actions=(action,))


@pytest.fixture
def trial(open_trial, tmp_path):
    """Return a function that makes a trial of a plan."""

    def make(made, plugins=None):
        plugins = {"siren": Siren, **(plugins or {})}
        options = action_options(read(tmp_path, "[watcher_actions.siren]\nvolume = 9\n"), plugins)
        engine = TaskFlowEngine(max_workers=1)
        return open_trial(made, engine, max_workers=1, plugins=plugins, options=options)

    return make


GIVEN = {"volume": 9, "dial_out": ""}


def test_precheck_execute_and_verify_are_given_the_options(trial, heard):
    assert trial(plan()).run() is PlanState.SUCCEEDED
    assert trial(plan(state=ActionState.UNKNOWN, attempts=1)).run() is PlanState.SUCCEEDED
    assert heard == [("precheck", GIVEN), ("execute", GIVEN), ("verify", GIVEN)]


def test_a_revert_is_given_the_options_of_the_type_that_it_undoes(trial, heard, monkeypatch):
    revert = registry.load(registry.ACTIONS, "revert")
    monkeypatch.setattr("applier.actions.revert._TYPES", {"siren": Siren})
    made = plan(action_type="revert", input_parameters={"action_type": "siren", "parameters": {}})
    assert trial(made, {"revert": revert}).run() is PlanState.SUCCEEDED
    assert heard == [("revert", GIVEN)]


class Other:
    """An engine of a third party."""

    OPTIONS = (
        cfg.IntOpt("max_workers", default=2, min=1, help="How many at once."),
        cfg.StrOpt("queue", default="plans", help="Where to."),
    )

    def __init__(self, *, max_workers, queue):
        self.max_workers, self.queue = max_workers, queue

    def run(self, run):
        return None


@pytest.fixture
def third_party(offer):
    """Register :class:`Other` as the entry point ``other``."""
    offer(registry.ENGINES, "other", f"{__name__}:Other")


OTHER = "[watcher_applier]\nworkflow_engine = other\n[watcher_workflow_engines.other]\n"


@pytest.mark.usefixtures("third_party")
def test_an_engine_of_a_third_party_is_made_from_the_options_of_its_own_section(tmp_path):
    taskflow = "[watcher_workflow_engines.taskflow]\nmax_workers = 8\n"
    assembly = Assembly(read(tmp_path, f"{OTHER}max_workers = 5\nqueue = slow\n{taskflow}"))
    assert assembly.max_workers == 5
    engine = assembly.engine()
    assert isinstance(engine, Other)
    assert (engine.max_workers, engine.queue) == (5, "slow")
    assert assembly.engine(max_workers=3).max_workers == 3


@pytest.mark.usefixtures("third_party")
def test_the_options_of_an_engine_of_a_third_party_are_listed():
    assert dict(configuration.list_opts())["watcher_workflow_engines.other"] == Other.OPTIONS


@pytest.mark.usefixtures("third_party")
def test_an_option_of_an_engine_that_cannot_be_used_is_refused_with_its_place(tmp_path):
    assembly = Assembly(read(tmp_path, f"{OTHER}max_workers = 0\n"))
    place = r"watcher\.conf:4: \[watcher_workflow_engines\.other\] max_workers: Should be "
    with pytest.raises(ConfigurationError, match=place):
        assembly.check()


def test_a_rule_for_the_strategy_of_a_plan_stands_between_the_plan_and_the_configuration(tmp_path):
    file = tmp_path / "watcher.conf"
    rules = "action_execution_rule = evacuate:ANY, drain:ALWAYS"
    text = f"[watcher_applier]\non_failure = pause\n[watcher_workflow_engines.taskflow]\n{rules}\n"
    file.write_text(text, encoding="utf-8")
    conf = configuration.load([str(file)])

    def found(strategy, given=None, **plan):
        made = ActionPlan(uuid="p", planner="weight", actions=(), strategy_name=strategy, **plan)
        return plugin_options.on_failure_of(conf, made, given)

    assert found("evacuate") == "only_after_failure"
    assert found("drain") == "continue"
    assert found("balance") == found(None) == "pause"
    assert found("drain", "skip_descendants") == "skip_descendants"
    assert found("drain", on_failure="pause") == "pause"


def test_a_rule_that_watcher_does_not_know_is_refused_with_its_place(tmp_path):
    file = tmp_path / "watcher.conf"
    text = "[watcher_workflow_engines.taskflow]\naction_execution_rule = evacuate:SOME\n"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r":2: .*action_execution_rule: .*ALWAYS, ANY"):
        configuration.load([str(file)])


@pytest.mark.usefixtures("third_party")
def test_an_engine_has_to_declare_max_workers(tmp_path, monkeypatch):
    monkeypatch.setattr(Other, "OPTIONS", Other.OPTIONS[1:])
    with pytest.raises(BrokenPlugin, match=r"'other'.*declares no option 'max_workers'"):
        Assembly(read(tmp_path, OTHER)).engine()


@pytest.mark.usefixtures("third_party")
@pytest.mark.parametrize("found", ["pathlib:Path", "os:getcwd", f"{__name__}:OTHER"])
def test_what_is_no_engine_is_refused(tmp_path, offer, found):
    offer(registry.ENGINES, "other", found)
    with pytest.raises(BrokenPlugin, match=r"'other' .* no class with a method"):
        Assembly(read(tmp_path, OTHER)).engine()


@pytest.mark.usefixtures("third_party")
def test_an_engine_that_does_not_take_its_options_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(Other, "OPTIONS", (*Other.OPTIONS, cfg.StrOpt("colour", help="Which.")))
    with pytest.raises(BrokenPlugin, match=r"engine 'other' .*: Other\.__init__\(\) .* 'colour'$"):
        Assembly(read(tmp_path, OTHER)).engine()
