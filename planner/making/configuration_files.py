# SPDX-License-Identifier: Apache-2.0
"""Finds the options that configuration files set, with the line of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from oslo_config import cfg


class SetOption(NamedTuple):
    """An option that is set in a file; ``line`` is its first one, ``value`` the text of all."""

    file: Path
    line: int
    section: str
    option: str
    value: str

    @property
    def place(self) -> str:
        """The place of the option in messages: ``watcher.conf:7: [section] option``."""
        return f"{self.file}:{self.line}: [{self.section}] {self.option}"


def files_of(conf: cfg.ConfigOpts) -> list[Path]:
    """List the configuration files that were read; a later file overrides an earlier one."""
    files, folders = (
        [Path(path) for path in (conf[option] or [] if option in conf else [])]
        for option in ("config_file", "config_dir")
    )
    return files + [file for folder in folders for file in sorted(folder.glob("*.conf"))]


def entries(file: Path) -> Iterator[SetOption]:
    """Yield each option that is set in a file, with its section as oslo.config reads it.

    The lines after an option that begin with a blank or a tab continue its value.
    """
    section, found = "DEFAULT", None
    # oslo.config ends a line at a line feed only; str.splitlines() has other ends as well.
    for number, text in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
        if found and text[:1] in (" ", "\t") and text.strip():
            found = found._replace(value=f"{found.value}\n{text.strip()}")
            continue
        if found:
            yield found
        found = None
        if head := re.match(r"\[(.+)\]\s*$", text):
            # oslo.config reads the names of sections in lower case, except this one.
            section = head[1] if head[1] == "DEFAULT" else head[1].lower()
        elif parts := re.match(r"([^\s#;\[][^=:]*?)\s*[=:]\s*(.*)", text):
            found = SetOption(file, number, section, parts[1], parts[2].strip())
    if found:
        yield found


def place_of(conf: cfg.ConfigOpts, section: str, option: str) -> str:
    """Return where an option is set last, such as ``watcher.conf:7: [section] option``.

    If no file sets it, return only ``[section] option``.
    """
    for file in reversed(files_of(conf)):
        wanted = (section.lower(), option)
        found = [e for e in entries(file) if (e.section.lower(), e.option) == wanted]
        if found:
            return found[-1].place
    return f"[{section}] {option}"
