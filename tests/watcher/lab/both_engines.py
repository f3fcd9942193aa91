# SPDX-License-Identifier: Apache-2.0
"""Runs the same plans with Watcher's own engine and with ours: ``python both_engines.py FOLDER``.

It prints as JSON, by case and engine, how the plan ended, what was sent, and what was done. The
action type ``traced`` comes from the folder ``lab/traced_type``, which must be on PYTHONPATH.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import traced_type
from watcher_in_one_process import OneProcessWatcher

ENGINES = ("taskflow", "actionplan")
OURS = "watcher_workflow_engines.actionplan"
INSTANCE = "11111111-1111-1111-1111-111111111111"
NOWHERE = {
    "resource_id": INSTANCE,
    "migration_type": "live",
    "source_node": "c1",
    "destination_node": "nowhere",
}
LONG = "x" * 300 + "\N{GRINNING FACE}"
TOUCHES = {"touches": "traced: instance:{instance}, node:{host}"}


def nop(**faults):
    """Return the parameters of a nop, with faults that Watcher has for its tests."""
    return {"message": "m", **faults}


class Compute:
    """A Nova with one server on c1, which knows no other host, and is told what to do."""

    def __init__(self):
        self.told = []

    def get_server(self, uuid):
        from openstack.compute.v2 import server

        return server.Server(id=uuid, name="s", status="ACTIVE", compute_host="c1")

    def hypervisors(self, **_):
        return []

    def shelve_server(self, _):
        self.told.append("shelve")


class Cases:
    """The cases; each method prepares a plan of one Watcher, and returns its UUID."""

    def __init__(self, watcher):
        self.watcher = watcher

    def phases(self):
        """Each phase fails once, and one action skips itself."""
        faults = ("skip_pre_condition", "fail_pre_condition", "fail_execute", "fail_post_condition")
        return self.watcher.plan(*[("nop", nop(**{fault: True}), []) for fault in faults])

    def behind_a_failure(self):
        """A move fails, and the shelving of the same instance stands behind it."""
        return self.watcher.plan(
            ("migrate", NOWHERE, []), ("shelve", {"resource_id": INSTANCE}, [0]), ("nop", nop(), [])
        )

    def skipped_by_a_user(self):
        """A user has skipped the first of two."""
        plan = self.watcher.plan(("nop", nop(), []), ("nop", nop(), [0]))
        self.watcher.set_state("Action", self.watcher.actions(plan)[0].uuid, "SKIPPED")
        return plan

    def cancelled(self):
        """A user cancels while the first action runs."""
        plan = self.watcher.plan(
            ("traced", {"cancels": True}, []), ("nop", nop(), [0]), ("nop", nop(), [1])
        )
        traced_type.on_run = lambda _: self._cancel(plan)
        return plan

    def _cancel(self, plan):
        self.watcher.set_state("ActionPlan", plan, "CANCELLING")
        traced_type.wait_until(lambda: traced_type.heard_of_cancel(self.watcher, plan))

    def taken_for_dead(self):
        """Watcher takes the applier for dead, while its second action runs."""
        plan = self.watcher.plan(
            ("traced", {}, []), ("traced", {"cancels": True}, [0]), ("traced", {}, [1])
        )
        traced_type.on_run = lambda _: self._alarm(plan)
        return plan

    def _alarm(self, plan):
        """Do what the monitor of another applier does, which may come late to an action."""
        from watcher.applier.sync import Syncer

        Syncer()._cancel_ongoing_actionplans(self.watcher.context, self.watcher.conf.host)
        first, _, third = self.watcher.actions(plan)
        late = self.watcher.objects.Action.get_by_uuid(self.watcher.context, first.uuid, eager=True)
        late.state, late.status_message = "CANCELLED", third.status_message
        late.save()
        ours = self.watcher.conf.watcher_applier.workflow_engine == "actionplan"
        traced_type.wait_until(
            lambda: self.watcher.outcome(plan)["state"] == ("ONGOING" if ours else "CANCELLED")
        )

    def again(self):
        """A plan that has ended is handed to the applier again."""
        plan = self.watcher.plan(("traced", {}, []), ("traced", {}, [0]))
        self.watcher.run(plan, self.watcher.conf.watcher_applier.workflow_engine)
        return plan

    def unknown_type_without_touches(self):
        """Two actions of a third party's type work on one instance; the first fails."""
        one = {"instance": INSTANCE}
        return self.watcher.plan(("traced", {**one, "fails": True}, []), ("traced", one, [0]))

    def unknown_type_with_touches(self):
        """The same, and it is known what the type touches."""
        return self.unknown_type_without_touches()

    def on_failure_continue(self):
        """The same, and all actions run in spite of failures."""
        return self.unknown_type_without_touches()

    def limits(self):
        """Eight actions on two hosts, at most one a host at once."""
        return self.watcher.plan(
            *[("traced", {"host": f"h{i % 2}", "instance": str(i)}, []) for i in range(8)]
        )

    def long_message(self):
        """An action fails with a sentence of 301 characters."""
        return self.watcher.plan(("traced", {"fails": True, "why": LONG}, []))

    def unexpected_error(self):
        """An action raises an error that is none of Watcher's."""
        return self.watcher.plan(("traced", {"breaks": True}, []))

    def wrong_parameters(self):
        """An action lacks a parameter, and another has one too many."""
        return self.watcher.plan(("nop", {}, []), ("nop", nop(more=1), []))

    def loop(self):
        """The parents of two actions make a loop."""
        plan = self.watcher.plan(("nop", nop(), []), ("nop", nop(), [0]))
        first, second = self.watcher.actions(plan)
        self._set_parents(first, second.uuid)
        return plan

    def unknown_parents(self):
        """An action stands behind one that is not in the plan."""
        plan = self.watcher.plan(("nop", nop(), []))
        self._set_parents(self.watcher.actions(plan)[0], INSTANCE)
        return plan

    def _set_parents(self, action, *uuids):
        found = self.watcher.objects.Action.get_by_uuid(
            self.watcher.context, action.uuid, eager=True
        )
        found.parents = list(uuids)
        found.save()

    def no_such_type(self):
        """No plugin offers the type of an action."""
        return self.watcher.plan(("teleport", {}, []), ("nop", nop(), []))

    def handed_twice(self):
        """Two threads, as those of two appliers, get the same plan."""
        return self.watcher.plan(("traced", {}, []), ("traced", {}, [0]), ("traced", {}, [1]))

    def rule_any(self):
        """By a rule of the strategy, an action runs only if the one before it failed."""
        return self.watcher.plan(
            ("traced", {"fails": True}, []),
            ("traced", {}, [0]),
            ("traced", {}, [1]),
            ("traced", {}, [2]),
        )

    def rule_always(self):
        """By a rule of the strategy, actions run whatever became of what they need."""
        return self.unknown_type_without_touches()


#: The section of Watcher's own engine, which has the rules of strategies.
STOCK = "watcher_workflow_engines.taskflow"
#: The rules in some cases.
RULES = {"rule_any": "ANY", "rule_always": "ALWAYS"}
#: The options of our engine in some cases.
OPTIONS = {
    "unknown_type_with_touches": TOUCHES,
    "rule_always": TOUCHES,
    "on_failure_continue": {**TOUCHES, "on_failure": "continue"},
    "limits": {**TOUCHES, "limits": "node:*=1"},
}


def run(watcher, name, engine):
    """Run one case with one engine; return how it ended."""
    compute = Compute()
    traced_type.reset()
    connection = SimpleNamespace(compute=compute)
    watcher.conf.set_override("workflow_engine", engine, "watcher_applier")
    with contextlib.ExitStack() as stack:
        for option, text in OPTIONS.get(name, {}).items():
            watcher.conf.set_override(option, text, OURS)
            stack.callback(watcher.conf.clear_override, option, OURS)
        if name in RULES:
            rules = {watcher.strategy.name: RULES[name]}
            watcher.conf.set_override("action_execution_rule", rules, STOCK)
            stack.callback(watcher.conf.clear_override, "action_execution_rule", STOCK)
        found = "watcher.common.clients.get_sdk_connection"
        stack.enter_context(mock.patch(found, return_value=connection))
        plan = getattr(Cases(watcher), name)()
        sent = stack.enter_context(watcher.notifications())
        if name == "handed_twice":
            both = [threading.Thread(target=watcher.run, args=(plan, engine)) for _ in range(2)]
            for thread in both:
                thread.start()
            for thread in both:
                thread.join()
        else:
            watcher.run(plan, engine)
    shown = watcher.outcome(plan)
    uuids = {action.uuid: f"action-{i}" for i, action in enumerate(watcher.actions(plan))}
    text = json.dumps({**shown, "sent": sent, "told": compute.told, **traced_type.seen()})
    for uuid, label in uuids.items():
        text = text.replace(uuid, label)
    return json.loads(text)


def main(folder, names):
    """Run all cases, or those that are named."""
    from watcher.applier.loading.default import DefaultWorkFlowEngineLoader

    watcher = OneProcessWatcher(
        Path(folder),
        {OURS: {"max_workers": "4"}, STOCK: {"max_workers": "4"}},
    )
    for engine in ENGINES:
        DefaultWorkFlowEngineLoader().load(engine, context=watcher.context, applier_manager=None)
    names = names or [name for name in vars(Cases) if not name.startswith("_")]
    print(json.dumps({name: {e: run(watcher, name, e) for e in ENGINES} for name in names}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
