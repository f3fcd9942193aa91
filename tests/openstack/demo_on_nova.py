# SPDX-License-Identifier: Apache-2.0
"""``./demo --openstack``: a host of a real Nova is emptied, and what happened is told.

``python demo_on_nova.py FOLDER``. Nova and Placement run in one process on the loopback, with fake
hypervisors; the process ends with this one. All files are in FOLDER, which is replaced.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1] / name) for name in ("watcher", ".")]

import environments
from nova_lab import NovaLab

PROGRAM = Path(sys.executable).with_name("actionplan")
HOSTS = 4
#: The instances on each host at the beginning.
INSTANCES = {"cmp1": 12, "cmp2": 4}
#: 12 instances of 2 GiB fit on a host, so that not all go to the same.
SIZE = {"LAB_RAM": "26624"}
#: The seconds that a live migration takes.
MOVE_S = "2"
CONFIGURATION = """\
[actionplan]
cloud = openstack
connection = sqlite:///{folder}/actionplan.sqlite

[openstack]
cloud = lab

[watcher_workflow_engines.taskflow]
max_workers = 4
"""
END = """
Nova answered {requests} requests while the plan was applied; its log is {log}.
The cloud has been ended. The plan can still be read:
  export OS_CLIENT_CONFIG_FILE={clouds}
  {program} action list last
  {program} graph last -f mermaid
On your own cloud: doc/how-to/openstack.rst
"""


class Ended(Exception):
    """A command ended with an exit code that is not 0."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(code)


class Terminal:
    """Runs ``actionplan`` in front of the reader."""

    def __init__(self, folder: Path, clouds_yaml: Path) -> None:
        self.words = [str(PROGRAM), "--config-file", str(folder / "watcher.conf")]
        self._environment = {**os.environ, "OS_CLIENT_CONFIG_FILE": str(clouds_yaml)}

    def run(self, command: str) -> None:
        """Show a command, with ``|`` between its parts, and run it; raises Ended."""
        print(f"\n$ {command}", flush=True)
        text = None
        parts = [shlex.split(part) for part in command.split("|")]
        # Ctrl-C reaches the command as well, and the command says what comes of it.
        before = signal.signal(signal.SIGINT, lambda *_: None)
        try:
            for part in parts:
                ended = subprocess.run(
                    [*self.words, *part[1:]],
                    env=self._environment,
                    input=text,
                    stdin=subprocess.DEVNULL if text is None else None,
                    stdout=None if part is parts[-1] else subprocess.PIPE,
                    text=True,
                    check=False,
                )
                if ended.returncode:
                    raise Ended(ended.returncode)
                text = ended.stdout
        finally:
            signal.signal(signal.SIGINT, before)


def show(lab: NovaLab, heading: str) -> None:
    """Print which instance is where, as Nova tells it."""
    print(f"\n{heading}")
    there: dict[str, list[str]] = {
        host.name: [] for host in sorted(lab.nova.hypervisors(), key=lambda h: str(h.name))
    }
    for server in lab.nova.servers(all_projects=True):
        there[server.compute_host].append(server.name)
    states = {s.host: s.status for s in lab.nova.services(binary="nova-compute")}
    for host, names in there.items():
        print(f"  {host}  {states[host]:8} {len(names):2}  {' '.join(sorted(names))}".rstrip())


def boot(lab: NovaLab) -> None:
    """Boot the instances."""
    for host, count in INSTANCES.items():
        kind = "web" if host == "cmp1" else "db"
        for i in range(1, count + 1):
            lab.boot(f"{kind}-{i:02}", host, lab_lm_seconds=MOVE_S)


def drain(lab: NovaLab, terminal: Terminal) -> int:
    """Empty the first host; return how many requests Nova answered meanwhile."""
    show(lab, "Nova says which instance is on which host:")
    terminal.run("actionplan drain cmp1 | actionplan create - --set migrate.parallelization=4")
    before = len(lab.requests())
    terminal.run("actionplan apply last --yes")
    requests = len(lab.requests()) - before
    terminal.run("actionplan show last --node cmp1")
    show(lab, "Nova says now:")
    return requests


def prepared(folder: Path) -> None:
    """Make the environment of Nova if there is none, and an empty folder; raises NotMade."""
    if not environments.is_made(environments.NOVA):
        print("Making .venv-nova, with Nova and Placement by pip: about a minute, once", flush=True)
        environments.make(environments.NOVA)
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "nova").mkdir(parents=True)
    (folder / "watcher.conf").write_text(CONFIGURATION.format(folder=folder), encoding="utf-8")


def main(folder: Path) -> int:
    """Run the demo; return an exit code."""
    began = time.monotonic()
    try:
        prepared(folder)
        print(f"Starting a real Nova with {HOSTS} hosts of fake hypervisors", flush=True)
        with NovaLab(folder / "nova", HOSTS, **SIZE) as lab:
            seconds = time.monotonic() - began
            count = sum(INSTANCES.values())
            print(f"It answers after {seconds:.0f} s. Booting {count} instances", flush=True)
            boot(lab)
            terminal = Terminal(folder, lab.clouds_yaml)
            requests = drain(lab, terminal)
    except environments.NotMade as reason:
        print(f"demo: Nova cannot be installed here: {reason}", file=sys.stderr)
        return 1
    except AssertionError as reason:
        print(f"demo: Nova has failed: {reason}", file=sys.stderr)
        return 1
    except Ended as ended:
        print("\nThe cloud has been ended.", file=sys.stderr)
        return ended.code
    except KeyboardInterrupt:
        print("\nInterrupted: the cloud has been ended.", file=sys.stderr)
        return 130
    words = " ".join(shlex.quote(os.path.relpath(w) if "/" in w else w) for w in terminal.words)
    log, clouds = (os.path.relpath(folder / "nova" / f) for f in ("nova.log", "clouds.yaml"))
    print(END.format(requests=requests, log=log, clouds=clouds, program=words), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
