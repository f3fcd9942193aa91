# SPDX-License-Identifier: Apache-2.0
"""Options that select a part of a deployment: ``--node``, ``--task``, ``--changed-since``, ..."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from applier.cli import arguments
from applier.cli.arguments import PLAN_HELP
from applier.cli.session import Session
from planner.errors import InvalidInput, Mistake, Path

if TYPE_CHECKING:
    from planner.documents import Document

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
    from planner import saved

    if arguments.is_file(name):
        return saved.read_plan(arguments.opened(name))
    return session.plan(name)
