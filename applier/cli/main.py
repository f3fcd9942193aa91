"""The program ``actionplan``: global options, help by group, and what a mistake is answered."""

from __future__ import annotations

import difflib
import logging
import shlex
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from cliff.app import App
from cliff.commandmanager import CommandManager

from applier.cli.session import Session
from applier.errors import ApplierError
from planner.errors import InvalidInput, PlannerError

DESCRIPTION = "Turns what should change into a plan that can be read, and applies it."

#: Verbs by what they are for, in the order in which people meet them.
GROUPS = {
    "Plan and apply": ("create", "apply", "start"),
    "Look": ("list", "show", "graph", "action list", "action show"),
    "Step in": ("cancel", "action skip", "delete"),
    "What there is": (
        "planner list",
        "planner show",
        "action type list",
        "action type show",
        "schema",
    ),
    "Set up": ("config show", "simulator show", "simulator reset", "db upgrade"),
}

EXAMPLES = """\
Examples:
  actionplan create maintenance.yaml            make a plan, show it, keep it
  actionplan apply last                         show it again, ask, run it
  actionplan apply maintenance.yaml --yes       all in one, without a question
  actionplan graph last -f mermaid              draw it

'actionplan help VERB' explains a verb, with examples.
Exit codes: 0 done, 1 refused, 2 usage, 3 the plan FAILED, 4 out of date, 5 PAUSED or CANCELLED.
"""

#: Global options that take a value.
_VALUED = ("--config-file", "--log-file")
_GLOBAL = (*_VALUED, "-v", "--verbose", "-q", "--quiet", "--debug", "--version")


class Program(App):
    """The command line as a whole."""

    NAME = "actionplan"

    def __init__(self, **streams: Any) -> None:
        super().__init__(
            description=DESCRIPTION,
            version=version("actionplan"),
            command_manager=CommandManager("actionplan.cli"),
            deferred_help=True,
            **streams,
        )
        self.session = Session()

    def build_option_parser(self, *args: Any, **kwargs: Any) -> Any:
        """Add the options that stand before the verb."""
        parser = super().build_option_parser(*args, **kwargs)
        parser.add_argument(
            "--config-file",
            metavar="FILE",
            action="append",
            default=[],
            help="Configuration to read instead of the user's or /etc/watcher/watcher.conf; "
            "may be given more than once, later ones win.",
        )
        return parser

    def configure_logging(self) -> None:
        """Keep the logs of libraries off the terminal, unless they are asked for."""
        super().configure_logging()
        if self.options.verbose_level <= self.DEFAULT_VERBOSE_LEVEL and not self.options.debug:
            for handler in logging.getLogger().handlers:
                if isinstance(handler, logging.StreamHandler) and handler.stream is self.stderr:
                    handler.setLevel(logging.ERROR)

    def initialize_app(self, argv: Sequence[str]) -> None:  # noqa: ARG002
        """Remember which configuration was asked for; it is read when a verb needs it."""
        self.session = Session(self.options.config_file)

    def print_help_if_requested(self) -> None:
        """Print the verbs by group instead of one long list."""
        if self.options.deferred_help:
            self.stdout.write(self.help_text())
            raise SystemExit(0)

    def help_text(self) -> str:
        """Give the help of the program: every verb with its first sentence, by group."""
        loaded = {name: entry.load() for name, entry in self.command_manager}
        lines = ["usage: actionplan [--config-file FILE] VERB ...", "", DESCRIPTION, ""]
        for title, verbs in GROUPS.items():
            lines.append(f"{title}:")
            for verb in verbs:
                sentence = (loaded[verb].__doc__ or "").strip().splitlines()[0].rstrip(".")
                lines.append(f"  {verb:<18} {sentence}")
            lines.append("")
        options = "Options: --config-file FILE, -v, -q, --debug, --log-file FILE, --version, -h"
        return "\n".join([*lines, options, "", EXAMPLES])

    def run(self, argv: Sequence[str]) -> int:
        """Run one command line; without a verb, print help. Returns the exit code."""
        try:
            return int(super().run(list(argv) or ["--help"]))
        except SystemExit as exit_:
            if exit_.code == 2:
                better = reordered(argv, [name for name, _ in self.command_manager])
                if better:
                    self.stderr.write(f"Did you mean: {better}\n")
            raise

    def run_subcommand(self, argv: Sequence[str]) -> int:
        """Run one verb; a word that is none is answered with the right command line."""
        try:
            self.command_manager.find_command(list(argv))
        except ValueError:
            self.stderr.write(unknown(argv, [name for name, _ in self.command_manager]))
            return 2
        return int(super().run_subcommand(list(argv)))

    def refuse(self, reason: PlannerError | ApplierError) -> None:
        """Say on standard error what was refused: each mistake on a line of its own."""
        if isinstance(reason, InvalidInput) and len(reason.mistakes) > 1:
            lines = "\n".join(f"  {m}" for m in reason.mistakes)
            self.stderr.write(f"Refused, {len(reason.mistakes)} mistakes:\n{lines}\n")
        else:
            self.stderr.write(f"Refused: {reason}\n")


def unknown(argv: Sequence[str], verbs: Sequence[str]) -> str:
    """Answer a command line that begins with no verb.

    >>> print(unknown(["action", "lst"], ["list", "action list", "action show"]), end="")
    actionplan: no verb 'action lst'; with 'action' begin: action list, action show
    >>> print(unknown(["aply", "x"], ["apply", "list"]), end="")
    actionplan: no verb 'aply'; did you mean: actionplan apply x
    >>> print(unknown(["x"], ["apply", "list"]), end="")
    actionplan: no verb 'x'; all verbs: actionplan --help
    """
    better = reordered(argv, verbs)
    begun = [verb for verb in verbs if verb.startswith(f"{argv[0]} ")]
    near = difflib.get_close_matches(argv[0], verbs, n=1)
    if better is None and near:
        better = f"actionplan {shlex.join([*near[0].split(), *argv[1:]])}"
    if begun:
        text = f"no verb {' '.join(argv[:2])!r}; with {argv[0]!r} begin: {', '.join(begun)}"
    elif better:
        text = f"no verb {argv[0]!r}; did you mean: {better}"
    else:
        text = f"no verb {argv[0]!r}; all verbs: actionplan --help"
    return f"actionplan: {text}\n"


def reordered(argv: Sequence[str], verbs: Sequence[str]) -> str | None:
    """Give the command line with global options first and the verb next, if that changes it.

    >>> reordered(["web.yaml", "create"], ["create", "action list"])
    'actionplan create web.yaml'
    >>> reordered(["list", "--config-file", "x.conf"], ["list"])
    'actionplan --config-file x.conf list'
    >>> reordered(["last", "list", "action"], ["list", "action list"])
    'actionplan action list last'
    """
    first, rest = _split_global(argv)
    found: list[str] = []
    for verb in sorted(verbs, key=lambda v: -len(v.split())):
        if set(verb.split()) <= set(rest):
            found = verb.split()
            break
    if not found:
        return None
    for word in found:
        rest.remove(word)
    better = [*first, *found, *rest]
    return None if better == list(argv) else f"actionplan {shlex.join(better)}"


def _split_global(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    first: list[str] = []
    rest: list[str] = []
    words = iter(argv)
    for word in words:
        if word.partition("=")[0] in _GLOBAL:
            first.append(word)
            if word in _VALUED:
                first += [w for w in [next(words, None)] if w is not None]
        else:
            rest.append(word)
    return first, rest


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``actionplan``; returns the exit code."""
    return Program().run(sys.argv[1:] if argv is None else argv)
