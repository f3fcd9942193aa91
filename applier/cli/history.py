# SPDX-License-Identifier: Apache-2.0
"""``actionplan history``: who changed which plan, when and why."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from applier.cli.arguments import PLAN_HELP, positive
from applier.cli.damaged_cells import cells
from applier.cli.verb import ListVerb
from applier.contracts import HistoryEntry
from applier.store.retention import NO_PLAN

#: The default number of listed entries.
_LIMIT = 50
#: Written in place of the plan for a change that is about no single plan, such as a purge.
_NO_PLAN = "-"


class History(ListVerb):
    """List who changed a plan, or any plan, when and why, latest last

    Each run is an 'apply' by the user who ran it.
    """

    EXAMPLES = ("history", "history last", "history 7f3a91 -f json", "history --limit 1000")
    NOTHING = "No changes are on record."

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan and a limit."""
        parser = super().get_parser(prog_name)
        parser.add_argument("plan", metavar="PLAN", nargs="?", help=f"{PLAN_HELP}; default: all")
        parser.add_argument(
            "--limit",
            metavar="NUMBER",
            type=positive,
            default=_LIMIT,
            help=f"list at most so many, the latest (default: {_LIMIT})",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        """Return a row for each change; raises PlanNotFound."""
        store, whole = self.session.store, parsed_args.formatter != "table"
        uuid = store.find_plan(parsed_args.plan) if parsed_args.plan else None
        entries, damaged = self.readable(lambda: store.history(uuid, limit=parsed_args.limit))
        columns = ("at", *(() if uuid else ("plan",)), "verb", "action", "who", "why")
        names = {} if whole else self._names(uuid, entries)
        rows = [
            (e.number, _whole(e) if whole else _short(e, names, with_plan=uuid is None))
            for e in entries
        ]
        shown = _WHOLE if whole else columns
        rows += [(d.values.get("number", 0), cells(d, shown, whole=whole)) for d in damaged]
        return shown, (row for _, row in sorted(rows, key=lambda numbered: numbered[0]))

    def _names(self, uuid: str | None, entries: Sequence[HistoryEntry]) -> Mapping[str, str]:
        """Return the names of the actions of a plan by uuid.

        The mapping is empty without a plan, if no entry is about an action, and for a damaged plan.
        """
        from applier.errors import DamagedRecord

        if uuid is None or not any(entry.action for entry in entries):
            return {}
        try:
            return {a.uuid: a.label for a in self.session.store.load_plan(uuid).actions}
        except DamagedRecord:
            return {}


_WHOLE = (
    *("number", "at", "plan", "verb", "action", "who"),
    *("project", "address", "request_id", "why"),
)


def _whole(entry: HistoryEntry) -> tuple[Any, ...]:
    values = {name: getattr(entry, name) for name in _WHOLE}
    return tuple({**values, "at": entry.at.isoformat()}.values())


def _short(entry: HistoryEntry, names: Mapping[str, str], *, with_plan: bool) -> tuple[str, ...]:
    action = names.get(entry.action, entry.action[:8]) if entry.action else ""
    who = f"{entry.who} ({entry.project})" if entry.project else entry.who
    return (
        f"{entry.at:%Y-%m-%d %H:%M:%S}",
        *((_NO_PLAN if entry.plan == NO_PLAN else entry.plan[:8],) if with_plan else ()),
        entry.verb,
        action,
        who,
        entry.why or "",
    )
