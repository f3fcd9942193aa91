# SPDX-License-Identifier: Apache-2.0
"""Live pages and reports in a real browser: they follow plans, tell refusals, exclude nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from api_client import Process, api_process, configured
from browsers import complaints, look, picture, violations
from command_line import CommandLine, Gate, wait_until
from reserved_port import ReservedPort
from scratch_database import run
from selenium.webdriver.common.keys import Keys
from test_cli_hosts import created, move

from applier.clouds.simulated import SimulatedCloud

pytestmark = pytest.mark.needs("chromium", "chromedriver")

NOP = {"action_type": "nop"}


@pytest.fixture
def site(actionplan: CommandLine) -> Iterator[CommandLine]:
    """Return a command line whose API always has the same port."""
    with closing(ReservedPort()) as kept:
        yield configured(actionplan, port=kept.port, requests_per_second=10**6)


@pytest.fixture
def api(site: CommandLine) -> Iterator[Process]:
    """Start the API."""
    with api_process(site) as started:
        yield started


def planned(site: CommandLine, gate: Gate, after: int = 3) -> str:
    """Plan a gate with actions behind it, one after another; return the uuid."""
    last = [{"name": f"after-{i}", **NOP} for i in range(after)]
    options = {"weights": {"shell": 90}}
    site.document("night.yaml", gate.action("gate"), *last, name="night", options=options)
    site.good("create", "night.yaml", "--set", "ordering=chunks")
    return site.plan().uuid


def states(browser: Any) -> dict[str, str]:
    """Return the states that a page shows, of the plan and of each action."""
    script = """
      const state = (node) => node.querySelector(".badge").classList[1];
      const rows = [...document.querySelectorAll("#rows tbody tr")];
      return {"": state(document.getElementById("top")),
        ...Object.fromEntries(rows.map((row) => [row.cells[1].textContent, state(row)]))};
    """
    found: dict[str, str] = browser.execute_script(script)
    return found


def recorded(site: CommandLine) -> dict[str, str]:
    """Return the same of the record."""
    plan = site.plan()
    return {"": str(plan.state), **{str(a.name): str(a.state) for a in plan.actions}}


def connection(browser: Any) -> str:
    """Return what the page says about its connection."""
    text: str = browser.find_element("id", "connection").text
    return text


def opened(browser: Any, address: str) -> None:
    """Open a page, and wait until it is live."""
    # What the page before still complains of is not about this one.
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(address)
    wait_until(lambda: connection(browser) == "live")


def excludes_nobody(
    browser: Any, name: str, load: Callable[[], object], by_axe: bool = True
) -> None:
    """Load a page on light and dark screens of three widths, on each of which it fits."""
    for theme in ("light", "dark"):
        for width in (400, 1000, 1600):
            look(browser, theme, width)
            load()
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width
            picture(browser, f"{name}-{theme}-{width}")
        if by_axe:
            assert violations(browser) == []


def test_a_refusal_is_told_in_the_dialog_and_a_second_click_starts_the_plan(browser, site, api):
    created(site, "compute-1")
    move(SimulatedCloud(site.simulator, speed=1000), "web-1", "compute-4")
    opened(browser, f"{api.url}/plans/{site.plan().uuid}")
    start = browser.find_element("xpath", "//button[.='Start']")
    dialog, yes = (browser.find_element("id", name) for name in ("ask", "ask-yes"))
    for answer in ("ask-no", "ask-yes"):
        start.click()
        yes.click()
        wait_until(lambda: "web-1 is on compute-4" in browser.find_element("id", "ask-wrong").text)
        assert states(browser)[""] == "RECOMMENDED"
        assert dialog.get_attribute("open")
        assert "nevertheless" in yes.text
        assert violations(browser) == []
        browser.find_element("id", answer).click()
        wait_until(lambda: not dialog.get_attribute("open"))
    wait_until(lambda: states(browser)[""] == "PENDING")


def ask(browser: Any, button: Any, why: str) -> str:
    """Click a button, give a reason in the dialog; return what the page tells then."""
    told = browser.find_element("id", "told")
    before = told.text
    button.click()
    browser.find_element("id", "ask-why").send_keys(why, Keys.ENTER)
    wait_until(lambda: told.text not in ("", before))
    assert not browser.find_element("id", "ask").get_attribute("open")
    return str(told.text)


def button_of(browser: Any, action: str, label: str) -> Any:
    """Unfold the row of an action; return a button that is offered there."""
    row = browser.find_element("xpath", f"//*[@id='rows']//tbody/tr[th[.='{action}']]")
    row.find_element("tag name", "summary").click()
    path = f".//button[.='{label}']"
    return wait_until(lambda: row.find_elements("xpath", path))[0]


def rows_of_history(browser: Any) -> list[list[str]]:
    """Return what, which action, who and why of each line of the history that a page shows."""
    script = """
      const rows = [...document.querySelectorAll("#history tbody tr")];
      return rows.map((row) => [...row.cells].slice(1).map((cell) => cell.textContent));
    """
    found: list[list[str]] = browser.execute_script(script)
    return found


@pytest.mark.long
def test_skip_and_abort_end_as_said_and_the_history_says_who_and_why(browser, site, api, gate):
    uuid = planned(site, gate)
    with site.start("apply", uuid, "--yes") as run:
        gate.wait()
        opened(browser, f"{api.url}/plans/{uuid}")
        wait_until(lambda: states(browser)["gate"] == "ONGOING")
        told = ask(browser, button_of(browser, "after-1", "Skip"), "done by hand")
        assert "has been asked to skip after-1" in told
        told = ask(browser, button_of(browser, "gate", "Abort"), "it hangs")
        assert told.endswith("has been asked to abort gate.")
        run.communicate()
    wait_until(lambda: states(browser) == recorded(site))
    shown = states(browser)
    assert (shown["after-1"], shown["gate"], shown[""]) == ("SKIPPED", "CANCELLED", "FAILED")
    given = [
        ["skip", "after-1", "anonymous", "done by hand"],
        ["abort", "gate", "anonymous", "it hangs"],
    ]
    wait_until(lambda: rows_of_history(browser)[-2:] == given)
    assert complaints(browser) == []


def test_an_action_in_doubt_is_settled_on_the_page_and_the_plan_is_resumed(browser, site, api):
    site.document("night.yaml", {"name": "first", **NOP}, {"name": "second", **NOP}, name="night")
    site.good("create", "night.yaml")
    for text in (
        "UPDATE actionplan_plan SET state = 'FAILED', doubtful = 1",
        "UPDATE actionplan_action_state SET state = 'UNKNOWN', attempts = 1, "
        "started_at = '2026-01-02 03:04:05.000000', ended_at = '2026-01-02 03:04:06.000000' "
        "WHERE uuid = (SELECT uuid FROM actionplan_action WHERE name = 'first')",
    ):
        run(f"sqlite:///{site.record}", text)
    opened(browser, f"{api.url}/plans?needs_you=1")
    assert "needs you: 1 in doubt" in browser.find_element("id", "plans").text
    browser.find_element("link text", "night").click()
    wait_until(lambda: connection(browser) == "live")
    section = browser.find_element("id", "needs")
    labels = [one.text for one in section.find_elements("tag name", "button")]
    assert labels == ["It succeeded", "It failed"]
    settle = section.find_element("xpath", ".//button[.='It succeeded']")
    assert "first is SUCCEEDED" in ask(browser, settle, "the host has it")
    wait_until(lambda: states(browser)["first"] == "SUCCEEDED")
    assert not section.is_displayed()
    # The button is gone, and whoever pressed it goes on beside the place.
    assert browser.switch_to.active_element.get_attribute("id") == "told"
    told = ask(browser, browser.find_element("xpath", "//button[.='Resume']"), "go on")
    assert "PENDING" in told
    wait_until(lambda: states(browser)[""] == "PENDING")
    # What was Resume is not Cancel now for whoever presses Enter once more.
    assert browser.switch_to.active_element.get_attribute("id") == "told"
    given = ["set", "first", "anonymous", "SUCCEEDED: the host has it"]
    wait_until(lambda: given in rows_of_history(browser))
    assert complaints(browser) == []


def test_pages_that_wait_for_somebody_exclude_nobody(browser, site, api):
    """Of a plan that failed, of one that waits for approval, and the list of such plans."""
    fails = {"name": "no", "action_type": "shell", "input_parameters": {"command": "false"}}
    site.document("failed.yaml", fails, NOP, name="failed")
    site.document("approval.yaml", NOP, name="approval", guards={"approvals": 1})
    assert site("apply", "failed.yaml", "--yes").code == 3
    site.good("create", "approval.yaml")
    for name in ("failed", "approval"):
        excludes_nobody(browser, name, lambda name=name: opened(browser, f"{api.url}/plans/{name}"))
    excludes_nobody(browser, "needs", lambda: opened(browser, f"{api.url}/plans?needs_you=1"))
    assert complaints(browser) == []


@pytest.mark.long
def test_ten_tabs_on_one_plan_that_runs_all_show_its_end(browser, site, api, gate):
    uuid = planned(site, gate)
    first = browser.current_window_handle
    with site.start("apply", uuid, "--yes") as running:
        gate.wait()
        tabs = []
        for _ in range(10):
            browser.switch_to.new_window("tab")
            tabs.append(browser.current_window_handle)
            opened(browser, f"{api.url}/plans/{uuid}")
            assert states(browser)["gate"] == "ONGOING"
        gate.let_go()
        running.communicate()
    for tab in tabs:
        browser.switch_to.window(tab)
        wait_until(lambda: states(browser) == recorded(site))
        assert complaints(browser) == []
        browser.close()
    browser.switch_to.window(first)


@pytest.mark.long
def test_the_page_of_a_plan_that_runs_excludes_nobody_and_does_not_jump(browser, site, api, gate):
    uuid = planned(site, gate, after=30)
    top = (
        "return document.querySelector('#rows tbody tr:nth-child(20)').getBoundingClientRect().top"
    )
    with site.start("apply", uuid, "--yes") as run:
        gate.wait()
        excludes_nobody(browser, "live", lambda: opened(browser, f"{api.url}/plans/{uuid}"))
        row = browser.find_element("css selector", "#rows tbody tr:nth-child(20)")
        row.find_element("tag name", "summary").click()
        wait_until(lambda: row.find_elements("xpath", ".//button[.='Skip']"))
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", row)
        browser.execute_script("window.isStill = true")
        before = browser.execute_script(top)
        gate.let_go()
        run.communicate()
        wait_until(lambda: states(browser) == recorded(site))
    assert browser.execute_script("return window.isStill")
    assert row.find_element("tag name", "details").get_attribute("open")
    # What can be asked no more is not offered any more.
    wait_until(lambda: not row.find_elements("tag name", "button"))
    assert abs(browser.execute_script(top) - before) <= 2


@pytest.mark.long
def test_page_and_record_agree_after_the_connection_was_cut_and_came_back(browser, site, gate):
    uuid = planned(site, gate)
    with site.start("apply", uuid, "--yes") as run:
        with api_process(site) as first:
            opened(browser, f"{first.url}/plans/{uuid}")
            wait_until(lambda: states(browser)["gate"] == "ONGOING")
        wait_until(lambda: "cut" in connection(browser))
        gate.let_go()
        run.communicate()
        assert states(browser) != recorded(site)
        with api_process(site):
            wait_until(lambda: connection(browser) == "live")
            wait_until(lambda: states(browser) == recorded(site))
    assert set(states(browser).values()) == {"SUCCEEDED"}


@pytest.mark.long
def test_the_list_of_plans_goes_on_by_itself(browser, site, api, gate):
    planned(site, gate)
    excludes_nobody(browser, "list", lambda: opened(browser, f"{api.url}/"))
    with site.start("apply", "last", "--yes") as run:
        gate.let_go()
        run.communicate()
    wait_until(lambda: "SUCCEEDED" in browser.find_element("id", "plans").text)
    assert "4 of 4" in browser.find_element("id", "plans").text


@pytest.mark.long
def test_a_page_of_watch_needs_no_service(browser, site, gate):
    uuid = planned(site, gate)
    with site.start("watch", uuid, "--web") as served:
        opened(browser, served.stdout.readline().removeprefix("Open ").strip())
        browser.find_element("xpath", "//button[.='Approve']").click()
        browser.find_element("id", "ask-why").send_keys("looks right", Keys.ENTER)
        wait_until(lambda: "approved" in browser.find_element("id", "told").text)
        # The list, and what is searched there, know the address as well.
        browser.find_element("link text", "All plans").click()
        wait_until(lambda: connection(browser) == "live")
        browser.find_element("name", "search").send_keys("NIGHT", Keys.ENTER)
        wait_until(lambda: "search=NIGHT" in browser.current_url)
        wait_until(lambda: connection(browser) == "live")
        browser.find_element("link text", "night").click()
        wait_until(lambda: "/plans/" in browser.current_url and connection(browser) == "live")
        assert complaints(browser) == []
        served.kill()
    assert '"operator"' in site.good("history", uuid, "-f", "json")


# Reports: on any screen, by keyboard, without a script


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
    script = """
      const all = [...document.querySelectorAll('#rows tbody tr')];
      return all.filter((row) => row.checkVisibility()).map((row) => row.id);
    """
    return list(browser.execute_script(script))


def test_a_report_excludes_nobody_and_fits_on_any_screen(browser, report):
    # axe-core looks at each row for itself, which takes minutes.
    is_short = "1000" not in report.stem
    excludes_nobody(browser, report.stem, lambda: browser.get(f"file://{report}"), is_short)
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


def test_a_long_table_shows_its_first_rows_until_more_are_wanted(browser, actionplan):
    actionplan.good("report", document(actionplan, 250), "-o", "report.html")
    address = f"file://{actionplan.folder}/report.html"
    every, first = [[f"r{n}" for n in range(1, last + 1)] for last in (250, 200)]
    look(browser, "light", 1000)
    browser.get(address)
    assert rows(browser) == first
    assert browser.find_element("id", "shown").text == "the first 200 of 250 actions"
    browser.find_element("css selector", "#later button").click()
    assert rows(browser) == every
    assert browser.find_element("id", "shown").text == "250 of 250 actions"
    browser.get("about:blank")
    browser.get(address)
    browser.find_element("name", "text").send_keys("compute-24/task-9")
    (only,) = rows(browser)
    assert "compute-24/task-9" in browser.find_element("id", only).text
    browser.get("about:blank")
    browser.get(f"{address}#r240")
    assert browser.find_element("id", "r240").is_displayed()
    browser.get("about:blank")
    browser.get(address)
    browser.execute_script("location.hash = 'r230'")
    wait_until(lambda: browser.find_element("id", "r230").is_displayed())


def test_without_a_script_everything_is_there_but_controls(browser, actionplan):
    actionplan.good("report", document(actionplan, 250), "-o", "report.html")
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(f"file://{actionplan.folder}/report.html")
        assert len(rows(browser)) == 250
        assert not browser.find_element("id", "filter").is_displayed()
        assert "compute-1/task-0" in browser.find_element("id", "actions").text
        assert not any(b.is_displayed() for b in browser.find_elements("css selector", "button"))
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
