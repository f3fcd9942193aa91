# SPDX-License-Identifier: Apache-2.0
"""The environments of Python beside ``.venv``: services of OpenStack, and the oldest Ansible.

One more has generators of clients of our API.

They are made when a test first needs them, once, and again when what they hold should change.
``python tests/watcher/environments.py`` makes all of them; ``.ci/run`` does so before ``./check``.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
CONSTRAINTS = Path(__file__).parent / "constraints"
#: What says of the product which packages and entry points belong to it.
DESCRIPTION = (ROOT / "setup.cfg", ROOT / "pyproject.toml")


class NotMade(Exception):
    """An environment could not be made."""


class Environment(NamedTuple):
    """A folder of the checkout, a file of constraints, and what pip installs."""

    folder: Path
    constraints: Path
    requirements: tuple[str, ...]

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.program("python")

    def program(self, name: str) -> Path:
        """Return the path of one of its programs."""
        return self.folder / "bin" / name


WATCHER = Environment(
    ROOT / ".venv-watcher",
    CONSTRAINTS / "watcher.txt",
    (
        "python-watcher==17.0.0",
        "python-watcherclient",
        "python-openstackclient",
        # What oslo.messaging needs for RabbitMQ, and oslo.db for MariaDB and PostgreSQL.
        "amqp",
        "kombu",
        "PyMySQL",
        "psycopg2-binary",
        "--editable",
        str(ROOT),
    ),
)
NOVA = Environment(
    ROOT / ".venv-nova", CONSTRAINTS / "nova.txt", ("nova==34.0.0", "openstack-placement==16.0.0")
)

CINDER = Environment(ROOT / ".venv-cinder", CONSTRAINTS / "cinder.txt", ("cinder==29.0.0",))
IRONIC = Environment(ROOT / ".venv-ironic", CONSTRAINTS / "ironic.txt", ("ironic==39.0.0",))
#: The oldest that is supported; the newest is in ``.venv``.
ANSIBLE = Environment(
    ROOT / ".venv-ansible", CONSTRAINTS / "ansible.txt", ("ansible-core==2.16.19",)
)

#: Generators of clients, and what the clients need that they make.
CLIENTS = Environment(
    ROOT / ".venv-clients",
    CONSTRAINTS / "clients.txt",
    (
        *("openapi-python-client==0.29.1", "openapi-generator-cli==7.26.0"),
        *("openapi-spec-validator", "python-dateutil", "ruff", "urllib3"),
    ),
)


def make(environment: Environment) -> None:
    """Make an environment, or leave it as it is if it holds what it should; raises NotMade.

    Others who want it at the same time wait.
    """
    stamp = _stamp(environment)
    with environment.constraints.open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_made(environment):
            return
        stamp.unlink(missing_ok=True)
        uv = (sys.executable, "-m", "uv", "--quiet")
        _run(*uv, "venv", "--clear", "--python", sys.executable, str(environment.folder))
        chosen = ("--constraint", str(environment.constraints), *environment.requirements)
        _run(*uv, "pip", "install", "--python", str(environment.python), *chosen)
        stamp.write_text(_digest(environment))


def is_made(environment: Environment) -> bool:
    """Return whether an environment holds what it should."""
    stamp = _stamp(environment)
    return stamp.exists() and stamp.read_text() == _digest(environment)


def require(environment: Environment) -> Environment:
    """Make an environment; where it cannot be made, skip the test, or fail it where CI is set."""
    try:
        make(environment)
    except NotMade as error:
        say = pytest.fail if os.environ.get("CI") else pytest.skip
        say(str(error))
    return environment


def require_made(environment: Environment) -> Environment:
    """Bring up to date what was made before; what was not is not made unless CI is set: skip."""
    if not _stamp(environment).exists() and not os.environ.get("CI"):
        path = Path(__file__).relative_to(ROOT)
        pytest.skip(f"there is no {environment.folder.name}; to make all: python {path}")
    return require(environment)


def _stamp(environment: Environment) -> Path:
    """Return the file that is written last, and holds the digest of what was installed."""
    return environment.folder / "complete"


def _digest(environment: Environment) -> str:
    """Return what changes when an environment should hold something else."""
    files = DESCRIPTION if "--editable" in environment.requirements else ()
    contents = [path.read_bytes() for path in (environment.constraints, *files)]
    words = (*environment.requirements, sys.version)
    return hashlib.sha256(b"\0".join([*contents, *map(str.encode, words)])).hexdigest()


def _run(*command: str) -> None:
    """Run a command to its end; raises NotMade with the last lines it printed."""
    ended = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ended.returncode:
        last = "\n".join(ended.stdout.splitlines()[-3:]) or "it printed nothing"
        raise NotMade(f"{' '.join(command[:4])} ... ended with {ended.returncode}: {last}")


def main() -> int:
    """Make all environments, two at a time; return 1 if one could not be made."""
    with ThreadPoolExecutor(2) as pool:
        every = (WATCHER, NOVA, CINDER, IRONIC, CLIENTS, ANSIBLE)
        return int(not all(pool.map(_made, every)))


def _made(environment: Environment) -> bool:
    """Make an environment and print how long it took, or why it cannot be made."""
    began = time.monotonic()
    try:
        make(environment)
    except NotMade as error:
        print(error, flush=True)
        return False
    print(f"{environment.folder.name}: {time.monotonic() - began:.0f} s", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
