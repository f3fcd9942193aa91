# SPDX-License-Identifier: Apache-2.0
"""``actionplan report``: one file without a network that says what happened, why, what is left."""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import datetime, timedelta
from html.parser import HTMLParser

import pytest
from api_client import client_of, configured
from command_line import EXAMPLE, CommandLine

#: The most characters of a report of 1,000 actions.
MEGABYTE = 1_000_000
FAILS = {"input_parameters": {"argv": ["sh", "-c", "echo '<b>& all that was said'; exit 3"]}}
NIGHT = (
    {"name": "first", "action_type": "nop", "touches": ["node:c1"]},
    {"name": "<script>alert(1)</script>", "action_type": "shell", **FAILS},
)


class Page(HTMLParser):
    """Reads a page: texts of elements with an id, shapes, addresses, and what is not closed."""

    VOID = ("meta", "br", "input", "link")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text, self.addresses, self.shapes, self.untitled = "", [], 0, 0
        self.scripts, self.headings = 0, []
        self._inside: list[str] = []
        self._awaits_title = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._inside.append(tag)
        self.scripts += tag == "script"
        self.addresses += [v for k, v in attrs if k in ("src", "href", "action", "data") and v]
        if self._awaits_title:
            self.untitled += tag != "title"
            self._awaits_title = False
        if given.get("role") == "img":
            self.shapes += 1
            self._awaits_title = True

    def handle_data(self, data: str) -> None:
        if not self._inside or self._inside[-1] not in ("style", "script"):
            self.text += data


def section(text: str, name: str) -> str:
    """Return the part of a page with an id."""
    found = re.search(rf'<section id="{name}".*?</section>', text, re.DOTALL)
    assert found, name
    return found[0]


@pytest.fixture
def failed(actionplan: CommandLine) -> CommandLine:
    """Return a record with a plan of which one action failed, and an earlier plan of its name."""
    actionplan.document("before.yaml", NIGHT[0], name="night")
    actionplan.good("create", "before.yaml")
    actionplan.document("night.yaml", *NIGHT, name="night")
    assert actionplan("apply", "night.yaml", "--yes").code == 3
    return actionplan


def test_a_report_of_a_run_says_what_happened_why_and_what_is_left(failed: CommandLine) -> None:
    text = failed.good("report", "last")
    page = Page(text)
    assert "2 actions: 1 changed, 1 failed. Took " in page.text
    assert "exit code 3" in section(text, "left")
    assert "Run failed actions again: actionplan resume" in section(text, "left")
    assert text.index('<section id="left"') < text.index('<section id="facts"')
    rows = section(text, "actions")
    assert "&lt;b&gt;&amp; all that was said" in rows
    assert "try 1: FAILED" in rows
    assert "1 added" in section(text, "differences")
    assert "operator" in section(text, "history")
    assert "&lt;script&gt;alert(1)" in rows
    assert page.scripts == 1


def test_a_report_needs_no_network_and_its_policy_allows_just_its_own(failed: CommandLine) -> None:
    text = failed.good("report", "last")
    page = Page(text)
    assert all(address.startswith("#") for address in page.addresses)
    assert not re.search(r"url\((?!#)|@import", text)
    for kind in ("style", "script"):
        inside = re.findall(rf"<{kind}>(.*?)</{kind}>", text, re.DOTALL)
        assert len(inside) == 1
        digest = base64.b64encode(hashlib.sha256(inside[0].encode()).digest()).decode()
        assert f"{kind}-src &#39;sha256-{digest}&#39;" in text
    assert " style=" not in text
    assert not re.search(r" on\w+=", text)


def test_each_shape_has_a_title(failed: CommandLine) -> None:
    page = Page(failed.good("report", "last"))
    assert page.shapes >= 5
    assert page.untitled == 0


def test_a_report_of_a_file_is_a_forecast(actionplan: CommandLine) -> None:
    assert actionplan.good("report", str(EXAMPLE), "-o", "before.html") == ""
    text = (actionplan.folder / "before.html").read_text(encoding="utf-8")
    assert "11 actions, nothing has run. Expected to take" in Page(text).text
    assert actionplan.plans() == []


def test_the_facts_name_each_guard_that_holds(actionplan: CommandLine) -> None:
    file = actionplan.document("plan.yaml", *NIGHT)
    assert not re.search(
        "budget|probe|Window|radius", section(actionplan.good("report", file), "facts")
    )
    actionplan.configure(
        watcher_applier={
            "failure_budget": "3 in 1h",
            "health_probe": "https://monitor.example.org/healthy",
            "windows": "sat 22:00-04:00 UTC",
            "approvals": 1,
        }
    )
    guards = {"failure_budget": ["shell=50%"], "blast_radius": {"hosts": "20%", "instances": 2}}
    file = actionplan.document("guarded.yaml", *NIGHT, guards=guards)
    facts = section(actionplan.good("report", file), "facts")
    for name, value in (
        ("Failure budget", "shell=50%, 3 in 1h; once more actions fail, nothing new starts, and "),
        ("Health probe", "https://monitor.example.org/healthy; if it fails, nothing new starts"),
        ("Window", "sat 22:00-04:00 UTC; at other times no action starts"),
        ("Blast radius", "at most hosts 20 %, instances 2"),
        ("Approvals", "needs 1 approval"),
    ):
        assert f"<dt>{name}</dt><dd>{value}" in facts


def test_an_approval_is_in_the_time_zone_of_the_history(actionplan: CommandLine) -> None:
    actionplan.good("create", actionplan.document("plan.yaml", *NIGHT))
    actionplan.good("approve", "last", "--reason", "looked at <it>")
    ended = actionplan("report", "last", TZ="Pacific/Auckland")
    found = section(ended.out, "history")
    approved = r"Approved by operator at ([-\d]+ [:\d]+) NZ[SD]T: looked at &lt;it&gt;"
    entry = r"<td[^>]*>([-\d]+ [:\d]+)</td><td>approve</td>"
    at = [re.search(pattern, found) for pattern in (approved, entry)]
    first, second = (datetime.fromisoformat(one[1]) for one in at if one)
    assert abs(first - second) < timedelta(minutes=5)


def test_a_file_that_cannot_be_written_is_told(failed: CommandLine) -> None:
    ended = failed("report", "last", "-o", "nowhere/report.html")
    assert ended.code == 1
    assert "nowhere/report.html cannot be written: No such file or directory" in ended.err


def test_a_thousand_actions_stay_below_a_megabyte(actionplan: CommandLine) -> None:
    actions = [
        {
            "name": f"compute-{i // 10}/a-task-with-a-long-name-{i % 10}",
            "action_type": "shell",
            "touches": [f"node:compute-{i // 10}"],
            "input_parameters": {"argv": ["sh", "-c", f"echo {i}; " + "true " * 20]},
        }
        for i in range(1000)
    ]
    actionplan.document("many.yaml", *actions, name="many")
    text = actionplan.good("report", "many.yaml")
    assert len(text.encode()) < MEGABYTE
    assert text.count('<tr id="r') == 1000


def test_the_api_answers_the_same_page(failed: CommandLine) -> None:
    api = client_of(configured(failed))
    answer = api.simulate_get("/v2/plans/last/report.html")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    made = re.compile(r"Made by ActionPlan at [^.]*")
    assert made.sub("", answer.text) == made.sub("", failed.good("report", "last"))
    assert api.simulate_get("/v2/plans/nope/report.html").status_code == 404
