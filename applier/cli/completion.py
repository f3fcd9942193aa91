# SPDX-License-Identifier: Apache-2.0
"""The verb ``complete``: completes verbs, options, and names of plans, actions, plugins, files."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from applier.cli import arguments
from applier.cli.arguments import argument
from applier.cli.verb import Verb

if TYPE_CHECKING:
    from applier.cli.session import Session

#: A candidate for which the script of the shell adds the names of files.
FILES = ":files:"
#: How many of the latest plans are offered.
_PLANS = 50


def candidates(app: Any, words: Sequence[str]) -> list[str]:
    """Return the words that may replace the last one of ``words``, which follow the program's name.

    The last word may be empty, or the beginning of a word. Candidates that cannot be read, such as
    the plans of a record that cannot be opened, are left out.
    """
    *before, begun = _parted(words or [""])
    common = {text: a for a in app.parser._actions for text in a.option_strings}
    before, awaited = _without_options(before, common)
    if awaited is not None:
        return _values(app.session, awaited, [])
    names = [name.split() for name, _ in app.command_manager]
    plain = [word for word in before if not word.startswith("-")]
    if plain[:1] == ["help"]:
        return _next_words(names, plain[1:], begun)
    verb = max((n for n in names if n == plain[: len(n)]), key=len, default=None)
    if verb is None:
        found = [text for text in common if begun.startswith("-") and text.startswith(begun)]
        return found or _next_words(names, plain, begun)
    found = _after(app, " ".join(verb), _without(before, verb), begun)
    found += _next_words(names, plain, begun)
    return sorted({word for word in found if word == FILES or word.startswith(begun)})


def _parted(words: Sequence[str]) -> list[str]:
    """Return the words with each option separated from its value.

    >>> _parted(["--out=a.svg"]), _parted(["--out", "=", "a.svg"]), _parted(["--out", "="])
    (['--out', 'a.svg'], ['--out', 'a.svg'], ['--out', ''])
    >>> _parted(["--set", "ordering", "=", "chunks"])
    ['--set', 'ordering=chunks']
    """
    whole: list[str] = []
    for word in words:
        # bash passes the equals sign as a separate word.
        if whole and (word == "=" or whole[-1].endswith("=")):
            whole[-1] += word
        else:
            whole.append(word)
    found: list[str] = []
    for word in whole:
        name, equals, value = word.partition("=")
        found += [name, value] if equals and word.startswith("--") else [word]
    return found


def _without_options(
    words: Sequence[str], options: Mapping[str, argparse.Action]
) -> tuple[list[str], argparse.Action | None]:
    """Return the words without these options and their values, and the option of a missing value.

    The option is the last of the words, if it takes a value; else None.
    """
    left: list[str] = []
    awaited: argparse.Action | None = None
    for word in words:
        option = options.get(word)
        if awaited is not None:
            awaited = None
        elif option is None:
            left.append(word)
        elif option.nargs != 0:
            awaited = option
    return left, awaited


def _next_words(names: Iterable[Sequence[str]], before: Sequence[str], begun: str) -> list[str]:
    """Return the next words of the verbs whose names begin with ``before``, sorted."""
    at = len(before)
    later = {name[at] for name in names if list(name[:at]) == list(before) and len(name) > at}
    return sorted(word for word in later if word.startswith(begun))


def _without(before: Sequence[str], verb: Sequence[str]) -> list[str]:
    """Return the words without those of the verb, which may have options between them."""
    left, rest = list(verb), []
    for word in before:
        if left and word == left[0]:
            left.pop(0)
        else:
            rest.append(word)
    return rest


def _after(app: Any, name: str, before: Sequence[str], begun: str) -> list[str]:
    """Return the candidates after a verb and its first words."""
    command = app.command_manager.find_command(name.split())[0]
    parser = command(app, app.parser.parse_args([]), cmd_name=name).get_parser(f"{app.NAME} {name}")
    options = {text: a for a in parser._actions for text in a.option_strings}
    positional = [a for a in parser._actions if not a.option_strings]
    left, awaited = _without_options(before, options)
    given = [word for word in left if word == "-" or not word.startswith("-")]
    if awaited is None and begun.startswith("-"):
        return list(options)
    if awaited is None:
        if not positional:
            return []
        at = min(len(given), len(positional) - 1)
        if len(given) >= len(positional) and positional[at].nargs not in ("*", "+"):
            return []
        awaited = positional[at]
    return _values(app.session, awaited, given)


def _values(session: Session, wanted: argparse.Action, given: Sequence[str]) -> list[str]:
    if wanted.choices is not None:
        return [str(choice) for choice in wanted.choices]
    words = (wanted.dest, *str(wanted.metavar).split("|"))
    looks = [_LOOKED_UP[word] for word in words if word in _LOOKED_UP]
    return [value for look in looks for value in _tried(partial(look, session, given))]


def _tried(look: Callable[[], Iterable[str]]) -> list[str]:
    from applier.errors import ApplierError
    from planner.errors import PlannerError

    try:
        return list(look())
    except (ApplierError, PlannerError):
        return []


def _plans(session: Session, _: Sequence[str]) -> list[str]:
    found = session.store.list_plans(limit=_PLANS)
    names = [plan.name for plan in found if plan.name and " " not in plan.name]
    single = [name for name in names if names.count(name) == 1]
    return [arguments.LAST, *single, *(plan.uuid[:8] for plan in found)]


def _deleted(session: Session, _: Sequence[str]) -> list[str]:
    from planner.plan.states import PlanState

    return [p.uuid for p in session.store.list_plans(limit=_PLANS, state=PlanState.DELETED)]


def _actions(session: Session, given: Sequence[str]) -> list[str]:
    return [a.label for a in session.plan(given[0]).actions] if given else []


def _files(*_: object) -> list[str]:
    return [FILES]


def _documents(session: Session, given: Sequence[str]) -> list[str]:
    return [FILES, *_plans(session, given)]


def _examples(*_: object) -> Iterable[str]:
    from applier.cli import examples

    return examples.files()


#: What looks up candidates for an argument, by its name in the help or in the code.
_LOOKED_UP: dict[str, Callable[[Session, Sequence[str]], Iterable[str]]] = {
    "PLAN": _plans,
    "OLD": _documents,
    "NEW": _documents,
    "UUID": _deleted,
    "ACTION": _actions,
    "FILE": _files,
    "DIR": _files,
    "planner": lambda session, _: session.planner_names(),
    "schema": lambda session, _: session.planner_names(),
    "action_type": lambda session, _: session.action_types,
    "example": _examples,
    "subscription": lambda session, _: (s.name for s in session.store.subscriptions()),
}

#: The environment variable with the words of the command line, one in each line.
WORDS = "ACTIONPLAN_WORDS"
#: For each shell, the script that calls ``actionplan complete --words`` for candidates.
SCRIPTS = {
    "bash": f"""\
_actionplan() {{
    local IFS=$'\\n' word
    COMPREPLY=()
    while read -r word; do
        if [ "$word" = "{FILES}" ]; then
            compopt -o filenames 2>/dev/null
            COMPREPLY+=($(compgen -f -- "${{COMP_WORDS[COMP_CWORD]#=}}"))
        else
            COMPREPLY+=("$word")
        fi
    done < <({WORDS}="${{COMP_WORDS[*]:1:COMP_CWORD}}" actionplan complete --words 2>/dev/null)
}}
complete -F _actionplan actionplan
""",
    "zsh": f"""\
#compdef actionplan
_actionplan() {{
    local -a found
    found=("${{(@f)$({WORDS}="${{(F)words[2,CURRENT]}}" actionplan complete --words 2>/dev/null)}}")
    [[ ${{words[CURRENT]}} == --*=* ]] && compset -P '*='
    if (( ${{found[(Ie){FILES}]}} )); then
        found=("${{(@)found:#{FILES}}}")
        _files
    fi
    compadd -a found
}}
compdef _actionplan actionplan
""",
}


class Complete(Verb):
    """Print what makes bash or zsh complete verbs, options, plans, actions and files"""

    EXAMPLES = (
        "complete bash > ~/.local/share/bash-completion/completions/actionplan",
        "complete zsh > ~/.zfunc/_actionplan",
    )

    ARGUMENTS = (
        argument(
            "SHELL",
            f"{' or '.join(SCRIPTS)} (default: bash)",
            nargs="?",
            choices=tuple(SCRIPTS),
            default="bash",
        ),
        argument("--words", f"print what the last word in the variable {WORDS} may become"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        if parsed_args.words:
            words = os.environ.get(WORDS, "").split("\n")
            for word in candidates(self.app, words):
                self.say(word)
        else:
            self.app.stdout.write(SCRIPTS[parsed_args.shell])
        return 0
