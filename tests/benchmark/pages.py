# SPDX-License-Identifier: Apache-2.0
"""How long a page of 1,000 actions takes in a browser, and on the server.

Run it: ``python tests/benchmark/pages.py``. It prints medians of some loads of the report from a
file and of the live page: the time from the start of the navigation until the second frame after
the page was loaded, by the browser's own clock, and the processor time of the page in the browser's
main thread (parsing, style, layout, scripts), which hardly depends on what else the machine does.
The first request makes the page; the others get it ready-made.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

sys.path += [str(Path(__file__).parents[1] / "functional"), str(Path(__file__).parents[1])]

from api_client import api_process, configured
from browsers import chromium
from command_line import CommandLine
from selenium.webdriver import Chrome

LOADS, ACTIONS = 7, 1000
#: The page is drawn when a frame after its first one begins.
DRAWN = """
const done = arguments[0];
const frame = () => requestAnimationFrame(() => requestAnimationFrame(() => {
  done(performance.now());
}));
if (document.readyState === "complete") frame(); else addEventListener("load", frame);
"""


def loads(driver: Chrome, address: str) -> list[tuple[float, float]]:
    """Return for each load when the page was drawn, and its processor time, in seconds."""
    found = []
    driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    for _ in range(LOADS):
        driver.get("about:blank")
        before = busy_s(driver)
        driver.get(address)
        drawn_ms = driver.execute_async_script(DRAWN)
        found.append((drawn_ms / 1000, busy_s(driver) - before))
    return found


def busy_s(driver: Chrome) -> float:
    """Return the processor time of the main thread of the page's process so far."""
    metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return float(next(m["value"] for m in metrics if m["name"] == "TaskDuration"))


def tell(name: str, found: list[tuple[float, float]]) -> None:
    """Print the medians."""
    drawn = statistics.median(one for one, _ in found)
    busy = statistics.median(one for _, one in found)
    print(f"{name:<24} drawn after {drawn:5.2f} s, processor time {busy:5.2f} s")


def main() -> None:
    """Plan 1,000 actions, and load their pages."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        line = CommandLine(folder, folder / "cache")
        configured(line, port=0)
        actions = [
            {
                "name": f"compute-{i // 10}/task-{i % 10}",
                "action_type": "nop",
                "touches": [f"node:compute-{i // 10}"],
            }
            for i in range(ACTIONS)
        ]
        line.document("many.yaml", *actions, name="many")
        line.good("create", "many.yaml")
        line.good("report", "last", "-o", "report.html")
        size = (folder / "report.html").stat().st_size
        print(f"report of {ACTIONS} actions: {size / 1000:.0f} kB")
        with chromium() as driver:
            tell("report, from a file", loads(driver, f"file://{folder}/report.html"))
        with chromium() as driver, api_process(line) as api:
            driver.get(f"{api.url}/plans/last")
            address = driver.current_url
            tell("live page, made before", loads(driver, address))


if __name__ == "__main__":
    main()
