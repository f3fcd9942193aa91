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


def argument(usage: str, text: str, **more: Any) -> Add:
    """Return what adds one argument, by how it is used: ``-y --yes``, ``--out FILE``, or ``PLAN``.

    ``text`` explains it. An option without a value is a flag. ``more`` are for ``add_argument``.
    """
    *names, last = usage.split(" ")
    if last.startswith("-"):
        names.append(last)
        if not more.keys() & {"action", "choices"}:
            more["action"] = "store_true"
    else:
        names = names or [more.pop("dest", last.lower())]
        more["metavar"] = last
    return methodcaller("add_argument", *names, help=text, **more)


def defaults(**values: Any) -> Add:
    """Return what sets the values of arguments that a verb does not have."""
    return methodcaller("set_defaults", **values)


def group(title: str, *arguments: Add, about: str | None = None) -> Add:
    """Return what adds arguments under a title of their own, with a sentence about them."""

    def add(parser: argparse.ArgumentParser) -> None:
        made = parser.add_argument_group(title, about)
        for one in arguments:
            one(made)

    return add


def one_of(*arguments: Add, required: bool = False) -> Add:
    """Return what adds arguments of which a command line may have only one."""

    def add(parser: argparse.ArgumentParser) -> None:
        group = parser.add_mutually_exclusive_group(required=required)
        for one in arguments:
            one(group)

    return add


PLAN = argument("PLAN", PLAN_HELP)
ACTION = argument("ACTION", ACTION_HELP)
_WHY = "why, for the record"
REASON = argument("--reason TEXT", _WHY)
REASON_NEEDED = argument("--reason TEXT", _WHY, required=True)
YES = argument("-y --yes", "do not ask")
ALL = argument("--all", "show every action of a long plan")
ACCEPT_DRIFT = argument("--accept-drift", "run it although the cloud is not as planned any more")
PLANNER = argument("--planner NAME", "planner (actionplan planner list shows them)")
SET = argument(
    "--set KEY=VALUE",
    "option of the planner (ordering=slots), of one action type (migrate.parallelization=2), or of "
    "the run (max_workers=4, on_failure=continue); or a guard of the plan (approvals=1)",
    action="append",
    default=[],
)


def state_of(states: type[StrEnum]) -> Add:
    """Return what adds the option ``--state``."""
    known = [str(state) for state in states]
    text = f"only these: {', '.join(known)}"
    return argument("--state STATE", text, type=str.upper, choices=known)


def format_of(*more: str) -> Add:
    """Return what adds the option ``-f`` for output without rows; ``more`` are further formats."""
    return argument(
        "-f --format",
        "how to show it (default: table)",
        choices=["table", "json", "yaml", *more],
        default="table",
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
    "FILE|PLAN", f"document or saved plan ('-': standard input); or {PLAN_HELP}", dest="file"
)
FILE_OR_PLAYBOOK = one_of(
    argument("FILE", "document, or saved plan; '-': standard input", nargs="?"),
    argument(
        "--from-playbook PLAYBOOK", "a playbook of Ansible, such as site.yml, instead of a document"
    ),
    required=True,
)


PLAYBOOK = group(
    "with --from-playbook",
    argument(
        "--inventory HOSTS",
        "any inventory that ansible-inventory reads; may be repeated",
        action="append",
    ),
    argument("--limit PATTERN", "only these hosts"),
    argument("--tags TAG,...", "only tasks with one of these tags"),
    argument("--skip-tags TAG,...", "no tasks with one of these tags"),
    argument(
        "--variables NAME=TEXT|@FILE",
        "as --extra-vars: a variable, or a file with some; may be repeated",
        action="append",
    ),
    argument("--become", "run tasks as another user"),
    argument("--forks N", "how many hosts at once", type=positive),
)


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


PART = group(
    "a part of a deployment",
    argument("--node UID,...", "only tasks of these nodes", action="append"),
    argument("--task NAME,...", "only these tasks", action="append"),
    argument("--fetch-deps", "also what they depend on, on whatever node"),
    argument(
        "--changed-since PLAN",
        f"only what differs from that plan, and what depends on it (a saved plan; or {PLAN_HELP})",
    ),
    argument("--strict", "refuse names, roles and groups that match nothing"),
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
