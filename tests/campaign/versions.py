# SPDX-License-Identifier: Apache-2.0
"""Other versions of the product beside this one: an earlier commit, and what a release may bring.

Run as a program, with ``PYTHONPATH`` naming the folder of a version, it becomes a program of that
version: ``versions.py PROGRAM WORD...``.
"""

from __future__ import annotations

import configparser
import io
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import entry_points
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[2]
#: An earlier version is one of so many commits.
COMMITS = 60
#: An upgrade to the next version, which only tests have.
NEXT = (
    '\nREVISIONS += ("0002",)\n'
    "UPGRADES: Mapping[str, str] = {\n"
    '    "0002": "ALTER TABLE actionplan_plan ADD COLUMN note VARCHAR(255);'
    ' UPDATE actionplan_plan SET note = name"\n'
    "}\n"
)


def earlier(folder: Path, chance: Random) -> tuple[str, Path] | None:
    """Unpack an earlier commit; return its name and folder, or None where there is no history."""
    found = _git("rev-list", f"--max-count={COMMITS}", "HEAD~1").decode().split()
    if not found:
        return None
    commit = chance.choice(found)
    packed = _git("archive", commit, "applier", "planner", "setup.cfg")
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return commit[:12], _installed(folder)


def later(folder: Path) -> Path:
    """Make a version that is this one with one more upgrade of the tables."""
    for name in ("applier", "planner"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "setup.cfg", folder)
    module = folder / "applier" / "storage" / "schema_version.py"
    text = module.read_text(encoding="utf-8")
    changed = text.replace("\nUPGRADES: Mapping[str, str] = {}\n", NEXT, 1)
    assert changed != text
    module.write_text(changed, encoding="utf-8")
    return _installed(folder)


def command(folder: Path) -> tuple[str, ...]:
    """Return the words before those of a program, which make it one of the version in a folder."""
    env = shutil.which("env") or "env"
    return (env, f"PYTHONPATH={folder}", sys.executable, "-P", str(Path(__file__).resolve()))


def _installed(folder: Path) -> Path:
    """Give a version its entry points, as an installation does."""
    setup = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    setup.optionxform = str  # type: ignore[method-assign,assignment]
    setup.read(folder / "setup.cfg", encoding="utf-8")
    metadata = folder / "actionplan-0.dist-info"
    metadata.mkdir()
    groups = [f"[{group}]{text}\n" for group, text in setup.items("options.entry_points")]
    (metadata / "entry_points.txt").write_text("\n".join(groups), encoding="utf-8")
    (metadata / "METADATA").write_text("Name: actionplan\nVersion: 0\n", encoding="utf-8")
    return folder


def _git(*words: str) -> bytes:
    """Return what git prints; nothing where this is no repository."""
    command = ["git", "-C", ROOT, *words]
    return subprocess.run(command, capture_output=True, check=False).stdout


def main(program: str, *words: str) -> None:
    """Run a program of the version that PYTHONPATH names, in this process."""
    sys.argv = [program, *words]
    (script,) = entry_points(group="console_scripts", name=program)
    sys.exit(script.load()())


if __name__ == "__main__":
    main(*sys.argv[1:])
