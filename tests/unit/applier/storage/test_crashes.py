# SPDX-License-Identifier: Apache-2.0
"""The record on SQLite when the process is killed: whole batches or nothing."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from sample_plans import new_plan
from store_checks import running_plans
from store_checks.running_plans import claimed

from applier.storage.sql_store import SqlStore
from planner.plan.states import ActionState

pytestmark = pytest.mark.slow

ROUNDS, BATCH = 10, 4

#: Writes batches until it is killed, and says of each when it is durable. Each batch ends one group
#: of actions and starts the next. Its input ends with the test.
WRITER = (
    f"""
import sys
sys.path.insert(0, {str(Path(running_plans.__file__).parents[1])!r})
"""
    + """
from applier.storage.sql_store import SqlStore
from store_checks.running_plans import NOW, starts, succeeds
url, uuid, claim, size = *sys.argv[1:4], int(sys.argv[4])
store = SqlStore(url)
actions = store.load_plan(uuid).actions
print("ready", flush=True)
before = ()
for first in range(0, len(actions), size):
    group = actions[first : first + size]
    ended = [succeeds(action, output="o" * 3000) for action in before]
    store.commit(uuid, claim, [*ended, *map(starts, group)], now=NOW)
    print(first // size + 1, flush=True)
    before = group
sys.stdin.read()
"""
)


@pytest.mark.long
def test_a_killed_process_leaves_every_batch_that_it_was_told_of_and_none_in_halves(tmp_path):
    chance, sure = random.Random(4), []
    for number in range(ROUNDS):
        url = f"sqlite:///{tmp_path}/plans{number}.db"
        plan = new_plan(*map(str, range(2000)))
        with closing(SqlStore(url)) as store:
            claim = claimed(store, plan)
        sure.append(
            acknowledged(url, plan.uuid, claim, chance.randrange(40), chance.uniform(0, 0.02))
        )
        with closing(SqlStore(url)) as store:
            states = [action.state for action in store.load_plan(plan.uuid).actions]
            groups = [set(states[i : i + BATCH]) for i in range(0, len(states), BATCH)]
            there = len(groups) - groups.count({ActionState.PENDING})
            # One more may have become durable before it could say so.
            assert there - sure[-1] in (0, 1)
            done, runs = {ActionState.SUCCEEDED}, {ActionState.ONGOING}
            written = [done] * (there - 1) + [runs] * (there > 0)
            assert groups[:there] == written
            tried = [store.attempts(plan.uuid, action.uuid) for action in plan.actions[:8]]
            assert [len(t) for t in tried] == [1] * min(8, there * BATCH) + [0] * (
                8 - min(8, there * BATCH)
            )
    assert max(sure) > 3, "every process was killed before it wrote anything"


def acknowledged(url, uuid, claim, batches, more_s):
    """Kill a process ``more_s`` after it wrote so many batches; return the last it was sure of."""
    command = [sys.executable, "-c", WRITER, url, uuid, claim, str(BATCH)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as writer:
        assert writer.stdout.readline() == "ready\n"
        for _ in range(batches):
            writer.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            writer.wait(more_s)
        writer.kill()
        lines = writer.stdout.read().splitlines()
    assert writer.returncode == -signal.SIGKILL
    return int(lines[-1]) if lines else batches
