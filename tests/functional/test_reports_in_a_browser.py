# SPDX-License-Identifier: Apache-2.0
"""Reports in a real browser: on any screen, by keyboard, without a script, and for everybody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browsers import complaints, look, picture, violations
from command_line import CommandLine

pytestmark = pytest.mark.needs("chromium", "chromedriver")

WIDTHS, THEMES = (400, 1000, 1600), ("light", "dark")


def document(actionplan: CommandLine, number: int) -> str:
    """Write a document of so many actions, of which one fails; return its name."""
    argv = {4: ["sh", "-c", "echo no room; exit 3"]}
    actions = [
        {
            "name": f"compute-{i // 10}/task-{i % 10}",
            "action_type": "shell" if i == 4 else "nop",
            "touches": [f"node:compute-{i // 10}"],
            **({"input_parameters": {"argv": argv[i]}} if i in argv else {}),
        }
        for i in range(number)
    ]
    return actionplan.document(f"{number}.yaml", *actions, name=f"night-of-{number}")


@pytest.fixture(params=[11, 1000])
def report(request: pytest.FixtureRequest, actionplan: CommandLine) -> Path:
    """Return the report of a run."""
    ended = actionplan.inside("apply", document(actionplan, request.param), "--yes")
    assert ended.code == 3, ended
    actionplan.good("report", "last", "-o", f"report-{request.param}.html")
    return actionplan.folder / f"report-{request.param}.html"


def rows(browser: Any) -> list[str]:
    """Return the numbers of the rows that are shown, in their order."""
    script = "return [...document.querySelectorAll('#rows tbody tr:not([hidden])')].map(r => r.id)"
    return list(browser.execute_script(script))


def test_a_report_excludes_nobody_and_fits_on_any_screen(browser, report):
    for theme in THEMES:
        for width in WIDTHS:
            look(browser, theme, width)
            browser.get(f"file://{report}")
            wide = browser.execute_script("return document.documentElement.scrollWidth")
            assert wide <= width
            picture(browser, f"{report.stem}-{theme}-{width}")
        if "1000" not in report.stem:  # axe-core looks at each row for itself, which takes minutes
            assert violations(browser) == []
    assert complaints(browser) == []


def test_the_table_is_filtered_and_sorted_by_keyboard(browser, actionplan):
    from selenium.webdriver.common.keys import Keys

    ended = actionplan.inside("apply", document(actionplan, 11), "--yes")
    assert ended.code == 3
    actionplan.good("report", "last", "-o", "report.html")
    look(browser, "light", 1000)
    browser.get(f"file://{actionplan.folder}/report.html")
    every = [f"r{n}" for n in range(1, 12)]
    assert sorted(rows(browser), key=every.index) == every
    field = browser.find_element("name", "text")
    field.send_keys("no room")
    assert len(rows(browser)) == 1
    assert browser.find_element("id", "shown").text == "1 of 11 actions"
    field.clear()
    field.send_keys(Keys.BACKSPACE)
    head = browser.find_element("css selector", "#rows thead th:nth-child(2) button")
    head.send_keys(Keys.ENTER)
    names = "return [...document.querySelectorAll('#rows tbody th')].map(h => h.textContent)"
    ascending = browser.execute_script(names)
    assert ascending == sorted(ascending)
    head.send_keys(Keys.SPACE)
    assert browser.execute_script(names) == ascending[::-1]
    assert head.find_element("xpath", "..").get_attribute("aria-sort") == "descending"


def test_without_a_script_everything_is_there_but_controls(browser, actionplan):
    actionplan.good("report", document(actionplan, 11), "-o", "report.html")
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(f"file://{actionplan.folder}/report.html")
        assert len(browser.find_elements("css selector", "#rows tbody tr")) == 11
        assert not browser.find_element("id", "filter").is_displayed()
        assert "compute-1/task-0" in browser.find_element("id", "actions").text
        assert not any(b.is_displayed() for b in browser.find_elements("css selector", "button"))
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
