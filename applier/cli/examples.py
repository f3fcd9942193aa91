# SPDX-License-Identifier: Apache-2.0
"""Verbs about the files that come with the product: examples, sample configuration, service."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from glob import glob
from pathlib import Path
from typing import Any

from applier.cli.arguments import argument
from applier.cli.verb import ListVerb, Verb, refused
from applier.errors import ConfigurationError
from planner.errors import InvalidInput, Mistake, accepted

#: The folder of the files in a checkout. The names of files begin with it, as in the documentation.
_TOP = "etc"
#: The file by which the folder is recognised.
_MARK = "actionplan-applier.service"
#: The example that is recommended to begin with.
_FIRST = "etc/examples/host-maintenance.yaml"


class ExampleList(ListVerb):
    """List the examples, the sample configuration and the systemd units"""

    EXAMPLES = ("example list",)

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:  # noqa: ARG002
        found = files()
        return ("name", "what it is"), ((name, _about(found[name])) for name in found)


class ExampleShow(Verb):
    """Print one of the files that 'example list' lists"""

    EXAMPLES = ("example show host-maintenance.yaml", "example show watcher.conf.sample")
    ARGUMENTS = (argument("NAME", "example list shows them", dest="example"),)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        chosen = _chosen(parsed_args.example)
        if len(chosen) > 1:
            text = f"one file is shown at a time; choose from {', '.join(chosen)}"
            raise InvalidInput([Mistake(text, place=shlex.quote(parsed_args.example))])
        (path,) = chosen.values()
        self.app.stdout.write(path.read_text(encoding="utf-8"))
        return 0


class ExampleCopy(Verb):
    """Copy examples to a folder, to change and run them

    Copies all of them, or only the file or folder that NAME matches. In DIR, the copies have the
    same paths as in the documentation. No file is overwritten.
    """

    EXAMPLES = (
        "example copy",
        "example copy host-maintenance.yaml",
        "example copy events /tmp/try",
    )
    ARGUMENTS = (
        argument("NAME", "what to copy (default: all)", dest="example", nargs="?", default=_TOP),
        argument(
            "DIR",
            "where to put it; made if it is missing (default: the current folder)",
            dest="folder",
            nargs="?",
            default=Path(),
            type=Path,
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        chosen, folder = _chosen(parsed_args.example), parsed_args.folder
        existing = [str(folder / n) for n in chosen if os.path.lexists(folder / n)]
        if existing:
            raise ConfigurationError(f"nothing was copied, these exist: {', '.join(existing)}")
        for name, path in chosen.items():
            _copy(path, folder / name)
            self.say(str(folder / name))
        documents = sorted((n for n in chosen if n.endswith(".yaml")), key=_FIRST.__ne__)
        if documents:
            enter = "" if folder == Path() else f"cd {shlex.quote(str(folder))} && "
            self.note(f"Next: {enter}actionplan create {documents[0]}")
        return 0


def files() -> Mapping[str, Path]:
    """Return the path of every file that comes with the product by its name, sorted by name.

    Raises ConfigurationError if the product was installed without the files.
    """
    source = _source()
    found = sorted(
        name
        for pattern in _patterns(source.parent / "setup.cfg")
        for name in glob(pattern, root_dir=source, recursive=True)
        if (source / name).is_file()
    )
    return {f"{_TOP}/{name}": source / name for name in found}


def _patterns(setup: Path) -> Iterator[str]:
    """Yield the patterns of the files to offer: of a checkout, those that are installed with it.

    Whatever else lies there was left by runs, builds and editors.
    """
    config = ConfigParser(interpolation=None)
    if not config.read(setup, encoding="utf-8"):
        yield "**/*"
        return
    for folder, patterns in config["options.data_files"].items():
        if folder.startswith("share/actionplan"):
            yield from (text.removeprefix(f"{_TOP}/") for text in patterns.split())


def _source() -> Path:
    """Return ``etc`` of the checkout, or ``share/actionplan`` of the prefix, above this file."""
    for folder in Path(__file__).parents:
        for source in (folder / _TOP, folder / "share" / "actionplan"):
            if (source / _MARK).is_file():
                return source
    raise ConfigurationError(
        "the examples were not installed with this ActionPlan: pip install . in a clone brings them"
    )


def _chosen(name: str) -> Mapping[str, Path]:
    """Return the files that a name matches: a path, the end of a path, or a folder in it."""
    known = files()
    found = {n: p for n, p in known.items() if f"/{name.strip('/')}/" in f"/{n}/"}
    if not found:
        text = f"no such example; {accepted(name, {n.rpartition('/')[2] for n in known})}"
        raise InvalidInput([Mistake(text, place=shlex.quote(name))])
    return found


def _copy(path: Path, target: Path) -> None:
    """Copy a file with its mode; raises ConfigurationError."""
    with refused(f"{target} cannot be written"):
        target.parent.mkdir(parents=True, exist_ok=True)
        with path.open("rb") as source, target.open("xb") as copy:
            shutil.copyfileobj(source, copy)
        shutil.copymode(path, target)


def _about(path: Path) -> str:
    """Return the description at the beginning of a file: a comment, a docstring, or a title."""
    with path.open(encoding="utf-8") as file:
        line = next(
            (x for x in file if not x.startswith(("#!", "# SPDX-", "-- SPDX-"))), ""
        ).rstrip()
    if line.startswith(("# ", "-- ")):
        return re.split(r"[.:]( |$)", line.partition(" ")[2])[0]
    return line.strip('"') if line.startswith('"""') or path.suffix == ".rst" else ""
