# SPDX-License-Identifier: Apache-2.0
"""The file of a simulated cloud, which any number of threads and processes may use at once.

Readers need no lock, because the file is always replaced as a whole. Writers hold a lock on a
second file from reading to replacing. An ongoing operation is in the file together with its
process, and is ignored once that process has ended.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from applier import whole_files
from applier.clouds import simulated_document
from applier.clouds.simulated_document import SCHEMA, World
from applier.errors import ConfigurationError


class WorldFile:
    """One cloud on disk; a missing file is made from the packaged small cloud.

    Methods raise ConfigurationError if the file cannot be read or written, and, except
    :meth:`replace`, if it is damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._checked = False

    def read(self) -> World:
        """Return a copy of the cloud as it is now."""
        text = self._text()
        if text is None:
            with self.changing() as world:
                return world
        return self._world(text)

    @contextmanager
    def changing(self) -> Iterator[World]:
        """Yield the cloud, locked against other writers; write it unless the block raises.

        Waits until the lock is free.
        """
        with self._locked():
            text = self._text()
            world = simulated_document.read() if text is None else self._world(text)
            yield world
            self._write(world)

    def replace(self, world: World) -> None:
        """Replace the file, even a damaged one, by another cloud."""
        with self._locked():
            self._write(world)

    def _text(self) -> str | None:
        try:
            if self.path.is_char_device() or self.path.is_fifo():
                # It may have no end.
                text = f"the simulated cloud in {self.path}: it is no regular file"
                raise ConfigurationError(text)
            return self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError as error:
            raise self._damaged("it is not text") from error
        except OSError as error:
            raise self._out_of_reach(error) from error

    def _world(self, text: str) -> World:
        try:
            world = json.loads(text)
        except ValueError as error:
            raise self._damaged(str(error)) from error
        # One full check is enough: later versions are written by this class, from a checked one.
        if not self._checked:
            wrong = simulated_document.mistakes(world)
            if wrong:
                raise self._damaged(str(wrong[0]))
            self._checked = True
        if not isinstance(world, dict) or not world.keys() >= _TABLES:
            raise self._damaged("tables are missing")
        world["ongoing"] = [one for one in world["ongoing"] if born(one["pid"]) == one["born"]]
        return world

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise self._out_of_reach(error) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            # Closing alone keeps the lock while a forked child has the descriptor.
            fcntl.flock(lock, fcntl.LOCK_UN)
            os.close(lock)

    def _write(self, world: World) -> None:
        try:
            whole_files.write(self.path, to_text(world).encode(), 0o600)
        except OSError as error:
            raise self._out_of_reach(error) from error

    def _damaged(self, why: str) -> ConfigurationError:
        return ConfigurationError(
            f"the simulated cloud in {self.path} is damaged ({why}); "
            "`actionplan simulator reset` makes a fresh one"
        )

    def _out_of_reach(self, error: OSError) -> ConfigurationError:
        return ConfigurationError(f"the simulated cloud in {self.path}: {error.strerror}")


_TABLES = frozenset(SCHEMA["properties"])


def to_text(world: Mapping[str, Any]) -> str:
    """Return a cloud as JSON with one entry on each line, so that people can read the file."""
    parts = []
    for key, value in world.items():
        if isinstance(value, dict) and value:
            lines = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items()]
            text = "{\n" + ",\n".join(lines) + "\n }"
        elif isinstance(value, list) and value:
            text = "[\n" + ",\n".join(f"  {json.dumps(v)}" for v in value) + "\n ]"
        else:
            text = json.dumps(value)
        parts.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def born(pid: int) -> int | None:
    """Return the start time of a process in ticks since boot, or None if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name, in parentheses, may contain any character; state Z or X is a process that ended.
    fields = stat[stat.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else int(fields[19])
