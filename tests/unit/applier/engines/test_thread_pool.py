# SPDX-License-Identifier: Apache-2.0
"""Threads that are started when there is work for one more, and never keep the process alive."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from applier.engines.attempts_in_progress import ThreadPool, Threads

PATIENCE_S = 120.0


def test_as_many_threads_as_there_is_work_but_no_more_than_the_maximum():
    done: queue.SimpleQueue = queue.SimpleQueue()
    inside, go = threading.Semaphore(0), threading.Event()

    def work():
        inside.release()
        go.wait(PATIENCE_S)
        return threading.current_thread().name

    with ThreadPool(2, done.put) as workers:
        for busy in (1, 2, 3):
            workers.grow(busy)
            workers.submit(work)
        assert inside.acquire(timeout=PATIENCE_S)
        assert inside.acquire(timeout=PATIENCE_S)
        go.set()
        names = [done.get(timeout=PATIENCE_S) for _ in range(3)]
    assert set(names) == {"action-worker-1", "action-worker-2"}


def test_one_after_another_needs_one_thread():
    done: queue.SimpleQueue = queue.SimpleQueue()
    with ThreadPool(8, done.put) as workers:
        for _ in range(20):
            workers.grow(1)
            workers.submit(lambda: threading.current_thread().name)
            assert done.get(timeout=PATIENCE_S) == "action-worker-1"


def test_fewer_run_at_once_where_the_machine_grants_no_more_threads(monkeypatch, caplog):
    granted, start = iter([True, True]), threading.Thread.start

    def scarce(thread):
        if not next(granted, False):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", scarce)
    done: queue.SimpleQueue = queue.SimpleQueue()
    with ThreadPool(8, done.put) as workers:
        for busy in range(1, 6):
            workers.grow(busy)
            workers.submit(lambda: threading.current_thread().name)
        names = {done.get(timeout=PATIENCE_S) for _ in range(5)}
    assert names <= {"action-worker-1", "action-worker-2"}
    assert [record.args for record in caplog.records] == [(2,)]
    with ThreadPool(8, done.put) as workers, pytest.raises(RuntimeError):
        workers.grow(1)


def test_work_waits_for_its_first_thread(monkeypatch, caplog):
    granted, start = iter([False, False, True]), threading.Thread.start

    def scarce(thread):
        if not next(granted):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", scarce)
    done: queue.SimpleQueue = queue.SimpleQueue()
    with Threads(8, done.put) as workers:
        workers.grow(1)
        workers.submit(SimpleNamespace(execute=lambda: "done"))
        workers.grow(1)
        assert done.empty()
        workers.grow(1)
        assert done.get(timeout=PATIENCE_S) == "done"
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.slow
def test_work_that_hangs_does_not_keep_the_process_alive():
    program = (
        "import threading\n"
        "from applier.engines.attempts_in_progress import ThreadPool\n"
        "began = threading.Event()\n"
        "def hang():\n"
        "    began.set()\n"
        "    threading.Event().wait()\n"
        "with ThreadPool(1, print) as workers:\n"
        "    workers.grow(1)\n"
        "    workers.submit(hang)\n"
        "    began.wait()\n"
        "print('end')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (ended.returncode, ended.stdout) == (0, "end\n")
