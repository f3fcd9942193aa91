# SPDX-License-Identifier: Apache-2.0
"""Playbooks that are read: imports, roles, Ansible's own YAML."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner import documents
from planner.documents.playbook import read_plays
from planner.errors import InvalidInput


def test_plays_of_imports_stand_in_place_and_know_their_lines(tmp_path: Path) -> None:
    site, inner = tmp_path / "site.yml", tmp_path / "more" / "web.yml"
    inner.parent.mkdir()
    site.write_text(
        "- {hosts: db}\n- import_playbook: more/web.yml\n  vars: {size: 2}\n- {hosts: all}\n"
    )
    inner.write_text("---\n- hosts: web\n  serial: '{{ size }}'\n")
    read = read_plays([str(site)])
    assert [entry["play"]["hosts"] for entry in read.value] == ["db", "web", "all"]
    assert [entry.get("variables") for entry in read.value] == [None, {"size": 2}, None]
    places = [read.locate((i, "play", "hosts")) for i in range(3)]
    assert places == [f"{site}:1", f"{inner}:2", f"{site}:4"]
    assert read.locate((1, "play", "serial")) == f"{inner}:3"


def test_what_is_no_playbook_is_refused_with_all_mistakes(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text("- import_playbook: b.yml\n- x\n- import_playbook: '{{ c }}'\n")
    (tmp_path / "b.yml").write_text("- import_playbook: a.yml\n- import_playbook: none.yml\n")
    (tmp_path / "c.yml").write_text("hosts: all\n")
    with pytest.raises(InvalidInput) as refused:
        read_plays([str(tmp_path / "a.yml"), str(tmp_path / "c.yml")])
    told = str(refused.value).replace(f"{tmp_path}/", "").splitlines()
    expected = "a play, or import_playbook with the name of a file, is expected"
    assert told == [
        "b.yml:1: a.yml imports itself",
        "none.yml: cannot be read: No such file or directory",
        f"a.yml:2: {expected}",
        f"a.yml:3: {expected}",
        "c.yml:1: a playbook is a list of plays",
    ]


def test_roles_tell_their_tasks_and_words(tmp_path: Path) -> None:
    files = {
        "roles/web/tasks/main.yml": "- name: Install it\n  shell: x\n  register: found\n"
        '- name: "Start it"\n  include_role: {name: log}\n',
        "roles/web/templates/web.conf.j2": "{{ hostvars[inventory_hostname] }}",
        "roles/web/meta/main.yml": "dependencies:\n- role: common\n",
        "roles/common/tasks/main.yaml": "- set_fact: {size: 1}\n",
        "roles/log/tasks/main.yml": "- name: Log\n  debug: {}\n  run_once: true\n",
        "plays/site.yml": "- hosts: web\n  roles: [{role: web, when: x}, gone.far.role]\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    read = read_plays([str(tmp_path / "plays/site.yml")])
    roles = read.value[0]["roles"]
    assert [*roles] == ["web", "common", "log"]
    assert roles["web"]["tasks"] == ["Install it", "Start it"]
    assert "hostvars" in roles["web"]["words"]
    assert "run_once" in roles["log"]["words"]
    assert [roles[name]["makes"] for name in roles] == [["found"], ["size"], []]
    assert ["gone.far.role" in str(warning) for warning in read.warnings] == [True]


def test_tags_of_ansible_are_read_in_playbooks_alone(tmp_path: Path) -> None:
    file = tmp_path / "site.yml"
    file.write_text("""
- hosts: web
  vars:
    a: !unsafe '{{ b }}'
    c: !vault |
      $ANSIBLE;1
      63
    d: 1
    d: 2
""")
    read = read_plays([str(file)])
    assert read.value[0]["play"]["vars"] == {"a": "{{ b }}", "c": "$ANSIBLE;1\n63\n", "d": 2}
    assert [f"{w}".replace(f"{file}", "") for w in read.warnings] == [
        ":9: the key 'd' occurs twice, first on line 8: the last holds"
    ]
    file.write_text("- {hosts: web, a: !unsafe b}\n")
    with pytest.raises(InvalidInput, match="tag '!unsafe'"):
        documents.read(file)
