# SPDX-License-Identifier: Apache-2.0
"""What the action types that work on a node share: they choose the machine, and run commands there.

An action without ``node`` and ``address`` runs on this machine, one with an ``address`` over SSH.
A ``node`` without ``address`` is simulated: the action only waits ``duration_s`` seconds.
"""

from __future__ import annotations

import re
import signal
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from applier.actions import schemas
from applier.actions.parameters import one_line, text, touch
from applier.contracts import ActionPlugin, Ended, Machine, Machines, StopSignal, Verified
from applier.errors import ActionFailed, JobLost
from applier.machines.address import PATTERN, host_of
from applier.machines.open_machines import OpenMachines
from planner.plan.model import Touch
from planner.plan.states import Outcome
from planner.schemas import ranges

#: The parameters that select the machine of an action.
WHERE: Mapping[str, schemas.Schema] = {
    "node": {**schemas.RESOURCE, "description": "uid of the node it is for"},
    "address": {
        **ranges.ARGUMENT,
        "title": "an address, [user@]host[:port]",
        "pattern": PATTERN,
        "description": "where the node is reached over SSH; without it a node is simulated",
        "examples": ["root@10.0.0.3:22"],
    },
    "duration_s": {
        **ranges.SECONDS,
        "default": 0,
        "description": "seconds that it takes on a simulated node",
    },
    **schemas.ANY_RESOURCE,
}
#: The machines of an action whose context has none.
_OWN: Machines = OpenMachines()
#: The maximum length of a command in messages.
SHOWN = 60
#: The maximum length of the last line of output in status messages.
_LAST_LINE = 200
#: The maximum length of a line of output that is compared with expressions.
_LINE = 10_000


def parameters(
    required: Mapping[str, schemas.Schema],
    optional: Mapping[str, schemas.Schema],
    *examples: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the schema of ``input_parameters`` for an action type that works on a node.

    A task that names a ``node`` may lack the ``required`` parameters, because published task
    sets do; the precheck refuses such a task unless it is simulated (``NodeAction.NEEDS``).
    """
    made = schemas.parameters(
        {},
        optional={**required, **optional, **WHERE},
        examples=[*examples, {"node": "3", "duration_s": 0.5}],
    )
    if required:
        made["anyOf"] = [{"required": list(required)}, {"required": ["node"]}]
    return made


def node_of(given: Mapping[str, Any]) -> str | None:
    """Return the name of the node, or None for this machine.

    >>> node_of({"node": "3"}), node_of({"address": "root@10.0.0.3:22"}), node_of({})
    ('3', '10.0.0.3', None)
    """
    return text(given, "node") or host_of(given.get("address"))


def described(what: str, given: Mapping[str, Any]) -> str:
    """Return a description with the node added.

    >>> described("reboot", {"node": "3"})
    'reboot on node 3'
    """
    node = node_of(given)
    return f"{what} on node {one_line(node, 40)}" if node else what


class NodeAction(ActionPlugin):
    """Works on a node, or on this machine; no two plans work on one node at once."""

    #: Parameters that it cannot do without, unless the node is simulated.
    NEEDS: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:
        return touch("node", node_of(parameters))

    @classmethod
    def works_outside(cls, parameters: Mapping[str, Any]) -> bool:
        return not cls.simulated(parameters)

    @classmethod
    def simulated(cls, parameters: Mapping[str, Any]) -> bool:
        """Return whether an action is simulated: its parameters name a node and no address."""
        return text(parameters, "node") is not None and text(parameters, "address") is None

    @classmethod
    def runs_on(cls, parameters: Mapping[str, Any]) -> Sequence[str | None]:
        return () if cls.simulated(parameters) else (text(parameters, "address"),)

    @classmethod
    def estimate(cls, parameters: Mapping[str, Any]) -> float | None:
        seconds = parameters.get("duration_s", 0) if cls.simulated(parameters) else None
        return float(seconds) if ranges.is_duration(seconds) else None

    def precheck(self) -> None:
        lacking = [name for name in self.NEEDS if self.parameters.get(name) is None]
        if lacking and not self.simulated(self.parameters):
            names = " and ".join(map(repr, lacking))
            raise ActionFailed(f"this {self.TYPE} cannot run: it has no {names}")

    def execute(self, stop: StopSignal) -> Outcome:
        """Work on the machine, or simulate it. Raises ActionFailed if ``stop`` is set before."""
        if stop.is_set():
            raise ActionFailed("stopped before it began")
        given = self.parameters
        if not self.simulated(given):
            return self._work(self._machine(given.get("address"), stop), stop)
        node = given["node"]
        task = (self.context.name or self.TYPE).removeprefix(f"{node}/")
        return self._machines().simulate(node, task, given.get("duration_s", 0), stop)

    def verify(self) -> Verified:
        """Look at the machine; return IN_DOUBT if it cannot be reached.

        A simulated task is NOT_DONE: simulating it again does no harm.
        """
        if self.simulated(self.parameters):
            return Verified.NOT_DONE
        try:
            return self._look(self._machine(self.parameters.get("address")))
        except (ActionFailed, OSError):
            return Verified.IN_DOUBT

    @abstractmethod
    def _work(self, machine: Machine, stop: StopSignal) -> Outcome:
        """Do the work on the machine of the node."""

    def _look(self, machine: Machine) -> Verified:  # noqa: ARG002
        """Return whether the work is done, from what the machine shows."""
        return Verified.IN_DOUBT

    def _machines(self) -> Machines:
        return self.context.machines or _OWN

    def _machine(self, address: str | None, stop: StopSignal | None = None) -> Machine:
        """Return the machine at an address; None is this machine."""
        return self._machines().machine(address, stop or threading.Event())


class NodeCommand(NodeAction):
    """Runs a command whose effect is known only to the attempt that saw it end."""

    _ended: Ended | None = None

    def verify(self) -> Verified:
        is_known = self._ended is not None or self.simulated(self.parameters)
        return Verified.NOT_DONE if is_known else Verified.IN_DOUBT


def run(
    machine: Machine,
    program: Sequence[str],
    name: str,
    *,
    output: Callable[[str], None],
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    timeout_s: float | None = None,
) -> Ended:
    """Run a program to its end.

    Raises ActionFailed, with ``name``, if it cannot be started, and JobLost if it could not be
    ended at a stop or the time-out.
    """
    try:
        ended = machine.run(program, output=output, env=env, cwd=cwd, timeout_s=timeout_s)
    except ConnectionError:
        raise
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        raise ActionFailed(f"{name}: cannot be started: {error.strerror}{where}") from error
    except ValueError as error:
        raise ActionFailed(f"{name}: cannot be started: {error}") from error
    if ended.code is None:
        raise JobLost(str(failure(name, ended, timeout_s)), is_over=False)
    return ended


def failure(name: str, ended: Ended, timeout_s: float | None = None) -> ActionFailed:
    """Return the error that describes how a program failed."""
    if ended.why == "timeout":
        text = f"had not ended after {timeout_s or 0:g} s, and was stopped"
    elif ended.why == "stop":
        text = f"stopped after {ended.seconds:.1f} s"
    elif ended.code is not None and ended.code < 0:
        text = f"ended by signal {-ended.code} ({signal.strsignal(-ended.code)})"
    else:
        text = f"exit code {ended.code}"
    if ended.code is None:
        text += "; it could not be ended and goes on"
    last = one_line(ended.last_line, _LAST_LINE)
    return ActionFailed(f"{name}: {text}: {last}" if last else f"{name}: {text}")


class LineMatcher:
    r"""Passes output on, and records which expressions match a whole line of it.

    >>> lines = LineMatcher({"ok": re.compile("no changes?")}, lambda text: None)
    >>> for piece in ("one\nno ch", "ange\ntwo"): lines(piece)
    >>> lines.close(), lines.found
    (None, {'ok'})
    """

    def __init__(
        self, patterns: Mapping[str, re.Pattern[str]], output: Callable[[str], None]
    ) -> None:
        self._patterns, self._output = patterns, output
        self._line = ""
        #: Keys of the expressions that matched.
        self.found: set[str] = set()

    def __call__(self, text: str) -> None:
        """Process a piece of output; a line may come in several pieces."""
        self._output(text)
        *whole, last = text.split("\n")
        for part in whole:
            self._compare(self._line + part[: _LINE + 1])
            self._line = ""
        self._line = (self._line + last[: _LINE + 1])[: _LINE + 1]

    def close(self) -> None:
        """Compare the last line, if it has no line feed."""
        if self._line:
            self._compare(self._line)

    def _compare(self, line: str) -> None:
        if len(line) <= _LINE:
            line = line.removesuffix("\r")
            self.found.update(k for k, p in self._patterns.items() if p.fullmatch(line))
