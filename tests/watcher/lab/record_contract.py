# SPDX-License-Identifier: Apache-2.0
"""The contract of run stores over Watcher's tables: tests for ``run_pytest.py``.

Fields of plans for which Watcher has no columns are laid over what was loaded, so that the checks
see the states that Watcher's tables hold.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

sys.path.insert(0, str(Path(__file__).parents[2] / "contract"))
from sample_plans import MADE
from store_checks.running_plans import AFTERWARDS, LATER, NOW
from store_suite import RunStoreContract
from watcher_in_one_process import OneProcessWatcher

MOMENTS = (MADE, NOW, LATER, AFTERWARDS)
_UUID = "uuids of actions are unique in Watcher's whole database"
_FIELDS = "Watcher's tables have no columns for most fields of plans"
_MESSAGE = "the messages of plans are those of Watcher's handler"
_ENDS = "Watcher's actions have no times, and a message of their own for those that did not run"
_UPDATED = "Watcher's plans do not change when their actions do"
_OUTPUT = "Watcher has no column for output, and 255 characters for messages"
_REQUESTS = "Watcher's one request is the state CANCELLING of the plan"
_RESERVATIONS = "Watcher has no reservations between plans"
_ROLLBACK = "Watcher has no rollback plans"
#: The checks that cannot hold, and why.
CANNOT = {
    "test_any_plan_comes_back_as_it_was_saved": _FIELDS,
    "test_equal_sets_of_links_are_one_object": _FIELDS,
    "test_two_plans_may_name_their_actions_alike": _UUID,
    "test_a_plan_that_was_loaded_is_refreshed": _MESSAGE,
    "test_a_claim_makes_the_plan_ongoing": _MESSAGE,
    "test_what_does_not_run_has_no_start_on_record": _ENDS,
    "test_a_start_and_an_end_set_their_times": _UPDATED,
    "test_an_attempt_is_on_record_from_its_start": _OUTPUT,
    "test_an_attempt_that_is_tried_again_failed": _OUTPUT,
    "test_an_attempt_in_doubt_goes_on_as_the_same_attempt": _OUTPUT,
    "test_the_end_of_a_long_output_is_kept": _OUTPUT,
    "test_requests_are_numbered_and_listed_from_where_one_stopped": _REQUESTS,
    "test_a_request_for_limits_keeps_them": _REQUESTS,
    "test_the_first_to_reserve_a_resource_has_it": _RESERVATIONS,
    "test_resources_are_released_when_the_claim_ends": _RESERVATIONS,
    "test_who_reserves_again_stands_behind_the_others": _RESERVATIONS,
    "test_who_does_not_run_the_plan_reserves_nothing": _RESERVATIONS,
    "test_of_plans_that_reserve_at_once_one_has_everything": _RESERVATIONS,
    "test_a_run_of_a_plan_that_is_not_there_is_refused": _RESERVATIONS,
    "test_a_revert_tells_what_became_of_what_it_undid": _ROLLBACK,
}


class Record:
    """Watcher's record, with a way to store plans."""

    def __init__(self, watcher):
        from applier.watcher.record import WatcherRecord

        self._watcher = watcher
        self._record = WatcherRecord({}, {}, service_host="lab")
        self._saved = {}

    def __getattr__(self, name):
        return getattr(self._record, name)

    def save_plan(self, plan):
        """Store a plan in Watcher's tables."""
        from watcher.db.sqlalchemy import models

        from applier.notifications.watcher import action_word
        from applier.watcher import database

        self._saved[plan.uuid] = plan
        with database.writing() as connection:
            connection.execute(
                sa.insert(database.PLANS).values(
                    uuid=plan.uuid,
                    audit_id=self._watcher.audit.id,
                    strategy_id=self._watcher.strategy.id,
                    state=str(plan.state),
                    global_efficacy=[],
                )
            )
            number = database.plan_row(connection, plan.uuid).id
            rows = [
                {
                    "uuid": action.uuid,
                    "action_plan_id": number,
                    "action_type": action.action_type,
                    "input_parameters": dict(action.input_parameters),
                    "state": action_word(action.state),
                    "parents": list(action.parents),
                }
                for action in plan.actions
            ]
            connection.execute(sa.insert(models.Action.__table__), rows)

    def load_plan(self, uuid):
        """Load a plan, with the fields that Watcher does not have as they were saved."""
        return self._laid_over(self._record.load_plan(uuid))

    def refresh_plan(self, plan):
        """Refresh a plan, with the fields that Watcher does not have as they were saved."""
        return self._laid_over(self._record.refresh_plan(plan))

    def _laid_over(self, found):
        saved = self._saved[found.uuid]
        planned = {action.uuid: action for action in saved.actions}
        actions = tuple(
            replace(
                planned[a.uuid],
                state=a.state,
                outcome=a.outcome,
                status_message=a.status_message,
                started_at=a.started_at,
                ended_at=a.ended_at,
                attempts=a.attempts,
            )
            for a in found.actions
        )
        return replace(
            saved,
            state=found.state,
            status_message=found.status_message,
            updated_at=exact(found.updated_at),
            actions=actions,
        )


def exact(moment):
    """Return the moment of a check that was written: MySQL keeps whole seconds for Watcher."""
    near = (at for at in MOMENTS if moment and abs(at - moment) <= timedelta(seconds=1))
    return next(near, moment)


@pytest.fixture(scope="session")
def watcher():
    """Return a Watcher with the tables of this product."""
    from applier.watcher import database

    url = os.environ.get("WATCHER_DATABASE")
    settings = {"database": {"connection": url}} if url else {}
    found = OneProcessWatcher(Path(os.environ["WATCHER_FOLDER"]), settings)
    database.prepare()
    return found


@pytest.fixture
def store(watcher):
    """Return a record without attempts of earlier tests."""
    from applier.watcher import database

    with database.writing() as connection:
        connection.execute(sa.delete(database.attempts))
    return Record(watcher)


class TestWatcherRecord(RunStoreContract):
    """The checks that can hold."""


for _name, _why in CANNOT.items():
    setattr(TestWatcherRecord, _name, pytest.mark.skip(_why)(getattr(TestWatcherRecord, _name)))
