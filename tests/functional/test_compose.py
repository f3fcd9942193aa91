# SPDX-License-Identifier: Apache-2.0
"""``etc/compose.yaml``: what its services run is started here as processes of this machine."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import kombu
import pytest
import yaml
from command_line import ROOT
from scratch_broker import broker_for_tests
from scratch_database import database_for_tests
from worker_processes import Processes, until

from applier.storage.sql import SqlStore
from planner.plan.model import Action, ActionPlan
from planner.plan.states import PlanState

pytestmark = pytest.mark.server
PLACE = "/etc/watcher/watcher.conf"


@pytest.fixture(scope="module")
def composed() -> dict[str, Any]:
    """Return the file, with what it repeats by name in its places."""
    text = (ROOT / "etc" / "compose.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


class Local:
    """The services of the file on this machine, with a record, a broker and a site of a test."""

    def __init__(self, folder: Path, composed: dict[str, Any], record: str, broker: str) -> None:
        self._folder, self._composed = folder, composed
        self.site = f"test-{uuid4().hex[:12]}"
        self._urls = {r"postgresql://\S+": record, r"amqp://\S+": broker, "site-b": self.site}
        self._started: list[Processes] = []

    def start(self, service: str) -> subprocess.Popen[bytes]:
        """Start the command of a service with its configuration."""
        about = self._composed["services"][service]
        [config] = about["configs"]
        assert config["target"] == PLACE
        text = self._composed["configs"][config["source"]]["content"]
        for pattern, own in self._urls.items():
            text = re.sub(pattern, own.replace("\\", r"\\"), text)
        home = self._folder / service
        home.mkdir()
        made = Processes(home)
        self._started.append(made)
        made.configuration.write_text(text, encoding="utf-8")
        program, *words = about["command"].split()
        assert words[:2] == ["--config-file", PLACE]
        return made.start(program, *words[2:])

    def told(self) -> str:
        """Return what the services wrote."""
        return "\n".join(made.told() for made in self._started)

    def close(self) -> None:
        """End all."""
        for made in reversed(self._started):
            made.close()


def actions(site: str) -> Iterator[Action]:
    """Yield actions for the site, and for workers of no site."""
    for number in range(12):
        tokens = (f"region:{site}",) if number % 2 else ()
        yield Action(uuid=str(uuid4()), name=f"a{number}", action_type="nop", tokens=tokens)


def test_two_appliers_and_three_workers_run_the_actions_of_a_plan(composed, tmp_path):
    broker = broker_for_tests()
    with database_for_tests() as record:
        local = Local(tmp_path, composed, record, broker)
        with closing(local):
            assert local.start("tables").wait(timeout=120) == 0, local.told()
            with closing(SqlStore(record)) as store:
                for name in ("worker-1", "worker-2", "worker-3", "applier-1", "applier-2"):
                    local.start(name)
                until(lambda: len(store.workers()) == 3, local.told)
                until(lambda: len(store.services()) == 2, local.told)
                served = sorted(list(worker.queues) for worker in store.workers())
                assert served == [["default"], [local.site], [local.site]]
                plan = ActionPlan(
                    uuid=str(uuid4()),
                    planner="weight",
                    actions=tuple(actions(local.site)),
                    state=PlanState.PENDING,
                )
                store.save_plan(plan)
                over = (PlanState.SUCCEEDED, PlanState.FAILED)
                until(lambda: store.load_plan(plan.uuid).state in over, local.told)
                ended = store.load_plan(plan.uuid)
                assert ended.state is PlanState.SUCCEEDED, local.told()
                assert [action.attempts for action in ended.actions] == [1] * 12
                assert store.jobs_of(plan.uuid) == []
        with kombu.Connection(broker, connect_timeout=5) as connection:
            connection.default_channel.queue_delete(f"actionplan.{local.site}")


def test_each_service_waits_for_what_it_needs(composed):
    services = composed["services"]
    programs = {
        name: str(about.get("command", "")).split(" ")[0] for name, about in services.items()
    }
    assert sorted(programs.values()) == sorted(
        ["", "", "actionplan", *["actionplan-applier"] * 2, *["actionplan-worker"] * 3]
    )
    for name, program in programs.items():
        if program in ("actionplan-applier", "actionplan-worker"):
            assert set(services[name]["depends_on"]) == {"tables", "broker"}
    used = {config["source"] for about in services.values() for config in about.get("configs", ())}
    assert used == set(composed["configs"])
