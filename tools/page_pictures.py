# SPDX-License-Identifier: Apache-2.0
"""Takes pictures of the pages of plans: ``.venv/bin/python tools/page_pictures.py FOLDER``.

It makes plans in a record of its own, in each state that people look at, and opens them in Chromium
on light and dark screens of three widths. Those of the documentation are in doc/_static/pages.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "functional")]

from api_client import api_process, configured  # noqa: E402
from browsers import PICTURES, chromium, look, picture  # noqa: E402
from command_line import EXAMPLE, CommandLine, wait_until  # noqa: E402

from applier.storage.sql_store import SqlStore  # noqa: E402
from planner.plan.model import ActionPlan  # noqa: E402
from planner.plan.states import ActionState  # noqa: E402

WIDTHS, THEMES = (400, 1000, 1600), ("light", "dark")
#: The height of a picture in pixels: what a person sees before scrolling.
HIGHEST = 700
#: Seconds for which a command of a host of the running plan lasts.
LASTS_S = 600


def main(folder: str) -> None:
    """Write the pictures of all screens to a folder."""
    os.environ[PICTURES] = folder
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        site = CommandLine(Path(scratch), Path(scratch) / "cache")
        configured(site, requests_per_second=10**6)
        made = stack.enter_context(plans(site))
        api = stack.enter_context(api_process(site))
        browser = stack.enter_context(chromium())
        screens = {
            **{name: (f"{api.url}{path}", "html") for name, path in made.items()},
            "timeline": (f"{api.url}{made['thousand']}", "#timeline"),
            "graph": (f"{api.url}{made['failed']}", "#graph"),
            "report": (f"file://{site.folder}/report.html", "html"),
        }
        for (name, (address, of)), theme, width in product(screens.items(), THEMES, WIDTHS):
            look(browser, theme, width)
            browser.get(address)
            if name != "report":
                wait_until(lambda: browser.find_element("id", "connection").text == "live")
            picture(browser, f"{name}-{theme}-{width}", highest=HIGHEST, of=of)


@contextmanager
def plans(site: CommandLine) -> Iterator[dict[str, str]]:
    """Make a plan for each screen, and a report; yield the paths of the pages by their names."""
    for number in range(12):
        fails = (2,) if number % 9 == 2 else ()
        document(site, f"patch-rack-{number:02}", 3 + number % 5, fails=fails, nops=True)
        site("apply" if number % 4 else "create", "plan.yaml", *(["--yes"] * bool(number % 4)))
    made = {
        "thousand": lambda: applied(site, "patch-the-fleet", 250, fails=(3, 17), nops=True),
        "doubt": lambda: in_doubt(site),
        "failed": lambda: applied(site, "patch-rack-r1", 6, fails=(3,)),
        "recommended": lambda: site.good("create", str(EXAMPLE), "--set", "approvals=1"),
    }
    paths = {"list": "/plans"}
    for name, make in made.items():
        make()
        paths[name] = f"/plans/{newest(site).uuid}"
    site.good("report", "last", "-o", "report.html")
    document(site, "patch-rack-r2", 6, lasts=(3, 4))
    with site.start("apply", "plan.yaml", "--yes", "--set", "max_workers=2") as run:
        wait_until(lambda: runs(site, "r2-node-03/reboot"))
        try:
            yield {**paths, "running": f"/plans/{newest(site).uuid}"}
        finally:
            run.kill()
            end_commands(site)


def newest(site: CommandLine) -> ActionPlan:
    """Return the plan that was made last."""
    with closing(SqlStore(f"sqlite:///{site.record}")) as store:
        return store.load_plan(store.list_plans(limit=1)[0].uuid)


def runs(site: CommandLine, name: str) -> bool:
    """Return whether an action of this name runs in some plan."""
    actions = (action for plan in site.plans() for action in plan.actions)
    return any(one.name == name and one.state is ActionState.ONGOING for one in actions)


def end_commands(site: CommandLine) -> None:
    """Kill the commands that run."""
    for pid in (site.record.parent / "jobs").glob("*/pid"):
        with suppress(ProcessLookupError):
            os.killpg(int(pid.read_text().split()[0]), signal.SIGKILL)


def in_doubt(site: CommandLine) -> None:
    """Make a plan whose applier and whose command were killed."""
    document(site, "patch-rack-r3", 4, lasts=(2,))
    with site.start("apply", "plan.yaml", "--yes") as run:
        wait_until(lambda: runs(site, "r3-node-02/reboot"))
        run.kill()
        run.wait()
    end_commands(site)
    site("apply", newest(site).uuid, "--yes")


def applied(
    site: CommandLine, name: str, number: int, options: Sequence[str] = (), **more: Any
) -> None:
    """Make a plan and run it."""
    document(site, name, number, **more)
    site("apply", "plan.yaml", "--yes", *options)


def document(
    site: CommandLine,
    name: str,
    number: int,
    *,
    fails: Collection[int] = (),
    lasts: Collection[int] = (),
    nops: bool = False,
) -> None:
    """Write a document with four actions for each of so many hosts.

    Hosts are emptied, patched, started again and filled. Those in ``fails`` do not come back, those
    in ``lasts`` take long.
    """
    actions = []
    for n in range(1, number + 1):
        host, before = f"{name.rpartition('-')[2]}-node-{n:02}", None
        for step in ("drain", "patch", "reboot", "enable"):
            said = f"echo {step} of {host}; sleep 0.{n % 4 + 1}"
            is_there = step == "reboot" and (n in fails or n in lasts)
            if is_there:
                ends = "echo no answer from the BMC within 30 s >&2; exit 3"
                said += f"; {ends if n in fails else f'sleep {LASTS_S}'}"
            shell = {"action_type": "shell", "input_parameters": {"argv": ["sh", "-c", said]}}
            actions.append(
                {
                    "name": f"{host}/{step}",
                    "touches": [f"node:{host}"],
                    **({"action_type": "nop"} if nops and not is_there else shell),
                    **({"needs": [before]} if before else {}),
                }
            )
            before = f"{host}/{step}"
    site.document("plan.yaml", *actions, name=name, planner="weight")


if __name__ == "__main__":
    main(*sys.argv[1:])
