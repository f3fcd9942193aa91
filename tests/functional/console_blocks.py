# SPDX-License-Identifier: Apache-2.0
"""Runs the commands that a page shows, and compares what they print with what the page says.

In a page, a ``.. code-block:: console`` holds commands (``$ ...``, with ``\\`` at the end of a line
that goes on) and below each what it prints. A ``.. code-block:: diff`` with a ``:caption:`` changes
the file of that name. ``...`` on a line of its own stands for lines that are left out.

A comment ``.. until: COMMAND`` waits, out of the reader's sight, until a command succeeds. What a
command leaves running in the background is ended with the page.

What differs from run to run is made equal on both sides: uuids, times, durations, blanks between
columns, and the order in which actions that run side by side are reported.

``python tests/functional/console_blocks.py PAGE...`` writes into pages what the commands print now.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from forked_program import ForkedProgram

ROOT = Path(__file__).resolve().parents[2]
#: First words of commands that a page may show and that are not run.
NOT_RUN = frozenset({"./check", "./demo", "cd", "export", "git", ".venv/bin/python"})
#: Begins a comment that waits, and how long it may take.
UNTIL, PATIENCE_S = ".. until: ", 120.0
#: What a reader's record, configuration and simulated cloud stand in.
HOME = "/home/operator"


class Command(NamedTuple):
    """A command and what the page says that it prints; ``first`` to ``last`` are its lines."""

    first: int
    last: int
    text: str
    output: tuple[str, ...]

    @property
    def is_run(self) -> bool:
        """False for commands that are only shown."""
        return self.text.split()[0] not in NOT_RUN


class Until(NamedTuple):
    """A command that is tried until it succeeds; ``first`` is its line."""

    first: int
    text: str


class Change(NamedTuple):
    """Lines of a file that a page replaces."""

    first: int
    file: str
    old: str
    new: str


def steps(page: Sequence[str]) -> list[Command | Change | Until]:
    """Find the commands, changes and waits of a page, in order."""
    found: list[Command | Change | Until] = [
        Until(i, line.removeprefix(UNTIL)) for i, line in enumerate(page) if line.startswith(UNTIL)
    ]
    for kind, options, lines in _blocks(page):
        if kind == "console":
            found += _commands(lines)
        elif kind == "diff" and "caption" in options and lines:
            old = [text[1:] for _, text in lines if text[:1] in ("-", " ")]
            new = [text[1:] for _, text in lines if text[:1] in ("+", " ")]
            found.append(Change(lines[0][0], options["caption"], _joined(old), _joined(new)))
    return sorted(found, key=lambda step: step.first)


def _blocks(page: Sequence[str]) -> Iterator[tuple[str, dict[str, str], list[tuple[int, str]]]]:
    """Return kind, options and numbered lines, without their indent, of each code block."""
    i = 0
    while i < len(page):
        head = re.match(r"( *)\.\. code-block:: (\w+)$", page[i])
        i += 1
        if not head:
            continue
        inside: list[tuple[int, str]] = []
        while i < len(page) and (not page[i].strip() or _indent(page[i]) > len(head[1])):
            inside.append((i, page[i]))
            i += 1
        depth = min((_indent(text) for _, text in inside if text.strip()), default=0)
        lines = [(n, text[depth:]) for n, text in inside]
        options: dict[str, str] = {}
        while lines and (option := re.match(r":([\w-]+): *(.*)", lines[0][1])):
            options[option[1]] = option[2]
            lines.pop(0)
        while lines and not lines[0][1]:
            lines.pop(0)
        while lines and not lines[-1][1]:
            lines.pop()
        yield head[2], options, lines


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _commands(lines: list[tuple[int, str]]) -> Iterator[Command]:
    begins = [i for i, (_, text) in enumerate(lines) if text.startswith("$ ")]
    for begin, end in zip(begins, [*begins[1:], len(lines)], strict=True):
        first = last = begin
        while lines[last][1].endswith("\\"):
            last += 1
        words = [text.removeprefix("$ ").removesuffix("\\") for _, text in lines[first : last + 1]]
        output = [text for _, text in lines[last + 1 : end]]
        while output and not output[-1]:
            output.pop()
        place = lines[last][0] + 1
        yield Command(place, place + len(output), "".join(words), tuple(output))


class Reader:
    """Somebody who follows a page: a copy of the checkout's files, a home, a shell."""

    def __init__(self, folder: Path, speed: float) -> None:
        self.checkout, self.home = folder / "checkout", folder / "home"
        self._code = 0
        for name in ("etc", "doc"):
            kept = shutil.ignore_patterns("_build", "__pycache__")
            shutil.copytree(ROOT / name, self.checkout / name, ignore=kept)
        (self.checkout / "applier/clouds").mkdir(parents=True)
        cloud = "applier/clouds/small-cloud.yaml"
        shutil.copy(ROOT / cloud, self.checkout / cloud)
        self.home.mkdir()
        self._environment = {
            "HOME": str(self.home),
            "PYTHONPATH": str(ROOT / "tests" / "user_database"),
            "TEST_USER": "operator",
            "LANG": "C.UTF-8",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "OS_ACTIONPLAN__SIMULATOR_SPEED": str(speed),
        }

    def run(self, command: Command) -> list[str]:
        """Run a command; gives the lines that it prints."""
        if command.text == "echo $?":
            return [str(self._code)]
        ended = self._ended(command.text)
        # As a shell has it, of a program that was killed by a signal.
        self._code = ended.returncode if ended.returncode >= 0 else 128 - ended.returncode
        text = ended.stdout.replace(str(self.home), HOME)
        lines = [line.rstrip() for line in text.splitlines()]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def wait(self, until: Until) -> None:
        """Try a command until it succeeds."""
        end = time.monotonic() + PATIENCE_S
        while (ended := self._ended(until.text)).returncode:
            if time.monotonic() > end:
                raise AssertionError(f"line {until.first}: {until.text}: {ended.stdout}")

    def leave(self) -> None:
        """End what still runs in the background."""
        # By their folder: a service makes itself a session of its own, and a name.
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (process / "cwd").readlink() == self.checkout:
                    os.kill(int(process.name), signal.SIGKILL)

    def _ended(self, text: str) -> subprocess.CompletedProcess[str]:
        # A shell is started where a command needs one.
        is_plain = text.startswith("actionplan ") and not set(text) & set("|&;<>$`*")
        words = shlex.split(text)[1:] if is_plain else ["/bin/sh", "-c", text]
        with (ForkedProgram if is_plain else subprocess.Popen)(
            words,
            cwd=self.checkout,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            out, _ = process.communicate(timeout=PATIENCE_S)
        if is_plain and process.returncode == -signal.SIGKILL:
            out += "Killed\n"  # as a shell says
        return subprocess.CompletedProcess(text, process.returncode, out)

    def change(self, change: Change) -> None:
        """Change a file as a page says."""
        path = self.checkout / change.file
        text = path.read_text(encoding="utf-8")
        if text.count(change.old) != 1:
            raise AssertionError(f"line {change.first}: {change.file} has no such lines, once")
        path.write_text(text.replace(change.old, change.new), encoding="utf-8")


_EQUAL = (
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UUID"),
    (r"\b[0-9a-f]{64}\b", "DIGEST"),
    (r"\b[0-9a-f]{8}\b", "ID"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.\d]*(\+00:00| UTC)?", "TIME"),
    (r"^ *\d+:\d\d  ", "@ "),
    (r"\[\d+/(\d+)\]", r"[n/\1]"),
    (r"\b(\d+h\d\dm|\d+m\d\ds|\d+(\.\d)?s)(?=\W|$)", "DURATION"),
    (r"after \d+\.\d s\b", "after DURATION"),
    (r" on [\w.-]+, process \d+", " on HOST, process N"),
    (r"the applier on [\w.-]+", "the applier on HOST"),
    (r"^ID +[\w.-]+ +\d+ +operator ", "ID  HOST  N  operator  "),
    (r"─+", "─"),
    (r"  +", "  "),
)


def equalised(lines: Sequence[str]) -> list[str]:
    """Make equal what differs from run to run.

    >>> equalised(["  0:02  start  b", "  0:02  start  a", "Plan 60ff2176  took 14s"])
    ['@ start  a', '@ start  b', 'Plan ID  took DURATION']
    """
    plain = []
    for line in lines:
        for pattern, instead in _EQUAL:
            line = re.sub(pattern, instead, line)
        plain.append(line.rstrip())
    parts = [(at, list(part)) for at, part in groupby(plain, lambda line: line.startswith("@ "))]
    return [line for at, part in parts for line in (sorted(part) if at else part)]


def agrees(said: Sequence[str], printed: Sequence[str]) -> bool:
    """Tell whether a page says what was printed; ``...`` stands for any number of lines."""
    if "..." not in said:
        return equalised(said) == equalised(printed)
    parts = [list(part) for dots, part in groupby(said, lambda line: line == "...") if not dots]
    pattern = ".*".join(re.escape("\n".join(equalised(part))) for part in parts)
    start = "" if said[0] != "..." else ".*"
    end = "" if said[-1] != "..." else ".*"
    text = "\n".join(equalised(printed))
    return re.fullmatch(f"{start}{pattern}{end}", text, re.DOTALL) is not None


def _followed(page: Path, reader: Reader) -> Iterator[tuple[Command, list[str]]]:
    """Follow a page; yield each command that prints something else than it says, and what."""
    for step in steps(page.read_text(encoding="utf-8").splitlines()):
        if isinstance(step, Change):
            reader.change(step)
        elif isinstance(step, Until):
            reader.wait(step)
        elif step.is_run:
            printed = reader.run(step)
            if not agrees(step.output, printed):
                yield step, printed


def differences(page: Path, reader: Reader) -> list[str]:
    """Follow a page; gives a paragraph for each command that prints something else."""
    return [
        f"{page}:{step.first}: $ {step.text}\n--- the page says\n{_joined(step.output)}"
        f"--- it prints\n{_joined(printed)}"
        for step, printed in _followed(page, reader)
    ]


def write(page: Path, reader: Reader) -> int:
    """Put into a page what its commands print now; gives how many outputs changed."""
    changed = list(_followed(page, reader))
    lines = page.read_text(encoding="utf-8").splitlines()
    for step, printed in reversed(changed):
        begin = max(i for i in range(step.first) if lines[i].lstrip().startswith("$ "))
        indent = " " * _indent(lines[begin])
        new = _shortened(step.output, printed)
        lines[step.first : step.last] = [f"{indent}{line}".rstrip() for line in new]
    page.write_text(_joined(lines), encoding="utf-8")
    return len(changed)


def _shortened(said: Sequence[str], printed: list[str]) -> list[str]:
    """Leave out what comes before the line with which a page goes on after its first ``...``."""
    if said[:1] == ("...",) and len(said) > 1:
        (begin,) = equalised(said[1:2])
        for i, line in enumerate(printed):
            if equalised([line])[0].startswith(begin):
                return ["...", *printed[i:]]
    return printed


def main(pages: Sequence[str]) -> None:
    """Write pages anew, in real time."""
    for name in pages:
        with tempfile.TemporaryDirectory() as folder:
            reader = Reader(Path(folder), speed=1)
            try:
                number = write(Path(name), reader)
            finally:
                reader.leave()
        print(f"{name}: {number} outputs changed")


if __name__ == "__main__":
    main(sys.argv[1:])
