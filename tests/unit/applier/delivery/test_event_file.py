# SPDX-License-Identifier: Apache-2.0
"""The file of events: whole lines, on the disk at the end of a block, and mended after a crash."""

from __future__ import annotations

import json

import pytest

from applier.delivery.receivers import Away, EventFile


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


@pytest.mark.parametrize("part", ["", '{"number":', "x" * 200_000])
def test_a_part_of_a_line_is_removed(tmp_path, part):
    path = tmp_path / "events.jsonl"
    path.write_text('{"number":1}\n' + part)
    write(EventFile(str(path), "h"), {"number": 2})
    assert path.read_text() == '{"number":1}\n{"number":2}\n'


def test_a_file_that_is_nothing_but_a_part_of_a_line_is_emptied(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text("no end")
    write(EventFile(str(path), "h"), {"number": 2})
    assert path.read_text() == '{"number":2}\n'


def test_a_file_that_was_moved_away_is_made_anew(tmp_path):
    path = tmp_path / "events.jsonl"
    receiver = EventFile(str(path), "h")
    write(receiver, {"number": 1})
    path.rename(tmp_path / "events.1")
    write(receiver, {"number": 2})
    assert path.read_text() == '{"number":2}\n'


def test_what_cannot_be_written_is_told(tmp_path):
    with pytest.raises(Away, match="Is a directory"):
        write(EventFile(str(tmp_path), "h"), {"number": 1})


def test_a_full_disk_means_that_nothing_of_the_block_was_delivered():
    with pytest.raises(Away, match="No space left"):
        write(EventFile("/dev/full", "h"), {"number": 1})
