# SPDX-License-Identifier: Apache-2.0
"""A browser for tests, Chromium without a window; and axe-core, which finds what excludes."""

from __future__ import annotations

import base64
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from programs import find
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
#: Set to a folder, the pictures of the pages are written there.
PICTURES = "ACTIONPLAN_SCREENSHOTS"
#: The longest page of which a picture is taken, in pixels.
_HIGHEST = 4000


@contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    """Start a browser; end it after the block."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(find("chromium"))
    for option in (*OPTIONS, "--hide-scrollbars"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(find("chromedriver"))))
    try:
        driver.set_script_timeout(120)
        yield driver
    finally:
        driver.quit()


def look(driver: webdriver.Chrome, theme: str, width: int, height: int = 1000) -> None:
    """Set what a page is shown on: a light or a dark screen of a width."""
    features = [{"name": "prefers-color-scheme", "value": theme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def picture(
    driver: webdriver.Chrome, name: str, *, highest: int = _HIGHEST, of: str = "html"
) -> None:
    """Write a picture of the page, or of an element of it, if somebody asked for pictures."""
    folder = os.environ.get(PICTURES)
    if not folder:
        return
    script = """
      const {x, y, width, height} = document.querySelector(arguments[0]).getBoundingClientRect();
      return {x: x + scrollX, y: y + scrollY, width, height};
    """
    clip: Any = driver.execute_script(script, of)
    clip["height"] = min(clip["height"], highest)
    given = {"format": "png", "captureBeyondViewport": True, "clip": {**clip, "scale": 1}}
    taken = driver.execute_cdp_cmd("Page.captureScreenshot", given)
    Path(folder).mkdir(parents=True, exist_ok=True)
    (Path(folder) / f"{name}.png").write_bytes(base64.b64decode(taken["data"]))


def axe_script() -> str:
    """Return axe-core, which a package brings; without it the test is skipped, or fails under CI.

    The package is installed without what it needs to run browsers of its own.
    """
    package = importlib.util.find_spec("axe_playwright_python")
    if package is None or package.origin is None:
        say = pytest.fail if os.environ.get("CI") else pytest.skip
        say("not installed: axe-core (pip install --no-deps axe-playwright-python)")
    return Path(package.origin).with_name("axe.min.js").read_text(encoding="utf-8")


def violations(driver: webdriver.Chrome) -> list[str]:
    """Return what axe-core finds on the page, each with the first element that it is about."""
    driver.execute_script(axe_script())
    found: Any = driver.execute_async_script(
        "const done = arguments[0]; axe.run().then((result) => done(result.violations));"
    )
    return [f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]}" for one in found]


def complaints(driver: webdriver.Chrome) -> list[str]:
    """Return what the browser complains of, such as what the policy of the page forbids."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
