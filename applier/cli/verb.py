"""What every verb has: the session, an example in its help, and refusals as sentences."""

from __future__ import annotations

import argparse
import sys
from typing import Any, ClassVar

from cliff.command import Command
from cliff.lister import Lister

from applier.cli.reporters.rows import RowTable
from applier.cli.session import Session
from applier.errors import ApplierError
from planner.errors import PlannerError

#: Exit codes.
REFUSED, FAILED, OUT_OF_DATE, PAUSED = 1, 3, 4, 5


class _Refusing:
    """Turns what the layers below refuse into a sentence and an exit code."""

    #: Command lines that teach, without the program's name.
    EXAMPLES: ClassVar[tuple[str, ...]] = ()
    app: Any
    _hooks: Any

    def _load_hooks(self) -> None:
        # Extensions of single verbs are not offered; looking for them costs time at every start.
        self._hooks = []

    def get_epilog(self) -> str:
        """Give the examples."""
        return "\n".join(["Examples:", *(f"  actionplan {line}" for line in self.EXAMPLES)])

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Keep the lines of descriptions and examples as they are written."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)  # type: ignore[misc]
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the verb; returns its exit code."""
        try:
            return int(super().run(parsed_args))  # type: ignore[misc]
        except (PlannerError, ApplierError) as reason:
            if self.app.options.debug:
                raise
            self.app.refuse(reason)
            return REFUSED

    @property
    def session(self) -> Session:
        """Configuration, record, plugins, cloud."""
        session: Session = self.app.session
        return session

    def say(self, text: str = "") -> None:
        """Write a line to standard output."""
        self.app.stdout.write(f"{text}\n")

    @property
    def on_terminal(self) -> bool:
        """True when a person reads standard output."""
        return bool(self.app.stdout is sys.stdout and sys.stdout.isatty())


class Verb(_Refusing, Command):
    """A verb that writes what it likes."""


class ListVerb(_Refusing, Lister):
    """A verb that gives rows; ``-f`` chooses their format."""

    def _load_formatter_plugins(self) -> Any:
        """Offer all formats there are; tables have the look of all others."""
        formats = super()._load_formatter_plugins()
        formats["table"].obj = RowTable()
        return formats
