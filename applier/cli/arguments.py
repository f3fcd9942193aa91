# SPDX-License-Identifier: Apache-2.0
"""Arguments that several verbs take, and the documents and plans that they name."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from applier.errors import PlanNotFound
from applier.operations.creation import whole_number

if TYPE_CHECKING:
    from applier.cli.session import Session
    from planner.documents import Document
    from planner.model import ActionPlan

PLAN_HELP = "uuid, a unique beginning of one, a unique name, or 'last'"
STDIN, LAST = "-", "last"
ACTION_HELP = "name, or uuid, or a unique beginning of one (action list shows them)"


def with_plan(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the argument PLAN."""
    parser.add_argument("plan", metavar="PLAN", help=PLAN_HELP)
    return parser


def add_accept_drift(parser: argparse.ArgumentParser) -> None:
    """Add the option that runs a plan although the cloud is not as planned any more."""
    text = "run it although the cloud is not as planned any more"
    parser.add_argument("--accept-drift", action="store_true", help=text)


def add_events(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--events``."""
    parser.add_argument(
        "--events",
        metavar="FILE",
        help="append a line of JSON to FILE for each change of a state; '-': standard output, "
        "and everything else goes to standard error",
    )


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


class NoFileNorPlan(PlanNotFound):
    """Neither a file nor a stored plan has the given name."""

    def __init__(self, reference: str) -> None:
        super().__init__(reference)
        self.args = (f"there is no file {reference!r}, and {self}",)


def is_file(name: str) -> bool:
    """Return True for a readable path, such as a file or a pipe; not for a folder or ``last``."""
    if name == LAST:
        return False
    return name == STDIN or (os.path.exists(name) and not os.path.isdir(name))


def stored_plan(session: Session, name: str) -> ActionPlan:
    """Load a stored plan by a reference that is not the name of a file; raises PlanNotFound."""
    try:
        return session.plan(name)
    except PlanNotFound as reason:
        if reason.candidates:
            raise
        raise NoFileNorPlan(name) from reason


def opened(name: str) -> Document:
    """Read a document from a file, or from standard input for ``-``; raises InvalidInput."""
    from planner import documents

    if name != STDIN:
        return documents.read(name)
    return documents.parse(sys.stdin.buffer.read(), "standard input")
