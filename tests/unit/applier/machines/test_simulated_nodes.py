# SPDX-License-Identifier: Apache-2.0
"""Simulated nodes: which tasks fail, and what the log says."""

from __future__ import annotations

import threading

import pytest

from applier.errors import ActionFailed, ConfigurationError
from applier.machines.simulated_nodes import NodeSimulation, SimulationSettings


def failing(share: str, seed: int) -> set[tuple[str, str]]:
    simulation = NodeSimulation(SimulationSettings(failures=(share,), seed=seed))
    tasks = [(str(node), f"task-{i}") for node in range(100) for i in range(40)]
    return {task for task in tasks if simulation.fails(*task)}


def test_a_share_hits_about_so_many_tasks_and_the_same_ones_again():
    assert failing("0.01", 1) == failing("0.01", 1)
    assert failing("0.01", 1) != failing("0.01", 2)
    assert 20 < len(failing("0.01", 1)) < 60
    assert failing("0.01", 1) < failing("0.1", 1)
    assert (len(failing("0", 1)), len(failing("1", 1))) == (0, 4000)


@pytest.mark.parametrize("text", ["1.5", "-0.1", "nan", "many", ""])
def test_what_is_neither_a_share_nor_a_name_is_refused(text):
    with pytest.raises(ConfigurationError, match=r"\[simulated_nodes\] failures: .* NODE/TASK"):
        NodeSimulation(SimulationSettings(failures=(text,)))


def test_a_log_that_cannot_be_written_is_an_error(tmp_path):
    simulation = NodeSimulation(SimulationSettings(log=str(tmp_path)))
    with pytest.raises(ConfigurationError, match=r"\[simulated_nodes\] log: .*Is a directory"):
        simulation.run("1", "a", 0, threading.Event())


def test_lines_of_many_threads_are_whole(tmp_path):
    log = tmp_path / "log"
    simulation = NodeSimulation(SimulationSettings(log=str(log), failures=("*/task-7",)))

    def run(node: int) -> None:
        for i in range(20):
            try:
                simulation.run(str(node), f"task-{i}", 0, threading.Event())
            except ActionFailed:
                assert i == 7

    threads = [threading.Thread(target=run, args=(node,)) for node in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = [line.split() for line in log.read_text().splitlines()]
    assert {len(line) for line in lines} == {4}
    starts = {(node, task) for _, what, node, task in lines if what == "start"}
    assert len(starts) == 200
    assert {task for _, what, _, task in lines if what == "failed"} == {"task-7"}
    assert len(lines) == 400
