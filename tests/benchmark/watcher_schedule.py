# SPDX-License-Identifier: Apache-2.0
"""Plans a solution with OpenStack Watcher and stores it; for ``tests/benchmark/beside_watcher.py``.

It is run as ``python watcher_schedule.py SOLUTION.json DATABASE`` by a Python that has
python-watcher. It prints as JSON how much processor time and time ``WeightPlanner.schedule()``
took, in seconds, and how many actions it stored.

Watcher is set up as fast as it can be: no notifications, no log, and a new SQLite file with a
write-ahead log that is never synchronised to the disk. Watcher's own check of each proposed action,
which is quadratic, is left out.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import sys
import time
import types
import uuid
from contextlib import closing
from pathlib import Path
from unittest import mock


def main(solution: str, database: str) -> None:
    """Set Watcher up, plan and store the solution, and print what that took."""
    with closing(sqlite3.connect(database)) as file:
        file.execute("PRAGMA journal_mode = WAL")
    context, audit = set_up(database)
    from watcher import objects

    actions = json.loads(Path(solution).read_text(encoding="utf-8"))["actions"]
    plan_of, proposed = planner(), solution_of(actions)
    began = time.perf_counter(), time.process_time()
    plan = plan_of.schedule(context, audit.id, proposed)
    taken = time.perf_counter() - began[0], time.process_time() - began[1]
    rows = objects.Action.list(context, filters={"action_plan_uuid": plan.uuid})
    print(json.dumps({"wall_s": taken[0], "processor_s": taken[1], "actions": len(rows)}))


def set_up(database: str) -> tuple:
    """Configure Watcher, create its tables and an audit; return a context and the audit."""
    import watcher.conf  # noqa: F401 - registers options
    from oslo_config import cfg
    from oslo_db.sqlalchemy import enginefacade
    from watcher import objects
    from watcher.common import config, context, rpc, service  # noqa: F401 - registers options
    from watcher.db.sqlalchemy import migration

    objects.register_all()
    cfg.CONF.set_override("connection", f"sqlite:///{database}", "database")
    config.parse_args(["benchmark"], default_config_files=["/dev/null"], default_config_dirs=[])
    cfg.CONF.set_override("transport_url", "fake:/")
    cfg.CONF.set_override("notification_level", None)
    logging.disable(logging.CRITICAL)
    rpc.init(cfg.CONF)
    enginefacade.configure(sqlite_synchronous=False)
    migration.create_schema()
    made = context.make_context(is_admin=True)
    names = {"name": "dummy", "display_name": "dummy"}
    goal = objects.Goal(made, uuid=new_id(), efficacy_specification=[], **names)
    goal.create()
    strategy = objects.Strategy(made, uuid=new_id(), goal_id=goal.id, parameters_spec={}, **names)
    strategy.create()
    audit = objects.Audit(
        made,
        uuid=new_id(),
        name="benchmark",
        audit_type="ONESHOT",
        state="PENDING",
        parameters={},
        interval="0",
        goal_id=goal.id,
        strategy_id=strategy.id,
        scope=[],
        auto_trigger=False,
        force=False,
    )
    audit.create()
    return made, audit


def planner() -> object:
    """Return Watcher's weight planner with its defaults."""
    from watcher.common import utils
    from watcher.decision_engine.planner.weight import WeightPlanner

    settings = utils.Struct()
    settings.weights = dict(WeightPlanner.action_weights)
    settings.parallelization = dict(WeightPlanner.parallelization)
    return WeightPlanner(settings)


def solution_of(actions: list[dict]) -> object:
    """Return Watcher's solution of the actions of a document."""
    from watcher.decision_engine.solution.default import DefaultSolution

    found = DefaultSolution(goal=mock.Mock(), strategy=types.SimpleNamespace(name="dummy"))
    found._actions = [
        {
            "action_type": action["action_type"],
            "input_parameters": {
                "resource_id": action["resource_id"],
                **action["input_parameters"],
            },
        }
        for action in actions
    ]
    return found


def new_id() -> str:
    """Return a new uuid."""
    return str(uuid.uuid4())


if __name__ == "__main__":
    main(*sys.argv[1:])
