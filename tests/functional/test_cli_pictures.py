# SPDX-License-Identifier: Apache-2.0
"""``graph`` and ``report``: what is drawn and told, what is left out, where it goes."""

from __future__ import annotations

import base64
import hashlib
import re
from xml.etree import ElementTree

import pytest
from api_client import client_of, configured
from command_line import EXAMPLE, CommandLine

CHAIN = tuple({"name": n, "action_type": "nop"} for n in ("1/first", "1/second", "2/third"))
FAILS = {
    "name": "<script>alert(1)</script>",
    "action_type": "shell",
    "input_parameters": {"argv": ["sh", "-c", "echo '<b>& all that was said'; exit 3"]},
}


@pytest.fixture
def chain(actionplan: CommandLine) -> CommandLine:
    """Three actions, one after another."""
    actionplan.document("chain.yaml", *CHAIN, name="chain")
    return actionplan


def titles(text: str) -> list[str]:
    """The titles of the bars of a timeline."""
    root = ElementTree.fromstring(text)  # noqa: S314 - it is our own
    return [str(e[0].text) for e in root.iter() if e.get("role") == "img"]


# Graphs


def test_a_graph_is_drawn_whole_and_in_part(chain):
    some = chain.good("graph", "chain.yaml", "-f", "mermaid", "--task", "first|third")
    lines = [line.strip() for line in some.splitlines()[1:]]
    # What is left out still orders the rest.
    assert [line for line in lines if line.split()[0] not in ("%%", "classDef", "linkStyle")] == [
        'a0["1/first<br/>nop<br/>PENDING"]:::PENDING',
        'a2["2/third<br/>nop<br/>PENDING"]:::PENDING',
        "a0 --> a2",
    ]
    chain.good("apply", "chain.yaml", "--yes")
    one = chain.good("graph", "last", "-f", "mermaid", "--node", "^1$", "--state", "SUCCEEDED")
    assert ("first" in one, "second" in one, "third" in one) == (True, True, False)
    several = ("--state", "FAILED", "--state", "SUCCEEDED")
    assert "3 actions" in chain.good("graph", "last", *several)
    ended = chain("graph", "chain.yaml", "-f", "svg", "--state", "FAILED")
    assert (ended.code, ended.err.startswith("Note: no action matches")) == (0, True)


def test_a_picture_that_cannot_be_made_is_refused(chain):
    chain.check_refusals(
        "graph_refused",
        "graph chain.yaml --out nowhere/plan.dot",
        "graph chain.yaml --lanes type",
        "graph chain.yaml --node [ --task (",
        "graph chain.yaml --state BROKEN",
        "report chain.yaml -o nowhere/report.html",
    )


# Timelines


def test_timelines_and_reports_have_local_times(chain):
    chain.document("fails.yaml", *CHAIN, {**FAILS, "name": "f"}, name="f")
    before = titles(chain.good("graph", "fails.yaml", "-f", "timeline", "--lanes", "type"))
    assert ["PENDING" in title and "expected" in title for title in before] == [True] * 4
    chain("apply", "fails.yaml", "--yes")
    ended = chain.program("graph", "last", "-f", "timeline", TZ="Asia/Tokyo")
    assert (ended.code, ended.err) == (0, "")
    assert "local time (UTC+0900)" in ended.out
    by_name = {title.partition("\n")[0]: title for title in titles(ended.out)}
    assert by_name.keys() == {*(f"{a['name']}: SUCCEEDED" for a in CHAIN), "f: FAILED"}
    assert "planned" in by_name["f: FAILED"]
    # A saved plan has its times in it.
    saved = chain.good("show", "last", "-f", "json")
    (chain.folder / "saved.json").write_text(saved, encoding="utf-8")
    assert "f: FAILED" in chain.good("graph", "saved.json", "-f", "timeline")
    chain.good("create", "chain.yaml")
    chain.good("approve", "last", "--reason", "looked at <it>")
    found = section(chain.program("report", "last", TZ="Etc/GMT-12").out, "history")
    approved = r"Approved by operator at ([-\d]+ [:\d]+) \S+: looked at &lt;it&gt;"
    entry = r"<td[^>]*>([-\d]+ [:\d]+)</td><td>approve</td>"
    first, second = (re.findall(pattern, found) for pattern in (approved, entry))
    assert (len(first), first) == (1, second)


# Reports


def section(text: str, name: str) -> str:
    """Return the part of a page with an id."""
    found = re.search(rf'<section id="{name}".*?</section>', text, re.DOTALL)
    assert found, name
    return found[0]


def shown(text: str) -> str:
    """Return the text of a page that is shown."""
    return re.sub(r"<(style|script)>.*?</\1>|<[^>]*>", "", text, flags=re.DOTALL)


def test_a_report_says_what_happened_why_and_what_is_left_and_needs_no_network(chain):
    chain.good("create", "chain.yaml")
    chain.document("night.yaml", *CHAIN, FAILS, name="chain")
    assert chain("apply", "night.yaml", "--yes").code == 3
    text = chain.good("report", "last")
    assert "4 actions: 3 changed, 1 failed. Took " in shown(text)
    assert "exit code 3" in section(text, "left")
    assert "actionplan apply" in section(text, "left")
    assert text.index('<section id="left"') < text.index('<section id="facts"')
    rows = section(text, "actions")
    assert "&lt;b&gt;&amp; all that was said" in rows
    assert "try 1: FAILED" in rows
    assert "&lt;script&gt;alert(1)" in rows
    assert "1 added" in section(text, "differences")
    assert "operator" in section(text, "history")
    shapes = re.findall(r'<\w+[^>]* role="img"[^>]*>\s*(<\w+)', text)
    assert (set(shapes), len(shapes) >= 5) == ({"<title"}, True)
    assert not re.search(
        r' (src|href|action|data)="(?!#)|url\((?!#|"data:)|@import| style=| on\w+=', text
    )
    for kind in ("style", "script"):
        [inside] = re.findall(rf"<{kind}>(.*?)</{kind}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{kind}-src &#39;sha256-{digest}&#39;" in text
    api = client_of(configured(chain))
    answer = api.simulate_get("/v2/plans/last/report.html")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    made = re.compile(r"Made by ActionPlan at [^.]*")
    assert made.sub("", answer.text) == made.sub("", text)
    assert api.simulate_get("/v2/plans/nope/report.html").status_code == 404


def test_a_report_of_a_file_is_a_forecast_that_names_each_guard(actionplan):
    assert actionplan.good("report", str(EXAMPLE), "-o", "before.html") == ""
    text = (actionplan.folder / "before.html").read_text(encoding="utf-8")
    assert "11 actions, nothing has run." in shown(text)
    assert not re.search("budget|probe|Window|radius", section(text, "facts"))
    actionplan.configure(
        watcher_applier={
            "failure_budget": "3 in 1h",
            "health_probe": "https://monitor.example.org/healthy",
            "windows": "sat 22:00-04:00 UTC",
            "approvals": 1,
        }
    )
    guards = {"failure_budget": ["shell=50%"], "blast_radius": {"hosts": "20%", "instances": 2}}
    file = actionplan.document("guarded.yaml", *CHAIN, guards=guards)
    facts = section(actionplan.good("report", file), "facts")
    for name, value in (
        ("Failure budget", "shell=50%, 3 in 1h; once more actions fail, nothing new starts, and "),
        ("Health probe", "https://monitor.example.org/healthy; if it fails, nothing new starts"),
        ("Window", "sat 22:00-04:00 UTC; at other times no action starts"),
        ("Blast radius", "at most hosts 20 %, instances 2"),
        ("Approvals", "needs 1 approval"),
    ):
        assert f"<dt>{name}</dt><dd>{value}" in facts
    assert actionplan.plans() == []
