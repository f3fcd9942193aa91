# SPDX-License-Identifier: Apache-2.0
"""The file of events has whole lines; the thread that sends makes calls in order."""

from __future__ import annotations

import json
import threading

import pytest

from applier.delivery.receivers import Away, EventFile, SendingThread


def write(receiver, *events):
    with receiver.opened() as deliver:
        for event in events:
            deliver(event)


def test_each_event_is_a_line(tmp_path):
    path = tmp_path / "events.jsonl"
    receiver = EventFile(str(path), "db-7")
    write(receiver, {"number": 1, "message": "caf\u00e9\n"})
    write(receiver, {"number": 2})
    lines = path.read_text("ascii").splitlines()
    assert [json.loads(line)["number"] for line in lines] == [1, 2]
    assert receiver.name == f"file {path} on db-7"


def test_a_part_of_a_line_is_removed(tmp_path):
    path, whole = tmp_path / "events.jsonl", '{"number":1}\n'
    for before, part in (
        (whole, ""),
        (whole, '{"number":'),
        (whole, "x" * 200_000),
        ("", "no end"),
    ):
        path.write_text(before + part)
        write(EventFile(str(path), "h"), {"number": 2})
        assert path.read_text() == before + '{"number":2}\n'


def test_a_file_that_was_moved_away_is_made_anew(tmp_path):
    path = tmp_path / "events.jsonl"
    receiver = EventFile(str(path), "h")
    write(receiver, {"number": 1})
    path.rename(tmp_path / "events.1")
    write(receiver, {"number": 2})
    assert path.read_text() == '{"number":2}\n'


def test_a_full_disk_means_that_nothing_of_the_block_was_delivered():
    with pytest.raises(Away, match="No space left"):
        write(EventFile("/dev/full", "h"), {"number": 1})


# A thread makes calls in order, and whoever waits for one that hangs goes on.


def test_calls_are_made_in_order_and_the_last_one_closes():
    made = []
    thread = SendingThread(lambda: made.append("closed"))
    for number in range(3):
        thread.call(lambda number=number: made.append(number), 30)
    thread.end(30)
    assert made == [0, 1, 2, "closed"]
    assert not thread.is_alive()


def test_an_error_comes_out_and_the_next_call_is_made():
    made = []
    thread = SendingThread(made.clear)
    with pytest.raises(ZeroDivisionError):
        thread.call(lambda: 1 / 0, 30)
    thread.call(lambda: made.append(1), 30)
    assert made == [1]
    thread.end(30)


def test_who_waits_for_a_call_that_hangs_goes_on_and_it_closes_later():
    go_on, closed = threading.Event(), threading.Event()
    thread = SendingThread(closed.set)
    with pytest.raises(TimeoutError):
        thread.call(go_on.wait, 0.01)
    thread.end(600)
    assert thread.is_alive()
    assert not closed.is_set()
    go_on.set()
    thread.join()
    assert closed.is_set()


def test_an_error_while_it_closes_is_none_of_the_callers():
    thread = SendingThread(lambda: 1 / 0)
    thread.end(30)
    assert not thread.is_alive()
