# SPDX-License-Identifier: Apache-2.0
"""The program: global options, the installed verbs, and the message about a refused command."""

from __future__ import annotations

import argparse
import logging
import re
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import EntryPoint, version
from typing import Any

from cliff.app import App
from cliff.commandmanager import CommandManager

from applier.cli.exit_codes import OUT_OF_DATE, REFUSED, USAGE
from applier.cli.help import EXAMPLES, FIRST, GROUPS, Help, no_such_verb
from applier.cli.session import Session
from applier.cli.verb import VerbParser
from applier.errors import ApplierError, GuardRefusal, OtherCloud, OutOfDate
from planner.errors import PlannerError, shortened, shown
from planner.making import registry
from planner.safe_text import VisibleRecord, with_visible_errors

DESCRIPTION = "Turns what should change into a plan that can be read, and applies it."


_UNUSABLE = (
    r"Value for option (?P<option>\S+) from LocationInfo\(.*detail='(?P<file>.*)'\) "
    r"is not valid: (?P<why>.*)"
)


class Verbs(CommandManager):
    """The installed verbs by name; each is imported when it is used."""

    def load_commands(self, namespace: str) -> None:
        """Register what stevedore finds, by name. cliff itself would import every verb here."""
        self.group_list.append(namespace)
        for entry in registry.entries(namespace):
            self.commands[entry.name.replace("_", " ")] = entry


class _Version(argparse.Action):
    """Prints the installed version, which is looked up only for this option, and exits."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        sys.stdout.write(f"{parser.prog} {version('actionplan')}\n")
        parser.exit()


#: The log of :mod:`applier.storage.database_errors`, whose import takes long.
WAITS = "applier.storage.database_errors"


class LogFile(logging.FileHandler):
    """A log file. Only the first failed write is reported, on standard error."""

    failed = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802
        """Write the first failure to standard error, ignore later ones, and raise nothing."""
        if not self.failed:
            self.failed = True
            reason = sys.exc_info()[1]
            why = reason.strerror if isinstance(reason, OSError) else reason
            sys.stderr.write(f"--log-file {self.baseFilename} cannot be written: {why}\n")


class Program(App):
    """``actionplan``: parses global options, runs one verb, writes why a command is refused."""

    NAME = "actionplan"
    #: The entry points of the verbs.
    VERBS = "actionplan.cli"
    DESCRIPTION = DESCRIPTION
    #: The verbs of the first screen, all verbs by purpose, and the end of the help.
    FIRST, GROUPS, EXAMPLES = FIRST, GROUPS, EXAMPLES

    def __init__(self, **streams: Any) -> None:
        super().__init__(
            description=self.DESCRIPTION,
            version=None,
            command_manager=Verbs(self.VERBS),
            **streams,
        )
        self.command_manager.add_command("help", Help)
        complete = EntryPoint("complete", "applier.cli.completion:Complete", self.VERBS)
        self.command_manager.commands["complete"] = complete
        self.session = Session()

    def build_option_parser(self, description: Any, version: Any, _: Any = None) -> VerbParser:  # noqa: ARG002
        """Return the parser of the global options, which are accepted before and after a verb."""
        parser = VerbParser(
            prog=self.NAME, description=description, add_help=False, allow_abbrev=False
        )
        parser.add_argument("--version", action=_Version, nargs=0)
        parser.add_argument("--config-file", metavar="FILE", action="append", default=[])
        parser.add_argument("-v", "--verbose", action="count", default=0)
        parser.add_argument("--log-file", metavar="FILE", default=None)
        parser.add_argument("--debug", action="store_true")
        parser.add_argument("-h", "--help", action="store_true", dest="deferred_help")
        return parser

    def configure_logging(self) -> None:
        """Send log messages to the file of ``--log-file``; raises OSError.

        Without that option, they go to standard error with ``-v`` or ``--debug``, else nowhere,
        except those about waits for a lock of the record, which always go to standard error.
        """
        logging.setLogRecordFactory(VisibleRecord)
        level = logging.DEBUG if self.options.verbose > 1 else logging.INFO
        root = logging.getLogger()
        handler: logging.Handler = logging.NullHandler()
        if self.options.log_file:
            handler = LogFile(self.options.log_file, encoding="utf-8")
        elif self.options.verbose or self.options.debug:
            handler = logging.StreamHandler(self.stderr)
        else:
            level = logging.CRITICAL
        handler.setFormatter(with_visible_errors(logging.Formatter(self.LOG_FILE_MESSAGE_FORMAT)))
        root.addHandler(handler)
        root.setLevel(level)
        if not isinstance(handler, logging.StreamHandler) or self.options.log_file:
            waits = logging.getLogger(WAITS)
            waits.handlers = [logging.StreamHandler(self.stderr)]
            waits.setLevel(logging.WARNING)

    def new_session(self, config_files: Sequence[str]) -> Session:
        """Return the session of a command line; subclasses may return one of another class."""
        return Session(config_files)

    def run(self, argv: Sequence[str]) -> int:
        """Run one command line, or print the help without a verb; returns the exit code."""
        self.options, words = self.parser.parse_known_args(list(argv))
        try:
            self.configure_logging()
        except OSError as reason:
            text = f"--log-file {self.options.log_file} cannot be written: {reason.strerror}"
            self.stderr.write(f"Refused: {text}\n")
            return REFUSED
        self.session = self.new_session(self.options.config_file)
        if self.options.deferred_help or not words:
            words.insert(0, "help")
        return self.run_subcommand(words)

    def run_subcommand(self, argv: Sequence[str]) -> int:
        """Run one verb, and return its exit code; USAGE for an unknown verb."""
        try:
            verb, name, words = self.command_manager.find_command(list(argv))
        except ValueError:
            names = [name for name, _ in self.command_manager]
            names += self.parser._option_string_actions
            self.stderr.write(no_such_verb(argv, names, self.NAME))
            return USAGE
        command = verb(self, self.options, cmd_name=name)
        arguments = command.get_parser(f"{self.NAME} {name}").parse_args(words)
        return self._run_verb(command, arguments)

    def _run_verb(self, command: Any, arguments: argparse.Namespace) -> int:
        try:
            return int(command.run(arguments))
        except _refusals() as reason:
            if self.options.debug:
                traceback.print_exc(file=self.stderr)
            self.stdout.flush()
            self.stderr.write(refusal(reason))
            stale = isinstance(reason, OutOfDate | OtherCloud | GuardRefusal)
            return OUT_OF_DATE if stale else int(command.REFUSAL)
        finally:
            self.session.close()


def _refusals() -> tuple[type[Exception], ...]:
    """Return the exceptions that are shown as a sentence, without a traceback.

    A function, so that oslo.config is imported only after an exception was raised.
    """
    from oslo_config import cfg

    return PlannerError, ApplierError, cfg.Error


def refusal(reason: Exception) -> str:
    """Return the message about a refused command, with each mistake on a line of its own.

    >>> from planner.errors import InvalidInput, Mistake
    >>> print(refusal(InvalidInput([Mistake("no such flavor", place="a.yaml:7")])), end="")
    Refused: a.yaml:7: no such flavor
    """
    # The message of oslo.config contains the name of a Python class.
    told = re.fullmatch(_UNUSABLE, str(reason), re.DOTALL)
    if told:
        return f"Refused: {told['file']}: option {told['option']}: {shortened(told['why'])}\n"
    mistakes: Sequence[object] = getattr(reason, "mistakes", ())
    if len(mistakes) > 1:
        lines = "".join(f"  {' '.join(line.split())}\n" for line in shown(mistakes))
        return f"Refused, {len(mistakes)} mistakes:\n{lines}"
    return f"Refused: {shortened(' '.join(str(reason).split()))}\n"
