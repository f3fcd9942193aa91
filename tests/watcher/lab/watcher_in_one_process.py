# SPDX-License-Identifier: Apache-2.0
"""Watcher's planners and applier in this process, without a broker, Keystone or Nova.

For programs that compare engines and planners side by side, by a Python that has Watcher. SQLite
has one writer and Watcher does not try again, so writers take turns.
"""

from __future__ import annotations

import configparser
import contextlib
import logging
import sqlite3
import threading
import types
import uuid
from unittest import mock


class OneProcessWatcher:
    """A Watcher in a folder: its watcher.conf, and its database, used again if it is there.

    ``settings`` maps sections of watcher.conf to options and their texts. Only one can be made in
    a process, for Watcher's configuration is global.
    """

    def __init__(self, folder, settings):
        self.database = folder / "watcher.sqlite"
        is_new = not self.database.exists()
        with contextlib.closing(sqlite3.connect(self.database)) as file:
            file.execute("PRAGMA journal_mode = WAL")
        self.conf = configure(folder / "watcher.conf", self.database, settings)
        from watcher import objects
        from watcher.common import context
        from watcher.db.sqlalchemy import api, migration

        if is_new:
            migration.create_schema()
        serialize_writers(api)
        self.objects = objects
        self.context = context.make_context(is_admin=True)
        if is_new:
            seed(objects, self.context)
        [self.strategy] = objects.Strategy.list(self.context)
        [self.audit] = objects.Audit.list(self.context)

    def plan(self, *actions):
        """Store a plan of (type, parameters, positions of parents); return its UUID."""
        plan = self.objects.ActionPlan(
            self.context,
            uuid=str(uuid.uuid4()),
            audit_id=self.audit.id,
            strategy_id=self.strategy.id,
            state="PENDING",
            hostname=self.conf.host,
            global_efficacy=[],
        )
        plan.create()
        made = []
        for kind, parameters, parents in actions:
            action = self.objects.Action(
                self.context,
                uuid=str(uuid.uuid4()),
                action_plan_id=plan.id,
                action_type=kind,
                input_parameters=parameters,
                parents=[made[position].uuid for position in parents],
                state="PENDING",
            )
            action.create()
            made.append(action)
        return plan.uuid

    def schedule(self, planner, *actions):
        """Plan proposed (type, parameters) with a planner; return the plan's UUID."""
        from watcher.decision_engine.loading.default import DefaultPlannerLoader
        from watcher.decision_engine.solution.default import DefaultSolution

        strategy = types.SimpleNamespace(name=self.strategy.name)
        solution = DefaultSolution(goal=mock.Mock(), strategy=strategy)
        # Its own way to add actions is quadratic.
        solution._actions = [
            {"action_type": kind, "input_parameters": dict(parameters)}
            for kind, parameters in actions
        ]
        loaded = DefaultPlannerLoader().load(planner)
        return loaded.schedule(self.context, self.audit.id, solution).uuid

    def run(self, plan, engine):
        """Apply a plan with a workflow engine, as the applier does; it has ended afterwards."""
        from watcher.applier.action_plan.default import DefaultActionPlanHandler

        self.conf.set_override("workflow_engine", engine, "watcher_applier")
        DefaultActionPlanHandler(self.context, None, plan).execute()

    def actions(self, plan):
        """Return the actions of a plan in the order in which they were stored."""
        filters = {"action_plan_uuid": plan}
        found = self.objects.Action.list(self.context, filters=filters)
        return sorted(found, key=lambda action: action.id)

    def set_state(self, kind, uuid_, state):
        """Write a state as the API does; ``kind`` is ActionPlan or Action."""
        found = getattr(self.objects, kind).get_by_uuid(self.context, uuid_, eager=True)
        found.state = state
        found.save()

    def outcome(self, plan):
        """Return how a plan and its actions stand; parents are positions."""
        found = self.objects.ActionPlan.get_by_uuid(self.context, plan)
        actions = self.actions(plan)
        positions = {action.uuid: position for position, action in enumerate(actions)}
        return {
            "state": found.state,
            "status_message": found.status_message,
            "actions": [
                {
                    "type": action.action_type,
                    "state": action.state,
                    "status_message": action.status_message,
                    "parents": [positions.get(parent) for parent in action.parents],
                }
                for action in actions
            ],
        }

    @contextlib.contextmanager
    def notifications(self):
        """Yield a list to which the type of each notification is added that is sent inside."""
        from watcher.notifications import base

        sent = []

        def emit(self, context, event_type, publisher_id, payload):
            sent.append(event_type)

        self.conf.set_override("notification_level", "info")
        with mock.patch.object(base.NotificationBase, "_emit", emit):
            yield sent
        self.conf.clear_override("notification_level")


def configure(path, database, settings):
    """Write watcher.conf and let Watcher read it; return its configuration."""
    import watcher.conf
    from oslo_db.sqlalchemy import enginefacade
    from watcher import objects
    from watcher.common import config, rpc, service  # noqa: F401 - registers options

    base = {
        "DEFAULT": {"host": "lab", "transport_url": "fake:/", "notification_level": ""},
        "database": {"connection": f"sqlite:///{database}"},
    }
    parser = configparser.ConfigParser(interpolation=None, default_section="")
    parser.read_dict(base)
    parser.read_dict(settings)
    with path.open("w") as file:
        parser.write(file)
    objects.register_all()
    enginefacade.configure(sqlite_synchronous=False)
    config.parse_args(["lab"], default_config_files=[str(path)], default_config_dirs=[])
    logging.disable(logging.CRITICAL)
    return watcher.conf.CONF


def serialize_writers(api):
    """Let one thread write at a time."""
    lock, original = threading.RLock(), api._session_for_write

    @contextlib.contextmanager
    def session():
        with lock, original() as opened:
            yield opened

    api._session_for_write = session


def seed(objects, context):
    """Store what a plan refers to: a goal, a strategy and an audit."""
    names = {"name": "dummy", "display_name": "dummy"}
    goal = objects.Goal(context, uuid=str(uuid.uuid4()), efficacy_specification=[], **names)
    goal.create()
    strategy = objects.Strategy(
        context, uuid=str(uuid.uuid4()), goal_id=goal.id, parameters_spec={}, **names
    )
    strategy.create()
    objects.Audit(
        context,
        uuid=str(uuid.uuid4()),
        name="lab",
        audit_type="ONESHOT",
        state="SUCCEEDED",
        parameters={},
        interval="0",
        goal_id=goal.id,
        strategy_id=strategy.id,
        scope=[],
        auto_trigger=False,
        force=False,
    ).create()
