"""Options by action type, and plugins that are broken."""

from __future__ import annotations

import pytest

from applier import conf as configuration
from applier.errors import ConfigurationError
from applier.machines.settings import SimulationSettings, SshSettings
from applier.scheduling.type_policy import TypePolicy
from planner import registry
from planner.errors import BrokenPlugin

TEXT = """
[watcher_applier]
workers = 4
on_failure = pause
[watcher_actions.migrate]
retries = 2
retry_delay_s = 1.5
timeout_s = 600
estimate_s = 30
[watcher_actions.third_partys]
retries = 1
"""


def read(tmp_path, text):
    file = tmp_path / "watcher.conf"
    file.write_text(text, encoding="utf-8")
    return configuration.load([str(file)])


def test_each_action_type_has_the_policy_of_its_section(tmp_path):
    """Also one that is not installed, and one of which nothing is said."""
    conf = read(tmp_path, TEXT)
    assert configuration.policies(conf, ["migrate", "nop", "third_partys"]) == {
        "migrate": TypePolicy(retries=2, retry_delay_s=1.5, timeout_s=600, estimate_s=30),
        "nop": TypePolicy(),
        "third_partys": TypePolicy(retries=1),
    }
    assert (conf.watcher_applier.workers, conf.watcher_applier.on_failure) == (4, "pause")


@pytest.mark.parametrize("line", ["retries = -1", "timeout_s = 0", "estimate_s = long"])
def test_a_value_that_cannot_be_is_refused_with_its_section(tmp_path, line):
    conf = read(tmp_path, f"[watcher_actions.nop]\n{line}\n")
    with pytest.raises(ConfigurationError, match=r"\[watcher_actions.nop\]: .*" + line.split()[0]):
        configuration.policies(conf, ["nop"])


def test_broken_plugins_break_nothing_else(monkeypatch):
    """A planner is left out; an action type is not even loaded."""

    def load(namespace, name):
        raise BrokenPlugin("plugin", name, "ImportError: no module of that name")

    monkeypatch.setattr(registry, "load", load)
    groups = [g if isinstance(g, str) else g.name for g, _ in configuration.list_opts()]
    assert "watcher_actions.migrate" in groups
    assert not [group for group in groups if group.startswith("watcher_planners.")]


def test_a_misspelt_option_of_our_own_section_is_refused(tmp_path):
    path = tmp_path / "watcher.conf"
    path.write_text(
        "[actionplan]\nconection = sqlite:///x\nsimulator_speed = 3\n\n[watcher_applier]\n"
        "conductor_topic = watcher.applier.control\n"
    )
    with pytest.raises(ConfigurationError) as refused:
        configuration.load([str(path)])
    assert str(refused.value).startswith(
        f"{path}: [actionplan] conection: no such option; did you mean 'connection'? Known: "
    )
    path.write_text(path.read_text().replace("conection", "connection"))
    assert configuration.load([str(path)]).actionplan.connection == "sqlite:///x"


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
    monkeypatch.setattr("applier.machines.OpenMachines", lambda *given: made.append(given))
    configuration.machines(read(tmp_path, MACHINES))
    configuration.machines(read(tmp_path, ""))
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
        ),
        (SshSettings(), SimulationSettings()),
    ]


def test_a_failure_that_is_none_is_refused_before_anything_runs(tmp_path):
    conf = read(tmp_path, "[simulated_nodes]\nfailures = many\n")
    with pytest.raises(ConfigurationError, match=r"\[simulated_nodes\] failures: 'many'"):
        configuration.machines(conf)
