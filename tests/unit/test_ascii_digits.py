# SPDX-License-Identifier: Apache-2.0
"""Only ASCII digits are numbers, wherever a text is read as one."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from applier.cli import simulate
from applier.errors import ConfigurationError
from applier.machines import address
from applier.machines.simulated_nodes import require_failure
from applier.wording import natural
from planner import documents
from planner.errors import InvalidInput
from planner.making import options
from planner.planners import number_options
from planner.planners.deployment import conditions, planner, task_fields
from planner.planners.events import document as events_schema
from planner.planners.rolling_update import functions, update_policy
from planner.schemas import ranges
from planner.schemas.ranges import whole_number

ROOT = Path(__file__).parents[2]
#: Two of each: full width, Arabic, Devanagari, mathematical.
OTHER_DIGITS = ["１２", "٣٤", "१२", "𝟙𝟚"]


def number_of_yaml(text: str) -> Any:
    found = documents.parse(f"a: {text}", "plan.yaml").value["a"]
    if isinstance(found, str):
        raise ValueError(found)
    return found


def matched(pattern: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not re.search(pattern, text):
            raise ValueError(text)
        return text

    return read


def not_none(read: Callable[[str], object]) -> Callable[[str], object]:
    def checked(text: str) -> object:
        if (found := read(text)) is None:
            raise ValueError(text)
        return found

    return checked


#: How each reader is called, and the text in which digits are replaced.
READERS: dict[str, tuple[Callable[[str], object], str]] = {
    "YAML": (number_of_yaml, "{}"),
    "YAML !!int": (number_of_yaml, "!!int {}"),
    "YAML !!float": (number_of_yaml, "!!float {}"),
    "YAML decimal": (number_of_yaml, "1.{}"),
    "weights": (number_options.finite, "{}"),
    "weights decimal": (number_options.finite, "1.{}"),
    "parallelization": (number_options.at_least_one, "{}"),
    "limits": (options.LIMITS, "node:*={}"),
    "retries": (lambda text: task_fields.number(text, whole=True), "{}"),
    "version": (task_fields.major, "2.{}"),
    "tolerance": (lambda text: planner.allowed(text, 10), "{}"),
    "percentage": (lambda text: planner.allowed(text, 10), "{}%"),
    "condition": (conditions.Condition, "settings:a.value == {}"),
    "run": (matched(events_schema.RUN_NAME), "a.b#{}"),
    "duration": (not_none(update_policy.duration_s), "PT{}S"),
    "whole": (lambda text: update_policy.whole(text, 0), "{}"),
    "index": (not_none(lambda text: functions._entry(list(range(99)), text)), "{}"),
    "deadline": (ranges.moment, "20{}-01-01T00:00:00"),
    "time of a saved plan": (matched(ranges.TIME["pattern"]), "20{}-01-01T00:00:00Z"),
    "--max-workers": (not_none(whole_number), "{}"),
    "port": (address.parse, "host:{}"),
    "failures": (require_failure, "0.{}"),
}


def is_read(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except (ValueError, InvalidInput, ConfigurationError, conditions.InvalidCondition):
        return False
    return True


def test_ascii_digits_are_read_and_no_others() -> None:
    wrong = [
        (name, digits)
        for name, (read, text) in READERS.items()
        for digits in ("12", *OTHER_DIGITS)
        if is_read(read, text.format(digits)) != (digits == "12")
    ]
    assert not wrong


def test_other_digits_are_text_where_any_text_is_accepted() -> None:
    assert natural("9" * 5000)[0] == (0, int("9" * 18))
    for digits in OTHER_DIGITS:
        assert natural(digits) == [(1, digits)]
        assert simulate.expand([f"a={digits}..{digits}"]) == ([], [(f"a={digits}..{digits}",)])


#: Digits of the kernel, not of people.
OF_THE_KERNEL = {"applier/machines/local_jobs.py"}


def sources() -> list[Path]:
    found = [path for top in ("planner", "applier") for path in (ROOT / top).rglob("*.py")]
    return [path for path in found if str(path.relative_to(ROOT)) not in OF_THE_KERNEL]


def test_no_pattern_or_question_accepts_other_digits() -> None:
    r"""In a pattern of text, ``\d`` is any digit; ``isdigit`` and its like accept others too."""
    for path in sources():
        text = path.read_text(encoding="utf-8")
        if not re.search(r"\\[dD]|isdigit|isdecimal|isnumeric", text):
            continue  # most files need no parser
        for node in ast.walk(ast.parse(text)):
            place = f"{path}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not re.search(r"(?<!\\)(\\\\)*\\[dD]", node.value), f"{place}: write [0-9]"
            if isinstance(node, ast.Attribute):
                assert node.attr not in ("isdigit", "isdecimal", "isnumeric"), place
