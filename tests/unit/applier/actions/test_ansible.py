# SPDX-License-Identifier: Apache-2.0
"""The parameters of the type ansible. What Ansible does with them: tests/functional."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from applier.actions.ansible import Ansible
from applier.actions.ansible_output import AnsibleOutput, failures
from applier.errors import ActionFailed
from planner import make_plan
from planner.documents import inventory
from planner.errors import InvalidInput


def document(**parameters: Any) -> dict[str, Any]:
    return {"actions": [{"action_type": "ansible", "input_parameters": parameters}]}


@pytest.mark.parametrize(
    ("given", "words", "nodes", "is_simulated"),
    [
        ({"playbook": "/x/site.yml"}, "ansible site.yml", [], False),
        (
            {"playbook": "/x/site.yml", "play": 0, "inventory": "/i", "hosts": ["a", "b"]},
            "ansible site.yml play 0 on a, b",
            ["a", "b"],
            False,
        ),
        ({"role": "ntp", "node": "3"}, "ansible role ntp on node 3", ["3"], True),
        (
            {"module": "apt", "node": "3", "address": "root@h"},
            "ansible module apt on node 3",
            ["3"],
            False,
        ),
        ({"module": "apt", "node": "3", "inventory": "/i"}, None, ["3"], False),
    ],
)
def test_what_it_says_and_touches(given, words, nodes, is_simulated):
    assert words in (None, Ansible.describe(given))
    assert [touch.resource for touch in Ansible.touches(given)] == [f"node:{n}" for n in nodes]
    assert Ansible.simulated(given) is is_simulated
    assert list(Ansible.runs_on(given)) == ([] if is_simulated else [None])


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"playbook": "/a", "role": "b"},
        {"role": "a", "play": 1},
        {"playbook": "/a", "play": -1},
        {"playbook": "/a", "arguments": "x"},
        {"playbook": "/a", "hosts": ["a"]},
        {"playbook": "/a", "inventory": "/i", "hosts": ["web*"]},
        {"playbook": "/a", "inventory": "/i", "hosts": ["!a"]},
        {"playbook": "/a", "inventory": "/i", "hosts": ["@a"]},
        {"playbook": "/a", "inventory": []},
        {"module": "a b"},
        {"module": "a", "become": "yes"},
    ],
)
def test_what_it_does_not_accept(given):
    with pytest.raises(InvalidInput):
        make_plan(document(**given))


def test_paths_of_a_document_begin_at_its_folder(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text(
        "actions:\n- action_type: ansible\n"
        "  input_parameters: {playbook: site.yml, inventory: [hosts, /etc/hosts.ini]}\n"
    )
    (made,) = make_plan(path).actions
    assert made.input_parameters["playbook"] == f"{tmp_path}/site.yml"
    assert made.input_parameters["inventory"] == [f"{tmp_path}/hosts", "/etc/hosts.ini"]
    with pytest.raises(InvalidInput, match=r"playbook of .*: 'site\.yml' is not a whole path"):
        make_plan(document(playbook="site.yml"))


def test_what_is_missing_is_said_before_it_runs(context, monkeypatch, tmp_path):
    given = {"playbook": str(tmp_path / "site.yml")}
    with pytest.raises(ActionFailed, match=r"playbook: there is no .*/site.yml on this machine"):
        Ansible(given, context).precheck()
    Path(given["playbook"]).touch()
    monkeypatch.setattr(inventory, "program", lambda _: None)
    with pytest.raises(ActionFailed, match="needs the extra 'ansible'"):
        Ansible(given, context).precheck()


def test_a_long_line_is_passed_on_and_little_of_it_is_kept():
    printed: list[str] = []
    told = AnsibleOutput(printed.append)
    for _ in range(100_000):
        told("x" * 100)
    assert len(printed) == 100_000
    told("\nERROR! no\nlast\n")
    assert told.last_line == "ERROR! no"
    told("y" * 10_000)
    told.close()
    assert len("".join(printed)) == 10_000_000 + 16 + 10_000


def test_a_result_in_pieces_is_read_and_half_a_one_is_none():
    told = AnsibleOutput(lambda _: None)
    told("\x1e")
    for sign in '{"a": {"outcome": "failed", "task": "", "message": "m"}}':
        told(sign)
    told.close()
    assert told.hosts is not None
    assert failures(told.hosts) == "a: failed: m"
    told = AnsibleOutput(lambda _: None)
    told('\x1e{"a": {"outc')
    told.close()
    assert told.hosts is None
