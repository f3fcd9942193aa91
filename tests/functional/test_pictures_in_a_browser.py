# SPDX-License-Identifier: Apache-2.0
"""Pictures in a real browser, on reports and live pages: zoom, moving, the way to an action."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from api_client import api_process, configured
from browsers import complaints, look
from command_line import CommandLine, wait_until
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

pytestmark = pytest.mark.needs("chromium", "chromedriver")

FAILS = {"action_type": "shell", "input_parameters": {"argv": ["sh", "-c", "echo no room; exit 3"]}}
HOSTS = 24


def with_document(folder: Path) -> CommandLine:
    """Return a command line with a document of so many hosts, of which the third one fails."""
    site = configured(CommandLine(folder, folder / "cache"), port=0, requests_per_second=10**6)
    actions = [
        {
            "name": f"compute-{host:02}/{task}",
            "touches": [f"node:compute-{host:02}"],
            **(FAILS if (host, task) == (3, "reboot") else {"action_type": "nop"}),
        }
        for host in range(1, HOSTS + 1)
        for task in ("drain", "reboot", "enable")
    ]
    site.document("fleet.yaml", *actions, name="fleet")
    return site


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """Return a command line with a plan that has ended."""
    site = with_document(tmp_path_factory.mktemp("ended"))
    assert site("apply", "fleet.yaml", "--yes").code == 3
    return site


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """Return a command line with a plan that has not run: its times are those expected."""
    site = with_document(tmp_path_factory.mktemp("planned"))
    site.good("create", "fleet.yaml")
    return site


@contextmanager
def opened(kind: str, site: CommandLine, browser: Any) -> Iterator[Any]:
    """Open the report, or the live page, of a plan; yield the browser."""
    look(browser, "light", 1000)
    with ExitStack() as stack:
        if kind == "report":
            site.good("report", "last", "-o", "report.html")
            browser.get(f"file://{site.folder}/report.html")
        else:
            api = stack.enter_context(api_process(site))
            browser.get(f"{api.url}/plans/{site.plan().uuid}")
            wait_until(lambda: browser.find_element("id", "connection").text == "live")
        yield browser
        assert complaints(browser) == []


@pytest.fixture(params=["report", "page"])
def shown(request: pytest.FixtureRequest, ended: CommandLine, browser: Any) -> Iterator[Any]:
    with opened(request.param, ended, browser):
        yield browser


@pytest.fixture(params=["report", "page"])
def expected(request: pytest.FixtureRequest, planned: CommandLine, browser: Any) -> Iterator[Any]:
    with opened(request.param, planned, browser):
        yield browser


def found(browser: Any, selector: str) -> Any:
    """Return the first element that matches, scrolled into the middle of the screen."""
    one = browser.find_element("css selector", selector)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', inline: 'center'})", one)
    return one


def width(browser: Any, picture: str) -> float:
    """Return the width of a picture on the screen."""
    script = "return document.querySelector(arguments[0]).getBoundingClientRect().width"
    return float(browser.execute_script(script, f"#{picture} svg.drawn"))


def is_seen(browser: Any, row: Any) -> bool:
    """Return whether a row is on the screen."""
    script = """
      const {top, bottom} = arguments[0].getBoundingClientRect();
      return top >= 0 && bottom <= innerHeight;
    """
    return bool(row.is_displayed() and browser.execute_script(script, row))


def is_opened(browser: Any, row: Any) -> bool:
    """Return whether a row is on the screen, with its attempts and their output."""
    return is_seen(browser, row) and "no room" in row.find_element("tag name", "pre").text


def test_pictures_are_enlarged_by_buttons_and_by_the_wheel_and_put_back(shown):
    for picture in ("timeline", "graph"):
        before = width(shown, picture)
        buttons = {
            b.text: b for b in shown.find_elements("css selector", f"#{picture} .zoom button")
        }
        found(shown, f"#{picture} .zoom")
        buttons["+"].click()
        assert width(shown, picture) == pytest.approx(1.25 * before, abs=1)
        buttons["−"].send_keys(Keys.ENTER)
        assert width(shown, picture) == pytest.approx(before, abs=1)
        place = found(shown, f"#{picture} .wide")
        for by, factor in ((-100, 1.25), (100, 1.0)):
            wheel = {"deltaY": by, "ctrlKey": True, "bubbles": True, "cancelable": True}
            sent = "arguments[0].dispatchEvent(new WheelEvent('wheel', arguments[1]))"
            shown.execute_script(sent, place.find_element("tag name", "svg"), wheel)
            assert width(shown, picture) == pytest.approx(factor * before, abs=1)
        buttons["+"].click()
        buttons["Reset"].click()
        assert width(shown, picture) == pytest.approx(before, abs=1)


def test_dragging_moves_a_picture_and_opens_no_action(shown):
    look(shown, "light", 400)
    opened = "return [...document.querySelectorAll('#rows details[open]')].length"
    for picture in ("timeline", "graph"):
        place, shape = found(shown, f"#{picture} .wide"), f"#{picture} [data-r].FAILED"
        for _ in range(3):
            found(shown, f"#{picture} [data-zoom='1.25']").click()
        hand = ActionChains(shown).move_to_element(found(shown, shape))
        before = place.get_property("scrollLeft")
        by = 60 if before >= 60 else -60
        hand.click_and_hold().move_by_offset(by, 0).release().perform()
        assert place.get_property("scrollLeft") == before - by
        assert shown.execute_script(opened) == 0
        # A hand that trembles clicks.
        hand = ActionChains(shown).move_to_element(found(shown, shape))
        hand.click_and_hold().move_by_offset(2, 2).release().perform()
        wait_until(lambda: shown.execute_script(opened) == 1)
        shown.execute_script("document.querySelector('#rows details[open]').open = false")


def test_a_click_on_an_action_opens_its_row_even_if_the_filter_hides_it(shown):
    name = "compute-03/reboot"
    row = shown.find_element("xpath", f"//*[@id='rows']//tbody/tr[th[.='{name}']]")
    shapes = ("#timeline [data-r].FAILED", "#graph [data-r].FAILED", "#left a")
    for shape in shapes:
        field = shown.find_element("name", "text")
        field.send_keys("compute-09")
        assert not row.is_displayed()
        ActionChains(shown).move_to_element(found(shown, shape)).click().perform()
        wait_until(lambda: is_opened(shown, row))
        assert field.get_attribute("value") == ""
        assert shown.find_element("id", "shown").text == f"{3 * HOSTS} of {3 * HOSTS} actions"
        shown.execute_script("arguments[0].open = false", row.find_element("tag name", "details"))


def test_folded_lanes_are_opened_by_a_click_and_by_keyboard(expected):
    assert " alike (" in found(expected, "#timeline svg").get_attribute("textContent")
    lanes = expected.find_element("css selector", "#timeline details")
    names = "return [...arguments[0].querySelectorAll('.lane > title')].map(t => t.textContent)"
    several = found(expected, "#timeline [data-r].several")
    ActionChains(expected).move_to_element(several).click().perform()
    wait_until(lambda: lanes.get_attribute("open"))
    every = [f"compute-{host:02}" for host in range(1, HOSTS + 1)]
    assert sorted(expected.execute_script(names, lanes)) == every
    number = several.get_attribute("data-r")
    first = lanes.find_element("css selector", f"[data-r='{number}']")
    wait_until(lambda: is_seen(expected, first))
    assert not expected.find_elements("css selector", "#rows details[open]")
    summary = lanes.find_element("tag name", "summary")
    summary.send_keys(Keys.ENTER)
    wait_until(lambda: not lanes.get_attribute("open"))
    summary.send_keys(Keys.SPACE)
    wait_until(lambda: lanes.get_attribute("open"))
