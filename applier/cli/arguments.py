# SPDX-License-Identifier: Apache-2.0
"""Arguments that several verbs take, and the values of ``--set KEY=VALUE``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from applier.scheduling.verdict import OnFailure
from planner.errors import InvalidInput, Mistake, accepted

PLAN_HELP = "uuid, a unique beginning of one, a unique name, or 'last'"
ACTION_HELP = "name, or uuid, or a unique beginning of one (action list shows them)"

POLICIES = tuple(str(policy) for policy in OnFailure)


def with_plan(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the argument PLAN."""
    parser.add_argument("plan", metavar="PLAN", help=PLAN_HELP)
    return parser


def add_accept_drift(parser: argparse.ArgumentParser) -> None:
    """Add the option that runs a plan although the cloud is not as planned any more."""
    text = "run it although the cloud is not as planned any more"
    parser.add_argument("--accept-drift", action="store_true", help=text)


def with_action(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the arguments PLAN and ACTION."""
    with_plan(parser).add_argument("action", metavar="ACTION", help=ACTION_HELP)
    return parser


def with_reason(
    parser: argparse.ArgumentParser, *, required: bool = False
) -> argparse.ArgumentParser:
    """Add the option ``--reason``."""
    parser.add_argument("--reason", metavar="TEXT", required=required, help="why, for the record")
    return parser


def add_planning(parser: argparse.ArgumentParser, **file: str) -> None:
    """Add the arguments for a document, a planner and its options.

    ``file`` has the name and the help of the first argument."""
    parser.add_argument("file", **file)  # type: ignore[arg-type]
    parser.add_argument(
        "--planner", metavar="NAME", help="planner (actionplan planner list shows them)"
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="option of the planner (ordering=slots), of one action type "
        "(migrate.parallelization=2), or of the run (max_workers=4, on_failure=continue)",
    )
    parser.add_argument(
        "--no-check-types",
        dest="check_types",
        action="store_false",
        help="also plan action types that no plugin offers, without checking parameters",
    )
    parser.add_argument("--all", action="store_true", help="show every action of a long plan")


def add_format(parser: argparse.ArgumentParser, *more: str) -> None:
    """Add the option ``-f`` for output without rows; ``more`` are further formats."""
    parser.add_argument(
        "-f",
        "--format",
        choices=["table", "json", "yaml", *more],
        default="table",
        help="how to show it (default: table)",
    )


def positive(text: str) -> int:
    """Read a whole number of 1 or more."""
    number = whole_number(text)
    if number is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return number


@dataclass
class SetOptions:
    """The options that were set, of the planner (by name) and of the run.

    ``planning`` has the texts of the settings that change planning.
    """

    options: dict[str, Any] = field(default_factory=dict)
    max_workers: int | None = None
    on_failure: str | None = None
    planning: list[str] = field(default_factory=list)


def read_settings(texts: Sequence[str]) -> SetOptions:
    """Parse all settings; raises InvalidInput with every mistake.

    ``TYPE.OPTION=VALUE`` sets the value of one action type.

    >>> read_settings(["migrate.parallelization=2", "ordering=slots", "max_workers=4"]).options
    {'parallelization': {'migrate': '2'}, 'ordering': 'slots'}
    """
    settings = SetOptions()
    wrong = []
    for text in texts:
        reason = _read_setting(settings, text)
        if reason:
            wrong.append(Mistake(reason, place=f"--set {text}"))
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
