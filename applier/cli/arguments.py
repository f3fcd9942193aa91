# SPDX-License-Identifier: Apache-2.0
"""Arguments that several verbs have; reads the documents and loads the plans that they name."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from applier.assembly import now
from applier.cli.session import Session
from applier.errors import PlanNotFound
from applier.store.plans import LAST_PLAN
from planner.errors import InvalidInput, Mistake, Path
from planner.schemas import ranges
from planner.schemas.ranges import whole_number

if TYPE_CHECKING:
    from planner.documents import Document
    from planner.plan.model import ActionPlan

#: An age or a span of time: a number and a unit.
AGE = re.compile("([0-9]{1,9})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
PLAN_HELP = "uuid, a unique beginning of one, a unique name, 'last', or 'last~1'"
STDIN, LAST = "-", "last"
ACTION_HELP = "name, or uuid, or a unique beginning of one (action list shows them)"


#: Adds arguments to a parser, or to a group of one.
Add = Callable[[Any], object]


def argument(*names: str, **options: Any) -> Add:
    """Return what adds one argument; the parameters are those of ``add_argument``."""
    return methodcaller("add_argument", *names, **options)


def defaults(**values: Any) -> Add:
    """Return what sets the values of arguments that a verb does not have."""
    return methodcaller("set_defaults", **values)


def one_of(*arguments: Add, required: bool = False) -> Add:
    """Return what adds arguments of which a command line may have only one."""

    def add(parser: argparse.ArgumentParser) -> None:
        group = parser.add_mutually_exclusive_group(required=required)
        for one in arguments:
            one(group)

    return add


_REASON: dict[str, Any] = {"metavar": "TEXT", "help": "why, for the record"}
PLAN = argument("plan", metavar="PLAN", help=PLAN_HELP)
ACTION = argument("action", metavar="ACTION", help=ACTION_HELP)
REASON = argument("--reason", **_REASON)
REASON_NEEDED = argument("--reason", required=True, **_REASON)
YES = argument("-y", "--yes", action="store_true", help="do not ask")
ALL = argument("--all", action="store_true", help="show every action of a long plan")
ACCEPT_DRIFT = argument(
    "--accept-drift",
    action="store_true",
    help="run it although the cloud is not as planned any more",
)


def state_of(states: type[StrEnum]) -> Add:
    """Return what adds the option ``--state``."""
    known = [str(state) for state in states]
    text = f"only these: {', '.join(known)}"
    return argument("--state", metavar="STATE", type=str.upper, choices=known, help=text)


def planning(file: Add) -> Add:
    """Return what adds ``file``, which names a document, and a planner and its options."""

    def add(parser: argparse.ArgumentParser) -> None:
        file(parser)
        parser.add_argument(
            "--planner", metavar="NAME", help="planner (actionplan planner list shows them)"
        )
        parser.add_argument(
            "--set",
            metavar="KEY=VALUE",
            action="append",
            default=[],
            help="option of the planner (ordering=slots), of one action type "
            "(migrate.parallelization=2), or of the run (max_workers=4, on_failure=continue); or a "
            "guard of the plan (approvals=1)",
        )
        ALL(parser)

    return add


def format_of(*more: str) -> Add:
    """Return what adds the option ``-f`` for output without rows; ``more`` are further formats."""
    return argument(
        "-f",
        "--format",
        choices=["table", "json", "yaml", *more],
        default="table",
        help="how to show it (default: table)",
    )


def positive(text: str) -> int:
    """Parse a whole number of 1 or more; raises ArgumentTypeError."""
    number = whole_number(text)
    if number is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return number


def _moment(
    text: str, accepted: str, at: Callable[[timedelta], datetime], *, is_span: bool = False
) -> datetime:
    """Parse a time, in UTC unless it has a zone, or a span such as ``12h``, of which ``at`` is.

    With ``is_span``, only a span is accepted. Raises ArgumentTypeError.
    """
    read = AGE.fullmatch(text)
    try:
        if read is not None:
            return at(timedelta(**{_UNITS[read[2]]: int(read[1])}))
        if not is_span:
            return ranges.moment(text)
    except (ValueError, OverflowError):
        pass  # it is refused below
    raise argparse.ArgumentTypeError(f"{text!r} is {accepted}")


def age(text: str) -> datetime:
    """Parse an age such as ``90d``; return the time that long ago. Raises ArgumentTypeError."""
    accepted = "not an age such as 12h, 90d or 8w"
    return _moment(text, accepted, lambda span: now() - span, is_span=True)


def time_or_age(text: str) -> datetime:
    """Parse a time, or an age such as ``90d``: the time that long ago; see :func:`_moment`."""
    accepted = "a time such as 2026-03-01 or 2026-03-01T22:00, nor an age such as 12h or 90d"
    return _moment(text, f"neither {accepted}", lambda span: now() - span)


def time_or_span(text: str) -> datetime:
    """Parse a time, or a span such as ``12h``: the time that long from now; see :func:`_moment`."""
    accepted = "a time such as 2026-11-28T22:00, nor so long from now, such as 30m or 12h"
    # Whole seconds, as they are shown.
    return _moment(text, f"neither {accepted}", lambda span: now().replace(microsecond=0) + span)


class NoFileNorPlan(PlanNotFound):
    """Neither a file nor a stored plan has the given name."""

    def __init__(self, reference: str) -> None:
        super().__init__(reference)
        self.args = (f"there is no file {reference!r}, and {self}",)


def is_file(name: str) -> bool:
    """Return True for ``-``, and for an existing path that is no folder, such as a file or a pipe.

    ``last`` and ``last~1`` always name a plan, even if there is a file of that name.
    """
    if LAST_PLAN.fullmatch(name):
        return False
    return name == STDIN or (os.path.exists(name) and not os.path.isdir(name))


def stored_plan(session: Session, name: str) -> ActionPlan:
    """Load a stored plan by a reference: see :meth:`applier.cli.session.Session.plan`.

    Raises NoFileNorPlan, which mentions that there is no such file either, or PlanNotFound if
    several plans match.
    """
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
    return documents.read_open(sys.stdin.buffer, "standard input")


def planned(session: Session, name: str, *, for_cloud: bool = False) -> tuple[ActionPlan, bool]:
    """Return the plan that is to be looked at, and whether it is stored.

    A document is planned, for the configured cloud or for none. Nothing runs, so a saved plan may
    come from a machine with other plugins. Raises InvalidInput, PlanNotFound.
    """
    from applier.operations import creation

    if not is_file(name):
        return stored_plan(session, name), True
    document, settings = opened(name), creation.SetOptions()
    checked = not document.is_plan
    made = creation.planned(session, document, settings, check_types=checked, for_cloud=for_cloud)
    return made, False


FILE_OR_PLAN = argument(
    "file",
    metavar="FILE|PLAN",
    help=f"document or saved plan ('-': standard input); or {PLAN_HELP}",
)
FILE_OR_PLAYBOOK = one_of(
    argument(
        "file", metavar="FILE", nargs="?", help="document, or saved plan; '-': standard input"
    ),
    argument(
        "--from-playbook",
        metavar="PLAYBOOK",
        help="a playbook of Ansible, such as site.yml, instead of a document",
    ),
    required=True,
)


def add_playbook(parser: argparse.ArgumentParser) -> None:
    """Add the options that go with ``--from-playbook``."""
    group = parser.add_argument_group("with --from-playbook")
    group.add_argument(
        "--inventory",
        metavar="HOSTS",
        action="append",
        help="any inventory that ansible-inventory reads; may be repeated",
    )
    group.add_argument("--limit", metavar="PATTERN", help="only these hosts")
    group.add_argument("--tags", metavar="TAG,...", help="only tasks with one of these tags")
    group.add_argument("--skip-tags", metavar="TAG,...", help="no tasks with one of these tags")
    group.add_argument(
        "--variables",
        metavar="NAME=TEXT|@FILE",
        action="append",
        help="as --extra-vars: a variable, or a file with some; may be repeated",
    )
    group.add_argument("--become", action="store_true", help="run tasks as another user")
    group.add_argument("--forks", metavar="N", type=positive, help="how many hosts at once")


def _variables(texts: Sequence[str]) -> dict[str, Any]:
    """Return the variables of ``--variables``, of which the last holds; raises InvalidInput."""
    found: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        given = opened(text[1:]).value if text.startswith("@") else {name: value}
        if not isinstance(given, Mapping) or not (sign or text.startswith("@")):
            wrong = f"{text!r} is neither NAME=TEXT nor @FILE, a file with a mapping"
            raise InvalidInput([Mistake(wrong, place="--variables")])
        found |= given
    return found


def document_of(args: argparse.Namespace) -> Document:
    """Return the document that FILE names, or one of the options for a playbook.

    Raises InvalidInput.
    """
    from planner.documents import Document

    names = ("inventory", "limit", "tags", "skip_tags", "variables", "become", "forks")
    given = {name: getattr(args, name) for name in names if getattr(args, name)}
    if args.from_playbook is not None:
        if "variables" in given:
            given["variables"] = _variables(given["variables"])
        name = os.path.splitext(os.path.basename(args.from_playbook))[0]
        value = {"kind": "playbook", "name": name, "playbook": args.from_playbook, **given}
        return Document(value, "--from-playbook")
    if given:
        places = [f"--{name.replace('_', '-')}" for name in given]
        text = "it goes with --from-playbook; a document says it itself"
        raise InvalidInput(Mistake(text, place=place) for place in places)
    return opened(args.file)


#: The field of the document that each option sets.
_PLACES: dict[str, Path] = {
    "node": ("only", "nodes"),
    "task": ("only", "tasks"),
    "fetch_deps": ("fetch_deps",),
    "changed_since": ("changed_since",),
    "strict": ("strict",),
}


def add_part(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a part of a deployment."""
    group = parser.add_argument_group("a part of a deployment")
    group.add_argument(
        "--node", metavar="UID,...", action="append", help="only tasks of these nodes"
    )
    group.add_argument("--task", metavar="NAME,...", action="append", help="only these tasks")
    group.add_argument(
        "--fetch-deps",
        action="store_true",
        help="also what they depend on, on whatever node",
    )
    group.add_argument(
        "--changed-since",
        metavar="PLAN",
        help="only what differs from that plan, and what depends on it "
        f"(a saved plan; or {PLAN_HELP})",
    )
    group.add_argument(
        "--strict", action="store_true", help="refuse names, roles and groups that match nothing"
    )


def chosen(document: Document, args: argparse.Namespace, session: Session) -> Document:
    """Return the document with the chosen part written into it.

    Raises InvalidInput for a saved plan, and for a document that is no deployment.
    """
    from planner.documents import Document

    given = dict(_given(args))
    if not given:
        return document
    if document.is_plan:
        refuse(args)
    kind = document.value.get("kind") if isinstance(document.value, dict) else None
    if kind != "deployment":
        text = "only documents of kind 'deployment' have nodes and tasks to choose from"
        raise InvalidInput(Mistake(text, place=place) for place in given.values())
    fields: dict[str, Any] = {"only": {**(document.value.get("only") or {})}}
    for option in given:
        value = getattr(args, option)
        if option == "changed_since":
            value = _earlier(value, session).to_dict()
        inside = _PLACES[option]
        if len(inside) == 2:
            fields["only"][inside[1]] = [
                name.strip() for text in value for name in text.split(",") if name.strip()
            ]
        else:
            fields[option] = value
    brought = {_PLACES[option]: (Document(None, place), ()) for option, place in given.items()}
    value = {**document.value, **{k: v for k, v in fields.items() if v}}
    return replace(document, value=value, brought={**document.brought, **brought})


def refuse(args: argparse.Namespace) -> None:
    """Raise InvalidInput if options choose a part of a plan that is already made."""
    given = [place for _, place in _given(args)]
    if given:
        text = "has no effect: this plan is already made; make a new one from its document"
        raise InvalidInput(Mistake(text, place=place) for place in given)


def _given(args: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Yield the options that were used, each with its text on the command line."""
    for option in _PLACES:
        value = getattr(args, option)
        if value:
            texts = [] if value is True else value if isinstance(value, list) else [value]
            yield option, " ".join([f"--{option.replace('_', '-')}", ",".join(texts)]).strip()


def _earlier(name: str, session: Session) -> Any:
    from planner.making import saved

    if is_file(name):
        return saved.read_plan(opened(name))
    return session.plan(name)
