# SPDX-License-Identifier: Apache-2.0
"""A deployment over workers of which everything is killed once reads as one on one machine."""

from __future__ import annotations

import io
import os
import re
import subprocess
from collections import Counter
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from scratch_database import POSTGRESQL, database_for_tests
from worker_processes import PROGRAMS, Fleet, OwnRedis, fleet, until

from applier.assembly import Assembly, now
from applier.cli.reporters import recap
from applier.configuration import load
from applier.report import content
from applier.storage.sql import SqlStore
from planner.model import ActionPlan
from planner.states import Outcome, PlanState

pytestmark = [pytest.mark.server, pytest.mark.needs("redis-server")]


def renamed(plan: ActionPlan) -> ActionPlan:
    """Return a plan as if nothing of it had run, with other uuids."""
    new = {action.uuid: str(uuid4()) for action in plan.actions}
    actions = tuple(
        replace(a, uuid=new[a.uuid], needs=_all(new, a.needs), parents=_all(new, a.parents))
        for a in plan.actions
    )
    return replace(plan, uuid=str(uuid4()), actions=actions)


def _all(new: dict[str, str], uuids: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(new[uuid] for uuid in uuids)


def on_one_machine(processes: Fleet, record: str, plan: ActionPlan) -> Path:
    """Run a plan in threads of one process, with a record and nodes of its own.

    Return its configuration.
    """
    folder = processes.folder / "one"
    folder.mkdir()
    url = f"sqlite:///{folder}/plans.db"
    text = processes.configuration.read_text(encoding="utf-8")
    text = text.replace(f"{processes.folder}/", f"{folder}/").replace(record, url)
    own = folder / "watcher.conf"
    own.write_text(text.replace("workers = celery", "workers = threads"), encoding="utf-8")
    with closing(SqlStore(url)) as store:
        store.save_plan(plan)
    ended = subprocess.run(
        [PROGRAMS / "actionplan", "--config-file", own, "apply", plan.uuid, "--yes"],
        check=False,
        capture_output=True,
        text=True,
        env={"HOME": str(folder), "PATH": os.defpath},
    )
    assert ended.returncode == 0, ended.stderr
    return own


def read(configuration: Path, uuid: str) -> tuple[str, dict[str, Any]]:
    """Return the recap and the report of a plan, without what tells one run from another."""
    out = io.StringIO()
    with closing(Assembly(load([str(configuration)]))) as assembly:
        plan = assembly.store.load_plan(uuid)
        recap.show(plan, 0.0, out)
        made = content.report(assembly, plan, assembly.max_workers, now=now(), is_stored=True)
    rows = {
        row.name: (
            *(row.number, row.action_type, row.where, row.state, row.mark),
            *(row.about, row.reason, row.message),
            *(attempt.output for attempt in row.attempts[-1:]),
        )
        for row in made.rows
    }
    whole = {
        "state": made.state,
        "summary": re.split(" (?:Planned|Took) ", made.summary)[0],
        "left": made.left,
        "rows": rows,
    }
    return out.getvalue().replace(uuid[:8], "UUID"), whole


def lost_with_their_worker(processes: Fleet, plan: ActionPlan) -> set[str]:
    """Return the tasks of a worker that was killed, as they are in the log of the nodes."""
    logs = "".join(log.read_text() for log in processes.folder.glob("actionplan-applier-*.log"))
    uuids = set(re.findall("Action (.+): its worker .+ was not heard of for its lease", logs))
    lost = [action.name.split("/") for action in plan.actions if action.uuid in uuids]
    return {f"{node} {task}" for task, node in lost}


def test_a_deployment_of_100_nodes_ends_although_broker_worker_and_applier_are_killed(
    tmp_path: Path,
) -> None:
    """Each task does its work, and the report is that of a run on one machine.

    A task is done once, unless its worker was killed: a simulated node does not remember a task
    that was done but is not on record yet.
    """
    broker = OwnRedis(tmp_path)
    broker.start()
    scratch = contextmanager(database_for_tests)
    try:
        with (
            scratch("ACTIONPLAN_TEST_POSTGRESQL", POSTGRESQL) as record,
            fleet(tmp_path, record, broker.url, lease_s=3.0) as processes,
        ):
            first, *_ = processes.workers(3)
            applier = processes.start("actionplan-applier")
            planned = processes.nodes(100, 0.3)
            until(lambda: len(processes.done_on_nodes()) >= 20, processes.told)
            processes.kill(first)
            until(lambda: len(processes.done_on_nodes()) >= 50, processes.told)
            broker.kill()
            processes.kill(applier)
            broker.start()
            processes.start("actionplan-applier")
            plan = processes.ended(planned)
            assert plan.state is PlanState.SUCCEEDED, processes.told()
            assert {a.outcome for a in plan.actions} == {Outcome.CHANGED}
            done = Counter(processes.done_on_nodes())
            assert len(done) == 200
            more_than_once = {task for task, times in done.items() if times > 1}
            assert more_than_once <= lost_with_their_worker(processes, plan), processes.told()
            assert processes.store.jobs_of(plan.uuid) == []
            alone = renamed(planned)
            own = on_one_machine(processes, record, alone)
            assert read(processes.configuration, plan.uuid) == read(own, alone.uuid)
    finally:
        broker.kill()
