# SPDX-License-Identifier: Apache-2.0
"""A watcher.conf that Watcher's services read too."""

from __future__ import annotations

from pathlib import Path

import pytest

from applier import configuration
from applier.assembly import Assembly
from applier.configuration import shared_file
from applier.engines.taskflow_engine import TaskFlowEngine
from applier.errors import ConfigurationError
from planner import make_plan
from planner.errors import InvalidInput

TWO_LINES = """\
[watcher_applier]
workflow_engine = actionplan
[watcher_planner]
planner = actionplan
"""
OF_WATCHER = "[database]\nconnection = mysql://watcher\n[DEFAULT]\nnotification_level = info\n"
WEIGHTS = "[watcher_planners.weight]\nweights = nop:100,sleep:70\nparallelization = nop:2\n"
TWO_ACTIONS = {"actions": [{"action_type": "nop"}, {"action_type": "nop"}]}


def load(folder: Path, text: str) -> tuple[configuration.cfg.ConfigOpts, list[str]]:
    """Load a configuration; return it with its warnings."""
    file = folder / "watcher.conf"
    file.write_text(text, encoding="utf-8")
    told: list[str] = []
    return configuration.load([str(file)], warn=told.append), told


def test_the_two_lines_for_watcher_mean_our_default_engine_and_planner(tmp_path: Path) -> None:
    conf, told = load(tmp_path, OF_WATCHER + TWO_LINES)
    assert told == []
    assert isinstance(Assembly(conf).engine(), TaskFlowEngine)
    assert make_plan(TWO_ACTIONS, conf=conf, check_types=False).planner == "weight"


def test_the_planner_for_watcher_is_the_one_for_our_commands(tmp_path: Path) -> None:
    own = "[watcher_planners.actionplan]\nplanner = workload_stabilization\n"
    conf, _ = load(tmp_path, OF_WATCHER + TWO_LINES + own)
    plan = make_plan(TWO_ACTIONS, conf=conf, check_types=False)
    assert plan.planner == "workload_stabilization"


def test_an_unknown_planner_is_refused_with_the_line_that_names_it(tmp_path: Path) -> None:
    own = "[watcher_planners.actionplan]\nplanner = wieght\n"
    with pytest.raises(ConfigurationError, match=r"watcher.conf:6: .*did you mean 'weight'"):
        load(tmp_path, TWO_LINES + own)
    conf, _ = load(tmp_path, OF_WATCHER + TWO_LINES + own)
    with pytest.raises(InvalidInput, match=r"watcher.conf:10: .*did you mean 'weight'"):
        make_plan(TWO_ACTIONS, conf=conf, check_types=False)


def test_options_with_two_meanings_are_told_in_a_file_of_watchers(tmp_path: Path) -> None:
    conf, _ = load(tmp_path, OF_WATCHER + WEIGHTS)
    (text,) = shared_file.two_meanings(conf, "weight")
    assert ":6: [watcher_planners.weight] weights" in text
    assert ":7: [watcher_planners.weight] parallelization" in text


@pytest.mark.parametrize(
    ("text", "planner"),
    [(WEIGHTS, "weight"), (OF_WATCHER, "weight"), (OF_WATCHER + WEIGHTS, "deployment")],
)
def test_nothing_is_told_of_our_own_file_or_of_other_planners(
    tmp_path: Path, text: str, planner: str
) -> None:
    conf, _ = load(tmp_path, text)
    assert shared_file.two_meanings(conf, planner) == []
