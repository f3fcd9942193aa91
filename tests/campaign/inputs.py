# SPDX-License-Identifier: Apache-2.0
"""Gives the command line bad input, made from every example, and looks for anything but a sentence.

``python tests/campaign/inputs.py [--rounds N] [--seconds S] [--seed N]``. A round is a document, a
saved plan or a configuration with a few changes, read by ``create``, ``simulate`` or ``apply``.
What is accepted must be shown by every verb that shows plans; what is refused must be told in a few
lines without control characters, with its exit code, and must leave nothing in the record. Inputs
that were answered otherwise are written to the folder ``--keep``.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from types import FrameType
from typing import NamedTuple

from mutations import mutated

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "functional"))

from command_line import CommandLine, Ended  # noqa: E402

#: An answer that takes longer, or has more characters, counts as wrong.
LONGEST_S, LONGEST_TEXT = 120, 20_000
REFUSAL = re.compile(r"Refused(: |, \d+ mistakes:\n)")
REFUSED, CODES = 1, frozenset({0, 1, 4})
#: What a terminal obeys, and what turns text around.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
LOOKS = (("list",), ("show", "last"), ("show", "last", "-f", "json"), ("action", "list", "last"))
DRAWINGS = (("graph", "last", "-f", "dot"), ("graph", "last", "-f", "mermaid"))


class Case(NamedTuple):
    """A file to read and the command lines that read it."""

    name: str
    data: bytes
    words: tuple[tuple[str, ...], ...]


class TooLong(BaseException):
    """A command did not end in time. Not an Exception: nothing may take it for one of its own."""


def examples(line: CommandLine) -> Iterator[Case]:
    """List what is changed: documents, plans saved from them, and the sample configuration."""
    folders = (ROOT / "etc" / "examples", ROOT / "doc" / "how-to", ROOT / "doc" / "planners")
    reads = (("create", "FILE"), ("simulate", "FILE"), ("create", "FILE", "--no-check-types"))
    for path in sorted(p for folder in folders for p in folder.rglob("*.yaml")):
        data = path.read_bytes()
        (line.folder / "FILE").write_bytes(data)
        if line.inside("create", "FILE").code:
            continue
        yield Case(path.name, data, reads)
        saved = json.loads(line.good("show", "last", "-f", "json"))
        for plan in (saved, {key: value for key, value in saved.items() if key != "digest"}):
            text = json.dumps(plan, indent=2).encode()
            yield Case(f"{path.name}, saved", text, (("simulate", "FILE"), ("apply", "FILE")))
    sample = (ROOT / "etc" / "watcher.conf.sample").read_text(encoding="utf-8")
    options = re.sub(r"(?m)^#(\w+ = )", r"\1", sample).encode()
    verbs = (("list",), ("create", str(ROOT / "etc/examples/solution.yaml")))
    yield Case("watcher.conf", options, tuple(("--config-file", "FILE", *verb) for verb in verbs))


class Campaign:
    """Rounds of bad input, as many as are wanted or the time allows."""

    def __init__(self, line: CommandLine, given: argparse.Namespace) -> None:
        self._line, self._given = line, given
        self._chance = Random(given.seed)
        self._cases = list(examples(line))
        self._plans = len(line.plans())
        self.answers: Counter[str] = Counter()
        self.found: list[str] = []

    def run(self) -> None:
        """Read one bad input after another."""
        end = time.monotonic() + self._given.seconds
        while self.answers.total() < self._given.rounds and time.monotonic() < end:
            case = self._chance.choice(self._cases)
            data = mutated(case.data, self._chance)
            words = self._chance.choice(case.words)
            (self._line.folder / "FILE").write_bytes(data)
            problems = list(self._judged(words))
            self.answers["wrong" if problems else "right"] += 1
            if problems:
                self._keep(case, words, data, problems)

    def _judged(self, words: Sequence[str]) -> Iterator[str]:
        """Run a command line; say what is wrong with its answer, and with the record after it."""
        ended = self._ended(words)
        yield from wrong_with(ended)
        if ended.code == 0 and words[0] == "create":
            for verb in (*LOOKS, *DRAWINGS):
                looked = self._ended(verb)
                yield from (f"{' '.join(verb)}: {text}" for text in wrong_with(looked))
                if looked.code:
                    yield f"{' '.join(verb)} ended with {looked.code}: {looked.err[:300]}"
        plans = len(self._line.plans())
        if ended.code and plans != self._plans:
            yield "it was refused, and is in the record"
        self._plans = plans

    def _ended(self, words: Sequence[str]) -> Ended:
        signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
        try:
            return self._line.inside(*words)
        except TooLong:
            where = "".join(traceback.format_exc()[-600:])
            return Ended(-1, "", f"did not end within {LONGEST_S} s: {where}")
        except Exception:
            return Ended(-1, "", traceback.format_exc())
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _keep(self, case: Case, words: Sequence[str], data: bytes, problems: Sequence[str]) -> None:
        number = self.answers.total()
        self.found.append(f"input {number}, of {case.name}, {' '.join(words)}: {problems[0]}")
        if self._given.keep:
            folder = Path(self._given.keep)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number}.input").write_bytes(data)
            text = "\n".join([" ".join(words), *problems])
            (folder / f"{number}.found").write_text(text, "utf-8", "backslashreplace")


def wrong_with(ended: Ended) -> Iterator[str]:
    """Say what is wrong with an answer."""
    if ended.code not in CODES:
        yield f"it ended with {ended.code}: {ended.err[-600:]}"
    if "Traceback" in ended.err:
        yield f"a traceback: {ended.err[-300:]}"
    if ended.code == REFUSED and not REFUSAL.match(ended.err):
        yield f"no sentence of refusal: {ended.err[:300]}"
    if len(ended.err) > LONGEST_TEXT:
        yield f"a message of {len(ended.err)} characters"
    for text in (ended.out, ended.err):
        control = CONTROLS.search(text)
        if control:
            around = text[max(0, control.start() - 40) : control.end() + 40]
            yield f"a control character: {around!r}"


def too_long(_number: int, _frame: FrameType | None) -> None:
    """Interrupt a command."""
    raise TooLong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a campaign; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3000, help="how many inputs")
    parser.add_argument("--seconds", type=float, default=600.0, help="no new input after these")
    parser.add_argument("--seed", type=int, default=1, help="another number makes other inputs")
    parser.add_argument("--keep", metavar="FOLDER", help="write inputs with wrong answers there")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGALRM, too_long)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "cache").mkdir()
        campaign = Campaign(CommandLine(Path(folder), Path(folder) / "cache"), given)
        campaign.run()
    print(*campaign.found[:20], sep="\n", end="\n" if campaign.found else "")
    print(f"{campaign.answers['right']} passed, {campaign.answers['wrong']} failed")
    return 1 if campaign.found or not campaign.answers else 0


if __name__ == "__main__":
    sys.exit(main())
