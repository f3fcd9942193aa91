# SPDX-License-Identifier: Apache-2.0
"""``actionplan graph``: what is drawn, what is left out, where it goes."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from command_line import EXAMPLE, CommandLine

CHAIN = (
    {"name": "1/first", "action_type": "nop"},
    {"name": "1/second", "action_type": "nop"},
    {"name": "2/third", "action_type": "nop"},
)


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
