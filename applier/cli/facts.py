# SPDX-License-Identifier: Apache-2.0
"""``actionplan facts``: what the cloud holds now, as the facts of a document."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from applier.cli.plan_files import rendered, write_text
from applier.cli.session import Session
from applier.cli.verb import Verb
from applier.errors import ConfigurationError
from planner.errors import InvalidInput, Mistake

if TYPE_CHECKING:
    from planner.documents import Document


class Facts(Verb):
    """Write what the cloud holds now: instances, hosts, services, flavors

    This is the field 'facts' of a document, for planners that need to know where instances are.
    """

    EXAMPLES = ("facts", "facts -f json", "facts --out facts.yaml")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a format and an output file."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "-f", "--format", choices=["yaml", "json"], default="yaml", help="default: yaml"
        )
        parser.add_argument("--out", metavar="FILE", help="write them to a file")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Read the cloud, and write the facts."""
        text = rendered(self.session.assembly.facts(), parsed_args.format)
        if parsed_args.out:
            write_text(parsed_args.out, text)
        else:
            self.app.stdout.write(text)
        return 0


def added(document: Document, session: Session, cloud: str | None) -> Document:
    """Return the document with the facts of the configured cloud, if ``cloud`` is its plugin.

    Without ``cloud`` the document is returned unchanged. Raises InvalidInput if the document has
    facts already or cannot have any, ConfigurationError if another cloud is configured.
    """
    if cloud is None:
        return document
    place = f"--facts-from {cloud}"
    value: Any = document.value
    if not isinstance(value, Mapping) or document.is_plan or value.get("kind") not in _WITH_FACTS:
        text = "only documents of kind 'solution' have facts"
        raise InvalidInput([Mistake(text, place=place)])
    if value.get("facts"):
        text = "the document has facts already: leave out the option, or the field 'facts'"
        raise InvalidInput([Mistake(text, place=place)])
    from planner import registry

    configured = session.cloud()
    if not isinstance(configured, registry.load(registry.CLOUDS, cloud)):
        raise ConfigurationError(f"{place}: the configured cloud is {configured.name}")
    return replace(document, value={**value, "facts": session.assembly.facts()})


_WITH_FACTS = (None, "solution")
