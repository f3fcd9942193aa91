"""Reads ``--set KEY=VALUE``, which sets an option wherever it belongs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from planner.errors import InvalidInput, Mistake, accepted

POLICIES = ("skip_descendants", "continue")


@dataclass
class Settings:
    """What was set: options of the planner by name, and how plans are applied."""

    options: dict[str, Any] = field(default_factory=dict)
    max_workers: int | None = None
    on_failure: str | None = None


def read(texts: Sequence[str]) -> Settings:
    """Read all settings; raises InvalidInput naming each that cannot be read.

    ``TYPE.OPTION=VALUE`` sets the value of one action type.

    >>> read(["migrate.parallelization=2", "ordering=slots", "max_workers=4"])
    Settings(options={'parallelization': {'migrate': '2'}, 'ordering': 'slots'}, max_workers=4, \
on_failure=None)
    """
    settings = Settings()
    wrong = []
    for text in texts:
        reason = _read(settings, text)
        if reason:
            wrong.append(Mistake(reason, place=f"--set {text}"))
    if wrong:
        raise InvalidInput(wrong)
    return settings


def _read(settings: Settings, text: str) -> str | None:
    """Take in one setting; returns what is wrong with it, if anything is."""
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        return "KEY=VALUE is expected, such as migrate.parallelization=2"
    if key == "max_workers":
        if not value.isdecimal() or int(value) < 1:
            return f"{value!r} is not a whole number from 1 up"
        settings.max_workers = int(value)
    elif key == "on_failure":
        if value not in POLICIES:
            return f"{value!r} is not accepted; {accepted(value, POLICIES)}"
        settings.on_failure = value
    else:
        action_type, dot, option = key.rpartition(".")
        if dot:
            settings.options.setdefault(option, {})[action_type] = value
        else:
            settings.options[key] = value
    return None
