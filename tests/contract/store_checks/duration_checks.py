# SPDX-License-Identifier: Apache-2.0
"""Checks the recorded durations of action types."""

# Tests are assertions.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from sample_plans import new_plan

from applier.contracts import HistoryEntry
from applier.storage.sql_store import SqlStore
from applier.store.entries import NO_PLAN
from applier.store.runs import Sample
from planner.plan.states import ActionState, Outcome, PlanState
from store_checks.running_plans import (
    AFTERWARDS,
    LATER,
    ME,
    NOW,
    RunStoreUnderTest,
    at_once,
    claimed,
    ends,
    starts,
    succeeds,
)

LARGE = {"flavor": "m1.large"}
IMPORTED = HistoryEntry(verb="import", who="wanda", at=NOW, why="two of nop")


def seconds(found: Mapping[str, Sequence[Sample]]) -> dict[str, list[float]]:
    """Return durations without the sizes and nodes, which not every store records."""
    return {name: [sample.seconds for sample in samples] for name, samples in found.items()}


class DurationChecks:
    """Durations of the attempts that changed something."""

    def test_durations_are_those_of_attempts_that_did_their_work(
        self, store: RunStoreUnderTest
    ) -> None:
        """The newest come first, in the order of the commits and not by the clock."""
        plan = new_plan(*"abcdef")
        plan = replace(plan, actions=(*plan.actions[:5], replace(plan.actions[5], action_type="x")))
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(action) for action in plan.actions], now=NOW)
        a, b, c, d, e, f = plan.actions
        last = [
            (succeeds(a), 60),
            (succeeds(b, outcome=Outcome.CREATED), 20),
            (succeeds(c, outcome=Outcome.OK), 1),
            (ends(d, ActionState.FAILED, outcome=Outcome.FAILED), 2),
            (succeeds(e), -30),
            (succeeds(f), 0.25),
        ]
        for report, after in last:
            store.commit(plan.uuid, claim, [report], now=NOW + timedelta(seconds=after))
        asked = seconds(store.durations(["nop", "x", "none"]))
        assert asked == {"nop": [20.0, 60.0], "x": [0.25], "none": []}
        assert seconds(store.durations(["x", "nop"], most=2)) == {"nop": [20.0], "x": [0.25]}

    def test_durations_before_a_time_are_those_of_attempts_that_had_ended(
        self, store: RunStoreUnderTest
    ) -> None:
        """Later ones do not count, so that a past forecast can be repeated with its own data."""
        plan = new_plan("a", "b")
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(action) for action in plan.actions], now=NOW)
        for seconds_later, action in zip((10, 20), plan.actions, strict=True):
            at = NOW + timedelta(seconds=seconds_later)
            store.commit(plan.uuid, claim, [succeeds(action)], now=at)
        for before, expected in ((10, []), (11, [10.0]), (21, [20.0, 10.0])):
            at = NOW + timedelta(seconds=before)
            assert seconds(store.durations(["nop"], before=at)) == {"nop": expected}

    def test_work_that_was_cut_off_has_no_duration(self, store: RunStoreUnderTest) -> None:
        """An attempt that ends under the next claim does not count: its real end is unknown."""
        plan = new_plan("a")
        (a,) = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(a)], now=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.PENDING, now=NOW)
        claim = store.claim_plan(plan.uuid, ME, now=LATER)
        store.commit(plan.uuid, claim, [succeeds(a)], now=AFTERWARDS)
        assert store.durations(["nop"]) == {"nop": []}


class NodeDurationChecks:
    """Checks of imported durations, and of the nodes of durations."""

    def test_imported_durations_come_after_those_of_its_own_plans(self, store: SqlStore) -> None:
        """At most ``most`` are returned: the latest of its own, then the imported ones in order."""
        plan = new_plan("a")
        (a,) = plan.actions
        claim = claimed(store, replace(plan, actions=(replace(a, input_parameters=LARGE),)))
        store.commit(plan.uuid, claim, [starts(a)], now=NOW)
        store.commit(plan.uuid, claim, [succeeds(a)], now=NOW + timedelta(seconds=2))
        given = [Sample(7.5, "m1.tiny", "c1"), Sample(6.0)]
        store.import_durations({"nop": given, "x": [Sample(1.0)]}, history=IMPORTED)
        own, elsewhere = Sample(2.0, "m1.large"), [s._replace(imported=True) for s in given]
        assert store.durations(["nop"]) == {"nop": [own, *elsewhere]}
        assert store.durations(["nop"], most=2) == {"nop": [own, elsewhere[0]]}
        assert store.imported_types() == ["nop", "x"]

    def test_an_import_replaces_earlier_ones_of_its_types(self, store: SqlStore) -> None:
        """So the same file may be imported again; an empty list removes those of a type."""
        store.import_durations({"nop": [Sample(1.0)], "x": [Sample(2.0)]}, history=IMPORTED)
        store.import_durations({"nop": [Sample(3.0)]}, history=IMPORTED)
        store.import_durations({"nop": [Sample(3.0)], "x": []}, history=IMPORTED)
        found = store.durations(["nop", "x"])
        assert found == {"nop": [Sample(3.0, imported=True)], "x": []}
        assert store.imported_types() == ["nop"]
        told = [(e.plan, e.verb, e.who, e.why) for e in store.history()]
        assert told == [(NO_PLAN, "import", "wanda", "two of nop")] * 3

    def test_of_two_imports_at_once_one_is_kept(self, store: SqlStore) -> None:
        """The last one replaces the others as a whole: no mixture of them remains."""

        def run(number: int) -> None:
            samples = [Sample(float(number))] * 50
            store.import_durations({"nop": samples}, history=IMPORTED)

        at_once(4, run)
        kept = [sample.seconds for sample in store.durations(["nop"])["nop"]]
        assert (len(kept), len(set(kept))) == (50, 1)

    def test_the_node_of_a_duration_is_the_first_that_its_action_touches(
        self, store: SqlStore
    ) -> None:
        """The node is that of the first token ``node:...``; None for an action without one."""
        plan = new_plan("a", "b")
        a, b = plan.actions
        a = replace(a, tokens=("type:nop", "node:c1", "node:c2"))
        claim = claimed(store, replace(plan, actions=(a, b)))
        for action, after in ((a, 1), (b, 3)):
            store.commit(plan.uuid, claim, [starts(action)], now=NOW)
            done = NOW + timedelta(seconds=after)
            store.commit(plan.uuid, claim, [succeeds(action)], now=done)
        assert store.durations(["nop"]) == {"nop": [Sample(3.0), Sample(1.0, None, "c1")]}
