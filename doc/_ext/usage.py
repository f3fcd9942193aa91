# SPDX-License-Identifier: Apache-2.0
"""The command line of a verb in words: what the reference and the man page both show."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence

_CLIFFS_GROUP = re.compile(r"formatters?$", re.IGNORECASE)
#: How an argument is written that may be left out, or given several times, by its ``nargs``.
_REPEATED: dict[int | str | None, str] = {
    argparse.OPTIONAL: "[{0}]",
    argparse.ZERO_OR_MORE: "[{0} ...]",
    argparse.ONE_OR_MORE: "{0} [{0} ...]",
    argparse.REMAINDER: "[{0} ...]",
}


def own_arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the arguments of a verb without ``-h`` and what cliff adds to verbs that list rows."""
    formats = of_cliff(parser)
    left_out = (argparse.SUPPRESS, "show this help message and exit")
    return [a for a in parser._actions if a not in formats and a.help not in left_out]


def gives_rows(parser: argparse.ArgumentParser) -> bool:
    """True for a verb that lists rows, whose format cliff's options choose."""
    return bool(of_cliff(parser))


def of_cliff(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the arguments that cliff adds to a verb that lists rows, known by their groups."""
    groups = (g for g in parser._action_groups if _CLIFFS_GROUP.search(g.title or ""))
    shown = (action for group in groups for action in group._group_actions)
    return [action for action in shown if action.help != argparse.SUPPRESS]


def folded(begin: str, words: Sequence[str], width: int = 84) -> Iterator[str]:
    """Write a command line on as many lines as it takes; a word stays whole."""
    line = begin
    for word in words:
        if len(line) + len(word) >= width:
            yield line
            line = " " * len(begin)
        line += f" {word}"
    yield line


def usage(action: argparse.Action) -> str:
    """Write an argument as a usage line has it, in brackets where it may be left out."""
    name = metavar(action)
    if action.option_strings:
        name = f"{action.option_strings[-1]} {name}".rstrip()
        return name if action.required else f"[{name}]"
    return _REPEATED.get(action.nargs, "{0}").format(name)


def metavar(action: argparse.Action) -> str:
    """Return the name of an argument's value; nothing for a switch."""
    if action.nargs == 0:
        return ""
    return str(action.metavar or action.dest.upper())
