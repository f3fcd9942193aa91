# SPDX-License-Identifier: Apache-2.0
"""``actionplan graph``: what is drawn, what is left out, where it goes."""

from __future__ import annotations

import re
import signal
import subprocess
from xml.etree import ElementTree

import pytest
from command_line import EXAMPLE, CommandLine, Gate, wait_until

CHAIN = (
    {"name": "1/first", "action_type": "nop"},
    {"name": "1/second", "action_type": "nop"},
    {"name": "2/third", "action_type": "nop"},
)


FAILS = {"input_parameters": {"command": "exit 1"}}


@pytest.fixture
def chain(actionplan: CommandLine) -> CommandLine:
    """Three actions, one after another."""
    actionplan.document("chain.yaml", *CHAIN, name="chain")
    return actionplan


def drawn(text: str) -> list[str]:
    """The lines of a Mermaid picture that are no legend and no style."""
    lines = (line.strip() for line in text.splitlines()[1:])
    return [line for line in lines if line.split()[0] not in ("%%", "classDef", "linkStyle")]


def test_a_picture_of_its_own_needs_no_program(actionplan: CommandLine) -> None:
    text = actionplan.good("graph", str(EXAMPLE), "-f", "svg")
    titles = [e.text for e in ElementTree.fromstring(text).iter() if e.tag.endswith("}title")]  # noqa: S314
    assert titles[0] == "host-maintenance: RECOMMENDED"
    assert "PENDING: move-web-1\nmove web-1 from compute-1 to compute-3" in titles


def test_out_writes_the_same_to_a_file(chain: CommandLine) -> None:
    text = chain.good("graph", "chain.yaml", "-f", "svg")
    assert chain.good("graph", "chain.yaml", "-f", "svg", "--out", "plan.svg") == ""
    assert (chain.folder / "plan.svg").read_text(encoding="utf-8") == text


def test_a_file_that_cannot_be_written_is_told(chain: CommandLine) -> None:
    ended = chain("graph", "chain.yaml", "--out", "nowhere/plan.dot")
    assert ended.code == 1
    assert "--out nowhere/plan.dot cannot be written: No such file or directory" in ended.err


def titles(text: str) -> list[str]:
    """The titles of the bars of a timeline."""
    root = ElementTree.fromstring(text)  # noqa: S314 - it is our own
    return [str(e[0].text) for e in root.iter() if e.get("role") == "img"]


def test_the_timeline_of_a_document_is_a_forecast_from_0(actionplan: CommandLine) -> None:
    sleep = {"action_type": "sleep", "input_parameters": {"duration": 2}}
    actionplan.document("naps.yaml", {"name": "a", **sleep}, {"name": "b", **sleep}, name="naps")
    words = ("graph", "naps.yaml", "-f", "timeline")
    text = actionplan.good(*words)
    assert "naps: RECOMMENDED" in text
    assert "expected to take 4s" in text
    first, second = titles(text)
    assert first.startswith("a: PENDING")
    assert "expected 0s to 2s (2s)" in first
    assert "waited 2s, order: a" in second
    assert len(titles(actionplan.good(*words, "--task", "b"))) == 1


def test_the_timeline_of_an_ended_plan_has_local_times(chain: CommandLine) -> None:
    chain.document("fails.yaml", *CHAIN, {"name": "f", "action_type": "shell", **FAILS}, name="f")
    chain("apply", "fails.yaml", "--yes")
    ended = chain("graph", "last", "-f", "timeline", TZ="Asia/Tokyo")
    assert (ended.code, ended.err) == (0, "")
    assert "local time (UTC+0900)" in ended.out
    by_name = {title.partition("\n")[0]: title for title in titles(ended.out)}
    assert by_name.keys() == {
        *(f"{action['name']}: SUCCEEDED" for action in CHAIN),
        "f: FAILED",
    }
    assert "planned" in by_name["f: FAILED"]
    # A saved plan has its times in it.
    saved = chain.good("show", "last", "-f", "json")
    (chain.folder / "saved.json").write_text(saved, encoding="utf-8")
    assert "f: FAILED" in chain.good("graph", "saved.json", "-f", "timeline")


@pytest.mark.slow
def test_the_timeline_of_a_running_plan_is_known_until_now(
    actionplan: CommandLine, running: subprocess.Popen[str]
) -> None:
    text = actionplan.good("graph", "last", "-f", "timeline")
    assert ">now</text>" in text
    by_name = {title.partition(":")[0]: title for title in titles(text)}
    assert by_name.keys() == {"first", "second", "third", "fourth"}
    assert "first: ONGOING" in by_name["first"]
    assert "second: PENDING\n" in by_name["second"]
    assert "\nexpected " in by_name["second"]
    assert running.poll() is None


def test_the_lanes_of_a_timeline_can_be_chosen(chain: CommandLine) -> None:
    timeline = ("graph", "chain.yaml", "-f", "timeline", "--lanes")
    for kind, lanes in (("node", ["1", "2"]), ("type", ["nop"]), ("worker", ["not started"])):
        drawn_lanes = re.findall(
            'class="lane" role="group"><title>(.*?)<', chain.good(*timeline, kind)
        )
        assert drawn_lanes == lanes
    ended = chain("graph", "chain.yaml", "--lanes", "type")
    assert (ended.code, "--lanes: only a timeline has lanes" in ended.err) == (1, True)


@pytest.mark.slow
def test_after_a_run_the_timeline_still_says_that_another_plan_was_waited_for(
    actionplan: CommandLine,
) -> None:
    gate = Gate(actionplan.folder)
    touches = {"touches": ["node:compute-1"]}
    actionplan.document("one.yaml", gate.action("gate") | touches, name="one")
    actionplan.document("two.yaml", {"name": "b", "action_type": "nop", **touches}, name="two")
    with actionplan.start("apply", "one.yaml", "--yes") as first:
        gate.wait()
        with actionplan.start("apply", "two.yaml", "--yes") as second:
            wait_until(lambda: "for node:compute-1, on which" in actionplan("why", "two", "b").out)
            gate.let_go()
            assert second.wait() == 0
        assert first.wait() == 0
    gate.take_down()
    [about] = titles(actionplan.good("graph", "two", "-f", "timeline"))
    assert "other plan: node:compute-1, on which plan one of operator worked" in about
    assert "waits for another plan" in actionplan.good("report", "two")


@pytest.mark.slow
def test_after_a_run_the_timeline_still_says_who_paused_it_and_why(
    actionplan: CommandLine, running: subprocess.Popen[str], gate: Gate
) -> None:
    actionplan.good("pause", "last", "--reason", "too hot")
    # Nobody can tell when the request is read; after this, the plan is paused for certain.
    running.send_signal(signal.SIGINT)
    gate.let_go()
    assert running.wait() == 5
    actionplan.good("apply", "last", "--yes")
    found = titles(actionplan.good("graph", "last", "-f", "timeline"))
    by_name = {title.partition(":")[0]: title for title in found}
    assert "pause: the end of the pause by operator: too hot" in by_name["second"]
    assert "waits for the plan to go on" in actionplan.good("report", "last")


def test_what_is_left_out_still_orders_the_rest(chain: CommandLine) -> None:
    text = chain.good("graph", "chain.yaml", "-f", "mermaid", "--task", "first|third")
    assert drawn(text) == [
        'a0["1/first<br/>nop<br/>PENDING"]:::PENDING',
        'a2["2/third<br/>nop<br/>PENDING"]:::PENDING',
        "a0 --> a2",
    ]


def test_nodes_and_states_choose_actions_too(chain: CommandLine) -> None:
    chain.good("apply", "chain.yaml", "--yes")
    one = chain.good("graph", "last", "-f", "mermaid", "--node", "^1$", "--state", "SUCCEEDED")
    assert ("first" in one, "second" in one, "third" in one) == (True, True, False)
    several = ("--state", "FAILED", "--state", "SUCCEEDED")
    assert "3 actions" in chain.good("graph", "last", *several)


def test_nothing_that_fits_is_said_beside_the_picture(chain: CommandLine) -> None:
    ended = chain("graph", "chain.yaml", "-f", "svg", "--state", "FAILED")
    assert (ended.code, ended.err) == (0, "Note: no action matches; the picture is empty.\n")
    assert "0 actions" in ended.out


def test_all_that_is_no_regular_expression_is_told_at_once(chain: CommandLine) -> None:
    ended = chain("graph", "chain.yaml", "--node", "[", "--task", "(")
    assert ended.code == 1
    assert "--node [: not a regular expression: " in ended.err
    assert "--task (: not a regular expression: " in ended.err


def test_a_state_that_there_is_not_is_a_usage_error(chain: CommandLine) -> None:
    ended = chain("graph", "chain.yaml", "--state", "BROKEN")
    assert ended.code == 2
    assert "invalid choice: 'BROKEN'" in ended.err
