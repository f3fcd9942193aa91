# SPDX-License-Identifier: Apache-2.0
"""``--set``: what each text sets, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from applier.operations import creation
from planner.errors import InvalidInput

OPTIONS: list[tuple[list[str], dict[str, Any]]] = [
    (["ordering=slots"], {"ordering": "slots"}),
    (["ordering=slots", "ordering=chunks"], {"ordering": "chunks"}),
    (["migrate.weights=3"], {"weights": {"migrate": "3"}}),
    (["a.weights=3", "b.weights=4"], {"weights": {"a": "3", "b": "4"}}),
    (["x.y.weights=3"], {"weights": {"x.y": "3"}}),
    (["limits=node:*=2"], {"limits": "node:*=2"}),
]


def test_a_setting_becomes_an_option() -> None:
    for texts, options in OPTIONS:
        read = creation.read_settings(texts)
        assert (read.options, read.planning) == (options, texts)


def test_what_concerns_the_run_is_no_option_of_a_planner() -> None:
    read = creation.read_settings(["max_workers=4", "on_failure=continue"])
    assert (read.max_workers, read.on_failure) == (4, "continue")
    assert (read.options, read.planning) == ({}, [])


WRONG = {
    "ordering": "KEY=VALUE is expected",
    "=slots": "KEY=VALUE is expected",
    "ordering=": "KEY=VALUE is expected",
    ".weights=3": "KEY=VALUE is expected",
    "migrate.=3": "KEY=VALUE is expected",
    "max_workers=0": "'0' is not a whole number",
    "max_workers=many": "'many' is not a whole number",
    f"max_workers={'9' * 5000}": "is not a whole number",
    "on_failure=continu": "Known: continue, only_after_failure, pause, skip_descendants",
}


def test_a_wrong_setting_is_named_with_what_is_accepted() -> None:
    for text, accepted in WRONG.items():
        with pytest.raises(InvalidInput) as refused:
            creation.read_settings([text])
        (mistake,) = refused.value.mistakes
        assert mistake.place == f"--set {text}"
        assert accepted in mistake.text


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        creation.read_settings(["max_workers=0", "fine=1", "on_failure=x"])
    assert len(refused.value.mistakes) == 2


def test_an_option_is_set_as_a_whole_or_by_type() -> None:
    for texts in (["w=nop:1", "nop.w=2"], ["nop.w=2", "w=nop:1"]):
        with pytest.raises(InvalidInput, match="w is set for all types"):
            creation.read_settings(texts)
