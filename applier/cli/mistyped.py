# SPDX-License-Identifier: Apache-2.0
"""Suggestions for command lines that do not begin with a verb."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator, Sequence

from planner.errors import shortened

#: Global options that take a value.
VALUED = ("--config-file", "--log-file")
#: The minimum similarity of words to a verb for the suggestion that is tried last, and first.
_ALIKE, _VERY_ALIKE = 0.7, 0.9
PROGRAM = "actionplan"
GLOBAL = (*VALUED, "-v", "--verbose", "--debug", "--version")


def unknown(argv: Sequence[str], verbs: Sequence[str], program: str = PROGRAM) -> str:
    """Return the message about a command line without a known verb, with the nearest that works.

    >>> VERBS = ["apply", "list", "action list", "action show"]
    >>> print(unknown(["action", "lst", "last"], VERBS), end="")
    actionplan: no verb 'action lst'; did you mean: actionplan action list last
    >>> print(unknown(["action"], VERBS), end="")
    actionplan: no verb 'action'; with 'action' begin: action list, action show
    >>> print(unknown(["action", "type"], ["action list", "action type list"]), end="")
    actionplan: no verb 'action type'; with 'action type' begin: action type list
    >>> print(unknown(["aply", "x"], VERBS), end="")
    actionplan: no verb 'aply'; did you mean: actionplan apply x
    >>> print(unknown(["x"], VERBS), end="")
    actionplan: no verb 'x'; all verbs: actionplan --help
    """
    words = _split_global(argv)[1] or list(argv)
    kind = "option" if words[0].startswith("-") else "verb"
    for length in (2, 1):
        beginning = " ".join(words[:length])
        begun = [verb for verb in verbs if verb.startswith(f"{beginning} ")]
        if begun:
            break
    whole = begun and len(words) <= length
    better = _nearest(argv, verbs, _VERY_ALIKE, program) or reordered(argv, verbs, program)
    if better is None and not whole:
        better = _nearest(argv, verbs, _ALIKE, program)
    if better:
        said, text = " ".join(words[:2] if begun else words[:1]), f"did you mean: {better}"
    elif begun:
        said, text = beginning, f"with {beginning!r} begin: {', '.join(begun)}"
    else:
        said, text = words[0], f"all verbs: {program} --help"
    return shortened(f"{program}: no {kind} {said!r}; {text}") + "\n"


def _nearest(argv: Sequence[str], verbs: Sequence[str], alike: float, program: str) -> str | None:
    """Return the command line with its first words replaced by the most similar verb.

    None if no verb is at least as similar as ``alike``, from 0 to 1.
    """
    first, words = _split_global(argv)

    def likeness(verb: str) -> float:
        said = " ".join(words[: len(verb.split())])
        return difflib.SequenceMatcher(None, said, verb).ratio()

    best = max(verbs, key=likeness, default="")
    if not best or likeness(best) < alike:
        return None
    rest = words[len(best.split()) :]
    return f"{program} {shlex.join([*first, *best.split(), *rest])}"


def reordered(argv: Sequence[str], verbs: Sequence[str], program: str = PROGRAM) -> str | None:
    """Return the command line with global options first and the verb next.

    None if it contains no verb, or is in that order already.

    >>> reordered(["web.yaml", "create"], ["create", "action list"])
    'actionplan create web.yaml'
    >>> reordered(["last", "list", "--config-file", "x.conf", "action"], ["list", "action list"])
    'actionplan --config-file x.conf action list last'
    """
    first, rest = _split_global(argv)
    for verb in sorted(verbs, key=lambda v: -len(v.split())):
        if set(verb.split()) <= set(rest):
            for word in verb.split():
                rest.remove(word)
            better = [*first, *verb.split(), *rest]
            return None if better == list(argv) else f"{program} {shlex.join(better)}"
    return None


def _split_global(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    first: list[str] = []
    rest: list[str] = []
    words: Iterator[str] = iter(argv)
    for word in words:
        if word.partition("=")[0] in GLOBAL:
            first.append(word)
            if word in VALUED:
                first += [w for w in [next(words, None)] if w is not None]
        else:
            rest.append(word)
    return first, rest
