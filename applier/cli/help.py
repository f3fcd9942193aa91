# SPDX-License-Identifier: Apache-2.0
"""The verb ``help``."""

from __future__ import annotations

import argparse
import difflib
import inspect
import shutil
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from applier.cli.arguments import argument
from applier.cli.exit_codes import USAGE
from applier.cli.verb import Verb
from planner.errors import shortened

#: The column in which the first sentence of each verb begins.
_INDENT = 21


def _verbs(text: str) -> Sequence[str]:
    return text.split(", ")


#: The verbs of the first screen: those that most plans need, in the order in which they do.
FIRST = _verbs("create, apply, start, list, show, watch, why, stop, resume, report")
#: All verbs by purpose, in the order of ``help --all``.
GROUPS = {
    "Plan and apply": _verbs("drain, undrain, create, simulate, approve, apply, start"),
    "Look": _verbs(
        "list, show, watch, why, diff, graph, report, history, event list, "
        "event subscription list, action list, action show, service list, worker list, job list, "
        "duration list, duration export, export, facts"
    ),
    "Step in": _verbs(
        "stop, resume, set, action skip, action force-complete, action set, rollback, delete, "
        "undelete, import, event subscription remove, worker drain, job clean"
    ),
    "What there is": _verbs(
        "planner list, planner show, action type list, action type show, plugin new, schema, "
        "example list, example show, example copy"
    ),
    "Set up": _verbs(
        "config show, simulator show, simulator reset, duration import, db upgrade, db check, "
        "db backup, purge, complete, help"
    ),
}

#: What is meant by verbs of other programs.
_ELSEWHERE = {
    "abort": "stop PLAN --abort ACTION",
    "action abort": "stop PLAN --abort ACTION",
    "cancel": "stop PLAN --cancel",
    "pause": "stop PLAN --pause",
    "plan": "create",
    "run": "apply",
    "status": "show",
}

EXAMPLES = """\
Options, before or after the verb:
  --config-file FILE   read this configuration instead of
                       ~/.config/actionplan/watcher.conf or
                       /etc/watcher/watcher.conf; of several, later ones win
  --log-file FILE      write what the program logs to a file
  -v, -vv              log to the terminal; -vv: everything
  --debug              show where in the program an error comes from
  --version, -h

Examples:
  actionplan create maintenance.yaml            make a plan, show it, keep it
  actionplan apply last                         show it again, ask, run it
  actionplan apply maintenance.yaml --yes       all in one, without a question
  actionplan graph last -f mermaid              draw it

'actionplan help VERB' explains a verb, with examples.
Exit codes: 0 done, 1 refused, 2 usage, 3 the plan FAILED, 4 out of date or
refused by a guard, 5 PAUSED, CANCELLED or in doubt.
"""


class Help(Verb):
    """Explain a verb, with examples, or list the verbs that most plans need, or all"""

    EXAMPLES = ("help --all", "help create", "help action")
    ARGUMENTS = (
        argument("--all", "list all verbs, by purpose"),
        argument("VERB", "what to explain", dest="words", nargs=argparse.REMAINDER),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        words = [word for word in parsed_args.words if word != "--"]
        if not words:
            self.app.stdout.write(program_help(self.app, everything=parsed_args.all))
            return 0
        verbs = self.app.command_manager
        try:
            verb, name, _ = verbs.find_command(words)
        except ValueError:
            begun = [name for name, _ in verbs if name.startswith(f"{words[0]} ")]
            if begun and len(words) == 1:
                self.app.stdout.write("".join(_line(self.app, name) for name in begun))
                return 0
            names = [name for name, _ in verbs]
            if "schema" in names and (lines := about_documents(words[0], self.app.NAME)):
                self.app.stdout.write("".join(f"{line}\n" for line in lines))
                return 0
            self.app.stderr.write(no_such_verb(words, names, self.app.NAME))
            return USAGE
        command = verb(self.app, self.app_args, cmd_name=name)
        self.app.stdout.write(command.get_parser(f"{self.app.NAME} {name}").format_help())
        return 0


def no_such_verb(words: Sequence[str], verbs: Sequence[str], program: str) -> str:
    """Return the message about words that do not begin with a verb, with those that are meant.

    >>> no_such_verb(["lst", "last"], ["list", "action list"], "actionplan")
    "actionplan: no verb 'lst'; did you mean 'list'? All verbs: actionplan help --all\\n"
    >>> no_such_verb(["action"], ["list", "action list"], "actionplan")
    "actionplan: no verb 'action'; did you mean 'action list'? All verbs: actionplan help --all\\n"
    >>> no_such_verb(["run"], [], "actionplan")
    "actionplan: no verb 'run'; did you mean 'apply'? All verbs: actionplan help --all\\n"
    """
    begun = [verb for verb in verbs if verb.startswith(f"{words[0]} ")]
    said = " ".join(words[:2] if begun else words[:1])
    near = begun if begun and len(words) == 1 else difflib.get_close_matches(said, verbs, n=1)
    near = [_ELSEWHERE[said]] if said in _ELSEWHERE else near
    meant = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
    kind = "option" if said.startswith("-") else "verb"
    text = f"{program}: no {kind} {said!r}{meant} All verbs: {program} help --all"
    return f"{shortened(text)}\n"


def about_documents(word: str, program: str) -> list[str]:
    """Return where a planner, a kind of documents or an action type is explained; else no lines.

    >>> about_documents("migrate", "actionplan")[0]
    "'migrate' is a type of actions, of which documents consist. To read more:"
    """
    from planner.errors import PlannerError
    from planner.making import registry

    if word in registry.names(registry.ACTIONS):
        what = "a type of actions, of which documents consist"
        verbs = [f"action type show {word}", f"schema {word}"]
    else:
        kinds = {}
        for name in registry.names(registry.PLANNERS):
            with suppress(PlannerError):  # a plugin that cannot be used reads no documents
                kinds[name] = registry.planner(name).KIND
        planners = [name for name, kind in kinds.items() if word in (name, kind)]
        if not planners:
            return []
        kind = kinds[planners[0]]
        is_kind = word == kind
        what = "a kind of documents" if is_kind else f"a planner of documents of kind {kind}"
        verbs = [*(f"planner show {name}" for name in planners), f"schema {kind}", "example list"]
    return [f"{word!r} is {what}. To read more:", *(f"  {program} {verb}" for verb in verbs)]


def program_help(app: Any, *, everything: bool) -> str:
    """Return the help of the program: verbs with their first sentences.

    These are the verbs of the first screen, if the program has one, or all of them by group.
    """
    lines = [f"usage: {app.NAME} VERB ...\n\n", f"{app.parser.description}\n\n"]
    if app.FIRST and not everything:
        lines += [_line(app, name) for name in app.FIRST]
        lines.append(f"\nAll verbs: {app.NAME} help --all\n")
    else:
        listed = {name for names in app.GROUPS.values() for name in names}
        more = [name for name, _ in app.command_manager if name not in listed]
        groups = {**app.GROUPS, **({"More": more} if more else {})}
        for i, (title, names) in enumerate(groups.items()):
            lines += ["\n" if i else "", f"{title}:\n", *(_line(app, name) for name in names)]
    return "".join([*lines, "\n", app.EXAMPLES])


def _line(app: Any, name: str) -> str:
    """Return the line of a verb: its first sentence, or the reason why it cannot be imported.

    The line is empty if the verb is not installed.
    """
    entry = app.command_manager.commands.get(name)
    if entry is None:
        return ""
    try:
        verb = entry.load()
    except (ImportError, AttributeError) as reason:
        return f"  {name:<18} cannot be loaded: {reason}\n"
    sentence = (inspect.getdoc(verb) or "").partition("\n")[0].rstrip(".")
    line = f"  {name:<18} {sentence}"
    if app.stdout.isatty():
        width = shutil.get_terminal_size().columns
        line = textwrap.fill(line, max(width, 2 * _INDENT), subsequent_indent=" " * _INDENT)
    return f"{line}\n"
