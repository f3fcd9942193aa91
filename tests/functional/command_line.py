# SPDX-License-Identifier: Apache-2.0
"""The command line with a home and a record of its own, in this process or as a program.

Whatever waits here waits for an event (a line, a state on record), and gives up after a while.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import io
import logging
import os
import pty
import pwd
import re
import select
import shlex
import sqlite3
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast
from unittest import mock

import yaml
from forked_program import ForkedProgram

from applier.cli.main import main
from applier.cli.program import WAITS
from applier.contracts import Claimant
from applier.storage.sql_store import SqlStore
from planner.plan.model import ActionPlan
from planner.plan.states import ActionState, PlanState

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(sys.executable).with_name("actionplan")
EXAMPLE = ROOT / "etc" / "examples" / "host-maintenance.yaml"
#: How long anything may take before it counts as never.
PATIENCE_S = 120.0


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class _Stream(io.TextIOWrapper):
    """A standard stream in memory, which encodes as one of a process does."""

    def __init__(self, data: bytes = b"") -> None:
        super().__init__(io.BytesIO(data), encoding="utf-8", newline="", write_through=True)

    def text(self) -> str:
        """Return what was written."""
        return cast("io.BytesIO", self.buffer).getvalue().decode()


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


@contextlib.contextmanager
def _process_put_back() -> Iterator[None]:
    """Put back what a command changes in its process: streams, hooks, logging, the collector."""
    streams = sys.stdin, sys.stdout, sys.stderr
    hooks = sys.excepthook, threading.excepthook
    root, factory = logging.getLogger(), logging.getLogRecordFactory()
    collect_after = gc.get_threshold()
    level, handlers = root.level, list(root.handlers)
    waits = logging.getLogger(WAITS)
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        sys.excepthook, threading.excepthook = hooks
        for handler in set(root.handlers) - set(handlers):
            handler.close()
        root.handlers[:], waits.handlers[:] = handlers, []
        root.setLevel(level)
        logging.setLogRecordFactory(factory)
        gc.set_threshold(*collect_after)


class CommandLine:
    """Runs ``actionplan`` in a scratch folder; nothing of this machine's user is seen.

    Calling it runs a command in this process; ``program``, ``start`` and ``on_terminal`` run one in
    a process of its own.
    """

    #: Whether commands are the program itself, started anew: for long tests and servers.
    is_real = False

    def __init__(self, folder: Path, cache: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.configuration = folder / "config" / "actionplan" / "watcher.conf"
        self.record = folder / "state" / "actionplan" / "actionplan.sqlite"
        self.simulator = folder / "state" / "actionplan" / "simulator.json"
        self.environment = {
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_CACHE_HOME": str(cache),
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT / "tests" / "user_database"),
            "TEST_USER": "operator",
            "COLUMNS": "100",
            "TERM": "xterm-256color",
            # Warnings of our own are errors; what libraries deprecate among each other is theirs.
            "PYTHONWARNINGS": "error,ignore::DeprecationWarning",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.configure(actionplan={"simulator_speed": 1000})

    def configure(self, **sections: Mapping[str, Any]) -> None:
        """Write the user's watcher.conf; in the name of a section ``__`` stands for a dot."""
        self.configuration.parent.mkdir(parents=True, exist_ok=True)
        lines = []
        for section, options in sections.items():
            lines.append(f"[{section.replace('__', '.')}]")
            lines += [f"{key} = {value}" for key, value in options.items()]
        self.configuration.write_text("\n".join([*lines, ""]), encoding="utf-8")

    def document(self, file: str, /, *actions: Mapping[str, Any], **fields: Any) -> str:
        """Write a solution; gives its file name."""
        value = {**fields, "actions": [dict(action) for action in actions]}
        text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
        (self.folder / file).write_text(text, encoding="utf-8")
        return file

    def __call__(self, *words: str, stdin: str | bytes = b"", **environment: str) -> Ended:
        """Run a command to its end in this process, without a terminal.

        It is a hundred times cheaper than a start of the program. It has its own environment, user,
        folder and streams; what else it changes in a process is put back.
        """
        given = {**self.environment, **environment}
        user = pwd.struct_passwd((given["TEST_USER"], *pwd.getpwuid(os.getuid())[1:]))
        streams = (_Stream(_bytes(stdin)), _Stream(), _Stream())
        with (
            mock.patch.dict(os.environ, given, clear=True),
            mock.patch("pwd.getpwuid", return_value=user),
            contextlib.chdir(self.folder),
            _process_put_back(),
        ):
            sys.stdin, sys.stdout, sys.stderr = streams
            code = main(words)
        return Ended(code, *(stream.text() for stream in streams[1:]))

    inside = __call__

    def program(self, *words: str, stdin: str | bytes = b"", **environment: str) -> Ended:
        """Run the program to its end: for what depends on a process and on how it is started."""
        ended = subprocess.run(
            [PROGRAM, *words],
            cwd=self.folder,
            env={**self.environment, **environment},
            input=_bytes(stdin),
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    def shell(self, line: str) -> Ended:
        """Run a line of bash, in which ``actionplan`` is the program."""
        bash = ["bash", "-c", f'actionplan() {{ {PROGRAM} "$@"; }}; {line}']
        ended = subprocess.run(
            bash, cwd=self.folder, env=self.environment, capture_output=True, check=False
        )
        return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    def good(self, *words: str, stdin: str | bytes = b"") -> str:
        """Do something that must succeed, to prepare or to look; gives what is printed."""
        ended = self(*words, stdin=stdin)
        assert ended.code == 0, ended
        return ended.out

    def copied(self, *words: str, **options: Any) -> Ended:
        """Run a command to its end in a process of its own, which is a copy of another one."""
        with self.start(*words, **options) as process:
            out, err = process.communicate(timeout=PATIENCE_S)
        return Ended(process.returncode, out, err)

    def transcript(self, *lines: str) -> str:
        """Run command lines; gives each with what it prints, its exit code, and ~ for the home."""
        told = []
        for line in lines:
            ended = self(*shlex.split(line))
            told.append(f"$ actionplan {line}\n{ended.out}{ended.err}[{ended.code}]\n")
        return "\n".join(told).replace(str(self.folder), "~")

    def check_refusals(self, name: str, *lines: str) -> None:
        """Compare with tests/cases/cli/NAME.txt what is said to command lines that are refused."""
        told = self.transcript(*lines)
        check_golden(name, told)
        assert told.count("\n[0]\n") == 0
        assert "Traceback" not in told

    def start(self, *words: str, **options: Any) -> Started | StartedProgram:
        """Start a command, in a process of its own, whose output is a pipe.

        The options are those of Popen, and ``before``, which is called in that process first.
        """
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        given = {**pipes, "cwd": self.folder, "env": self.environment, "text": True, **options}
        if self.is_real and "before" not in options:
            return StartedProgram([PROGRAM, *words], **given)
        return Started(words, **given)

    def on_terminal(self, *words: str, columns: int = 100) -> Terminal:
        """Start a command on a terminal of its own."""
        return Terminal(self, words, columns)

    def plans(self) -> list[ActionPlan]:
        """Read every plan on record, saved last first; without a record there are none."""
        if not self.record.exists():
            return []
        with self.store() as store:
            return [store.load_plan(plan.uuid) for plan in store.list_plans()]

    def store(self) -> contextlib.closing[SqlStore]:
        """Open the record, within a block."""
        return contextlib.closing(SqlStore(f"sqlite:///{self.record}"))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep all others from writing to the record."""
        with contextlib.closing(sqlite3.connect(self.record, PATIENCE_S)) as database:
            database.execute("BEGIN IMMEDIATE")
            yield

    def claimant(self) -> Claimant:
        """Read who runs the one plan."""
        with self.store() as store:
            claimant = store.claimant(self.plan().uuid)
        assert claimant is not None
        return claimant

    def plan(self) -> ActionPlan:
        """Read the one plan on record."""
        (plan,) = self.plans()
        return plan

    def wait_for(self, state: PlanState | None = None, **actions: ActionState) -> ActionPlan:
        """Wait until the one plan, and its actions by name, are in these states; gives the plan."""

        def found() -> ActionPlan | None:
            (plan, *_) = self.plans() or [None]
            if plan is None or state not in (None, plan.state):
                return None
            states = {action.name: action.state for action in plan.actions}
            return plan if actions.items() <= states.items() else None

        def known() -> str:
            told = [[(a.name, a.state, a.status_message) for a in p.actions] for p in self.plans()]
            return f"wanted {state} {actions}, found {[p.state for p in self.plans()]} {told}"

        return wait_until(found, known)


class _EndsWithItsTest:
    """Does not outlive a test that failed while it ran."""

    def __exit__(self, kind: type[BaseException] | None, *given: Any) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, *given)


class Started(_EndsWithItsTest, ForkedProgram):
    """A command that was started, in a copy of a process that has imported the program."""


class StartedProgram(_EndsWithItsTest, subprocess.Popen[str]):
    """The program itself, started anew."""


class RealCommandLine(CommandLine):
    """A command line whose commands are the program itself: for long tests and servers."""

    is_real = True
    __call__ = CommandLine.program


class Gate:
    """An action that, once started, runs until it is let go."""

    def __init__(self, folder: Path, name: str = "gate") -> None:
        self._begun, self._go = folder / f"{name}.begun", folder / f"{name}.go"
        waits = f"while [ -d {folder} ] && [ ! -e {self._go} ]; do sleep 0.02; done"
        #: A line of shell that runs until it is let go.
        self.command = f"touch {self._begun}; {waits}"

    def action(self, name: str) -> dict[str, Any]:
        """Describe the action."""
        given = {"command": self.command}
        return {"name": name, "action_type": "shell", "input_parameters": given}

    def wait(self) -> None:
        """Wait until the action runs: the record says so a moment before its program is there."""
        wait_until(self._begun.exists)

    def let_go(self) -> None:
        """Let the action end."""
        self.wait()
        self.leave_open()

    def leave_open(self) -> None:
        """Let the action end at once whenever it starts."""
        self._go.touch()


def wait_until(found: Callable[[], Any], told: Callable[[], str] = str) -> Any:
    """Ask until there is an answer; gives it. The only place that waits by the clock."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        answer = found()
        if answer:
            return answer
        threading.Event().wait(0.02)
    raise AssertionError(f"{found} never came true {told()}")


class Terminal:
    """A command on a terminal, as a person sees and types it. A context manager."""

    def __init__(self, line: CommandLine, words: tuple[str, ...], columns: int) -> None:
        self.seen = ""
        environment = {k: v for k, v in line.environment.items() if k != "COLUMNS"}
        self._handle, of_program = pty.openpty()
        fcntl.ioctl(of_program, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        own = dict.fromkeys(("stdin", "stdout", "stderr"), of_program)
        self._program = Started(
            words, cwd=line.folder, env=environment, start_new_session=True, **own
        )
        self.pid = self._program.pid
        os.close(of_program)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *error: object) -> None:
        self._program.kill()
        self._program.wait()
        self.hang_up()

    def wait_for(self, text: str) -> str:
        """Read until a text has appeared; gives all that was seen up to now."""
        end = time.monotonic() + PATIENCE_S
        while text not in plain(self.seen):
            if time.monotonic() > end or not self._read():
                raise AssertionError(f"{text!r} never appeared in:\n{plain(self.seen)}")
        return plain(self.seen)

    def type(self, text: str) -> None:
        """Type; ``\\x03`` is Ctrl-C, ``\\x04`` is Ctrl-D."""
        os.write(self._handle, text.encode())

    def waits(self) -> bool:
        """Return whether the command waits for something; after a question, for the answer."""
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(") ")[2][0] == "S"

    @property
    def echoes(self) -> bool:
        """Whether the terminal shows what is typed."""
        return bool(termios.tcgetattr(self._handle)[3] & termios.ECHO)

    def hang_up(self) -> None:
        """Take the terminal away."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def end(self) -> int:
        """Read until the command ends; gives its exit code."""
        while self._handle >= 0 and self._read():
            pass
        return self._program.wait()

    def _read(self) -> bool:
        """Take in what there is; False once there will be nothing more."""
        ready = select.poll()
        ready.register(self._handle, select.POLLIN)
        if not ready.poll(1000 * PATIENCE_S):
            return False
        try:
            data = os.read(self._handle, 65536)
        except OSError as reason:
            if reason.errno != errno.EIO:
                raise
            return False
        self.seen += data.decode(errors="replace")
        return bool(data)


def plain(text: str) -> str:
    """Take away colours, and give what is drawn over a line a line of its own."""
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    return drawn.replace("\r\n", "\n").replace("\r", "\n")


_SAME = (
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "U" * 36),
    (r"sha256:[0-9a-f]{64}", "sha256:D"),
    (r"(?<![\w-])[0-9a-f]{8}(?![\w-])", "U" * 8),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.\d]*(\+00:00| UTC)?", "TIME"),
    (r"(?m)^ *\d+:\d\d  ", "  0:00  "),
    (r"took \d\S*", "took N"),
    (r"\b\d\.\ds\b", "0.0s"),
)
#: Identifiers of the example that stay as they are.
_KEPT = re.compile(r"6a1f\d{4}-|7b2e\d{4}-")


def normalised(text: str) -> str:
    """Make equal what differs from run to run; columns stay where they are."""
    for pattern, instead in _SAME:
        text = re.sub(pattern, lambda m, i=instead: m[0] if _KEPT.match(m[0]) else i, text)
    return text


def check_golden(name: str, text: str) -> None:
    """Compare with tests/cases/cli/NAME.txt; with ACTIONPLAN_REWRITE=1, write it instead."""
    path = ROOT / "tests" / "cases" / "cli" / f"{name}.txt"
    found = normalised(text)
    if os.environ.get("ACTIONPLAN_REWRITE") == "1":
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8"), f"see {path}"
