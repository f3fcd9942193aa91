# SPDX-License-Identifier: Apache-2.0
"""The task that a worker makes of a job."""

from __future__ import annotations

import pytest
from followed_job import PAYLOAD

from applier.engines.environment import ActionEnvironment
from applier.store.worker_jobs import AttemptKey
from applier.testing.trials import changed, plugin
from applier.workers.payloads import task_of

KEY = AttemptKey("p", "a", 3)


@pytest.mark.parametrize("continued_s", [None, 0.0, 12.5])
def test_a_new_attempt_and_one_that_goes_on_have_the_number_of_their_job(continued_s):
    environment = ActionEnvironment(plugins={"nop": plugin(changed)}, cloud=lambda: None)
    task = task_of(KEY, {**PAYLOAD, "limit_s": 60.0}, environment, continued_s)
    assert (task.attempt, task.continued_s, task.limit_s) == (3, continued_s, 60.0)
    assert not task.cut_off


def test_a_job_says_that_the_attempt_before_was_cut_off():
    environment = ActionEnvironment(plugins={"nop": plugin(changed)}, cloud=lambda: None)
    assert task_of(KEY, {**PAYLOAD, "cut_off": True}, environment).cut_off
