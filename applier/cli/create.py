"""``actionplan create``: from a document to a plan that is kept and can be read."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from applier.cli import settings as setting
from applier.cli.reporters import plan_table
from applier.cli.verb import Verb
from applier.errors import ConfigurationError
from planner import documents, make_plan, saved
from planner.documents import Document
from planner.model import ActionPlan


class Create(Verb):
    """Make a plan from a document, show it, and keep it

    FILE is a document (YAML or JSON; '-' reads standard input) or a saved plan. The plan is kept as
    RECOMMENDED, and nothing is done yet.
    """

    EXAMPLES = (
        "create maintenance.yaml",
        "create maintenance.yaml --set migrate.parallelization=3 --set ordering=slots",
        "create maintenance.yaml --planner workload_stabilization --dry-run",
        "create maintenance.yaml --out plan.json -f json",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take a file, what to plan it with, and where to put the plan."""
        parser = super().get_parser(prog_name)
        add_planning(parser)
        parser.add_argument(
            "--out", metavar="FILE", help="also write the plan to a file (JSON), for apply"
        )
        parser.add_argument("--dry-run", action="store_true", help="show it, keep nothing")
        add_format(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Make, keep, show."""
        settings = setting.read(parsed_args.set)
        plan = planned(self, parsed_args, settings)
        if not parsed_args.dry_run:
            self.session.store.save_plan(plan)
        if parsed_args.out:
            write(Path(parsed_args.out), plan)
        if parsed_args.format != "table":
            self.app.stdout.write(rendered(plan, parsed_args.format))
            return 0
        workers = settings.max_workers or self.session.max_workers
        plan_table.show(plan, self.app.stdout, whole=parsed_args.all, max_workers=workers)
        if parsed_args.dry_run:
            self.say("Not kept (--dry-run).")
        else:
            short = plan.uuid[:8]
            self.say(f"Next: actionplan apply {short} | actionplan graph {short} -f mermaid")
        return 0


def add_planning(parser: argparse.ArgumentParser) -> None:
    """Add what chooses a document, a planner and its options."""
    parser.add_argument("file", metavar="FILE", help="document, or saved plan")
    parser.add_argument(
        "--planner", metavar="NAME", help="planner (actionplan planner list shows them)"
    )
    add_set(parser)
    parser.add_argument(
        "--no-check-types",
        dest="check_types",
        action="store_false",
        help="also plan action types that no plugin offers, without checking parameters",
    )
    parser.add_argument("--all", action="store_true", help="show every action of a long plan")


def add_set(parser: argparse.ArgumentParser) -> None:
    """Add ``--set``."""
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="option of the planner (ordering=slots), of one action type "
        "(migrate.parallelization=2), or of the run (max_workers=4, on_failure=continue)",
    )


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add ``-f`` for what is no list of rows."""
    parser.add_argument(
        "-f",
        "--format",
        choices=["table", "json", "yaml"],
        default="table",
        help="how to show it (default: table)",
    )


def planned(verb: Verb, args: argparse.Namespace, settings: setting.Settings) -> ActionPlan:
    """Give the plan that a document makes, or a saved plan as it is."""
    document = opened(args.file)
    if saved.is_plan(document):
        return saved.read_plan(document)
    return make_plan(
        document,
        args.planner,
        settings.options,
        verb.session.conf,
        check_types=args.check_types,
    )


def opened(name: str) -> Document:
    """Read a document from a file, or from standard input for ``-``."""
    if name == "-":
        return documents.parse(sys.stdin.read(), "standard input")
    return documents.read(name)


def rendered(value: ActionPlan | Mapping[str, Any], form: str) -> str:
    """Write a plan, or any value, as JSON or YAML."""
    plain = value.to_dict() if isinstance(value, ActionPlan) else value
    if form == "json":
        return json.dumps(plain, indent=1, ensure_ascii=False) + "\n"
    # Through JSON, so that what is shared is written out instead of as anchors.
    return yaml.safe_dump(json.loads(json.dumps(plain)), sort_keys=False, allow_unicode=True)


def write(path: Path, plan: ActionPlan) -> None:
    """Write a plan to a file, all of it or nothing, readable by its owner only."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, prefix=f".{path.name}.", encoding="utf-8", delete=False
        ) as file:
            try:
                file.write(rendered(plan, "json"))
                file.flush()
                os.fsync(file.fileno())
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as reason:
        raise ConfigurationError(f"{path} cannot be written: {reason.strerror}") from reason
