# SPDX-License-Identifier: Apache-2.0
"""The programs that tests start: what happens where one is missing, and how it is installed.

A test names its programs: ``@pytest.mark.needs("sshd")``. Where one is missing the test is skipped,
and fails where ``CI`` is set. ``.ci/run`` runs this file first, to install what is missing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

import pytest

#: The package of Debian and Ubuntu that has each program.
PACKAGES = {
    "chromedriver": "chromium-driver",
    "chromium": "chromium",
    "curl": "curl",
    "dot": "graphviz",
    "epmd": "erlang-base",
    "faketime": "faketime",
    "groff": "groff",
    "java": "default-jre-headless",
    "mount": "mount",
    "nginx": "nginx-light",
    "openssl": "openssl",
    "promtool": "prometheus",
    "rabbitmq-server": "rabbitmq-server",
    "redis-server": "redis-server",
    "rsync": "rsync",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "sshd": "openssh-server",
    "zsh": "zsh",
}


def find(program: str) -> str | None:
    """Return the path of a program; some programs of administrators are not in everybody's PATH."""
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def require(*programs: str) -> None:
    """Skip the test that runs if a program is missing; fail it where ``CI`` is set."""
    if missing := [f"{name} ({PACKAGES[name]})" for name in programs if not find(name)]:
        say = pytest.fail if os.environ.get("CI") else pytest.skip
        say(f"not installed: {', '.join(missing)}")


def install() -> str | None:
    """Install the packages of all missing programs; return a sentence if that is not possible."""
    packages = sorted({PACKAGES[name] for name in PACKAGES if not find(name)})
    if not packages:
        return None
    apt, sudo = find("apt-get"), find("sudo")
    by_hand = f"install by hand: {' '.join(packages)}"
    if not apt:
        return f"There is no apt-get here; {by_hand}"
    environment = "DEBIAN_FRONTEND=noninteractive"
    command = ["env", environment, apt, "-qq", "-o", "Acquire::Retries=5"]
    if os.geteuid() != 0:
        if not sudo or not _succeeds([sudo, "-n", "true"]):
            return f"{apt} needs root, and sudo asks for a password; {by_hand}"
        command = [sudo, "-n", *command]
    print(f"Installing {' '.join(packages)}", flush=True)
    # The lists of packages may be old or missing; where they cannot be had, those here may do.
    _succeeds([*command, "update"])
    if not _succeeds([*command, "install", "--yes", "--no-install-recommends", *packages]):
        return f"{apt} installed not all of them; {by_hand}"
    return None


def _succeeds(command: Sequence[str]) -> bool:
    """Run a command, showing its output only if it fails."""
    ended = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ended.returncode:
        print(ended.stdout, end="", flush=True)
    return ended.returncode == 0


if __name__ == "__main__":
    sys.exit(install())
