# SPDX-License-Identifier: Apache-2.0
"""Streams that outlive their reader, and that wait for a slow one."""

from __future__ import annotations

import os
import threading

import pytest

from applier.cli.terminal import lasting, patient

LINES = [f"line {number:06} \N{SNOWMAN}\n" for number in range(20_000)]


@pytest.mark.parametrize("wrapper", [lasting, patient])
def test_a_full_pipe_that_does_not_block_gets_each_character_once(wrapper) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def write() -> None:
        with open(writing, "w", encoding="utf-8") as file:
            stream = wrapper(file)
            stream.write("".join(LINES))
            stream.writelines(LINES)
            stream.flush()

    writer = threading.Thread(target=write)
    writer.start()
    with open(reading, encoding="utf-8") as pipe:
        got = pipe.read()
    writer.join()
    assert got == "".join(2 * LINES)


def test_what_is_lost_with_its_reader_causes_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8") as file:
        with pytest.raises(BrokenPipeError):
            patient(file).write("lost")
        stream = lasting(file)
        assert stream.write("lost") == 4
        stream.flush()
