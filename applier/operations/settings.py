# SPDX-License-Identifier: Apache-2.0
"""The settings ``KEY=VALUE`` for planning and for a run, as ``--set`` gives them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from applier.scheduling.verdict import OnFailure
from planner.errors import InvalidInput, Mistake, accepted

POLICIES = tuple(str(policy) for policy in OnFailure)


@dataclass
class SetOptions:
    """The options that were set, of the planner (by name) and of the run.

    ``planning`` has the texts of the settings that change planning.
    """

    options: dict[str, Any] = field(default_factory=dict)
    max_workers: int | None = None
    on_failure: str | None = None
    planning: list[str] = field(default_factory=list)


def read_settings(texts: Sequence[str], place: str = "--set") -> SetOptions:
    """Parse all settings; raises InvalidInput with every mistake.

    ``TYPE.OPTION=VALUE`` sets the value of one action type. ``place`` is where settings are given.

    >>> read_settings(["migrate.parallelization=2", "ordering=slots", "max_workers=4"]).options
    {'parallelization': {'migrate': '2'}, 'ordering': 'slots'}
    """
    settings = SetOptions()
    wrong = []
    for text in texts:
        reason = _read_setting(settings, text)
        if reason:
            wrong.append(Mistake(reason, place=f"{place} {text}"))
    if wrong:
        raise InvalidInput(wrong)
    return settings


def _read_setting(settings: SetOptions, text: str) -> str | None:
    """Store one setting; return the mistake in it, or None."""
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        return "KEY=VALUE is expected, such as migrate.parallelization=2"
    if key == "max_workers":
        settings.max_workers = whole_number(value)
        return None if settings.max_workers else f"{value!r} is not a whole number of 1 or more"
    if key == "on_failure":
        settings.on_failure = value
        return None if value in POLICIES else f"{value!r} is not one; {accepted(value, POLICIES)}"
    settings.planning.append(text)
    return _read_option(settings.options, key, value)


def _read_option(options: dict[str, Any], key: str, value: str) -> str | None:
    action_type, dot, option = key.rpartition(".")
    if not option or (dot and not action_type):
        return "KEY=VALUE is expected, such as migrate.parallelization=2"
    known = options.get(option)
    if known is not None and isinstance(known, str) == bool(dot):
        return f"{option} is set for all types and for single ones: use only one of these"
    if dot:
        options.setdefault(option, {})[action_type] = value
    else:
        options[option] = value
    return None


def whole_number(text: str) -> int | None:
    """Parse a whole number of 1 or more; returns None for any other text.

    >>> [whole_number(text) for text in ("12", "0", "-1", "1.5", "9" * 99)]
    [12, None, None, None, None]
    """
    # Python refuses to parse very long numbers, and no setting needs ten digits.
    return int(text) or None if re.fullmatch("[0-9]{1,9}", text) else None
