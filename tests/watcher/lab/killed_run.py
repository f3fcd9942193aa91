# SPDX-License-Identifier: Apache-2.0
"""Applies a plan with our engine: ``python killed_run.py FOLDER RESUME STEP [PLAN]``.

Each step but the first three prints the outcome of the plan, and why it was refused:

- ``store`` stores a plan of a sleep and a nop, and prints its UUID.
- ``early`` is killed before the engine claims the plan, which Watcher's handler has made ONGOING.
- ``begin`` stores a plan of three traced actions, prints its UUID, and waits in the second until it
  is killed.
- ``go on`` is an applier that gets the plan.
- ``cancelled, done`` and ``cancelled, not done`` are ``actionplan-watcher resume --follow`` after a
  user has cancelled it; the cloud shows that the work of what was interrupted is done or not.
- ``cancelled, another`` is an applier that gets another plan after a user has cancelled this one.
- ``purged`` is ``actionplan-watcher purge`` after Watcher has removed the plan, or before.
- ``die`` is one that is killed by the first action.
- ``syncer`` is what Watcher does at the start of an applier.
- ``reopen`` is what ``actionplan-watcher resume PLAN`` writes; ``reopen down`` the same while it
  counts the applier as down, ``reopen not begun`` with ``--not-begun``.
- ``settle succeeded`` and ``settle failed`` are ``actionplan-watcher action set`` for the second
  action.
- ``tell`` makes the first action what another engine has made of it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from functools import partial
from pathlib import Path
from unittest import mock

import traced_type
from watcher_in_one_process import OneProcessWatcher

OURS = "watcher_workflow_engines.actionplan"


def begin(watcher, *, followed):
    """Run a plan until its second action waits to be killed.

    ``followed``: as if the process that started this one were ``resume --follow``.
    """
    plan = watcher.plan(
        ("traced", {}, []), ("traced", {"cancels": True}, [0]), ("sleep", {"duration": 0}, [1])
    )
    if followed:
        from datetime import UTC, datetime

        from applier.contracts import Claimant
        from applier.run.this_process import this_host
        from applier.watcher import claims, database

        database.prepare()
        me = Claimant(host=this_host(), pid=os.getppid(), user="ann", heartbeat_interval_s=1.0)
        claims.follow(me, now=datetime.now(UTC))

    def wait(_):
        print(plan, flush=True)
        threading.Event().wait()

    traced_type.on_run = wait
    watcher.run(plan, "actionplan")


def syncer(watcher, _):
    """Do what watcher-applier does at its start."""
    from watcher.applier.sync import Syncer

    Syncer().sync()


def early(watcher, plan):
    """Get the plan, and be killed before the engine claims it; Watcher knows the applier."""
    from applier.watcher import engine

    service = {"name": "watcher-applier", "host": watcher.conf.host}
    if not watcher.objects.Service.list(watcher.context, filters=service):
        watcher.objects.Service(watcher.context, **service).create()
    # As the applier does that receives the message.
    found = watcher.objects.ActionPlan.get_by_uuid(watcher.context, plan, eager=True)
    found.hostname = watcher.conf.host
    found.save()

    def prepare():
        os.kill(os.getpid(), signal.SIGKILL)

    with mock.patch.object(engine.database, "prepare", prepare):
        watcher.run(plan, "actionplan")


def reopen(watcher, plan, *, not_begun=False):
    """Let the plan go on, as the verb does after its claimant has died."""
    from applier.run.liveness import has_died
    from applier.watcher import claims, resume

    claimant = claims.claimant(plan)
    assert claimant is None or has_died(claims, plan, claimant)
    resume.reopen(plan, claimant, not_begun=not_begun)


def reopen_down(watcher, plan):
    """Let the plan go on while Watcher counts each applier as down."""
    watcher.conf.set_override("service_down_time", 0)
    reopen(watcher, plan)


def settle(watcher, plan, state):
    """Set the state of the second action."""
    from datetime import UTC, datetime

    from applier.watcher import endings
    from planner.plan.states import ActionState

    action = watcher.actions(plan)[1].uuid
    told = {"now": datetime.now(UTC), "message": "set by ann: looked"}
    endings.settle(plan, action, ActionState(state), **told)


def go_on(watcher, plan):
    """Get the plan as an applier does; say so if it waits for another."""
    from applier.watcher import engine

    def died(*given, **named):
        print("waits", flush=True)
        return has_died(*given, **named)

    has_died = engine.has_died
    with mock.patch.object(engine, "has_died", died):
        watcher.run(plan, "actionplan")


def cancelled(watcher, plan, found):
    """Look after the plan when a user has cancelled it; the cloud knows of its action."""
    from applier.contracts import Verified
    from applier.watcher import actions
    from applier.watcher.resume import Follower

    watcher.set_state("ActionPlan", plan, "CANCELLING")
    with mock.patch.dict(actions.VERIFIERS, traced=lambda _: Verified(found)):
        Follower(lambda _: None, lambda _: None).look()


def cancelled_another(watcher, plan):
    """Get another plan, as the first one after the start of an applier, when this is cancelled."""
    watcher.set_state("ActionPlan", plan, "CANCELLING")
    watcher.run(watcher.plan(("nop", {"message": "m"}, [])), "actionplan")


def purged(watcher, plan):
    """Purge while Watcher has the plan, and once more when it is gone; print what was deleted."""
    import sqlalchemy as sa

    from applier.watcher import database, endings

    before = endings.purge()
    with database.writing() as connection:
        gone = sa.delete(database.PLANS).where(database.PLANS.c.uuid == plan)
        connection.execute(gone)
    print(json.dumps({"before": before, "after": endings.purge(), "again": endings.purge()}))
    sys.exit()


def die(watcher, plan):
    """Get the plan, and be killed by its first action, which begins after its start is recorded."""
    from watcher.applier.actions.sleep import Sleep

    def execute(_):
        os.kill(os.getpid(), signal.SIGKILL)

    with mock.patch.object(Sleep, "execute", execute):
        go_on(watcher, plan)


def tell(watcher, plan):
    """Make the first action SUCCEEDED."""
    watcher.set_state("Action", watcher.actions(plan)[0].uuid, "SUCCEEDED")


STEPS = {
    "syncer": syncer,
    "reopen": reopen,
    "reopen down": reopen_down,
    "reopen not begun": partial(reopen, not_begun=True),
    "settle succeeded": partial(settle, state="SUCCEEDED"),
    "settle failed": partial(settle, state="FAILED"),
    "tell": tell,
    "go on": go_on,
    "cancelled, done": partial(cancelled, found="done"),
    "cancelled, not done": partial(cancelled, found="not done"),
    "cancelled, another": cancelled_another,
    "die": die,
    "purged": purged,
    "early": early,
}


def main(folder, resume, step, plan=""):
    """Take one step; ``resume`` is true, false, or followed: true, and a process follows."""
    followed = resume == "followed"
    settings = {"max_workers": "4", "resume": "true" if followed else resume}
    settings["heartbeat_interval_s"] = "1"
    settings["touches"] = "traced: instance:{instance}"
    # Else an applier counts as down when the steps of a test take 90 s.
    up = {"service_down_time": "3600"}
    watcher = OneProcessWatcher(Path(folder), {OURS: settings, "DEFAULT": up})
    if step == "begin":
        begin(watcher, followed=followed)
    if step == "store":
        from applier.watcher import database

        database.prepare()
        print(watcher.plan(("sleep", {"duration": 0}, []), ("nop", {"message": "m"}, [0])))
        return
    from applier.errors import ApplierError

    refused = None
    try:
        STEPS[step](watcher, plan)
    except ApplierError as reason:
        refused = str(reason)
    ended = {**watcher.outcome(plan), "runs": len(traced_type._runs), "refused": refused}
    print(json.dumps(ended))


if __name__ == "__main__":
    main(*sys.argv[1:])
