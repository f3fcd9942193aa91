# SPDX-License-Identifier: Apache-2.0
"""What goes from record to record: plans and durations."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from applier.cli import arguments
from applier.cli.arguments import PLAN, argument
from applier.cli.exit_codes import REFUSED
from applier.cli.verb import ListVerb, Verb, rendered
from applier.operations import measured_durations
from applier.wording import duration


class ExportPlan(Verb):
    """Write a plan and all that is known of it, for 'import' elsewhere

    The file has the attempts with their output, the requests, the history, and all parameters
    of the plan. A plan that is under way is not exported. What is damaged is left out and named,
    and the exit code is 1.
    """

    EXAMPLES = ("export last --out maintenance.plan.json", "export 7f3a91")
    ARGUMENTS = (PLAN, argument("--out FILE", "write it to a file"))

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        from applier.operations import export_import

        exported = export_import.exported(self.session, parsed_args.plan)
        text = rendered(exported, "json")
        self.write(text, parsed_args.out)
        left_out = exported.get("damaged", [])
        for what in left_out:
            self.note(f"Left out: {what}; see: actionplan db check")
        return REFUSED if left_out else 0


class ImportPlan(Verb):
    """Import a plan of another record, with its attempts, requests and history

    FILE is what 'export' wrote. The history records who imported it. Approvals are not imported,
    and the durations of its actions do not count here ('duration import').
    """

    EXAMPLES = ("import maintenance.plan.json",)
    ARGUMENTS = (argument("FILE", "what 'export' wrote ('-': standard input)"),)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        from applier.operations import export_import

        document = arguments.opened(parsed_args.file)
        export_import.import_from(self.session, self.operator, document)
        return 0


class DurationList(ListVerb):
    """List how long actions took, by type, size and node: what forecasts expect

    The size is the flavor among the parameters, the node the first one that an action touches.
    Few samples of a size or node are pooled with all of the type. Only those that succeeded and
    changed something count.
    """

    EXAMPLES = ("duration list", "duration list -f json")
    NOTHING = "No action is on record that succeeded and changed something."

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        whole = parsed_args.formatter != "table"
        found = measured_durations.listed(self.session)
        columns = ("type", "size", "node", "samples", "imported", "median", "9 in 10")
        if whole:
            return measured_durations.Known._fields, found
        return columns, (
            (
                *(known.action_type, known.size or "", known.node or ""),
                *(known.samples, known.imported),
                *(duration(known.median_s), duration(known.nine_in_ten_s)),
            )
            for known in found
        )


class DurationExport(Verb):
    """Write the durations that were measured here, for 'duration import' elsewhere

    At most the latest 500 of each action type; imported ones are left out.
    """

    EXAMPLES = ("duration export --out durations.json", "duration export -f yaml")
    ARGUMENTS = (
        argument("-f --format", "default: json", choices=["json", "yaml"], default="json"),
        argument("--out FILE", "write them to a file"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        found = measured_durations.exported(self.session)
        text = rendered(found, parsed_args.format)
        self.write(text, parsed_args.out)
        return 0


class DurationImport(Verb):
    """Let forecasts use durations that were measured elsewhere

    FILE is what 'duration export' wrote. They replace those imported before for the same types, and
    count after those that were measured here. The history records who imported them.
    """

    EXAMPLES = ("duration import durations.json",)
    ARGUMENTS = (argument("FILE", "what 'duration export' wrote ('-': standard input)"),)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        document = arguments.opened(parsed_args.file)
        measured_durations.import_from(self.session, self.operator, document)
        return 0
