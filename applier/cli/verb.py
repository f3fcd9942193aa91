# SPDX-License-Identifier: Apache-2.0
"""The base classes of all verbs, their parser, and the files that they write."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from importlib.metadata import EntryPoint
from typing import Any, ClassVar, NoReturn, TypeVar

from cliff.command import Command
from cliff.lister import Lister
from stevedore import NamedExtensionManager
from stevedore.extension import Extension

from applier import whole_files
from applier.assembly import now
from applier.cli.arguments import Add
from applier.cli.exit_codes import REFUSED, USAGE
from applier.cli.session import Session
from applier.contracts import HistoryEntry
from applier.errors import ConfigurationError
from applier.operations import Operator
from applier.run.this_process import user
from planner.errors import InvalidInput, Mistake, accepted
from planner.plan.model import ActionPlan
from planner.safe_text import HIDDEN, visible_json


def rendered(value: Mapping[str, Any], form: str) -> str:
    """Return a value as JSON or YAML text."""
    if form == "json":
        return visible_json(value, indent=1) + "\n"
    import yaml

    # A copy through JSON has no shared objects, which YAML would write as anchors.
    text = json.dumps(value, ensure_ascii=False)
    shown_as_it_is = not HIDDEN.search(text)
    return yaml.safe_dump(json.loads(text), sort_keys=False, allow_unicode=shown_as_it_is)


def shown_plan(session: Session, plan: ActionPlan, form: str) -> str:
    """Return a plan as JSON or YAML text without its hidden values.

    The digest is that of the plan with its hidden values, so reading the text as a plan fails if
    a value is left out. While a process runs the plan, ``limits_now`` has the limits that apply,
    if operators have changed some.
    """
    from applier.operations import hidden_parameters, who_runs

    value = hidden_parameters.without(plan, session.action_types).to_dict()
    changed = who_runs.holding_now(session.plans, plan)
    now = {"limits_now": {**plan.limits, **changed}} if changed else {}
    return rendered({**value, **now, "digest": plan.digest}, form)


def write_plan(path: str, plan: ActionPlan) -> None:
    """Write a plan, with all values, to the file of ``--out``; raises ConfigurationError."""
    write_text(path, rendered(plan.to_dict(), "json"))


def write_text(path: str, text: str, option: str = "--out") -> None:
    """Write text to the file that an option names; raises ConfigurationError."""
    with refused(f"{option} {path} cannot be written"):
        whole_files.write(path, text.encode())


def make_folder(path: str, option: str) -> None:
    """Make the folder that an option names, unless it exists; raises ConfigurationError."""
    with refused(f"{option} {path} cannot be made"):
        os.makedirs(path, exist_ok=True)


@contextmanager
def refused(what: str) -> Iterator[None]:
    """Turn an error of the system inside the block into a ConfigurationError that begins so."""
    try:
        yield
    except (OSError, ValueError) as reason:
        why = reason.strerror if isinstance(reason, OSError) else reason
        raise ConfigurationError(f"{what}: {why}") from reason


Result = TypeVar("Result")
#: The names in the help of arguments that name files; some may also name a plan.
_FILES = frozenset({"FILE", "DIR", "OLD", "NEW"})
#: Bytes that were no characters, as Python keeps them.
_UNDECODED = re.compile("[\udc80-\udcff]")
#: What is said of options for rows that come from cliff; two of them nobody needs.
_ROW_OPTIONS = {
    "formatter": "how to show it (default: table)",
    "columns": "only this column; may be repeated",
    "sort_columns": "sort by this column; may be repeated",
    **dict.fromkeys(("quote_mode", "noindent"), argparse.SUPPRESS),
}
#: The default format, for people.
_TABLE = "table"


class VerbParser(argparse.ArgumentParser):
    """Parses the command line of a verb; a wrong one is refused with the reason and an example."""

    #: A command line that works, without the name of the program.
    example: str | None = None
    #: The options of the program, which are accepted after a verb, too.
    global_options: Collection[str] = ()
    #: The first word that is parsed and looks like an option, but is none.
    _unknown: str | None = None

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the words of a verb; exit with a usage error if one of them is not expected."""
        words = [*(args or ())]
        words = words[: words.index("--")] if "--" in words else words
        # A value may begin with a dash, too: most have a blank.
        options = [word for word in words if re.fullmatch(r"--?[a-z][a-z0-9-]*(=.*)?", word)]
        names = {word: _name(word) for word in options}
        known = self._known()
        # Options may be shortened.
        unknown = (
            word
            for word, name in names.items()
            if name not in known and not any(option.startswith(name) for option in known)
        )
        self._unknown = next(unknown, None)
        parsed, left = self.parse_known_args(args, namespace)
        if left:
            self.error(f"{left[0]!r} is one argument too many")
        return parsed

    def _known(self) -> list[str]:
        return [*self._option_string_actions, *self.global_options]

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, Any]:
        """Parse words; exit with a usage error for a text that is not kept as it was typed.

        What are not characters in the encoding of the terminal is accepted only in names of files,
        which may not be empty.
        """
        parsed, left = super().parse_known_args(args, namespace)
        for action in self._actions:
            names_file = not _FILES.isdisjoint(str(action.metavar).split("|"))
            for text in _texts(getattr(parsed, action.dest, None)):
                name = "/".join(action.option_strings) or str(action.metavar)
                if names_file and not text:
                    self.error(f"argument {name}: it is empty, and has to name a file")
                if not names_file and _UNDECODED.search(text):
                    encoding = sys.getfilesystemencoding()
                    self.error(f"argument {name}: {os.fsencode(text)!r} is not text in {encoding}")
        return parsed, left

    def error(self, message: str) -> NoReturn:
        """Write the mistake, an example and the command for help; exit with the code USAGE.

        An option that there is not comes before what else is wrong: that may be because of it.
        """
        if self._unknown is not None:
            import difflib

            near = difflib.get_close_matches(_name(self._unknown), self._known(), n=1)
            message = f"no option {self._unknown}" + (f"; did you mean {near[0]}?" if near else "")
        lines = [f"{self.prog}: {message}"]
        program, _, rest = self.prog.partition(" ")
        if self.example:
            lines.append(f"For example: {program} {self.example}")
        lines.append(f"All of it: {program} {f'help {rest}' if rest else '--help'}")
        self.exit(USAGE, "\n".join(lines) + "\n")


def _name(option: str) -> str:
    """Return the name of an option, without a value that is joined to it (``-fcsv``)."""
    return option.partition("=")[0] if option.startswith("--") else option[:2]


def _texts(value: object) -> Iterator[str]:
    """Yield each text in the value of an argument."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (text for part in value for text in _texts(part))


class Verb(Command):
    """A verb that writes its output itself."""

    #: Example command lines, without the program's name.
    EXAMPLES: ClassVar[tuple[str, ...]] = ()
    #: What add its arguments to the parser, in the order of the help.
    ARGUMENTS: ClassVar[tuple[Add, ...]] = ()
    #: The exit code of a refusal.
    REFUSAL: ClassVar[int] = REFUSED

    def _load_hooks(self) -> None:
        # cliff would search for hooks of this verb at every start; none are offered.
        self._hooks = []

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        program = prog_name.partition(" ")[0]
        examples = "\n".join(["Examples:", *(f"  {program} {line}" for line in self.EXAMPLES)])
        parser = VerbParser(
            prog=prog_name,
            description=self.get_description(),
            epilog=examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.example = self.EXAMPLES[0] if self.EXAMPLES else None
        for add in self.ARGUMENTS:
            add(parser)
        app: Any = self.app
        parser.global_options = list(app.parser._option_string_actions)
        return parser

    @property
    def session(self) -> Session:
        """The configuration, record, plugins and cloud that the verbs share."""
        app: Any = self.app
        session: Session = app.session
        return session

    def say(self, text: str = "") -> None:
        """Write a line to standard output."""
        self.app.stdout.write(f"{text}\n")

    @cached_property
    def width(self) -> int:
        """The columns of standard output: those of the terminal, elsewhere 100."""
        from applier.cli.reporters import plan_table

        return plan_table.console(self.app.stdout).width

    def say_wrapped(self, text: str, indent: int) -> None:
        """Write a line broken to the width of the output, with all but its beginning indented."""
        from applier.cli.reporters.formatting import wrapped

        for part in wrapped(text, indent, self.width):
            self.say(part)

    def write(self, text: str, path: str | None = None) -> None:
        """Write a text to the file of ``--out``, or else to standard output."""
        if path is not None:
            write_text(path, text)
        else:
            self.app.stdout.write(text)

    def note(self, text: str) -> None:
        """Write a line to standard error, so that it does not mix with output for programs."""
        self.app.stdout.flush()
        self.app.stderr.write(f"{text}\n")

    @property
    def operator(self) -> Operator:
        """The user of this process. Operations write messages with its ``say`` and ``note``."""
        return Operator(name=user(), say=self.say, note=self.note)

    def entry(self, verb: str, why: str | None = None) -> HistoryEntry:
        """Return a history entry about a change that the user of this process makes now."""
        return HistoryEntry(verb=verb, who=user(), at=now(), why=why)

    def agrees(self, question: str) -> bool:
        """Print a question, and read a line from standard input; return whether it is y or yes."""
        return self.answer(f"{question} [y/N]") in ("y", "yes")

    def answer(self, question: str) -> str:
        """Print a question, and return a line from standard input, without blanks, in lower case.

        It is empty at Ctrl-C and at the end of the input.
        """
        from rich.text import Text

        from applier.cli.reporters import plan_table

        try:
            plan_table.console(self.app.stdout).print(Text(question), end=" ")
            answer = sys.stdin.readline()
        except KeyboardInterrupt:
            answer = ""
        if not answer.endswith("\n"):
            self.say()
        return answer.strip().lower()

    @property
    def on_terminal(self) -> bool:
        """True if standard output is a terminal."""
        return self.app.stdout.isatty()


#: What a row has in each column: a function of what is listed, by the name of the column.
Columns = dict[str, Callable[[Any], Any]]
Rows = tuple[Sequence[str], Iterable[Sequence[Any]]]


def rows(columns: Columns, listed: Iterable[Any]) -> Rows:
    """Return the names of the columns, and the row of each thing that is listed."""
    return tuple(columns), ([value(one) for value in columns.values()] for one in listed)


def shown_time(at: datetime, *, whole: bool) -> str:
    """Return a time as programs read it if it is to be ``whole``; else as people do."""
    return at.isoformat() if whole else f"{at:%Y-%m-%d %H:%M:%S}"


class ListVerb(Lister, Verb):
    """A verb that returns rows; ``-f`` chooses their format."""

    #: Message in place of a table without rows.
    NOTHING: ClassVar[str] = "Nothing to list."
    #: Lines that are written after the rows, in any format.
    below: Sequence[str] = ()

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        for action in parser._actions:
            action.help = _ROW_OPTIONS.get(action.dest, action.help)
        return parser

    def nothing(self, parsed_args: argparse.Namespace) -> str:  # noqa: ARG002
        """Return the message in place of a table without rows."""
        return self.NOTHING

    def _load_formatter_plugins(self) -> Any:
        """Load the installed formats, with our own table in place of cliff's."""
        from applier.cli.reporters.table import RowTable
        from planner.making import registry

        # prettytable, which cliff's own table needs, is not imported.
        space = self.formatter_namespace
        others = [name for name in registry.names(space) if name != _TABLE]
        formats: Any = NamedExtensionManager(space, others, invoke_on_load=True)
        ours = EntryPoint(_TABLE, f"{RowTable.__module__}:{RowTable.__name__}", space)
        formats.extensions.append(Extension(_TABLE, ours, RowTable, RowTable()))
        return formats

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: Iterable[Sequence[Any]],
    ) -> int:
        """Write the rows and the lines below them; raises InvalidInput for an unknown column."""
        known = {self._normalize_column_name(name): name for name in column_names}
        wrong = [
            Mistake(f"no such column; {accepted(name, column_names)}", place=f"{option} {name}")
            for option, names in (
                ("-c", parsed_args.columns),
                ("--sort-column", parsed_args.sort_columns),
            )
            for name in names
            if self._normalize_column_name(name) not in known
        ]
        if wrong:
            raise InvalidInput(wrong)
        rows = list(data)
        if not rows and parsed_args.formatter == _TABLE:
            self.say(self.nothing(parsed_args))
            return 0
        code = super().produce_output(parsed_args, column_names, rows)
        for line in self.below:
            self.say(line)
        return code
