# SPDX-License-Identifier: Apache-2.0
"""The configuration file, and what is made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from applier import configuration
from applier.assembly import Assembly
from applier.configuration import check
from applier.engines.taskflow_engine import TaskFlowEngine
from applier.errors import ConfigurationError
from applier.machines.address import SshSettings
from applier.machines.simulated_nodes import SimulationSettings
from planner import make_plan
from planner.errors import BrokenPlugin, InvalidInput
from planner.making import registry


def read(tmp_path, text):
    file = tmp_path / "watcher.conf"
    file.write_text(text, encoding="utf-8")
    return configuration.load([str(file)])


def test_files_that_arguments_name_are_read_like_others(tmp_path):
    large = tmp_path / "large.conf"
    large.write_bytes(b"#" * (configuration.MOST_BYTES + 1))
    for arguments in (["--config-file", str(large)], [f"--config-file={large}", "--debug"]):
        with pytest.raises(ConfigurationError, match="bytes, at most"):
            configuration.load(arguments=arguments)
    with pytest.raises(ConfigurationError, match="it is no regular file"):
        configuration.load(arguments=["--config-file", "/dev/zero"])


def test_a_planner_that_is_broken_is_left_out(monkeypatch):
    def load(namespace, name):
        raise BrokenPlugin("plugin", name, "ImportError: no module of that name")

    monkeypatch.setattr(registry, "load", load)
    groups = [g if isinstance(g, str) else g.name for g, _ in configuration.list_opts()]
    assert "watcher_actions.migrate" in groups
    planners = [group for group in groups if group.startswith("watcher_planners.")]
    assert planners == ["watcher_planners.actionplan"]


MACHINES = """
[ssh]
known_hosts = /etc/actionplan/known_hosts
key_files = /etc/actionplan/id, ~/.ssh/other
connect_timeout_s = 2.5
[actionplan]
simulator_speed = 50
[simulated_nodes]
failures = 0.01, 3/net*
seed = 7
log = /var/log/nodes.log
"""


def test_machines_are_what_the_sections_say(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(
        "applier.machines.open_machines.OpenMachines", lambda *given: made.append(given)
    )
    Assembly(read(tmp_path, MACHINES)).machines()
    Assembly(read(tmp_path, "")).machines()
    assert made == [
        (
            SshSettings(
                known_hosts="/etc/actionplan/known_hosts",
                keys=("/etc/actionplan/id", "~/.ssh/other"),
                connect_timeout_s=2.5,
            ),
            SimulationSettings(
                speed=50, failures=("0.01", "3/net*"), seed=7, log="/var/log/nodes.log"
            ),
            configuration.state_path() / "jobs",
        ),
        (SshSettings(), SimulationSettings(), configuration.state_path() / "jobs"),
    ]


@pytest.mark.parametrize(
    ("connection", "folder"),
    [
        ("sqlite:////var/lib/actionplan/plans.sqlite", "/var/lib/actionplan/jobs"),
        ("sqlite:////srv/plans.db?timeout=5", "/srv/jobs"),
        ("sqlite+pysqlite:////srv/plans.db", "/srv/jobs"),
        ("postgresql://ann@db/plans", None),
    ],
)
def test_commands_have_their_folder_beside_a_record_in_a_file(tmp_path, connection, folder):
    conf = read(tmp_path, f"[actionplan]\nconnection = {connection}\n")
    expected = Path(folder) if folder else configuration.state_path() / "jobs"
    assert configuration.jobs_path(conf) == expected


def test_a_record_has_one_folder_of_commands_by_whatever_name_it_is_opened(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "plans.db").touch()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "other.db").symlink_to("real/plans.db")
    for name in ("real/plans.db", "link/plans.db", "other.db"):
        conf = read(tmp_path, f"[actionplan]\nconnection = sqlite:///{tmp_path}/{name}\n")
        assert configuration.jobs_path(conf) == tmp_path / "real" / "jobs"


# A watcher.conf that Watcher's services read too.

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
    (text,) = check.two_meanings(conf, "weight")
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
    assert check.two_meanings(conf, planner) == []
